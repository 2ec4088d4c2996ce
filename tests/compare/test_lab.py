# SPDX-License-Identifier: BSD-3-Clause
"""rpma-compare on kernel RDMA and a device DAX: native flush is among the methods."""

import json
import os

import pytest
from conftest import ROOT, Tool
from test_run import results

DEVDAX = os.environ.get("RPMA_TEST_DEVDAX")
METHODS = {"apm-native", "apm-read", "gpspm-poll", "gpspm-event"}
PLAN = f"""
[run]
rounds = 1
runtime = 2s
ramp = 50ms
memories = devdax
methods = {', '.join(sorted(METHODS))}
[latency-seq]
values = 4k
"""


@pytest.mark.skipif(not DEVDAX, reason="needs a device DAX and kernel RDMA, as the lab has them")
def test_every_method_is_measured_on_device_dax(tmp_path):
    tool = Tool(tmp_path)
    tool.fio = ROOT / "tools/rpma-fio"
    try:
        tool.run("run", "--plan", tool.plan(PLAN), "--output", "out", "--no-report", "--devdax", DEVDAX,
                 limit=500)
    finally:
        tool.close()
    run = json.loads((tmp_path / "out/run.json").read_text())
    assert run["unavailable"] == []
    assert run["said"]["apm-native.devdax"] == "native, persistent"
    found = results(tmp_path / "out")
    assert {r["method"] for r in found} == METHODS
    assert all(r["status"] == "done" and r["figures"]["write"]["p50"] > 0 for r in found)
