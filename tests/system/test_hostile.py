# SPDX-License-Identifier: BSD-3-Clause
"""Peers that lie, babble, or say nothing: one clear error, and nobody hangs or falls."""

import secrets
import socket
import struct

import pytest

import rig as rigs
from test_errors import refused
from test_wire import LAST, PAGE, SIZE, request, response, words

SHORT = {"rw": "write", "bs": "4k", "size": "64k", "verify": "crc32c"}
HUGE = 2 ** 64 - 1
BAD_REQUESTS = {
    "begins-behind-the-end": request(SIZE, 1, 1),
    "ends-behind-the-end": request(SIZE - PAGE, PAGE + 1, 1),
    "offset-huge": request(HUGE, 1, 1),
    "length-huge": request(0, HUGE, 1),
    "sum-overflows-to-a-small-one": request(HUGE - 7, 16, 1),
    "sum-overflows-to-zero": request(2 ** 63, 2 ** 63, 1),
    "length-zero": request(PAGE, 0, 1),
    "length-zero-context-alone": request(0, 0, 1),
    "empty": b"",
    "one-byte": b"\x09",
    "cut-short": request(0, PAGE, 1)[:-1],
    "fields-missing": request(0, PAGE, 1)[:18],
    "wrong-wire-type": b"\x08\x00\x10\x01\x18\x01",
    "unknown-field": request(0, PAGE, 1) + b"\x21" + bytes(8),
    "endless-varint": b"\xff" * 64,
    "zeros": bytes(27),
    "full-slot-of-noise": secrets.token_bytes(512),
}
# Unknown fields, and repeated ones, are allowed by protobuf: both answers are right.
LENIENT = ("unknown-field",)


def served_after(rig, method, port):
    """The server still serves an honest client."""
    rig.client(method, port, **SHORT).ok()


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_bad_flush_request_is_refused_and_the_server_lives(rig, name):
    port = rig.port()
    server = rig.server("gpspm", port, size=SIZE, clients=2)
    server.said(rigs.SERVER_READY)
    peer = rig.peer(port, "connect", f"send={BAD_REQUESTS[name].hex()}", "recv").ok()
    answered = words(peer, "message")
    if name in LENIENT and answered:
        assert answered == [response(1)]
    else:
        assert answered == [] and "ended" in peer.out.text, peer
    served_after(rig, "gpspm", port)
    server.wait(rigs.SOON)
    assert server.rc >= 0, server
    if not (name in LENIENT and answered):
        assert len([line for line in server.error_lines() if "request" in line]) == 1, server


def test_bad_flush_request_ends_a_server_of_one_with_an_error(rig):
    port = rig.port()
    server = rig.server("gpspm", port, size=SIZE)
    server.said(rigs.SERVER_READY)
    rig.peer(port, "connect", f"send={request(SIZE, 1, 1).hex()}", "recv").ok()
    refused(server, "request")


def test_immediate_data_is_no_flush_request(rig):
    """It takes a receive, which the server must not take for a response that was sent."""
    port = rig.port()
    server = rig.server("gpspm", port, size=SIZE, clients=2)
    server.said(rigs.SERVER_READY)
    rig.peer(port, "connect", "write-imm=0,8", "wait").ok(rigs.SOON)
    served_after(rig, "gpspm", port)
    server.wait(rigs.SOON)
    assert server.rc >= 0, server
    assert "immediate data" in server.err.text, server


def test_message_longer_than_a_slot(rig, method):
    port = rig.port()
    server = rig.server(method, port, size=SIZE, clients=2)
    server.said(rigs.SERVER_READY)
    rig.peer(port, "connect", f"send={bytes(600).hex()}", "wait").wait()
    served_after(rig, method, port)
    server.wait(rigs.SOON)
    assert server.rc >= 0, server


def test_more_requests_than_slots(rig):
    port = rig.port()
    server = rig.server("gpspm", port, size=SIZE, clients=2, iodepth=2)
    server.said(rigs.SERVER_READY)
    many = [f"send={request(0, PAGE, n + 1).hex()}" for n in range(32)]
    rig.peer(port, "connect", *many, "close").wait()
    served_after(rig, "gpspm", port)
    server.wait(rigs.SOON)
    assert server.rc >= 0, server


@pytest.mark.parametrize("step", (f"write={SIZE},8", "write=-8,8", f"write={SIZE - 4},8",
                                  f"read={SIZE},8", f"read={2 ** 40},8"))
def test_access_outside_of_the_region_is_refused(rig, method, step):
    port = rig.port()
    server = rig.server(method, port, size=SIZE, clients=2)
    server.said(rigs.SERVER_READY)
    peer = rig.peer(port, "connect", step, "wait").ok()
    if step.startswith("read") or not rigs.SOFT:
        # an iWARP write is complete when it has left; the answer to it ends the connection
        assert "success" not in peer.out.text, peer
    assert "ended" in peer.out.text, peer
    served_after(rig, method, port)
    server.wait(rigs.SOON)
    assert server.rc >= 0, server


@pytest.mark.parametrize("private", ("", "00", "ff" * 56))
def test_clients_private_data_means_nothing(rig, method, private):
    port = rig.port()
    server = rig.server(method, port, size=SIZE, clients=2)
    server.said(rigs.SERVER_READY)
    rig.peer(port, f"connect={private}", "close").ok()
    served_after(rig, method, port)
    server.wait(rigs.SOON)
    assert server.rc >= 0, server


def test_client_that_vanishes_without_a_word(rig, method):
    port = rig.port()
    server = rig.server(method, port, size=SIZE, clients=2)
    server.said(rigs.SERVER_READY)
    rig.peer(port, "connect", "vanish").ok()
    served_after(rig, method, port)
    server.wait(rigs.SOON)
    assert server.rc >= 0, server


def test_silent_client_keeps_no_other_from_being_served(rig, method):
    """With room for two at once, one that says nothing is not in the way."""
    port = rig.port()
    server = rig.server(method, port, size=SIZE, clients=2, clients_at_once=2)
    server.said(rigs.SERVER_READY)
    silent = rig.peer(port, "connect", "wait", name="silent")
    silent.printed("connected")
    served_after(rig, method, port)
    silent.kill()
    server.wait(rigs.SOON)
    assert server.rc >= 0, server


@pytest.mark.parametrize("noise", (b"", b"GET / HTTP/1.1\r\n\r\n", secrets.token_bytes(4096)),
                         ids=("nothing", "http", "noise"))
@pytest.mark.skipif(not rigs.SOFT, reason="kernel RDMA takes no TCP connections")
def test_tcp_connection_that_is_no_rdma_is_not_counted_as_a_client(rig, method, noise):
    port = rig.port()
    server = rig.server(method, port, size=SIZE)
    server.said(rigs.SERVER_READY)
    with socket.create_connection((rigs.ADDR, port), timeout=rigs.SOON) as raw:
        raw.sendall(noise)
        served_after(rig, method, port)
    server.ok()


# -- servers that lie

def forged(slots=16, direct=0, size=21, address=0x10000, length=SIZE, rkey=1, usage=0b11001,
           total=28):
    data = struct.pack("<HBB", slots, direct, size) + struct.pack("<QQIB", address, length, rkey,
                                                                  usage)
    return data.ljust(28, b"\0")[:total].ljust(total, b"\0")


LIES = {
    "none-at-all": "",
    "one-byte": "00",
    "cut-short": forged(total=27).hex(),
    "descriptor-of-length-zero": forged(size=0).hex(),
    "descriptor-cut-short": forged(size=20).hex(),
    "descriptor-longer-than-its-place": forged(size=25).hex(),
    "descriptor-length-255": forged(size=255).hex(),
    "region-of-length-zero": forged(length=0).hex(),
    "region-that-wraps": forged(address=HUGE - 4096, length=SIZE).hex(),
    "usage-none": forged(usage=0).hex(),
    "usage-without-writing": forged(usage=0b10001).hex(),
    "usage-without-flush": forged(usage=0b01001).hex(),
    "noise": "ff" * 28,
}


# RoCE fills private data up with zero bytes: one that was cut short by one is whole again there
@pytest.mark.parametrize("name", [lie for lie in LIES if rigs.SOFT or lie != "cut-short"])
def test_forged_private_data_is_refused(rig, method, name):
    lie = LIES[name]
    if method == "apm" and name != "noise":
        # no message slots: but for the lie it could be an APM server
        lie = "0000"[:len(lie)] + lie[4:]
    port = rig.port()
    peer = rig.peer(port, "listen", "get", f"accept={lie}", "wait")
    peer.printed("listening")
    client = rig.client(method, port, **SHORT)
    refused(client, "server cannot be used|too small for the job")
    assert "it takes messages" not in client.err.text or name == "noise", client
    peer.wait()


def test_region_smaller_than_announced_is_an_error_not_a_hang(rig, method):
    """The key is forged, so the first write is refused by the device."""
    port = rig.port()
    slots = 16 if method == "gpspm" else 0
    peer = rig.peer(port, "listen", "get", f"accept={forged(slots=slots).hex()}", "wait")
    peer.printed("listening")
    client = rig.client(method, port, **SHORT)
    assert client.wait(rigs.SOON) > 0, client
    assert client.error_lines(), client
    peer.wait()


def test_gpspm_server_without_slots_is_refused(rig):
    port = rig.port()
    peer = rig.peer(port, "listen", "get", f"accept=0,{SIZE}", "wait")
    peer.printed("listening")
    refused(rig.client("gpspm", port, **SHORT), "slot|iodepth|GPSPM")
    peer.wait()


@pytest.mark.parametrize("data", ("", "00" * 100))
def test_server_that_rejects(rig, method, data):
    port = rig.port()
    peer = rig.peer(port, "listen", "get", f"reject={data}")
    peer.printed("listening")
    refused(rig.client(method, port, **SHORT, connect_timeout=1500), "reject|refuse|connect|reach")
    peer.wait()


def test_server_that_never_answers_the_request(rig, method):
    port = rig.port()
    peer = rig.peer(port, "listen", "get", "wait")
    peer.printed("listening")
    refused(rig.client(method, port, **SHORT, connect_timeout=2000), "connect|reach|answer")
    peer.kill()


@pytest.mark.skipif(not rigs.SOFT, reason="kernel RDMA takes no TCP connections")
@pytest.mark.parametrize("noise", (b"", secrets.token_bytes(512)), ids=("nothing", "noise"))
def test_tcp_server_that_is_no_rdma(rig, method, noise):
    with socket.create_server((rigs.ADDR, rig.port())) as listener:
        client = rig.client(method, listener.getsockname()[1], **SHORT, connect_timeout=2000)
        listener.settimeout(rigs.SOON)
        raw, _ = listener.accept()
        with raw:
            raw.sendall(noise)
            refused(client, "connect|reach|answer")


@pytest.mark.parametrize("polling", (0, 1))
def test_gpspm_server_that_never_answers_a_flush(rig, polling):
    port = rig.port()
    peer = rig.peer(port, "listen", "get", f"accept=16,{SIZE}", "wait")
    peer.printed("listening")
    refused(rig.client("gpspm", port, **SHORT, busy_wait_polling=polling), "answer|response")
    peer.wait()


@pytest.mark.parametrize("steps", (
    ("answer=1000",),                       # an op_context that nobody sent
    ("recv", f"send={'09' + '00' * 4}"),    # cut short
    ("recv", f"send={'ff' * 32}"),
    ("recv", "send="),
    (f"send={response(5).hex()}",),         # before any request
), ids=("wrong-context", "cut-short", "noise", "empty", "unasked"))
def test_bad_flush_response_is_refused(rig, steps):
    port = rig.port()
    peer = rig.peer(port, "listen", "get", f"accept=16,{SIZE}", *steps, "wait")
    peer.printed("listening")
    refused(rig.client("gpspm", port, **SHORT), "response|answer")
    peer.wait()


def test_server_that_ends_the_connection_early(rig, method):
    port = rig.port()
    slots = 16 if method == "gpspm" else 0
    peer = rig.peer(port, "listen", "get", f"accept={slots},{SIZE}", "close")
    peer.printed("listening")
    refused(rig.client(method, port, **SHORT, time_based=True, runtime=60), "connection")
    peer.wait()
