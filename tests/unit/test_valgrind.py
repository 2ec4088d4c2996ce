# SPDX-License-Identifier: BSD-3-Clause
"""The unit tests under valgrind: memcheck for all, helgrind for those that start threads."""

import os
import subprocess
from pathlib import Path

import pytest

PROGRAMS = sorted(path for path in (Path(os.environ.get("BUILD", "build")) / "tests" / "unit").glob("*")
                  if path.is_file() and not path.suffix and os.access(path, os.X_OK))
# What the software RNIC's threads share is atomic or ordered by epoll, and helgrind sees neither:
# the thread sanitizer does (test_variants.py).
THREADED = [path for path in PROGRAMS
            if path.name.endswith("_threads") and not path.name.startswith("softrnic_")]
HELGRIND = ["--tool=helgrind", "--suppressions=tests/unit/helgrind.supp"]


def valgrind(options, program):
    # fair: a thread that polls must not starve the one it waits for
    # slower: so many polls in a millisecond make a poller for the software RNIC
    env = {**os.environ, "TEST_SLOWER": "10"}
    result = subprocess.run(["valgrind", "-q", "--fair-sched=yes", "--error-exitcode=99", *options, program], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False, env=env)
    tail = "\n".join(result.stdout.splitlines()[-100:])
    assert result.returncode == 0, f"{program} ended with {result.returncode}\n{tail}"


def test_there_are_programs_of_both_kinds():
    assert THREADED and len(PROGRAMS) > len(THREADED)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_memcheck_finds_nothing(program):
    # librpma keeps nothing; the software RNIC keeps its device and its thread to the end
    kinds = "all" if program.name.startswith("librpma_") else "definite,indirect"
    valgrind(["--leak-check=full", "--suppressions=tests/unit/memcheck.supp",
              f"--show-leak-kinds={kinds}", f"--errors-for-leak-kinds={kinds}"], program)


@pytest.mark.parametrize("program", THREADED, ids=lambda path: path.name)
def test_helgrind_finds_nothing(program):
    valgrind(HELGRIND, program)
