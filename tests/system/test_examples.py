# SPDX-License-Identifier: BSD-3-Clause
"""Job files with the options of the last engines' examples run as they are, as does jobs/."""

import re

import pytest

import rig as rigs

# Options and values of fio 3.37's example job files; only the times are shortened, and the port
# is free here.
CLIENT = """
[global]
ioengine=librpma_{method}_client
create_serialize=0 # (required) forces specific initiation sequence
serverip={address} # server
port={port} # port(s) of the server, <port; port + numjobs - 1>
thread

[client]
numjobs={numjobs} # connections
group_reporting=1
sync=1 # latency or bandwidth
iodepth=2 # total
iodepth_batch_submit=1 # at once
rw={mode} # any
{mix}
blocksize=4KiB
ramp_time=1s # stabilize
time_based
runtime=2s # period
"""
SERVER = """
[global]
ioengine=librpma_{method}_server
create_serialize=0 # (required) forces specific initiation sequence
kb_base=1000 # straight units
serverip={address} # to listen on
port={port} # <port; port + numjobs - 1>
thread

[server]
# a comment of its own
direct_write_to_pmem=0
{gpspm}
numjobs={numjobs} # connections
size=100MiB # of a workspace
filename=malloc # DRAM
# filename=/dev/dax1.0
"""
GPSPM = "busy_wait_polling=1\niodepth=2 # requests\ntime_based\nruntime=365d"


@pytest.mark.parametrize("numjobs", (1, 2))
@pytest.mark.parametrize("mode", ("write", "rw"))
def test_example_of_the_last_engines_runs_as_it_is(rig, method, mode, numjobs):
    values = {"method": method, "address": rigs.ADDR, "port": rig.port(numjobs), "mode": mode,
              "numjobs": numjobs, "mix": "rwmixread=70 # percent" if mode == "rw" else "",
              "gpspm": GPSPM if method == "gpspm" else ""}
    server = rig.start("server", [rigs.FIO, rig.write("server.fio", SERVER.format(**values))])
    client = rig.start("client", [rigs.FIO, rig.write("client.fio", CLIENT.format(**values))])
    client.ok()
    server.ok(rigs.SOON)
    assert re.search(r"write: IOPS=[1-9]", client.out.text), client


@pytest.mark.parametrize("method", rigs.METHODS)
def test_our_jobs_run_with_a_users_address_and_port(rig, method):
    """jobs/ holds what a user copies: here with his address and a shorter time."""
    port = rig.port(4)
    started = []
    for side in ("server", "client"):
        text = (rigs.ROOT / "jobs" / f"{method}-{side}.fio").read_text()
        for option, value in (("serverip", rigs.ADDR), ("port", port), ("runtime", "1s"),
                              ("ramp_time", "0")):
            text = re.sub(rf"(?m)^{option}=\S+", f"{option}={value}", text)
        started.append(rig.start(side, [rigs.FIO, rig.write(f"{side}.fio", text)]))
    server, client = started
    client.ok()
    server.ok(rigs.SOON)
