# SPDX-License-Identifier: BSD-3-Clause
"""Spreads further factors over given rows, so that every pair of values of any two occurs."""

import itertools
import random


def _pairs(row):
    return set(itertools.combinations(sorted(row.items()), 2))


def _open_pairs(factors, allowed):
    wanted = set()
    for (a, values_a), (b, values_b) in itertools.combinations(sorted(factors.items()), 2):
        for x, y in itertools.product(values_a, values_b):
            if allowed({a: x, b: y}):
                wanted.add(((a, x), (b, y)))
    return wanted


def complete(bases, factors, allowed=lambda row: True, tries=20):
    """Gives each base row values of the other factors, so that pairs are covered early.

    `factors` maps every factor's name to its values.  `allowed` judges whole and partial rows.
    """
    choice = random.Random(1)
    wanted = _open_pairs(factors, allowed)
    rows = []
    for base in bases:
        free = {name: values for name, values in factors.items() if name not in base}
        best, best_gain = None, -1
        for _ in range(tries):
            row = {**base, **{name: choice.choice(values) for name, values in free.items()}}
            gain = len(_pairs(row) & wanted)
            if allowed(row) and gain > best_gain:
                best, best_gain = row, gain
        assert best is not None, f"no allowed row with {base}"
        wanted -= _pairs(best)
        rows.append(best)
    return rows, wanted
