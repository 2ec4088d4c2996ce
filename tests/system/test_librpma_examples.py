# SPDX-License-Identifier: BSD-3-Clause
"""The examples of librpma, each a server and its clients in processes of their own.

They run with our library and, unchanged, with the one of librpma 1.x that Debian has.
"""

import re
import subprocess
from pathlib import Path

import pytest

import rig as rigs

EXAMPLES = rigs.BUILD / "librpma/examples"


def installed_library():
    """The folder of the system's librpma."""
    path = subprocess.run(["gcc", "-print-file-name=librpma.so.0"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()
    assert path.startswith("/"), "there is no librpma to compare with; install Debian's librpma0"
    return Path(path).parent


@pytest.fixture(params=["ours", "installed"], autouse=True)
def library(request, rig):
    if request.param == "installed":
        rig.env["LD_LIBRARY_PATH"] = str(installed_library())


def start_server(rig, example, *args):
    """The server and its port, once it is listening."""
    port = rig.port()
    server = rig.start("server", [EXAMPLES / example / "server", rigs.ADDR, port, *args])
    server.printed(r"^ready\n")
    return server, port


def start_client(rig, example, port, *args):
    return rig.start("client", [EXAMPLES / example / "client", rigs.ADDR, port, *args])


def run(rig, example, server_args=(), client_args=()):
    """What server and client print."""
    server, port = start_server(rig, example, *server_args)
    client = start_client(rig, example, port, *client_args).ok()
    server.ok()
    assert client.err.text == "" and server.err.text == ""
    return server.out.text.removeprefix("ready\n"), client.out.text


def test_connect_exchanges_private_data(rig):
    server, client = run(rig, "01-connect")
    assert server.rstrip("\0\n") == "client: a word from the client"
    assert client.rstrip("\0\n") == "server: a word from the server"


def test_read_prints_the_server_s_memory(rig):
    server, client = run(rig, "02-read")
    assert (server, client) == ("", "read: what the server's memory holds\n")


def test_write_to_dram_is_flushed_for_visibility(rig):
    server, client = run(rig, "03-write-flush")
    assert (server, client) == ("written: what the client wrote\n", "flush: visible\n")


def test_write_to_a_file_is_in_the_file(rig):
    path = rig.write("file", "\0" * 4096)
    server, _ = run(rig, "03-write-flush", [path], ["to be found in the file"])
    assert server == "written: to be found in the file\n"
    assert path.read_bytes().startswith(b"to be found in the file\0")


@pytest.mark.lab
def test_write_to_persistent_memory_is_flushed_persistently(rig):
    assert rigs.DEVDAX, "the lab has device DAX"
    server, client = run(rig, "03-write-flush", [rigs.DEVDAX, "direct"], ["persistent text"])
    assert (server, client) == ("written: persistent text\n", "flush: persistent\n")


def test_atomic_write_appends_to_a_log(rig):
    server, _ = run(rig, "04-atomic-write", [], ["first record", "second", "third one"])
    assert server == "first record\nsecond\nthird one\n"


def test_atomic_write_continues_a_log_kept_in_a_file(rig):
    path = rig.write("log", "\0" * 4096)
    run(rig, "04-atomic-write", [path], ["written by the first run"])
    server, _ = run(rig, "04-atomic-write", [path], ["and by the second"])
    assert server == "written by the first run\nand by the second\n"


def test_atomic_write_refuses_a_record_that_does_not_fit(rig):
    server, port = start_server(rig, "04-atomic-write")
    client = start_client(rig, "04-atomic-write", port, "kept", "x" * 4090)
    assert client.wait() == 1
    assert "no room in the log for: xxx" in client.err.text
    server.ok()
    assert server.out.text == "ready\nkept\n"


def test_messages_are_answered_with_their_number(rig):
    _, client = run(rig, "05-messages", [], ["hello", "is anybody there?", "bye"])
    assert client == "answer 1: HELLO\nanswer 2: IS ANYBODY THERE?\nanswer 3: BYE\n"


def test_connections_are_served_by_one_event_loop(rig):
    server, port = start_server(rig, "06-connections", 3)
    clients = [start_client(rig, "06-connections", port, *[f"{name} {i}" for i in range(4)])
               for name in ("red", "green", "blue")]
    for client in clients:
        client.ok()
    server.ok()
    states = re.findall(r"^client \d: 4 updates, at last (\w+ \d)\n", server.out.text, re.M)
    assert sorted(states) == ["blue 3", "green 3", "red 3"]


def test_connections_come_and_go_one_after_another(rig):
    server, port = start_server(rig, "06-connections", 2)
    for name in ("first", "second"):
        start_client(rig, "06-connections", port, name).ok()
        server.printed(rf"at last {name}\n")
    server.ok()


def test_shared_receive_queue_takes_the_messages_of_all_clients(rig):
    server, port = start_server(rig, "07-shared-receive-queue", 3)
    clients = [start_client(rig, "07-shared-receive-queue", port, *[f"{name}{i}" for i in range(7)])
               for name in "abc"]
    for client in clients:
        client.ok()
    server.ok()
    heard = {}
    for number, message in re.findall(r"^client (\d): (\w\d)$", server.out.text, re.M):
        heard.setdefault(number, []).append(message)
    assert sorted(heard.values()) == [[f"{name}{i}" for i in range(7)] for name in "abc"]


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("0*")))
def test_client_says_so_when_nobody_listens(rig, example):
    client = start_client(rig, example, rig.port(), "word")
    if example in ("01-connect", "02-read"):  # they take no words
        assert client.wait() == 2 and client.err.text.startswith("usage: ")
        client = start_client(rig, example, rig.port())
    assert client.wait(rigs.SOON) == 1
    assert 'got "Connection rejected"' in client.err.text


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("0*")))
def test_server_says_so_when_the_address_is_not_its_own(rig, example):
    arguments = ["1"] if example.startswith(("06", "07")) else []
    server = rig.start("server", [EXAMPLES / example / "server", "192.0.2.1", rig.port(),
                                  *arguments])
    assert server.wait(rigs.SOON) == 1
    assert "cannot find the device: " in server.err.text


@pytest.mark.parametrize("library", ["ours"], indirect=True)
def test_every_example_is_run_here():
    names = {path.name for path in (rigs.ROOT / "librpma/examples").iterdir() if path.is_dir()}
    used = set(re.findall(r'"(0\d-[\w-]+)"', Path(__file__).read_text()))
    assert names == used
