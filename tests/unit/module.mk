# SPDX-License-Identifier: BSD-3-Clause
#
# Unit tests: one cmocka program per object.  Each part has a fragment here that adds its programs.
#
#   make check-progs       build and run the programs alone; UNDER="valgrind ..." runs them under it
#   make check-threaded    those alone that start threads
#   make coverage          which lines of librpma/src they reach

# programs that start threads; they are in TEST_PROGS as well
THREADED_PROGS :=

.PHONY: check-progs check-threaded

include $(filter-out %/module.mk,$(wildcard tests/unit/*.mk))

check-progs: $(TEST_PROGS)
	$(Q)tests/run --out $(BUILD)/results $(if $(UNDER),--under "$(UNDER)") $(TEST_PROGS)

check-threaded: $(THREADED_PROGS)
	$(Q)tests/run --out $(BUILD)/results $(if $(UNDER),--under "$(UNDER)") $(THREADED_PROGS)

# valgrind runs no program that was built with a sanitizer, and a variant has no variants.
UNIT_ITEMS := $(if $(SAN)$(COVERAGE),,tests/unit/test_valgrind.py)
CHECK_ITEMS += $(UNIT_ITEMS) $(if $(UNIT_ITEMS),tests/unit/test_headers.py tests/unit/test_variants.py)
# under emulation all of it takes ten minutes
LAB_ITEMS += $(if $(UNIT_ITEMS),tests/unit/lab_memcheck.py)
