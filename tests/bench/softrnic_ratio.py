#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures the software RNIC against what TCP gives on this machine.

Both sides of each line run in turn, several rounds; what counts is the ratio of their medians.
Latencies are medians of their run, in microseconds; bandwidths are in Gbit/s.
"""

import argparse
import contextlib
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
LIMIT = 120  # seconds that any one step may take
IDLE_SECONDS = 10
TRIES = 5


class Failed(Exception):
    """One line that says what could not be measured, and why."""


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def listens(port):
    tables = [path.read_text().splitlines()[1:]
              for path in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")) if path.exists()]
    return any(fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port
               for lines in tables for fields in map(str.split, lines))


@contextlib.contextmanager
def server(command, env, port):
    """A server process, from the moment it listens; ended with the block."""
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + LIMIT
            while not listens(port):
                if process.poll() is not None or time.monotonic() > end:
                    raise Failed(f"{' '.join(command)}: does not listen on port {port}")
                time.sleep(0.01)
            yield process
        finally:
            process.kill()


class Bench:
    def __init__(self, args):
        self.build = Path(args.build).resolve()
        self.seconds = args.seconds
        self.plain = {**os.environ, "UCX_TLS": "tcp"}
        self.soft = {**os.environ, "LD_PRELOAD": str(self.build / "softrnic/libsoftrnic.so")}
        self.engines = {**os.environ, "RPMA_RNIC": "soft", "BUILD": str(self.build)}

    def pair(self, serve, ask, env, pattern):
        """Runs both with PORT replaced; the pattern's first group in what the client printed."""
        for _ in range(TRIES):
            port = free_port()
            words = [word.replace("PORT", str(port)) for word in serve]
            with server(words, env, port):
                client = subprocess.run([word.replace("PORT", str(port)) for word in ask], env=env,
                                        capture_output=True, text=True, timeout=LIMIT, check=False)
            found = re.search(pattern, client.stdout)
            if found:
                return float(found[1])
            # perftest's server listens anew for its second connection: too quick a client fails
            if "RDMA_CM_EVENT_REJECTED" not in client.stderr:
                break
        raise Failed(f"{' '.join(ask)}: {(client.stderr or client.stdout).strip()[-300:]}")

    def perftest(self, program, size, count, column, *options):
        command = [program, "-R", "-F", "-p", "PORT", "-s", str(size), "-n", str(count), *options]
        pattern = rf"(?m)^ {size} +\d+ +" + r"[\d.]+ +" * column + r"([\d.]+)"
        return self.pair(command, [*command, "127.0.0.1"], self.soft, pattern)

    def read_latency(self):
        return self.perftest("ib_read_lat", 8, 5000, 2)

    def write_bandwidth(self):
        return self.perftest("ib_write_bw", 65536, 20000, 1, "--report_gbits")

    # As many messages for both; -N, since of up to 20,000 a queue pair perftest times each one.
    def one_connection(self):
        return self.perftest("ib_write_bw", 4096, 320000, 1, "--report_gbits", "-N")

    def many_connections(self):
        return self.perftest("ib_write_bw", 4096, 10000, 1, "--report_gbits", "-N", "-q", "32")

    def tcp_ping_pong(self):
        common = ["-i", "127.0.0.1", "-p", "PORT", "--tcp", "--nonblocked"]
        return self.pair(["sockperf", "server", *common],
                         ["sockperf", "ping-pong", *common, "-m", "14", "--full-rtt",
                          "-t", str(self.seconds)],
                         self.plain, r"percentile 50\.000 = +([\d.]+)")

    # The software RNIC does without pacing within a host; so shall iperf3, whatever the system does.
    def iperf(self):
        return self.pair(["iperf3", "-s", "-1", "-p", "PORT"],
                         ["iperf3", "-C", "cubic", "-c", "127.0.0.1", "-p", "PORT", "-l", "64K", "-J",
                          "-t", str(self.seconds)], self.plain,
                         r'(?s)"sum_received".*?"bits_per_second":\s*([\d.e+]+)') / 1e9

    def ucx_put(self):
        return self.pair(["ucx_perftest", "-p", "PORT"],
                         ["ucx_perftest", "127.0.0.1", "-p", "PORT", "-t", "ucp_put_lat",
                          "-s", "4096", "-n", "5000", "-w", "500"], self.plain, r"Final: +\d+ +([\d.]+)")

    def write_and_flush(self):
        def fio(side, *options):
            return [str(TOP / "tools/rpma-fio"), f"--name={side}", f"--ioengine=librpma_apm_{side}",
                    "--thread", "--serverip=127.0.0.1", "--port=PORT", "--size=64m",
                    "--output-format=json", *options]

        return self.pair(fio("server", "--filename=malloc"),
                         fio("client", "--rw=write", "--bs=4k", "--sync=1", "--time_based",
                             f"--runtime={self.seconds}s", "--ramp_time=200ms",
                             "--lat_percentiles=1"),
                         self.engines, r'(?s)"write" :.*?"50\.000000" : (\d+)') / 1000

    def idle_cpu(self):
        """Seconds of CPU, of the side that takes more, while a connection is idle."""
        peer, port = str(self.build / "tests/system/peer"), free_port()
        with server([peer, "127.0.0.1", str(port), "listen", "get", "accept=16,65536", "wait"],
                    self.soft, port) as serving, \
                subprocess.Popen([peer, "127.0.0.1", str(port), "connect", "wait"], env=self.soft,
                                 stdout=subprocess.PIPE, text=True) as client:
            try:
                if not client.stdout.readline().startswith("connected"):
                    raise Failed("peer: no connection")
                before = [cpu_seconds(p.pid) for p in (serving, client)]
                time.sleep(IDLE_SECONDS)
                return max(cpu_seconds(p.pid) - b for p, b in zip((serving, client), before))
            finally:
                client.kill()


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def lines_of(bench):
    """(what, measured, against what, measured, bound, whether it is an upper one)"""
    return [
        ("8-byte read, round trip", bench.read_latency,
         "TCP ping-pong, polling", bench.tcp_ping_pong, 1.25, True),
        ("64 KiB write bandwidth", bench.write_bandwidth, "iperf3", bench.iperf, 0.6, False),
        ("4 KiB write + flush", bench.write_and_flush,
         "UCX put over tcp", bench.ucx_put, 2.0, True),
        ("4 KiB writes, 32 QPs", bench.many_connections,
         "one QP", bench.one_connection, 1.0, False),
    ]


def row(what, value, than, other, ratio, bound, upper):
    good = ratio <= bound if upper else ratio >= bound
    sign = "<=" if upper else ">="
    print(f"{what:<25}{value:>9.2f}  {than:<24}{other:>9.2f}{ratio:>7.2f}  {sign} {bound:<5}"
          f"{'pass' if good else 'FAIL'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.environ.get("BUILD", str(TOP / "build")))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=1, help="per measurement that takes a time")
    parser.add_argument("--only", type=re.compile, default="", help="lines that match this")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bound is not met")
    args = parser.parse_args()
    bench = Bench(args)
    load = os.getloadavg()[0]
    print(f"{'software RNIC':<34}  {'compared with':<33}  ratio  bound", flush=True)
    good = True
    for what, measure, than, measure_other, bound, upper in lines_of(bench):
        if not re.search(args.only, what):
            continue
        values, others = [], []
        for _ in range(args.rounds):
            values.append(measure())
            others.append(measure_other())
        value, other = statistics.median(values), statistics.median(others)
        good &= row(what, value, than, other, value / other, bound, upper)
    if re.search(args.only, "idle"):
        used = bench.idle_cpu()
        good &= row("idle connection, CPU", used, "seconds waited", IDLE_SECONDS,
                    used / IDLE_SECONDS, 0.01, True)
    if load > 0.5:
        print(f"The machine was not idle (load {load:.1f}): the figures tell little.")
    return 1 if args.strict and not good else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failed:
        sys.exit(f"softrnic_ratio: {failed}")
