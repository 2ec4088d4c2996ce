# SPDX-License-Identifier: BSD-3-Clause
"""What an I/O costs in the plugin does not depend on how many are in flight."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import engine_cost  # noqa: E402

TOP = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("method", ["read", "gpspm"])
def test_an_io_takes_as_many_instructions_at_iodepth_1024_as_at_16(method):
    build = TOP / os.environ.get("BUILD", "build")
    shallow, deep = (engine_cost.measure(build, method, depth)[0] for depth in (16, 1024))
    assert 0.9 * shallow <= deep <= 1.1 * shallow, f"{shallow:.0f} at 16, {deep:.0f} at 1024"
