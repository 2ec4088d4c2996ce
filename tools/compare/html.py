# SPDX-License-Identifier: BSD-3-Clause
"""Pieces of the page."""

import re
from html import escape
from pathlib import Path

from . import palette

MARKS = {  # the plots' markers, as small drawings of 12 x 12
    "o": '<circle cx="6" cy="6" r="5"/>', "s": '<rect x="1.5" y="1.5" width="9" height="9"/>',
    "^": '<path d="M6 1 11 10.5H1z"/>', "v": '<path d="M6 11 1 1.5h10z"/>',
    "D": '<path d="M6 .5 11.5 6 6 11.5.5 6z"/>'}


def text(value):
    return escape(str(value), quote=True)


def prose(value):
    """Text whose numbers keep their units, and whose factors their signs, on the same line."""
    return re.sub(r"(?<=\d) (?=[µm]?s\b|[MGK]?i?B\b)|(?<=[×÷]) (?=\d)", "\u00a0", text(value))


def style():
    sheet = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")
    light, dark = palette.css(palette.LIGHT), palette.css(palette.DARK)
    return (f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
            f"{sheet}\n@media print {{ :root {{ {light} --wash: #fff; --rule: #ccc; --mark: #fff; "
            "} }")


def document(title, body):
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<link rel="icon" href="data:,">\n'
            f"<title>{text(title)}</title>\n<style>\n{style()}\n</style>\n</head>\n<body>\n<main>\n"
            f"{body}\n</main>\n</body>\n</html>\n")


def section(title, body, sub=""):
    sub = f'<p class="sub">{text(sub)}</p>' if sub else ""
    return f"<section><h2>{text(title)}</h2>{sub}{body}</section>"


def grid(cards):
    return f'<div class="grid">{"".join(cards)}</div>'


def card(title, sub, figure, verdict, more):
    verdict = f'<p class="verdict">{prose(verdict)}</p>' if verdict else ""
    figure = figure.replace('role="img"', f'role="img" aria-label="{text(title)}"', 1)
    return (f'<article class="card"><h3>{text(title)}</h3><p class="sub">{text(sub)}</p>'
            f"<figure style=\"margin:0\">{figure}</figure>{verdict}{more}</article>")


def scroll(inner):
    return f'<div class="scroll" tabindex="0">{inner}</div>'


def table(head, rows, left=False):
    kind = ' class="why"' if left else ""
    body = "".join("<tr>" + "".join(f"<td{kind if i else ''}>{cell}</td>"
                                    for i, cell in enumerate(row)) + "</tr>" for row in rows)
    align = ' style="text-align:left"' if left else ""
    top = "".join(f"<th{align}>{text(name)}</th>" for name in head)
    out = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return out


def details(summary, inner):
    if inner.startswith("<table"):
        inner = scroll(inner)
    return f"<details><summary>{summary}</summary>{inner}</details>"


def facts(items):
    return "<dl>" + "".join(f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in items.items()) \
        + "</dl>"


def swatch(method):
    mark = MARKS[palette.MARKERS[method]]
    return (f'<svg class="key" viewBox="0 0 12 12" aria-hidden="true" '
            f'fill="var(--{method})">{mark}</svg>')


def spread(value, form):
    """'18.2 – 19.1 µs': the unit once where both have the same."""
    low, high = form(value.low), form(value.high)
    if low == high:
        return text(low)
    unit = high.rpartition(" ")[2]
    if " " in high and low.endswith(f" {unit}"):
        low = low[: -len(unit) - 1]
    return text(f"{low} – {high}")
