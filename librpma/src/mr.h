/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions, with what an operation needs at hand. */
#ifndef RPMA_MR_H
#define RPMA_MR_H

#include "common.h"

struct rpma_mr_local {
	uint64_t addr;
	uint64_t size;
	uint32_t lkey;
	int usage;
	struct ibv_mr *mr;
};

struct rpma_mr_remote {
	uint64_t addr;
	uint64_t size; /* addr + size does not pass 2^64 */
	uint32_t rkey;
	uint32_t usage;
};

/* [offset, offset + length) lies within size; no sum that could overflow */
RPMA_INLINE bool rpma_range_fits(uint64_t size, uint64_t offset, uint64_t length)
{
	return length <= size && offset <= size - length;
}

#endif /* RPMA_MR_H */
