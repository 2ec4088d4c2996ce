# SPDX-License-Identifier: BSD-3-Clause
"""Real programs, unchanged, between two processes of this machine."""

import json
import re

import pytest

import programs
import rig as rigs


@pytest.mark.parametrize("pair", programs.ALL, ids=str)
def test_program_runs_unchanged(rig, pair):
    programs.run(rig, pair)


def test_ibv_devinfo_shows_the_device(rig):
    told = rig.start("ibv_devinfo", ["ibv_devinfo", "-v"]).ok().out.text
    assert re.search(r"(?m)^hca_id:\s+softrnic0$", told)
    assert re.search(r"(?m)^\s+transport:\s+iWARP \(1\)$", told)
    assert re.search(r"(?m)^\s+state:\s+PORT_ACTIVE \(4\)$", told)


def test_ibv_devices_lists_the_device(rig):
    assert re.search(r"(?m)^\s+softrnic0\s", rig.start("l", ["ibv_devices"]).ok().out.text)


RDMA_JOB = {"ioengine": "rdma", "bs": "16k", "size": "16m", "iodepth": 8}
BLOCKS = 1024


def report(process):
    """The one job of fio's report; its engine also writes to stdout."""
    text = process.out.text
    job, = json.loads(text[text.index("{\n"):])["jobs"]
    assert job["error"] == 0, process
    return job


@pytest.mark.parametrize("verb, verify", (("write", None), ("read", None), ("send", None),
                                          ("send", "crc32c")))
def test_fio_rdma_engine_moves_its_blocks(rig, verb, verify):
    port = rig.port()
    job = {**RDMA_JOB, "port": port, "verify": verify}
    server = rig.fio("server", [("server", {**job, "rw": "read"})])
    programs.wait_for_listener(server, port)
    client = rig.fio("client", [("client", {**job, "rw": "write", "verb": verb,
                                            "hostname": rigs.ADDR, "do_verify": "0"})])
    client.ok()
    server.ok()
    assert report(client)["write"]["total_ios"] == BLOCKS
    if verb == "send":
        assert report(server)["read"]["total_ios"] == BLOCKS
