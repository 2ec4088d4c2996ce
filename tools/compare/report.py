# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run: one page that needs nothing else, and CSV and JSON beside it."""

import csv
import dataclasses
import itertools
import time

from . import answer, html, plots, store, units
from .cells import (AXIS_LABELS, MAIN_METRIC, METRICS, PERCENTILE_METRICS, Data, flat, held_text,
                    value_text)
from .children import cores
from .methods import ALL_METHODS, MEMORIES
from .stats import compare, INSIDE

BUSY = 0.3  # CPUs kept busy by others that are worth a word
TITLE = "Persistence methods compared"
CSV_POINT = ("experiment", "value", "method", "memory", "round", "status", "reason", "rw",
             "block_size", "iodepth", "threads", "rate", "loaded")


def write(data_store, results):
    """Writes report.html, report.csv and report.json; returns the path of the page."""
    data = Data(data_store.run, results)
    folder = data_store.folder
    _write_csv(folder / "report.csv", data)
    store.write_json(folder / "report.json", as_json(data))
    path = folder / "report.html"
    path.write_text(page(data), encoding="utf-8")
    return path.resolve()


def join_server(data_store, path):
    """Takes what the other side's serve.json knows: its machine, memory, and CPU time."""
    served = store.read_json(path)
    data_store.run["server_machine"] = served["machine"]
    data_store.run["memory"] = served["memory"]
    data_store.save()
    for result in list(data_store.results()):
        if result["status"] != store.DONE or "window" not in result:
            continue
        name = f"{ALL_METHODS[result['method']].server}.{result['memory']}"
        result["figures"]["server_cores"] = cores(served["samples"].get(name, []),
                                                  *result["window"])
        del result["job"]
        data_store.end_point(result["key"], result["round"], result)


def _write_csv(path, data):
    metrics = [m for m in METRICS if m != "cpu"]
    with open(path, "w", newline="", encoding="utf-8") as sink:
        out = csv.writer(sink)
        out.writerow(CSV_POINT + tuple(f"{m}{_unit_of(m)}" for m in metrics))
        for result in data.results:
            figures = flat(result["figures"]) if result["status"] == store.DONE else {}
            out.writerow([result.get(name, "") for name in CSV_POINT]
                         + ["" if figures.get(m) is None else f"{figures[m]:.6g}" for m in metrics])


def _unit_of(metric):
    if metric in ("iops", "client_cores", "server_cores"):
        return ""
    return "_bytes_per_s" if metric == "bandwidth" else "_ns"


def as_json(data):
    cells = [{"experiment": c.experiment, "value": c.value, "method": c.method, "memory": c.memory,
              "rounds": len(c.done), "failed": [f["reason"] for f in c.failures],
              **{m: dataclasses.asdict(s) for m, s in c.spreads.items()}}
             for c in data.cells.values()]
    return {"run": data.run, "answer": answer.answer(data), "cells": cells}


# The page ---------------------------------------------------------------------------------------

def page(data):
    body = [_header(data), _answer(data), _notes(data), _glance(data)]
    for title, kinds in (("Latency", ("latency",)), ("Bandwidth", ("bandwidth",)),
                         ("CPU", ("cpu",))):
        experiments = [e for e in data.plan.experiments if e.metric in kinds]
        cards = [c for e in experiments for c in experiment_cards([data], e)]
        if title == "Latency":
            cards += percentile_cards(data)
        if title == "CPU" and not experiments:
            cards = list(cpu_cards(data))
        if cards:
            body.append(html.section(title, html.grid(cards)))
    body += [_missing(data), _machine(data), _reproduce(data), _reading(data)]
    return html.document(TITLE, "\n".join(part for part in body if part))


def _header(data):
    run = data.run
    began = time.strftime("%d %B %Y, %H:%M", time.localtime(run["began"]))
    where = "both sides on this machine" if run["local"] else f"to {run['target']['address']}"
    rounds = f"{data.rounds} round{'s' if data.rounds != 1 else ''}"
    what = f"{len(data.cells)} points in {rounds}, methods side by side in each"
    sub = ", ".join((began, run["machine"].get("Host", ""), where))
    return (f'<header><p class="kind">rpma-compare</p><h1>{TITLE}</h1>'
            f'<p class="sub">{html.text(sub)}. {html.text(what)}.</p></header>')


def _answer(data):
    return f'<p class="answer">{html.prose(" ".join(answer.answer(data)))}</p>'


def _notes(data):
    notes = []
    if data.run["state"] != "complete":
        notes.append(("bad", f"The run was {data.run['state']}; what it had measured is shown."))
    if data.failures:
        notes.append(("bad", f"{len(data.failures)} of {len(data.results)} measurements failed; "
                             "they are marked × in the plots and listed with their reasons."))
    notes += [("", note) for note in data.run.get("events", [])]
    if data.memories == ["dram"]:
        notes.append(("", "The server's memory was DRAM, which is not persistent: the figures are "
                          "what each method costs, not that anything would survive a power cut."))
    if data.run["local"]:
        notes.append(("", "Client and server shared this machine's CPUs: between two hosts the "
                          "figures, and the order of the methods, can be others."))
    if data.run["busy"] > BUSY:
        notes.append(("", f"When the run began, other work kept {data.run['busy']:.1f} of this "
                          "machine's CPUs busy: expect a wide spread."))
    if 0 < data.rounds < 3:
        notes.append(("", "Fewer than three rounds: the spread is a rough one."))
    items = "".join(f'<li class="{kind}">{html.text(note)}</li>' for kind, note in notes)
    return f'<ul class="notes">{items}</ul>' if items else ""


# At a glance --------------------------------------------------------------------------------------

def _glance(data):
    columns = _glance_columns(data)
    if not columns:
        return ""
    head = "".join(f"<th>{html.text(title)}<small>{html.text(sub)}</small></th>"
                   for title, sub, _, _, _ in columns)
    rows = []
    for memory in data.memories:
        if len(data.memories) > 1:
            rows.append(f'<tr class="memory"><td colspan="{len(columns) + 1}">'
                        f"{MEMORIES[memory].label}</td></tr>")
        rows += _glance_rows(data, memory, columns)
    return html.section("At a glance", html.scroll(
        f"<table class=\"glance\"><thead><tr><th>Method</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
        "</table>"), "Median of the rounds, with the lowest and highest of them below. Bold: the "
        "best flushed one; several where their difference is inside the spread.")


def _glance_columns(data):
    """[(title, subtitle, kinds of experiment, metric, format)] of what was measured."""
    memory = answer.main_memory(data)
    columns = []
    latency = memory and data.reference(memory, *answer.LATENCY_KINDS)
    if latency:
        experiment = data.experiments[latency[0]]
        block = latency[1] if experiment.axis == "block_size" else experiment.block_size
        one = f"{units.size(block)} write"
        columns += [("Latency", f"{one}, median", latency, "p50", units.latency),
                    ("99 %", one, latency, "p99", units.latency),
                    ("99.9 %", one, latency, "p99.9", units.latency)]
    bandwidth = memory and data.reference(memory, *answer.BANDWIDTH_KINDS)
    if bandwidth:
        experiment = data.experiments[bandwidth[0]]
        columns.append(("Bandwidth", f"{value_text(experiment, bandwidth[1])} "
                        f"{AXIS_LABELS[experiment.axis]}" if experiment.axis != "block_size"
                        else f"{units.size(bandwidth[1])} blocks", bandwidth, "bandwidth",
                        units.bandwidth))
    if latency:
        columns += [("Client CPU", "cores busy", latency, "client_cores", _cores),
                    ("Server CPU", "cores busy", latency, "server_cores", _cores)]
    return columns


def _cores(value):
    return f"{value:.2f}"


def _glance_rows(data, memory, columns):
    unavailable = {m["method"]: m for m in data.run["unavailable"] if m["memory"] == memory}
    for method in data.plan.methods:
        name = (f"<td>{html.swatch(method)}<span class=\"long\">{ALL_METHODS[method].label}</span>"
                f"<span class=\"short\">{ALL_METHODS[method].short}</span></td>")
        cells = [data.cell(*reference, method, memory) for _, _, reference, _, _ in columns]
        if any(cells):
            yield f"<tr>{name}{''.join(_glance_cell(data, memory, method, c) for c in columns)}</tr>"
        elif method in unavailable:
            missing = unavailable[method]
            what = "failed" if missing["kind"] == "failed" else "not available"
            yield (f'<tr>{name}<td class="why" colspan="{len(columns)}">{what}: '
                   f'{html.text(missing["reason"])}</td></tr>')


def _glance_cell(data, memory, method, column):
    _, _, reference, metric, shown = column
    row = data.row(*reference, memory)
    cell = row.get(method)
    spread = cell and cell.get(metric)
    if not spread:
        failed = cell and cell.failures and not cell.done
        return f"<td>{'failed' if failed else '–'}</td>"
    best = ""
    if metric in answer.LOWER_IS_BETTER or metric == "p99.9":
        ranking = _ranking(row, metric)
        if method in [m for m, s in ranking if m == ranking[0][0]
                      or compare(s, ranking[0][1]) == INSIDE]:
            best = ' class="best"'
    small = f"<small>{html.spread(spread, shown)}</small>" if spread.n > 1 else ""
    return f"<td{best}>{html.text(shown(spread.median))}{small}</td>"


def _ranking(row, metric):
    found = [(m, c.get(metric)) for m, c in row.items()
             if c.get(metric) and ALL_METHODS[m].flushes]
    return sorted(found, key=lambda f: f[1].median, reverse=metric == "bandwidth") or [("", None)]


# Plots --------------------------------------------------------------------------------------------

def experiment_cards(datas, experiment):
    """One card for each memory, all on one scale."""
    metric = MAIN_METRIC[experiment.metric]
    memories = [m for m in datas[0].memories if datas[0].methods(experiment.key, m)]
    for memory in memories:
        if is_bars(experiment):
            figure = category_bars(datas, experiment, memory, metric)
        else:
            figure = plots.lines(datas, experiment, memory, metric, AXIS_LABELS[experiment.axis],
                                 memories)
        title = experiment.title
        if len(memories) > 1 or len(datas[0].memories) > 1:
            title += f", {MEMORIES[memory].label}"
        what = {"p50": "median latency", "bandwidth": "bandwidth",
                "cpu": "client (full) and server (faint)"}[metric]
        yield html.card(title, f"{what}; {held_text(experiment)}",
                        figure or '<p class="sub">No point of it was measured.</p>',
                        answer.verdict(datas[0], experiment, memory),
                        experiment_table(datas[0], experiment, memory))


def is_bars(experiment):
    """Whether its axis has no line to draw."""
    return experiment.axis in ("rate", "load") or len(experiment.values) == 1


def category_bars(datas, experiment, memory, metric):
    data, rows = datas[0], []
    for method in data.methods(experiment.key, memory):
        for value in experiment.values:
            cell = data.cell(experiment.key, value, method, memory)
            if cell and cell.get(metric):
                rows.append(bar_row(cell, method, _bar_note(experiment, value), metric))
    unit = plots.UNITS[metric]
    if metric == "cpu":
        unit += " of CPU for one write"
    elif experiment.axis not in ("rate", "load"):
        unit += f" at {AXIS_LABELS[experiment.axis]} {value_text(experiment, experiment.values[0])}"
    return plots.bars(rows, unit)


def _bar_note(experiment, value):
    if experiment.axis not in ("rate", "load"):
        return ""
    return value_text(experiment, value).replace("CPUs ", "").replace(" a second", "/s")


def bar_row(cell, method, note, metric):
    spread, scale = cell.get(metric), plots.SCALES[metric]
    if metric == "cpu":
        parts = [(cell.get("client_cpu").median / scale, 1.0),
                 (cell.get("server_cpu").median / scale, 0.45)]
    else:
        parts = [(spread.median / scale, 0.9)]
    return (method, note, parts, answer.TEXT[metric](spread.median), spread.low / scale,
            spread.high / scale)


def percentile_cards(data):
    for memory in data.memories:
        reference = data.reference(memory, *answer.LATENCY_KINDS)
        figure = reference and plots.percentiles(data, *reference, memory)
        if not figure:
            continue
        experiment = data.experiments[reference[0]]
        title = "The tail of the latency"
        if len(data.memories) > 1:
            title += f", {MEMORIES[memory].label}"
        yield html.card(title, f"{value_text(experiment, reference[1])} writes; "
                        f"{held_text(experiment)}", figure,
                        "A percentile is shown where at least three writes of a round lie beyond "
                        "it.", percentile_table(data, reference, memory))


def cpu_cards(data):
    """CPU time of one write from the latency points, where no experiment is for it."""
    for memory in data.memories:
        reference = data.reference(memory, *answer.LATENCY_KINDS)
        if not reference:
            continue
        row = data.row(*reference, memory)
        rows = [bar_row(c, m, "", "cpu") for m, c in row.items() if c.get("cpu")]
        if not rows:
            continue
        experiment = data.experiments[reference[0]]
        title = "CPU time of one write"
        if len(data.memories) > 1:
            title += f", {MEMORIES[memory].label}"
        yield html.card(title, f"client (full) and server (faint); "
                        f"{value_text(experiment, reference[1])} writes, {held_text(experiment)}",
                        plots.bars(rows, "µs of CPU for one write"),
                        _cpu_verdict(row), "")


def _cpu_verdict(row):
    ranking = answer.ranked(row, "cpu", flushing_only=True)
    if not ranking:
        return ""
    parts = [f"{ALL_METHODS[m].short} {units.latency(s.median)}" for m, s in ranking]
    return ("Both sides together, flushed writes: " + ", ".join(parts) + ". A side that polls is "
            "busy all the time it waits, so this is a core's time, not its work.")


# Tables of a card -----------------------------------------------------------------------------------

def experiment_table(data, experiment, memory):
    rows = []
    for method, value in itertools.product(data.methods(experiment.key, memory),
                                           experiment.values):
        cell = data.cell(experiment.key, value, method, memory)
        if cell:
            rows.append([html.swatch(method) + html.text(ALL_METHODS[method].short),
                         html.text(value_text(experiment, value))] + _figures(cell))
    head = ["Method", AXIS_LABELS[experiment.axis], "rounds", "median latency", "99 %", "99.9 %",
            "99.99 %", "bandwidth", "IOPS", "client cores", "server cores"]
    return html.details("All figures", html.table(head, rows))


def _figures(cell):
    shown = [("p50", units.latency), ("p99", units.latency), ("p99.9", units.latency),
             ("p99.99", units.latency), ("bandwidth", units.bandwidth),
             ("iops", lambda v: f"{v:,.0f}"), ("client_cores", _cores), ("server_cores", _cores)]
    rounds = str(len(cell.done)) + (f", {len(cell.failures)} failed" if cell.failures else "")
    out = [rounds]
    for metric, form in shown:
        spread = cell.get(metric)
        out.append("–" if not spread else html.text(form(spread.median)) + (
            f"<small>{html.spread(spread, form)}</small>" if spread.n > 1 else ""))
    return out


def percentile_table(data, reference, memory):
    rows = []
    for method, cell in data.row(*reference, memory).items():
        rows.append([html.swatch(method) + html.text(ALL_METHODS[method].short)]
                    + [_percentile(cell.get(p)) for p in PERCENTILE_METRICS])
    return html.details("All figures", html.table(
        ["Method"] + [f"{p[1:]} %" for p in PERCENTILE_METRICS], rows))


def _percentile(spread):
    if not spread:
        return "too few writes"
    return html.text(units.latency(spread.median)) + \
        f"<small>{html.spread(spread, units.latency)}</small>"


# The rest of the page --------------------------------------------------------------------------------

def _missing(data):
    rows = []
    for memory in MEMORIES:
        absent = [m for m in data.run["unavailable"]
                  if m["memory"] == memory and m["kind"] == "absent"]
        if absent:
            rows.append(["every method", MEMORIES[memory].label, "left out",
                         html.text(absent[0]["reason"])])
    for missing in data.run["unavailable"]:
        if missing["kind"] != "absent":
            what = "not available" if missing["kind"] == "unsupported" else "failed"
            rows.append([html.text(ALL_METHODS[missing["method"]].label),
                         MEMORIES[missing["memory"]].label, what, html.text(missing["reason"])])
    for result in data.failures:
        experiment = data.experiments[result["experiment"]]
        what = (f"{experiment.title}, {value_text(experiment, result['value'])}, round "
                f"{result['round']}: {result['reason']}")
        rows.append([html.text(ALL_METHODS[result["method"]].label),
                     MEMORIES[result["memory"]].label, "failed", html.text(what)])
    if not rows:
        return ""
    return html.section("Not measured", html.scroll(html.table(
        ["Method", "Memory", "", "Reason"], rows, left=True)))


def _machine(data):
    run = data.run
    parts = []
    memory = {f"Server memory, {m}": t for m, t in run.get("memory", {}).items()}
    client = run["machine"]
    if run.get("server_machine"):
        parts.append("<h3>Client</h3>" + html.facts(client))
        parts.append("<h3>Server</h3>" + html.facts({**run["server_machine"], **memory}))
    elif run["local"]:
        parts.append(html.facts({**client, **memory}))
    else:
        parts.append("<h3>Client</h3>" + html.facts(client))
        parts.append('<p class="sub">The server\'s machine and CPU time are not known here: '
                     "<code>rpma-compare report DIR --server serve.json</code> joins them.</p>")
    return html.section("The machine", "".join(f'<div class="panel">{p}</div>' for p in parts))


def _reproduce(data):
    groups = []
    for key, experiment in data.experiments.items():
        cells = [c for c in data.cells.values() if c.experiment == key]
        if not cells:
            continue
        inner = "".join(html.details(
            html.text(f"{value_text(experiment, c.value)}, {ALL_METHODS[c.method].label}, "
                      f"{MEMORIES[c.memory].label}"),
            f"<pre>{html.text(c.points[0]['job'])}</pre>") for c in cells)
        groups.append(html.details(html.text(f"{experiment.title} ({len(cells)} job files)"), inner))
    serve = "rpma-compare serve" + ("" if data.run["plan"]["name"] == "full" else
                                    " --quick" if data.run["plan"]["name"] == "quick"
                                    else f" --plan {data.run['plan']['name']}")
    target = data.run["target"]
    intro = (f"Start the servers with <code>{html.text(serve)} --port {target['port']} "
             f"{html.text(target['address'])}</code>, then run any of these files with "
             "<code>rpma-fio FILE</code>. They are the very files of this run; they and fio's whole "
             "JSON of every round are in <code>points/</code> beside this page.")
    return html.section("Every point again", f'<p class="sub">{intro}</p>'
                        f'<div class="panel">{"".join(groups)}</div>')


def _reading(data):
    seconds = f"{data.plan.ramp:g} s of warm-up, not counted, then {data.plan.runtime:g} s measured"
    methods = {ALL_METHODS[m].label: _meaning(data, m) for m in data.plan.methods}
    text = (f"Every measurement is one run of fio: {seconds}. A round measures every point once, "
            "methods next to each other, so that what drifts on the machine meets all of them "
            "alike. Figures are the median of the rounds; the spread is the range from the lowest "
            "to the highest round. Two figures whose ranges touch are not called different. "
            "Latency is fio's total latency, from handing the write over to its flush being "
            "answered. CPU is that of fio's process with all its threads, measured by the kernel; "
            "work of the kernel's own threads is not in it.")
    return html.section("How to read this", f'<div class="panel"><p>{html.text(text)}</p>'
                        f"{html.facts(methods)}</div>")



def _meaning(data, method):
    """What a method does, and what the engine itself said it did on each memory."""
    said = data.run.get("said", {})
    parts = [f"on {MEMORIES[memory].label} the engine said: {said[f'{method}.{memory}']}"
             for memory in data.memories if f"{method}.{memory}" in said]
    return "; ".join([ALL_METHODS[method].what] + parts)
