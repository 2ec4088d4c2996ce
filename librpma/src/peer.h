/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPMA_PEER_H
#define RPMA_PEER_H

#include "common.h"

struct rpma_peer {
	struct ibv_pd *pd;
	bool native_flush; /* of both types */
	bool native_atomic_write;
	bool odp;
	bool iwarp;
	struct ibv_device_attr attr;
};

/*
 * ibv_reg_mr() with the rights that usage (RPMA_MR_USAGE_*) needs on this device; NULL if it fails,
 * with the reason in the log.  Memory that cannot be pinned is tried again with on-demand paging.
 */
struct ibv_mr *rpma_peer_reg_mr(const struct rpma_peer *peer, void *ptr, size_t size, int usage);

#endif /* RPMA_PEER_H */
