# SPDX-License-Identifier: BSD-3-Clause
#
# Whole jobs through stock fio: run here on the software RNIC, and in the lab on kernel RDMA.

PEER := $(BUILD)/tests/system/peer
PEER_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/system/peers/*.c))

PRELOADS := $(patsubst tests/system/preload/%.c,$(BUILD)/tests/system/%.so,$(wildcard tests/system/preload/*.c))

TEST_EXTRA += $(PEER) $(PRELOADS)
# The software RNIC is preloaded into a fio without sanitizers.
SYSTEM_ITEMS := $(if $(SAN)$(COVERAGE),,$(wildcard tests/system/test_*.py))
CHECK_ITEMS += $(SYSTEM_ITEMS)
LAB_ITEMS += $(SYSTEM_ITEMS)
LAB_HOST_ITEMS += $(if $(SAN)$(COVERAGE),,tests/system/host_nvdimm.py tests/system/host_handshake.py)

$(PEER): $(PEER_OBJS)
	$(call say,LD,$@)
	$(Q)$(CC) $(COMMON_LDFLAGS) $(LDFLAGS) -o $@ $^ -lrdmacm -libverbs

$(PRELOADS): $(BUILD)/tests/system/%.so: $(BUILD)/tests/system/preload/%.o
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(COMMON_LDFLAGS) $(LDFLAGS) -o $@ $^
