# SPDX-License-Identifier: BSD-3-Clause
"""A GPSPM server whose memory is slower than its clients: it has time for all else, too.

A server takes up to 32 completions at once.  While it persists for one half of a client's requests
the other half arrives, so that they never run out."""

import signal

import pytest

import rig as rigs

PERSIST_MS = 5
IODEPTH = 64
WORKSPACE = 512 << 10
BUSY = {"rw": "randwrite", "bs": "4k", "size": WORKSPACE, "sync": 1, "iodepth": IODEPTH,
        "time_based": True, "runtime": 600}
SHORT = {"rw": "write", "bs": "4k", "size": "16k", "sync": 1}
PROMPT = 5.0  # seconds; one poll of both clients takes some tenths of one


@pytest.fixture(params=(0, 1), ids=("events", "polling"))
def polling(request):
    return request.param


def start_busy(rig, polling, **server):
    """A server with two places, and a client that keeps it busy: its data arrives in a file."""
    memory = rig.write("memory", "\0" * (2 * WORKSPACE))
    port = rig.port()
    preloaded = [rig.env.get("LD_PRELOAD"), str(rigs.SLOW_MSYNC)]
    serving = rig.server("gpspm", port, filename=memory, size=WORKSPACE, iodepth=IODEPTH,
                         clients_at_once=2, busy_wait_polling=polling, **server,
                         env={"LD_PRELOAD": ":".join(filter(None, preloaded)),
                              "SLOW_MSYNC_MS": str(PERSIST_MS)})
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
