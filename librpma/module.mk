# SPDX-License-Identifier: BSD-3-Clause
#
# librpma.so.0 and librpma.a.  Each source is compiled twice: in the static library everything stays
# hidden, so that a plugin linked with it exports none of it.

LIBRPMA_SRC := $(wildcard librpma/src/*.c)
LIBRPMA_DIR := $(BUILD)/librpma
LIBRPMA_OBJ := $(LIBRPMA_SRC:%.c=$(BUILD)/%.o)
LIBRPMA_SHARED_OBJ := $(LIBRPMA_SRC:librpma/src/%.c=$(LIBRPMA_DIR)/shared/%.o)
LIBRPMA_CONFIG := $(LIBRPMA_DIR)/librpma_config.h
LIBRPMA_A := $(LIBRPMA_DIR)/librpma.a
LIBRPMA_SO := $(LIBRPMA_DIR)/librpma.so.0
LIBRPMA_LIBS := -libverbs -lrdmacm

ALL += $(LIBRPMA_A) $(LIBRPMA_SO) $(LIBRPMA_DIR)/librpma.so $(LIBRPMA_DIR)/librpma.pc
MODULE_CPPFLAGS += -Ilibrpma/include -I$(LIBRPMA_DIR)

$(LIBRPMA_CONFIG): librpma/probe-verbs $(wildcard /usr/include/infiniband/verbs.h)
	$(call say,PROBE,$@)
	$(Q)mkdir -p $(@D)
	$(Q)librpma/probe-verbs $@ $(CC) $(CPPFLAGS)

# On the first build nothing says yet who includes it.
$(LIBRPMA_OBJ) $(LIBRPMA_SHARED_OBJ): | $(LIBRPMA_CONFIG)

$(LIBRPMA_DIR)/shared/%.o: librpma/src/%.c $(MAKEFILE_LIST)
	$(call say,CC,$< (shared))
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(MODULE_CPPFLAGS) $(COMMON_CFLAGS) -DRPMA_SHARED $(CFLAGS) $(MODULE_CFLAGS) -MMD -MP -c -o $@ $<

$(LIBRPMA_A): $(LIBRPMA_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(LIBRPMA_SO): $(LIBRPMA_SHARED_OBJ) librpma/librpma.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,librpma.so.0 -Wl,--version-script=librpma/librpma.map \
		-Wl,-Bsymbolic-functions $(COMMON_LDFLAGS) $(LDFLAGS) -o $@ $(LIBRPMA_SHARED_OBJ) $(LIBRPMA_LIBS)

$(LIBRPMA_DIR)/librpma.so: $(LIBRPMA_SO)
	$(Q)ln -sf librpma.so.0 $@

# Written anew when PREFIX and the like are not what they were.
.PHONY: librpma-pc
$(LIBRPMA_DIR)/librpma.pc: librpma/librpma.pc.in librpma-pc
	$(Q)mkdir -p $(@D)
	$(Q)pc=$$(sed -e 's,@PREFIX@,$(PREFIX),' -e 's,@INCLUDEDIR@,$(INCLUDEDIR),' \
		-e 's,@LIBDIR@,$(LIBDIR),' -e 's,@VERSION@,$(VERSION),' $<); \
	[ "$$pc" = "$$(cat $@ 2>/dev/null)" ] || echo "$$pc" >$@

INSTALL += $(foreach f,librpma.h librpma_ext.h,librpma/include/$f:$(INCLUDEDIR)/$f:644)
INSTALL += $(LIBRPMA_SO):$(LIBDIR)/librpma.so.0:644
INSTALL += $(LIBRPMA_A):$(LIBDIR)/librpma.a:644
INSTALL += $(LIBRPMA_DIR)/librpma.pc:$(LIBDIR)/pkgconfig/librpma.pc:644
INSTALL_LINKS += librpma.so.0:$(LIBDIR)/librpma.so

include librpma/examples/examples.mk
