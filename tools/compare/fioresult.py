# SPDX-License-Identifier: BSD-3-Clause
"""What one fio run said: its JSON made into figures, its messages into one reason."""

import json
import re

from .jobs import PERCENTILES

# Lines of the engines and of rpma-fio that say how things are, not what went wrong.
NOTE = re.compile(r"using the software RNIC|: connected to |: waiting up to |: listening on ")

TAIL_SAMPLES = 3  # I/Os that must lie beyond a percentile for it to mean something


class FioFailed(Exception):
    """fio gave no figures; the text says why."""


def parse(text):
    """The JSON document in fio's output, which may have lines of text around it."""
    start = text.find("{\n")
    if start < 0:
        raise FioFailed("fio wrote no result")
    try:
        document, _ = json.JSONDecoder().raw_decode(text[start:])
        job = document["jobs"][0]
    except (ValueError, KeyError, IndexError, TypeError):
        raise FioFailed("fio's result is not the JSON expected") from None
    return document, job


def _direction(data):
    figures = {"iops": float(data["iops"]), "bandwidth": float(data["bw_bytes"]),
               "ios": int(data["total_ios"]), "mean": float(data["lat_ns"]["mean"])}
    measured = {float(k): float(v) for k, v in data["lat_ns"].get("percentile", {}).items()}
    for percentile in PERCENTILES:
        beyond = figures["ios"] * (100 - percentile) / 100
        if percentile in measured and beyond >= TAIL_SAMPLES:
            figures[f"p{percentile:g}"] = measured[percentile]
    return figures


def figures(text):
    """{'read': {...}, 'write': {...}, 'iops', 'bandwidth'} of the directions that did I/O.

    Latencies are in nanoseconds, bandwidth in octets a second."""
    document, job = parse(text)
    try:
        if job.get("error"):
            raise FioFailed(f"fio reports error {job['error']}")
        result = {name: _direction(job[name]) for name in ("read", "write")
                  if job[name]["total_ios"]}
    except (KeyError, TypeError, ValueError):
        raise FioFailed("fio's result lacks a figure expected in it") from None
    if not result:
        raise FioFailed("fio did no I/O in the time given")
    result["iops"] = sum(d["iops"] for d in result.values())
    result["bandwidth"] = sum(d["bandwidth"] for k, d in result.items() if k != "iops")
    result["fio"] = str(document.get("fio version", ""))
    return result


def reason(messages, fallback):
    """The line of fio's stderr that tells most: the engine's last word, else fio's first."""
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    lines = [line for line in lines if not NOTE.search(line)]
    ours = [line for line in lines if line.startswith("librpma")]
    chosen = ours[-1] if ours else lines[0] if lines else fallback
    chosen = re.sub(r"^(librpma_\w+): \S+\.\S+: ", r"\1: ", chosen)  # the job's name says nothing new
    return chosen if len(chosen) <= 300 else chosen[:299] + "…"


def flush_said(messages):
    """What the client said on the way it flushes, or ''."""
    found = re.search(r": connected to .*; flush: (.+)", messages)
    return found[1].strip() if found else ""
