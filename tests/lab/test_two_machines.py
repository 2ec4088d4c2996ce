# SPDX-License-Identifier: BSD-3-Clause
"""Run on the host: what `tests/lab/lab run2` promises, two machines on one wire."""

import os
import subprocess
from pathlib import Path

LAB = str(Path(__file__).parent / "lab")


def run2(*options, server, client):
    return subprocess.run([LAB, "run2", *options, server, client], capture_output=True, text=True,
                          timeout=900, check=False, env=dict(os.environ))


def lines_of(name, done):
    return [line.split("|", 1)[1].strip() for line in done.stdout.splitlines() if line.startswith(f"{name}|")]


def test_rdma_goes_over_the_wire_also_when_it_loses_packets_until_the_link_is_down(tmp_path):
    server = """
        ib_write_lat -s 4096 -n 500 -F >$RESULTS/perftest & perftest=$!
        until ss -Hltn | grep -q :18515; do sleep 0.1; done
        touch /results/listens
        wait $perftest || exit 10
        until [ -e /results/cut-the-link ]; do sleep 0.1; done
        ip link set eth0 down
        touch /results/down
        until [ -e /results/end ]; do sleep 0.1; done
        exit 4"""
    client = """
        until [ -e /results/listens ]; do sleep 0.1; done
        tc qdisc add dev eth0 root netem loss 1% || exit 11
        ib_write_lat -s 4096 -n 500 -F $RPMA_TEST_ADDR || exit 12
        tc -s qdisc show dev eth0
        touch /results/cut-the-link
        until [ -e /results/down ]; do sleep 0.1; done
        ! ping -c 1 -W 2 $LAB_PEER_ADDR >/dev/null || exit 13
        touch /results/end"""
    done = run2("--results", str(tmp_path), server=server, client=client)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "server: exit status 4, client: exit status 0" in done.stderr
    assert any(line.startswith("4096") for line in lines_of("client", done))
    assert "4096" in (tmp_path / "server/perftest").read_text()


def test_a_power_cut_leaves_what_was_stored_and_the_peer_runs_on(tmp_path):
    server = """
        printf 'stored before the cut' >$RPMA_TEST_FSDAX/file; sync
        while :; do echo kept; sleep 0.2; done"""
    client = """
        until ping -c 1 -W 1 $LAB_PEER_ADDR >/dev/null; do :; done
        echo cut it now
        while ping -c 1 -W 2 $LAB_PEER_ADDR >/dev/null; do sleep 0.1; done
        echo the server is gone
        exit 3"""
    done = run2("--nvdimm", str(tmp_path), "--cut", "server:cut it now", server=server, client=client)
    assert done.returncode == 3, done.stdout + done.stderr
    assert lines_of("client", done) == ["cut it now", "the server is gone"]
    assert "server: power cut, client: exit status 3" in done.stderr
    again = subprocess.run([LAB, "run", "--nvdimm", str(tmp_path / "server"), "--", "cat", "/mnt/pmem/file"],
                           capture_output=True, text=True, timeout=400, check=False)
    assert again.stdout == "stored before the cut", again.stderr
