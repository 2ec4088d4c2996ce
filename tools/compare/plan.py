# SPDX-License-Identifier: BSD-3-Clause
"""Which points a run measures: the catalogue of experiments, the quick set, selection files."""

import configparser
import dataclasses
from dataclasses import dataclass, field

from . import CompareError, units
from .methods import MEMORIES, METHODS, PORTS_PER_SERVER, READ

BLOCK_SIZES = (64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128)
MOST_DEPTH = 4096
MOST_BLOCK = 64 << 20
FULL_SPEED = 0
FIO_OVERHEAD = 0.5  # seconds to start and end fio; the run learns the true one


@dataclass(frozen=True)
class Experiment:
    """One plot: an axis with its values, everything else held."""
    key: str
    title: str
    axis: str  # block_size, iodepth, threads, rate or load
    values: tuple
    rw: str
    metric: str  # latency, bandwidth or cpu
    block_size: int = 4096
    iodepth: int = 1
    threads: int = 1
    methods: tuple = ()  # () = those of the plan
    runtime: float = 0  # 0 = the plan's
    ramp: float = -1


def _by_block_size(key, title, rw, metric, depth, methods=()):
    return Experiment(key, title, "block_size", BLOCK_SIZES, rw, metric, iodepth=depth,
                      methods=methods)


CATALOGUE = {experiment.key: experiment for experiment in (
    _by_block_size("latency-seq", "Latency of one write, sequential", "write", "latency", 1),
    _by_block_size("latency-rand", "Latency of one write, random", "randwrite", "latency", 1),
    _by_block_size("bandwidth-seq", "Write bandwidth, sequential", "write", "bandwidth", 16),
    _by_block_size("bandwidth-rand", "Write bandwidth, random", "randwrite", "bandwidth", 16),
    Experiment("iodepth", "Write bandwidth by writes in flight", "iodepth", DEPTHS, "randwrite",
               "bandwidth"),
    Experiment("threads", "Write bandwidth by threads", "threads", (1, 2, 4, 8), "randwrite",
               "bandwidth", iodepth=2),
    _by_block_size("read-latency", "Latency of one read, random", "randread", "latency", 1,
                   (READ.key,)),
    _by_block_size("read-seq", "Read bandwidth, sequential", "read", "bandwidth", 16,
                   (READ.key,)),
    _by_block_size("read-rand", "Read bandwidth, random", "randread", "bandwidth", 16,
                   (READ.key,)),
    Experiment("mix-seq", "70 % reads, 30 % writes, sequential", "iodepth", (1, 4, 16, 64), "rw",
               "bandwidth"),
    Experiment("mix-rand", "70 % reads, 30 % writes, random", "iodepth", (1, 4, 16, 64), "randrw",
               "bandwidth"),
    Experiment("cpu", "CPU time of one write", "rate", (1000, FULL_SPEED), "randwrite", "cpu"),
    Experiment("load", "Latency with the server's CPUs loaded", "load", (0, 1), "randwrite",
               "latency"),
)}


@dataclass(frozen=True)
class Point:
    """What one fio run measures, in one round."""
    experiment: str
    value: int
    method: str
    memory: str
    rw: str
    block_size: int
    iodepth: int
    threads: int
    rate: int
    loaded: bool
    runtime: float
    ramp: float
    size: int

    @property
    def key(self):
        return f"{self.experiment}.{self.value}.{self.method}.{self.memory}"


@dataclass
class Plan:
    experiments: list = field(default_factory=lambda: list(CATALOGUE.values()))
    methods: list = field(default_factory=lambda: list(METHODS))
    memories: list = field(default_factory=lambda: list(MEMORIES))
    rounds: int = 5
    runtime: float = 3.0
    ramp: float = 1.0
    size: int = 16 << 20  # workspace of one thread
    budget: float = 0  # seconds for each memory that no further round may pass; 0 = none
    name: str = "full"

    @property
    def most_threads(self):
        return max(max(e.values) if e.axis == "threads" else e.threads for e in self.experiments)

    @property
    def most_depth(self):
        return max(max(e.values) if e.axis == "iodepth" else e.iodepth for e in self.experiments)

    @property
    def loads(self):
        return any(e.axis == "load" for e in self.experiments)

    def points(self, series):
        """Every point of one round, methods side by side; series is a list of (method, memory).

        Loaded points stand last, so that a round loads the server's CPUs once."""
        points = [point for e in self.experiments for value in e.values
                  for point in self._side_by_side(e, value, series)]
        return sorted(points, key=lambda point: point.loaded)

    def _side_by_side(self, experiment, value, series):
        methods = experiment.methods or self.methods
        axis = experiment.axis
        for memory in self.memories:
            for method in methods:
                if (method, memory) not in series:
                    continue
                yield Point(
                    experiment.key, value, method, memory, experiment.rw,
                    value if axis == "block_size" else experiment.block_size,
                    value if axis == "iodepth" else experiment.iodepth,
                    value if axis == "threads" else experiment.threads,
                    value if axis == "rate" else 0, axis == "load" and value == 1,
                    experiment.runtime or self.runtime,
                    self.ramp if experiment.ramp < 0 else experiment.ramp, self.size)

    def all_series(self):
        methods = list(self.methods)
        if any(READ.key in e.methods for e in self.experiments):
            methods.append(READ.key)
        return [(method, memory) for memory in self.memories for method in methods]

    def seconds(self, points):
        return self.rounds * sum(p.ramp + p.runtime + FIO_OVERHEAD for p in points)

    def as_dict(self):
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data):
        data = dict(data)
        data["experiments"] = [
            Experiment(**{**e, "values": tuple(e["values"]), "methods": tuple(e["methods"])})
            for e in data["experiments"]]
        return cls(**data)


def quick():
    """The set for a first look: under one minute in all."""
    def sized(key, *values, **changes):
        return dataclasses.replace(CATALOGUE[key], values=values, **changes)
    return Plan(experiments=[sized("latency-seq", 64, 4 << 10, 64 << 10), sized("iodepth", 1, 16),
                             sized("read-latency", 4 << 10, 64 << 10)],
                rounds=3, runtime=0.2, ramp=0.05, budget=46, name="quick")


# Selection files.  [run] sizes the whole, each other section selects one experiment.

def _words(text, known, what):
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in known:
            raise CompareError(f"'{word}' is not a {what} (known: {', '.join(known)})")
    if not words:
        raise CompareError(f"no {what} given (known: {', '.join(known)})")
    return list(dict.fromkeys(words))


def _within(parse, low, high, shown):
    def check(text):
        value = parse(text)
        if not low <= value <= high:
            raise CompareError(f"'{text}' is not from {shown(low)} to {shown(high)}")
        return value
    return check


def _seconds(value):
    return f"{value:g} s"


_block_size = _within(units.parse_size, 1, MOST_BLOCK, units.size)


def _depth(text):
    return units.parse_count(text, 1, MOST_DEPTH)


def _threads(text):
    return units.parse_count(text, 1, PORTS_PER_SERVER)


_runtime = _within(units.parse_time, 0.05, 24 * 3600, _seconds)
_ramp = _within(units.parse_time, 0, 3600, _seconds)

AXIS_VALUES = {"block_size": _block_size, "iodepth": _depth, "threads": _threads,
               "rate": lambda text: units.parse_count(text, 0, 10 ** 8),
               "load": lambda text: units.parse_count(text, 0, 1)}

RUN_OPTIONS = {
    "rounds": lambda text: units.parse_count(text, 1, 1000), "runtime": _runtime, "ramp": _ramp,
    "size": _within(units.parse_size, 4096, 1 << 40, units.size),
    "budget": _within(units.parse_time, 0, 7 * 24 * 3600, _seconds),
    "methods": lambda text: _words(text, list(METHODS), "method"),
    "memories": lambda text: _words(text, list(MEMORIES), "memory"),
}


def _experiment_options(experiment):
    one = AXIS_VALUES[experiment.axis]
    options = {
        "values": lambda text: tuple(
            dict.fromkeys(one(v.strip()) for v in text.split(","))),
        "block_size": _block_size, "iodepth": _depth, "threads": _threads,
        "runtime": _runtime, "ramp": _ramp,
        "methods": lambda text: tuple(_words(text, list(METHODS), "method")),
    }
    options.pop(experiment.axis, None)
    if READ.key in experiment.methods:
        del options["methods"]
    return options


def _read_section(path, section, options):
    found = {}
    for name, text in section.items():
        try:
            if name not in options:
                raise CompareError(f"unknown option (known: {', '.join(options)})")
            found[name] = options[name](text)
        except CompareError as error:
            raise CompareError(f"{path}: [{section.name}] {name}: {error}") from None
    return found


def from_file(path):
    parser = configparser.ConfigParser(interpolation=None, default_section="\n",
                                       inline_comment_prefixes=("#", ";"))
    try:
        with open(path, encoding="utf-8") as source:
            parser.read_file(source)
    except OSError as error:
        raise CompareError(f"{path}: {error.strerror}") from None
    except (configparser.Error, UnicodeDecodeError) as error:
        raise CompareError(f"{path}: {' '.join(str(error).split())}") from None
    plan = Plan(name=str(path))
    selected = []
    for name in parser.sections():
        if name == "run":
            plan = dataclasses.replace(plan, **_read_section(path, parser[name], RUN_OPTIONS))
        elif name in CATALOGUE:
            experiment = CATALOGUE[name]
            changes = _read_section(path, parser[name], _experiment_options(experiment))
            selected.append(dataclasses.replace(experiment, **changes))
        else:
            raise CompareError(f"{path}: [{name}]: no such experiment "
                               f"(known: {', '.join(CATALOGUE)}; and [run])")
    if selected:
        plan.experiments = selected
    _check(path, plan)
    return plan


def _check(path, plan):
    for e in plan.experiments:
        block = max(e.values) if e.axis == "block_size" else e.block_size
        if block > plan.size:
            raise CompareError(f"{path}: [{e.key}] a block of {units.size(block)} does not fit the "
                               f"workspace of {units.size(plan.size)}; raise size in [run]")
