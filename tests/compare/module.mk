# SPDX-License-Identifier: BSD-3-Clause
# The tests of rpma-compare.

CHECK_ITEMS += $(if $(SAN)$(COVERAGE),,tests/compare)
LAB_ITEMS += $(if $(SAN)$(COVERAGE),,tests/compare/test_lab.py)
