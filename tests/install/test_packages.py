# SPDX-License-Identifier: BSD-3-Clause
"""The Debian packages: they build, lintian finds no error, and what they install works."""

import os
import shutil
import subprocess

import pytest
from throwaway import NEEDS_ROOT, TOP, jobs, preload, run

pytestmark = NEEDS_ROOT


@pytest.fixture(scope="module")
def debs(tmp_path_factory):
    """The folder with the packages, built from a copy of the tracked files."""
    tree = tmp_path_factory.mktemp("deb") / "fio-rpma"
    tree.mkdir()
    names = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, check=True)
    for name in filter(None, names.stdout.decode().split("\0")):
        if (TOP / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, tree / name, follow_symlinks=False)
    # the headers that this tree was built with: a package build needs no network then
    headers = os.environ.get("FIO_SRC") or str(TOP / os.environ.get("BUILD", "build") / "fio-headers")
    done = subprocess.run(["dpkg-buildpackage", "-us", "-uc", "-b", "-d"], cwd=tree,
                          env={**os.environ, "FIO_SRC": headers, "MAKEFLAGS": ""},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return tree.parent


def test_lintian_finds_no_error(debs):
    done = subprocess.run(["lintian", "--fail-on", "error", "--allow-root",
                           *map(str, debs.glob("*.deb"))], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(debs.glob("*_*.deb"))) >= 4


@pytest.mark.parametrize("method", ["apm", "gpspm"])
def test_stock_fio_runs_the_packaged_jobs_with_no_environment(debs, method):
    libdir = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True,
                            check=True).stdout.strip()
    install = "dpkg -i /tmp/brought/*.deb >&2"
    done = run(f"{install}\n{preload('/usr/lib/' + libdir)}\n"
               + jobs("/usr/share/doc/fio-rpma/jobs", method), bring=debs)
    assert "write: IOPS=" in done.stdout, done.stdout + done.stderr


def test_man_finds_the_packaged_pages(debs):
    done = run("dpkg -i /tmp/brought/*.deb >&2\n"
               "for page in fio-rpma rpma-compare softrnic librpma; do man -P cat $page | head -n 1; done",
               bring=debs)
    for name in ("FIO-RPMA", "RPMA-COMPARE", "SOFTRNIC", "LIBRPMA"):
        assert name in done.stdout, done.stdout + done.stderr
