# SPDX-License-Identifier: BSD-3-Clause
"""One run laid over another: the plots in one frame, and what differs beyond the spread."""

import time

from . import CompareError, answer, html, plots, report, units
from .cells import AXIS_LABELS, MAIN_METRIC, Data, value_text
from .methods import ALL_METHODS, MEMORIES
from .stats import HIGHER, INSIDE, LOWER, UNKNOWN, compare
from .store import Store

TITLE = "Two runs compared"


def write(a, b, output):
    datas = []
    for folder in (a, b):
        store = Store.open(folder)
        datas.append(Data(store.run, list(store.results())))
    shared = shared_cells(*datas)
    if not shared:
        raise CompareError(f"{a} and {b} have no point in common")
    try:
        output.write_text(page(datas, shared, (a, b)), encoding="utf-8")
    except OSError as error:
        raise CompareError(f"{output}: {error.strerror}") from None
    return output.resolve()


def shared_cells(a, b):
    """[(cell of a, cell of b)] of the points both measured alike."""
    pairs = []
    for key, cell in a.cells.items():
        other = b.cells.get(key)
        if other and cell.done and other.done and _alike(cell, other):
            pairs.append((cell, other))
    return pairs


def _alike(a, b):
    one, two = a.points[0], b.points[0]
    return all(one[n] == two[n] for n in ("rw", "block_size", "iodepth", "threads", "rate"))


def page(datas, shared, folders):
    parts = [_header(datas, folders), _summary(datas[0], shared), _table(datas[0], shared)]
    cards = [card for experiment in datas[0].plan.experiments
             if any(a.experiment == experiment.key for a, _ in shared)
             for card in _cards(datas, experiment, shared)]
    parts.append(html.section("One over the other", html.grid(cards),
                              "A full line and filled markers are A; a dotted line and hollow "
                              "markers are B."))
    parts.append(_machines(datas))
    return html.document(TITLE, "\n".join(parts))


def _header(datas, folders):
    lines = []
    for name, data, folder in zip("AB", datas, folders):
        began = time.strftime("%d %B %Y, %H:%M", time.localtime(data.run["began"]))
        lines.append(f"{name}: {folder}, {began}, {data.run['machine'].get('Host', '')}, "
                     f"{data.rounds} rounds.")
    return (f'<header><p class="kind">rpma-compare diff</p><h1>{TITLE}</h1>'
            + "".join(f'<p class="sub">{html.text(line)}</p>' for line in lines) + "</header>")


def judged(data, shared):
    """[(cell a, cell b, metric, verdict)], the verdict BETTER, WORSE, INSIDE or UNKNOWN of b."""
    rows = []
    for a, b in shared:
        metric = MAIN_METRIC[data.experiments[a.experiment].metric]
        if a.get(metric) and b.get(metric):
            how = compare(b.get(metric), a.get(metric))
            good = LOWER if answer.LOWER_IS_BETTER[metric] else HIGHER
            rows.append((a, b, metric, how if how in (INSIDE, UNKNOWN)
                         else "better" if how == good else "worse"))
    return rows


def _summary(data, shared):
    rows = judged(data, shared)
    count = {kind: sum(r[3] == kind for r in rows)
             for kind in ("better", "worse", INSIDE, UNKNOWN)}
    text = (f"Of {len(rows)} points that both runs have, B is better in {count['better']}, worse in "
            f"{count['worse']}, and in {count[INSIDE]} the difference is inside the spread.")
    if count[UNKNOWN]:
        text += f" Of {count[UNKNOWN]} the spread is not known (one round)."
    changed = [r for r in rows if r[3] in ("better", "worse")]
    if changed:
        a, b, metric, how = max(changed, key=lambda r: _factor(r[0], r[1], r[2]))
        text += (f" The largest change: {ALL_METHODS[a.method].phrase}, "
                 f"{data.experiments[a.experiment].title.lower()}, "
                 f"{value_text(data.experiments[a.experiment], a.value)}: {how} by a factor of "
                 f"{units.significant(_factor(a, b, metric))}.")
    return f'<p class="answer">{html.prose(text)}</p>'


def _factor(a, b, metric):
    low, high = sorted((a.get(metric).median, b.get(metric).median))
    return high / low if low else 0


def _table(data, shared):
    words = {"better": "better", "worse": '<span class="up">worse</span>',
             INSIDE: '<span class="same">inside the spread</span>',
             UNKNOWN: '<span class="same">spread not known</span>'}
    rows = []
    for a, b, metric, how in judged(data, shared):
        experiment, form = data.experiments[a.experiment], answer.TEXT[metric]
        x, y = a.get(metric), b.get(metric)
        change = (y.median / x.median - 1) * 100 if x.median else 0
        what = f"{experiment.title}<small>{value_text(experiment, a.value)}, " \
               f"{MEMORIES[a.memory].label}</small>"
        rows.append([html.swatch(a.method) + html.text(ALL_METHODS[a.method].short), what,
                     _cell(x, form), _cell(y, form), f"{change:+.1f} %", words[how]])
    head = ["Method", "point", "A", "B", "change", "B is"]
    return html.section("Point by point", html.scroll(html.table(head, rows)))


def _cell(spread, form):
    return html.text(form(spread.median)) + f"<small>{html.spread(spread, form)}</small>"


def _cards(datas, experiment, shared):
    metric = MAIN_METRIC[experiment.metric]
    for memory in datas[0].memories:
        cells = [pair for pair in shared
                 if pair[0].experiment == experiment.key and pair[0].memory == memory]
        if not cells:
            continue
        if report.is_bars(experiment):
            figure = _bars(experiment, cells, metric)
        else:
            figure = plots.lines(datas, experiment, memory, metric, AXIS_LABELS[experiment.axis])
        yield html.card(f"{experiment.title}, {MEMORIES[memory].label}",
                        "A full, B dotted" if not report.is_bars(experiment)
                        else "A and B", figure or "", "", "")


def _bars(experiment, pairs, metric):
    rows = []
    for pair in pairs:
        for name, cell in zip("AB", pair):
            if cell.get(metric):
                value = value_text(experiment, cell.value).replace("CPUs ", "")
                rows.append(report.bar_row(cell, cell.method, f"{value} {name}", metric))
    return plots.bars(rows, plots.UNITS[metric])


def _machines(datas):
    return html.section("The machines", "".join(
        f'<div class="panel"><h3>{name}</h3>{html.facts(data.run["machine"])}</div>'
        for name, data in zip("AB", datas)))
