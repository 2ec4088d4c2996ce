# SPDX-License-Identifier: BSD-3-Clause
"""What only a machine with kernel RDMA and NVDIMMs can show."""

import json
import os
import signal
from pathlib import Path

import pytest

import rig as rigs
from test_errors import refused

pytestmark = pytest.mark.lab

SHORT = {"rw": "randwrite", "bs": "4k", "size": "256k", "iodepth": 8, "verify": "crc32c"}
def test_native_flush_is_used_on_device_dax(rig):
    port = rig.port()
    server = rig.server("apm", port, filename=rigs.DEVDAX)
    client = rig.client("apm", port, **SHORT, flush_mode="native").ok()
    server.ok()
    assert "native" in client.err.text, client


def test_process_after_a_thread_is_told_why_the_kernel_refuses_it(rig, method):
    port = rig.port()
    server = rig.server(method, port, clients=2)
    jobs = [("thread", rig.client_options(method, port, **SHORT, thread=True)),
            # the port of a job goes up with its number in the file
            ("process", {"stonewall": True,
                         **rig.client_options(method, port - 1, **SHORT, thread=False)})]
    refused(rig.fio("client", jobs), "give all jobs thread=1")
    server.signal(signal.SIGINT)
    server.wait()


@pytest.mark.skipif("fsdax" in rigs.MEMORIES or not rigs.FSDAX, reason="this device can")
def test_device_without_on_demand_paging_refuses_fsdax_with_the_reason(rig, method):
    path = Path(rigs.FSDAX) / "refused"
    path.write_bytes(bytes(1 << 20))
    try:
        refused(rig.server(method, rig.port(), filename=path, size="1m"), "on-demand paging")
    finally:
        path.unlink()


@pytest.mark.parametrize("kind", [kind for kind in rigs.MEMORIES if kind != "dram"])
def test_leaves_data_for_the_host_to_find_in_the_nvdimms_file(rig, method, kind):
    """host_nvdimm.py looks for it when the machine is off."""
    if kind == "devdax":
        # where no other test works
        filename, place = rigs.DEVDAX, {"apm": "184m", "gpspm": "188m"}[method]
    else:
        filename, place = Path(rigs.FSDAX) / f"left-for-the-host-{method}", "0"
        with open(filename, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 2 << 20)
    port = rig.port()
    server = rig.server(method, port, filename=filename,
                        size="192m" if kind == "devdax" else "2m")
    client = rig.client(method, port, rw="randwrite", bs="4k", size="1m", offset=place,
                        iodepth=16, verify="pattern", verify_pattern=f'"{method} {kind} "%o').ok()
    server.ok()
    assert client.job["write"]["total_ios"] == 256
    note = Path(os.environ["RESULTS"]) / f"left-{method}-{kind}.json"
    note.write_text(json.dumps({"image": f"{kind}.img", "marker": f"{method} {kind} ",
                                "first": rigs.bytes_of(place), "blocks": 256}))
