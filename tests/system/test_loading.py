# SPDX-License-Identifier: BSD-3-Clause
"""The plugin is found in every way fio knows, and says so where it does not fit."""

import re
import shutil
import struct
import subprocess

import pytest

import rig as rigs

SHORT = {"rw": "write", "bs": "4k", "size": "64k", "verify": "crc32c"}
OPTIONS = {
    "client": ("serverip", "port", "direct_write_to_pmem", "busy_wait_polling", "flush_mode",
               "flush_when", "connect_timeout"),
    "server": ("serverip", "port", "direct_write_to_pmem", "busy_wait_polling", "clients",
               "clients_at_once", "hugepage"),
}


def options_of(method, side):
    """How to flush is a question of APM alone: a GPSPM server does it itself."""
    return [option for option in OPTIONS[side] if method == "apm" or option != "flush_mode"]


def loaded(rig, method, name_of, **env):
    """A server and a client whose ioengine= is given by name_of(side)."""
    port = rig.port()
    server = rig.server(method, port, ioengine=name_of("server"), env=env)
    client = rig.client(method, port, ioengine=name_of("client"), env=env, **SHORT).ok()
    server.ok()
    assert client.job["write"]["total_ios"] == 16


def test_plain_name_with_the_folder_in_the_library_path(rig, method):
    loaded(rig, method, lambda side: rigs.engine(method, side))


def test_external_path(rig, method):
    """external: takes one engine a file, and each has a file of its name."""
    loaded(rig, method, lambda side: f"external:{rigs.ENGINES / rigs.engine(method, side)}",
           LD_LIBRARY_PATH=str(rigs.BUILD / "librpma"))


def test_preloaded(rig, method):
    preload = f"{rigs.SOFTRNIC}:{rigs.PLUGIN}" if rigs.SOFT else str(rigs.PLUGIN)
    loaded(rig, method, lambda side: rigs.engine(method, side),
           LD_PRELOAD=preload, LD_LIBRARY_PATH=str(rigs.BUILD / "librpma"))


def test_rpma_fio_finds_plugin_and_device_by_itself(rig, method):
    """It needs no environment, and starts with any other folder as the current one."""
    port = rig.port()
    env = {"LD_LIBRARY_PATH": "", "LD_PRELOAD": ""}
    started = []
    for side, options in (("server", {"filename": "malloc", "size": "1m"}), ("client", SHORT)):
        path = rig.write(f"{side}.fio", f"[{side}]\n" + rigs.text_of({
            "ioengine": rigs.engine(method, side), "serverip": rigs.ADDR, "port": port,
            "thread": True, **options}))
        started.append(rig.start(side, [rigs.ROOT / "tools" / "rpma-fio",
                                        "--output-format=json", path], env))
    server, client = started
    client.ok()
    server.ok()
    assert client.job["write"]["total_ios"] == 16


@pytest.mark.parametrize("side", OPTIONS)
def test_enghelp_lists_every_option(rig, method, side):
    help_text = rig.start("enghelp", [rigs.FIO, f"--enghelp={rigs.engine(method, side)}"]).ok()
    listed = re.findall(r"(?m)^(\w+)\s*:", help_text.out.text)
    for option in options_of(method, side):
        assert option in listed, help_text


def test_engine_help_of_one_option_explains_it(rig, method):
    name = rigs.engine(method, "client")
    for option in options_of(method, "client"):
        said = rig.start("enghelp", [rigs.FIO, f"--enghelp={name},{option}"]).ok()
        assert option in said.out.text and len(said.out.text.splitlines()) >= 2, said


def patched(source, target, old, new):
    """A copy in which every occurrence of some bytes is replaced; the same size."""
    data = source.read_bytes()
    assert len(old) == len(new) and old in data, f"{source} has no {old!r}"
    target.write_bytes(data.replace(old, new))
    target.chmod(0o755)
    return target


def refused_in_one_line(process):
    status = process.wait(rigs.SOON)
    assert status > 0, process
    lines = [line for line in process.error_lines() if "built for" in line]
    assert len(lines) == 1, process
    return lines[0]


def fio_binary():
    found = shutil.which(rigs.FIO)
    assert found
    return rigs.Path(found)


def fio_version():
    return subprocess.run([rigs.FIO, "--version"], capture_output=True, text=True, check=True,
                          timeout=rigs.LIMIT).stdout.strip()


def test_plugin_for_another_fio_version_says_so(rig, method):
    """A fio that calls itself another version loads the plugin: it must not run."""
    version = fio_version().encode()
    other = version[:-1] + (b"1" if version[-1:] != b"1" else b"2")
    fio = patched(fio_binary(), rig.folder / "other-fio", version, other)
    rig.expected_files.add("other-fio")
    path = rig.write("job.fio", "[client]\n" + rigs.text_of(
        rig.client_options(method, rig.port(), **SHORT)))
    line = refused_in_one_line(rig.start("client", [fio, path]))
    assert version.decode() in line and other.decode() in line


def engine_version_offset(plugin, name):
    """Where in the file an engine's FIO_IOOPS_VERSION stands (after a list head and a name)."""
    symbols = subprocess.run(["readelf", "--dyn-syms", "-W", plugin], capture_output=True,
                             text=True, check=True, timeout=rigs.LIMIT).stdout
    found = re.search(rf"(?m)^\s*\d+:\s*([0-9a-f]+)\s.*\s{name}$", symbols)
    assert found, symbols
    address = int(found[1], 16)
    sections = subprocess.run(["readelf", "-S", "-W", plugin], capture_output=True, text=True,
                              check=True, timeout=rigs.LIMIT).stdout
    for start, offset, size in re.findall(
            r"PROGBITS\s+([0-9a-f]{16})\s+([0-9a-f]+)\s+([0-9a-f]+)", sections):
        start, offset, size = int(start, 16), int(offset, 16), int(size, 16)
        if start <= address < start + size:
            return offset + address - start + 24
    raise AssertionError(f"no section holds {name}")


def test_plugin_for_another_engine_interface_does_not_load(rig, method):
    """fio checks this itself; the plugin must leave it to it, and nothing may crash."""
    name = rigs.engine(method, "client")
    folder = rig.folder / "old"
    folder.mkdir()
    rig.expected_files.add("old")
    data = bytearray(rigs.PLUGIN.read_bytes())
    at = engine_version_offset(rigs.PLUGIN, name)
    version, = struct.unpack_from("<i", data, at)
    assert 31 <= version < 100, "not where the version stands"
    struct.pack_into("<i", data, at, version - 1)
    (folder / name).write_bytes(data)
    client = rig.client(method, rig.port(), **SHORT,
                        env={"LD_LIBRARY_PATH": f"{folder}:{rigs.BUILD / 'librpma'}"})
    assert client.wait(rigs.SOON) > 0, client
    assert "version" in client.err.text, client
