# SPDX-License-Identifier: BSD-3-Clause
"""How and when a client makes what it wrote durable."""

import itertools

import pytest

import batch
import rig as rigs
from conftest import make_rig

MODES = ("auto", "native", "read")
WHEN = ("write", "sync", "never")
COUNT = 64
BASE = {"bs": "4k", "size": COUNT * 4096, "rw": "randwrite", "iodepth": 16, "verify": "crc32c"}


def _rows(method):
    """How is APM's question alone; native flush is asked for where nothing may have it."""
    modes = [mode for mode in MODES if mode != "native"] if method == "apm" else [None]
    rows = []
    for mode, when in itertools.product(modes, WHEN):
        for fsync in (None, 8):
            rows.append((f"{mode}-{when}-fsync{fsync}",
                         {**BASE, "flush_mode": mode, "flush_when": when, "fsync": fsync}))
    return rows


@pytest.fixture(scope="module", params=rigs.METHODS)
def outcome(request, tmp_path_factory):
    with make_rig(tmp_path_factory.mktemp("sync")) as rig:
        rows = _rows(request.param)
        yield rows, batch.run_batch(rig, request.param, rows)


def test_every_flush_mode_with_every_flush_when(outcome):
    rows, done = outcome
    for name, options in rows:
        job = done.job(name)
        assert (job["read"]["total_ios"], job["write"]["total_ios"]) == (COUNT, COUNT), name
        assert (job["sync"]["total_ios"] > 0) == bool(options["fsync"]), name
    assert done.server.rc == 0, done.server


def test_native_flush_is_used_or_refused_with_the_reason(rig):
    port = rig.port()
    server = rig.server("apm", port)
    client = rig.client("apm", port, **BASE, flush_mode="native")
    if client.wait() == 0:
        assert client.job["write"]["total_ios"] == COUNT
        server.ok()
        return
    assert len([line for line in client.error_lines() if "native" in line]) == 1, client
    server.signal(2)
    server.wait()


@pytest.mark.parametrize("option", ("flush_mode", "flush_when"))
def test_unknown_choice_is_refused_by_fio(rig, method, option):
    client = rig.client(method, rig.port(), **BASE, **{option: "perhaps"})
    assert client.wait(rigs.SOON) != 0
    assert option in client.err.text + client.out.text, client
