# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that fio itself ends with I/O in flight: all of it is waited for."""

import pytest

LOG_STEPS = 4
LOG_STEP_US = 200000


def test_latency_target_that_is_found(rig, method):
    """fio is done once it knows the deepest queue that meets it, whatever is in flight."""
    rig.run(method, server={"size": "64m"}, rw="randrw", bs="256k", size="64m", iodepth=64,
            latency_target=200000, latency_window=100000, latency_percentile=95, time_based=True,
            runtime=30)


@pytest.fixture(name="log")
def fixture_log(rig):
    """Writes a log for read_iolog=, of the lines given."""
    def write(lines, version=2):
        return rig.write("replayed", "\n".join((f"fio version {version} iolog", *lines)) + "\n")
    return write


def test_log_read_by_many_in_flight(rig, method, log):
    lines = ["client add", "client open", *(f"client write {i << 20} 1048576" for i in range(40)),
             "client close"]
    _, client = rig.run(method, server={"size": "64m"}, read_iolog=log(lines), size="64m", bs="1m",
                        iodepth=32, iodepth_batch=8)
    assert client.job["write"]["total_ios"] == 40, client


def test_log_read_at_its_pace(rig, method, log):
    """The delays of a log are from one I/O to the next, however many may be in flight."""
    lines = ["0 client add", "0 client open",
             *(f"{i * LOG_STEP_US} client write {i * 4096} 4096" for i in range(1, LOG_STEPS + 1)),
             f"{LOG_STEPS * LOG_STEP_US} client close"]
    options = {"read_iolog": log(lines, version=3), "size": "16m", "bs": "4k", "iodepth": 4}
    rig.expected_files.add("client")
    other = rig.fio("other", [("client", {"ioengine": "libaio", **options})]).ok()
    _, client = rig.run(method, **options)
    assert client.job["write"]["total_ios"] == LOG_STEPS, client
    assert client.job["job_runtime"] >= 0.8 * other.job["job_runtime"], (client, other)
