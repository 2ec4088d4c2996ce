# SPDX-License-Identifier: BSD-3-Clause
"""A server that serves more than one client, one after another or several at once."""

import signal

import rig as rigs

SHORT = {"rw": "randwrite", "bs": "4k", "size": "256k", "iodepth": 8, "verify": "crc32c"}


def test_default_server_serves_one_client_and_ends(rig, method):
    server, client = rig.run(method, **SHORT)
    assert client.job["read"]["total_ios"] == 64
    assert server.rc == 0


def test_clients_one_after_another(rig, method):
    port = rig.port()
    server = rig.server(method, port, clients=3)
    for _ in range(3):
        rig.client(method, port, **SHORT).ok()
    server.ok()


def test_second_client_waits_for_its_turn(rig, method):
    port = rig.port()
    server = rig.server(method, port, clients=2)
    clients = [rig.client(method, port, **SHORT, time_based=True, runtime=1, do_verify=0)
               for _ in range(2)]
    for client in clients:
        client.ok()
    server.ok()


def test_clients_zero_serves_until_interrupted(rig, method):
    port = rig.port()
    server = rig.server(method, port, clients=0)
    for _ in range(2):
        rig.client(method, port, **SHORT).ok()
    assert server.running, server
    server.signal(signal.SIGINT)
    assert server.wait(rigs.SOON) >= 0, server


def test_clients_zero_serves_until_the_jobs_runtime_is_over(rig, method):
    port = rig.port()
    server = rig.server(method, port, clients=0, time_based=True, runtime=8)
    rig.client(method, port, **SHORT).ok()
    server.ok(rigs.SOON + 8)
    assert server.ended - server.started > 7.5


def test_runtime_begins_when_the_ramp_time_is_over(rig, method):
    """As at a client, which would else be cut off by a server of the same options."""
    server = rig.server(method, rig.port(), clients=0, time_based=True, ramp_time=2, runtime=1)
    server.wait(rigs.SOON + 3)
    assert server.rc >= 0, server
    assert server.ended - server.started > 2.5


def test_four_clients_at_once_have_memory_of_their_own(rig, method):
    """Each verifies its own data while the others write theirs to the same offsets."""
    port = rig.port()
    server = rig.server(method, port, clients=4, clients_at_once=4, size="1m")
    clients = [rig.client(method, port, **{**SHORT, "randseed": n}, loops=5) for n in range(4)]
    for client in clients:
        client.ok()
    server.ok()


def test_six_clients_through_two_places(rig, method):
    port = rig.port()
    server = rig.server(method, port, clients=6, clients_at_once=2, busy_wait_polling=0)
    clients = [rig.client(method, port, **SHORT) for _ in range(6)]
    for client in clients:
        client.ok()
    server.ok()


def test_huge_pages_are_used_or_refused_with_the_reason(rig, method):
    port = rig.port()
    server = rig.server(method, port, hugepage=1, size="4m")
    client = rig.client(method, port, **SHORT, connect_timeout=3000)
    if client.wait() == 0:
        server.ok()
        return
    assert server.wait(rigs.SOON) > 0, server
    assert "huge" in server.err.text, server


def test_server_in_a_process(rig, method):
    port = rig.port(2)
    server = rig.server(method, port, thread=False, numjobs=2)
    rig.client(method, port, **SHORT, numjobs=2).ok()
    server.ok()


def test_server_ready_before_it_says_so(rig, method):
    """A client that is told not to wait gets through once the server has said it listens."""
    port = rig.port()
    server = rig.server(method, port)
    server.said(rigs.SERVER_READY)
    rig.client(method, port, **SHORT, connect_timeout=8000).ok()
    server.ok()
    assert str(port) in server.err.text
