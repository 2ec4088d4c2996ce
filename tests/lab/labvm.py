# SPDX-License-Identifier: BSD-3-Clause
"""A machine of the lab: QEMU, its output as it comes, and how it ended."""

import ctypes
import lzma
import os
import selectors
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from labroot import FIO_SRC, HERE, LabError

# Exit statuses of the lab itself; a command's own come back as they are.
NO_EMULATOR, NO_BOOT, PANIC, TIME_OUT, DIED = 241, 242, 243, 244, 245
OFF_LIMIT = 20  # seconds a machine may take to switch itself off
BOOT_LIMIT = 300  # seconds; 10 are usual, but emulated on a busy machine a boot has taken 50
SHOWN_LINES = 25  # of the console, when the machine fails
ADDRESS = "10.77.0.{}"


def accelerator():
    """KVM only where it is the real thing: other hypervisors put a /dev/kvm of their own there."""
    real = any(Path(f"/sys/module/kvm_{vendor}").exists() for vendor in ("intel", "amd"))
    return "kvm" if real and os.access("/dev/kvm", os.R_OK | os.W_OK) else "tcg,thread=multi"


def emulator():
    name = os.environ.get("LAB_QEMU", "qemu-system-x86_64")
    path = shutil.which(name)
    if not path:
        raise LabError(NO_EMULATOR, f"no emulator: {name} is not installed; tools/setup lab installs it")
    return path


def initrd(lab_dir, version, run_dir):
    """An initramfs of busybox, tests/lab/init and the modules needed to mount the root."""
    tree, modules = run_dir / "initrd", lab_dir / "root/usr/lib/modules" / version
    for folder in ("bin", "modules"):
        (tree / folder).mkdir(parents=True)
    shutil.copy(lab_dir / "root/usr/bin/busybox", tree / "bin/busybox")
    shutil.copy(HERE / "init", tree / "init")
    (tree / "init").chmod(0o755)
    needs = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        module, _, rest = line.partition(":")
        needs[Path(module).name.split(".")[0]] = [module, *rest.split()]
    order = []
    for wanted in ("9pnet_virtio", "9p", "overlay"):
        order += [m for m in reversed(needs[wanted]) if m not in order]
    for number, module in enumerate(order):
        data = (modules / module).read_bytes()
        if module.endswith(".xz"):
            data = lzma.decompress(data)
        name = Path(module).name.split(".")[0]
        (tree / "modules" / f"{number:02}-{name}.ko").write_bytes(data)
    image = run_dir / "initrd.img"
    names = "\n".join(str(p.relative_to(tree)) for p in sorted(tree.rglob("*")))
    with open(image, "wb") as sink:
        subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], cwd=tree, input=names.encode(),
                       stdout=sink, check=True)
    shutil.rmtree(tree)
    return image


def die_with_parent():
    """In the child: a lab that is killed takes its machine along."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Machine:
    """One virtual machine that runs one command (or, with none, a shell on this terminal).

    `say_out(bytes)` and `say_err(bytes)` get the command's output.  `wire` is None for an address
    of its own, or (path, number): the machine is the number-th of two on the wire at path.
    """

    def __init__(self, config, run_dir, command, name="lab", wire=None, env=None, say_out=None, say_err=None):
        self.config, self.run_dir, self.command, self.name, self.wire = config, run_dir, command, name, wire
        self.env, self.say = env or {}, {"out": say_out, "err": say_err}
        self.console = run_dir / "console.log"
        self.started = self.ready_at = self.status = self.process = None
        self.failure, self.was_cut = "", False
        self.sockets, self.open = {}, set()  # by port; those not yet at their end
        self.off_by = None
        self.pending = {"control": b"", "outside": b""}

    # -- starting

    def _control_files(self):
        control = self.run_dir / "control"
        control.mkdir(parents=True)
        (control / "command").write_bytes(b"".join(os.fsencode(w) + b"\0" for w in self.command or []))
        own = self.wire[1] if self.wire else 1
        env = {"LAB": "1", "RESULTS": f"/results/{self.name}" if self.wire else "/results",
               "FIO_SRC": FIO_SRC, "PYTHONDONTWRITEBYTECODE": "1",
               "RPMA_TEST_ADDR": ADDRESS.format(1), "LAB_OWN_ADDR": ADDRESS.format(own), **self.env}
        if self.wire:
            env["LAB_PEER_ADDR"] = ADDRESS.format(3 - own)
        (control / "environment").write_text("".join(
            f"{k}='" + v.replace("'", "'\\''") + "'\n" for k, v in env.items()))
        (control / "network").write_text(f"{'eth0' if self.wire else 'dummy0'} {ADDRESS.format(own)}\n")
        return control

    def _share(self, tag, path, readonly):
        return ["-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap"
                + (",readonly=on" if readonly else ""),
                "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]

    def _nvdimm(self, number, kind):
        path = self.config.nvdimm / f"{kind}.img"
        size = self.config.nvdimm_size << 20
        if not path.exists():
            with open(path, "wb") as sink:
                os.truncate(sink.fileno(), size)
        size = path.stat().st_size
        return ["-object", f"memory-backend-file,id=mem{number},share=on,mem-path={path},size={size}",
                "-device", f"nvdimm,id=nv{number},memdev=mem{number}"]

    def _port(self, name):
        ours, theirs = socket.socketpair()
        theirs.set_inheritable(True)
        self.sockets[name] = ours
        return theirs, ["-chardev", f"socket,id={name},fd={theirs.fileno()}",
                        "-device", f"virtserialport,chardev={name},name=lab.{name}"]

    def _network(self):
        if not self.wire:
            return ["-nic", "none"]
        path, number = self.wire
        server = "on" if number == 1 else "off"
        return ["-netdev", f"stream,id=wire,server={server},addr.type=unix,addr.path={path}",
                "-device", f"virtio-net-pci,netdev=wire,mac=52:54:00:77:00:{number:02x}"]

    def start(self):
        config, lab_dir = self.config, self.config.lab_dir
        qemu = emulator()
        control = self._control_files()
        kernel = lab_dir / "kernels" / config.kernel
        version = (kernel / "version").read_text().strip()
        append = f"console=ttyS0 quiet panic=-1 oops=panic rdinit=/init net.ifnames=0 " \
                 f"lab.cache={'loose' if self.command else 'mmap'} {config.append}"
        args = [qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-M", "q35,nvdimm=on", "-accel", accelerator(), "-cpu", "max",
                "-smp", str(config.cpus), "-m", f"{config.memory}M,slots=4,maxmem=16G",
                "-kernel", kernel / "vmlinuz", "-initrd", initrd(lab_dir, version, self.run_dir),
                "-append", append, "-serial", f"file:{self.console}",
                *self._share("root", lab_dir / "root", True), *self._share("src", config.project, True),
                *self._share("build", config.build, True), *self._share("results", config.results, False),
                *self._share("control", control, True),
                *self._nvdimm(0, "devdax"), *self._nvdimm(1, "fsdax"), *self._network(),
                "-device", "virtio-rng-pci", "-device", "virtio-serial-pci"]
        theirs = []
        for name in ("control", "outside", *(("out", "err") if self.command else ())):
            end, words = self._port(name)
            theirs.append(end)
            args += words
        if not self.command:
            args += ["-chardev", "stdio,id=tty,signal=off", "-device", "virtconsole,chardev=tty"]
        self.started = time.monotonic()
        with open(self.run_dir / "qemu.log", "wb") as log:
            self.process = subprocess.Popen(
                [str(a) for a in args], stdin=subprocess.DEVNULL if self.command else None,
                stdout=log if self.command else None, stderr=log, pass_fds=[e.fileno() for e in theirs],
                start_new_session=bool(self.command), preexec_fn=die_with_parent)
        for end in theirs:
            end.close()
        self.open = set(self.sockets)

    # -- what comes from it

    def read(self, name):
        """Takes what the port has."""
        try:
            data = self.sockets[name].recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            self.open.discard(name)
            return
        if name in self.say:
            self.say[name](data)
            return
        self.pending[name] += data
        *lines, self.pending[name] = self.pending[name].split(b"\n")
        for line in lines:
            (self._told if name == "control" else self._asked)(line.decode(errors="replace"))

    def _asked(self, line):
        """tests/lab/outside wants a range of an NVDIMM's file as a file of the results."""
        name, kind, offset, length = line.split()
        try:
            if kind not in ("devdax", "fsdax") or "/" in name:
                raise ValueError(f"bad request {line}")
            with open(self.config.nvdimm / f"{kind}.img", "rb") as image:
                image.seek(int(offset))
                data = image.read(int(length))
            if len(data) != int(length):
                raise ValueError(f"the NVDIMM has no {length} bytes at {offset}")
            (self.config.results / name).write_bytes(data)
            answer = "ok"
        except (OSError, ValueError) as error:
            answer = str(error)
        self.sockets["outside"].sendall(f"{name} {answer}\n".encode())

    def _told(self, line):
        word, _, rest = line.partition(" ")
        if word == "ready":
            self.ready_at = time.monotonic() - self.started
        elif word == "exit":
            self.status = int(rest)
        elif word == "failed":
            self.failure = rest

    # -- its end

    @property
    def ended(self):
        return not self.open

    def cut(self):
        """The power cut: nothing in the machine gets to know."""
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()

    def verdict(self):
        """The exit status, or the LabError that says what happened to the machine."""
        if self.status is not None:
            return self.status
        self.process.wait(OFF_LIMIT)
        text = self.console.read_text(errors="replace") if self.console.exists() else ""
        said = (self.run_dir / "qemu.log").read_text(errors="replace").strip().splitlines()
        if "Kernel panic" in text:
            why = text[text.index("Kernel panic"):].splitlines()[0]
            return LabError(PANIC, f"{why} (console: last lines above)")
        if self.failure:
            return LabError(NO_BOOT, f"the machine was not ready: {self.failure}")
        if self.process.returncode and not text:
            return LabError(NO_EMULATOR, f"the emulator did not start: {said[-1] if said else 'no reason given'}")
        if not self.ready_at:
            return LabError(NO_BOOT, "the machine did not boot")
        return LabError(DIED, "the machine ended before its command did "
                        f"(emulator's status {self.process.returncode})")

    def console_tail(self):
        if not self.console.exists():
            return []
        return self.console.read_text(errors="replace").splitlines()[-SHOWN_LINES:]


def watch(machines, time_limit, until=lambda: False):
    """Serves the machines until all have ended or `until()` is true; LabError when that takes too long.

    A boot may take BOOT_LIMIT; the time limit counts from the last machine's boot.
    """
    begun = time.monotonic()
    while not until() and not all(m.ended for m in machines):
        now = time.monotonic()
        running = [m for m in machines if not m.ended]
        booting = [m for m in running if not m.ready_at]
        if booting:
            limit = min(m.started for m in booting) + BOOT_LIMIT
            late = LabError(NO_BOOT, f"the machine did not boot in {BOOT_LIMIT} s")
        else:
            limit = max([begun, *(m.started + m.ready_at for m in running)]) + time_limit
            late = LabError(TIME_OUT, f"time-out: no end after {time_limit:g} s; the machine is switched off")
        if now >= limit:
            raise late
        for machine in running:
            if machine.status is not None:
                machine.off_by = machine.off_by or now + OFF_LIMIT
                limit = min(limit, machine.off_by)
                if now >= machine.off_by:
                    machine.cut()
        with selectors.DefaultSelector() as selector:
            for machine in running:
                for name in machine.open:
                    selector.register(machine.sockets[name], selectors.EVENT_READ, (machine, name))
            for key, _ in selector.select(min(60, max(0, limit - now))):
                machine, name = key.data
                machine.read(name)
