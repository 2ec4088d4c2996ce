# SPDX-License-Identifier: BSD-3-Clause
"""serve on one side, run on the other: nothing between them but the engines' own connections."""

import json
import os
import signal
import time

from conftest import SMALL, processes_of
from test_run import POINTS, results, wait_for


def started_serve(tool, plan, **environment):
    process = tool.start("serve", "127.0.0.1", "--plan", plan, "--output", "served", **environment)
    line = ""
    while "serving" not in line:
        line = process.stderr.readline()
        assert line, "serve ended"
    return process


def test_run_finds_what_serve_serves(tool):
    plan = tool.plan(SMALL.replace("memories = dram", "memories = dram, devdax"))
    serve = started_serve(tool, plan)
    _, messages = tool.run("run", "127.0.0.1", "--plan", plan, "--output", "out",
                           FAKE_FIO_SLOW="0.2")
    assert "devdax left out: the other side does not serve it" in messages
    assert len(results(tool.folder / "out")) == 2 * POINTS
    serve.send_signal(signal.SIGINT)
    serve.communicate(timeout=20)
    assert serve.returncode == 0 and not processes_of(tool.folder / "served")

    served = tool.folder / "served/serve.json"
    assert set(json.loads(served.read_text())["samples"]) == {
        "apm.dram", "gpspm-poll.dram", "gpspm-event.dram"}
    tool.run("report", "out", "--server", served)
    assert all(r["figures"]["server_cores"] is not None for r in results(tool.folder / "out"))
    assert "<h3>Server</h3>" in (tool.folder / "out/report.html").read_text()


def test_run_waits_for_a_server_that_comes_later_and_no_longer_than_told(tool):
    plan = tool.plan()
    begun = time.monotonic()
    _, messages = tool.run("run", "127.0.0.1", "--plan", plan, "--output", "none", "--wait", "2",
                           status=2)
    assert time.monotonic() - begun < 10
    assert "no server at 127.0.0.1 answered within 2 s" in messages.splitlines()[-1]

    run = tool.start("run", "127.0.0.1", "--plan", plan, "--output", "out")
    while "looking for the servers" not in run.stderr.readline():
        assert run.poll() is None
    started_serve(tool, plan)
    run.communicate(timeout=60)
    assert run.returncode == 0


def test_load_is_asked_for_by_a_connection_and_ends_by_one(tool):
    plan = tool.plan("[run]\nrounds=2\nruntime=200ms\nramp=0\nmemories=dram\nmethods=gpspm-poll\n"
                     "[load]\n")
    serve = started_serve(tool, plan)
    tool.run("run", "127.0.0.1", "--plan", plan, "--output", "out")
    wait_for(lambda: not any(w[-1].endswith("load.fio")
                             for _, w in processes_of(tool.folder / "served")))
    serve.send_signal(signal.SIGINT)
    _, messages = serve.communicate(timeout=20)
    said = [line.rpartition(": ")[2] for line in messages.splitlines() if "load on" in line]
    assert [word.split()[0] for word in said] == ["on", "off", "on", "off"]


def test_load_left_by_a_run_that_broke_off_is_ended_before_the_next_measures(tool):
    plan = tool.plan("[run]\nrounds=1\nruntime=200ms\nramp=0\nmemories=dram\nmethods=gpspm-poll\n"
                     "[load]\n")
    serve = started_serve(tool, plan)

    def loaded():
        return any(w[-1].endswith("load.fio") for _, w in processes_of(tool.folder / "served"))
    broken = tool.start("run", "127.0.0.1", "--plan", plan, "--output", "broken",
                        FAKE_FIO_HANG="load.1.gpspm-poll")
    wait_for(lambda: any("load.1.gpspm-poll" in w[-1]
                         for _, w in processes_of(tool.folder / "broken")))
    broken.kill()
    broken.communicate()
    assert loaded()
    run = tool.start("run", "127.0.0.1", "--plan", plan, "--output", "out", FAKE_FIO_SLOW="0.5")
    wait_for(lambda: any("load.0.gpspm-poll" in w[-1] for _, w in processes_of(tool.folder / "out")))
    assert not loaded()
    run.communicate(timeout=60)
    assert run.returncode == 0 and serve.poll() is None


def test_a_server_that_dies_under_serve_is_started_again(tool):
    plan = tool.plan()
    serve = started_serve(tool, plan)
    pid = next(pid for pid, words in processes_of(tool.folder / "served")
               if words[-1].endswith("/apm.dram.fio"))
    os.kill(pid, signal.SIGKILL)
    line = serve.stderr.readline()
    assert "apm on dram: the server was killed by SIGKILL; started again" in line
    tool.run("run", "127.0.0.1", "--plan", plan, "--output", "out")


def test_a_serve_that_ends_in_the_middle_marks_the_points_after_it(tool):
    plan = tool.plan(SMALL.replace("[run]", "[run]\nmethods = apm-read"))
    serve = started_serve(tool, plan)
    run = tool.start("run", "127.0.0.1", "--plan", plan, "--output", "out", FAKE_FIO_SLOW="0.05")
    wait_for(lambda: len(list((tool.folder / "out").glob("points/*/point.json"))) >= 4)
    serve.send_signal(signal.SIGINT)
    serve.communicate(timeout=20)
    run.communicate(timeout=100)
    assert run.returncode == 1
    found = results(tool.folder / "out")
    failed = [r for r in found if r["status"] == "failed"]
    assert len(found) == 6 and failed
    assert all("no server at 127.0.0.1" in r["reason"] for r in failed)
