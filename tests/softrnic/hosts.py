# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts: network namespaces joined by a veth pair, made for one test and removed after it."""

import os
import secrets
import subprocess
from dataclasses import dataclass, field

LIMIT = 30
# Drops what arrives, before TCP sees it, as a bad cable would.
LOSSY = """table inet loss {{
	chain arriving {{
		type filter hook input priority filter; policy accept;
		ip protocol tcp numgen random mod 1000 < {per_mille} counter drop
	}}
}}
"""


class Impossible(Exception):
    """Why this machine cannot have such hosts."""


def sh(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False,
                          timeout=LIMIT)
    if done.returncode:
        raise Impossible(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


@dataclass
class Host:
    name: str  # of the namespace
    addr: str
    link: str
    inside: tuple = field(init=False)

    def __post_init__(self):
        self.inside = ("ip", "netns", "exec", self.name)

    def retransmitted(self):
        """Segments that TCP of this host has sent again so far."""
        lines = sh(*self.inside, "cat", "/proc/net/snmp").splitlines()
        names, values = (line.split()[1:] for line in lines if line.startswith("Tcp:"))
        return int(dict(zip(names, values))["RetransSegs"])


class Hosts:
    def __init__(self):
        if os.geteuid():
            raise Impossible("making network namespaces needs root")
        tag = secrets.token_hex(3)
        self.hosts = [Host(f"srn-{tag}-{side}", f"10.213.7.{number}", f"v{tag}{side}")
                      for number, side in ((1, "a"), (2, "b"))]
        a, b = self.hosts
        try:
            for host in self.hosts:
                sh("ip", "netns", "add", host.name)
                sh("ip", "-n", host.name, "link", "set", "lo", "up")
            sh("ip", "-n", a.name, "link", "add", a.link, "type", "veth", "peer", "name", b.link,
               "netns", b.name)
            for host in self.hosts:
                sh("ip", "-n", host.name, "addr", "add", f"{host.addr}/24", "dev", host.link)
                sh("ip", "-n", host.name, "link", "set", host.link, "up")
        except BaseException:
            self.close()
            raise

    def close(self):
        for host in self.hosts:
            subprocess.run(["ip", "netns", "delete", host.name], capture_output=True, check=False,
                           timeout=LIMIT)

    def retransmitted(self):
        return sum(host.retransmitted() for host in self.hosts)

    def lose_by_netem(self, percent):
        for host in self.hosts:
            sh("tc", "-n", host.name, "qdisc", "add", "dev", host.link, "root", "netem", "loss",
               f"{percent}%")
        self._single_packets()

    def lose_by_nftables(self, percent):
        for host in self.hosts:
            sh(*host.inside, "nft", "-f", "-", text=LOSSY.format(per_mille=int(10 * percent)))
        self._single_packets()

    def _single_packets(self):
        """A lost packet is one of the wire's, not 64 KiB that the links pass as one."""
        for host in self.hosts:
            sh("ip", "-n", host.name, "link", "set", host.link, "gso_max_segs", "1")
