# SPDX-License-Identifier: BSD-3-Clause
"""One side dies, is interrupted, or goes silent: the other ends soon, and says so."""

import signal

import pytest

import rig as rigs

WORKSPACE = 64 << 10
ENDLESS = {"rw": "randrw", "bs": "4k", "size": WORKSPACE, "iodepth": 8, "time_based": True,
           "runtime": 600}
SHORT = {"rw": "write", "bs": "4k", "size": WORKSPACE, "verify": "crc32c"}


def start_running(rig, method, server=None, **options):
    """A server, and a client that is in the midst of its I/O: its data arrives in a file."""
    server = {"size": WORKSPACE, **(server or {})}
    parts = int(server.get("clients_at_once", 1)) * int(server.get("numjobs", 1))
    memory = rig.write("memory", "\0" * (WORKSPACE * parts))
    port = rig.port(int(server.get("numjobs", 1)))
    serving = rig.server(method, port, **server, filename=memory)
    client = rig.client(method, port, **{**ENDLESS, **options})
    rigs.wait_until(lambda: any(memory.read_bytes()) or not client.running, "the client writes")
    assert client.running, client
    return port, serving, client


def failed_soon(process):
    status = process.wait(rigs.SOON)
    assert status > 0, f"{'hid it' if status == 0 else 'crashed'}\n{process}"
    assert process.error_lines(), process


@pytest.mark.parametrize("polling", (0, 1))
def test_server_killed_in_mid_run(rig, method, polling):
    _, server, client = start_running(rig, method, busy_wait_polling=polling)
    server.kill()
    failed_soon(client)
    assert "connection" in client.err.text, client


@pytest.mark.parametrize("pace", ({"thinktime": 1000}, {"rate_iops": 200}), ids=("thinktime", "rate"))
def test_server_falls_silent_while_fio_waits_for_all_in_flight(rig, method, pace):
    """Before it sleeps, fio waits in a loop that no error of the engine ends."""
    _, server, client = start_running(rig, method, **pace)
    if method == "apm" and not rigs.SOFT:
        server.kill()  # a device serves reads and writes though the process stands still
    else:
        server.signal(signal.SIGSTOP)
    failed_soon(client)
    server.kill()


@pytest.mark.parametrize("_again", range(3))
def test_server_killed_while_fio_waits_for_all_in_flight(rig, method, _again):
    """Some I/Os have completed when the connection fails, and what fio calls next is the commit."""
    _, server, client = start_running(rig, method, rw="randwrite", flush_when="never", bs="16k",
                                      iodepth=16, thinktime=50, thinktime_blocks=16)
    client.signal(signal.SIGSTOP)  # so that it finds answers and the failure at one look
    server.kill()
    client.signal(signal.SIGCONT)
    failed_soon(client)


@pytest.mark.parametrize("polling", (0, 1))
def test_client_killed_in_mid_run(rig, method, polling):
    _, server, client = start_running(rig, method, {"busy_wait_polling": polling})
    client.kill()
    failed_soon(server)
    assert "connection" in server.err.text or "client" in server.err.text, server


def test_server_interrupted_in_mid_run(rig, method):
    _, server, client = start_running(rig, method)
    server.signal(signal.SIGINT)
    assert server.wait(rigs.SOON) > 0, server
    failed_soon(client)


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM))
def test_client_interrupted_in_mid_run(rig, method, number):
    """It says good-bye, so that its server ends as after any client."""
    _, server, client = start_running(rig, method)
    client.signal(number)
    assert client.wait(rigs.SOON) > 0, client
    server.wait(rigs.SOON)
    assert server.rc >= 0, server


@pytest.mark.parametrize("polling", (0, 1))
def test_server_interrupted_while_it_waits_for_a_client(rig, method, polling):
    server = rig.server(method, rig.port(), busy_wait_polling=polling)
    server.said(rigs.SERVER_READY)
    server.signal(signal.SIGINT)
    assert server.wait(rigs.SOON) > 0, server


def test_client_interrupted_while_it_waits_for_a_server(rig, method):
    client = rig.client(method, rig.port(), **SHORT)
    client.said("waiting")
    client.signal(signal.SIGINT)
    assert client.wait(rigs.SOON) > 0, client


def test_server_interrupted_while_a_client_is_silent(rig, method):
    _, server, client = start_running(rig, method, thinktime=60000000, thinktime_blocks=1)
    server.signal(signal.SIGINT)
    assert server.wait(rigs.SOON) > 0, server
    client.signal(signal.SIGINT)
    client.wait()


def test_four_jobs_end_when_their_server_is_killed(rig, method):
    _, server, client = start_running(rig, method, {"numjobs": 4}, numjobs=4)
    server.kill()
    failed_soon(client)


def test_server_of_several_lives_on_when_a_client_is_killed(rig, method):
    port, server, client = start_running(rig, method, {"clients": 3})
    client.kill()
    rig.client(method, port, **SHORT).ok()
    rig.client(method, port, **SHORT).ok()
    server.wait(rigs.SOON)
    assert server.rc >= 0, server


def test_other_client_goes_on_when_one_of_two_at_once_is_killed(rig, method):
    port, server, doomed = start_running(rig, method, {"clients": 2, "clients_at_once": 2})
    other = rig.client(method, port, **SHORT, loops=20)
    doomed.kill()
    other.ok()
    server.wait(rigs.SOON)
    assert server.rc >= 0, server
