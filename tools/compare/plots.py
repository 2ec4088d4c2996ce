# SPDX-License-Identifier: BSD-3-Clause
"""The figures, by matplotlib, as SVG for a page: text stays text, colours are the page's."""

import io
import math
import re

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from . import units
from .cells import PERCENTILE_METRICS, value_text
from .methods import ALL_METHODS
from .palette import DASHES, MARKERS, STAND_INS

WIDTH, HEIGHT = 4.8, 3.2  # inches; 346 x 230 points, what a phone shows about 1:1
FONT = 11
LABEL_ROOM = 0.29  # of the width, for the methods' names at the ends of their lines
LABEL_STEP = 13.5  # points between two of those names

matplotlib.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "rpma-compare", "font.size": FONT,
    "font.family": "DejaVu Sans", "axes.linewidth": 0.8, "lines.linewidth": 1.9,
    "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
    "xtick.labelsize": FONT - 0.5, "ytick.labelsize": FONT - 0.5, "xtick.major.size": 3,
    "ytick.major.size": 0, "figure.facecolor": "none", "axes.facecolor": "none"})

SCALES = {"p50": 1e3, "bandwidth": 1e6, "cpu": 1e3}
UNITS = {"p50": "µs", "bandwidth": "MB/s", "cpu": "µs"}


def ink(name):
    return STAND_INS[name]


def _axes(height=HEIGHT, left=0.115, right=1 - LABEL_ROOM, bottom=0.185, top=0.9):
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.add_axes((left, bottom, right - left, top - bottom))
    axes.tick_params(colors=ink("muted"), labelcolor=ink("muted"))
    axes.spines["bottom"].set_color(ink("muted"))
    axes.set_axisbelow(True)
    return figure, axes


def _unit(axes, text):
    axes.annotate(text, (0, 1), xycoords="axes fraction", xytext=(-4, 9),
                  textcoords="offset points", ha="right", va="bottom", color=ink("muted"))


def _log_ticks(low, high):
    """1, 2 and 5 of every decade, thinned so that a few remain."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [s * 10.0 ** d for d in decades for s in steps if low <= s * 10.0 ** d <= high]
        if len(ticks) <= 7:
            break
    return ticks


def _value_axis(axes, values, log):
    if log:
        low, high = min(values) / 1.25, max(values) * 1.25
        axes.set_yscale("log")
        axes.set_ylim(low, high)
        axes.yaxis.set_major_locator(FixedLocator(_log_ticks(low, high)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, max(values) * 1.08)
        axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: _tick(v)))
    axes.grid(axis="y", color=ink("grid"), linewidth=0.8)


def _tick(value):
    if value >= 100000:
        return f"{value / 1000:,.0f}k"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


def _spread_apart(wanted, low, high, step):
    """Positions as near to the wanted ones as a distance of step between them allows."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = [wanted[i] for i in order]
    for _ in range(60):
        for i in range(1, len(placed)):
            overlap = step - (placed[i] - placed[i - 1])
            if overlap > 0:
                placed[i] += overlap / 2
                placed[i - 1] -= overlap / 2
        if placed:
            placed[0] = max(placed[0], low)
            placed[-1] = min(placed[-1], high)
    out = [0.0] * len(wanted)
    for position, i in zip(placed, order):
        out[i] = position
    return out


def _end_labels(axes, ends):
    """Names at the ends of lines: ends is [(method, x, y)]."""
    if not ends:
        return
    scale = 72 / axes.figure.dpi
    box = axes.get_window_extent()
    at = [axes.transData.transform((x, y)) for _, x, y in ends]
    placed = _spread_apart([p[1] * scale for p in at], box.y0 * scale + 2, box.y1 * scale + 4,
                           LABEL_STEP)
    right = box.x1 * scale + 9
    for (method, x, y), point, position in zip(ends, at, placed):
        offset = (right - point[0] * scale, position - point[1] * scale)
        axes.annotate(ALL_METHODS[method].short, (x, y), xytext=offset,
                      textcoords="offset points", va="center", color=ink(method),
                      arrowprops={"arrowstyle": "-", "color": ink(method), "alpha": 0.45,
                                  "linewidth": 0.7, "shrinkA": 1, "shrinkB": 5,
                                  "relpos": (0, 0.5)})


def _draw_line(axes, xs, spreads, method, scale, hollow=False):
    """One method's line with its spread; gaps where a point is missing."""
    def values(name):
        return [getattr(s, name) / scale if s else math.nan for s in spreads]
    line = dict(color=ink(method), marker=MARKERS[method], markersize=7,
                linestyle=(0, (1.5, 1.5)) if hollow else DASHES.get(method, "-"),
                markerfacecolor=ink("paper") if hollow else ink(method),
                markeredgecolor=ink(method) if hollow else ink("paper"), markeredgewidth=1.1 if hollow else 0.8)
    axes.fill_between(xs, values("low"), values("high"), color=ink(method), alpha=0.16,
                      linewidth=0)
    axes.plot(xs, values("median"), **line)


def _x_axis(axes, labels, name):
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlim(-0.25, len(labels) - 0.75)
    axes.set_xlabel(name, color=ink("muted"), labelpad=5)


def _short_value(experiment, value):
    if experiment.axis == "block_size":
        return units.size(value).replace(" B", "").replace("iB", "").replace(" ", "")
    return value_text(experiment, value)


def value_range(datas, experiment, metric, memories):
    """All values one experiment shows, so that its figures share a scale."""
    return [v / SCALES[metric] for data in datas for c in data.cells.values()
            if c.experiment == experiment.key and c.memory in memories and c.get(metric)
            and c.value in experiment.values
            for v in (c.get(metric).low, c.get(metric).high) if v > 0]


def lines(datas, experiment, memory, metric, axis_name, memories=None):
    """Lines over an experiment's axis; of a second data set hollow and dotted over the first."""
    values = value_range(datas, experiment, metric, memories or [memory])
    if not values:
        return None
    figure, axes = _axes()
    xs = list(range(len(experiment.values)))
    _x_axis(axes, [_short_value(experiment, v) for v in experiment.values], axis_name)
    _value_axis(axes, values, experiment.axis == "block_size")
    ends, failed = {}, []
    for number, data in enumerate(datas):
        for method in data.methods(experiment.key, memory):
            cells = [data.cell(experiment.key, v, method, memory) for v in experiment.values]
            spreads = [c.get(metric) if c else None for c in cells]
            _draw_line(axes, xs, spreads, method, SCALES[metric], hollow=number == 1)
            there = [i for i in xs if spreads[i]]
            if there and method not in ends:
                ends[method] = (there[-1], spreads[there[-1]].median / SCALES[metric])
            failed += [(i, method) for i in xs if cells[i] and not cells[i].done]
    for i, method in failed:
        axes.plot([i], [0.03], marker="x", markersize=7, markeredgewidth=2, color=ink(method),
                  transform=axes.get_xaxis_transform(), clip_on=False)
    _unit(axes, UNITS[metric])
    _end_labels(axes, [(m, x, y) for m, (x, y) in ends.items()])
    return svg(figure)


def percentiles(data, key, value, memory):
    """Median and tail of one point, method by method."""
    row = {m: c for m, c in data.row(key, value, memory).items() if c.get("p50")}
    shown = [p for p in PERCENTILE_METRICS if any(c.get(p) for c in row.values())]
    if len(shown) < 2:
        return None
    figure, axes = _axes()
    _x_axis(axes, [p[1:] for p in shown], "percentile of the writes")
    values = [v / 1e3 for c in row.values() for p in shown if c.get(p)
              for v in (c.get(p).low, c.get(p).high)]
    _value_axis(axes, values, True)
    xs, ends = list(range(len(shown))), []
    for method, cell in row.items():
        spreads = [cell.get(p) for p in shown]
        _draw_line(axes, xs, spreads, method, 1e3)
        last = max(i for i in xs if spreads[i])
        ends.append((method, last, spreads[last].median / 1e3))
    _unit(axes, "µs")
    _end_labels(axes, ends)
    return svg(figure)


def bars(rows, unit, height_of_row=0.36):
    """Horizontal bars.  rows: [(method, note, [(value, strength), ...], text, low, high)]; values
    of one bar follow one another, each the fainter the less its strength."""
    if not rows:
        return None
    height = height_of_row * len(rows) + 0.55
    noted = any(note for _, note, *_ in rows)
    figure, axes = _axes(height=height, left=0.42 if noted else 0.30, right=0.84,
                         bottom=0.42 / height,
                         top=1 - 0.08 / height)
    most = max(max(sum(v for v, _ in r[2]), r[5]) for r in rows)
    previous = None
    for i, (method, note, parts, text, low, high) in enumerate(rows):
        begin = 0
        for value, strength in parts:
            axes.barh(i, value, left=begin, height=0.62, color=ink(method), alpha=strength,
                      linewidth=0)
            begin += value
        if high > low:
            axes.plot([low, high], [i, i], color=ink("ink"), linewidth=1.1, solid_capstyle="butt")
        axes.annotate(text, (max(begin, high), i), xytext=(5, 0), textcoords="offset points",
                      va="center", color=ink("ink"))
        name = ALL_METHODS[method].short if method != previous else ""
        label = f"{name}, {note}" if name and note else name or note
        axes.annotate(label, (0, i), xytext=(-6, 0), textcoords="offset points", ha="right",
                      va="center", color=ink(method))
        previous = method
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, most * 1.02 or 1)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: _tick(v)))
    axes.grid(axis="x", color=ink("grid"), linewidth=0.8)
    axes.set_xlabel(unit, color=ink("muted"), labelpad=3)
    return svg(figure)


_count = 0


def svg(figure):
    """A figure as an SVG element of a page, its names its own, its colours the page's."""
    global _count
    _count += 1
    sink = io.StringIO()
    figure.savefig(sink, format="svg", metadata={"Date": None, "Creator": None,
                                                  "Format": None, "Type": None})
    text = sink.getvalue()
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r'^<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" role="img">', text,
                  flags=re.S)
    text = re.sub(r'\bid="', f'id="f{_count}-', text)
    text = re.sub(r'url\(#', f'url(#f{_count}-', text)
    text = re.sub(r'xlink:href="#', f'href="#f{_count}-', text)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    for name, colour in STAND_INS.items():
        text = text.replace(colour, f"var(--{name})")
    return text
