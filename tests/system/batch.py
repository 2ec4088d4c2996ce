# SPDX-License-Identifier: BSD-3-Clause
"""Many client jobs in one fio against one server: what a start costs is paid once."""

import signal

import rig as rigs

LANES = 4  # jobs side by side, each with a port of its own


class Batch:
    """The outcome of a set of jobs: by name, what fio reported of each."""

    def __init__(self, server, client, by_name):
        self.server = server
        self.client = client
        self.by_name = by_name

    def jobs(self, name):
        """The reports of a job and its clones, none of which may have failed."""
        found = self.by_name.get(name)
        assert found, f"{name} is not in fio's report\n{self.client}"
        for job in found:
            assert job["error"] == 0, f"{name}: error {job['error']}\n{self.client}"
        return found

    def job(self, name):
        found = self.jobs(name)
        assert len(found) == 1, f"{name}: {len(found)} reports"
        return found[0]


def _width(options):
    return int(options.get("numjobs", 1))


def _order(row):
    """The widest first, and processes before threads: once a thread of fio used a device that posts
    through the kernel, the kernel refuses it to the processes fio forks."""
    _, options = row
    return bool(options.get("thread", True)), -_width(options)


def _waves(rows):
    """The rows in sets that run side by side, each no wider than there are lanes."""
    waves = []
    for row in sorted(rows, key=_order):
        if not waves or sum(_width(options) for _, options in waves[-1]) + _width(row[1]) > LANES:
            waves.append([])
        waves[-1].append(row)
    return waves


def _client_sections(rig, method, port, waves):
    """The engine takes `port + thread number - 1`, and fio numbers all threads of a file through:
    so that each wave meets the same ports, its port= steps back by the threads before it."""
    sections, threads = [], 0
    for wave in waves:
        for at, (name, options) in enumerate(wave):
            options = rig.client_options(method, port - threads, **options)
            sections.append((name, {"stonewall": at == 0, **options}))
        threads += sum(_width(options) for _, options in wave)
    return sections


def _server_sections(method, port, waves, server):
    widths = [sum(_width(options) for _, options in wave) for wave in waves]
    options = {"ioengine": rigs.engine(method, "server"), "serverip": rigs.ADDR, "port": port,
               "thread": True, "filename": "malloc", "size": "16m",
               **({"iodepth": 128} if method == "gpspm" else {}), **server}
    return [(f"server{lane + 1}", {**options, "clients": sum(width > lane for width in widths)})
            for lane in range(max(widths))]


def run_batch(rig, method, rows, server=None, limit=None):
    """Runs rows [(name, client options)...] in waves."""
    waves = _waves(rows)
    port = rig.port(LANES)
    serving = rig.fio("server", _server_sections(method, port, waves, server or {}))
    client = rig.fio("client", _client_sections(rig, method, port, waves))
    client.wait(limit or 4 * rigs.LIMIT)
    if client.rc:
        # some clients may never have come, and the server waits for them
        serving.signal(signal.SIGINT)
    serving.wait()
    by_name = {}
    for job in client.jobs:
        by_name.setdefault(job["jobname"], []).append(job)
    return Batch(serving, client, by_name)
