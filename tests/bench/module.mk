# SPDX-License-Identifier: BSD-3-Clause
# The floor that the engines are measured against, and `make bench`.

FLOOR := $(BUILD)/bench/floor
FLOOR_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/bench/floor*.c))

$(FLOOR_OBJS): MODULE_CPPFLAGS += -Itests/bench
$(FLOOR_OBJS): | $(LIBRPMA_CONFIG)

$(FLOOR): $(FLOOR_OBJS)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(COMMON_LDFLAGS) $(LDFLAGS) -o $@ $^ -lrdmacm -libverbs -lpmem2

TEST_EXTRA += $(FLOOR)

bench:
	$(Q)tools/setup check bench
	$(Q)$(MAKE) --no-print-directory all $(FLOOR) $(PEER)
	$(Q)tests/bench/floor_ratio.py --build $(BUILD)
	$(Q)tests/bench/floor_ratio.py --build $(BUILD) --depths 16,128 --batch 16
	$(Q)tests/bench/engine_cost.py --build $(BUILD)
	$(Q)tests/bench/softrnic_ratio.py --build $(BUILD)

# The same on the kernel's device, and the latency of a durable write against perftest's parts of it.
# As for any such measurement, CPUs that have nothing to do stay awake (idle=poll): to wake one that
# is emulated takes some 40 us, so whether the device's worker, which is a thread of the kernel, falls
# asleep between two I/Os would be what is measured.
.PHONY: bench-lab
bench-lab: lab
	$(Q)tests/lab/lab run --append idle=poll --time-limit 3600 -- sh -c 'cd /src && tests/bench/latency_ratio.py && \
		tests/bench/floor_ratio.py --build build --rnic hw --addr $$RPMA_TEST_ADDR \
			--memory $$RPMA_TEST_DEVDAX --methods read,native,gpspm --seconds 1 --warm-up 1'

# What a call costs in librpma, ours and Debian's.  The program defines the verbs itself and uses
# whichever librpma.so.0 LD_LIBRARY_PATH gives it.
LIBRPMA_COST := $(BUILD)/bench/librpma_cost
LIBRPMA_COST_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/bench/librpma_cost*.c))

$(LIBRPMA_COST_OBJS): $(LIBRPMA_CONFIG)

$(LIBRPMA_COST): $(LIBRPMA_COST_OBJS) $(LIBRPMA_SO)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -rdynamic $(COMMON_LDFLAGS) $(LDFLAGS) -o $@ $^ -ldl

TEST_EXTRA += $(LIBRPMA_COST)
# valgrind runs no program built with a sanitizer, and only an optimized one is worth counting.
CHECK_ITEMS += $(if $(SAN)$(COVERAGE),,tests/bench/test_librpma_cost.py tests/bench/test_engine_cost.py)
