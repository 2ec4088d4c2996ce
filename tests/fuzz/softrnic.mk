# SPDX-License-Identifier: BSD-3-Clause
#
#   make fuzz      libFuzzer (clang) with ASan and UBSan on the software RNIC's receive path,
#                  FUZZ_SECONDS (60) long; findings go to $(BUILD)/fuzz
#   make fuzz-afl  the same with AFL++
#
# A seeded generator runs the same target in make check (tests/unit/softrnic_fuzzed.c).

FUZZ_SECONDS ?= 60
FUZZ_SRC := tests/fuzz/softrnic_rx.c $(wildcard softrnic/*.c)
FUZZ_FLAGS = -std=gnu11 -g -O1 -pthread -Isoftrnic -Itests/fuzz -DSRN_HAVE_FLUSH=$(SOFTRNIC_HAVE_FLUSH)

.PHONY: fuzz fuzz-afl

$(BUILD)/fuzz/softrnic_rx: $(FUZZ_SRC) $(wildcard softrnic/*.h tests/fuzz/*.h)
	$(Q)mkdir -p $(@D)
	$(call say,FUZZ,$@)
	$(Q)clang $(FUZZ_FLAGS) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -o $@ $(FUZZ_SRC) -lisal

$(BUILD)/fuzz/softrnic_rx_afl: $(FUZZ_SRC) tests/fuzz/standalone.c $(wildcard softrnic/*.h tests/fuzz/*.h)
	$(Q)mkdir -p $(@D)
	$(call say,FUZZ,$@)
	$(Q)AFL_QUIET=1 afl-clang-fast $(FUZZ_FLAGS) -fsanitize=address -o $@ $(FUZZ_SRC) tests/fuzz/standalone.c -lisal

$(BUILD)/fuzz/seeds:
	$(Q)mkdir -p $@
	$(Q)for mode in 0 1 2 3 4 5 6 7; do printf "\\$$mode\\0\\1\\0\\0\\20\\0\\3\\1\\0\\0\\20\\0\\1\\1\\0\\0\\20\\0\\12\\1\\0\\6\\0\\0" >$@/mode$$mode; done

fuzz: $(BUILD)/fuzz/softrnic_rx $(BUILD)/fuzz/seeds
	$(Q)mkdir -p $(BUILD)/fuzz/corpus
	$(Q)cd $(BUILD)/fuzz && ./softrnic_rx -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -print_final_stats=1 corpus seeds

fuzz-afl: $(BUILD)/fuzz/softrnic_rx_afl $(BUILD)/fuzz/seeds
	$(Q)cd $(BUILD)/fuzz && AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_NO_UI=1 \
		afl-fuzz -V $(FUZZ_SECONDS) -i seeds -o afl -- ./softrnic_rx_afl
