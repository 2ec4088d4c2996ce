# SPDX-License-Identifier: BSD-3-Clause
"""A call of ours takes no more instructions than the same call of Debian's librpma."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import librpma_cost  # noqa: E402

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", params=["read", "native"])
def rows(request):
    result = librpma_cost.compare(TOP / os.environ.get("BUILD", "build"), request.param)
    text = librpma_cost.table(result, request.param)
    print(text)
    if "TEST_TABLE" in os.environ:
        with open(os.environ["TEST_TABLE"], "a") as table:
            table.write(text + "\n")
    return {name: (ours, theirs) for name, ours, theirs in result}


@pytest.mark.parametrize("operation", [name for name in librpma_cost.OPERATIONS
                                       if name not in librpma_cost.ONLY_OURS])
def test_takes_no_more_instructions_than_debians_librpma(rows, operation):
    ours, theirs = rows[operation]
    assert 0 < ours <= theirs


def test_a_batched_write_takes_less_than_a_write_of_debians_librpma(rows):
    ours, _ = rows["batched_write"]
    _, theirs = rows["write"]
    assert 0 < ours < theirs
