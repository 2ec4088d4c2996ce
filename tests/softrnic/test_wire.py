# SPDX-License-Identifier: BSD-3-Clause
"""The bytes on the wire, as Wireshark's dissectors of iWARP read them."""

import shutil
import subprocess
from collections import Counter
from types import SimpleNamespace

import pytest

import programs
import rig as rigs

OPCODES = {"0x00": "write", "0x01": "read request", "0x02": "read response", "0x03": "send",
           "0x08": "immediate data", "0x0a": "atomic request", "0x0b": "atomic response"}
# They guess what the SENDs of a program mean, and guess wrong.
NO_GUESSES = [word for name in ("smb_direct_iwarp", "rpcrdma_iwarp")
              for word in ("--disable-heuristic", name)]
BLOCKS = 64

pytestmark = [
    pytest.mark.skipif(not shutil.which("tshark"), reason="no tshark here"),
]


def dissect(capture, *options):
    return subprocess.run(["tshark", "-r", capture, *NO_GUESSES, *options], check=True, text=True,
                          timeout=rigs.LIMIT, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def captured(rig, port, work):
    """Captures what goes over the port while work() runs."""
    path = rig.folder / "capture.pcapng"
    tshark = rig.start("tshark", ["tshark", "-q", "-i", "lo", "-B", "64", "-f",
                                  f"tcp port {port}", "-w", path],
                       env={"LD_PRELOAD": "", "HOME": str(rig.folder)})
    if not tshark.err.wait_for("Capture started", rigs.LIMIT):
        tshark.kill()
        pytest.skip(f"capturing needs the right to: {tshark.err.text.strip()[-200:]}")
    work()
    # its last packet is the end of the last connection: the file has what came before it
    rigs.wait_until(lambda: ends_of_connections(path) > 0, "the end of a connection in the file")
    tshark.signal(2)
    tshark.wait()
    return path


def ends_of_connections(path):
    shown = subprocess.run(["tshark", "-r", path, "-Y", "tcp.flags.fin == 1 || tcp.flags.reset"],
                           check=False, text=True, capture_output=True, timeout=rigs.LIMIT)
    return len(shown.stdout.splitlines())


def seen(capture):
    """What the dissectors found: FPDUs per opcode, CRC verdicts, connection frames, complaints."""
    lists = dissect(capture, "-T", "fields", "-e", "iwarp_rdma.opcode").replace(",", "\n").split()
    details = dissect(capture, "-V", "-Y", "iwarp_mpa")
    return SimpleNamespace(
        opcodes=Counter(OPCODES.get(code, code) for code in lists),
        requests=len(dissect(capture, "-Y", "iwarp_mpa.req").splitlines()),
        replies=len(dissect(capture, "-Y", "iwarp_mpa.rep").splitlines()),
        good=details.count("(Good CRC32)"), bad=details.count("(Bad CRC32"),
        malformed=dissect(capture, "-Y", "_ws.malformed"),
        not_iwarp=dissect(capture, "-Y", "tcp.len > 0 && !iwarp_mpa && !tcp.reassembled_in "
                          "&& !tcp.analysis.retransmission"))


def apm(rig, port, env):
    server = rig.server("apm", port, size="1m", env=env)
    server.said(rigs.SERVER_READY)
    rig.client("apm", port, rw="randwrite", bs="4k", size="1m", io_size=4096 * BLOCKS,
               verify="crc32c", env=env).ok()
    server.ok()


@pytest.mark.parametrize("crc", (0, 1), ids=("without_crc", "with_crc"))
def test_apm_run_is_well_formed_iwarp(rig, crc):
    port = rig.port()
    found = seen(captured(rig, port, lambda: apm(rig, port, {"SOFTRNIC_CRC": str(crc)})))
    assert not found.malformed and not found.not_iwarp
    assert found.requests == found.replies == 1
    # each block is written, flushed by a read and read back; one more write says "ready to receive"
    assert found.opcodes["write"] == BLOCKS + 1
    assert found.opcodes["read request"] == found.opcodes["read response"] == 2 * BLOCKS
    assert not set(found.opcodes) - {"write", "read request", "read response", "send"}
    assert found.bad == 0
    assert found.good == (sum(found.opcodes.values()) if crc else 0)


def test_sends_and_atomics_are_well_formed_iwarp(rig):
    port = rig.port()
    rig.port = lambda count=1: port
    pair = programs.perftest("ib_atomic_lat", "-A FETCH_AND_ADD", None, 100)
    found = seen(captured(rig, port, lambda: programs.run(rig, pair)))
    assert not found.malformed and not found.not_iwarp and found.bad == 0
    assert found.opcodes["atomic request"] == found.opcodes["atomic response"] >= 100
    assert found.opcodes["send"] > 0
