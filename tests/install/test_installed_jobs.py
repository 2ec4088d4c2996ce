# SPDX-License-Identifier: BSD-3-Clause
"""After `make install` stock fio runs the jobs, with no environment variable set.

Where the machine has no RDMA device the software RNIC is preloaded by the linker's own list of
libraries to preload, so that the environment stays empty here, too.
"""

import re

import pytest
from throwaway import INSTALL, NEEDS_ROOT, jobs, preload, run

pytestmark = NEEDS_ROOT


@pytest.mark.parametrize("method", ["apm", "gpspm"])
def test_stock_fio_runs_the_installed_jobs_with_no_environment(method):
    done = run(f"{INSTALL}\n{preload('/usr/local/lib')}\n"
               + jobs("/usr/local/share/doc/fio-rpma/jobs", method))
    assert re.search(r"write: IOPS=", done.stdout), done.stdout + done.stderr
