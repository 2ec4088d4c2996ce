# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of rpma-compare share: the program, a fio that stands in, a small plan."""

import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/rpma-compare"
FAKE_FIO = Path(__file__).resolve().parent / "fake-fio"
PORTS = 600  # that a run may use, from its first one on
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True

SMALL = """
[run]
rounds = 2
runtime = 100ms
ramp = 0
memories = dram
[latency-seq]
values = 4k
[iodepth]
values = 1, 16
"""


def is_free(port):
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports():
    """The first of so many ports that nobody uses now, below those the system hands out itself."""
    for _ in range(100):
        first = random.randrange(10000, 32000 - PORTS)
        if all(map(is_free, range(first, first + PORTS))):
            return first
    raise AssertionError(f"no {PORTS} ports in a row are free")


class Tool:
    """rpma-compare in a folder of its own, with the fio that stands in."""

    fio = FAKE_FIO

    def __init__(self, folder):
        self.folder = folder
        self.port = free_ports()
        self.started = []

    def plan(self, text=SMALL, name="plan.ini"):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def start(self, *words, stderr=subprocess.PIPE, **environment):
        command = [sys.executable, str(TOOL), *map(str, words)]
        if words[0] in ("run", "serve"):
            command += ["--fio", str(self.fio), "--port", str(self.port)]
        process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=stderr, text=True,
                                   env={**os.environ, **environment})
        self.started.append(process)
        return process

    def run(self, *words, status=0, limit=120, **environment):
        process = self.start(*words, **environment)
        out, messages = process.communicate(timeout=limit)
        assert process.returncode == status, messages
        return out, messages

    def close(self):
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            for stream in (process.stdout, process.stderr):
                if stream and not stream.closed:
                    stream.close()


@pytest.fixture
def tool(tmp_path):
    tool = Tool(tmp_path)
    yield tool
    tool.close()


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A run that went well: (its folder, what it wrote to stdout, what to stderr)."""
    tool = Tool(tmp_path_factory.mktemp("finished"))
    out, messages = tool.run("run", "--plan", tool.plan(), "--output", "out", FAKE_FIO_SLOW="0.2")
    tool.close()
    return tool.folder / "out", out, messages


def processes_of(folder):
    """Command lines of processes that have to do with a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode(errors="replace").rstrip("\0").split("\0")
        except OSError:
            continue
        if any(str(folder) in word for word in words) and int(entry.parent.name) != os.getpid():
            found.append((int(entry.parent.name), words))
    return found
