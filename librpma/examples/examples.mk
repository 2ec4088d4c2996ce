# SPDX-License-Identifier: BSD-3-Clause
#
# Each example is a folder with a client and a server.

EXAMPLE_SRC := $(wildcard librpma/examples/*/client.c librpma/examples/*/server.c)
EXAMPLE_PROGS := $(EXAMPLE_SRC:%.c=$(BUILD)/%)
EXAMPLE_COMMON := $(BUILD)/librpma/examples/common.a

ALL += $(EXAMPLE_PROGS)
# one of tests/system, which runs with sanitizers and in coverage, too: it needs no fio
EXAMPLE_ITEMS := $(if $(SAN)$(COVERAGE),tests/system/test_librpma_examples.py)
CHECK_ITEMS += $(EXAMPLE_ITEMS)
LAB_ITEMS += $(EXAMPLE_ITEMS)

$(EXAMPLE_COMMON): $(BUILD)/librpma/examples/common.o $(BUILD)/librpma/examples/memory.o
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(EXAMPLE_PROGS): %: %.o $(EXAMPLE_COMMON) $(LIBRPMA_SO)
	$(call say,LD,$@)
	$(Q)$(CC) $(COMMON_LDFLAGS) $(LDFLAGS) '-Wl,-rpath,$$ORIGIN/../..' -o $@ $^ -lpmem2 -libverbs
