/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPMA_CONN_CFG_H
#define RPMA_CONN_CFG_H

#include "common.h"

struct rpma_conn_cfg {
	int timeout_ms;
	uint32_t cq_size;
	uint32_t rcq_size;
	uint32_t sq_size;
	uint32_t rq_size;
	bool shared_channel;
	struct rpma_srq *srq;
};

/* what NULL stands for */
extern const struct rpma_conn_cfg rpma_conn_cfg_default;

#endif /* RPMA_CONN_CFG_H */
