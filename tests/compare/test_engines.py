# SPDX-License-Identifier: BSD-3-Clause
"""rpma-compare with the real engines: on the software RNIC here, on kernel RDMA in the lab."""

import json
import os
import signal
from pathlib import Path

import pytest
from conftest import ROOT, Tool, processes_of
from test_run import results, wait_for

BUILD = Path(os.environ.get("BUILD", ROOT / "build"))
ADDRESS = os.environ.get("RPMA_TEST_ADDR", "127.0.0.1")
PLAN = """
[run]
rounds = 2
runtime = 300ms
ramp = 20ms
memories = dram
[latency-seq]
values = 4k
[threads]
values = 2
[mix-rand]
values = 4
[load]
values = 0, 1
"""
POINTS = 5  # of one method in one round
METHODS = ("apm-read", "gpspm-poll", "gpspm-event", "no-flush")


def two_methods():
    return PLAN.replace("[run]", "[run]\nmethods = apm-read, gpspm-event")



class RealTool(Tool):
    fio = ROOT / "tools/rpma-fio"


@pytest.fixture
def real(tmp_path):
    assert (BUILD / "engines/librpma_fio.so").exists(), "build first (make tests)"
    tool = RealTool(tmp_path)
    yield tool
    tool.close()


def check_finished(folder, *methods):
    """Every method that is there measured every point, with I/O in it and no failure."""
    found = results(folder)
    assert [r["reason"] for r in found if r["status"] == "failed"] == []
    unavailable = json.loads((folder / "run.json").read_text())["unavailable"]
    assert all(u["method"] == "apm-native" and u["kind"] == "unsupported" for u in unavailable)
    for method in methods or METHODS:
        mine = [r for r in found if r["method"] == method]
        assert len(mine) == 2 * POINTS
        assert all(r["figures"]["iops"] > 0 for r in mine)
    native = [r for r in found if r["method"] == "apm-native"]
    assert len(native) == (0 if unavailable or methods else 2 * POINTS)
    return found


def test_every_method_is_measured_with_both_sides_on_this_machine(real):
    real.run("run", "--plan", real.plan(PLAN), "--output", "out", "--no-report")
    found = check_finished(real.folder / "out")
    assert any(r["figures"].get("server_cores") for r in found)
    said = json.loads((real.folder / "out/run.json").read_text())["said"]
    assert "read-based" in said["apm-read.dram"]
    assert not processes_of(real.folder)


def test_the_same_by_serve_and_run_with_load_asked_for_over_the_wire(real):
    plan = real.plan(two_methods())
    serve = real.start("serve", ADDRESS, "--plan", plan, "--output", "served")
    while "serving" not in (line := serve.stderr.readline()):
        assert line, "serve ended"
    real.run("run", ADDRESS, "--plan", plan, "--output", "out", "--no-report")
    check_finished(real.folder / "out", "apm-read", "gpspm-event")
    serve.send_signal(signal.SIGINT)
    _, messages = serve.communicate(timeout=30)
    assert serve.returncode == 0
    said = [line.rpartition(": ")[2].split()[0] for line in messages.splitlines()
            if "load on the CPUs" in line]
    assert said == ["on", "off", "on", "off"]
    assert not processes_of(real.folder)


def test_a_server_killed_in_the_middle_marks_its_points_and_the_rest_goes_on(real):
    plan = real.plan(PLAN.replace("runtime = 300ms", "runtime = 1s").replace(
        "rounds = 2", "rounds = 1\nmethods = apm-read, gpspm-poll"))
    process = real.start("run", "--plan", plan, "--output", "out", "--no-report")
    folder = real.folder / "out"

    def of(part, name):
        return [pid for pid, words in processes_of(folder)
                if f"/{part}/" in words[-1] and name in words[-1]]
    wait_for(lambda: of("points", "threads.2.gpspm-poll"), 60)
    os.kill(of("servers", "/gpspm-poll.dram.fio")[0], signal.SIGKILL)
    process.communicate(timeout=120)
    assert process.returncode == 1
    found = results(folder)
    failed = [r for r in found if r["status"] == "failed"]
    assert failed and {r["method"] for r in failed} == {"gpspm-poll"}
    assert all("the server was killed by SIGKILL" in r["reason"] for r in failed)
    assert any(r["status"] == "done" and r["method"] == "gpspm-poll"
               and r["started"] > failed[-1]["started"] for r in found)
    assert len([r for r in found if r["method"] == "apm-read"]) == POINTS


def test_ctrl_c_keeps_what_is_done_and_resume_goes_on(real):
    process = real.start("run", "--plan", real.plan(two_methods()), "--output", "out", "--no-report")
    folder = real.folder / "out"
    wait_for(lambda: len(results(folder)) >= 3, 60)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130 and not processes_of(folder)
    before = len([r for r in results(folder) if r["status"] == "done"])
    assert 3 <= before
    real.run("run", "--resume", "out", "--no-report")
    check_finished(folder, "apm-read", "gpspm-event")
