# SPDX-License-Identifier: BSD-3-Clause
#
# The software RNIC under programs from elsewhere, between hosts, on the wire, idle and under attack.

# a library with a sanitizer does not go into programs without
CHECK_ITEMS += $(if $(SAN)$(COVERAGE),,tests/softrnic)
# again where the kernel surely has netem
LAB_ITEMS += $(if $(SAN)$(COVERAGE),,tests/softrnic/test_netns.py)
