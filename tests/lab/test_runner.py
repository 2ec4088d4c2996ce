# SPDX-License-Identifier: BSD-3-Clause
"""Run on the host: what `tests/lab/lab run` promises about output, files and exit status."""

import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

LAB = str(Path(__file__).parent / "lab")


def lab(*options, command=None, env=None, timeout=400):
    return subprocess.run([LAB, "run", *options, "--", "bash", "-c", command], capture_output=True,
                          text=True, timeout=timeout, check=False, env={**os.environ, **(env or {})})


def test_output_files_and_exit_status_come_back_and_stores_reach_the_host_s_file(tmp_path):
    command = """
        echo to stdout; echo to stderr >&2
        echo kept >$RESULTS/note
        printf 'stored in the machine' >$RPMA_TEST_FSDAX/file; sync
        seq 200000
        exit 7"""
    done = lab("--results", str(tmp_path / "results"), "--nvdimm", str(tmp_path / "nvdimm"), command=command)
    assert done.returncode == 7, done.stderr
    assert done.stdout == "to stdout\n" + "".join(f"{n}\n" for n in range(1, 200001))
    assert "to stderr\n" in done.stderr
    assert (tmp_path / "results/note").read_text() == "kept\n"
    assert b"stored in the machine" in (tmp_path / "nvdimm/fsdax.img").read_bytes()


def test_a_command_killed_by_a_signal_gives_128_plus_its_number():
    assert lab(command="kill -SEGV $$").returncode == 128 + signal.SIGSEGV


def test_a_panic_is_told_with_the_console(tmp_path):
    done = lab(command="echo c >/proc/sysrq-trigger; sleep 60")
    assert done.returncode == 243
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("lab: Kernel panic")
    assert "console|" in done.stderr


def test_a_time_out_is_told():
    done = lab("--time-limit", "3", command="echo begun; sleep 1000")
    assert done.returncode == 244
    assert "time-out" in done.stderr.strip().splitlines()[-1]
    assert done.stdout == "begun\n"


def test_a_machine_switched_off_before_the_command_s_end_is_told():
    done = lab(command="echo o >/proc/sysrq-trigger; sleep 60")
    assert done.returncode == 245
    assert "ended before its command" in done.stderr


def test_a_missing_emulator_is_told():
    done = lab(command="true", env={"LAB_QEMU": "no-such-emulator"})
    assert done.returncode == 241
    assert "no-such-emulator" in done.stderr and "not installed" in done.stderr


def test_an_emulator_that_fails_is_told(tmp_path):
    broken = tmp_path / "qemu"
    broken.write_text("#!/bin/sh\necho cannot work >&2\nexit 1\n")
    broken.chmod(0o755)
    done = lab(command="true", env={"LAB_QEMU": str(broken)})
    assert done.returncode == 241
    assert "cannot work" in done.stderr


def test_a_machine_that_does_not_boot_is_told():
    # far too little memory for the kernel's own initramfs and root
    done = lab("--memory", "64", command="true")
    assert done.returncode in (242, 243)


def test_a_shell_answers_on_the_terminal_and_its_exit_status_comes_back():
    process, terminal = pty.fork()
    if process == 0:
        os.execv(LAB, [LAB, "shell"])
    said, asked, limit = b"", False, time.monotonic() + 400
    while time.monotonic() < limit:
        if select.select([terminal], [], [], 1)[0]:
            try:
                said += os.read(terminal, 4096)
            except OSError:  # its other end is gone
                break
        if not asked and b"# " in said:
            os.write(terminal, b"echo $((40 + 2)) answers; rdma link; exit 6\n")
            asked = True
    else:
        os.kill(process, signal.SIGTERM)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.close(terminal)
    text = said.decode(errors="replace")
    assert status == 6, text
    assert "42 answers" in text and "link rxe0/1 state ACTIVE" in text


def ended(processes):
    limit = time.monotonic() + 10
    while any(Path(f"/proc/{process}").exists() for process in processes):
        assert time.monotonic() < limit
        time.sleep(0.05)
    return True


def children_of(process):
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


@pytest.mark.parametrize("number, when", [(signal.SIGTERM, "while it boots"), (signal.SIGINT, "in mid-run")])
def test_ending_the_runner_ends_the_emulator_and_leaves_nothing(number, when, tmp_path):
    runner = subprocess.Popen([LAB, "run", "--", "bash", "-c", "echo begun; sleep 1000"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              env={**os.environ, "TMPDIR": str(tmp_path)}, start_new_session=True)
    try:
        if when == "in mid-run":
            assert runner.stdout.readline() == "begun\n"
        limit = time.monotonic() + 60
        while not list(tmp_path.glob("*/lab/console.log")):
            assert time.monotonic() < limit
            time.sleep(0.05)
        children = children_of(runner)
        assert children
        runner.send_signal(number)
        assert runner.wait(30) == 128 + number
        assert ended(children)
        assert list(tmp_path.iterdir()) == []
    finally:
        runner.kill()
        runner.wait()
        runner.stdout.close()


def test_a_runner_killed_outright_takes_its_emulator_along(tmp_path):
    runner = subprocess.Popen([LAB, "run", "--", "sleep", "1000"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(tmp_path)})
    try:
        limit = time.monotonic() + 60
        while not list(tmp_path.glob("*/lab/console.log")):
            assert time.monotonic() < limit
            time.sleep(0.05)
        children = children_of(runner)
        assert children
    finally:
        runner.kill()
        runner.wait()
    assert ended(children)
