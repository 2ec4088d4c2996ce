#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions that the plugin takes for one I/O, on the software RNIC, by callgrind.

A job of some I/Os and one of more are counted; the difference is free of what happens once.  What
the plugin does to look for completions is told apart, since how often it finds none is chance: a
poll that found some counts as part of the I/Os, one that found none is an empty poll.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from floor_ratio import JOB, READY, Failed, free_port, server  # noqa: E402

BLOCK = 4096
FEW, MANY = 2048, 8192  # I/Os
LIMIT = 120  # seconds
POLL = "rpma_cq_get_wc"  # in another object than its caller: no compiler inlines it
FOUND = "handle_completions"  # called by a poll that found completions
POLLING = (POLL, "client_reap", "wait_until_done", "client_progress", "client_poll", "look",
           "link_next_event", "link_now_ms", "rpma_conn_get_event_fd")


class Profile:
    """Of one callgrind dump: self cost of the plugin's functions, and how often they were called."""

    def __init__(self, dump):
        self.cost, self.calls = Counter(), Counter()
        ours = skip_next = False
        function = callee = ""
        for line in dump.splitlines():
            if line.startswith("ob="):
                ours = "librpma" in line
            elif line.startswith("fn="):
                function = line[3:].split("'")[0]
            elif line.startswith("cfn="):
                callee = line[4:].split("'")[0]
            elif line.startswith("calls="):
                self.calls[callee] += int(line[6:].split()[0])
                skip_next = True  # the next line is what the callee cost
            elif re.match(r"[0-9+*-]", line):
                if ours and not skip_next:
                    self.cost[function] += int(line.split()[1])
                skip_next = False


def profile(build, method, depth, count, *options):
    """Of a client of so many I/Os, with options that the others have not."""
    engine = "gpspm" if method == "gpspm" else "apm"
    env = {**os.environ, "LD_LIBRARY_PATH": str((build / "engines").resolve()),
           "LD_PRELOAD": str((build / "softrnic/libsoftrnic.so").resolve())}
    fio = os.environ.get("FIO", "fio")
    addr = "127.0.0.1"
    common = [f"--serverip={addr}", f"--port={free_port(addr)}", f"--size={count * BLOCK}"]
    with tempfile.TemporaryDirectory() as folder, \
            server([fio, "--name=server", f"--ioengine=librpma_{engine}_server", "--thread",
                    *common, "--filename=malloc", f"--iodepth={depth}"], env, READY["fio"]):
        out = Path(folder) / "out"
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no",
             f"--callgrind-out-file={out}", fio, "--name=client",
             f"--ioengine=librpma_{engine}_client", *JOB, *common, "--rw=write", "--sync=1",
             f"--blocksize={BLOCK}", f"--iodepth={depth}",
             *(["--flush_mode=read"] if engine == "apm" else []), *options],
            cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
        if run.returncode:
            raise Failed(f"callgrind of fio failed:\n{run.stderr}")
        return Profile(out.read_text())


def measure(build, method, depth):
    """(instructions per I/O, empty polls per I/O, instructions per poll)"""
    few, many = profile(build, method, depth, FEW), profile(build, method, depth, MANY)
    found = many.calls[FOUND] - few.calls[FOUND]
    if many.cost["client_queue"] <= few.cost["client_queue"] or found < 1:
        raise Failed("the profile does not show the plugin's functions: built without symbols?")
    per_io = sum(many.cost.values()) - sum(few.cost.values())
    per_io -= sum(many.cost[name] - few.cost[name] for name in POLLING)
    # how often they found nothing differs between two runs of any length
    polls = many.calls[POLL]
    per_poll = sum(many.cost[name] for name in POLLING) / polls
    count = MANY - FEW
    return (per_io + found * per_poll) / count, (polls - many.calls[FOUND]) / MANY, per_poll


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path(os.environ.get("BUILD", "build")))
    parser.add_argument("--depths", default="1,16,128,1024", help="iodepths, by comma")
    args = parser.parse_args()
    print("the plugin's instructions (4 KiB writes, a flush each)")
    print(f"{'method':<10}{'iodepth':>8}{'per I/O':>10}{'empty polls per I/O':>21}"
          f"{'per empty poll':>16}")
    for method in ("read", "gpspm"):
        for depth in map(int, args.depths.split(",")):
            per_io, empty, per_poll = measure(args.build, method, depth)
            print(f"{method:<10}{depth:>8}{per_io:>10.0f}{empty:>21.1f}{per_poll:>16.0f}",
                  flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failed:
        sys.exit(f"engine_cost: {failed}")
