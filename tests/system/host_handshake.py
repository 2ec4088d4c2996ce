# SPDX-License-Identifier: BSD-3-Clause
"""On the host, two labs on one wire that loses what the end of a handshake and of a connection say.

On a loaded machine the server's kernel may also handle the handshake's last message (RTU) after the
one that ends the connection (DREQ); what the server sees is the same as when the former is lost.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

LAB = Path(__file__).resolve().parents[1] / "lab/lab"
RTU, DREQ = 0x14, 0x15  # attributes of CM messages


def lose(attribute):
    """What arrives with it is lost.  In IPv4: an IP header, UDP, BTH, DETH, a MAD with the attribute at 16."""
    return ("tc filter add dev eth0 ingress protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff "
            f"match u16 {attribute} 0xffff at 64 action drop || exit 11")


@pytest.fixture(scope="session", autouse=True)
def built():
    """The build that matters is the lab's."""


def test_client_was_served_though_its_coming_and_going_are_lost():
    jobs = ((RTU, "apm", "write"), (RTU, "apm", "read"), (RTU, "gpspm", "write"), (RTU, "gpspm", "read"),
            (DREQ, "apm", "write"), (DREQ, "gpspm", "write"))
    server = ["cd /src; modprobe -a cls_u32 act_gact sch_ingress; tc qdisc add dev eth0 clsact || exit 10"]
    client = ["cd /src"]
    lost = set()
    for number, (attribute, method, rw) in enumerate(jobs):
        job = f"--thread --port={7002 + number} --size=64k --iodepth=2"
        if attribute not in lost:
            lost.add(attribute)
            server.append(lose(attribute))
        server.append(f"timeout 90 tools/rpma-fio --name=server --ioengine=librpma_{method}_server {job} "
                      f"--serverip=$RPMA_TEST_ADDR --filename=malloc || exit 2{number}")
        client.append(f"tools/rpma-fio --name=client --ioengine=librpma_{method}_client {job} "
                      f"--serverip=$LAB_PEER_ADDR --rw={rw} --bs=4k --connect_timeout=80000 || exit 3{number}")
    server.append("tc -s filter show dev eth0 ingress | grep dropped")
    done = subprocess.run([LAB, "run2", "--time-limit", "400", "\n".join(server), "\n".join(client)],
                          capture_output=True, text=True, timeout=900, check=False, env=dict(os.environ))
    said = done.stdout + done.stderr
    assert "server: exit status 0, client: exit status 0" in said, said
    dropped = [int(count) for count in re.findall(r"dropped (\d+)", done.stdout)]
    assert sum(dropped) >= len(jobs) + 2, said  # each RTU, and both DREQs
