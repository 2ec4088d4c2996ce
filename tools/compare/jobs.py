# SPDX-License-Identifier: BSD-3-Clause
"""The fio job files of a run: a point's, a probe's, a server's."""

from . import units
from .methods import ALL_METHODS, MEMORIES, SERVERS, server_port

PERCENTILES = (50, 99, 99.9, 99.99)
FOREVER = 30 * 24 * 3600  # seconds a server may serve


def _text(name, options, comment=None):
    lines = [f"# {comment}"] if comment else []
    lines += [f"[{name}]"] + [f"{option}={value}" for option, value in options.items()]
    return "\n".join(lines) + "\n"


def _time(seconds):
    return f"{round(seconds * 1000)}ms"


def _connection(method, memory, target):
    return {"ioengine": f"librpma_{method.engine}_client", "serverip": target.address,
            "port": server_port(target.port, memory, method.server),
            "connect_timeout": target.connect_timeout, **method.options}


def client(point, target):
    """The job file that measures one point against target (address, port, connect_timeout)."""
    method = ALL_METHODS[point.method]
    options = {**_connection(method, point.memory, target),
               "thread": 1, "group_reporting": 1, "numjobs": point.threads,
               "rw": point.rw, "bs": units.fio_size(point.block_size), "iodepth": point.iodepth,
               "size": units.fio_size(point.size), "norandommap": 1,
               "time_based": 1, "runtime": _time(point.runtime), "ramp_time": _time(point.ramp),
               "clat_percentiles": 0, "lat_percentiles": 1,
               "percentile_list": ":".join(f"{p:g}" for p in PERCENTILES)}
    if point.rw in ("rw", "randrw"):
        options["rwmixread"] = 70
    if point.rate:
        options["rate_iops"] = point.rate
    if not options["ramp_time"] or point.ramp == 0:
        del options["ramp_time"]
    where = MEMORIES[point.memory].label
    return _text(point.key, options, f"{method.label}; the server's memory is {where}")


def probe(method_key, memory, target):
    """One write: can this method be used with this memory at all?"""
    method = ALL_METHODS[method_key]
    return _text(f"probe.{method_key}.{memory}", {
        **_connection(method, memory, target), "thread": 1, "rw": "write", "bs": "4k",
        "size": "4k", "iodepth": 1})


def knock(target, port):
    """One write to a server that only its being there, or its end, is the use of."""
    return _text("knock", {
        "ioengine": "librpma_apm_client", "serverip": target.address, "port": port,
        "connect_timeout": target.connect_timeout, "flush_when": "never", "thread": 1,
        "rw": "write", "bs": "4k", "size": "4k"})


def server(key, memory, plan, place, target):
    """A server for every client of a run; place is malloc, a device or a file."""
    engine, extra = SERVERS[key]
    options = {"ioengine": f"librpma_{engine}_server", "serverip": target.address,
               "port": server_port(target.port, memory, key), "thread": 1,
               "numjobs": plan.most_threads, "filename": place,
               "size": units.fio_size(plan.size), "clients": 0, "clients_at_once": 1,
               "time_based": 1, "runtime": f"{FOREVER}s", **extra}
    if memory != "dram":
        options["direct_write_to_pmem"] = 1
    if engine == "gpspm":
        options["iodepth"] = plan.most_depth
    return _text(f"{key}.{memory}", options)


def door(target, port, clients):
    """A server for knocks: ends after that many clients, or with clients=0 by a signal."""
    options = {"ioengine": "librpma_apm_server", "serverip": target.address, "port": port,
               "thread": 1, "filename": "malloc", "size": "4k", "clients": clients}
    if not clients:
        options.update(time_based=1, runtime=f"{FOREVER}s")
    return _text("door", options)


def load(cpus):
    """Keeps this machine's CPUs busy, with fio's own engine for that."""
    return _text("load", {"ioengine": "cpuio", "cpuload": 100, "thread": 1, "numjobs": cpus,
                          "time_based": 1, "runtime": f"{FOREVER}s"})
