# SPDX-License-Identifier: BSD-3-Clause
CHECK_ITEMS += tests/docs/test_librpma_pages.py
