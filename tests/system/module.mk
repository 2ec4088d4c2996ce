# SPDX-License-Identifier: BSD-3-Clause
#
# Whole jobs through stock fio: run here on the software RNIC, and in the lab on kernel RDMA.

PEER := $(BUILD)/tests/system/peer
PEER_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/system/peers/*.c))

SLOW_MSYNC := $(BUILD)/tests/system/slow_msync.so

TEST_EXTRA += $(PEER) $(SLOW_MSYNC)
# The software RNIC is preloaded into a fio without sanitizers.
SYSTEM_ITEMS := $(if $(SAN)$(COVERAGE),,$(wildcard tests/system/test_*.py))
CHECK_ITEMS += $(SYSTEM_ITEMS)
LAB_ITEMS += $(SYSTEM_ITEMS)
LAB_HOST_ITEMS += $(if $(SAN)$(COVERAGE),,tests/system/host_nvdimm.py tests/system/host_handshake.py)

$(PEER): $(PEER_OBJS)
	$(call say,LD,$@)
	$(Q)$(CC) $(COMMON_LDFLAGS) $(LDFLAGS) -o $@ $^ -lrdmacm -libverbs

$(SLOW_MSYNC): $(BUILD)/tests/system/preload/slow_msync.o
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(COMMON_LDFLAGS) $(LDFLAGS) -o $@ $^
