# SPDX-License-Identifier: BSD-3-Clause
"""Builds the lab's root file system: Debian, two kernels, and the source of the fio in it.

Needs the network once.  Works as root, and as an ordinary user where user namespaces are allowed.
"""

import fcntl
import getpass
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITE = "trixie"
KERNELS = {"stable": "trixie", "backports": "trixie-backports"}
# Where fio and its source are looked for, in this order.
FIO_SUITES = ["trixie", "trixie-backports", "forky"]
FIO_SRC = "/usr/src/fio"
BOOT_MODULES = ["fs/(9p|netfs|overlayfs|ext4|jbd2|mbcache)", "net/9p", "net/ipv./(ip6_)?udp_tunnel", "crypto/",
                "drivers/(infiniband/(core|sw)|nvdimm|dax|acpi/nfit)/", "drivers/net/(dummy|virtio_net|net_failover)"]
RECIPE = 1  # raised when a change of this file must rebuild the roots that exist


class LabError(Exception):
    """What went wrong, in one line; the exit status that says so."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


SETUP_FAILED = 240


def say(message):
    print(f"lab: {message}", file=sys.stderr, flush=True)


def packages():
    lines = (HERE / "packages").read_text().splitlines()
    return sorted(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def recipe():
    """What a root is made of besides the packages."""
    return f"{RECIPE} {SUITE} kernels {' '.join(KERNELS.values())} fio {' '.join(FIO_SUITES)}"


@contextmanager
def locked(lab_dir, exclusive):
    """Builders exclude each other and whoever runs a machine of this root."""
    lab_dir.mkdir(parents=True, exist_ok=True)
    # read-only, so that another user's lab can be used, too
    with open(os.open(lab_dir / "lock", os.O_RDONLY | os.O_CREAT, 0o644)) as lock:
        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for others who use {lab_dir}")
            fcntl.flock(lock, kind)
        yield


def built(lab_dir):
    """Whether the root is there and has every package of the list; it may have more."""
    stamp = lab_dir / "contents"
    lines = stamp.read_text().splitlines() if stamp.exists() else []
    return lines[:1] == [recipe()] and set(packages()) <= set(lines[1:])


def run_logged(log, command, **kwargs):
    """Runs a command, its output into the log; the log's end is shown when it fails."""
    with open(log, "ab") as sink:
        sink.write(f"$ {' '.join(map(str, command))}\n".encode())
        sink.flush()
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sink,
                                stderr=subprocess.STDOUT, check=False, **kwargs).returncode
    if status != 0:
        tail = log.read_text(errors="replace").splitlines()[-20:]
        print("\n".join(tail), file=sys.stderr)
        raise LabError(SETUP_FAILED,
                       f"{command[0]} failed ({status}); its last lines are above, all of them in {log}")


class Archive:
    """The Debian archive this machine itself uses, read with apt state of our own."""

    def __init__(self, work, log):
        self.work, self.log = work, log
        self.mirror, self.keyring = self._find()
        for folder in ("lists/partial", "cache/archives/partial"):
            (work / folder).mkdir(parents=True)
        self.sources = work / "sources.list"
        self.sources.write_text("".join(
            f"{kind} {self.line(suite)}\n"
            for suite in dict.fromkeys([SUITE, *KERNELS.values(), *FIO_SUITES])
            for kind in ("deb", "deb-src")))
        self.options = [word for option in (
            f"Dir::Etc::sourcelist={self.sources}", "Dir::Etc::sourceparts=/dev/null",
            "Dir::Etc::preferences=/dev/null", "Dir::Etc::preferencesparts=/dev/null",
            f"Dir::State::Lists={work}/lists", f"Dir::State::extended_states={work}/extended",
            f"Dir::Cache={work}/cache", "Dir::State::status=/dev/null",
            f"APT::Sandbox::User={getpass.getuser()}", "APT::Architecture=amd64",
        ) for word in ("-o", option)]

    @staticmethod
    def _find():
        """(mirror, keyring or None), from LAB_MIRROR or the machine's own configuration."""
        mirror, keyring = os.environ.get("LAB_MIRROR"), None
        release = dict(re.findall(r'^(\w+)="?([^"\n]*)', Path("/etc/os-release").read_text(), re.M))
        if not mirror and release.get("ID") == "debian":
            targets = subprocess.run(
                ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT) $(SIGNED_BY)",
                 "Created-By: Packages"], capture_output=True, text=True, check=False).stdout
            names = {release.get("VERSION_CODENAME"), "stable", "testing", "unstable", "sid"} - {None}
            for uri, suite, component, *signed in (t.split() for t in targets.splitlines()):
                if suite in names and component == "main":
                    mirror = uri
                    keyring = signed[0] if signed and signed[0].startswith("/") else None
                    break
        if not mirror:
            raise LabError(SETUP_FAILED, "no Debian archive in this machine's apt configuration; "
                           "name one: LAB_MIRROR=URL")
        usual = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
        return mirror, keyring or (str(usual) if usual.exists() else None)

    def line(self, suite):
        signed = f"[signed-by={self.keyring}] " if self.keyring else ""
        return f"{signed}{self.mirror} {suite} main"

    def apt(self, *args, **kwargs):
        run_logged(self.log, ["apt-get", "-q", "-y", *self.options, *args], **kwargs)

    def query(self, *args):
        return subprocess.run(["apt-cache", *self.options, *args], capture_output=True, text=True,
                              check=True).stdout

    def version(self, package, suite):
        for line in self.query("madison", package).splitlines():
            _, version, where = (part.strip() for part in line.split("|"))
            if f" {suite}/" in where and where.endswith("Packages"):
                return version
        return None

    def fio(self):
        """(version, suite, tarball) of the first fio whose upstream source the archive has."""
        missing = []
        for suite in FIO_SUITES:
            version = self.version("fio", suite)
            if not version:
                continue
            folder = self.work / f"fio-{suite}"
            folder.mkdir()
            # Only the upstream tarball matters: Debian's patches leave fio's structures alone.
            with open(self.log, "ab") as sink:
                subprocess.run(["apt-get", "-q", *self.options, "source", "--download-only",
                                "--tar-only", f"fio/{suite}"], cwd=folder, stdout=sink,
                               stderr=sink, stdin=subprocess.DEVNULL, check=False)
            tarballs = [f for f in folder.glob("fio_*.orig.tar.*") if f.suffix != ".asc"]
            if tarballs:
                why = f", since the archive lacks the source of {' and '.join(missing)}" if missing else ""
                say(f"fio in the lab: {version} of {suite}{why}")
                return version, suite, tarballs[0]
            missing.append(f"{version} ({suite})")
        raise LabError(SETUP_FAILED, "the archive has the source of no fio: "
                       + (", ".join(missing) or "no fio at all"))

    def kernel_debs(self, suite):
        """Downloads the packages that make up the suite's kernel; returns their files."""
        meta = self.version("linux-image-amd64", suite)
        if not meta:
            raise LabError(SETUP_FAILED, f"the archive has no kernel in {suite}")
        found, queue = {}, [f"linux-image-amd64={meta}"]
        while queue:
            depends = re.findall(r"^Depends: (.*)$", self.query("show", queue.pop()), re.M)
            for name, version in re.findall(
                    r"(linux-(?:base|image|binary|modules)-\d\S*)(?: \(= ([^)]+)\))?", " ".join(depends)):
                if name not in found:
                    found[name] = version or meta
                    queue.append(f"{name}={found[name]}")
        folder = self.work / f"kernel-{suite}"
        folder.mkdir()
        self.apt("download", *(f"{name}={version}" for name, version in found.items()), cwd=folder)
        return sorted(folder.glob("*.deb"))


def apt_options(work):
    """The machine's own download settings (a proxy, for example), for the apt inside."""
    path = work / "acquire.conf"
    settings = subprocess.run(["apt-config", "dump", "--no-empty", "--format", '%f "%v";%n', "Acquire"],
                              capture_output=True, text=True, check=True).stdout
    path.write_text("".join(line + "\n" for line in settings.splitlines()
                            if not re.match(r"Acquire::(IndexTargets|Changelogs|CompressionTypes)", line)))
    return path


def bootstrap(archive, fio_suite, root):
    work = archive.work
    command = ["mmdebstrap", "--variant=minbase", f"--include={','.join(packages())}",
               f"--aptopt={apt_options(work)}", "--dpkgopt=path-exclude=/usr/share/doc/*",
               "--dpkgopt=path-exclude=/usr/share/locale/*", "--format=tar"]
    if archive.keyring:
        command.append(f"--keyring={archive.keyring}")
    suites = [SUITE]
    if fio_suite != SUITE:
        suites.append(fio_suite)
        pins = work / "preferences"
        pins.write_text(f"Package: *\nPin: release n={fio_suite}\nPin-Priority: -1\n\n"
                        f"Package: fio\nPin: release n={fio_suite}\nPin-Priority: 990\n")
        command.append(f"--setup-hook=mkdir -p \"$1/etc/apt/preferences.d\" && "
                       f"cp '{pins}' \"$1/etc/apt/preferences.d/fio\"")
    tarball = work / "root.tar"
    run_logged(archive.log, [*command, SUITE, tarball,
                             *(f"deb {archive.line(suite)}" for suite in suites)])
    run_logged(archive.log, ["tar", "-C", root, "--exclude=./dev/*", "-xf", tarball])
    tarball.unlink()
    for folder in ("src", "results", "run/lab", "mnt/pmem", "dev", "proc", "sys", "tmp"):
        (root / folder).mkdir(parents=True, exist_ok=True)


def add_kernel(archive, name, suite, root, kernels):
    """Unpacks a kernel without installing it: no initramfs is made, both can be there."""
    tree = archive.work / f"tree-{name}"
    tree.mkdir()
    for deb in archive.kernel_debs(suite):
        run_logged(archive.log, ["dpkg-deb", "-x", deb, tree])
    modules = next(p for base in ("usr/lib/modules", "lib/modules") for p in tree.glob(f"{base}/*"))
    version = modules.name
    image = next(p for p in [tree / f"boot/vmlinuz-{version}", modules / "vmlinuz"] if p.exists())
    (kernels / name).mkdir(parents=True)
    shutil.copy(image, kernels / name / "vmlinuz")
    (kernels / name / "version").write_text(version + "\n")
    shutil.copytree(modules, root / "usr/lib/modules" / version, symlinks=True)
    unpack_modules(root / "usr/lib/modules" / version)
    run_logged(archive.log, enter(root, [], f"depmod {version}"))
    shutil.rmtree(tree)
    return version


def unpack_modules(folder):
    """Uncompresses the modules that each boot loads: that is slow on an emulated processor."""
    for module in folder.rglob("*.ko.xz"):
        if any(re.search(rf"/{part}", str(module)) for part in BOOT_MODULES):
            module.with_suffix("").write_bytes(lzma.decompress(module.read_bytes()))
            module.unlink()


def enter(root, binds, script, env=None):
    """The command that runs a shell script as root inside the root, folders bound into it."""
    # what is mounted here stays here; in a chroot / is no mount, so the root becomes one
    steps = ["set -e", 'root=$1', "mount --make-rprivate / 2>/dev/null ||"
             ' { mount --bind "$root" "$root"; mount --make-rprivate "$root"; }']
    for host in ("/dev", "/proc", "/sys"):
        steps.append(f'mount --rbind {host} "$root{host}"')
    for i in range(len(binds)):
        steps.append(f'mount --bind "${2 * i + 2}" "$root/${{{2 * i + 3}}}"')
    steps.append(f"shift {2 * len(binds) + 1}")
    steps.append('exec chroot "$root" /usr/bin/env -i "$@"')
    words = [str(word) for pair in binds for word in pair]
    variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
                 **(env or {})}
    return ["unshare", "--mount", "--propagation=unchanged", *([] if os.geteuid() == 0 else ["--map-root-user"]),
            "bash", "-c", "\n".join(steps), "lab", str(root), *words,
            *(f"{k}={v}" for k, v in variables.items()), "bash", "-c", script]


def add_fio_source(archive, version, tarball, root):
    tree = root / FIO_SRC[1:]
    tree.mkdir(parents=True)
    run_logged(archive.log, ["tar", "-C", tree, "--strip-components=1", "-xf", tarball])
    run_logged(archive.log, enter(root, [], f"cd {FIO_SRC} && ./configure --disable-native && "
                                  "dpkg-query -W -f '${source:Version}\\n' fio >.made-for"))
    if (tree / ".made-for").read_text().strip() not in (version, re.sub(r"\+b\d+$", "", version)):
        raise LabError(SETUP_FAILED, f"the root got another fio than {version}")


def build(lab_dir):
    """Makes lab_dir hold the lab; does nothing when it does."""
    if built(lab_dir):
        return
    with locked(lab_dir, exclusive=True):
        if built(lab_dir):
            return
        for tool in ("mmdebstrap", "unshare", "tar", "dpkg-deb"):
            if not shutil.which(tool):
                raise LabError(SETUP_FAILED, f"{tool} is missing; install it: tools/setup lab")
        started = time.monotonic()
        (lab_dir / "contents").unlink(missing_ok=True)
        for old in [lab_dir / "root", lab_dir / "kernels", *lab_dir.glob("work-*")]:
            if old.exists():
                shutil.rmtree(old)
        log = lab_dir / "build.log"
        log.write_bytes(b"")
        say(f"building the virtual machine in {lab_dir}, once (about 3 minutes)")

        def step(number, what):
            say(f"[{number}/5] {time.monotonic() - started:3.0f} s  {what}")

        with tempfile.TemporaryDirectory(dir=lab_dir, prefix="work-") as work:
            os.chmod(work, 0o755)  # mmdebstrap's other user ids must reach it
            step(1, "reading the archive's package lists")
            archive = Archive(Path(work), log)
            archive.apt("update")
            version, fio_suite, tarball = archive.fio()
            step(2, f"Debian {SUITE} with {len(packages())} packages and what they need")
            root, kernels = lab_dir / "root", lab_dir / "kernels"
            root.mkdir()
            bootstrap(archive, fio_suite, root)
            for number, (name, suite) in enumerate(KERNELS.items(), 3):
                step(number, f"the {name} kernel")
                add_kernel(archive, name, suite, root, kernels)
            step(5, f"headers of fio {version}")
            add_fio_source(archive, version, tarball, root)
        (lab_dir / "contents").write_text("\n".join([recipe(), *packages()]) + "\n")
        say(f"built in {time.monotonic() - started:.0f} s")
