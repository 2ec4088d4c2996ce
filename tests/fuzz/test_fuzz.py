# SPDX-License-Identifier: BSD-3-Clause
"""Throws at librpma and the engines what a hostile peer could send: more than 10^6 inputs, the same in every run."""

import os
import re
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("BUILD", "build")) / "variants" / "fuzz"
# longest input: what a descriptor and its use need; several events with private data
RUNS = {"fuzz_mr_remote": (1_000_000, 64), "fuzz_peer_cfg": (100_000, 8), "fuzz_private_data": (100_000, 600),
        "fuzz_engines_wire": (1_000_000, 64)}


def run(command, limit, **variables):
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CC", "SAN")}
    result = subprocess.run(command, env=environment | variables, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, timeout=limit, check=False, errors="replace")
    tail = "\n".join(result.stdout.splitlines()[-80:])
    assert result.returncode == 0, f"{' '.join(map(str, command))}\n{tail}"
    return result.stdout


@pytest.fixture(name="programs", scope="module")
def fixture_programs():
    """Where the fuzzers are: built by clang with libFuzzer, ASan and UBSan."""
    run(["make", "--no-print-directory", f"-j{os.cpu_count()}", "fuzz-progs", "CC=clang", "OPTIMIZE=-O1",
         "SAN=fuzzer-no-link,address,undefined", f"BUILD={BUILD}"], 400)
    return BUILD / "tests" / "fuzz"


@pytest.mark.parametrize("fuzzer", RUNS)
def test_hostile_input_does_no_harm(programs, fuzzer):
    runs, longest = RUNS[fuzzer]
    output = run([programs / fuzzer, f"-runs={runs}", f"-max_len={longest}", "-seed=1", "-print_final_stats=1",
                  f"-artifact_prefix={programs}/"], 400,
                 ASAN_OPTIONS="detect_leaks=1", UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1")
    done = re.search(r"stat::number_of_executed_units: *(\d+)", output)
    assert done and int(done.group(1)) >= runs
    with open(os.environ.get("TEST_TABLE", os.devnull), "a", encoding="utf-8") as table:
        table.write(f"  {fuzzer}: {done.group(1)} inputs\n")
