# SPDX-License-Identifier: BSD-3-Clause
"""What tests/run counts, and when it lets a test try a second time."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent / "run"
FAILS_ONCE = """
from pathlib import Path
def test_fails_once():
    flag = Path(__file__).with_suffix(".ran")
    ran, _ = flag.exists(), flag.touch()
    {say}
    assert ran, "it stood still"
"""


@pytest.fixture(name="run")
def fixture_run(tmp_path):
    """Runs a file of tests, or a program, made of text; gives the run, last line taken apart."""
    def run(text, suffix=".py", limit=60):
        item = tmp_path / f"test_item{suffix}"
        item.write_text(text)
        item.chmod(0o755)
        done = subprocess.run([sys.executable, RUN, "--out", tmp_path / "out", "--limit", str(limit), item],
                              capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path)
        return done.returncode, done.stdout.splitlines()[-1], done.stdout
    return run


def test_what_passes_at_the_second_attempt_is_counted_named_and_shown(run):
    status, last, out = run(FAILS_ONCE.format(say="") + "def test_good(): pass\n")
    assert (status, last) == (0, "2 passed, 0 failed, 1 of the passed only at the second attempt")
    assert "passed only at the second attempt: test_fails_once" in out and "it stood still" in out


def test_what_fails_twice_has_failed(run):
    status, last, out = run(FAILS_ONCE.format(say="") + "def test_bad(): assert False, 'wrong'\n")
    assert (status, last) == (1, "1 passed, 1 failed, 1 of the passed only at the second attempt")
    assert "wrong" in out


@pytest.mark.parametrize("finding", ("==12== Invalid read of size 8", "x.c:3:1: runtime error: shift",
                                     "==12==ERROR: AddressSanitizer: heap-use-after-free",
                                     "WARNING: ThreadSanitizer: data race (pid=12)",
                                     "server hangs: no end within 90.0 s"))
def test_finding_that_is_true_however_seldom_it_comes_has_no_second_attempt(run, finding):
    status, last, _ = run(FAILS_ONCE.format(say=f"print({finding!r})"))
    assert (status, last) == (1, "0 passed, 1 failed")


def test_many_failures_have_no_second_attempt(run):
    each = "".join(FAILS_ONCE.format(say="").replace("fails_once", f"fails_once_{n}").replace(".ran", f".{n}")
                   for n in range(11))
    status, last, _ = run(each)
    assert (status, last) == (1, "0 passed, 11 failed")


CMOCKA = """#!/bin/sh
test -e "$0.ran" && failure= || failure='<failure><![CDATA[it stood still]]></failure>'
touch "$0.ran"
echo "<testsuites><testsuite name='g'><testcase name='t'>$failure</testcase></testsuite></testsuites>" \\
    >"$(echo "$CMOCKA_XML_FILE" | sed s/%g/g/)"
"""


def test_program_passes_at_its_second_attempt(run):
    status, last, out = run(CMOCKA + "[ -z \"$failure\" ]\n", suffix="")
    assert (status, last) == (0, "1 passed, 0 failed, 1 of the passed only at the second attempt")
    assert "it stood still" in out


@pytest.mark.parametrize("ending", ("kill -SEGV $$", "exec sleep 100"))
def test_crash_or_time_out_of_a_program_has_no_second_attempt(run, ending):
    status, last, _ = run(CMOCKA + ending, suffix="", limit=2)
    assert (status, last) == (1, "0 passed, 1 failed")


def test_bad_exit_status_is_a_failure_though_no_test_failed(run):
    for _ in range(2):  # at the first attempt of the second run, no test fails
        status, last, _ = run(CMOCKA + "exit 3", suffix="")
        assert status == 1 and " 1 failed" in last


def test_nothing_run_is_a_failure(run):
    status, last, _ = run("")
    assert (status, last) == (1, "0 passed, 1 failed")
