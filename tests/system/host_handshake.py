# SPDX-License-Identifier: BSD-3-Clause
"""On the host, two labs on one wire: a client whose last message of the handshake is lost.

On a loaded machine the server's kernel may also handle that message (RTU) after the client's
goodbye; what the server sees is the same: a connection that ends before it was established.
"""

import os
import subprocess
from pathlib import Path

import pytest

LAB = Path(__file__).resolve().parents[1] / "lab/lab"
# RoCEv2 in IPv4: an IP header, UDP, BTH, DETH, then a MAD whose attribute is at 16
RTU_IS_LOST = """
    modprobe -a cls_u32 act_gact sch_ingress
    tc qdisc add dev eth0 clsact || exit 11
    tc filter add dev eth0 egress protocol ip u32 match ip protocol 17 0xff \\
        match ip dport 4791 0xffff match u16 0x0014 0xffff at 64 action drop || exit 12"""
DROPPED = """tc -s filter show dev eth0 egress | grep -q 'dropped [1-9]' || exit 13"""


@pytest.fixture(scope="session", autouse=True)
def built():
    """The build that matters is the lab's."""


def test_client_that_is_done_before_the_server_saw_it_come_was_served():
    jobs = (("apm", "write"), ("apm", "read"), ("gpspm", "read"))  # a GPSPM server answers each write
    server = ["cd /src"]
    client = ["cd /src", RTU_IS_LOST]
    for number, (method, rw) in enumerate(jobs):
        job = f"--thread --port={7002 + number} --size=64k --iodepth=2"
        server.append(f"timeout 30 tools/rpma-fio --name=server --ioengine=librpma_{method}_server {job} "
                      f"--serverip=$RPMA_TEST_ADDR --filename=malloc || exit 2{number}")
        client.append(f"tools/rpma-fio --name=client --ioengine=librpma_{method}_client {job} "
                      f"--serverip=$LAB_PEER_ADDR --rw={rw} --bs=4k --connect_timeout=60000 || exit 3{number}")
    client.append(DROPPED)
    done = subprocess.run([LAB, "run2", "--time-limit", "180", "\n".join(server), "\n".join(client)],
                          capture_output=True, text=True, timeout=900, check=False, env=dict(os.environ))
    assert "server: exit status 0, client: exit status 0" in done.stderr, done.stdout + done.stderr
