# SPDX-License-Identifier: BSD-3-Clause
"""memcheck again where the verbs headers have native flush and atomic write: what is built there only."""

import pytest
from test_valgrind import PROGRAMS, test_memcheck_finds_nothing as memcheck

NATIVE = [path for path in PROGRAMS if path.name in ("librpma_native", "librpma_flush", "librpma_batch")]


def test_the_programs_are_there():
    assert len(NATIVE) == 3


@pytest.mark.parametrize("program", NATIVE, ids=lambda path: path.name)
def test_memcheck_finds_nothing_in_native_operations(program):
    memcheck(program)
