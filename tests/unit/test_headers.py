# SPDX-License-Identifier: BSD-3-Clause
"""The public headers, each on its own, in C and in C++; and a C++ program that uses librpma."""

import os
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("BUILD", "build"))
INCLUDE = "librpma/include"
HEADERS = sorted(path.name for path in Path(INCLUDE).glob("*.h"))
LANGUAGES = [("gcc", "c", "gnu99"), ("gcc", "c", "gnu17"), ("clang", "c", "gnu99"), ("clang", "c", "gnu17"),
             ("g++", "c++", "gnu++11"), ("g++", "c++", "gnu++20"), ("clang++", "c++", "gnu++11"),
             ("clang++", "c++", "gnu++20")]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]

PROGRAM = r"""
#include <librpma.h>
#include <librpma_ext.h>
#include <cstring>

int main()
{
	struct rpma_conn_cfg *cfg = nullptr;
	struct rpma_peer *peer = nullptr;
	struct rpma_limits limits;
	uint32_t size = 0;

	if (rpma_conn_cfg_new(&cfg) || rpma_conn_cfg_get_cq_size(cfg, &size) || rpma_conn_cfg_delete(&cfg))
		return 1;
	if (rpma_peer_new(nullptr, &peer) != RPMA_E_INVAL || rpma_peer_get_limits(nullptr, &limits) != RPMA_E_INVAL)
		return 2;
	return size == 10 && std::strlen(rpma_err_2str(RPMA_E_NOMEM)) ? 0 : 3;
}
"""


def compile_(command, source, **kwargs):
    result = subprocess.run(command, input=source, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            timeout=120, check=False, **kwargs)
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}"


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("compiler,language,standard", LANGUAGES)
def test_a_header_compiles_on_its_own(header, compiler, language, standard):
    compile_([compiler, "-x", language, f"-std={standard}", *WARNINGS, "-I", INCLUDE, "-fsyntax-only", "-"],
             f"#include <{header}>\n#include <{header}>\n")


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_cpp_program_links_and_runs(compiler, tmp_path):
    program = tmp_path / "program"
    library = (BUILD / "librpma").resolve()
    compile_([compiler, "-x", "c++", *WARNINGS, "-I", INCLUDE, "-o", str(program), "-", "-L", str(library),
              f"-Wl,-rpath,{library}", "-lrpma", "-lrdmacm", "-libverbs"], PROGRAM)
    assert subprocess.run([program], check=False, timeout=60).returncode == 0
