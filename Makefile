# SPDX-License-Identifier: BSD-3-Clause
#
# fio-rpma: librpma, the RPMA engines for stock fio, and a software RNIC.
#
#   make            build everything below $(BUILD)
#   make demo       set up and run the main job         (docs: README.md)
#   make check      set up, build and pass the tests of this machine
#   make check-lab  the same tests in a virtual machine with kernel RDMA and NVDIMMs
#   make install    PREFIX=/usr/local DESTDIR=
#
# Each part brings a module.mk that says what it builds; this file holds what they share.
# Options: V=1 shows commands, CC=clang, SAN=address,undefined or SAN=thread, COVERAGE=1,
# FIO_SRC=/path/to/fio uses that tree's headers, BUILD=dir puts objects elsewhere.

VERSION := $(shell cat VERSION)
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
DOCDIR ?= $(DATADIR)/doc/fio-rpma
BUILD ?= build
ifeq ($(origin CC),default)
CC := gcc
endif
OPTIMIZE ?= -O2
WARNINGS := -Wall -Wextra -Werror -Wstrict-prototypes -Wmissing-prototypes
# DWARF 4: the valgrind of Debian 12 cannot read what its clang writes by default.
CFLAGS ?= -g -gdwarf-4
COMMON_CFLAGS := -std=gnu11 $(OPTIMIZE) $(WARNINGS) -fPIC -fvisibility=hidden -pthread
COMMON_LDFLAGS := -pthread -Wl,-z,defs -Wl,--as-needed
ifneq ($(SAN),)
COMMON_CFLAGS += -fsanitize=$(SAN) -fno-omit-frame-pointer -DSANITIZED
# A sanitizer's run-time is found when the program starts, so nothing may insist on it earlier.
COMMON_LDFLAGS := -pthread -fsanitize=$(SAN)
endif
ifneq ($(COVERAGE),)
OPTIMIZE := -O0
COMMON_CFLAGS += --coverage
COMMON_LDFLAGS += --coverage
endif

Q := $(if $(V),,@)
say = @$(if $(V),:,printf '  %-7s %s\n' '$(1)' '$(2)')

# What the parts add to.
# ALL is built by `make`; TEST_PROGS are cmocka programs; TEST_EXTRA is built for the tests but
# not run by itself; CHECK_ITEMS are pytest files and folders, run after the programs.
# INSTALL holds FILE:PATH:MODE, what `make install` copies where; INSTALL_LINKS holds TARGET:PATH.
ALL :=
TEST_PROGS :=
TEST_EXTRA :=
CHECK_ITEMS :=
INSTALL :=
INSTALL_LINKS :=

.PHONY: all tests setup demo demo-lab check check-lab lab-shell bench coverage format install uninstall clean
.DEFAULT_GOAL := all
.SECONDARY:
.DELETE_ON_ERROR:

include $(wildcard */module.mk tests/*/module.mk)

all: $(ALL)
tests: $(ALL) $(TEST_PROGS) $(TEST_EXTRA)

$(BUILD)/%.o: %.c $(MAKEFILE_LIST)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(MODULE_CPPFLAGS) $(COMMON_CFLAGS) $(CFLAGS) $(MODULE_CFLAGS) -MMD -MP -c -o $@ $<

-include $(shell find $(BUILD) -path $(BUILD)/lab -prune -o -type f -name '*.d' -print 2>/dev/null)

setup:
	$(Q)tools/setup build

INSTALL += $(foreach f,LICENSE README.md,$f:$(DOCDIR)/$f:644)
INSTALL += tools/rpma-demo:$(BINDIR)/rpma-demo:755
INSTALL += $(foreach f,$(wildcard docs/*.svg docs/guide/*.md),$f:$(DOCDIR)/$(f:docs/%=%):644)
INSTALL += $(foreach f,$(wildcard jobs/*.fio),$f:$(DOCDIR)/$f:644)
INSTALL += $(foreach f,$(wildcard docs/man/man*/*),$f:$(MANDIR)/$(f:docs/man/%=%):644)

colon := :
field = $(word $(1),$(subst $(colon), ,$(2)))

# Stock fio finds the engines through the linker's cache; a staged tree has none of its own.
install: all
	$(Q)$(foreach i,$(INSTALL),install -D -m $(call field,3,$i) $(call field,1,$i) \
		$(DESTDIR)$(call field,2,$i) &&) true
	$(Q)$(foreach i,$(INSTALL_LINKS),ln -sf $(call field,1,$i) \
		$(DESTDIR)$(call field,2,$i) &&) true
	$(Q)[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig

uninstall:
	$(Q)rm -f $(foreach i,$(INSTALL) $(INSTALL_LINKS),$(DESTDIR)$(call field,2,$i))
	$(Q)[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig

demo:
	$(Q)tools/setup build report
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tools/rpma-demo --runtime 1
	$(Q)rm -rf $(BUILD)/demo
	$(Q)tools/rpma-compare run --quick --output $(BUILD)/demo

# Set up first, then build in a make of its own: what was missing when this one started may be
# there now.  TEST_PROGS are programs, CHECK_ITEMS pytest files or folders (see tests/run).
check:
	$(Q)tools/setup check
	$(Q)$(MAKE) --no-print-directory tests
	$(Q)tests/run --out $(BUILD)/results $(TEST_PROGS) $(CHECK_ITEMS)

clean:
	$(Q)rm -rf $(BUILD)

format:
	$(Q)git ls-files '*.c' '*.h' | xargs clang-format -i
