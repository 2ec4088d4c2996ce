/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests, filled in from what the public functions are given.  Shared by the functions that
 * post at once (op.c) and those that batch (batch.c).  Only what the opcode needs is written.
 */
#ifndef RPMA_WR_H
#define RPMA_WR_H

#include <arpa/inet.h>

#include "common.h"
#include "mr.h"

/* so that flags need no branch */
_Static_assert((RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR) == IBV_SEND_SIGNALED,
	       "a completion flag is a send flag");

/* log and give RPMA_E_PROVIDER */
RPMA_COLD int rpma_post_failed(const char *call, int err);

RPMA_INLINE void rpma_wr_set_common(struct ibv_send_wr *wr, enum ibv_wr_opcode opcode, int flags,
				    const void *op_context)
{
	wr->wr_id = (uintptr_t)op_context;
	wr->opcode = opcode;
	wr->send_flags = flags & IBV_SEND_SIGNALED;
}

/* [offset, offset + len) of a local region; no region: nothing, and no offset or length either */
RPMA_INLINE bool rpma_wr_set_local(struct ibv_send_wr *wr, struct ibv_sge *sge,
				   const struct rpma_mr_local *mr, size_t offset, size_t len)
{
	if (unlikely(mr == NULL)) {
		wr->sg_list = NULL;
		wr->num_sge = 0;
		return (offset | len) == 0;
	}
	if (unlikely(!rpma_range_fits(mr->size, offset, len) || len > UINT32_MAX))
		return false;

	sge->addr = mr->addr + offset;
	sge->length = (uint32_t)len;
	sge->lkey = mr->lkey;
	wr->sg_list = sge;
	wr->num_sge = 1;

	return true;
}

/* after rpma_wr_set_common(); an empty message has nothing to take along */
RPMA_INLINE void rpma_wr_set_inline(struct ibv_send_wr *wr, uint32_t max_inline)
{
	if (wr->num_sge && wr->sg_list->length <= max_inline)
		wr->send_flags |= IBV_SEND_INLINE;
}

/* both regions of a read or write; either both are there or neither */
RPMA_INLINE bool rpma_wr_set_transfer(struct ibv_send_wr *wr, struct ibv_sge *sge,
				      const struct rpma_mr_local *local, size_t local_offset,
				      const struct rpma_mr_remote *remote, size_t remote_offset,
				      size_t len)
{
	if (unlikely(remote == NULL)) {
		wr->wr.rdma.remote_addr = 0;
		wr->wr.rdma.rkey = 0;
		return local == NULL && remote_offset == 0 &&
		       rpma_wr_set_local(wr, sge, NULL, local_offset, len);
	}
	if (unlikely(local == NULL || !rpma_range_fits(remote->size, remote_offset, len)))
		return false;

	wr->wr.rdma.remote_addr = remote->addr + remote_offset;
	wr->wr.rdma.rkey = remote->rkey;

	return rpma_wr_set_local(wr, sge, local, local_offset, len);
}

/* atomic means aligned, wherever the region begins */
RPMA_INLINE bool rpma_wr_atomic_fits(const struct rpma_mr_remote *mr, size_t offset)
{
	return ((offset | mr->addr) & (RPMA_ATOMIC_WRITE_ALIGNMENT - 1)) == 0 &&
	       rpma_range_fits(mr->size, offset, RPMA_ATOMIC_WRITE_ALIGNMENT);
}

/*
 * Without a native one: 8 aligned bytes in one inline write, which a device does not split, behind
 * the reads and atomics posted before.
 */
RPMA_INLINE void rpma_wr_set_atomic_inline(struct ibv_send_wr *wr, struct ibv_sge *sge,
					   const struct rpma_mr_remote *mr, size_t offset,
					   const char *src, int flags, const void *op_context)
{
	sge->addr = (uintptr_t)src;
	sge->length = RPMA_ATOMIC_WRITE_ALIGNMENT;
	sge->lkey = 0;
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->wr.rdma.remote_addr = mr->addr + offset;
	wr->wr.rdma.rkey = mr->rkey;
	rpma_wr_set_common(wr, IBV_WR_RDMA_WRITE, flags, op_context);
	wr->send_flags |= IBV_SEND_INLINE | IBV_SEND_FENCE;
}

RPMA_INLINE bool rpma_recv_wr_set(struct ibv_recv_wr *wr, struct ibv_sge *sge,
				  const struct rpma_mr_local *mr, size_t offset, size_t len,
				  const void *op_context)
{
	wr->wr_id = (uintptr_t)op_context;
	wr->next = NULL;
	if (unlikely(mr == NULL)) {
		wr->sg_list = NULL;
		wr->num_sge = 0;
		return (offset | len) == 0;
	}
	if (unlikely(!rpma_range_fits(mr->size, offset, len) || len > UINT32_MAX))
		return false;

	sge->addr = mr->addr + offset;
	sge->length = (uint32_t)len;
	sge->lkey = mr->lkey;
	wr->sg_list = sge;
	wr->num_sge = 1;

	return true;
}

#endif /* RPMA_WR_H */
