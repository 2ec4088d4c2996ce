# SPDX-License-Identifier: BSD-3-Clause
"""What is compared: persistence methods, server memories, and where their servers listen."""

from dataclasses import dataclass, field

DEFAULT_PORT = 7204
# A server's job thread n listens on its port + n - 1, so this is also the most threads of a plan.
PORTS_PER_SERVER = 64


@dataclass(frozen=True)
class Method:
    key: str
    label: str
    short: str  # stands at the end of a line in a plot
    engine: str
    server: str
    options: dict = field(default_factory=dict, hash=False)
    flushes: bool = True
    phrase: str = ""  # in the middle of a sentence
    what: str = ""


@dataclass(frozen=True)
class Memory:
    key: str
    label: str
    persistent: bool


METHODS = {method.key: method for method in (
    Method("apm-native", "APM, native flush", "APM native", "apm", "apm",
           {"flush_mode": "native"}, phrase="APM with native flush",
           what="RDMA write, then the device's own flush operation"),
    Method("apm-read", "APM, read-based flush", "APM read", "apm", "apm",
           {"flush_mode": "read"}, phrase="APM with read-based flush",
           what="RDMA write, then a small RDMA read that pushes it out"),
    Method("gpspm-poll", "GPSPM, polling server", "GPSPM polling", "gpspm", "gpspm-poll",
           phrase="GPSPM with a polling server",
           what="RDMA write, then a message; the server, polling, persists it and answers"),
    Method("gpspm-event", "GPSPM, server by events", "GPSPM events", "gpspm", "gpspm-event",
           phrase="GPSPM with a server woken by events",
           what="RDMA write, then a message; the server, woken by an event, persists it and answers"),
    Method("no-flush", "No flush (the floor)", "no flush", "apm", "apm",
           {"flush_when": "never"}, flushes=False,
           phrase="a write with no flush",
           what="RDMA write alone: no durability, the least a write can cost"),
)}

# Reads have no persistence method: all of them read by the same RDMA read.
READ = Method("rdma-read", "RDMA read", "RDMA read", "apm", "apm", {"flush_when": "never"},
              flushes=False, phrase="an RDMA read",
              what="RDMA read; the same whatever the persistence method")

ALL_METHODS = {**METHODS, READ.key: READ}

MEMORIES = {memory.key: memory for memory in (
    Memory("dram", "DRAM", False),
    Memory("devdax", "device DAX", True),
    Memory("fsdax", "file-system DAX", True),
)}

SERVERS = {  # key -> (engine, options)
    "apm": ("apm", {}),
    "gpspm-poll": ("gpspm", {"busy_wait_polling": 1}),
    "gpspm-event": ("gpspm", {"busy_wait_polling": 0}),
}


def server_port(base, memory, server):
    """The first port of one server; the same on both sides without a word between them."""
    index = list(MEMORIES).index(memory) * len(SERVERS) + list(SERVERS).index(server)
    return base + index * PORTS_PER_SERVER


def bell_port(base, loaded):
    """The port of the one-shot server that asks for load on the server's CPUs, or for its end."""
    return base + len(MEMORIES) * len(SERVERS) * PORTS_PER_SERVER + (0 if loaded else 1)


def state_port(base, loaded):
    """The port of the server that is there while the server's CPUs are loaded, or are not."""
    return bell_port(base, loaded) + 2


def last_port(base):
    return state_port(base, False)
