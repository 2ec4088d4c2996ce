# SPDX-License-Identifier: BSD-3-Clause
"""What a connection costs while nothing happens on it."""

import os
import time
from pathlib import Path

import rig as rigs

SECONDS = 10
BOUND = 0.1  # seconds of CPU


def cpu_seconds(process):
    """User and system time of all threads, from proc(5)."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_idle_connections_cost_no_cpu(rig):
    """Plain verbs, the servers of both methods, and a client connected to each: all wait."""
    ports = [rig.port() for _ in range(3)]
    servers = [rig.peer(ports[0], "listen", "get", "accept=16,65536", "wait", name="peer"),
               rig.server("apm", ports[1], name="apm"),
               rig.server("gpspm", ports[2], name="gpspm", busy_wait_polling=0)]
    servers[0].printed("listening")
    for server in servers[1:]:
        server.said(rigs.SERVER_READY)
    clients = [rig.peer(port, "connect", "wait", name=f"client of {server.name}")
               for server, port in zip(servers, ports)]
    for client in clients:
        client.printed("connected")
    everybody = servers + clients
    before = [cpu_seconds(process) for process in everybody]
    time.sleep(SECONDS)  # this is what is measured
    used = {process.name: round(cpu_seconds(process) - start, 3)
            for process, start in zip(everybody, before)}
    assert all(process.running for process in everybody)
    for client in clients:
        client.signal(9)
        client.wait()
    for server in servers:
        server.wait()
    assert max(used.values()) < BOUND, f"seconds of CPU in {SECONDS} s: {used}"
