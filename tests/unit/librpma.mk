# SPDX-License-Identifier: BSD-3-Clause
#
# librpma's objects, linked with fakes of the verbs, rdma_cm and memory calls they make.

LIBRPMA_UNIT_DIR := $(BUILD)/tests/unit
LIBRPMA_UNIT_SRC := $(wildcard tests/unit/librpma_*.c)
LIBRPMA_UNIT_SHARED := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/unit/mock_*.c) tests/unit/fixture.c tests/unit/walk.c)
LIBRPMA_UNIT_PROGS := $(LIBRPMA_UNIT_SRC:%.c=$(BUILD)/%)
LIBRPMA_UNIT_WRAPPED := malloc calloc realloc free posix_memalign aligned_alloc strdup mmap munmap
LIBRPMA_UNIT_LDFLAGS := $(LIBRPMA_UNIT_WRAPPED:%=-Wl,--wrap=%)

TEST_PROGS += $(LIBRPMA_UNIT_PROGS)
THREADED_PROGS += $(filter %_threads,$(LIBRPMA_UNIT_PROGS))

$(LIBRPMA_UNIT_PROGS:%=%.o) $(LIBRPMA_UNIT_SHARED): | $(LIBRPMA_CONFIG)

# it has to tell helgrind of members that are accessed atomically
$(LIBRPMA_UNIT_DIR)/librpma_threads.o: MODULE_CPPFLAGS += -Ilibrpma/src

$(LIBRPMA_UNIT_DIR)/librpma_log: LIBRPMA_UNIT_LDFLAGS += -Wl,--wrap=syslog -Wl,--wrap=__syslog_chk

$(LIBRPMA_UNIT_PROGS): %: %.o $(LIBRPMA_UNIT_SHARED) $(LIBRPMA_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(COMMON_LDFLAGS) $(LIBRPMA_UNIT_LDFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka

# One build of its own, since the objects tell what ran.
ifneq ($(COVERAGE),)
coverage: check-progs
	$(Q)gcovr --root . --filter 'librpma/src/' --object-directory $(BUILD) --print-summary \
		--fail-under-line 95
else
coverage:
	$(Q)rm -rf $(BUILD)/coverage
	$(Q)$(MAKE) --no-print-directory COVERAGE=1 BUILD=$(BUILD)/coverage coverage
endif
