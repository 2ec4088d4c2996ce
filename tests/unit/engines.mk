# SPDX-License-Identifier: GPL-2.0-only
#
# The engines' pure parts: what goes over the wire, and what is to be flushed.

ENGINES_UNIT := $(BUILD)/tests/unit/engines_wire $(BUILD)/tests/unit/engines_ranges

TEST_PROGS += $(ENGINES_UNIT)

$(ENGINES_UNIT:%=%.o): MODULE_CPPFLAGS += -Iengines

$(BUILD)/tests/unit/engines_%: $(BUILD)/tests/unit/engines_%.o $(BUILD)/engines/%.o
	$(call say,LD,$@)
	$(Q)$(CC) $(COMMON_LDFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka

# what the fuzzer of the same parts needs beside what all have (tests/fuzz/module.mk)
$(BUILD)/tests/fuzz/fuzz_engines_wire.o: MODULE_CPPFLAGS += -Iengines
$(BUILD)/tests/fuzz/fuzz_engines_wire: $(BUILD)/engines/wire.o
