# SPDX-License-Identifier: BSD-3-Clause
"""The server's memory: where the data goes, seen from outside, and what is said about it."""

import mmap
import os
import re
import struct

import pytest

import rig as rigs
from conftest import memory_of

BLOCK = 4096
MIB = 1 << 20
# every block holds its own offset and nothing else
WRITE = {"rw": "randwrite", "bs": BLOCK, "size": "64k", "iodepth": 4, "verify": "pattern"}


def marked(text):
    return {**WRITE, "verify_pattern": f'"{text}"%o'}


def content(text, offset=0):
    """What a client that writes with this mark leaves in its workspace."""
    data = b""
    for block in range(16):
        unit = text.encode() + struct.pack("<Q", offset + block * BLOCK)
        data += (unit * (BLOCK // len(unit) + 1))[:BLOCK]
    return data


@pytest.fixture
def file_of(rig):
    """Makes files of so many MiB, on tmpfs where there is one: quick, and never persistent."""
    made = []

    def make(name, mebibytes):
        path = rig.folder / name
        with open(path, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, mebibytes * MIB)
        rig.expected_files.add(name)
        made.append(path)
        return path

    return make


def test_data_is_in_the_servers_file(rig, method, file_of):
    path = file_of("memory", 1)
    rig.run(method, {"filename": path, "size": MIB}, **marked("whole"))
    data = path.read_bytes()
    assert data[:65536] == content("whole")
    assert not any(data[65536:]), "bytes were written that nobody asked for"


def test_clients_offset_is_one_into_the_workspace(rig, method, file_of):
    path = file_of("memory", 1)
    rig.run(method, {"filename": path, "size": MIB}, **marked("part"), offset="512k")
    data = path.read_bytes()
    assert data[512 << 10:576 << 10] == content("part", 512 << 10)
    assert not any(data[:512 << 10])


def test_threads_share_one_file_slice_by_slice(rig, method, file_of):
    path = file_of("memory", 2)
    rig.run(method, {"filename": path, "size": MIB}, **marked("slice"), numjobs=2)
    data = path.read_bytes()
    assert data[:65536] == data[MIB:MIB + 65536] == content("slice")


def test_each_thread_has_a_file_of_its_own(rig, method, file_of):
    first, second = file_of("first", 1), file_of("second", 1)
    rig.run(method, {"filename": f"{first}:{second}", "size": MIB}, **marked("own"), numjobs=2)
    assert first.read_bytes()[:65536] == second.read_bytes()[:65536] == content("own")


def test_clients_at_once_have_their_own_place_in_a_file(rig, method, file_of):
    path = file_of("memory", 2)
    port = rig.port()
    server = rig.server(method, port, filename=path, size=MIB, clients=2, clients_at_once=2)
    clients = [rig.client(method, port, name=mark, **marked(mark), time_based=True, runtime=2,
                          do_verify=0) for mark in ("one", "two")]
    for client in clients:
        client.ok()
    server.ok()
    data = path.read_bytes()
    assert {data[:65536], data[MIB:MIB + 65536]} == {content("one"), content("two")}


def test_servers_file_keeps_its_size_and_the_rest_of_its_content(rig, method, file_of):
    path = file_of("memory", 2)
    path.write_bytes(b"x" * (2 * MIB))
    rig.run(method, {"filename": path, "size": MIB}, **marked("kept"))
    data = path.read_bytes()
    assert len(data) == 2 * MIB and data[:65536] == content("kept")
    assert data[65536:] == b"x" * (2 * MIB - 65536)


def test_workspace_begins_as_the_file_was(rig, method, file_of):
    """A client reads what was in the file before the server started."""
    path = file_of("memory", 1)
    path.write_bytes(content("before") + bytes(MIB - 65536))
    _, client = rig.run(method, {"filename": path, "size": MIB},
                        **{**marked("before"), "rw": "randread"})
    assert client.job["read"]["total_ios"] == 16


def said_of_memory(process):
    return [line for line in process.error_lines() if re.search("persistent|durable", line, re.I)]


@pytest.mark.parametrize("kind, words", (("malloc", "DRAM"), ("file", "granularity.*page")))
def test_memory_that_is_not_persistent_is_said_once_on_both_sides(rig, method, file_of, kind, words):
    if kind == "file" and not rigs.SOFT:
        pytest.skip("files of the lab that are not DAX lie on an overlay")
    filename = file_of("memory", 1) if kind == "file" else kind
    server, client = rig.run(method, {"filename": filename, "size": MIB}, **marked("x"))
    said, = said_of_memory(server)
    assert re.search(words, said) and "NOT persistent" in said, server
    warned, = said_of_memory(client)
    assert "NOT durable" in warned, client


@pytest.mark.parametrize("kind", [kind for kind in rigs.MEMORIES if kind != "dram"])
def test_persistent_memory_is_said_and_client_does_not_warn(rig, method, kind):
    with memory_of(kind) as filename:
        server, client = rig.run(method, {"filename": filename, "size": 2 * MIB,
                                          "direct_write_to_pmem": 1}, **marked("x"))
    said, = said_of_memory(server)
    assert "granularity" in said and "NOT persistent" not in said, server
    assert not [line for line in said_of_memory(client) if "NOT" in line], client


def test_threads_have_slices_of_device_dax(rig, method):
    if not rigs.DEVDAX:
        pytest.skip("no device DAX here")
    rig.run(method, {"filename": rigs.DEVDAX, "size": 2 * MIB}, **marked(f"dax {method}"),
            numjobs=2)
    fd = os.open(rigs.DEVDAX, os.O_RDONLY)
    try:
        with mmap.mmap(fd, 4 * MIB, mmap.MAP_SHARED, mmap.PROT_READ) as data:
            assert data[:65536] == data[2 * MIB:2 * MIB + 65536] == content(f"dax {method}")
    finally:
        os.close(fd)
