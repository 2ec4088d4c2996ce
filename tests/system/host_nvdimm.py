# SPDX-License-Identifier: BSD-3-Clause
"""On the host, when the lab is off: what clients wrote is in the files behind its NVDIMMs."""

import json
import mmap
import os
import struct
from pathlib import Path

import pytest

BLOCK = 4096


def offsets_found(image, marker):
    """The offset in each whole block of the image that consists of marker and offset alone."""
    found = []
    with open(image, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(marker)
        while at >= 0:
            block = data[at:at + BLOCK]
            unit = block[:len(marker) + 8]
            if at % BLOCK == 0 and block == (unit * (BLOCK // len(unit) + 1))[:BLOCK]:
                found.append(struct.unpack_from("<Q", unit, len(marker))[0])
            at = data.find(marker, at + BLOCK - at % BLOCK)
    return found


def notes():
    """What was left, and where: one note for each method and memory that the lab's device takes."""
    return sorted(Path(os.environ.get("LAB_RESULTS", ".")).glob("left-*.json"))


@pytest.fixture(scope="session", autouse=True)
def built():
    """Nothing of this machine's build is needed to look at files."""


@pytest.mark.parametrize("path", notes(), ids=lambda path: path.stem)
def test_what_the_client_wrote_is_in_the_nvdimms_file(path):
    note = json.loads(path.read_text())
    image = Path(os.environ["LAB_NVDIMM"]) / note["image"]
    wanted = [note["first"] + n * BLOCK for n in range(note["blocks"])]
    assert sorted(offsets_found(image, note["marker"].encode())) == wanted


def test_both_methods_left_data_on_device_dax():
    assert {"left-apm-devdax", "left-gpspm-devdax"} <= {path.stem for path in notes()}
