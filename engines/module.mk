# SPDX-License-Identifier: GPL-2.0-only
#
# The plugin for stock fio.  librpma_fio.so holds all engines; ENGINE.so is for fio's `external:`,
# which takes one engine a file, and ENGINE (no suffix) for `ioengine=ENGINE`.
#
# An engine must be compiled with the configured source tree of the very fio that loads it:
# FIO_SRC, or else the one that tools/fio-headers fetches for the installed fio.

ENGINE_NAMES := librpma_apm_client librpma_apm_server librpma_gpspm_client librpma_gpspm_server
ENGINES_DIR := $(BUILD)/engines
ENGINES_PLUGIN := $(ENGINES_DIR)/librpma_fio.so
ENGINES_SINGLE := $(ENGINE_NAMES:%=$(ENGINES_DIR)/%.so)
ENGINES_LINKS := $(ENGINE_NAMES:%=$(ENGINES_DIR)/%)
ENGINES_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(filter-out engines/single.c,$(wildcard engines/*.c)))
# these know nothing of fio, and so can be tested without it
ENGINES_PURE_OBJS := $(BUILD)/engines/wire.o $(BUILD)/engines/ranges.o
ENGINES_FIO_OBJS := $(filter-out $(ENGINES_PURE_OBJS),$(ENGINES_OBJS))

FIO_TREE := $(or $(FIO_SRC),$(BUILD)/fio-headers)
FIO_VERSION_H := $(ENGINES_DIR)/fio-version.h
FIO_TREE_STAMP := $(ENGINES_DIR)/fio-tree

ALL += $(ENGINES_PLUGIN) $(ENGINES_SINGLE) $(ENGINES_LINKS)

ifeq ($(FIO_SRC),)
$(FIO_TREE)/config-host.h:
	$(Q)tools/fio-headers $(FIO_TREE)
else
$(FIO_TREE)/config-host.h:
	@echo "FIO_SRC=$(FIO_SRC) is not a configured fio source tree: run ./configure in it first" >&2
	@exit 1
endif

# another tree makes everything anew
$(FIO_TREE_STAMP): FORCE
	$(Q)mkdir -p $(@D)
	$(Q)[ "$$(cat $@ 2>/dev/null)" = "$(FIO_TREE)" ] || echo "$(FIO_TREE)" >$@

# what this fio calls itself: as its own build would find out
$(FIO_VERSION_H): $(FIO_TREE)/config-host.h $(FIO_TREE_STAMP)
	$(Q)mkdir -p $(@D)
	$(Q)version=$$(sed -n 's/^FIO_VERSION *= *//p' $(FIO_TREE)/FIO-VERSION-FILE 2>/dev/null); \
	[ -n "$$version" ] || version=$$(sed -n 's/^DEF_VER=//p' $(FIO_TREE)/FIO-VERSION-GEN); \
	[ -n "$$version" ] || { echo "$(FIO_TREE) has no FIO-VERSION-GEN: is it fio?" >&2; exit 1; }; \
	echo "#define FIO_RPMA_BUILT_FOR \"$$version\"" >$@

$(ENGINES_FIO_OBJS): MODULE_CPPFLAGS += -isystem $(FIO_TREE) -include $(FIO_TREE)/config-host.h \
	-include $(FIO_VERSION_H) -D_GNU_SOURCE -DFIO_INC_DEBUG
$(ENGINES_FIO_OBJS): $(FIO_VERSION_H)

# fio's own symbols are there only when fio loads the plugin, hence no -z defs.  It stays loaded:
# fio's list of engines points into it.
$(ENGINES_PLUGIN): $(ENGINES_OBJS) $(BUILD)/librpma/librpma.a engines/engines.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -pthread $(if $(SAN),-fsanitize=$(SAN)) $(if $(COVERAGE),--coverage) $(LDFLAGS) \
		-Wl,-soname,librpma_fio.so -Wl,--version-script=engines/engines.map -Wl,-z,lazy \
		-Wl,-z,nodelete -o $@ $(ENGINES_OBJS) $(BUILD)/librpma/librpma.a -lrdmacm -libverbs -lpmem2

# The SONAME is the engine's name, so that ldconfig makes a link of that name beside it.
$(ENGINES_SINGLE): $(ENGINES_DIR)/%.so: engines/single.c $(ENGINES_PLUGIN)
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(COMMON_CFLAGS) $(CFLAGS) $(LDFLAGS) -DENGINE=$* -Wl,-soname,$* -Wl,-z,lazy \
		'-Wl,-rpath,$$ORIGIN' -o $@ $< $(ENGINES_PLUGIN)

$(ENGINES_LINKS): %: %.so
	$(Q)ln -sf $(<F) $@

INSTALL += $(foreach f,$(ENGINES_PLUGIN) $(ENGINES_SINGLE),$f:$(LIBDIR)/$(notdir $f):644)
INSTALL += tools/rpma-fio:$(BINDIR)/rpma-fio:755
INSTALL_LINKS += $(foreach e,$(ENGINE_NAMES),$e.so:$(LIBDIR)/$e)

# a fio built with --dynamic-libengines looks for fio-ENGINE.so in a folder of its own
ifneq ($(FIO_EXT_ENG_DIR),)
INSTALL_LINKS += $(foreach e,$(ENGINE_NAMES),$(LIBDIR)/$e.so:$(FIO_EXT_ENG_DIR)/fio-$e.so)
endif

FORCE:
.PHONY: FORCE
