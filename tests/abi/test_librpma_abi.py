# SPDX-License-Identifier: BSD-3-Clause
"""Our librpma and the one Debian has installed: the same header, the same symbols, the same ABI."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
BUILD = (TOP / os.environ.get("BUILD", "build")).resolve()
OUR_INCLUDE = TOP / "librpma" / "include"
OUR_LIBRARY = BUILD / "librpma" / "librpma.so.0"
OUR_ARCHIVE = BUILD / "librpma" / "librpma.a"
DEBIANS_INCLUDE = Path("/usr/include")
CC = shlex.split(os.environ.get("CC", "gcc"))
FUNCTIONS = 84
NODE, NODE_OF_OURS = "LIBRPMA_1.0", "LIBRPMA_EXT_1.0"


def run(*command, **kwargs):
    return subprocess.run([str(word) for word in command], check=True, text=True,
                          stdout=subprocess.PIPE, **kwargs).stdout


def debians_library():
    for line in run("dpkg", "-L", "librpma0").splitlines():
        if line.endswith("/librpma.so.0"):
            return Path(line)
    raise FileNotFoundError("Debian's librpma is not installed: apt-get install librpma-dev")


def exported(library):
    """{node: {symbol}} of the functions a library exports."""
    nodes = {}
    for line in run("nm", "-D", "--defined-only", library).splitlines():
        match = re.fullmatch(r"[0-9a-f]+ T (\w+)@@(\S+)", line)
        if match:
            nodes.setdefault(match[2], set()).add(match[1])
    return nodes


def header_of(include):
    return (include / "librpma.h").read_text()


def names_with_values():
    """Every macro and enumerator of Debian's header that has an integer value."""
    text = re.sub(r"/\*.*?\*/", "", header_of(DEBIANS_INCLUDE), flags=re.S)
    names = re.findall(r"^#define\s+(RPMA_\w+)\s+\S", text, re.M)
    for body in re.findall(r"\benum\s+\w+\s*\{(.*?)\}", text, re.S):
        names += re.findall(r"\bRPMA_\w+", re.sub(r"=[^,]*", "", body))
    return sorted(set(names))


def values(include, folder):
    """What a program compiled with the header in this folder prints: each name and its value."""
    source = folder / "values.c"
    lines = "".join(f'\tprintf("{name} %ld\\n", (long)({name}));\n' for name in names_with_values())
    source.write_text("#include <librpma.h>\n#include <stdio.h>\n"
                      f"int main(void)\n{{\n{lines}\treturn 0;\n}}\n")
    program = folder / "values"
    run(*CC, "-I", include, source, "-o", program)
    return run(program)


def prototypes(include, folder):
    """{function: its type as the compiler sees it}, parameters' names left out."""
    source, info = folder / "all.c", folder / "all.txt"
    source.write_text("#include <librpma.h>\n")
    run("gcc", "-I", include, "-fsyntax-only", "-aux-info", info, source)
    found = {}
    for line in info.read_text().splitlines():
        match = re.search(r"extern (.*?)(rpma_\w+) (\(.*\));", line)
        if match:
            found[match[2]] = match[1] + match[3]
    return found


def test_debians_library_has_the_84_functions():
    assert len(exported(debians_library())[NODE]) == FUNCTIONS


def test_the_library_exports_the_same_functions_in_the_same_node():
    assert exported(OUR_LIBRARY)[NODE] == exported(debians_library())[NODE]


def test_what_ours_adds_is_in_a_node_and_a_header_of_its_own():
    nodes = exported(OUR_LIBRARY)
    declared = set(re.findall(r"^int (rpma_\w+)\(", (OUR_INCLUDE / "librpma_ext.h").read_text(),
                              re.M))
    assert set(nodes) == {NODE, NODE_OF_OURS}
    assert nodes[NODE_OF_OURS] == declared


def test_the_soname_is_debians():
    names = {re.search(r"Library soname: \[(.*)\]", run("readelf", "-d", library))[1]
             for library in (OUR_LIBRARY, debians_library())}
    assert names == {"librpma.so.0"}


def test_abidiff_finds_nothing_removed_and_nothing_changed():
    result = subprocess.run(["abidiff", "--no-added-syms", debians_library(), OUR_LIBRARY],
                            stdout=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_every_macro_and_enumerator_of_the_header_has_debians_value(tmp_path):
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    ours = values(OUR_INCLUDE, tmp_path / "ours")
    assert ours.count("\n") == len(names_with_values()) > 40
    assert ours == values(DEBIANS_INCLUDE, tmp_path / "theirs")


def test_every_prototype_of_the_header_is_debians(tmp_path):
    ours = prototypes(OUR_INCLUDE, tmp_path)
    assert len(ours) == FUNCTIONS
    assert ours == prototypes(DEBIANS_INCLUDE, tmp_path)


PROGRAM = r"""
#include <librpma.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	/* a region's descriptor: address 0x1000, length 16, rkey 7, flush of both types */
	unsigned char wire[21] = {0, 0x10, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0x30};
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_peer_cfg *pcfg = NULL;
	struct rpma_mr_remote *mr = NULL;
	unsigned char byte = 9;
	uint32_t sizes[4];
	size_t size;
	int ms, types;

	if (rpma_conn_cfg_new(&cfg) || rpma_peer_cfg_new(&pcfg) ||
	    rpma_mr_remote_from_descriptor(wire, sizeof(wire), &mr))
		return 1;
	rpma_conn_cfg_get_timeout(cfg, &ms);
	rpma_conn_cfg_get_cq_size(cfg, &sizes[0]);
	rpma_conn_cfg_get_rcq_size(cfg, &sizes[1]);
	rpma_conn_cfg_get_sq_size(cfg, &sizes[2]);
	rpma_conn_cfg_get_rq_size(cfg, &sizes[3]);
	rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true);
	rpma_peer_cfg_get_descriptor(pcfg, &byte);
	rpma_mr_remote_get_size(mr, &size);
	rpma_mr_remote_get_flush_type(mr, &types);
	printf("%d %u %u %u %u %u %zu %x\n", ms, sizes[0], sizes[1], sizes[2], sizes[3], byte, size, types);
	printf("%d %d %d\n", rpma_conn_cfg_set_timeout(cfg, -1), rpma_peer_new(NULL, NULL),
	       rpma_mr_remote_from_descriptor(wire, 20, &mr));
	for (int e = 1; e > RPMA_E_NOT_SHARED_CHNL - 2; e = e > -3 ? e - 1 : e > RPMA_E_UNKNOWN ? RPMA_E_UNKNOWN : e - 1)
		puts(rpma_err_2str(e));
	for (int e = -1; e < 6; e++)
		puts(rpma_utils_conn_event_2str(e));
	return rpma_conn_cfg_delete(&cfg) || rpma_peer_cfg_delete(&pcfg) || rpma_mr_remote_delete(&mr);
}
"""


@pytest.fixture(scope="module", params=["debians", "ours"])
def program(request, tmp_path_factory):
    """Compiled and linked with the header and library of one side."""
    folder = tmp_path_factory.mktemp(request.param)
    source, output = folder / "program.c", folder / "program"
    source.write_text(PROGRAM)
    include, library = {"debians": (DEBIANS_INCLUDE, debians_library()),
                        "ours": (OUR_INCLUDE, OUR_LIBRARY)}[request.param]
    run(*CC, "-I", include, source, "-o", output, library)
    return output


def test_a_program_runs_the_same_on_either_library_whichever_it_was_built_with(program):
    said = {run(program, env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)})
            for library in (OUR_LIBRARY, debians_library())}
    assert len(said) == 1
    assert next(iter(said)).startswith("1000 10 0 10 10 1 16 30\n")


def test_a_plugin_linked_with_the_static_library_exports_none_of_it(tmp_path):
    source, plugin = tmp_path / "plugin.c", tmp_path / "plugin.so"
    source.write_text("#include <librpma.h>\nint plugin(void);\n"
                      "int plugin(void) { return rpma_peer_new(0, 0); }\n")
    run(*CC, "-shared", "-fPIC", "-I", OUR_INCLUDE, source, "-o", plugin, OUR_ARCHIVE, "-lrdmacm",
        "-libverbs")
    symbols = run("nm", "-D", "--defined-only", plugin)
    assert re.search(r"\bT plugin\b", symbols)
    assert "rpma" not in symbols
