/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushes: whether one is allowed, and the private buffer of those that are RDMA reads. */
#ifndef RPMA_FLUSH_H
#define RPMA_FLUSH_H

#include "common.h"

struct rpma_peer;
struct rpma_conn;

#define RPMA_FLUSH_READ_SIZE 8 /* bytes */

/* where the bytes of a read-based flush go; addr is 0 until there is one */
struct rpma_flush_buffer {
	uint64_t addr;
	uint32_t lkey;
	struct ibv_mr *mr;
};

/* no effect on one that is there already; 0, RPMA_E_NOMEM or RPMA_E_PROVIDER */
int rpma_flush_buffer_new(const struct rpma_peer *peer, struct rpma_flush_buffer *buffer);

/* no effect on one that is not there; 0, RPMA_E_PROVIDER, or RPMA_E_INVAL (munmap() failed) */
int rpma_flush_buffer_delete(struct rpma_flush_buffer *buffer);

/* why a flush cannot be done: log it, give RPMA_E_NOSUPP */
RPMA_COLD int rpma_flush_refused(const struct rpma_conn *conn, enum rpma_flush_type type);

#endif /* RPMA_FLUSH_H */
