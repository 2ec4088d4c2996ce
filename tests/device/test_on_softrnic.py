# SPDX-License-Identifier: BSD-3-Clause
"""The programs of this folder, on the software RNIC; the lab runs them on the kernel's device."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "system"))
import rig  # noqa: E402

PROGRAMS = sorted(path.stem for path in Path(__file__).parent.glob("librpma_*.c"))
LIMIT = 120  # seconds


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_passes_on_the_software_rnic(program):
    result = subprocess.run([rig.BUILD / "tests" / "device" / program], timeout=LIMIT, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env={**os.environ, "LD_PRELOAD": rig.preload(),
                                 "RPMA_TEST_ADDR": "127.0.0.1"})
    print(result.stdout)
    assert result.returncode == 0
    assert "[  PASSED  ]" in result.stdout
