#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the latency of a durable write with what perftest measures of its parts.

A 4 KiB write with a read-based flush is a write and an 8-byte read: at iodepth 1 it should take
about ib_write_lat 4096 + ib_read_lat 8.  All three are measured in turn, several rounds, on the same
device; what counts is the ratio of the medians.  Meant for a kernel device (the lab, a real NIC).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from floor_ratio import LIMIT, READY, TOP, Failed, free_port, server  # noqa: E402


def perftest(program, size, addr, iterations):
    """The average that perftest prints, in microseconds."""
    port = free_port("0.0.0.0")
    words = [program, "-s", str(size), "-n", str(iterations), "-F", "-p", str(port)]
    listener = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + LIMIT
        while not any(f":{port:04X} " in line and " 0A " in line
                      for line in Path("/proc/net/tcp").read_text().splitlines()):
            if listener.poll() is not None or time.monotonic() > end:
                raise Failed(f"{program} does not listen")
            time.sleep(0.01)
        client = subprocess.run([*words, addr], capture_output=True, text=True, timeout=LIMIT,
                                check=False)
    finally:
        listener.terminate()
        listener.wait(LIMIT)
    for line in client.stdout.splitlines():
        fields = line.split()
        if len(fields) >= 7 and fields[0] == str(size):
            return float(fields[5])
    raise Failed(f"{program}: {client.stdout}{client.stderr}")


def engine(addr, port, mode, seconds):
    """Mean latency of 4 KiB writes, each with its flush, in microseconds."""
    client = subprocess.run(
        [str(TOP / "tools/rpma-fio"), "--name=client", "--ioengine=librpma_apm_client", "--thread",
         f"--serverip={addr}", f"--port={port}", "--rw=write", "--bs=4k", "--sync=1",
         "--iodepth=1", "--time_based", f"--runtime={seconds * 1000:.0f}ms",
         f"--ramp_time={seconds * 250:.0f}ms",
         f"--flush_mode={mode}", "--output-format=json"],
        capture_output=True, text=True, timeout=LIMIT, check=False)
    if client.returncode:
        raise Failed(f"engine: {client.stderr.strip()}")
    return json.loads(client.stdout)["jobs"][0]["write"]["lat_ns"]["mean"] / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--addr", default=os.environ.get("RPMA_TEST_ADDR"))
    parser.add_argument("--memory", default=os.environ.get("RPMA_TEST_DEVDAX", "malloc"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--modes", default="read,native")
    args = parser.parse_args()
    if not args.addr:
        parser.error("--addr: the address of an RDMA device of this machine")
    modes = args.modes.split(",")
    seen = {name: [] for name in ("ib_write_lat 4096", "ib_read_lat 8", *modes)}
    port = free_port(args.addr)
    with server([str(TOP / "tools/rpma-fio"), "--name=server", "--ioengine=librpma_apm_server",
                 "--thread", f"--serverip={args.addr}", f"--port={port}", "--size=64m",
                 f"--filename={args.memory}", "--direct_write_to_pmem=1", "--clients=0"],
                {**os.environ}, READY["fio"]):
        for number in range(args.rounds):
            seen["ib_write_lat 4096"].append(perftest("ib_write_lat", 4096, args.addr, 2000))
            seen["ib_read_lat 8"].append(perftest("ib_read_lat", 8, args.addr, 2000))
            for mode in modes:
                seen[mode].append(engine(args.addr, port, mode, args.seconds))
            print(f"round {number + 1}: " + ", ".join(f"{k} {v[-1]:.1f} us"
                                                      for k, v in seen.items()), flush=True)
    median = {name: statistics.median(values) for name, values in seen.items()}
    parts = median["ib_write_lat 4096"] + median["ib_read_lat 8"]
    for mode in modes:
        print(f"write + {mode} flush: {median[mode]:.1f} us, perftest's parts: {parts:.1f} us, "
              f"ratio {median[mode] / parts:.2f}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failed:
        sys.exit(f"latency_ratio: {failed}")
