#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures the engines against the floor: the same work with nothing but verbs.

Engine and floor run in turn, several rounds, on the same device and memory; what counts is the
ratio of their medians, since a machine that is slow today is slow for both.  A round in which other
programs took the CPUs is measured again.  What is measured begins after a fixed time of the same
work: the memory's first touch and the connection's growing window take some tenths of a second.

Both ring as many doorbells for an I/O: one, or with --batch N one for up to N I/Os, those whose
completions one poll has brought; both take up to 32 completions by one poll.  Neither changes the
data between two writes or keeps latencies.

What fio itself costs for an I/O is measured with its engine `null`, that does nothing; it is for
what the floor does not do at all: choosing offsets, accounting, asking whether the time is over.  The
floor is measured once more with that time spent before each I/O and with two more fio processes on
the machine that do next to nothing ("beside fio"): what any engine could reach.  fio's threads wake up a
hundred times a second, which takes from the work where its polling and a device in software need
every CPU; and a device that is left alone for fio's time may fall asleep.
"""

import argparse
import contextlib
import json
import os
import re
import resource
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "system"))
import rig  # noqa: E402

READY = {"floor": "floor: ready", "fio": "listening"}
LIMIT = 60  # seconds that any one step may take
OTHERS = 0.05  # CPUs that other programs may take in a round
TRIES = 3  # rounds measured at most, for each that is wanted

POLLED = 32  # completions that the floor takes by one poll

# No latencies, no bandwidth log, the same bytes each time: as the floor.
JOB = ("--thread", "--gtod_reduce=1", "--scramble_buffers=0")


class Failed(Exception):
    """One line that says what could not be measured, and why."""


def free_port(addr):
    with socket.socket() as sock:
        sock.bind((addr, 0))
        return sock.getsockname()[1]


@contextlib.contextmanager
def server(command, env, ready):
    """A server process, from the moment it says it is ready; ended with the block."""
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.PIPE, text=True)
        said = []
        try:
            for line in process.stderr:
                said.append(line)
                if ready in line:
                    break
            else:
                raise Failed(f"{shlex.join(command)}: {''.join(said).strip() or 'no word'}")
            yield process
        finally:
            process.terminate()
            process.stderr.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                # fio prints from its signal handler: it may be waiting for its own malloc for ever
                process.kill()
                process.wait(LIMIT)


def user_and_system(times):
    return times.ru_utime + times.ru_stime


def kernel_threads():
    """Ticks that the kernel's threads have taken: they are the RDMA device, if it is in software."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if fields[1] == "2":  # a child of kthreadd
            ticks += int(fields[11]) + int(fields[12])
    return ticks


class Others:
    """How much of the CPUs others than this program's children and its device took, in the with block."""

    @staticmethod
    def now():
        with open("/proc/stat") as stat:
            user, nice, system = map(int, stat.readline().split()[1:4])
        ours = (user_and_system(resource.getrusage(resource.RUSAGE_CHILDREN)) +
                user_and_system(resource.getrusage(resource.RUSAGE_SELF)))
        others = (user + nice + system - kernel_threads()) / os.sysconf("SC_CLK_TCK")
        return others, ours, time.monotonic()

    def __enter__(self):
        self.start = self.now()
        return self

    def __exit__(self, *_):
        every, ours, took = (b - a for a, b in zip(self.start, self.now()))
        self.cpus = (every - ours) / took


class Bench:
    def __init__(self, args):
        self.args = args
        self.floor = Path(args.build) / "bench/floor"
        self.env = {**os.environ}
        self.floor_env = {**os.environ}
        rnic = args.rnic or ("hw" if rig.has_rdma_device() else "soft")
        self.env["RPMA_RNIC"] = rnic
        if rnic == "soft":
            self.floor_env["LD_PRELOAD"] = str(Path(args.build) / "softrnic/libsoftrnic.so")

    def floor_iops(self, method, depth, reads, think_ns=0):
        args = self.args
        port = free_port(args.addr)
        words = ["--method", method, "--memory", args.memory, "--size", str(args.size),
                 "--block", str(args.block), "--depth", str(depth), "--batch", str(args.batch)]
        with server([str(self.floor), "server", args.addr, str(port), *words], self.floor_env,
                    READY["floor"]):
            client = subprocess.run(
                [str(self.floor), "client", args.addr, str(port), *words,
                 "--seconds", str(args.seconds), "--warm-up", str(args.warm_up),
                 "--think", str(round(think_ns)),
                 *(["--reads"] if reads else [])],
                env=self.floor_env, capture_output=True, text=True, timeout=LIMIT, check=False)
        if client.returncode:
            raise Failed(f"floor: {client.stderr.strip()}")
        return float(client.stdout)

    def job(self, depth, reads):
        """The job's options that are not the engine's."""
        args = self.args
        batch = min(args.batch, depth)
        return ["--name=client", *JOB, "--output-format=json",
                f"--rw={'read' if reads else 'write'}", f"--blocksize={args.block}",
                f"--iodepth={depth}", f"--iodepth_batch={batch}",
                "--iodepth_batch_complete_min=1",
                f"--iodepth_batch_complete_max={min(POLLED, depth)}",
                "--time_based", f"--runtime={args.seconds * 1000:.0f}ms",
                f"--ramp_time={args.warm_up * 1000:.0f}ms"]

    @staticmethod
    def job_iops(command, env, reads):
        client = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT,
                                check=False)
        if client.returncode:
            raise Failed(f"fio: {client.stderr.strip()}")
        return json.loads(client.stdout)["jobs"][0]["read" if reads else "write"]["iops"]

    def engine_iops(self, method, depth, reads):
        args = self.args
        engine = "gpspm" if method == "gpspm" else "apm"
        common = [f"--serverip={args.addr}", f"--port={free_port(args.addr)}"]
        fio = [str(TOP / "tools/rpma-fio")]
        direct = "0" if args.memory == "malloc" else "1"
        with server(fio + ["--name=server", f"--ioengine=librpma_{engine}_server", "--thread",
                           *common, f"--size={args.size}", f"--filename={args.memory}",
                           f"--iodepth={depth}", f"--direct_write_to_pmem={direct}"],
                    self.env, READY["fio"]):
            return self.job_iops(
                fio + [f"--ioengine=librpma_{engine}_client", *self.job(depth, reads), *common,
                       "--sync=1",
                       *([f"--flush_mode={method}"] if method in ("read", "native") else [])],
                self.env, reads)

    @contextlib.contextmanager
    def idle_fio(self):
        """A fio process with a job that sleeps, as are in the engine's run a client's and a server's."""
        command = [rig.FIO, "--name=idle", "--ioengine=null", "--thread",
                   "--rw=write", "--size=1m", "--rate_iops=1", "--time_based", f"--runtime={2 * LIMIT}"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + LIMIT
            # its main thread, its helper and the job
            while len(os.listdir(f"/proc/{process.pid}/task")) < 3:
                if process.poll() is not None or time.monotonic() > until:
                    raise Failed(f"{shlex.join(command)}: it has not started its job")
                time.sleep(0.01)
            yield
        finally:
            process.kill()
            process.wait(LIMIT)

    def floor_beside_fio(self, method, depth, reads, think_ns):
        with self.idle_fio(), self.idle_fio():
            return self.floor_iops(method, depth, reads, think_ns)

    def fio_iops(self, depth, reads):
        """What fio achieves with an engine that does nothing."""
        return self.job_iops([rig.FIO, "--ioengine=null", f"--size={self.args.size}",
                              *self.job(depth, reads)], None, reads)

    def point(self, method, depth, reads):
        """Medians of interleaved rounds: floor, engine, fio alone, floor beside fio; and how many were
        quiet.
        """
        quiet, noisy = [], []
        for _ in range(TRIES * self.args.rounds):
            with Others() as others:
                fio = self.fio_iops(depth, reads)
                seen = (self.floor_iops(method, depth, reads),
                        self.engine_iops(method, depth, reads), fio,
                        self.floor_beside_fio(method, depth, reads, 1e9 / fio))
            (quiet if others.cpus < OTHERS else noisy).append(seen)
            if len(quiet) == self.args.rounds:
                break
        rounds = quiet if len(quiet) == self.args.rounds else quiet + noisy
        return [statistics.median(column) for column in zip(*rounds)], len(quiet)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--addr", default=os.environ.get("RPMA_TEST_ADDR", "127.0.0.1"))
    parser.add_argument("--rnic", choices=["hw", "soft"], help="which RDMA device (default: look)")
    parser.add_argument("--build", default=os.environ.get("BUILD", str(TOP / "build")))
    parser.add_argument("--memory", default="malloc", help="malloc, a device DAX or a file")
    parser.add_argument("--size", type=int, default=64 << 20)
    parser.add_argument("--block", type=int, default=4096)
    parser.add_argument("--depths", default="1,16,128", help="iodepths, by comma")
    parser.add_argument("--batch", type=int, default=1, help="I/Os for one doorbell, at most")
    parser.add_argument("--methods", default="read,gpspm", help="read, native, gpspm, by comma")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="per measurement")
    parser.add_argument("--warm-up", type=float, default=0.5, help="seconds before each measurement")
    parser.add_argument("--least", type=float, help="fail when a ratio is below this")
    args = parser.parse_args()
    if not all(re.fullmatch(r"\d+", d) for d in args.depths.split(",")):
        parser.error(f"--depths: '{args.depths}' is not a list of numbers")
    return args


def main():
    args = arguments()
    bench = Bench(args)
    work = [(m, False) for m in args.methods.split(",")] + [("read", True)]
    print(f"job: {' '.join(JOB)}, doorbell for up to {args.batch} I/O; floor: no clock and no "
          "accounting per I/O")
    print(f"{'work':<22}{'iodepth':>8}{'verbs IOPS':>12}{'engine IOPS':>13}{'ratio':>7}"
          f"{'gap ns/IO':>11}{'fio alone':>11}{'beside fio':>13}{'ratio':>7}")
    worst, all_quiet = None, True
    for method, reads in work:
        name = "RDMA read" if reads else f"write + {method}" + (" flush" * (method != "gpspm"))
        for depth in map(int, args.depths.split(",")):
            (floor, engine, fio, beside), quiet = bench.point(method, depth, reads)
            ratio = engine / floor
            worst = ratio if worst is None else min(worst, ratio)
            noisy = quiet < args.rounds
            all_quiet = all_quiet and not noisy
            print(f"{name:<22}{depth:>8}{floor:>12.0f}{engine:>13.0f}{ratio:>7.2f}"
                  f"{1e9 / engine - 1e9 / floor:>11.0f}{1e9 / fio:>11.0f}"
                  f"{beside:>13.0f}{engine / beside:>7.2f}{'  noisy' * noisy}", flush=True)
    if not all_quiet:
        print("noisy: other programs took the CPUs in most rounds; the figures are worth little")
    print(f"lowest ratio: {worst:.2f}")
    return 1 if args.least and worst < args.least else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failed:
        sys.exit(f"floor_ratio: {failed}")
