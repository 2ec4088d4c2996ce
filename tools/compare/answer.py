# SPDX-License-Identifier: BSD-3-Clause
"""What the figures say, in sentences: never more than the spread allows."""

from . import units
from .methods import ALL_METHODS, MEMORIES
from .stats import INSIDE, UNKNOWN, compare, ratio

TEXT = {"p50": units.latency, "p99": units.latency, "bandwidth": units.bandwidth,
        "cpu": units.latency}
LOWER_IS_BETTER = {"p50": True, "p99": True, "bandwidth": False, "cpu": True}


def ranked(row, metric, flushing_only=False):
    """[(method, spread)] of a row of cells, the best first."""
    found = [(m, c.get(metric)) for m, c in row.items()
             if c.get(metric) and (ALL_METHODS[m].flushes or not flushing_only)]
    return sorted(found, key=lambda item: item[1].median, reverse=not LOWER_IS_BETTER[metric])


def times(a, b):
    """'1.3 times', rounded so that it never says 1.0."""
    value = ratio(a, b)
    return f"{value:.2f} times" if value < 1.095 else f"{units.significant(value, 2)} times"


def best_of(ranking):
    """The methods no other is shown to beat: the first, and those inside its spread."""
    return [m for m, spread in ranking
            if m == ranking[0][0] or compare(spread, ranking[0][1]) == INSIDE]


def where(data, memory):
    device = data.run["machine"].get("RDMA device", "")
    device = "the software RNIC" if device.startswith("software RNIC") \
        else device.partition(" ")[0] or "RDMA"
    return f"On {MEMORIES[memory].label} over {device}"


def main_memory(data):
    """The memory the answer speaks of: a persistent one where there is one."""
    for memory in ("devdax", "fsdax", "dram"):
        if memory in data.memories and data.reference(memory, *LATENCY_KINDS):
            return memory
    return (data.memories or [None])[0]


LATENCY_KINDS = ("latency-rand", "latency-seq", "load")
BANDWIDTH_KINDS = ("iodepth", "bandwidth-rand", "bandwidth-seq", "threads")


def answer(data):
    """At most two sentences."""
    memory = main_memory(data)
    if memory is None or not any(c.done for c in data.cells.values()):
        return ["No point was measured, so there is no answer.",
                "The reasons are below."]
    sentences = [_fastest(data, memory), _cost(data, memory)]
    return [s for s in sentences if s] or ["The points measured do not compare flushed writes; "
                                           "the figures below stand for themselves."]


def _fastest(data, memory):
    reference = data.reference(memory, *LATENCY_KINDS)
    if not reference:
        return ""
    key, value = reference
    ranking = ranked(data.row(key, value, memory), "p50", flushing_only=True)
    if not ranking:
        return ""
    experiment = data.experiments[key]
    block = units.size(value if experiment.axis == "block_size" else experiment.block_size)
    (method, first), rest = ranking[0], ranking[1:]
    phrase = ALL_METHODS[method].phrase
    start = f"{where(data, memory)}, "
    if not rest:
        return f"{start}{phrase} flushes a {block} write in {units.latency(first.median)}."
    tied = best_of(ranking)
    if len(tied) > 1:
        names = _list([ALL_METHODS[m].phrase for m in tied])
        shown = _list([units.latency(s.median) for m, s in ranking if m in tied])
        tail = ""
        others = [(m, s) for m, s in ranking if m not in tied]
        if others:
            tail = (f"; {ALL_METHODS[others[0][0]].phrase} takes "
                    f"{times(others[0][1], first)} as long")
        return (f"{start}{names} flush a {block} write equally fast, in {shown}, a difference "
                f"inside the spread{tail}.")
    second, spread = rest[0]
    doubt = " in the one round measured" if compare(first, spread) == UNKNOWN else ""
    return (f"{start}{phrase} flushes a {block} write fastest, in {units.latency(first.median)}"
            f"{doubt}; {ALL_METHODS[second].phrase} comes next and takes {times(spread, first)} as "
            f"long.")


def _cost(data, memory):
    parts = []
    reference = data.reference(memory, *BANDWIDTH_KINDS)
    if reference:
        key, value = reference
        ranking = ranked(data.row(key, value, memory), "bandwidth", flushing_only=True)
        if ranking:
            best = best_of(ranking)
            names = _list([ALL_METHODS[m].phrase for m in best])
            count = {"iodepth": value, "threads": value}.get(data.experiments[key].axis,
                                                             data.experiments[key].iodepth)
            unit = "threads" if data.experiments[key].axis == "threads" else "writes in flight"
            parts.append(f"with {count} {unit} {names} move{'s' if len(best) == 1 else ''} the most, "
                         f"{units.bandwidth(ranking[0][1].median)}")
    floor = _floor(data, memory)
    if floor:
        parts.append(floor)
    text = "; ".join(parts)
    return text[:1].upper() + text[1:] + "." if text else ""


def _floor(data, memory):
    reference = data.reference(memory, *LATENCY_KINDS)
    if not reference:
        return ""
    row = data.row(*reference, memory)
    ranking = ranked(row, "p50", flushing_only=True)
    floor = row["no-flush"].get("p50") if "no-flush" in row else None
    if not ranking or not floor:
        return ""
    return flush_cost(ranking[0][1], floor)


def flush_cost(best, floor):
    """What the best flush costs over no flush at all."""
    shown = f"a write that is never flushed takes {units.latency(floor.median)}"
    if compare(best, floor) == INSIDE:
        return f"{shown}, so the flush costs nothing measurable"
    if best.median < floor.median:
        return f"{shown}, longer than one that is: what the flush costs is lost in the noise"
    return f"{shown}, so the flush costs a factor of {units.significant(ratio(best, floor), 2)}"


def _list(words):
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def verdict(data, experiment, memory):
    """One or two sentences under a plot: who leads at the telling value, and what is no difference."""
    metric = {"latency": "p50", "bandwidth": "bandwidth", "cpu": "cpu"}[experiment.metric]
    reference = data.reference(memory, experiment.key)
    if not reference:
        return "No point of this experiment was measured."
    value = reference[1]
    ranking = ranked(data.row(experiment.key, value, memory), metric)
    if not ranking:
        return ""
    first_method, first = ranking[0]
    text = (f"{_at(experiment, value)}: {ALL_METHODS[first_method].short} "
            f"{TEXT[metric](first.median)}")
    if len(ranking) > 1:
        text += "; " + ", ".join(_against(m, s, first, metric) for m, s in ranking[1:])
    return text + "." + _ties(ranking)


def _at(experiment, value):
    if experiment.axis == "load":
        return "With the server's CPUs loaded" if value else "With the server's CPUs idle"
    if experiment.axis == "rate":
        return f"At {value:,} writes a second" if value else "At full speed"
    if experiment.axis == "block_size":
        return f"At {units.size(value)}"
    unit = "thread" if experiment.axis == "threads" else "in flight"
    return f"With {value} {unit}{'s' if unit == 'thread' and value > 1 else ''}"


def _against(method, spread, first, metric):
    value = ratio(spread, first)
    sign = "×" if LOWER_IS_BETTER[metric] else "÷"
    factor = f" ({sign} {units.significant(value, 3 if value < 10 else 2)})" if value else ""
    return f"{ALL_METHODS[method].short} {TEXT[metric](spread.median)}{factor}"


def _ties(ranking):
    pairs = [f"{ALL_METHODS[a].short} and {ALL_METHODS[b].short}"
             for (a, x), (b, y) in zip(ranking, ranking[1:]) if compare(x, y) == INSIDE]
    text = f" No difference beyond the spread: {'; '.join(pairs)}." if pairs else ""
    if any(compare(x, y) == UNKNOWN for (_, x), (_, y) in zip(ranking, ranking[1:])):
        text += " Measured in one round, so its spread is not known."
    return text
