/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPMA_SRQ_CFG_H
#define RPMA_SRQ_CFG_H

#include "common.h"

struct rpma_srq_cfg {
	uint32_t rq_size;
	uint32_t rcq_size;
};

/* what NULL stands for */
extern const struct rpma_srq_cfg rpma_srq_cfg_default;

#endif /* RPMA_SRQ_CFG_H */
