# SPDX-License-Identifier: BSD-3-Clause
"""One run laid over another."""

import json

from browser import Browser


def slower(source, target, factor):
    """A copy of a run in which every latency of APM read is factor times as high."""
    target.mkdir()
    (target / "run.json").write_text((source / "run.json").read_text())
    for path in (source / "points").glob("*/point.json"):
        point = json.loads(path.read_text())
        if point["method"] == "apm-read":
            for name in ("p50", "p99", "mean"):
                point["figures"]["write"][name] *= factor
        folder = target / "points" / path.parent.name
        folder.mkdir(parents=True)
        (folder / "point.json").write_text(json.dumps(point))
    return target


def test_what_changed_beyond_the_spread_is_named_and_nothing_else(tool, finished):
    other = slower(finished[0], tool.folder / "b", 2)
    out, _ = tool.run("diff", finished[0], other, "--output", "diff.html")
    text = (tool.folder / "diff.html").read_text()
    assert out.strip() == str(tool.folder / "diff.html")
    assert "B is better in 0, worse in 1, and in 14 the difference is inside the spread" in text
    assert "APM with read-based flush" in text and "worse by a factor of 2.00" in text
    assert "+100.0 %" in text


def test_a_run_laid_over_itself_shows_no_difference(tool, finished):
    tool.run("diff", finished[0], finished[0], "--output", "diff.html")
    assert "better in 0, worse in 0" in (tool.folder / "diff.html").read_text()


def test_both_runs_are_drawn(tool, finished):
    other = slower(finished[0], tool.folder / "b", 2)
    tool.run("diff", finished[0], other, "--output", "diff.html")
    with Browser() as browser:
        browser.open(tool.folder / "diff.html")
        assert browser.complaints() == []
        lines = browser.ask("""[...document.querySelectorAll('figure svg')].map(svg =>
            [...svg.querySelectorAll('g[id*=line2d] > path')].filter(p =>
                p.style.strokeDasharray && p.getBBox().width > 50).length)""")
        assert lines[1] >= 5  # writes in flight: a dotted line for each method of B


def test_runs_with_nothing_in_common_are_told_so(tool, finished):
    tool.run("run", "--plan", tool.plan("[run]\nrounds=1\nruntime=200ms\nmemories=dram\n"
                                        "methods=apm-read\n[latency-rand]\nvalues=64\n"),
             "--output", "b")
    _, messages = tool.run("diff", finished[0], "b", status=2)
    assert messages.strip().endswith("b have no point in common")
