# SPDX-License-Identifier: BSD-3-Clause
"""The same between two hosts, over a good and a bad wire."""

import os

import pytest

import hosts as two
import programs
import rig as rigs

LOSS = 1  # percent of the packets, each way
RPMA_FIO = rigs.ROOT / "tools" / "rpma-fio"
BLOCKS = {"size": "4m", "bs": "4k", "iodepth": 16}


@pytest.fixture
def hosts():
    try:
        made = two.Hosts()
    except two.Impossible as why:
        pytest.skip(str(why))
    yield made
    made.close()


@pytest.fixture(params=("netem", "nftables"))
def lossy_hosts(hosts, request):
    """netem where the kernel has it; nftables drops at random, too."""
    try:
        getattr(hosts, f"lose_by_{request.param}")(LOSS)
    except two.Impossible as why:
        pytest.skip(str(why))
    return hosts


@pytest.mark.parametrize("pair", programs.FEW, ids=str)
def test_program_runs_between_two_hosts(rig, hosts, pair):
    server, client = hosts.hosts
    programs.run(rig, pair, server.addr, server.inside, client.inside)


def rpma_fio(rig, host, name, title, options):
    """By the tool a user starts, which is to find out itself that it takes the software RNIC."""
    env = {"RPMA_RNIC": "", "BUILD": str(rigs.BUILD),
           "LD_PRELOAD": os.pathsep.join(rigs.preload().split(os.pathsep)[:-1])}
    job = rig.write(f"{name}.fio", f"[{title}]\n{rigs.text_of(options)}")
    return rig.start(name, [*host.inside, RPMA_FIO, "--output-format=json", job], env)


def run_engines(rig, hosts, method, **options):
    """A server on one host, a client on the other that verifies what it wrote."""
    there, here = hosts.hosts
    port = rig.port()
    common = {"serverip": there.addr, "port": port, "thread": True}
    server = rpma_fio(rig, there, "server", "server",
                      {"ioengine": rigs.engine(method, "server"), "filename": "malloc",
                       "size": "16m", "iodepth": 128 if method == "gpspm" else None, **common})
    server.said(rigs.SERVER_READY)
    client = rpma_fio(rig, here, "client", "client",
                      {"ioengine": rigs.engine(method, "client"), "rw": "randwrite",
                       "verify": "crc32c", **BLOCKS, **common, **options})
    client.ok()
    server.ok()
    assert client.job["read"]["total_ios"] == client.job["write"]["total_ios"] == 1024
    return server, client


@pytest.mark.parametrize("method", rigs.METHODS)
def test_engines_verify_between_two_hosts(rig, hosts, method):
    for process in run_engines(rig, hosts, method):
        process.said("no RDMA device: using the software RNIC")


@pytest.mark.parametrize("method", rigs.METHODS)
def test_verification_is_clean_while_packets_are_lost(rig, lossy_hosts, method):
    run_engines(rig, lossy_hosts, method)
    assert lossy_hosts.retransmitted() > 0, "nothing was lost: this showed nothing"


@pytest.mark.parametrize("pair", programs.FEW[:2], ids=str)
def test_program_runs_while_packets_are_lost(rig, lossy_hosts, pair):
    server, client = lossy_hosts.hosts
    programs.run(rig, pair, server.addr, server.inside, client.inside)
