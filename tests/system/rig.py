# SPDX-License-Identifier: BSD-3-Clause
"""Runs fio jobs and peers for one test, waits for events, and leaves nothing behind."""

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = (ROOT / os.environ.get("BUILD", "build")).resolve()
FIO = os.environ.get("FIO", "fio")
ADDR = os.environ.get("RPMA_TEST_ADDR", "127.0.0.1")
DEVDAX = os.environ.get("RPMA_TEST_DEVDAX")
FSDAX = os.environ.get("RPMA_TEST_FSDAX")  # a folder on a file system mounted with -o dax
LIMIT = float(os.environ.get("RPMA_TEST_LIMIT", "90"))  # seconds, for anything that must end
SOON = 10.0  # seconds an error may take
METHODS = ("apm", "gpspm")
SERVER_READY = "listening on"
ENV_MARK = "RPMA_TEST_MARK"


def has_rdma_device():
    try:
        return bool(os.listdir("/sys/class/infiniband"))
    except FileNotFoundError:
        return False


SOFT = os.environ.get("RPMA_RNIC", "hw" if has_rdma_device() else "soft") == "soft"


def registers_fsdax():
    """A device pins no file of a DAX file system; it needs on-demand paging for them."""
    if not FSDAX:
        return False
    shown = subprocess.run(["ibv_devinfo", "-v"], capture_output=True, text=True, check=False,
                           timeout=LIMIT).stdout
    return SOFT or bool(re.search(r"general_odp_caps:\s+ODP_SUPPORT", shown))


MEMORIES = ("dram",) + ("devdax",) * bool(DEVDAX) + ("fsdax",) * registers_fsdax()
SOFTRNIC = BUILD / "softrnic" / "libsoftrnic.so"
ENGINES = BUILD / "engines"
PLUGIN = ENGINES / "librpma_fio.so"
PEER = BUILD / "tests" / "system" / "peer"


def preload():
    """The software RNIC; before it the sanitizers' run-time it was built with, if any."""
    needed = subprocess.run(["ldd", str(SOFTRNIC)], capture_output=True, text=True, check=False)
    runtime = re.findall(r"lib(?:asan|tsan|ubsan)\S* => (\S+)", needed.stdout)
    return ":".join([*runtime, str(SOFTRNIC)])


def engine(method, side):
    return f"librpma_{method}_{side}"


def bytes_of(size):
    """A size as fio's job files have it: 4k, 16m, or a plain number."""
    units = {"k": 10, "m": 20, "g": 30}
    text = str(size)
    return int(text[:-1]) << units[text[-1]] if text[-1] in units else int(text)


def text_of(options):
    """The lines of a job-file section; an option without a value is given as True."""
    lines = []
    for key, value in options.items():
        if value is None or value is False:
            continue
        lines.append(key if value is True else f"{key}={value}")
    return "\n".join(lines) + "\n"


class Stream:
    """What a process wrote to one pipe so far, to be waited on."""

    def __init__(self, pipe):
        self._data = []
        self._closed = False
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._reader.start()

    def _read(self, pipe):
        with pipe:
            while chunk := os.read(pipe.fileno(), 65536):
                with self._changed:
                    self._data.append(chunk)
                    self._changed.notify_all()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def text(self):
        with self._changed:
            return b"".join(self._data).decode(errors="replace")

    def wait_for(self, pattern, limit):
        """The match of a regular expression, or None if the stream ended or time ran out."""
        end = time.monotonic() + limit
        with self._changed:
            while True:
                found = re.search(pattern, b"".join(self._data).decode(errors="replace"))
                left = end - time.monotonic()
                if found or self._closed or left <= 0:
                    return found
                self._changed.wait(left)

    def finish(self, limit):
        self._reader.join(limit)
        assert not self._reader.is_alive(), "a pipe is still open: something was left running"


class Process:
    """A program under test, in a process group of its own."""

    def __init__(self, name, command, env, cwd):
        self.name = name
        self.command = [str(part) for part in command]
        self.started = time.monotonic()
        self.ended = None
        self._popen = subprocess.Popen(
            self.command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)
        self.pid = self._popen.pid
        self.out = Stream(self._popen.stdout)
        self.err = Stream(self._popen.stderr)

    @property
    def running(self):
        return self._popen.poll() is None

    @property
    def rc(self):
        return self._popen.returncode

    def wait(self, limit=None):
        """Waits for the end and returns the exit status."""
        limit = limit or LIMIT
        try:
            self._popen.wait(limit)
        except subprocess.TimeoutExpired:
            late = "has not ended" if limit < LIMIT else "hangs: no end"  # tests/run knows the latter
            raise AssertionError(f"{self.name} {late} within {limit} s\n{self}") from None
        self.ended = self.ended or time.monotonic()
        self.out.finish(10)
        self.err.finish(10)
        return self.rc

    def ok(self, limit=None):
        assert self.wait(limit) == 0, f"{self.name} failed\n{self}"
        return self

    def said(self, pattern, limit=None):
        """Waits until it says so on stderr."""
        found = self.err.wait_for(pattern, limit or LIMIT)
        assert found, f"{self.name} did not say {pattern!r}\n{self}"
        return found

    def printed(self, pattern, limit=None):
        found = self.out.wait_for(pattern, limit or LIMIT)
        assert found, f"{self.name} did not print {pattern!r}\n{self}"
        return found

    def signal(self, number):
        self._popen.send_signal(number)

    def kill(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._popen.wait()

    @property
    def report(self):
        """fio's report: stdout has to be JSON and nothing else, but for fio's line on a failure."""
        text = self.out.text
        if self.rc:
            text = re.sub(r"\A(fio: .*\n|\n)*", "", text)
        try:
            return json.loads(text)
        except ValueError as error:
            raise AssertionError(f"stdout is not clean JSON: {error}\n{self}") from None

    @property
    def jobs(self):
        return self.report["jobs"]

    @property
    def job(self):
        assert len(self.jobs) == 1, self
        return self.jobs[0]

    def error_lines(self):
        """What it said on stderr, without blank lines."""
        return [line for line in self.err.text.splitlines() if line.strip()]

    def _out_in_short(self):
        """A report of thousands of lines as one line a job."""
        before, brace, rest = self.out.text.partition("{\n")
        try:
            jobs = json.loads(brace + rest)["jobs"]
        except (ValueError, KeyError, TypeError):
            return self.out.text[-3000:]
        return before + "".join(f"(report) {job['jobname']}: error {job['error']}, read "
                       f"{job['read']['total_ios']}, written {job['write']['total_ios']}\n"
                       for job in jobs)

    def __repr__(self):
        return (f"$ {' '.join(self.command)}\n[{self.name}: exit status {self.rc}]\n"
                f"--- stdout\n{self._out_in_short()}\n--- stderr\n{self.err.text[-3000:]}")


class Rig:
    """What one test (or one set of runs) has started, and where."""

    def __init__(self, folder):
        self.folder = folder
        self.mark = secrets.token_hex(8)
        self.processes = []
        self.ports = []
        self.expected_files = set()
        self.segments_before = set(_segments())
        self.env = {**os.environ, ENV_MARK: self.mark,
                    "LD_LIBRARY_PATH": f"{ENGINES}:{BUILD / 'librpma'}"}
        if SOFT:
            self.env["LD_PRELOAD"] = preload()

    # -- ports

    def port(self, count=1):
        """The first of so many consecutive free ports."""
        first = _free_ports(count)
        self.ports += range(first, first + count)
        return first

    # -- processes

    def preloaded(self, name, **env):
        """An environment with one of preload/, for what it reads from there."""
        libraries = [self.env.get("LD_PRELOAD"), str(BUILD / "tests" / "system" / f"{name}.so")]
        return {"LD_PRELOAD": ":".join(filter(None, libraries)), **env}

    def start(self, name, command, env=None):
        process = Process(name, command, {**self.env, **(env or {})}, self.folder)
        self.processes.append(process)
        return process

    def fio(self, name, sections, *args, env=None):
        """Starts fio on a job file made of [(section, options)...]."""
        path = self.write(f"{name}-{len(self.processes)}.fio",
                          "".join(f"[{title}]\n{text_of(options)}" for title, options in sections))
        return self.start(name, [FIO, "--output-format=json", *args, path], env)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        self.expected_files.add(name)
        return path

    def server(self, method, port, name="server", env=None, **options):
        options = {"ioengine": engine(method, "server"), "serverip": ADDR, "port": port,
                   "thread": True, "filename": "malloc", "size": "16m", **options}
        if method == "gpspm":
            options.setdefault("iodepth", 128)
        return self.fio(name, [(name, options)], env=env)

    def client(self, method, port, name="client", env=None, **options):
        return self.fio(name, [(name, self.client_options(method, port, **options))], env=env)

    @staticmethod
    def client_options(method, port, **options):
        return {"ioengine": engine(method, "client"), "serverip": ADDR, "port": port,
                "thread": True, **options}

    def run(self, method, server=None, **options):
        """One server and one client that both have to end well; returns both."""
        port = self.port(int(options.get("numjobs", 1)))
        serving = self.server(method, port, numjobs=options.get("numjobs", 1), **(server or {}))
        client = self.client(method, port, **options).ok()
        serving.ok()
        return serving, client

    def peer(self, port, *steps, name="peer", addr=ADDR):
        return self.start(name, [PEER, addr, port, *steps])

    # -- the end

    def close(self):
        """Ends what still runs; a list of what should not have been there."""
        faults = []
        for process in self.processes:
            if process.running:
                faults.append(f"still running: {process}")
                process.kill()
        leftover = _marked(self.mark)
        for pid, what in leftover:
            faults.append(f"left behind: process {pid} ({what})")
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        pids = {process.pid for process in self.processes} | {pid for pid, _ in leftover}
        faults += [f"left behind: shared memory segment {segment} of process {pid}"
                   for segment, pid in _segments().items()
                   if pid in pids and segment not in self.segments_before]
        if SOFT:
            faults += [f"port {port} is still listened on" for port in self.ports
                       if listening(port)]
        else:
            faults += _rdma_objects(pids)
        return faults

    def stray_files(self):
        """Files in the folder that nobody asked for; fio leaves one of its own after verifying."""
        return sorted(path.name for path in self.folder.iterdir()
                      if path.name not in self.expected_files
                      and not path.name.endswith("-verify.state"))


def wait_until(condition, what, limit=None):
    """For the few events that come as no line of text."""
    end = time.monotonic() + (limit or LIMIT)
    while not condition():
        assert time.monotonic() < end, f"not within {limit or LIMIT} s: {what}"
        time.sleep(0.02)


# -- what the machine shows

_next_port = None


def _port_range():
    low, high = os.environ.get("RPMA_TEST_PORTS", "20000-27999").split("-")
    return int(low), int(high)


def _bindable(port):
    with socket.socket() as probe:
        try:
            probe.bind((ADDR, port))
        except OSError:
            return False
    return True


def _free_ports(count):
    global _next_port
    low, high = _port_range()
    if _next_port is None:
        _next_port = low + os.getpid() % (high - low)
    for _ in range(high - low):
        first = _next_port
        _next_port = first + count if first + 2 * count <= high else low
        if first + count <= high and all(map(_bindable, range(first, first + count))):
            return first
    raise AssertionError(f"no {count} free ports between {low} and {high}")


def listening(port):
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except FileNotFoundError:
            continue
        for line in lines:
            fields = line.split()
            if int(fields[1].rsplit(":", 1)[1], 16) == port and fields[3] == "0A":
                return True
    return False


def _marked(mark):
    """(pid, command) of every process that has the mark in its environment."""
    found = []
    needle = f"{ENV_MARK}={mark}".encode()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            if needle in Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                command = Path("/proc", entry, "cmdline").read_bytes()
                found.append((int(entry), command.replace(b"\0", b" ").decode(errors="replace")))
        except OSError:
            continue  # it is gone, or not ours
    return found


def _segments():
    """SysV segments, which outlive their makers, and the process that made each."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {fields[1]: int(fields[4]) for fields in map(str.split, lines)}


def _rdma_objects(pids):
    """What the kernel still holds for the processes of a test."""
    faults = []
    for kind in ("cm_id", "qp", "mr", "cq", "pd"):
        shown = subprocess.run(["rdma", "-j", "resource", "show", kind], capture_output=True,
                               text=True, check=False, timeout=LIMIT).stdout
        if not shown.strip():
            continue
        for item in json.loads(shown):
            if item.get("pid") in pids:
                faults.append(f"left behind: RDMA {kind} of process {item['pid']}")
    return faults
