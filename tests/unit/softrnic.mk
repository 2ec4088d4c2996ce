# SPDX-License-Identifier: BSD-3-Clause
#
# The software RNIC's objects in one program with the test: two sides over loopback, or a test that
# is the peer.

SOFTRNIC_UNIT_SRC := $(filter-out tests/unit/softrnic_pair.c,$(wildcard tests/unit/softrnic_*.c))
SOFTRNIC_UNIT_PROGS := $(SOFTRNIC_UNIT_SRC:%.c=$(BUILD)/%)
SOFTRNIC_UNIT_SHARED := $(BUILD)/tests/unit/softrnic_pair.o

TEST_PROGS += $(SOFTRNIC_UNIT_PROGS)
THREADED_PROGS += $(filter %_threads %_life,$(SOFTRNIC_UNIT_PROGS))

$(SOFTRNIC_UNIT_PROGS:%=%.o) $(SOFTRNIC_UNIT_SHARED): MODULE_CPPFLAGS += -Isoftrnic -Itests/fuzz -DSRN_HAVE_FLUSH=$(SOFTRNIC_HAVE_FLUSH)

$(BUILD)/tests/fuzz/softrnic_rx.o: MODULE_CPPFLAGS += -Isoftrnic -DSRN_HAVE_FLUSH=$(SOFTRNIC_HAVE_FLUSH)
$(BUILD)/tests/unit/softrnic_fuzzed: $(BUILD)/tests/fuzz/softrnic_rx.o

# what a test holds up or has fail
$(BUILD)/tests/unit/softrnic_life: private LDFLAGS += -Wl,--wrap=srn_src_remove
$(BUILD)/tests/unit/softrnic_event_threads: private LDFLAGS += -Wl,--wrap=pthread_mutex_unlock,--wrap=malloc
$(BUILD)/tests/unit/softrnic_engine_threads: private LDFLAGS += -Wl,--wrap=accept4,--wrap=epoll_ctl,--wrap=realloc

$(SOFTRNIC_UNIT_PROGS): %: %.o $(SOFTRNIC_UNIT_SHARED) $(SOFTRNIC_OBJS)
	$(call say,LD,$@)
	$(Q)$(CC) $(COMMON_LDFLAGS) $(LDFLAGS) -Wl,--wrap=srn_now_ns -o $@ $^ -lcmocka -lisal
