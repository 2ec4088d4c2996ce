# SPDX-License-Identifier: BSD-3-Clause
"""Child processes that end with us whatever happens, and what CPU time they use."""

import ctypes
import os
import signal
import subprocess
import threading
import time
from bisect import bisect_right

PR_SET_PDEATHSIG = 1
GRACE = 3  # seconds between asking a child to end and making it
_libc = ctypes.CDLL(None)
_tick = os.sysconf("SC_CLK_TCK")


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(command, stderr):
    """Starts a command in a session of its own, so that Ctrl-C reaches only us."""
    return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True,
                            preexec_fn=_die_with_parent)


def signal_group(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def stop(process):
    """Asks a child to end, then makes it; returns its status."""
    if process.poll() is None:
        signal_group(process, signal.SIGINT)
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            pass
    signal_group(process, signal.SIGKILL)
    return process.wait()


def how_it_ended(status):
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"


def read_stat(pid):
    """(CPU seconds used so far, threads) of a process, or None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / _tick, int(fields[17])


class CpuSampler:
    """Watches CPU time of processes, all threads of each, from a thread of its own."""

    def __init__(self, interval=0.02):
        self.interval = interval
        self.samples = {}  # name -> [(time, cpu seconds, threads)]
        self._pids = {}
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def watch(self, name, pid, fresh=False):
        with self._lock:
            self._pids[name] = pid
            if fresh:
                self.samples[name] = []

    def forget(self, name):
        with self._lock:
            self._pids.pop(name, None)

    def trim(self, before):
        """Drops what no later window can ask for."""
        with self._lock:
            for name, samples in self.samples.items():
                self.samples[name] = [s for s in samples if s[0] >= before]

    def _run(self):
        while not self._end.wait(self.interval):
            with self._lock:
                for name, pid in self._pids.items():
                    stat = read_stat(pid)
                    if stat:
                        self.samples.setdefault(name, []).append((time.time(), *stat))

    def busy_end(self, name):
        """When the process last had all its threads: its I/O ended then."""
        samples = self.samples.get(name) or []
        most = max((s[2] for s in samples), default=0)
        return max((s[0] for s in samples if s[2] == most), default=None)

    def cores(self, name, begin, end):
        return cores(self.samples.get(name) or [], begin, end)


def cores(samples, begin, end):
    """CPUs kept busy on average between two times, from samples (time, cpu seconds, ...)."""
    if len(samples) < 2 or end <= begin or begin < samples[0][0] - 0.1:
        return None
    times = [s[0] for s in samples]

    def at(moment):
        i = bisect_right(times, moment)
        if i == 0 or i == len(times):
            return samples[max(i - 1, 0)][1]
        (t0, c0), (t1, c1) = samples[i - 1][:2], samples[i][:2]
        return c0 + (c1 - c0) * (moment - t0) / (t1 - t0)
    return max(0.0, (at(end) - at(begin)) / (end - begin))
