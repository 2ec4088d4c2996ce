/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPMA_CQ_H
#define RPMA_CQ_H

#include "common.h"

struct rpma_cq {
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	bool shared_channel; /* then the channel belongs to the connection */
};

/*
 * size: completions; shared_channel: NULL for a channel of its own.  The CQ is armed.
 * 0 or RPMA_E_NOMEM, RPMA_E_PROVIDER; *cq_ptr is set on success only.
 */
int rpma_cq_new(struct ibv_context *ctx, uint32_t size, struct ibv_comp_channel *shared_channel,
		struct rpma_cq **cq_ptr);

/* *cq_ptr may be NULL and becomes NULL.  0, or RPMA_E_PROVIDER when something failed. */
int rpma_cq_delete(struct rpma_cq **cq_ptr);

/* take an event from the channel, ack it, arm its CQ again; *cq: the CQ it came from */
int rpma_cq_take_event(struct ibv_comp_channel *channel, struct ibv_cq **cq);

#endif /* RPMA_CQ_H */
