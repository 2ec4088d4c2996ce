# SPDX-License-Identifier: BSD-3-Clause
"""fio's verification, of every kind: what was written is what is read, and damage is seen."""

import errno

import pytest

import batch
import rig as rigs
from conftest import make_rig

KINDS = ("md5", "crc64", "crc32c", "crc32c-intel", "crc32", "crc16", "crc7", "xxhash", "sha512",
         "sha256", "sha1", "sha3-224", "sha3-256", "sha3-384", "sha3-512")
COUNT = 32
BASE = {"bs": "4k", "iodepth": 8, "size": COUNT * 4096, "rw": "randwrite"}
JOBS = {
    **{kind: {"verify": kind} for kind in KINDS},
    "pattern": {"verify": "pattern", "verify_pattern": '0xdeadbeef%o"abc"-12'},
    "backlog": {"verify": "crc32c", "verify_backlog": 8, "verify_backlog_batch": 4},
    "interval": {"verify": "crc32c", "verify_interval": 512},
    "offset": {"verify": "crc32c", "verify_offset": 64},
    "async": {"verify": "crc32c", "verify_async": 2},
    "bsrange": {"verify": "crc32c", "bs": None, "bsrange": "512-16k", "rw": "write"},
    "bssplit": {"verify": "crc32c", "bs": None, "bssplit": "512/30:4k/50:16k/20"},
    "odd-bytes": {"verify": "crc32c", "bs": 1000, "size": COUNT * 1000},
    "mixed": {"verify": "crc32c", "rw": "randrw", "rwmixread": 30},
    "wrapping": {"verify": "crc32c", "rw": "write", "io_size": 2 * COUNT * 4096},
    "loops": {"verify": "crc32c", "loops": 3},
    "sequential-with-gaps": {"verify": "crc32c", "rw": "write:4k", "size": 2 * COUNT * 4096},
}


@pytest.fixture(scope="module", params=rigs.METHODS)
def outcome(request, tmp_path_factory):
    with make_rig(tmp_path_factory.mktemp("verify")) as rig:
        rows = [(name, {**BASE, **options, "offset": 4096 * 7}) for name, options in JOBS.items()]
        yield batch.run_batch(rig, request.param, rows)


@pytest.mark.parametrize("name", JOBS)
def test_what_was_written_is_verified(outcome, name):
    job = outcome.job(name)
    assert job["write"]["total_ios"] > 0
    # each block that was written is read and checked, if it was not written over later
    assert job["read"]["total_ios"] > 0
    if name in KINDS or name in ("pattern", "interval", "offset", "async", "odd-bytes"):
        assert job["read"]["total_ios"] == job["write"]["total_ios"] == COUNT


def test_server_and_client_ended_well(outcome):
    assert outcome.client.rc == 0, outcome.client
    assert outcome.server.rc == 0, outcome.server


CHECKED = {"bs": "4k", "iodepth": 4, "size": "64k", "rw": "randwrite", "verify": "crc32c"}


def test_verify_only_finds_what_an_earlier_client_wrote(rig, method):
    port = rig.port()
    server = rig.server(method, port, clients=2)
    rig.client(method, port, **CHECKED, do_verify=0).ok()
    second = rig.client(method, port, **CHECKED, verify_only=True).ok()
    assert second.job["read"]["total_ios"] == 16
    server.ok()


def test_reading_job_verifies_what_a_writing_job_left(rig, method):
    port = rig.port()
    server = rig.server(method, port, clients=2)
    left = {"bs": "4k", "size": "64k", "verify": "pattern", "verify_pattern": "%o"}
    rig.client(method, port, **left, rw="write", do_verify=0).ok()
    rig.client(method, port, **left, rw="randread", iodepth=16).ok()
    server.ok()


def test_damage_is_seen_by_verify_only(rig, method):
    port = rig.port()
    server = rig.server(method, port, clients=3)
    rig.client(method, port, **CHECKED, do_verify=0).ok()
    rig.client(method, port, rw="write", bs="512", size="512", offset="20k").ok()
    third = rig.client(method, port, **CHECKED, verify_only=True)
    assert third.wait() != 0, third
    assert third.job["error"] == errno.EILSEQ, third
    server.ok()
