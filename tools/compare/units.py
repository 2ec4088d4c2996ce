# SPDX-License-Identifier: BSD-3-Clause
"""Sizes, times and rates: read from text, and written for people."""

import re

from . import CompareError

SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
TIMES = {"ms": 0.001, "": 1, "s": 1, "m": 60, "h": 3600}


def parse_size(text):
    match = re.fullmatch(r"(\d{1,12})([kmg]?)(i?b)?", text.strip().lower())
    if not match or int(match[1]) == 0:
        raise CompareError(f"'{text}' is not a size (one is like 64, 4k or 1m)")
    return int(match[1]) * SIZES[match[2]]


def parse_time(text):
    match = re.fullmatch(r"(\d{1,7}(?:\.\d{1,3})?)(ms|s|m|h)?", text.strip().lower())
    if not match:
        raise CompareError(f"'{text}' is not a time (one is like 500ms, 10 or 2m)")
    return float(match[1]) * TIMES[match[2] or ""]


def parse_count(text, low, high):
    if not re.fullmatch(r"\d{1,9}", text.strip()) or not low <= int(text) <= high:
        raise CompareError(f"'{text}' is not a number from {low} to {high}")
    return int(text)


def significant(value, digits=3):
    """1234.5 -> '1,234'; 12.345 -> '12.3'; never an exponent."""
    if value == 0:
        return "0"
    magnitude = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:,.{max(0, digits - magnitude)}f}"


def size(octets):
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if octets >= scale and octets % scale == 0:
            return f"{octets // scale} {unit}"
    return f"{octets} B"


def fio_size(octets):
    for unit, scale in (("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)):
        if octets >= scale and octets % scale == 0:
            return f"{octets // scale}{unit}"
    return str(octets)


def latency(nanoseconds):
    if nanoseconds >= 999.5e6:
        return f"{significant(nanoseconds / 1e9)} s"
    if nanoseconds >= 9.995e6:
        return f"{significant(nanoseconds / 1e6)} ms"
    return f"{significant(nanoseconds / 1e3)} µs"


def bandwidth(octets_per_second):
    if octets_per_second >= 9.995e9:
        return f"{significant(octets_per_second / 1e9)} GB/s"
    return f"{significant(octets_per_second / 1e6)} MB/s"


def duration(seconds):
    seconds = int(round(seconds))
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
