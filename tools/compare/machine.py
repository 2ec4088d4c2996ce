# SPDX-License-Identifier: BSD-3-Clause
"""What a run ran on: CPU, kernel, RDMA device and link, memory, versions."""

import fcntl
import os
import platform
import re
import socket
import struct
import subprocess
import time
from pathlib import Path

SIOCGIFADDR = 0x8915
INFINIBAND = Path("/sys/class/infiniband")


def _read(path):
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _output(*command):
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=60,
                              check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout or done.stderr).strip() if done.returncode == 0 else ""


def interface_address(name):
    """The IPv4 address of a network interface, or ''."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            reply = fcntl.ioctl(probe.fileno(), SIOCGIFADDR,
                                struct.pack("256s", name.encode()[:15]))
        except OSError:
            return ""
    return socket.inet_ntoa(reply[20:24])


def rdma_devices():
    """[{'name', 'address', 'link', 'state', ...}] of this machine's RDMA ports."""
    found = []
    for device in sorted(INFINIBAND.glob("*")):
        for port in sorted((device / "ports").glob("*")):
            interface = _read(port / "gid_attrs/ndevs/0")
            found.append({
                "name": f"{device.name}/{port.name}", "interface": interface,
                "address": interface_address(interface) if interface else "",
                "link": _read(port / "link_layer"), "rate": _read(port / "rate"),
                "state": _read(port / "state").partition(": ")[2],
                "firmware": _read(device / "fw_ver"), "board": _read(device / "board_id"),
                "driver": os.path.basename(os.path.realpath(device / "device/driver"))
                if (device / "device/driver").exists() else "",
                "soft": not (device / "device").exists()})
    return found


def local_address():
    """An address of this machine both sides can meet at: an RDMA port's, else loopback."""
    for port in rdma_devices():
        if port["state"] == "ACTIVE" and port["address"]:
            return port["address"]
    return "127.0.0.1"


def is_soft(fio, address):
    """Whether this fio reaches that address by the software RNIC: rpma-fio says so."""
    try:
        asked = subprocess.run([fio, "--version", f"--serverip={address}"], capture_output=True,
                               stdin=subprocess.DEVNULL, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return not rdma_devices()
    return "software RNIC" in asked.stderr or not rdma_devices()


def busy_cores(seconds=0.25):
    """CPUs that other work keeps busy right now."""
    def used():
        ticks = [int(t) for t in _read("/proc/stat").split("\n", 1)[0].split()[1:9]]
        return sum(ticks) - ticks[3] - ticks[4]  # without idle and waiting for I/O
    before = used()
    time.sleep(seconds)
    return (used() - before) / os.sysconf("SC_CLK_TCK") / seconds


def _device_text(soft, port):
    if soft:
        return "software RNIC (iWARP over TCP, in the program's own process)", "TCP"
    if not port:
        return "", ""
    kind = " ".join(x for x in (port["driver"], port["board"]) if x)
    if port["soft"]:
        kind = "a device in software, of the kernel"
    name = port["name"] + (f" ({kind})" if kind else "")
    if port["firmware"]:
        name += f", firmware {port['firmware']}"
    over = f" on {port['interface']}" if port["interface"] else ""
    return name, f"{port['link']}{over}, {port['rate']}"


def _cpu():
    info = _read("/proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.+)$", info, re.M)
    text = model[1].strip() if model else platform.machine()
    nodes = len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1
    governor = _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    text += f"; {os.cpu_count()} CPUs, {len(os.sched_getaffinity(0))} usable"
    text += f", {nodes} NUMA node{'s' if nodes > 1 else ''}"
    return text + (f", governor {governor}" if governor else "")


def _virtual():
    vendor = _read("/sys/class/dmi/id/sys_vendor")
    hypervisor = re.search(r"^flags\s*:.*\bhypervisor\b", _read("/proc/cpuinfo"), re.M)
    if not hypervisor:
        return ""
    return f"virtual machine ({vendor})" if vendor else "virtual machine"


def _memory_size():
    total = re.search(r"^MemTotal:\s+(\d+) kB", _read("/proc/meminfo"), re.M)
    return f"{int(total[1]) / (1 << 20):.1f} GiB of DRAM" if total else ""


def _system():
    name = re.search(r'^PRETTY_NAME="?(.+?)"?$', _read("/etc/os-release"), re.M)
    return name[1] if name else platform.system()


def _package(*names):
    for name in names:
        version = _output("dpkg-query", "-W", "-f", "${Version}", name)
        if version:
            return f"{name} {version}"
    return ""


def tool_version():
    """The commit of a source tree, else the version of the package."""
    here = Path(__file__).resolve().parent
    if (here.parents[1] / ".git").exists():
        return _output("git", "-C", here, "describe", "--always", "--dirty", "--tags")
    return _package("fio-rpma-tools")


def ddio_note(soft):
    if soft:
        return ("DDIO plays no part: the writes of a device in software are the CPU's own stores, "
                "flushed as such.")
    if "GenuineIntel" not in _read("/proc/cpuinfo"):
        return ("DDIO is Intel's; whether this machine's I/O writes stop in a cache is for its "
                "vendor to say. Where they do, and the platform has no eADR, an APM flush does "
                "not reach persistence.")
    return ("The state of DDIO was not determined (its switch is in the root port of the NIC and "
            "takes root to read). With DDIO on and no eADR, an APM flush ends in the CPU's cache: "
            "such figures are not those of durable writes. See “direct write to PMem” in the "
            "guide.")


def facts(fio, address):
    """An ordered {label: text} of one machine; what cannot be found is left out."""
    soft = is_soft(fio, address)
    ports = [p for p in rdma_devices() if p["state"] == "ACTIVE"]
    port = next((p for p in ports if p["address"] == address), ports[0] if ports else None)
    device, link = _device_text(soft, port)
    found = {
        "Host": socket.gethostname(), "CPU": _cpu(), "Memory": _memory_size(),
        "System": ", ".join(x for x in (_system(), _virtual()) if x),
        "Kernel": platform.release(), "RDMA device": device, "Link": link,
        "DDIO": ddio_note(soft or bool(port and port["soft"])),
        "fio": _output(fio, "--version"),
        "RDMA libraries": ", ".join(x for x in (_package("libibverbs1"), _package("librdmacm1",
                                                                                  "librdmacm1t64"))
                                    if x),
        "libpmem2": _package("libpmem2-1"),
        "fio-rpma": tool_version(), "Python": platform.python_version()}
    return {label: text for label, text in found.items() if text}


def memory_facts(memory, place):
    """What a server's memory is, in words."""
    if memory == "dram":
        return "DRAM, by anonymous mapping; not persistent"
    domains = {_read(p) for p in Path("/sys/bus/nd/devices").glob("region*/persistence_domain")}
    domain = ", ".join(sorted(d for d in domains if d)) or "not told by the kernel"
    meaning = " (eADR)" if domain == "cpu_cache" else " (ADR)" if domain == "memory_controller" else ""
    kind = "device DAX" if memory == "devdax" else "a file on a DAX file system"
    return f"{kind}, {place}; persistence domain: {domain}{meaning}"
