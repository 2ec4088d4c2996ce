# SPDX-License-Identifier: BSD-3-Clause
"""A run's results as cells: one for each experiment, value, method and memory, over its rounds."""

from dataclasses import dataclass, field

from . import units
from .methods import ALL_METHODS, MEMORIES
from .plan import Plan
from .stats import Spread
from .store import DONE

PERCENTILE_METRICS = ("p50", "p99", "p99.9", "p99.99")
METRICS = PERCENTILE_METRICS + ("mean", "iops", "bandwidth", "client_cores", "server_cores",
                                "client_cpu", "server_cpu", "cpu", "read.p50", "write.p50")
MAIN_METRIC = {"latency": "p50", "bandwidth": "bandwidth", "cpu": "cpu"}


@dataclass
class Cell:
    experiment: str
    value: int
    method: str
    memory: str
    points: list = field(default_factory=list)
    spreads: dict = field(default_factory=dict)

    @property
    def done(self):
        return [p for p in self.points if p["status"] == DONE]

    @property
    def failures(self):
        return [p for p in self.points if p["status"] != DONE]

    def get(self, metric):
        return self.spreads.get(metric)


def flat(figures):
    """One round's figures by metric; CPU time in nanoseconds of one I/O."""
    direction = figures.get("write") or figures.get("read")
    out = {m: direction.get(m) for m in PERCENTILE_METRICS + ("mean",)}
    out.update((m, figures.get(m)) for m in ("iops", "bandwidth", "client_cores", "server_cores"))
    for side in ("client", "server"):
        cores = out[f"{side}_cores"]
        out[f"{side}_cpu"] = cores * 1e9 / out["iops"] if cores is not None and out["iops"] else None
    if out["client_cpu"] is not None and out["server_cpu"] is not None:
        out["cpu"] = out["client_cpu"] + out["server_cpu"]
    if "read" in figures and "write" in figures:
        out["read.p50"] = figures["read"].get("p50")
        out["write.p50"] = figures["write"].get("p50")
    return out


class Data:
    """The cells of a run, with its plan and what run.json says."""

    def __init__(self, run, results):
        self.run = run
        self.plan = Plan.from_dict(run["plan"])
        self.experiments = {e.key: e for e in self.plan.experiments}
        self.results = sorted(results, key=lambda r: (r["round"], r["started"]))
        self.cells = {}
        for result in self.results:
            key = (result["experiment"], result["value"], result["method"], result["memory"])
            self.cells.setdefault(key, Cell(*key)).points.append(result)
        for cell in self.cells.values():
            rounds = [flat(p["figures"]) for p in cell.done]
            for metric in METRICS:
                spread = Spread.of([r.get(metric) for r in rounds])
                if spread:
                    cell.spreads[metric] = spread

    @property
    def memories(self):
        return [m for m in MEMORIES if any(c.memory == m and c.points for c in self.cells.values())]

    @property
    def rounds(self):
        return max((len(c.done) for c in self.cells.values()), default=0)

    @property
    def failures(self):
        return [r for r in self.results if r["status"] != DONE]

    def cell(self, experiment, value, method, memory):
        return self.cells.get((experiment, value, method, memory))

    def methods(self, experiment, memory):
        """Keys of the methods with a point there, in the catalogue's order."""
        return [m for m in ALL_METHODS
                if any(c.experiment == experiment and c.memory == memory and c.method == m
                       for c in self.cells.values())]

    def row(self, experiment, value, memory):
        """{method: cell} of one value of an experiment, failed ones among them."""
        found = {m: self.cell(experiment, value, m, memory) for m in ALL_METHODS}
        return {m: c for m, c in found.items() if c}

    def reference(self, memory, *kinds):
        """(experiment, value) of the first kind measured there: near 4 KiB, 16 in flight, or most."""
        for key in kinds:
            experiment = self.experiments.get(key)
            if not experiment:
                continue
            values = [v for v in experiment.values if self._measured(key, v, memory)]
            near = {"block_size": 4096, "iodepth": 16}.get(experiment.axis, max(values, default=0))
            if values:
                return key, min(values, key=lambda v: abs(v - near))
        return None

    def _measured(self, experiment, value, memory):
        return any(c.done for c in self.row(experiment, value, memory).values())


def value_text(experiment, value):
    """A value of an experiment's axis, for people."""
    if experiment.axis == "block_size":
        return units.size(value)
    if experiment.axis == "rate":
        return f"{value:,} a second" if value else "full speed"
    if experiment.axis == "load":
        return "CPUs loaded" if value else "CPUs idle"
    return f"{value:,}"


AXIS_LABELS = {"block_size": "block size", "iodepth": "writes in flight", "threads": "threads",
               "rate": "rate", "load": "the server's CPUs"}


def held_text(experiment):
    """What an experiment holds while its axis moves."""
    parts = []
    if experiment.axis != "block_size":
        parts.append(f"{units.size(experiment.block_size)} blocks")
    if experiment.axis != "iodepth":
        parts.append("one at a time" if experiment.iodepth == 1 and experiment.threads == 1
                     else f"{experiment.iodepth} in flight")
    if experiment.axis != "threads":
        parts.append("one thread" if experiment.threads == 1 else f"{experiment.threads} threads")
    else:
        parts[-1] += " in each"
    return ", ".join(parts)
