# SPDX-License-Identifier: BSD-3-Clause
"""Run inside the lab: the machine is what the other tests take it for."""

import ctypes
import os
import re
import subprocess
import time

import pytest

ADDRESS = os.environ.get("RPMA_TEST_ADDR", "")

pytestmark = pytest.mark.skipif("LAB" not in os.environ, reason="only inside the lab")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_rxe0_is_present_and_its_port_active():
    assert re.search(r"hca_id:\s+rxe0", output("ibv_devinfo"))
    assert re.search(r"state:\s+PORT_ACTIVE", output("ibv_devinfo", "-d", "rxe0"))


def extended_capabilities():
    """device_cap_flags_ex as the kernel gives it, by way of ibv_devinfo."""
    return int(re.search(r"device_cap_flags_ex:\s+0x([0-9A-Fa-f]+)",
                         output("ibv_devinfo", "-v", "-d", "rxe0")).group(1), 16)


@pytest.mark.parametrize("name, bit", [("global flush", 38), ("persistent flush", 39), ("atomic write", 40)])
def test_rxe0_has_native(name, bit):
    assert extended_capabilities() >> bit & 1, name


def test_device_dax_can_be_mapped_and_stored_to():
    path = os.environ["RPMA_TEST_DEVDAX"]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    length = 2 << 20
    fd = os.open(path, os.O_RDWR)
    try:
        address = libc.mmap(None, length, 3, 1, fd, 0)
        assert address not in (None, ctypes.c_void_p(-1).value), os.strerror(ctypes.get_errno())
        ctypes.memmove(address, b"stored", 6)
        assert ctypes.string_at(address, 6) == b"stored"
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(length))
    finally:
        os.close(fd)


def test_fsdax_is_mounted_with_dax():
    mounts = [line.split() for line in open("/proc/mounts", encoding="ascii")]
    options = next(m[3] for m in mounts if m[1] == os.environ["RPMA_TEST_FSDAX"])
    assert "dax=always" in options or "dax" in options.split(",")


def listening(port):
    return bool(output("ss", "-Hltn", f"sport = :{port}").strip())


def average_latency(program, size):
    """perftest's average in microseconds, its two sides on rxe0."""
    words = [program, "-s", str(size), "-n", "1000", "-p", "18515"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        limit = time.monotonic() + 30
        while not listening(18515):
            assert server.poll() is None and time.monotonic() < limit, server.communicate()[0]
            time.sleep(0.05)
        said = output(*words, "-F", ADDRESS)
        assert server.wait(30) == 0
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    return float(re.search(rf"^\s*{size}\s+1000\s+.*", said, re.M).group().split()[5])


def test_perftest_runs_between_two_processes(record_property):
    for program, size in (("ib_write_lat", 4096), ("ib_read_lat", 8)):
        average = average_latency(program, size)
        record_property(f"{program} {size} B, average us", average)
        assert 0 < average < 100000


def test_the_fio_source_is_that_of_the_installed_fio():
    with open(os.path.join(os.environ["FIO_SRC"], ".made-for"), encoding="ascii") as made_for:
        version = made_for.read().strip()
    assert version.startswith(output("fio", "--version").strip().removeprefix("fio-"))


def test_the_clock_runs():
    before = time.monotonic()
    subprocess.run(["sleep", "0.2"], check=True)
    assert 0.2 <= time.monotonic() - before < 10
