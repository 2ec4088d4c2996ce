# SPDX-License-Identifier: BSD-3-Clause
# Programs a user runs: rpma-compare and its parts.

COMPARE_DIR := $(DATADIR)/fio-rpma/compare

INSTALL += tools/rpma-compare:$(BINDIR)/rpma-compare:755
INSTALL += $(foreach f,$(wildcard tools/compare/*.py tools/compare/*.css),$f:$(COMPARE_DIR)/$(notdir $f):644)
