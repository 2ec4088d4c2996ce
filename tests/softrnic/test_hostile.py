# SPDX-License-Identifier: BSD-3-Clause
"""Peers that mean harm, or die, and the good client that comes after them."""

import contextlib
import socket
import struct
import threading
from pathlib import Path

import rig as rigs

FLOOD = 500
ROOM = 32 << 10  # KiB that a flood may cost a server
MPA_REQUEST = b"MPA ID Req Frame" + struct.pack("!BBH", 0, 1, 0)
MPA_REPLY_SIZE = 20


def resident(process):
    """KiB of memory the process has."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError(f"{process.name} is gone\n{process}")


def descriptors(process):
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


def listening_server(rig, **options):
    port = rig.port()
    server = rig.server("apm", port, size="1m", **options)
    server.said(rigs.SERVER_READY)
    return server, port


def good_client(rig, port):
    """Writes, reads back and verifies."""
    client = rig.client("apm", port, rw="write", bs="4k", size="256k", verify="crc32c").ok()
    assert client.job["read"]["total_ios"] == 64


def test_flood_of_silent_connections_leaves_a_good_client_its_way(rig):
    server, port = listening_server(rig)
    with contextlib.ExitStack() as stack:
        for _ in range(FLOOD):
            stack.enter_context(socket.create_connection((rigs.ADDR, port), rigs.LIMIT))
        good_client(rig, port)
    server.ok()


def test_flood_of_silent_connections_costs_bounded_memory_and_descriptors(rig):
    server, port = listening_server(rig)
    before, open_before = resident(server), descriptors(server)
    with contextlib.ExitStack() as stack:
        flood = [stack.enter_context(socket.create_connection((rigs.ADDR, port), rigs.LIMIT))
                 for _ in range(FLOOD)]
        # the oldest are dropped for the newest: the first one's end shows that all were taken
        flood[0].settimeout(rigs.LIMIT)
        with contextlib.suppress(ConnectionResetError):
            assert flood[0].recv(1) == b""
        assert resident(server) - before < ROOM
        assert descriptors(server) - open_before < FLOOD // 2
    good_client(rig, port)
    server.ok()


def test_slow_sender_is_dropped_and_hinders_nobody(rig):
    server, port = listening_server(rig)
    slow = socket.create_connection((rigs.ADDR, port), rigs.LIMIT)
    ended, sent = threading.Event(), []

    def drip():
        for byte in MPA_REQUEST:
            if ended.wait(1):
                return
            try:
                slow.send(bytes([byte]))
            except OSError:
                return
            sent.append(byte)

    sender = threading.Thread(target=drip)
    sender.start()
    try:
        slow.settimeout(rigs.LIMIT)
        with contextlib.suppress(ConnectionResetError):
            assert slow.recv(1) == b"", "the server answers a request that is not whole"
        assert len(sent) < len(MPA_REQUEST), "it had the patience for a whole request"
    finally:
        ended.set()
        sender.join()
        slow.close()
    good_client(rig, port)
    server.ok()


def reset(connection):
    """Closes it with RST instead of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def exactly(connection, size):
    data = b""
    while len(data) < size:
        got = connection.recv(size - len(data))
        assert got, "the server closed the connection"
        data += got
    return data


def test_peer_that_resets_in_the_middle_of_a_write_ends_its_connection_alone(rig):
    server, port = listening_server(rig, clients=2)
    bad = socket.create_connection((rigs.ADDR, port), rigs.LIMIT)
    bad.settimeout(rigs.LIMIT)
    # with the hello of an APM client, which does not leave without a goodbye
    hello = b"rpma" + bytes([1, 1, 0, 0])
    bad.sendall(MPA_REQUEST[:-2] + struct.pack("!H", len(hello)) + hello)
    flags, _, size = struct.unpack("!BBH", exactly(bad, MPA_REPLY_SIZE)[16:])
    assert not flags & 0x20, "the connection is refused"
    # the server's private data holds its region's address, length and rkey
    address, length, rkey = struct.unpack_from("<QQI", exactly(bad, size), 4)
    assert length == 1 << 20
    ulpdu = struct.pack("!BBIQ", 0xc1, 0x40, rkey, address) + bytes(4096)
    frame = struct.pack("!H", len(ulpdu)) + ulpdu
    bad.sendall(frame[:2000])
    reset(bad)
    good_client(rig, port)
    server.wait()
    assert server.rc == 1, f"{server}"
    server.said("it ended without a goodbye, so it was killed or has failed")
