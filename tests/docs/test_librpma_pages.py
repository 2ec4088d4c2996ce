# SPDX-License-Identifier: BSD-3-Clause
"""The pages of librpma, its headers, its exported symbols and its unit tests say the same.

A unit test that provokes an error is called <function>__<what>__E_<ERROR>, for instance
rpma_mr_reg__peer_is_NULL__E_INVAL.  The errors in these names are the errors in the page.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
MAN = ROOT / "docs/man"
INCLUDE = ROOT / "librpma/include"
LIBRARY = BUILD / "librpma/librpma.so.0"
UNIT_TESTS = ROOT / "tests/unit"

SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "ERRORS", "THREAD SAFETY",
            "SEE ALSO"]

# what the other side, or whoever sits in between, can choose
FED_BY_THE_PEER = """
rpma_conn_apply_remote_peer_cfg rpma_conn_get_private_data rpma_conn_req_connect
rpma_conn_req_get_private_data rpma_conn_req_recv rpma_cq_get_wc rpma_ep_next_conn_req rpma_flush
rpma_mr_get_descriptor rpma_mr_reg rpma_mr_remote_from_descriptor rpma_mr_remote_get_flush_type
rpma_mr_remote_get_size rpma_peer_cfg_from_descriptor rpma_peer_cfg_get_descriptor rpma_read
rpma_recv rpma_srq_recv
""".split()


def output(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def squeezed(text):
    """One space where C needs one, none elsewhere."""
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r" ?([*(),;\[\]]) ?", r"\1", text)


def prototypes(header):
    """{function: prototype} of a header."""
    text = re.sub(r"/\*.*?\*/", " ", (INCLUDE / header).read_text(), flags=re.S)
    found = re.finditer(r"^((?:const char \*|int )(rpma_\w+)\([^;{}]*\));", text, flags=re.M | re.S)
    return {match[2]: squeezed(match[1]) for match in found}


def exported(node):
    """Functions the library exports in a version node."""
    table = output("nm", "-D", "--defined-only", "--with-symbol-versions", str(LIBRARY))
    return set(re.findall(rf" T (\w+)@+{node}$", table, flags=re.M))


def page_text(function):
    """The source of a function's page; what only points to another is followed."""
    text = (MAN / f"man3/{function}.3").read_text()
    while text.startswith(".so "):
        text = (MAN / text.split()[1]).read_text()
    return text


def sections(text):
    """{title: lines} of a page."""
    parts = re.split(r"^\.Sh (.*)$", text, flags=re.M)[1:]
    return {title: body.strip("\n").split("\n") for title, body in zip(parts[::2], parts[1::2])}


def synopsis(function):
    """The prototype of a function as its page has it."""
    lines = sections(page_text(function))["SYNOPSIS"]
    assert (".In librpma_ext.h" in lines) == (function in EXTENSIONS)
    start = lines.index(f".Fo {function}")
    kind = lines[start - 1].split(" ", 1)[1].strip('"')
    arguments = []
    for line in lines[start + 1:]:
        if line == ".Fc":
            break
        arguments.append(re.fullmatch(r'\.Fa "(.*)"', line)[1])
    return squeezed(f"{kind} {function}({', '.join(arguments)})")


def documented_errors(function):
    errors = set()
    for line in sections(page_text(function))["ERRORS"]:
        item = re.fullmatch(r"\.It Er RPMA_E_(\w+)(?: Pq Fn (\w+) No only)?", line)
        assert item or not line.startswith(".It"), f"{function}: cannot read {line!r}"
        if item and item[2] in (None, function):
            errors.add(item[1])
    return errors


def provoked_errors():
    """{function: errors} by the names of the unit tests."""
    errors = {}
    for path in sorted(UNIT_TESTS.glob("librpma_*.c")):
        names = re.findall(r"\b(rpma_[a-z0-9_]+?)__\w+?__E_([A-Z_]+)\(void", path.read_text())
        for function, error in names:
            errors.setdefault(function, set()).add(error)
    return errors


FUNCTIONS = prototypes("librpma.h")
EXTENSIONS = prototypes("librpma_ext.h")
ALL = {**FUNCTIONS, **EXTENSIONS}
PAGES = [MAN / "man7/librpma.7"] + sorted(path for path in MAN.glob("man3/rpma_*.3")
                                          if not path.read_text().startswith(".so "))
of_each_function = pytest.mark.parametrize("function", sorted(ALL))
of_each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)


def test_the_library_has_84_functions():
    assert len(FUNCTIONS) == 84


def test_header_and_exported_symbols_agree():
    assert exported("LIBRPMA_1.0") == set(FUNCTIONS)


def test_extension_header_and_exported_symbols_agree():
    assert exported("LIBRPMA_EXT_1.0") == set(EXTENSIONS)


def test_nothing_else_is_exported():
    table = output("nm", "-D", "--defined-only", "--with-symbol-versions", str(LIBRARY))
    names = {line.split()[-1].split("@")[0] for line in table.splitlines()}
    assert names == set(ALL) | {"LIBRPMA_1.0", "LIBRPMA_EXT_1.0"}


def test_there_is_a_page_for_every_function_and_no_other():
    assert {path.stem for path in MAN.glob("man3/*.3")} == set(ALL)


@pytest.mark.parametrize("title, functions", [("PAGES", FUNCTIONS), ("EXTENSIONS", EXTENSIONS)])
def test_librpma_7_lists_every_page(title, functions):
    lines = sections((MAN / "man7/librpma.7").read_text())[title]
    assert {line.split()[2] for line in lines if line.startswith(".It Xr ")} == set(functions)


@of_each_function
def test_man_prints_the_page_by_the_function_s_name(function):
    shown = subprocess.run(["man", "--warnings", "-M", str(MAN), "-P", "cat", function], text=True,
                           check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
    # groff 1.23 tells of every line it could not spread over the width
    assert re.sub(r".*: cannot adjust line\n", "", shown.stderr) == ""
    names = shown.stdout.split("SYNOPSIS")[0].split("NAME\n")[1].split(" — ")[0]
    assert function in re.split(r"[,\s]+", names)


@of_each_function
def test_synopsis_is_the_header_s_prototype(function):
    assert synopsis(function) == ALL[function]


@of_each_function
def test_page_has_every_section_in_order(function):
    titles = list(sections(page_text(function)))
    optional = {"SECURITY", "EXAMPLE"}
    assert [title for title in titles if title not in optional] == SECTIONS
    assert ("SECURITY" in titles) == (function in FED_BY_THE_PEER)


@of_each_function
def test_errors_of_the_page_are_those_provoked_by_the_unit_tests(function):
    assert documented_errors(function) == provoked_errors().get(function, set())


def test_mandoc_finds_nothing_to_complain_of():
    lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *map(str, PAGES)], text=True,
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert lint.stdout == "" and lint.returncode == 0


@of_each_page
def test_page_refers_to_pages_that_exist(page):
    named = set(re.findall(r"^\.(?:It )?Xr (\w*rpma\w*) (\d)", page.read_text(), flags=re.M))
    missing = {name for name, section in named
               if not (MAN / f"man{section}/{name}.{section}").exists()}
    assert missing == set()


# names the examples take for granted
PRELUDE = """
#include <endian.h>
#include <inttypes.h>
#include <libpmem2.h>
#include <librpma_ext.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#define MSG_SIZE 64
extern struct rpma_peer *peer;
extern struct rpma_ep *ep;
extern struct rpma_conn_req *req;
extern struct rpma_conn *conn;
extern struct rpma_mr_local *mr;
extern struct rpma_cq *cq;
extern struct pmem2_map *map;
extern const char *addr, *port;
extern size_t old, len, needed;
extern void *buf;
void handle();
int example(struct rpma_mr_local *src, struct rpma_mr_remote *dst);
int example_of_read(struct rpma_mr_local *dst, struct rpma_mr_remote *src);
"""


def test_the_examples_compile(tmp_path):
    pages = [page for page in PAGES if ".Bd -literal -offset" in page.read_text()]
    assert len(pages) > 10
    for page in pages:
        lines = sections(page.read_text())["EXAMPLE"]
        code = "\n".join(lines[lines.index(".Bd -literal -offset indent") + 1:lines.index(".Ed")])
        code = code.replace("\\e", "\\")
        head = ""
        if code.startswith("static"):
            head, code = code.split("\n}\n", 1)
            head += "\n}\n"
        name = "_of_read" if page.stem == "rpma_read" else ""
        types = ["mr_local *src", "mr_remote *dst"]
        if name:
            types = ["mr_local *dst", "mr_remote *src"]
        source = tmp_path / f"{page.stem}.c"
        source.write_text(f"{PRELUDE}{head}int example{name}(struct rpma_{types[0]}, "
                          f"struct rpma_{types[1]})\n{{\n(void)src;\n(void)dst;\n{{\n{code}\n}}\n"
                          "return 0;\n}\n")
        done = subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-Wall", "-Wno-unused",
                               "-Wno-uninitialized", "-Wno-unknown-warning-option", "-Wno-maybe-uninitialized",
                               "-Werror", f"-I{INCLUDE}", "-c", "-o",
                               str(tmp_path / "out.o"), str(source)], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, f"{page.name}:\n{done.stdout}"
