# SPDX-License-Identifier: BSD-3-Clause
"""The server's side of a run: one fio server for each memory and kind, and load on the CPUs."""

import os
import stat
from pathlib import Path

from . import CompareError, children, fioresult, jobs
from .methods import MEMORIES, SERVERS

RESTARTS = 3  # of one server in one run


def check_places(devdax, fsdax):
    """{memory: place} of what was given, each looked at."""
    places = {"dram": "malloc"}
    if devdax:
        try:
            is_device = stat.S_ISCHR(os.stat(devdax).st_mode)
        except OSError as error:
            raise CompareError(f"--devdax {devdax}: {error.strerror}") from None
        if not is_device:
            raise CompareError(f"--devdax {devdax}: not a character device (one is /dev/dax0.0)")
        places["devdax"] = devdax
    if fsdax:
        if not (os.path.isdir(fsdax) or os.path.isfile(fsdax)):
            raise CompareError(f"--fsdax {fsdax}: no such folder or file")
        places["fsdax"] = fsdax
    return places


class Servers:
    """Starts, watches, restarts and ends the fio servers of a plan on this machine."""

    def __init__(self, fio, plan, target, places, folder, sampler):
        self.fio, self.plan, self.target = fio, plan, target
        self.places, self.folder, self.sampler = places, Path(folder), sampler
        self.absent = {}  # memory -> why it is left out
        self.restarts = {}
        self._processes = {}
        self._load = None
        self._made = []  # files to remove at the end

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        for memory in self.plan.memories:
            if memory not in self.places:
                self.absent[memory] = f"no {MEMORIES[memory].label} given (--{memory})"
                continue
            for key in SERVERS:
                self._start(key, memory)

    def memories(self):
        return [m for m in self.plan.memories if m in self.places]

    def _place(self, key, memory):
        place = self.places[memory]
        if memory != "fsdax" or not os.path.isdir(place):
            return place
        path = Path(place) / f"rpma-compare.{os.getpid()}.{key}"
        if path not in self._made:
            try:
                with open(path, "wb") as made:
                    self._made.append(path)
                    os.posix_fallocate(made.fileno(), 0, self.plan.size * self.plan.most_threads)
            except OSError as error:
                raise CompareError(f"{path}: {error.strerror}") from None
        return path

    def _start(self, key, memory):
        name = f"{key}.{memory}"
        job = self.folder / f"{name}.fio"
        job.write_text(jobs.server(key, memory, self.plan, self._place(key, memory), self.target),
                       encoding="utf-8")
        self._processes[name] = self._fio(job, name)
        self.sampler.watch(name, self._processes[name].pid)

    def _fio(self, job, name):
        with open(self.folder / f"{name}.txt", "ab") as messages:
            return children.start([self.fio, "--output-format=json",
                                   f"--output={self.folder / (name + '.json')}", job], messages)

    def messages(self, key, memory):
        path = self.folder / f"{key}.{memory}.txt"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def why_down(self, key, memory):
        """None while a server runs, else how it ended, in words."""
        status = self._processes[f"{key}.{memory}"].poll()
        if status is None:
            return None
        how = children.how_it_ended(status)
        if status < 0:
            return f"the server was {how}"
        return f"the server ended: {fioresult.reason(self.messages(key, memory), how)}"

    def revive(self, key, memory):
        """Starts a server that ended once more; False when it did so too often."""
        name = f"{key}.{memory}"
        self.sampler.forget(name)
        if self.restarts.get(name, 0) >= RESTARTS:
            return False
        self.restarts[name] = self.restarts.get(name, 0) + 1
        self._start(key, memory)
        return True

    def set_load(self, on):
        if on and not self._load:
            job = self.folder / "load.fio"
            job.write_text(jobs.load(len(os.sched_getaffinity(0))), encoding="utf-8")
            self._load = self._fio(job, "load")
        elif not on and self._load:
            children.stop(self._load)
            self._load = None

    def stop(self):
        for number in (children.signal.SIGINT,):
            for process in self._processes.values():
                if process.poll() is None:
                    children.signal_group(process, number)
        for name, process in self._processes.items():
            self.sampler.forget(name)
            children.stop(process)
        self._processes.clear()
        self.set_load(False)
        for path in self._made:
            path.unlink(missing_ok=True)
        self._made.clear()
