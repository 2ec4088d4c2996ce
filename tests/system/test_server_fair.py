# SPDX-License-Identifier: BSD-3-Clause
"""A GPSPM server whose memory is slow: it has time for all else, and its clients for it.

A server takes up to 32 completions at once.  While it persists for one half of a client's requests
the other half arrives, so that they never run out."""

import signal

import pytest

import rig as rigs
from test_wire import PAGE, request

PERSIST_MS = 5
IODEPTH = 64
WORKSPACE = 512 << 10
BUSY = {"rw": "randwrite", "bs": "4k", "size": WORKSPACE, "sync": 1, "iodepth": IODEPTH,
        "time_based": True, "runtime": 600}
SHORT = {"rw": "write", "bs": "4k", "size": "16k", "sync": 1}
HELD_UP = 0.9e9  # ns; a server gives a peer 1 s to agree to a disconnect
PROMPT = 5.0  # seconds; one poll of both clients takes some tenths of one


@pytest.fixture(params=(0, 1), ids=("events", "polling"))
def polling(request):
    return request.param


def start_slow(rig, persist_ms, size, **options):
    """A server whose memory is a file and takes so long to persist, whatever the range."""
    memory = rig.write("memory", "")
    with open(memory, "r+b") as file:
        file.truncate(size * options.get("clients_at_once", 1))
    port = rig.port()
    env = rig.preloaded("slow_msync", SLOW_MSYNC_MS=str(persist_ms))
    return port, memory, rig.server("gpspm", port, filename=memory, size=size, env=env, **options)


def start_busy(rig, polling, **server):
    """A server with two places, and a client that keeps it busy: its data arrives in a file."""
    port, memory, serving = start_slow(rig, PERSIST_MS, WORKSPACE, iodepth=IODEPTH,
                                       clients_at_once=2, busy_wait_polling=polling, **server)
    busy = rig.client("gpspm", port, "busy", **BUSY)
    rigs.wait_until(lambda: any(memory.read_bytes()) or not busy.running, "the client writes")
    assert busy.running, busy
    return port, serving, busy


def test_another_client_is_served_beside_a_busy_one(rig, polling):
    port, server, busy = start_busy(rig, polling, clients=2)
    rig.client("gpspm", port, **SHORT).ok(rigs.SOON)
    assert busy.running, busy
    busy.signal(signal.SIGINT)
    busy.wait(rigs.SOON)
    server.wait(rigs.SOON)
    assert server.rc >= 0, server


def test_server_is_interrupted_while_a_client_is_busy(rig, polling):
    _, server, busy = start_busy(rig, polling)
    server.signal(signal.SIGINT)
    assert server.wait(PROMPT) > 0, server
    assert busy.wait(rigs.SOON) > 0, busy


def test_runtime_ends_while_a_client_is_busy(rig, polling):
    _, server, busy = start_busy(rig, polling, clients=0, time_based=True, runtime=3)
    server.wait(3 + PROMPT)
    assert server.rc >= 0, server
    assert busy.wait(rigs.SOON) > 0, busy


def test_clients_that_leave_hold_up_no_other(rig, polling):
    """Neither one that says goodbye nor one that is killed; its end takes a message there and back."""
    port = rig.port()
    server = rig.server("gpspm", port, size="64k", clients=4, clients_at_once=2,
                        busy_wait_polling=polling, iodepth=IODEPTH)
    steady = rig.client("gpspm", port, "steady", rw="write", bs="4k", size="64k", sync=1, iodepth=2,
                        time_based=True, runtime=600)
    steady.said("connected")
    rig.client("gpspm", port, **SHORT).ok()
    rig.client("gpspm", port, **SHORT).ok()
    killed = rig.client("gpspm", port, "killed", rw="write", bs="4k", size="64k", sync=1,
                        time_based=True, runtime=600)
    killed.said("connected")
    killed.kill()
    server.said("killed")
    assert steady.running, steady
    steady.signal(signal.SIGINT)
    steady.wait(rigs.SOON)
    assert server.wait(rigs.SOON) > 0, server
    assert steady.job["write"]["clat_ns"]["max"] < HELD_UP, steady


def test_client_that_comes_and_leaves_while_the_server_is_busy_is_told_as_such(rig):
    """All of it is there when the server looks, and its requests before the word of its coming."""
    port, server, busy = start_busy(rig, 1, clients=2)
    rig.peer(port, "connect", f"send={request(0, PAGE, 1).hex()}", "vanish").ok()
    busy.signal(signal.SIGINT)
    busy.wait(rigs.SOON)
    server.wait(rigs.SOON)
    assert "gone" not in server.err.text, server


def test_server_ends_in_time_however_many_clients_hang(rig):
    port, hanging = rig.port(), 6
    server = rig.server("gpspm", port, clients=0, clients_at_once=hanging, size="64k",
                        iodepth=IODEPTH)
    server.said(rigs.SERVER_READY)
    peers = [rig.peer(port, "connect", "wait", name=f"hanging{n}") for n in range(hanging)]
    for peer in peers:
        peer.printed("connected")
        peer.signal(signal.SIGSTOP)
    server.signal(signal.SIGINT)
    server.wait(PROMPT)
    for peer in peers:
        peer.kill()
    assert server.rc >= 0, server


@pytest.mark.parametrize("when", ("write", "sync"))
def test_last_flush_of_a_timed_job_takes_its_time(rig, when):
    """fio terminates a job whose time is over, which is not as if somebody had interrupted it."""
    port, _, server = start_slow(rig, 1500, WORKSPACE)
    rig.client("gpspm", port, rw="write", bs="4k", size=WORKSPACE, sync=1, iodepth=2,
               time_based=True, runtime=1, flush_when=when).ok()
    server.ok()


def test_flush_of_much_memory_takes_its_time(rig):
    size = 128 << 20
    port, _, server = start_slow(rig, 6800, size)  # longer than a client waits for one block
    rig.client("gpspm", port, rw="write", bs="1m", size=size, iodepth=4, flush_when="sync").ok()
    server.ok()
