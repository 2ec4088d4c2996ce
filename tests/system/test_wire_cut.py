# SPDX-License-Identifier: BSD-3-Clause
"""The network goes away.  The last file of all, since it disturbs the device of the others."""

import json
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

import rig as rigs
from test_death import failed_soon, start_running

pytestmark = pytest.mark.lab

SHORT = {"rw": "randwrite", "bs": "4k", "size": "256k", "iodepth": 8, "verify": "crc32c"}
PLACE = Path("/sys/class/infiniband")


def device_and_interface():
    """The first RDMA device and the interface below it."""
    device = sorted(PLACE.iterdir())[0]
    return device.name, (device / "parent").read_text().strip()


def command(*words):
    return subprocess.run(words, check=True, timeout=rigs.LIMIT, text=True, stdout=subprocess.PIPE).stdout


def wait_for_the_port(device):
    state = PLACE / device / "ports/1/state"
    rigs.wait_until(lambda: "ACTIVE" in state.read_text(), "the RDMA port is active again")


def revive(device, interface):
    """The kernel's rxe can come out of it with its GSI QP in error, and then answers no connection
    request any more until it is made anew."""
    qps = json.loads(command("rdma", "-j", "resource", "show", "qp", "link", f"{device}/1"))
    if any(qp["type"] == "GSI" and qp["state"] == "ERR" for qp in qps):
        command("rdma", "link", "delete", device)
        command("rdma", "link", "add", device, "type", "rxe", "netdev", interface)
        wait_for_the_port(device)


@contextmanager
def link_down():
    device, interface = device_and_interface()
    command("ip", "link", "set", interface, "down")
    try:
        yield
    finally:
        command("ip", "link", "set", interface, "up")
        wait_for_the_port(device)
        revive(device, interface)


def test_link_goes_down_in_mid_run(rig, method):
    """Both sides end with an error; a job started when the link is back runs."""
    _, server, client = start_running(rig, method)
    with link_down():
        failed_soon(client)
        failed_soon(server)
    rig.run(method, **SHORT)


def test_link_is_down_at_the_start(rig, method):
    with link_down():
        client = rig.client(method, rig.port(), **SHORT, connect_timeout=2000)
        failed_soon(client)
