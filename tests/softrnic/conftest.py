# SPDX-License-Identifier: BSD-3-Clause
"""A rig on the software RNIC, whatever devices this machine has."""

import os
import shutil
import sys
from pathlib import Path

import pytest

os.environ["RPMA_RNIC"] = "soft"
sys.path[:0] = [str(Path(__file__).resolve().parent),
                str(Path(__file__).resolve().parents[1] / "system")]

import rig as rigs  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def built():
    missing = [str(path) for path in (rigs.PLUGIN, rigs.PEER, rigs.SOFTRNIC) if not path.exists()]
    assert not missing, f"build first (make tests): no {', '.join(missing)}"


@pytest.fixture
def rig(tmp_path):
    """What it started ends here; a test that passed must have left nothing."""
    made = rigs.Rig(tmp_path)
    try:
        yield made
    finally:
        faults = made.close()
        shutil.rmtree(tmp_path, ignore_errors=True)
    assert not faults, "\n".join(faults)
