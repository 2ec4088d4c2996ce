# SPDX-License-Identifier: BSD-3-Clause
"""The report as a browser shows it."""

import itertools
import re

import pytest
from browser import Browser

from compare import palette

# The smallest of all texts, in CSS pixels as shown; the lowest contrast, as WCAG counts it.
LEGIBLE = """(() => {
  function colour(text) {
    const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  }
  function luminance(c) {
    const [r, g, b] = [c[0], c[1], c[2]].map(v => {
      v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  function ground(element) {
    for (let e = element; e; e = e.parentElement) {
      const c = colour(getComputedStyle(e).backgroundColor);
      if (c[3] == 255) return c;
    }
    return [255, 255, 255, 255];
  }
  let size = [1e9, ''], contrast = [1e9, ''], count = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || ['SCRIPT', 'STYLE'].includes(element.tagName)) continue;
    if (!element.getClientRects().length) continue;
    const style = getComputedStyle(element), inPlot = element instanceof SVGElement;
    let pixels = parseFloat(style.fontSize);
    if (inPlot) {
      const plot = element.ownerSVGElement;
      pixels *= plot.getBoundingClientRect().width / plot.viewBox.baseVal.width;
    }
    const a = luminance(colour(inPlot ? style.fill : style.color)), b = luminance(ground(element));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (pixels < size[0]) size = [pixels, text];
    if (ratio < contrast[0]) contrast = [ratio, text];
    count++;
  }
  return {size, contrast, count};
})()"""

PLOTS = """[...document.querySelectorAll('figure svg')].map(svg => {
  const box = svg.getBoundingClientRect();
  const drawn = [...svg.querySelectorAll('path')].filter(p => {
    const b = p.getBBox(), s = getComputedStyle(p);
    return b.width > 5 && (s.fill != 'none' || s.stroke != 'none'); });
  const outside = [...svg.querySelectorAll('text')].filter(t => {
    const b = t.getBoundingClientRect();
    return b.left < box.left - 1 || b.right > box.right + 1; }).map(t => t.textContent);
  const labels = [...svg.querySelectorAll('text')].map(t => t.getBoundingClientRect());
  let overlaps = 0;
  for (let i = 0; i < labels.length; i++) for (let j = 0; j < i; j++) {
    const a = labels[i], b = labels[j];
    const w = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (w > 1 && h > 0.35 * Math.min(a.height, b.height)) overlaps++;
  }
  return {width: box.width, height: box.height, drawn: drawn.length, texts: labels.length,
          outside, overlaps};
})"""

VIEWS = [(1200, False), (1200, True), (375, False), (375, True)]


@pytest.fixture(scope="module")
def browser():
    with Browser() as started:
        yield started


@pytest.fixture(scope="module")
def page(finished):
    return finished[0] / "report.html"


@pytest.mark.parametrize("width, dark", VIEWS)
def test_the_page_opens_with_no_complaint_in_the_console(browser, page, width, dark):
    browser.open(page, width, dark)
    assert browser.complaints() == []


@pytest.mark.parametrize("width, dark", VIEWS)
def test_plots_are_not_empty_and_their_labels_are_apart_and_inside(browser, page, width, dark):
    browser.open(page, width, dark)
    plots = browser.ask(PLOTS)
    assert len(plots) == 4  # latency, its tail, bandwidth, CPU
    for plot in plots:
        assert plot["drawn"] >= 5 and plot["texts"] >= 8
        assert plot["width"] > 250 and plot["height"] > 100
        assert plot["outside"] == [] and plot["overlaps"] == 0


@pytest.mark.parametrize("width, dark", VIEWS)
def test_every_text_is_legible(browser, page, width, dark):
    browser.open(page, width, dark)
    browser.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    found = browser.ask(LEGIBLE)
    assert found["count"] > 100
    assert found["size"][0] >= (9 if width < 600 else 12), found["size"]
    assert found["contrast"][0] >= 4.5, found["contrast"]


@pytest.mark.parametrize("width", [1200, 768, 375, 320])
def test_the_page_is_never_wider_than_the_window(browser, page, width):
    browser.open(page, width)
    browser.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.ask("document.documentElement.scrollWidth") <= width


def test_light_and_dark_are_two_pages(browser, page):
    grounds = []
    for dark in (False, True):
        browser.open(page, dark=dark)
        grounds.append(browser.ask("getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[1]


def test_paper_is_white_also_for_who_prefers_dark(browser, page):
    browser.open(page, dark=True, paper=True)
    assert browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.ask(LEGIBLE)["contrast"][0] >= 4.5


def test_the_page_needs_nothing_but_itself(page):
    text = page.read_text()
    assert "<script" not in text and "@import" not in text and "<link rel=\"style" not in text
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)
    assert not re.search(r"url\((?!#)", text)


def test_names_are_unique_in_the_page(browser, page):
    browser.open(page)
    names = browser.ask("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert names and len(names) == len(set(names))


def test_the_answer_is_two_sentences(page):
    answer = re.search(r'<p class="answer">(.*?)</p>', page.read_text())[1].replace("\xa0", " ")
    assert len(re.findall(r"[a-z/B]\.(?:\s|$)|\d\.(?:\s[A-Z]|$)", answer)) == 2
    assert "APM with native flush flushes a 4 KiB write fastest" in answer


# Machado, Oliveira and Fernandes (2009), severity 1.0, for linear RGB
BLINDNESS = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
                   (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
                     (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
                   (0.004733, 0.691367, 0.303900))}


def lab(colour, matrix):
    rgb = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb]
    r, g, b = (min(1, max(0, sum(m * v for m, v in zip(row, linear)))) for row in matrix)
    x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089
    fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@pytest.mark.parametrize("scheme", [palette.LIGHT, palette.DARK], ids=["light", "dark"])
@pytest.mark.parametrize("kind", BLINDNESS)
def test_methods_are_told_apart_by_colour_or_else_by_marker(scheme, kind):
    methods = [m for m in palette.MARKERS if m != "rdma-read"]  # never in one plot with others
    assert len({palette.MARKERS[m] for m in methods}) == len(methods)
    distances = {
        (a, b): sum((x - y) ** 2 for x, y in zip(lab(scheme[a], BLINDNESS[kind]),
                                                 lab(scheme[b], BLINDNESS[kind]))) ** 0.5
        for a, b in itertools.combinations(methods, 2)}
    assert min(distances.values()) > 11, min(distances, key=distances.get)
