# SPDX-License-Identifier: BSD-3-Clause
"""What the plugin does not do more often than it must: no time shows that as reliably as a profile."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import engine_cost  # noqa: E402

TOP = Path(__file__).resolve().parents[2]
BUILD = TOP / os.environ.get("BUILD", "build")
COUNT = 2048
SYNCS = 4


@pytest.mark.parametrize("method", ["read", "gpspm"])
def test_an_io_takes_as_many_instructions_at_iodepth_1024_as_at_16(method):
    shallow, deep = (engine_cost.measure(BUILD, method, depth)[0] for depth in (16, 1024))
    assert 0.9 * shallow <= deep <= 1.1 * shallow, f"{shallow:.0f} at 16, {deep:.0f} at 1024"


def requests_for_syncs(method, request, *options):
    """How often that function of librpma was called, in a job with so many syncs."""
    profile = engine_cost.profile(BUILD, method, 1, COUNT, "--flush_when=sync",
                                  f"--fsync={COUNT // SYNCS}", *options)
    assert profile.calls["client_queue"] >= COUNT
    return profile.calls[request]


def test_a_sync_by_read_is_one_flush_whatever_was_written():
    assert SYNCS <= requests_for_syncs("read", "rpma_batch_flush", "--rw=randwrite") <= SYNCS + 1


def test_a_sync_flushes_once_what_was_written_many_times():
    assert SYNCS <= requests_for_syncs("gpspm", "rpma_batch_send", f"--io_size={COUNT * 4096}",
                                       f"--size={COUNT // 64 * 4096}") <= SYNCS + 1
