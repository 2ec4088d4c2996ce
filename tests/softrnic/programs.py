# SPDX-License-Identifier: BSD-3-Clause
"""Programs nobody here wrote, as pairs of a server and a client, and what shows that they worked."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import rig as rigs

TRIES = 5


@dataclass
class Pair:
    """Two commands; ADDR and PORT in them stand for the server's."""
    name: str
    server: str
    client: str
    shown: dict = field(default_factory=dict)  # side -> [(regular expression, how often)]
    again: str = None  # what the client says when it has to be tried again

    def __str__(self):
        return self.name


def perftest(program, options, size, iterations):
    """perftest ends with a table that has the size and the iterations it really did."""
    common = f"{program} -R -F -p PORT -n {iterations} {options}"
    common += f" -s {size}" if size else ""
    many = re.search(r"-q (\d+)", options)
    total = iterations * (int(many[1]) if many else 1)
    row = [(rf"(?m)^ {size or 8} +{total} ", 1)]
    name = re.sub(r"\W+", "_", f"{program} {options}".strip())
    # Its server listens anew for its second connection; a client that is too quick is refused.
    return Pair(f"{name}_{size or 8}", common, f"{common} ADDR", {"client": row},
                "RDMA_CM_EVENT_REJECTED")


def cmatose(options):
    return Pair(re.sub(r"\W+", "_", f"ucmatose {options}".strip()),
                f"ucmatose -p PORT {options}", f"ucmatose -s ADDR -p PORT {options}",
                {side: [("test complete\nreturn status 0", 1)] for side in ("server", "client")})


RPING = Pair("rping", "rping -s -a ADDR -p PORT -C 100 -S 4000 -v",
             "rping -c -a ADDR -p PORT -C 100 -S 4000 -v -V",
             {"server": [("(?m)^server ping data: rdma-ping-", 100)],
              "client": [("(?m)^ping data: rdma-ping-", 100)]})
RDMA_CLIENT = Pair("rdma_client", "rdma_server -p PORT", "rdma_client -s ADDR -p PORT",
                   {"server": [("rdma_server: end 0", 1)], "client": [("rdma_client: end 0", 1)]})
XCLIENT = Pair("rdma_xclient", "rdma_xserver -p PORT -c r", "rdma_xclient -s ADDR -p PORT -c r",
               {"server": [("rdma_xserver: end 0", 1)], "client": [("rdma_xclient: end 0", 1)]})

FEW = [  # one of each kind, for runs between hosts
    RPING, RDMA_CLIENT, cmatose("-c 4 -C 50 -S 3000"),
    perftest("ib_write_bw", "", 65536, 1000),
    perftest("ib_read_lat", "", 8, 500),
    perftest("ib_send_bw", "", 3000, 1000),
    perftest("ib_atomic_lat", "-A FETCH_AND_ADD", None, 200),
]

ALL = [
    RPING, RDMA_CLIENT, XCLIENT,
    cmatose(""), cmatose("-c 10 -C 100 -S 5000"), cmatose("-c 4 -C 20 -m"),
    perftest("ib_write_lat", "", 8, 100),
    perftest("ib_write_lat", "", 4096, 100),
    perftest("ib_write_bw", "", 65536, 2000),
    perftest("ib_write_bw", "-b", 65536, 1000),
    perftest("ib_write_bw", "-q 8", 4096, 500),
    perftest("ib_read_lat", "", 8, 1000),
    perftest("ib_read_lat", "-e", 8, 200),
    perftest("ib_read_bw", "", 65536, 2000),
    perftest("ib_read_bw", "-b -q 4", 8192, 500),
    perftest("ib_send_lat", "", 64, 1000),
    perftest("ib_send_lat", "-e", 64, 200),
    perftest("ib_send_bw", "", 4096, 2000),
    perftest("ib_send_bw", "--use-srq", 4096, 2000),
    perftest("ib_send_bw", "-b -r 600", 4096, 1000),
    perftest("ib_atomic_lat", "-A CMP_AND_SWAP", None, 500),
    perftest("ib_atomic_lat", "-A FETCH_AND_ADD", None, 500),
    perftest("ib_atomic_bw", "-A FETCH_AND_ADD -q 2", None, 200),
]


def listens(process, port):
    """Whether somebody listens on the port in the process's network namespace."""
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{process.pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                return True
    return False


def wait_for_listener(process, port, limit=None):
    rigs.wait_until(lambda: listens(process, port) or not process.running,
                    f"{process.name} listens on port {port}", limit)
    assert process.running, f"{process.name} ended early\n{process}"


def run(rig, pair, addr=rigs.ADDR, server_side=(), client_side=()):
    """Runs both to their good ends and checks what they printed; *_side is put before a command."""
    for _ in range(TRIES):
        port = rig.port()
        server, client = (
            [*before, *command.replace("ADDR", addr).replace("PORT", str(port)).split()]
            for before, command in ((server_side, pair.server), (client_side, pair.client)))
        server = rig.start("server", server)
        wait_for_listener(server, port)
        client = rig.start("client", client)
        if client.wait() == 0 or not pair.again or not re.search(pair.again, client.err.text):
            break
        server.kill()
    client.ok()
    server.ok()
    for process in (server, client):
        for pattern, times in pair.shown.get(process.name, []):
            found = len(re.findall(pattern, process.out.text))
            assert found == times, f"{pattern!r}: {found} times, not {times}\n{process}"
    return server, client
