/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer configuration's descriptor from the network */

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rpma_peer_cfg *pcfg = UNTOUCHED;
	uint8_t *desc = mock_alloc(size ? size : 1);
	bool supported = false;
	uint8_t again = 0x5a;
	int ret;

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	mock_fail_none();
	memcpy(desc, data, size);
	ret = rpma_peer_cfg_from_descriptor(desc, size, &pcfg);
	if (ret) {
		MUST(ret == RPMA_E_INVAL && pcfg == UNTOUCHED);
		MUST(size == 0 || desc[0] > 1);
	} else {
		MUST(size >= 1);
		MUST(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &supported) == 0);
		MUST(rpma_peer_cfg_get_descriptor(pcfg, &again) == 0);
		MUST(again == desc[0] && supported == (again == 1));
		MUST(rpma_peer_cfg_delete(&pcfg) == 0);
	}
	mock_free(desc);
	must_be_clean(0);
	return 0;
}
