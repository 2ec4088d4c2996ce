# SPDX-License-Identifier: BSD-3-Clause
"""The peers of the other tests do what they are told."""

from test_wire import SIZE, response, words


def test_two_peers_exchange_messages_and_write_to_memory(rig):
    port = rig.port()
    listener = rig.peer(port, "listen", "get", f"accept=4,{SIZE}", "recv", "send=0a0b", "wait",
                        name="listener")
    listener.printed("listening")
    peer = rig.peer(port, "connect=0102", f"send={response(7).hex()}", "recv", "write=0,4096",
                    "read=8,8", "close").ok()
    listener.ok()
    assert words(listener, "request")[0][:2] == b"\x01\x02"
    assert words(listener, "message") == [response(7)]
    assert words(peer, "message") == [b"\x0a\x0b"]
    assert "wrote success" in peer.out.text and "read success" in peer.out.text, peer


def test_peer_sees_a_rejection(rig):
    port = rig.port()
    listener = rig.peer(port, "listen", "get", "reject", name="listener")
    listener.printed("listening")
    peer = rig.peer(port, "connect").ok()
    listener.ok()
    assert "refused RDMA_CM_EVENT_REJECTED" in peer.out.text, peer
