# SPDX-License-Identifier: BSD-3-Clause
#
# What comes from the network, thrown at librpma by libFuzzer: tests/fuzz/test_fuzz.py builds these
# with clang into a build of their own, and runs them.

FUZZ_PROGS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))

.PHONY: fuzz-progs
fuzz-progs: $(FUZZ_PROGS)

$(FUZZ_PROGS:%=%.o): MODULE_CPPFLAGS += -Itests/unit

# the fakes are those of the unit tests
$(FUZZ_PROGS): %: %.o $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/unit/mock_*.c) tests/unit/fixture.c) $(LIBRPMA_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(COMMON_LDFLAGS) -fsanitize=fuzzer $(LIBRPMA_UNIT_LDFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka

CHECK_ITEMS += $(if $(SAN)$(COVERAGE),,tests/fuzz/test_fuzz.py)

include $(filter-out %/module.mk,$(wildcard tests/fuzz/*.mk))
