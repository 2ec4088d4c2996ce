# SPDX-License-Identifier: BSD-3-Clause
#
# The lab: a virtual machine with kernel RDMA and NVDIMMs (tests/lab/README.md).
#
# LAB_ITEMS are pytest files and folders run inside it, after TEST_PROGS, and LAB_PROGS are
# programs that only make sense there; LAB_HOST_ITEMS are pytest files run on this machine that
# look at what the lab left, or boot machines of their own.
# A build of the project for the lab lies in $(LAB_BUILD): $(BUILD) is never mixed with it.

LAB_DIR ?= $(abspath $(BUILD))/lab
LAB_BUILD ?= $(abspath $(BUILD))/lab/project
LAB_RESULTS ?= $(BUILD)/results-lab
export LAB_DIR LAB_BUILD

LAB_PROGS +=
LAB_ITEMS += tests/lab/test_machine.py
LAB_HOST_ITEMS += tests/lab/test_runner.py tests/lab/test_two_machines.py

.PHONY: lab lab-guest

# What was said to this make and holds for the lab's build, too.
LAB_MAKE_ARGS := $(foreach v,V CC SAN COVERAGE OPTIMIZE CFLAGS,\
	$(if $(filter command,$(origin $v)),'$v=$($v)'))

lab:
	$(Q)tools/setup lab
	$(Q)tests/lab/lab build
	$(Q)tests/lab/lab make $(LAB_MAKE_ARGS) tests

lab-shell: lab
	$(Q)tests/lab/lab shell

# Measured inside; the report's figures are drawn here.
demo-lab: lab
	$(Q)tools/setup report
	$(Q)rm -rf $(BUILD)/demo-lab
	$(Q)tests/lab/lab run --results $(BUILD)/demo-lab -- sh -c 'cd /src && \
		tools/rpma-demo --addr $$RPMA_TEST_ADDR --memory $$RPMA_TEST_DEVDAX && \
		{ tools/rpma-compare run --quick --no-report --devdax $$RPMA_TEST_DEVDAX --output $$RESULTS/report || \
		[ $$? -eq 1 ]; }' # 1: a point failed, which the report shows
	$(Q)tools/rpma-compare report $(BUILD)/demo-lab/report

check-lab: lab
	$(Q)LAB_MAKE_ARGS="$(LAB_MAKE_ARGS)" tests/lab/check $(LAB_RESULTS) $(LAB_HOST_ITEMS)

# What check-lab runs inside the machine.
lab-guest:
	$(Q)tests/run --limit 3000 --out $(RESULTS) $(TEST_PROGS) $(LAB_PROGS) $(sort $(LAB_ITEMS))
