# SPDX-License-Identifier: BSD-3-Clause
"""The serve command: servers for every client of a plan, until it is interrupted.

Nothing but the engines' own connections reaches this side.  Load on the CPUs is asked for by one:
a server for one client stands on a port of its own, and that it ended is the request.
"""

import time
from pathlib import Path

from . import CompareError, children, jobs, machine, store, units
from .methods import SERVERS, bell_port, last_port, state_port
from .progress import Progress
from .servers import Servers

STEP = 0.05
SAVE_EVERY = 10
LOAD_LIMIT = 3600  # seconds until load ends though nobody asked for that


class Bells:
    """How a client on another host asks for load on the CPUs here, by connections alone.

    Two one-shot servers: a client on the first asks for load, one on the second for its end.  A
    third stands on one of two ports while there is load, on the other while there is none, so that
    the client can wait until what it asked for is so."""

    def __init__(self, fio, target, folder):
        self.fio, self.target, self.folder = fio, target, Path(folder)
        self._rings = {}
        self._state = None

    def start(self):
        self.show(False)
        for loaded in (True, False):
            self._hang(loaded)

    def _door(self, name, port, clients):
        job = self.folder / f"{name}.fio"
        job.write_text(jobs.door(self.target, port, clients), encoding="utf-8")
        with open(job.with_suffix(".txt"), "ab") as messages:
            return children.start([self.fio, f"--output={job.with_suffix('.out')}", job], messages)

    def _hang(self, loaded):
        self._rings[loaded] = self._door(f"bell-{'on' if loaded else 'off'}",
                                         bell_port(self.target.port, loaded), 1)

    def show(self, loaded):
        if self._state:
            children.stop(self._state)
        self._state = self._door(f"state-{'loaded' if loaded else 'idle'}",
                                 state_port(self.target.port, loaded), 0)

    def rung(self):
        """True: load is asked for.  False: its end.  None: nothing."""
        for loaded, process in self._rings.items():
            status = process.poll()
            if status is not None:
                self._hang(loaded)
                return loaded if status == 0 else None
        return None

    def stop(self):
        for process in [*self._rings.values(), *([self._state] if self._state else [])]:
            children.stop(process)


class Log:
    """CPU time of the servers over time, for the client's report to be joined with."""

    def __init__(self, path, sampler, about):
        self.path, self.sampler, self.about = path, sampler, about
        self._saved = time.monotonic()

    def save(self, force=False):
        if force or time.monotonic() - self._saved > SAVE_EVERY:
            samples = {name: thinned(list(s)) for name, s in self.sampler.samples.items()}
            store.write_json(self.path, {"format": store.FORMAT, **self.about, "samples": samples})
            self._saved = time.monotonic()


def thinned(samples):
    """Leaves out samples between two of the same CPU time: an idle server costs no room."""
    return [[round(s[0], 3), round(s[1], 3)] for i, s in enumerate(samples)
            if i in (0, len(samples) - 1)
            or not samples[i - 1][1] == s[1] == samples[i + 1][1]]


def serve(fio, plan, target, places, folder, interrupt):
    folder = Path(folder).resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CompareError(f"{folder}: {error.strerror}") from None
    say = Progress(0, 0).note
    with children.CpuSampler(0.1) as sampler, \
            Servers(fio, plan, target, places, folder, sampler) as servers:
        servers.start()
        for memory, why in servers.absent.items():
            say(f"{memory} left out: {why}")
        if not servers.memories():
            raise CompareError("no memory to serve")
        bells = Bells(fio, target, folder) if plan.loads else None
        log = Log(folder / "serve.json", sampler, {
            "machine": machine.facts(fio, target.address), "address": target.address,
            "memory": {m: machine.memory_facts(m, places[m]) for m in servers.memories()}})
        try:
            if bells:
                bells.start()
            say(f"serving {', '.join(servers.memories())} at {target.address}, ports {target.port} "
                f"to {last_port(target.port)}; end with Ctrl-C")
            _watch(servers, bells, log, say, interrupt)
        finally:
            if bells:
                bells.stop()
            log.save(force=True)
            say(f"CPU time of the servers is in {log.path}")


def _watch(servers, bells, log, say, interrupt):
    load_ends = None
    while True:
        time.sleep(STEP)
        interrupt.check()
        for memory in servers.memories():
            for key in SERVERS:
                _keep_up(servers, key, memory, say)
        asked = bells.rung() if bells else None
        if load_ends and time.monotonic() > load_ends:
            asked = False
        if asked is not None:
            servers.set_load(asked)
            bells.show(asked)
            load_ends = time.monotonic() + LOAD_LIMIT if asked else None
            say("load on the CPUs: " + (f"on (at most {units.duration(LOAD_LIMIT)})" if asked
                                        else "off"))
        log.save()


def _keep_up(servers, key, memory, say):
    why = servers.why_down(key, memory)
    if not why:
        return
    if not servers.revive(key, memory):
        raise CompareError(f"{key} on {memory} ends again and again; {why}")
    say(f"{key} on {memory}: {why}; started again")
