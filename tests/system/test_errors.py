# SPDX-License-Identifier: BSD-3-Clause
"""What cannot work ends soon, with one line that says why, and a status that is not zero."""

import re
import signal

import pytest

import rig as rigs

BASE = {"rw": "write", "bs": "4k", "size": "64k"}
# TEST-NET-1: no machine has this address
NOWHERE = "192.0.2.1"


def refused(process, pattern, limit=rigs.SOON):
    """It ended in time, badly, and says why in exactly one line of ours."""
    status = process.wait(limit)
    assert status not in (0, None), process
    assert status > 0, f"died of signal {-status}\n{process}"
    said = own_lines(process)
    assert len(said) == 1, f"{len(said)} lines instead of one\n{process}"
    assert re.search(pattern, said[0], re.I), f"not {pattern!r}\n{process}"


def own_lines(process):
    """Error lines of the engine; what it waits for or works on is not an error."""
    return [line for line in process.error_lines() if line.startswith("librpma_")
            and not re.search(r": (waiting up to|listening on|connected to) ", line)]


# -- the client

def test_no_server_on_the_port(rig, method):
    refused(rig.client(method, rig.port(), **BASE, connect_timeout=1000), r"connect|reach")


def test_no_server_on_the_port_with_the_default_time(rig):
    client = rig.client("apm", rig.port(), **BASE)
    client.said("waiting up to")  # emulated, fio may take seconds to come this far
    refused(client, r"connect|reach")
    assert client.ended - client.started > 4


def test_client_says_what_it_waits_for(rig, method):
    port = rig.port()
    client = rig.client(method, port, **BASE)
    client.said(rf"waiting.*{re.escape(rigs.ADDR)}.*{port}")
    server = rig.server(method, port)
    client.ok()
    server.ok()


@pytest.mark.parametrize("address, reason", (
    (NOWHERE, NOWHERE),
    ("no.such.host.invalid", "no.such.host.invalid"),
    (None, "serverip")))
@pytest.mark.parametrize("side", ("server", "client"))
def test_wrong_address(rig, method, side, address, reason):
    options = {"serverip": address, **(BASE if side == "client" else {})}
    start = rig.client if side == "client" else rig.server
    refused(start(method, rig.port(), **options), re.escape(reason))


@pytest.mark.parametrize("side", ("server", "client"))
@pytest.mark.parametrize("port, numjobs", ((0, 1), (65536, 1), (70000, 1), (-1, 1), (65535, 2)))
def test_port_that_is_none(rig, method, side, port, numjobs):
    options = {"numjobs": numjobs, **(BASE if side == "client" else {})}
    start = rig.client if side == "client" else rig.server
    process = start(method, port, **options, **({"connect_timeout": 500} if side == "client" else {}))
    if numjobs == 2:
        # the first job is fine, and goes on or waits
        process.said(r"port.*65536|65536.*port")
        process.signal(signal.SIGINT)
        assert process.wait(rigs.SOON) != 0
    else:
        assert process.wait(rigs.SOON) != 0
        assert "port" in process.err.text, process


def test_no_rdma_device(rig, method):
    """Without the software RNIC this machine has no device; the lab's loopback has none."""
    env = {"LD_PRELOAD": ""} if rigs.SOFT else {}
    address = rigs.ADDR if rigs.SOFT else "127.0.0.1"
    port = rig.port()
    refused(rig.client(method, port, **BASE, env=env, serverip=address, connect_timeout=1000),
            "RDMA device")
    refused(rig.server(method, port, env=env, serverip=address), "RDMA device")


@pytest.mark.parametrize("options, reason", (
    ({"rw": "write", "bs": "4k", "size": "2m"}, "size|memory"),
    ({"rw": "write", "bs": "4k", "offset": "1m", "size": "64k"}, "offset|memory"),
    ({"rw": "write", "bs": "2m", "size": "1m"}, ""),
    ({"rw": "read", "bs": "4k", "offset": "512k", "size": "1m"}, "size|memory")))
def test_servers_memory_is_too_small_for_the_job(rig, method, options, reason):
    port = rig.port()
    server = rig.server(method, port, size="1m")
    client = rig.client(method, port, **options)
    assert client.wait(rigs.SOON) != 0, client
    assert re.search(reason, client.err.text + client.out.text), client
    server.signal(signal.SIGINT)
    server.wait(rigs.SOON)


@pytest.mark.parametrize("mode", ("trim", "randtrim", "trimwrite"))
def test_trim_is_refused(rig, method, mode):
    refused(rig.client(method, rig.port(), **{**BASE, "rw": mode}), "trim")


def told_out_of_range(process, option):
    """fio drops the job, or, for numbers, says so and keeps the default; it names numbers only."""
    process.said("out of range")
    if process.running:
        process.signal(signal.SIGINT)
    assert process.wait(rigs.SOON) != 0, process
    assert option in process.err.text or "(1 max)" in process.err.text, process


@pytest.mark.parametrize("options", ({"connect_timeout": -1}, {"busy_wait_polling": 7}))
def test_value_out_of_range_is_told_by_fio(rig, method, options):
    client = rig.client(method, rig.port(), **BASE, **options)
    told_out_of_range(client, next(iter(options)))


# -- the server

def test_memory_file_that_is_not_there(rig, method):
    missing = rig.folder / "missing"
    refused(rig.server(method, rig.port(), filename=missing), re.escape(str(missing)))
    assert not missing.exists()


def test_memory_file_that_is_a_folder(rig, method):
    refused(rig.server(method, rig.port(), filename=rig.folder), re.escape(str(rig.folder)))


def test_memory_file_that_is_smaller_than_the_size(rig, method):
    small = rig.write("small", "x" * 4096)
    refused(rig.server(method, rig.port(), filename=small, size="1m"), "size|small")
    assert small.stat().st_size == 4096


def test_server_without_a_size(rig, method):
    refused(rig.server(method, rig.port(), size=None), "size")


def test_server_without_a_filename(rig, method):
    refused(rig.server(method, rig.port(), filename=None), "filename")


def test_size_that_device_dax_cannot_map(rig, method):
    if not rigs.DEVDAX:
        pytest.skip("no device DAX here (RPMA_TEST_DEVDAX)")
    refused(rig.server(method, rig.port(), filename=rigs.DEVDAX, size=(2 << 20) + 512),
            "align|multiple")


def test_more_than_device_dax_has(rig, method):
    if not rigs.DEVDAX:
        pytest.skip("no device DAX here (RPMA_TEST_DEVDAX)")
    refused(rig.server(method, rig.port(), filename=rigs.DEVDAX, size="64g"), "size|small|large")


def test_memory_that_nobody_has(rig, method):
    refused(rig.server(method, rig.port(), size="900t"), "memory|size")


def test_two_servers_on_one_port(rig, method):
    port = rig.port()
    first = rig.server(method, port)
    first.said(rigs.SERVER_READY)
    refused(rig.server(method, port, name="second"), rf"{port}.*in use|in use.*{port}")
    rig.client(method, port, **BASE).ok()
    first.ok()


def test_methods_do_not_mix(rig):
    """An APM client has no use for a GPSPM server, nor the reverse: said, not hung."""
    for ours, theirs in (("apm", "gpspm"), ("gpspm", "apm")):
        port = rig.port()
        server = rig.server(theirs, port)
        client = rig.client(ours, port, **BASE)
        status = client.wait(rigs.SOON)
        # GPSPM cannot work without message slots; APM may use any region that is offered
        assert status != 0 if ours == "gpspm" else status is not None, client
        if server.running:
            server.signal(signal.SIGINT)
        server.wait(rigs.SOON)


def test_negative_number_of_clients_is_refused(rig, method):
    refused(rig.server(method, rig.port(), clients=-1), "clients=-1")


@pytest.mark.parametrize("options", ({"clients_at_once": 0}, {"clients_at_once": 5000},
                                     {"hugepage": 5}))
def test_server_value_out_of_range_is_told_by_fio(rig, method, options):
    server = rig.server(method, rig.port(), **options)
    told_out_of_range(server, next(iter(options)))


def test_no_memory_for_a_clients_messages(rig):
    port = rig.port()
    server = rig.server("gpspm", port)
    client = rig.client("gpspm", port, rw="write", bs="4k", size="64k", iodepth=7,
                        env=rig.preloaded("fail_mmap", FAIL_MMAP_BYTES=str(7 * 1024)))
    refused(client, "out of memory for 7 messages")
    server.wait(rigs.SOON)
