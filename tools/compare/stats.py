# SPDX-License-Identifier: BSD-3-Clause
"""Median and spread of a point's rounds, and when two of them truly differ.

The spread is the range from the lowest to the highest round.  Two points differ only when their
ranges do not touch; else the difference is inside the spread and nobody may call it one.
"""

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    median: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values):
        values = [v for v in values if v is not None]
        if not values:
            return None
        return cls(statistics.median(values), min(values), max(values), len(values))


LOWER, HIGHER, INSIDE, UNKNOWN = "lower", "higher", "inside", "unknown"


def compare(a, b):
    """How a stands to b: LOWER, HIGHER, INSIDE the spread, or UNKNOWN with fewer than 2 rounds."""
    if a.n < 2 or b.n < 2:
        return UNKNOWN
    if a.high < b.low:
        return LOWER
    if a.low > b.high:
        return HIGHER
    return INSIDE


def ratio(a, b):
    """a / b by medians, at least 1 way round, or None where that means nothing."""
    if not a.median or not b.median:
        return None
    return max(a.median, b.median) / min(a.median, b.median)
