# SPDX-License-Identifier: BSD-3-Clause
"""The unit tests once more: built by clang, and with sanitizers.

Each variant has a build of its own below $BUILD/variants; `make check` itself has run them as the
default build has them.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

BUILD = os.environ.get("BUILD", "build")
CLANG = "CC=clang"
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}


def make(target, *arguments):
    """Makes target; gives the line that counts the tests."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    command = ["make", "--no-print-directory", f"-j{os.cpu_count()}", target, *arguments]
    result = subprocess.run(command, env=environment | SANITIZERS, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, timeout=800, check=False)
    tail = "\n".join(result.stdout.splitlines()[-100:])
    assert result.returncode == 0, f"{' '.join(command)}\n{tail}"
    counted = re.search(r"^\d+ passed, 0 failed.*$", result.stdout, re.MULTILINE)
    assert counted, tail
    return counted.group()


@pytest.fixture(name="show")
def fixture_show(request):
    """Adds a line to what tests/run shows of this file."""
    def show(counted):
        with open(os.environ.get("TEST_TABLE", os.devnull), "a", encoding="utf-8") as table:
            table.write(f"  {request.node.name[len('test_'):].replace('_', ' ')}: {counted}\n")
    return show


def variant(name):
    return f"BUILD={Path(BUILD) / 'variants' / name}"


def test_built_by_clang(show):
    show(make("check-progs", CLANG, variant("clang")))


def test_with_address_and_undefined_behaviour_sanitizers(show):
    show(make("check-progs", "SAN=address,undefined", "OPTIMIZE=-O1", variant("asan")))


def test_threads_with_thread_sanitizer(show):
    show(make("check-threaded", "SAN=thread", "OPTIMIZE=-O1", variant("tsan")))
