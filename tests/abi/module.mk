# SPDX-License-Identifier: BSD-3-Clause
#
# The ABI of Debian's librpma: 1.2.0 on Debian 12, 1.3.0 in the lab.  A library full of a sanitizer's
# or of coverage's calls has another one.

CHECK_ITEMS += $(if $(SAN)$(COVERAGE),,tests/abi)
LAB_ITEMS += $(if $(SAN)$(COVERAGE),,tests/abi)
