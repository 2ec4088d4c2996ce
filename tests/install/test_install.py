# SPDX-License-Identifier: BSD-3-Clause
"""What `make install` gives, and that `make uninstall` takes it away."""

import subprocess

from throwaway import BUILD, INSTALL, NEEDS_ROOT, TOP, run

pytestmark = NEEDS_ROOT


def test_man_finds_pages_of_engines_tools_and_library():
    done = run(f"{INSTALL}\nfor page in fio-rpma rpma-fio rpma-compare softrnic librpma rpma_flush; do "
               "man -P cat $page | head -n 5; done")
    for name in ("FIO-RPMA", "RPMA-FIO", "RPMA-COMPARE", "SOFTRNIC", "LIBRPMA", "RPMA_FLUSH"):
        assert name in done.stdout, f"no page {name}:\n{done.stdout}{done.stderr}"


def test_a_program_is_built_with_pkg_config_and_runs_on_the_installed_library():
    done = run(f"""{INSTALL}
cat > /tmp/p.c <<'C'
#include <librpma.h>
#include <stdio.h>
int main(void) {{ puts(rpma_err_2str(RPMA_E_NOMEM)); return 0; }}
C
gcc -o /tmp/p /tmp/p.c $(PKG_CONFIG_PATH=/usr/local/lib/pkgconfig pkg-config --cflags --libs librpma)
ldd /tmp/p | grep librpma
/tmp/p
""")
    assert "/usr/local/lib/librpma.so.0" in done.stdout
    assert done.stdout.strip().splitlines()[-1]


def test_rpma_fio_finds_the_installed_plugin():
    done = run(f"{INSTALL}\ncd /tmp; RPMA_RNIC=hw rpma-fio --enghelp=librpma_apm_client")
    assert "flush_mode" in done.stdout


def test_uninstall_takes_every_file_away():
    list_files = "find /usr/local -type f -o -type l | sort"
    # what somebody has installed before is not counted
    done = run(f"make -s uninstall BUILD={BUILD}\nrm -rf /usr/local/share/doc/fio-rpma\n"
               f"{list_files} > /tmp/before\n{INSTALL}\n"
               f"{list_files} > /tmp/between\n"
               f"make -s uninstall BUILD={BUILD}\n{list_files} > /tmp/after\n"
               "diff /tmp/before /tmp/after && ! diff -q /tmp/before /tmp/between")
    assert "differ" in done.stdout


def test_destdir_leaves_the_system_alone(tmp_path):
    done = subprocess.run(INSTALL.split() + [f"DESTDIR={tmp_path}", "PREFIX=/opt/x"], cwd=TOP,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "opt/x/lib/librpma_apm_client").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["opt"]
