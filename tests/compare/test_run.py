# SPDX-License-Identifier: BSD-3-Clause
"""Whole runs, with the fio that stands in for the real one."""

import csv
import json
import os
import pty
import signal
import time
from pathlib import Path

import pytest
from conftest import SMALL, processes_of

METHODS = ("apm-native", "apm-read", "gpspm-poll", "gpspm-event", "no-flush")
POINTS = 3 * len(METHODS)  # in one round


def wait_for(condition, limit=30):
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def points_done(folder):
    return len(list(folder.glob("points/*/point.json")))


def results(folder):
    return [json.loads(p.read_text()) for p in folder.glob("points/*/point.json")]


def test_a_run_ends_with_the_path_of_its_report(finished):
    _, out, messages = finished
    page = Path(out.strip())
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert f"{2 * POINTS}/{2 * POINTS} " in messages
    assert "\r" not in messages  # no terminal, no bar


def test_every_point_keeps_its_job_file_and_fio_s_whole_json(finished):
    folders = list((finished[0] / "points").iterdir())
    assert len(folders) == 2 * POINTS
    for folder in folders:
        document = (folder / "fio.json").read_text()
        assert json.loads(document[document.index("{\n"):])["jobs"][0]["write"]["total_ios"]
        assert "ioengine=librpma" in (folder / "job.fio").read_text()


def test_rounds_are_interleaved(finished):
    order = sorted(results(finished[0]), key=lambda r: r["started"])
    assert [r["round"] for r in order] == [1] * POINTS + [2] * POINTS
    assert [r["method"] for r in order[:len(METHODS)]] == list(METHODS)


def test_csv_and_json_hold_the_same_figures(finished):
    with open(finished[0] / "report.csv", newline="") as source:
        rows = list(csv.DictReader(source))
    assert len(rows) == 2 * POINTS and {r["status"] for r in rows} == {"done"}
    cells = json.loads((finished[0] / "report.json").read_text())["cells"]
    cell = next(c for c in cells if (c["experiment"], c["value"], c["method"])
                == ("latency-seq", 4096, "apm-read"))
    values = [float(r["p50_ns"]) for r in rows if (r["experiment"], r["value"], r["method"])
              == ("latency-seq", "4096", "apm-read")]
    assert cell["rounds"] == 2
    assert [cell["p50"]["low"], cell["p50"]["high"]] == sorted(values)


def test_a_failed_point_is_shown_with_its_reason_and_the_rest_goes_on(tool):
    out, messages = tool.run("run", "--plan", tool.plan(), "--output", "out", status=1,
                             FAKE_FIO_FAIL="iodepth.16.gpspm-poll:librpma: the cable is out")
    page = Path(out.strip()).read_text()
    found = results(tool.folder / "out")
    assert len(found) == 2 * POINTS
    assert {r["key"] for r in found if r["status"] == "failed"} == {"iodepth.16.gpspm-poll.dram"}
    assert "librpma: the cable is out" in page and "2 of 30 measurements failed" in page
    assert "failed: librpma: the cable is out" in messages


def test_no_native_flush_is_not_available_rather_than_failed(tool):
    out, messages = tool.run("run", "--plan", tool.plan(), "--output", "out",
                             FAKE_FIO_NO_NATIVE="1")
    page = Path(out.strip()).read_text()
    assert "not available: librpma_apm_client: the device has no native flush" in page
    assert not any(r["method"] == "apm-native" for r in results(tool.folder / "out"))
    assert "measurements failed" not in page


def test_memories_that_are_absent_are_left_out_and_that_is_said(tool):
    plan = tool.plan(SMALL.replace("memories = dram", "memories = dram, devdax, fsdax"))
    out, messages = tool.run("run", "--plan", plan, "--output", "out")
    assert "devdax left out: no device DAX given (--devdax)" in messages
    assert "no file-system DAX given (--fsdax)" in Path(out.strip()).read_text()


def test_fsdax_folders_are_left_as_they_were(tool):
    folder = tool.folder / "pmem"
    folder.mkdir()
    plan = tool.plan(SMALL.replace("memories = dram", "memories = fsdax"))
    tool.run("run", "--plan", plan, "--output", "out", "--fsdax", folder)
    assert not list(folder.iterdir())
    assert {r["memory"] for r in results(tool.folder / "out")} == {"fsdax"}


def test_a_server_killed_in_the_middle_marks_its_points_and_the_rest_goes_on(tool):
    process = tool.start("run", "--plan", tool.plan(), "--output", "out", FAKE_FIO_SLOW="0.3")
    folder = tool.folder / "out"
    wait_for(lambda: points_done(folder) >= 3)

    def current():
        return [words for _, words in processes_of(folder) if "points" in words[-1]
                and "gpspm-poll" in words[-1]]
    wait_for(current)  # a client of the server is at work
    server = [pid for pid, words in processes_of(folder) if words[-1].endswith("gpspm-poll.dram.fio")
              and "servers" in words[-1]]
    os.kill(server[0], signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    failed = [r for r in results(folder) if r["status"] == "failed"]
    assert failed and all("the server was killed by SIGKILL" in r["reason"] for r in failed)
    assert len(failed) <= 2 and len(results(folder)) == 2 * POINTS
    page = Path(out.strip()).read_text()
    assert "the server was killed by SIGKILL" in page and "it was started again" in page


def test_ctrl_c_keeps_what_is_done_and_resume_goes_on(tool):
    process = tool.start("run", "--plan", tool.plan(), "--output", "out", FAKE_FIO_SLOW="0.1")
    folder = tool.folder / "out"
    wait_for(lambda: points_done(folder) >= 5)
    process.send_signal(signal.SIGINT)
    out, messages = process.communicate(timeout=20)
    assert process.returncode == 130
    assert f"run --resume {folder}" in messages
    assert "The run was interrupted" in Path(out.strip()).read_text()
    assert not processes_of(folder)
    kept = {r["key"]: r["started"] for r in results(folder) if r["round"] == 1}
    assert 5 <= len(kept) < POINTS

    out, _ = tool.run("run", "--resume", "out")
    found = results(folder)
    assert len(found) == 2 * POINTS
    again = {r["key"]: r["started"] for r in found if r["round"] == 1}
    assert all(again[key] == started for key, started in kept.items())
    assert "The run was interrupted" not in Path(out.strip()).read_text()


def test_failed_points_are_measured_again_on_resume(tool):
    tool.run("run", "--plan", tool.plan(), "--output", "out", status=1,
             FAKE_FIO_FAIL="iodepth.16:librpma: the cable is out")
    tool.run("run", "--resume", "out")
    assert {r["status"] for r in results(tool.folder / "out")} == {"done"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_child_outlives_the_run(tool, number):
    process = tool.start("run", "--plan", tool.plan(), "--output", "out", FAKE_FIO_SLOW="0.2")
    folder = tool.folder / "out"
    wait_for(lambda: points_done(folder) >= 1)
    process.send_signal(number)
    process.communicate(timeout=20)
    wait_for(lambda: not processes_of(folder), 5)


def test_a_run_does_not_write_over_another(tool):
    (tool.folder / "out").mkdir()
    (tool.folder / "out/run.json").write_text("{}")
    _, messages = tool.run("run", "--plan", tool.plan(), "--output", "out", status=2)
    assert messages == ("rpma-compare: out holds a run already; go on with --resume out, or name "
                        "another folder with --output\n")
    assert (tool.folder / "out/run.json").read_text() == "{}"


def test_servers_that_cannot_start_are_told_with_their_own_words(tool):
    plan = tool.plan(SMALL.replace("memories = dram", "memories = devdax"))
    _, messages = tool.run("run", "--plan", plan, "--output", "out", "--devdax", "/dev/null",
                           status=2)
    assert "/dev/null: not a device DAX" in messages.splitlines()[-1]


@pytest.mark.parametrize("words, said", [
    (("run", "--devdax", "/none"), "--devdax /none: No such file or directory"),
    (("run", "--devdax", "/etc/passwd"), "not a character device"),
    (("run", "--fsdax", "/none"), "--fsdax /none: no such folder or file"),
    (("run", "--quick", "--plan", "x"), "--quick and --plan exclude each other"),
    (("run", "--resume", "none"), "none/run.json: No such file or directory"),
    (("report", "none"), "none/run.json: No such file or directory"),
    (("diff", "none", "none"), "none/run.json: No such file or directory"),
])
def test_what_the_user_got_wrong_is_one_line(tool, words, said):
    _, messages = tool.run(*words, status=2)
    assert said in messages and len(messages.splitlines()) == 1


def test_a_damaged_run_is_one_line(tool):
    (tool.folder / "out").mkdir()
    for text in ("{", "[]", '{"format": 0}'):
        (tool.folder / "out/run.json").write_text(text)
        _, messages = tool.run("report", "out", status=2)
        assert len(messages.splitlines()) == 1


def test_a_terminal_gets_a_bar_with_the_time_left(tool):
    ours, theirs = pty.openpty()
    process = tool.start("run", "--plan", tool.plan(), "--output", "out", stderr=theirs,
                         COLUMNS="100")
    os.close(theirs)
    seen = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(ours)
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert b"\r\x1b[K[####" in seen and b" left  latency-seq 4k" in seen


def test_the_load_on_the_server_s_cpus_is_there_while_it_counts_and_ends(tool):
    plan = tool.plan("[run]\nrounds=1\nruntime=200ms\nramp=0\nmemories=dram\nmethods=gpspm-poll\n"
                     "[load]\n")
    process = tool.start("run", "--plan", plan, "--output", "out", FAKE_FIO_SLOW="1")
    folder = tool.folder / "out"
    wait_for(lambda: any(w[-1].endswith("load.fio") for _, w in processes_of(folder)))
    wait_for(lambda: any("load.1.gpspm-poll" in w[-1] for _, w in processes_of(folder)))
    assert any(w[-1].endswith("load.fio") for _, w in processes_of(folder))
    process.communicate(timeout=30)
    assert process.returncode == 0 and not processes_of(folder)


def test_a_budget_ends_the_rounds_early_and_says_so(tool):
    plan = tool.plan(SMALL.replace("rounds = 2", "rounds = 50\nbudget = 2"))
    out, messages = tool.run("run", "--plan", plan, "--output", "out", FAKE_FIO_SLOW="0.05")
    assert "of 50 rounds, to keep within 0:02" in messages
    assert "of 50 rounds, to keep within 0:02" in Path(out.strip()).read_text()
