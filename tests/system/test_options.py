# SPDX-License-Identifier: BSD-3-Clause
"""fio's options that users combine with any engine do what they say here, too."""

import json
import signal

import pytest

import batch
import rig as rigs
from conftest import make_rig

KIB = 1024
COUNT = 64
BASE = {"bs": "4k", "size": COUNT * 4096, "rw": "write"}


def ios(job):
    return job["read"]["total_ios"], job["write"]["total_ios"]


def wrote(count):
    def check(job):
        assert ios(job) == (0, count)
    return check


def read_some_and_wrote_some(job):
    read, written = ios(job)
    assert read + written == COUNT and read and written


def mostly_read(job):
    read, written = ios(job)
    assert read + written == 4 * COUNT and read > 3 * written > 0


def wrote_bytes(size):
    def check(job):
        assert job["write"]["io_bytes"] == size
    return check


def took_at_least(milliseconds):
    def check(job):
        assert job["write"]["runtime"] >= milliseconds
    return check


def synced(job):
    assert ios(job) == (0, COUNT)
    # none after the last write: there fio closes the file instead
    assert job["sync"]["total_ios"] >= COUNT // 8 - 1


# name -> (options, check of fio's report of the job)
JOBS = {
    "offset": ({"offset": "1m"}, wrote(COUNT)),
    "io_size-larger-than-size": ({"io_size": 3 * COUNT * 4096}, wrote(3 * COUNT)),
    "io_size-smaller-than-size": ({"io_size": 10 * 4096}, wrote(10)),
    "number_ios": ({"number_ios": 5}, wrote(5)),
    "loops": ({"loops": 3}, wrote(3 * COUNT)),
    "rate": ({"rate": "1m", "size": "512k"}, took_at_least(400)),
    "rate_iops": ({"rate_iops": 128}, took_at_least(400)),
    "thinktime": ({"thinktime": 10000, "size": 32 * 4096}, took_at_least(300)),
    "time_based": ({"time_based": True, "runtime": 1}, took_at_least(1000)),
    "ramp_time": ({"time_based": True, "runtime": 1, "ramp_time": 1}, took_at_least(900)),
    "iodepth-4096": ({"iodepth": 4096, "bs": 512, "size": 8192 * 512}, wrote(8192)),
    "randrw-iodepth-4096": ({"iodepth": 4096, "bs": 512, "size": 8192 * 512, "rw": "randrw"},
                            lambda job: sum(ios(job)) == 8192),
    "iodepth_batch": ({"iodepth": 32, "iodepth_batch": 8}, wrote(COUNT)),
    "iodepth_batch_complete": ({"iodepth": 32, "iodepth_batch_submit": 32,
                                "iodepth_batch_complete_min": 16,
                                "iodepth_batch_complete_max": 32}, wrote(COUNT)),
    "iodepth_batch_complete_zero": ({"iodepth": 32, "iodepth_batch_complete_min": 0,
                                     "iodepth_batch_complete_max": 32}, wrote(COUNT)),
    "iodepth_low": ({"iodepth": 32, "iodepth_low": 4}, wrote(COUNT)),
    "mixed-batch": ({"iodepth": 32, "iodepth_batch": 32, "rw": "randrw"},
                    read_some_and_wrote_some),
    "rwmixread": ({"rw": "randrw", "rwmixread": 90, "size": 4 * COUNT * 4096}, mostly_read),
    "bsrange": ({"bs": None, "bsrange": "512-8k", "rw": "randwrite"}, wrote_bytes(COUNT * 4096)),
    "bssplit": ({"bs": None, "bssplit": "512/25:4k/50:8k/25"}, wrote_bytes(COUNT * 4096)),
    "bs-for-reads-and-writes": ({"bs": "4k,8k", "rw": "rw"}, lambda job: sum(ios(job)) > 0),
    "bs_unaligned": ({"bs": None, "bsrange": "1-4000", "bs_unaligned": True, "rw": "randwrite",
                      "iodepth": 4}, wrote_bytes(COUNT * 4096)),
    "one-byte-blocks": ({"bs": 1, "size": 100, "iodepth": 16}, wrote(100)),
    "gaps": ({"rw": "write:4k"}, wrote(COUNT // 2)),
    "backwards": ({"rw": "write:-4k", "size": COUNT * 4096, "io_size": 16 * 4096},
                  lambda job: ios(job)[1] > 0),
    "zipf": ({"rw": "randwrite", "random_distribution": "zipf:1.1", "norandommap": True},
             wrote(COUNT)),
    "fsync": ({"fsync": 8}, synced),
    "fdatasync": ({"fdatasync": 8, "iodepth": 16}, wrote(COUNT)),
    "end_fsync": ({"end_fsync": 1, "fsync_on_close": 1}, wrote(COUNT)),
    "sync": ({"sync": 1, "iodepth": 16}, wrote(COUNT)),
    "direct": ({"direct": 1, "invalidate": 1}, wrote(COUNT)),
    "create_serialize-off": ({"create_serialize": 0}, wrote(COUNT)),
    "create_serialize-on": ({"create_serialize": 1}, wrote(COUNT)),
    "process": ({"thread": False}, wrote(COUNT)),
    "latency_target": ({"rw": "randwrite", "iodepth": 32, "latency_target": "50ms",
                        "latency_window": "100ms", "latency_percentile": 90,
                        "time_based": True, "runtime": 1},
                       lambda job: ios(job)[1] > COUNT),
    "buffers-of-anonymous-maps": ({"iomem": "mmap"}, wrote(COUNT)),
    "unlimited-by-size": ({"size": None, "io_size": "256k"}, wrote(COUNT)),
    "size-in-percent": ({"size": "50%", "bs": "256k"}, wrote_bytes(8 << 20)),
}
GROUP = {"numjobs": 4, "group_reporting": True, "iodepth": 4}


@pytest.fixture(scope="module", params=rigs.METHODS)
def outcome(request, tmp_path_factory):
    method = request.param
    with make_rig(tmp_path_factory.mktemp("options")) as rig:
        rows = [(name, {**BASE, **options}) for name, (options, _) in JOBS.items()]
        rows += [("group", {**BASE, **GROUP})]
        # as many message slots as the deepest queue needs
        yield batch.run_batch(rig, method, rows, {"iodepth": 4096} if method == "gpspm" else {})


@pytest.mark.parametrize("name", JOBS)
def test_option_does_what_it_says(outcome, name):
    JOBS[name][1](outcome.job(name))


def test_group_reporting_sums_up_four_jobs(outcome):
    assert ios(outcome.job("group")) == (0, 4 * COUNT)


def test_server_reports_no_io_of_its_own(outcome):
    assert outcome.server.rc == 0, outcome.server
    for job in outcome.server.jobs:
        for direction in ("read", "write", "trim"):
            assert (job[direction]["total_ios"], job[direction]["io_bytes"]) == (0, 0)
            assert (job[direction]["iops"], job[direction]["bw"]) == (0, 0)


def test_logs_of_bandwidth_latency_and_iops_are_written(rig, method):
    logs = {"write_bw_log": "log", "write_lat_log": "log", "write_iops_log": "log"}
    _, client = rig.run(method, **BASE, **logs)
    assert ios(client.job) == (0, COUNT)
    for kind in ("bw", "clat", "slat", "lat", "iops"):
        name = f"log_{kind}.1.log"
        rig.expected_files.add(name)
        assert (rig.folder / name).read_text(), f"{name} is empty"


@pytest.mark.parametrize("polling", ("server", "client", "both"))
def test_waiting_by_events_instead_of_polling(rig, method, polling):
    wait = {"busy_wait_polling": 0}
    port = rig.port()
    server = rig.server(method, port, **(wait if polling != "client" else {}))
    client = rig.client(method, port, **BASE, iodepth=16, verify="crc32c",
                        **(wait if polling != "server" else {})).ok()
    assert ios(client.job) == (COUNT, COUNT)
    server.ok()


def test_direct_write_to_pmem_is_accepted(rig, method):
    _, client = rig.run(method, {"direct_write_to_pmem": 1}, **BASE, verify="crc32c",
                        direct_write_to_pmem=1)
    assert ios(client.job) == (COUNT, COUNT)


def test_two_servers_and_two_clients_in_one_job_file(rig, method):
    ports = [rig.port(8), rig.port(8)]
    base = {"verify": "crc32c", **BASE}
    sections = []
    for n, port in enumerate(ports):
        # a job takes the port its thread number adds to
        sections.append((f"server{n}", {
            "ioengine": rigs.engine(method, "server"), "serverip": rigs.ADDR, "thread": True,
            "port": port - len(sections), "filename": "malloc", "size": "1m", "iodepth": 16}))
    for n, port in enumerate(ports):
        sections.append((f"client{n}", rig.client_options(method, port - len(sections), **base)))
    both = rig.fio("both", sections).ok()
    assert [ios(job) for job in both.jobs] == [(0, 0), (0, 0), (COUNT, COUNT), (COUNT, COUNT)]


def test_fio_client_and_server_run_the_job(rig, method):
    """fio's own --server runs the job that fio --client sends it."""
    port = rig.port()
    service = rig.port()
    backend = rig.start("backend", [rigs.FIO, f"--server={rigs.ADDR},{service}"])
    server = rig.server(method, port)
    text = rigs.text_of(rig.client_options(method, port, **BASE, verify="crc32c"))
    path = rig.write("remote.fio", "[remote]\n" + text)
    rigs.wait_until(lambda: rigs.listening(service), "fio --server listens")
    front = rig.start("front", [rigs.FIO, "--output-format=json",
                                f"--client={rigs.ADDR},{service}", path]).ok()
    server.ok()
    backend.signal(signal.SIGINT)
    backend.wait()
    report = json.loads(front.out.text[front.out.text.index("\n{"):])
    assert ios(report["client_stats"][0]) == (COUNT, COUNT), front
