# SPDX-License-Identifier: BSD-3-Clause
"""Mode x depth x block size x memory x method, contents verified.

Every combination of mode, depth and block size runs; sync=, batches, the number of jobs,
threads or processes, and polling or waiting are spread over them so that every pair of values occurs.
"""

import itertools

import pytest

import batch
import covering
import rig as rigs
from conftest import make_rig, memory_of

MODES = ("write", "read", "rw", "randwrite", "randread", "randrw")
DEPTHS = (1, 2, 16, 128)
BLOCKS = {"512": 512, "4k": 4096, "64k": 65536, "1m": 1 << 20}
BATCHES = {
    "one": {},
    "submit": {"iodepth_batch_submit": 4},
    "both": {"iodepth_batch_submit": 8, "iodepth_batch_complete_min": 2,
             "iodepth_batch_complete_max": 16},
    "low": {"iodepth_batch": 16, "iodepth_low": 1},
}
FACTORS = {"mode": MODES, "depth": DEPTHS, "block": tuple(BLOCKS), "sync": (0, 1),
           "batch": tuple(BATCHES), "numjobs": (1, 1, 4), "thread": (0, 1), "polling": (0, 1)}

# Where a job works in the server's memory: writers share the first part; each block size has a
# part of its own that is filled once, every block with its own offset, for those that only read.
WRITE_AREA = 8 << 20
READ_AREAS = {"512": (8 << 20, 256 << 10), "4k": (9 << 20, 1 << 20), "64k": (10 << 20, 8 << 20),
              "1m": (18 << 20, 8 << 20)}
WORKSPACE = 26 << 20
PATTERN = {"verify": "pattern", "verify_pattern": "%o"}
TITLE = "mode x depth x block size x memory x method, verified"


def _allowed(row):
    # four times 128 buffers of 1 MiB is memory spent on nothing that four times 16 does not show
    return not (row.get("block") == "1m" and row.get("depth") == 128 and row.get("numjobs") == 4)


def _name(row):
    return f"{row['mode']}-{row['block']}-depth{row['depth']}"


def _rows():
    bases = [{"mode": mode, "depth": depth, "block": block}
             for block, mode, depth in itertools.product(BLOCKS, MODES, DEPTHS)]
    rows, uncovered = covering.complete(bases, FACTORS, _allowed)
    assert not uncovered, f"pairs that never occur: {uncovered}"
    return {_name(row): row for row in rows}


ROWS = _rows()


def _count(row):
    """I/Os of a job: enough to fill the queue twice, within 8 MiB."""
    return min(max(2 * row["depth"], 32), WRITE_AREA // BLOCKS[row["block"]])


def _options(row):
    reads_only = row["mode"] in ("read", "randread")
    options = {"rw": row["mode"], "bs": row["block"], "iodepth": row["depth"],
               "sync": row["sync"], "numjobs": row["numjobs"], "thread": row["thread"],
               "busy_wait_polling": row["polling"],
               "size": _count(row) * BLOCKS[row["block"]], **BATCHES[row["batch"]]}
    if reads_only:
        return {**options, **PATTERN, "offset": READ_AREAS[row["block"]][0]}
    return {**options, "verify": "crc32c", "do_verify": 1}


def _fill(block):
    """As wide and as early as can be: it is there before those that read it."""
    offset, size = READ_AREAS[block]
    return f"fill-{block}", {"rw": "write", "bs": block, "iodepth": 8, "numjobs": 4, "thread": 0,
                             "offset": offset, "size": size, **PATTERN, "do_verify": 0}


@pytest.fixture(scope="module", params=itertools.product(rigs.METHODS, rigs.MEMORIES),
                ids="-".join)
def outcome(request, tmp_path_factory, tables):
    method, kind = request.param
    with memory_of(kind) as filename, make_rig(tmp_path_factory.mktemp("matrix")) as rig:
        jobs = [_fill(block) for block in BLOCKS]
        jobs += [(name, _options(row)) for name, row in ROWS.items()]
        done = batch.run_batch(rig, method, jobs, {"filename": filename, "size": WORKSPACE})
        _note(tables, f"{method} {kind}", done)
        yield done


def _note(tables, column, done):
    """Adds a column group to the table shown at the end of the run."""
    lines = tables.setdefault(TITLE, [" " * 16, f"{'':16}", *(
        f"{mode:10}{block:>5} " for mode in MODES for block in BLOCKS)])
    lines[0] += f" | {column:15}"
    lines[1] += " | " + " ".join(f"{depth:>3}" for depth in DEPTHS)
    for at, (mode, block) in enumerate(itertools.product(MODES, BLOCKS), 2):
        marks = []
        for depth in DEPTHS:
            jobs = done.by_name.get(f"{mode}-{block}-depth{depth}", [])
            marks.append("ok" if jobs and not any(job["error"] for job in jobs) else "BAD")
        lines[at] += " | " + " ".join(f"{mark:>3}" for mark in marks)


@pytest.mark.parametrize("name", ROWS)
def test_mode_depth_block_verified(outcome, name):
    row = ROWS[name]
    jobs = outcome.jobs(name)
    assert len(jobs) == row["numjobs"]
    for job in jobs:
        read, written = job["read"]["total_ios"], job["write"]["total_ios"]
        if row["mode"] in ("read", "randread"):
            assert (read, written) == (_count(row), 0)
        elif row["mode"] in ("write", "randwrite"):
            assert (read, written) == (_count(row), _count(row))  # each read back once
        else:
            # what was written is read once more
            assert 0 < written and read == _count(row)


def test_server_served_exactly_these_clients_and_ended_well(outcome):
    assert outcome.client.rc == 0, outcome.client
    assert outcome.server.rc == 0, outcome.server
