# SPDX-License-Identifier: BSD-3-Clause
"""What goes over the wire, seen by a peer that shares no code with the engines."""

import struct

import pytest

import rig as rigs

SIZE = 1 << 20
PAGE = 4096


def words(process, word):
    """The bytes of each line that begins with the word."""
    return [bytes.fromhex(line[len(word):].strip()) for line in process.out.text.splitlines()
            if line.startswith(word)]


def request(offset, length, context):
    """A GPSPM flush request: three fixed64 fields, tags 1, 2 and 3."""
    return struct.pack("<BQBQBQ", 0x09, offset, 0x11, length, 0x19, context)


def response(context):
    return struct.pack("<BQ", 0x09, context)


LAST = request(0, 0, 0)


def offer(data):
    """The server's private data: (slots, direct write, (address, length, rkey, usage))."""
    slots, direct, size = struct.unpack_from("<HBB", data)
    assert size == 21
    return slots, direct, struct.unpack_from("<QQIB", data, 4)


def flushes(client_side_of):
    """(offset, length) of every flush request a peer printed, without the last, all-zero one."""
    messages = words(client_side_of, "message")
    assert messages[-1] == LAST, client_side_of
    ranges = []
    for message in messages[:-1]:
        offset, length, context = (struct.unpack_from("<Q", message, at)[0] for at in (1, 10, 19))
        assert message == request(offset, length, context), "more or other bytes than these"
        ranges.append((offset, length))
    return ranges


@pytest.mark.parametrize("direct", (0, 1))
@pytest.mark.parametrize("method, slots", (("apm", 0), ("gpspm", 5)))
def test_private_data_of_a_server_is_these_28_bytes(rig, method, slots, direct):
    port = rig.port()
    server = rig.server(method, port, size=SIZE, direct_write_to_pmem=direct,
                        **({"iodepth": slots} if slots else {}))
    server.said(rigs.SERVER_READY)
    farewell = [f"send={LAST.hex()}"] if method == "gpspm" else []
    peer = rig.peer(port, "connect", *farewell, "close").ok()
    server.wait(rigs.SOON)
    data, = words(peer, "connected")
    assert len(data) >= 28
    assert not any(data[25:]), "what is not used is zero"
    if rigs.SOFT:
        assert len(data) == 28
    announced, direct_write, (address, length, _, usage) = offer(data)
    assert (announced, direct_write, length) == (slots, direct, SIZE)
    assert address % PAGE == 0
    # read source, write destination, and one kind of flush, or both
    assert usage & 0b1001 == 0b1001 and usage & 0b110000 and not usage & 0b11000110


def test_server_answers_a_flush_request_with_its_context(rig):
    port = rig.port()
    server = rig.server("gpspm", port, size=SIZE)
    server.said(rigs.SERVER_READY)
    contexts = (1, 0x0123456789abcdef, 2 ** 64 - 1)
    steps = []
    for context in contexts:
        steps += [f"send={request(PAGE, PAGE, context).hex()}", "recv"]
    peer = rig.peer(port, "connect", *steps, f"send={LAST.hex()}", "close").ok()
    assert words(peer, "message") == [response(context) for context in contexts]
    server.ok()


def test_server_flushes_up_to_its_last_byte(rig):
    port = rig.port()
    server = rig.server("gpspm", port, size=SIZE)
    server.said(rigs.SERVER_READY)
    peer = rig.peer(port, "connect", f"send={request(SIZE - 1, 1, 7).hex()}", "recv",
                    f"send={request(0, SIZE, 8).hex()}", "recv", f"send={LAST.hex()}",
                    "close").ok()
    assert words(peer, "message") == [response(7), response(8)]
    server.ok()


def gpspm_client(rig, **options):
    """A client job against a peer that answers like a server; returns what it flushed."""
    port = rig.port()
    peer = rig.peer(port, "listen", "get", f"accept=16,{SIZE}", "answer", "wait")
    peer.printed("listening")
    client = rig.client("gpspm", port, **options).ok()
    peer.ok()
    return flushes(peer), client


def test_each_write_is_flushed_as_it_was_written(rig):
    ranges, _ = gpspm_client(rig, rw="write", bs=PAGE, size=4 * PAGE, sync=1)
    assert ranges == [(n * PAGE, PAGE) for n in range(4)]


def test_writes_that_wrap_are_not_flushed_as_one_range(rig):
    ranges, _ = gpspm_client(rig, rw="write", bs=PAGE, size=4 * PAGE, io_size=8 * PAGE,
                             offset=SIZE - 4 * PAGE, iodepth=8, iodepth_batch=8)
    written = sorted(page for offset, length in ranges
                     for page in range(offset // PAGE, (offset + length) // PAGE))
    top = SIZE // PAGE
    assert all(offset + length <= SIZE for offset, length in ranges)
    assert set(written) == set(range(top - 4, top))


def test_gaps_between_writes_are_not_flushed(rig):
    ranges, _ = gpspm_client(rig, rw="write:4k", bs=PAGE, size=16 * PAGE, iodepth=4,
                             iodepth_batch=4)
    written = {page for offset, length in ranges
               for page in range(offset // PAGE, (offset + length) // PAGE)}
    assert written == set(range(0, 16, 2))
    assert all(length == PAGE for _, length in ranges)


def test_a_batch_covers_all_that_was_written(rig):
    ranges, _ = gpspm_client(rig, rw="randwrite", bs=PAGE, size=64 * PAGE, iodepth=16,
                             iodepth_batch=16, randseed=3)
    written = sorted(page for offset, length in ranges
                     for page in range(offset // PAGE, (offset + length) // PAGE))
    assert written == list(range(64)), "every page once"


def test_reads_are_never_flushed(rig):
    ranges, client = gpspm_client(rig, rw="randread", bs=PAGE, size=64 * PAGE, iodepth=4)
    assert ranges == [] and client.job["read"]["total_ios"] == 64


def test_flush_when_sync_flushes_at_sync_points_and_at_the_end(rig):
    ranges, _ = gpspm_client(rig, rw="write", bs=PAGE, size=12 * PAGE, fsync=5, flush_when="sync")
    written = sorted(page for offset, length in ranges
                     for page in range(offset // PAGE, (offset + length) // PAGE))
    assert written == list(range(12))
    assert len(ranges) < 12


def test_flush_when_never_flushes_nothing(rig):
    ranges, _ = gpspm_client(rig, rw="write", bs=PAGE, size=12 * PAGE, fsync=5, flush_when="never")
    assert ranges == []


@pytest.mark.parametrize("answers", (16, 21, 37, 50))
def test_all_of_iodepth_is_in_flight_however_many_are_done(rig, answers):
    """The peer answers some and then no more: as many requests as iodepth have to reach it."""
    port = rig.port()
    peer = rig.peer(port, "listen", "get", f"accept=32,{SIZE}", f"answer=0,{answers}")
    peer.printed("listening")
    client = rig.client("gpspm", port, rw="write", bs=PAGE, size=128 * PAGE, sync=1, iodepth=16)
    rigs.wait_until(lambda: len(words(peer, "message")) >= answers + 16 or not client.running,
                    "sixteen requests that wait for an answer", rigs.SOON)
    assert len(words(peer, "message")) == answers + 16, peer
    client.kill()
    peer.wait()


def test_no_more_requests_in_flight_than_the_server_has_slots(rig):
    """The peer offers two slots; a deeper queue than that must not overrun them."""
    port = rig.port()
    peer = rig.peer(port, "listen", "get", f"accept=2,{SIZE}", "answer", "wait")
    peer.printed("listening")
    client = rig.client("gpspm", port, rw="write", bs=PAGE, size=64 * PAGE, iodepth=32)
    if client.wait(rigs.SOON) == 0:
        peer.ok()
        assert len(flushes(peer)) > 0
    else:
        assert "iodepth" in client.err.text, client
        peer.wait()
