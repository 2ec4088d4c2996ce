# SPDX-License-Identifier: BSD-3-Clause
# The software RNIC: a library that stands in for the device by LD_PRELOAD.

SOFTRNIC := $(BUILD)/softrnic/libsoftrnic.so
SOFTRNIC_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard softrnic/*.c)))
ALL += $(SOFTRNIC)

# Newer rdma-core headers have native flushes.
SOFTRNIC_HAVE_FLUSH := $(shell printf '\043include <infiniband/verbs.h>\n' | $(CC) -E - 2>/dev/null | grep -q 'wr_flush' && echo 1 || echo 0)

$(SOFTRNIC_OBJS): MODULE_CPPFLAGS += -DSRN_HAVE_FLUSH=$(SOFTRNIC_HAVE_FLUSH)

$(SOFTRNIC): $(SOFTRNIC_OBJS)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,libsoftrnic.so -o $@ $(SOFTRNIC_OBJS) $(COMMON_LDFLAGS) $(LDFLAGS) -lisal

INSTALL += $(SOFTRNIC):$(LIBDIR)/libsoftrnic.so:644
