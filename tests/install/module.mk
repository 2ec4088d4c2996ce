# SPDX-License-Identifier: BSD-3-Clause
CHECK_ITEMS += $(if $(SAN)$(COVERAGE),,$(wildcard tests/install/test_*.py))
LAB_ITEMS += $(if $(SAN)$(COVERAGE),,tests/install/test_installed_jobs.py)
