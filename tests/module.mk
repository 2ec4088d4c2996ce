# SPDX-License-Identifier: BSD-3-Clause
CHECK_ITEMS := tests/test_run.py $(CHECK_ITEMS)
