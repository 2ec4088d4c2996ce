# SPDX-License-Identifier: BSD-3-Clause
"""What every system test gets: a rig that ends with the test, and checks what it left."""

import contextlib
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import rig as rigs  # noqa: E402  pylint: disable=wrong-import-position

FSDAX_SIZE = 128 << 20
TABLES = {}  # title -> lines, shown once at the end of the run


def pytest_configure(config):
    config.addinivalue_line("markers", "lab: needs what only the lab has (kernel RDMA, root)")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("lab") and rigs.SOFT:
            item.add_marker(pytest.mark.skip(reason="on kernel RDMA only"))


@pytest.fixture(scope="session", autouse=True)
def built():
    wanted = [rigs.PLUGIN, rigs.PEER] + ([rigs.SOFTRNIC] if rigs.SOFT else [])
    missing = [str(path) for path in wanted if not path.exists()]
    assert not missing, f"build first (make tests): no {', '.join(missing)}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.failed_already = outcome.get_result().failed


@contextlib.contextmanager
def make_rig(folder):
    """A rig that ends here; whatever it left behind is an error."""
    folder.mkdir(parents=True, exist_ok=True)
    made = rigs.Rig(folder)
    try:
        yield made
    except BaseException:
        made.close()
        raise
    faults = made.close()
    strays = made.stray_files()
    shutil.rmtree(folder, ignore_errors=True)
    assert not faults, "\n".join(faults)
    assert not strays, f"left behind: {strays}"


@pytest.fixture
def rig(tmp_path, request):
    with make_rig(tmp_path / "rig") as made:
        yield made
        if getattr(request.node, "failed_already", False):
            # it left off in the middle; what it left tells nothing
            made.close()
            made.expected_files.update(made.stray_files())
            made.processes.clear()
            made.ports.clear()


@pytest.fixture(params=rigs.METHODS)
def method(request):
    return request.param


@contextlib.contextmanager
def memory_of(kind):
    """The server's filename= for a kind of memory, or a skip where there is none."""
    if kind == "dram":
        yield "malloc"
    elif kind == "devdax":
        if not rigs.DEVDAX:
            pytest.skip("no device DAX here (RPMA_TEST_DEVDAX)")
        yield rigs.DEVDAX
    else:
        if not rigs.FSDAX:
            pytest.skip("no fsdax here (RPMA_TEST_FSDAX)")
        path = Path(rigs.FSDAX) / "rpma-system-test"
        with open(path, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, FSDAX_SIZE)
        try:
            yield str(path)
        finally:
            path.unlink()


@pytest.fixture(scope="session")
def tables():
    return TABLES


def pytest_terminal_summary(terminalreporter):
    for title, lines in TABLES.items():
        terminalreporter.section(title)
        for line in lines:
            terminalreporter.write_line(line)
    out = os.environ.get("TEST_TABLE")
    if out and TABLES:
        text = "\n\n".join("\n".join([title, *lines]) for title, lines in TABLES.items())
        Path(out).write_text(re.sub(r"[ \t]+$", "", text, flags=re.M) + "\n")
