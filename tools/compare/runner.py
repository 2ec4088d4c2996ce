# SPDX-License-Identifier: BSD-3-Clause
"""Measures the points of a plan: in rounds, methods side by side, each point one fio run."""

import subprocess
import time
from dataclasses import dataclass, replace

from . import CompareError, children, fioresult, jobs, store, units
from .methods import ALL_METHODS, MEMORIES, bell_port, state_port
from .progress import Progress

SLACK = 60  # seconds fio may take beyond its times: a loaded, emulated machine is slow to start it
FIRST_TRY = 2000  # milliseconds to reach a server that may not be there at all
SHORT_TRY = 500  # milliseconds to reach a server that was not there last time
STEP = 0.02  # seconds between two looks at fio
GRACE = 3  # seconds for a client whose server is gone to say so itself


@dataclass(frozen=True)
class Target:
    address: str
    port: int
    connect_timeout: int = 8000


class Runner:
    def __init__(self, data, plan, target, fio, sampler, interrupt, servers=None):
        """servers: those of this machine; None when they are another host's."""
        self.interrupt = interrupt
        self.store, self.plan, self.target, self.fio = data, plan, target, fio
        self.sampler, self.servers = sampler, servers
        self.unreachable = set()  # (memory, server) that did not answer last time
        self.served = {}  # memory -> whether the other side serves it
        self.broken = {}  # (memory, server) -> why that one cannot be started
        self.loaded = None
        self.progress = Progress(0, 0)

    # One fio run ------------------------------------------------------------------------------

    def fio_run(self, folder, limit, server=None):
        """Runs folder/job.fio against a (memory, server); returns (its output, why it failed)."""
        with open(folder / "messages.txt", "wb") as messages:
            process = children.start([self.fio, "--output-format=json",
                                      f"--output={folder / 'fio.json'}", folder / "job.fio"],
                                     messages)
            self.sampler.watch("client", process.pid, fresh=True)
            try:
                status, why = self._wait(process, limit, server)
            finally:
                children.stop(process)
                self.sampler.forget("client")
        text = (folder / "messages.txt").read_text(encoding="utf-8", errors="replace")
        output = folder / "fio.json"
        result = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
        if status != 0 and not why:
            why = fioresult.reason(text, f"fio: {children.how_it_ended(status)}")
        return result, why

    def _wait(self, process, limit, server):
        """Waits for fio, not longer than limit, nor much longer than its server lives."""
        ends = time.monotonic() + limit
        gone = False
        while process.poll() is None and time.monotonic() < ends:
            self.interrupt.check()
            if server and not gone and self._down(server):
                gone, ends = True, min(ends, time.monotonic() + GRACE)
            try:
                process.wait(STEP)
            except subprocess.TimeoutExpired:
                pass
        if process.poll() is None:
            return children.stop(process), "no end though its server was gone" if gone \
                else f"no end after {limit:.0f} s"
        return process.returncode, None

    def _down(self, server):
        """Why a (memory, server) of this machine does not run; None when it does, or is not ours."""
        return self.servers.why_down(server[1], server[0]) if self.servers else None

    def limit(self, point):
        return point.ramp + point.runtime + self.target.connect_timeout / 1000 + SLACK

    # What is there at all ---------------------------------------------------------------------

    def available(self, wait):
        """The (method, memory) pairs that can be measured; says and keeps why others cannot."""
        if not self.servers:
            self._await_server(wait)
        usable, missing = [], []
        for method, memory in self.plan.all_series():
            kind, why = self._probe(method, memory)
            if why is None:
                usable.append((method, memory))
                continue
            missing.append({"method": method, "memory": memory, "kind": kind, "reason": why})
            if kind != "absent":
                self.progress.note(f"{ALL_METHODS[method].label} on {memory}: {why}")
        for memory in self.plan.memories:
            absent = [m for m in missing if m["memory"] == memory and m["kind"] == "absent"]
            if absent:
                self.progress.note(f"{memory} left out: {absent[0]['reason']}")
        self.store.run["unavailable"] = missing
        self.store.save()
        if not usable:
            raise CompareError("nothing can be measured: " + missing[0]["reason"])
        return usable

    def _await_server(self, wait):
        self.progress.note(f"looking for the servers at {self.target.address}, port "
                           f"{self.target.port} and up (rpma-compare serve)")
        deadline = time.monotonic() + wait
        while True:
            for memory in self.plan.memories:
                why = self._probe_run("no-flush", memory, SHORT_TRY)
                if why is None:
                    self.served[memory] = True
                    return
            if time.monotonic() > deadline:
                raise CompareError(f"no server at {self.target.address} answered within "
                                   f"{wait:.0f} s; start rpma-compare serve there ({why})")

    def _probe(self, method_key, memory):
        """(kind, why not) of one pair; why not is None when it can be measured."""
        server = (memory, ALL_METHODS[method_key].server)
        if self.servers and memory in self.servers.absent:
            return "absent", self.servers.absent[memory]
        if not self.servers and not self._is_served(memory):
            return "absent", "the other side does not serve it"
        if server in self.broken:
            return "failed", self.broken[server]
        why = self._down(server) or self._probe_run(method_key, memory,
                                                    self.target.connect_timeout)
        if why is None:
            self._keep_said(method_key, memory)
            return None, None
        if self._down(server):
            self.broken[server] = self._down(server)
            return "failed", self.broken[server]
        return "unsupported" if method_key == "apm-native" and "native" in why else "failed", why

    def _keep_said(self, method_key, memory):
        said = fioresult.flush_said((self._probe_folder(method_key, memory) / "messages.txt")
                                    .read_text(encoding="utf-8", errors="replace"))
        if said:
            self.store.run.setdefault("said", {})[f"{method_key}.{memory}"] = said

    def _is_served(self, memory):
        if memory not in self.served:
            self.served[memory] = self._probe_run("no-flush", memory, FIRST_TRY) is None
        return self.served[memory]

    def _probe_folder(self, method_key, memory):
        return self.store.folder / "servers" / f"probe.{method_key}.{memory}"

    def _probe_run(self, method_key, memory, timeout):
        folder = self._probe_folder(method_key, memory)
        folder.mkdir(exist_ok=True)
        (folder / "job.fio").write_text(
            jobs.probe(method_key, memory, replace(self.target, connect_timeout=timeout)),
            encoding="utf-8")
        server = (memory, ALL_METHODS[method_key].server)
        return self.fio_run(folder, timeout / 1000 + SLACK, server)[1]

    # Rounds -----------------------------------------------------------------------------------

    def run(self, wait=30):
        series = self.available(wait)
        points = self.plan.points(series)
        budget = self.plan.budget * len({memory for _, memory in series})
        todo = [(n, p) for n in range(1, self.plan.rounds + 1) for p in points
                if not self.store.is_done(p.key, n)]
        self.progress = Progress(len(todo), self.plan.seconds(points) / self.plan.rounds
                                 * len(todo) / max(1, len(points)))
        started = time.monotonic()
        try:
            for number in range(1, self.plan.rounds + 1):
                batch = [p for n, p in todo if n == number]
                if number > 1 and self._over_budget(budget, started, number, len(batch)):
                    break
                for point in batch:
                    self.interrupt.check()
                    self._measure(point, number)
            self._set_load(False)
        finally:
            self.progress.close()

    def _over_budget(self, budget, started, number, count):
        spent = time.monotonic() - started
        each = spent / max(1, self.progress.done)
        if not budget or spent + each * count <= budget:
            return False
        self.happened(f"The run ended after {number - 1} of {self.plan.rounds} rounds, to keep within "
                      f"{units.duration(budget)}.")
        return True

    def happened(self, text):
        """Something the reader of the report should know."""
        self.progress.note(text)
        self.store.run.setdefault("events", []).append(text)
        self.store.save()

    def _measure(self, point, number):
        what = (f"{point.experiment} {axis_value(self.plan, point)}, "
                f"{ALL_METHODS[point.method].short}, {point.memory}, round {number}")
        self.progress.begin(what)
        begun = time.monotonic()
        entry = {"key": point.key, "round": number, **vars(point), "started": time.time()}
        why = self._load_for(point) or self._server_for(point)
        if why is None:
            figures, why = self._figures(point, number, entry)
        else:
            self.store.begin_point(point.key, number, jobs.client(point, self.target))
        if why is None:
            entry.update(status=store.DONE, figures=figures)
            outcome = headline(figures)
        else:
            entry.update(status=store.FAILED, reason=why)
            outcome = f"failed: {why}"
        self.store.end_point(point.key, number, entry)
        if why and self.progress.terminal:
            self.progress.note(f"{what}: {outcome}")
        self.progress.end(what, outcome, time.monotonic() - begun,
                          point.ramp + point.runtime + 0.5)

    def _figures(self, point, number, entry):
        server = (point.memory, ALL_METHODS[point.method].server)
        target = self.target
        if server in self.unreachable:
            target = replace(target, connect_timeout=min(SHORT_TRY, target.connect_timeout))
        folder = self.store.begin_point(point.key, number, jobs.client(point, target))
        self.sampler.trim(time.time() - 2 * (point.runtime + point.ramp) - 5)
        output, why = self.fio_run(folder, self.limit(point), server)
        down = self._down(server)
        if down:
            why = down if why is None else f"{down} ({why})"
        if not self.servers:
            (self.unreachable.add if why else self.unreachable.discard)(server)
        if why:
            return None, why
        try:
            figures = fioresult.figures(output)
        except fioresult.FioFailed as error:
            return None, str(error)
        self._add_cpu(point, figures, entry)
        return figures, None

    def _add_cpu(self, point, figures, entry):
        end = self.sampler.busy_end("client")
        if end is None:
            return
        begin = end - point.runtime
        entry["window"] = [begin, end]
        figures["client_cores"] = self.sampler.cores("client", begin, end)
        if self.servers:
            name = f"{ALL_METHODS[point.method].server}.{point.memory}"
            figures["server_cores"] = self.sampler.cores(name, begin, end)

    def _server_for(self, point):
        """None when the point's server runs, started again if need be; else why it does not."""
        if not self.servers:
            return None
        key = ALL_METHODS[point.method].server
        down = self.servers.why_down(key, point.memory)
        if not down:
            return None
        if not self.servers.revive(key, point.memory):
            return f"{down}, and was started again too often"
        self.happened(f"{key} on {MEMORIES[point.memory].label}: {down}; it was started again.")
        return None

    def _load_for(self, point):
        return None if point.loaded == self.loaded else self._set_load(point.loaded)

    def _set_load(self, on):
        """Loads the server's CPUs or ends that; returns why it could not."""
        if not self.plan.loads or on == self.loaded:
            return None
        if self.servers:
            self.servers.set_load(on)
        else:
            # a run that broke off may have left load there, so the state is asked for, not assumed
            short = replace(self.target, connect_timeout=SHORT_TRY)
            why = self.loaded is None and self._knock(short, state_port(self.target.port, on))
            if self.loaded is not None or why:
                why = self._knock(self.target, bell_port(self.target.port, on)) \
                    or self._knock(self.target, state_port(self.target.port, on))
            if why:
                return f"the other side could not be asked for load on its CPUs: {why}"
        self.loaded = on
        return None

    def _knock(self, target, port):
        folder = self.store.folder / "servers" / "knock"
        folder.mkdir(exist_ok=True)
        (folder / "job.fio").write_text(jobs.knock(target, port), encoding="utf-8")
        return self.fio_run(folder, target.connect_timeout / 1000 + SLACK)[1]


def axis_value(plan, point):
    axis = next((e.axis for e in plan.experiments if e.key == point.experiment), "")
    return {"block_size": units.fio_size, "rate": lambda v: f"{v}/s" if v else "full speed",
            "load": lambda v: "loaded" if v else "idle"}.get(axis, str)(point.value)


def headline(figures):
    direction = figures.get("write") or figures["read"]
    latency = direction.get("p50", direction["mean"])
    return f"{units.latency(latency)}, {units.bandwidth(figures['bandwidth'])}"
