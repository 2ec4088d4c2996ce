# SPDX-License-Identifier: BSD-3-Clause
"""A copy of the whole machine's root that is thrown away: what is installed there stays there.

The lab's own root is thrown away when it is switched off, so in the lab it is used as it is.
"""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]

# An overlay over / in a mount namespace of its own; its upper side is on tmpfs.
ENTER = r"""
set -e
mount --make-rprivate / 2>/dev/null || :  # in a chroot that is no mount, nothing spreads
mount -t tmpfs throwaway /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay throwaway -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
for dir in dev proc sys; do mount --rbind /$dir /mnt/root/$dir; done
mount -t tmpfs tmp /mnt/root/tmp
if [ -n "$BRING" ]; then mkdir /mnt/root/tmp/brought; mount --bind "$BRING" /mnt/root/tmp/brought; fi
exec chroot /mnt/root bash -c "$RUN"
"""

# no variable of ours or the user's may help
RUN = ("exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "
       'LC_ALL=C.UTF-8 bash -c "$SCRIPT"')
LAB = "RPMA_TEST_ADDR" in os.environ
BUILD = os.environ.get("BUILD", "build")
ADDR = os.environ.get("RPMA_TEST_ADDR", "127.0.0.1")
INSTALL = f"make -s install BUILD={BUILD}"
if "FIO_SRC" in os.environ:
    INSTALL += f" FIO_SRC={os.environ['FIO_SRC']}"

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="a throwaway root needs root")


def in_throwaway_root(script, bring=None, limit=300):
    """Runs a bash script there, with no environment but PATH; BRING appears as /tmp/brought."""
    script = f"set -e\ncd {shlex.quote(str(TOP))}\n{script}"
    command = ["bash", "-c", RUN] if LAB else ["unshare", "--mount", "--propagation=unchanged", "--fork",
                                                "bash", "-c", ENTER]
    return subprocess.run(command,
                          env={"PATH": os.environ["PATH"], "RUN": RUN, "SCRIPT": script,
                               "BRING": str(bring or "")},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=limit, check=False)


def run(script, **more):
    done = in_throwaway_root(script, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def preload(libdir):
    return "" if LAB else f"echo {libdir}/libsoftrnic.so > /etc/ld.so.preload"


def jobs(folder, method):
    """Server and client by the installed job files, shortened; the client's report is printed."""
    return f"""
cd /tmp
sed 's/^serverip=.*/serverip={ADDR}/' {folder}/{method}-server.fio > server.fio
sed -e 's/^serverip=.*/serverip={ADDR}/' -e 's/^runtime=.*/runtime=1/' -e 's/^ramp_time=.*/ramp_time=0/' \
    {folder}/{method}-client.fio > client.fio
fio server.fio > server.log &
fio client.fio
wait $!
"""
