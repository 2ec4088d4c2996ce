# SPDX-License-Identifier: BSD-3-Clause
#
# librpma on a device that carries data: the kernel's in the lab, the software RNIC here.  One cmocka
# program per subject.

DEVICE_SRC := $(wildcard tests/device/librpma_*.c)
DEVICE_PROGS := $(DEVICE_SRC:%.c=$(BUILD)/%)

LAB_PROGS += $(DEVICE_PROGS)
TEST_EXTRA += $(DEVICE_PROGS)

$(DEVICE_PROGS): %: %.o $(BUILD)/tests/device/pair.o $(LIBRPMA_A)
	$(call say,LD,$@)
	$(Q)$(CC) $(COMMON_LDFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBRPMA_LIBS)

CHECK_ITEMS += tests/device/test_on_softrnic.py
