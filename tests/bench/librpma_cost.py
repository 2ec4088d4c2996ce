#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions a call takes inside librpma: ours and Debian's, verbs mocked, by callgrind.

usage: tests/bench/librpma_cost.py [--build DIR]
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CALLS = 800
OPERATIONS = ("write", "read", "flush", "atomic_write", "send", "recv", "get_wc",
              "get_wc_of_empty_cq", "batched_write")
ONLY_OURS = ("batched_write",)


def debians_librpma():
    """The folder of the librpma.so.0 that Debian's package librpma0 installed."""
    listing = subprocess.run(["dpkg", "-L", "librpma0"], capture_output=True, text=True)
    for line in listing.stdout.splitlines():
        if line.endswith("/librpma.so.0"):
            return Path(line).parent
    raise FileNotFoundError("Debian's librpma is not installed: apt-get install librpma0")


def instructions_in_library(dump):
    """Self cost of everything in librpma.so.0, of one callgrind dump."""
    total = 0
    inside = skip_next = False
    for line in dump.splitlines():
        if line.startswith("ob="):
            inside = "librpma.so" in line
        elif line.startswith("calls="):
            skip_next = True  # the next line is what the callee cost
        elif re.match(r"[0-9+*-]", line):
            if inside and not skip_next:
                total += int(line.split()[1])
            skip_next = False
    return total


def measure(build, library, mode):
    """{operation: instructions per call} with the librpma.so.0 in folder library."""
    program = build / "bench" / "librpma_cost"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        env = {**os.environ, "LD_LIBRARY_PATH": str(library)}
        run = subprocess.run(["valgrind", "--tool=callgrind", "--compress-strings=no",
                              "--compress-pos=no", "--dump-after=cost_*",
                              f"--callgrind-out-file={out}", str(program), str(CALLS), mode],
                             env=env, capture_output=True, text=True, timeout=120)
        if run.returncode != 0:
            raise RuntimeError(f"callgrind of {program} failed:\n{run.stderr}")
        dumps = {}
        for number in range(1, 2 * len(OPERATIONS) + 1):
            text = out.with_name(f"out.{number}").read_text()
            name = re.search(r"^desc: Trigger: --dump-after=cost_(\w+)", text, re.M).group(1)
            dumps[name] = text  # the second one of a name is the one with CALLS calls
        if f"ob={library}/librpma.so" not in dumps["write"]:
            raise RuntimeError(f"{program} did not use the librpma in {library}")
    return {name: instructions_in_library(dumps[name]) / CALLS for name in OPERATIONS}


def compare(build, mode):
    """[(operation, ours, Debian's or None)]"""
    ours = measure(build, (build / "librpma").resolve(), mode)
    theirs = measure(build, debians_librpma(), mode)
    return [(name, ours[name], None if name in ONLY_OURS else theirs[name])
            for name in OPERATIONS]


def table(rows, mode):
    lines = [f"instructions per call in librpma, flush and atomic write by {mode}",
             f"{'operation':<20}{'ours':>8}{'Debian':>8}"]
    for name, ours, theirs in rows:
        lines.append(f"{name:<20}{ours:>8.1f}{'' if theirs is None else f'{theirs:8.1f}'}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=Path("build"))
    args = parser.parse_args()
    for mode in ("read", "native"):
        print(table(compare(args.build, mode), mode))


if __name__ == "__main__":
    sys.exit(main())
