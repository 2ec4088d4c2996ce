// SPDX-License-Identifier: BSD-3-Clause
/*
 * Batches: a ring of work requests whose next pointers never change, so that posting what waits is
 * cutting the ring behind the last one.  With a native operation among them all go through the
 * ibv_wr_*() calls instead, which take all or nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "log.h"
#include "verbs_native.h"
#include "wr.h"

struct entry {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	union {
		char value[RPMA_ATOMIC_WRITE_ALIGNMENT]; /* of an atomic write */
		enum rpma_flush_type flush_type;         /* of a native flush */
	};
	size_t flush_len;
};

struct rpma_batch {
	struct rpma_conn *conn;
	struct entry *first; /* the oldest that waits */
	struct entry *next;  /* where the next one goes */
	uint32_t capacity;
	uint32_t count;  /* how many wait */
	uint32_t native; /* how many of them ibv_post_send() does not know */
	struct entry entries[];
};

RPMA_INLINE struct entry *entry_after(const struct entry *entry)
{
	return (struct entry *)entry->wr.next;
}

int rpma_batch_new(struct rpma_conn *conn, uint32_t capacity, struct rpma_batch **batch_ptr)
{
	if (conn == NULL || batch_ptr == NULL || capacity == 0)
		return RPMA_E_INVAL;
	if (capacity > conn->queues.cap.max_send_wr) {
		RPMA_LOG_ERROR("a batch of %u does not fit into the send queue of %u", capacity,
			       conn->queues.cap.max_send_wr);
		return RPMA_E_INVAL;
	}

	struct rpma_batch *batch = calloc(1, sizeof(*batch) + capacity * sizeof(struct entry));

	if (batch == NULL)
		return RPMA_E_NOMEM;

	batch->conn = conn;
	batch->first = batch->entries;
	batch->next = batch->entries;
	batch->capacity = capacity;
	for (uint32_t i = 0; i < capacity; i++)
		batch->entries[i].wr.next = &batch->entries[(i + 1) % capacity].wr;
	*batch_ptr = batch;

	return 0;
}

int rpma_batch_delete(struct rpma_batch **batch_ptr)
{
	if (batch_ptr == NULL)
		return RPMA_E_INVAL;

	free(*batch_ptr);
	*batch_ptr = NULL;

	return 0;
}

/* the entry to fill in; it counts once it is committed */
RPMA_INLINE int next_entry(struct rpma_batch *batch, int flags, struct entry **entry)
{
	if (unlikely(batch == NULL || flags == 0))
		return RPMA_E_INVAL;
	if (unlikely(batch->count == batch->capacity))
		return RPMA_E_AGAIN;

	*entry = batch->next;

	return 0;
}

/* opcode is a constant wherever this is used */
RPMA_INLINE bool has_imm(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_SEND_WITH_IMM;
}

RPMA_INLINE void commit_entry(struct rpma_batch *batch, struct entry *entry)
{
	batch->next = entry_after(entry);
	batch->count++;
}

RPMA_INLINE int add_transfer(struct rpma_batch *batch, const struct rpma_mr_local *local,
			     size_t local_offset, const struct rpma_mr_remote *remote,
			     size_t remote_offset, size_t len, enum ibv_wr_opcode opcode, int flags,
			     uint32_t imm, const void *op_context)
{
	struct entry *entry;
	int ret = next_entry(batch, flags, &entry);

	if (unlikely(ret))
		return ret;
	if (unlikely(!rpma_wr_set_transfer(&entry->wr, &entry->sge, local, local_offset, remote,
					   remote_offset, len)))
		return RPMA_E_INVAL;

	rpma_wr_set_common(&entry->wr, opcode, flags, op_context);
	if (has_imm(opcode))
		entry->wr.imm_data = htonl(imm);
	commit_entry(batch, entry);

	return 0;
}

int rpma_batch_read(struct rpma_batch *batch, struct rpma_mr_local *dst, size_t dst_offset,
		    const struct rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
		    const void *op_context)
{
	return add_transfer(batch, dst, dst_offset, src, src_offset, len, IBV_WR_RDMA_READ, flags,
			    0, op_context);
}

int rpma_batch_write(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
		     const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
		     const void *op_context)
{
	return add_transfer(batch, src, src_offset, dst, dst_offset, len, IBV_WR_RDMA_WRITE, flags,
			    0, op_context);
}

int rpma_batch_write_with_imm(struct rpma_batch *batch, struct rpma_mr_remote *dst,
			      size_t dst_offset, const struct rpma_mr_local *src, size_t src_offset,
			      size_t len, int flags, uint32_t imm, const void *op_context)
{
	return add_transfer(batch, src, src_offset, dst, dst_offset, len,
			    IBV_WR_RDMA_WRITE_WITH_IMM, flags, imm, op_context);
}

RPMA_INLINE int add_send(struct rpma_batch *batch, const struct rpma_mr_local *src, size_t offset,
			 size_t len, enum ibv_wr_opcode opcode, int flags, uint32_t imm,
			 const void *op_context)
{
	struct entry *entry;
	int ret = next_entry(batch, flags, &entry);

	if (unlikely(ret))
		return ret;
	if (unlikely(!rpma_wr_set_local(&entry->wr, &entry->sge, src, offset, len)))
		return RPMA_E_INVAL;

	rpma_wr_set_common(&entry->wr, opcode, flags, op_context);
	rpma_wr_set_inline(&entry->wr, batch->conn->queues.cap.max_inline_data);
	if (has_imm(opcode))
		entry->wr.imm_data = htonl(imm);
	commit_entry(batch, entry);

	return 0;
}

int rpma_batch_send(struct rpma_batch *batch, const struct rpma_mr_local *src, size_t offset,
		    size_t len, int flags, const void *op_context)
{
	return add_send(batch, src, offset, len, IBV_WR_SEND, flags, 0, op_context);
}

int rpma_batch_send_with_imm(struct rpma_batch *batch, const struct rpma_mr_local *src,
			     size_t offset, size_t len, int flags, uint32_t imm,
			     const void *op_context)
{
	return add_send(batch, src, offset, len, IBV_WR_SEND_WITH_IMM, flags, imm, op_context);
}

int rpma_batch_atomic_write(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
			    const char src[8], int flags, const void *op_context)
{
	struct entry *entry;
	int ret = next_entry(batch, flags, &entry);

	if (unlikely(ret))
		return ret;
	if (unlikely(dst == NULL || src == NULL || !rpma_wr_atomic_fits(dst, dst_offset)))
		return RPMA_E_INVAL;

	memcpy(entry->value, src, sizeof(entry->value));
	rpma_wr_set_atomic_inline(&entry->wr, &entry->sge, dst, dst_offset, entry->value, flags,
				  op_context);
	if (batch->conn->native_atomic_write) {
		rpma_wr_set_common(&entry->wr, (enum ibv_wr_opcode)RPMA_WR_ATOMIC_WRITE, flags,
				   op_context);
		entry->wr.send_flags |= IBV_SEND_FENCE;
		batch->native++;
	}
	commit_entry(batch, entry);

	return 0;
}

int rpma_batch_flush(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
		     size_t len, enum rpma_flush_type type, int flags, const void *op_context)
{
	struct entry *entry;
	int ret = next_entry(batch, flags, &entry);

	if (unlikely(ret))
		return ret;
	if (unlikely(dst == NULL))
		return RPMA_E_INVAL;

	ret = rpma_conn_check_flush(batch->conn, dst, dst_offset, len, type);
	if (unlikely(ret))
		return ret;

	if (batch->conn->native_flush) {
		rpma_wr_set_common(&entry->wr, (enum ibv_wr_opcode)RPMA_WR_FLUSH, flags,
				   op_context);
		entry->wr.wr.rdma.remote_addr = dst->addr + dst_offset;
		entry->wr.wr.rdma.rkey = dst->rkey;
		entry->flush_type = type;
		entry->flush_len = len;
		batch->native++;
	} else {
		rpma_conn_set_flush_read(batch->conn, &entry->wr, &entry->sge, dst, dst_offset);
		rpma_wr_set_common(&entry->wr, IBV_WR_RDMA_READ, flags, op_context);
	}
	commit_entry(batch, entry);

	return 0;
}

RPMA_COLD static int submit_failed(const char *call, int err)
{
	int reason = abs(err);

	if (reason == ENOMEM || reason == ENOSPC || reason == EAGAIN)
		return RPMA_E_AGAIN;

	return rpma_post_failed(call, err);
}

RPMA_INLINE struct entry *last_entry(struct rpma_batch *batch)
{
	struct entry *next = batch->next;

	return next == batch->entries ? &next[batch->capacity - 1] : &next[-1];
}

/* one chain, one doorbell; *posted: how many went before the one that failed */
static int submit_chain(struct rpma_batch *batch, uint32_t *posted)
{
	struct ibv_send_wr *last = &last_entry(batch)->wr;
	struct ibv_send_wr *next = last->next;
	struct ibv_send_wr *bad = NULL;

	last->next = NULL;

	int ret = ibv_post_send(batch->conn->qp, &batch->first->wr, &bad);

	last->next = next;

	if (likely(ret == 0)) {
		*posted = batch->count;
		return 0;
	}

	*posted = 0;
	while (bad && &batch->first->wr != bad && *posted < batch->count) {
		batch->first = entry_after(batch->first);
		(*posted)++;
	}

	return submit_failed("ibv_post_send()", ret);
}

static void start_native(struct ibv_qp_ex *qp, struct entry *entry)
{
	struct ibv_send_wr *wr = &entry->wr;
	uint64_t addr = wr->wr.rdma.remote_addr;
	uint32_t rkey = wr->wr.rdma.rkey;

	qp->wr_id = wr->wr_id;
	qp->wr_flags = wr->send_flags & (IBV_SEND_SIGNALED | IBV_SEND_FENCE);

	switch ((int)wr->opcode) {
	case RPMA_WR_FLUSH:
		rpma_wr_flush(qp, rkey, addr, entry->flush_len, entry->flush_type);
		return;
	case RPMA_WR_ATOMIC_WRITE:
		rpma_wr_atomic_write(qp, rkey, addr, entry->value);
		return;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, rkey, addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, rkey, addr, wr->imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, rkey, addr);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, wr->imm_data);
		break;
	default:
		ibv_wr_send(qp);
		break;
	}

	if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data(qp, (void *)(uintptr_t)wr->sg_list->addr,
				       wr->sg_list->length);
	else
		ibv_wr_set_sge_list(qp, wr->num_sge, wr->sg_list);
}

static int submit_native(struct rpma_batch *batch, uint32_t *posted)
{
	struct ibv_qp_ex *qp = batch->conn->qp_ex;

	struct entry *entry = batch->first;

	ibv_wr_start(qp);
	for (uint32_t i = 0; i < batch->count; i++) {
		start_native(qp, entry);
		entry = entry_after(entry);
	}

	int ret = ibv_wr_complete(qp);

	if (likely(ret == 0)) {
		*posted = batch->count;
		return 0;
	}
	*posted = 0;

	return submit_failed("ibv_wr_complete()", ret);
}

int rpma_batch_submit(struct rpma_batch *batch, int flags, uint32_t *submitted)
{
	uint32_t posted = 0;
	int ret = 0;

	if (unlikely(batch == NULL || (flags != 0 && flags != RPMA_F_COMPLETION_ALWAYS)))
		return RPMA_E_INVAL;

	if (likely(batch->count)) {
		struct ibv_send_wr *last = &last_entry(batch)->wr;
		unsigned int as_appended = last->send_flags;

		last->send_flags |= flags & IBV_SEND_SIGNALED;
		if (batch->native)
			ret = submit_native(batch, &posted);
		else
			ret = submit_chain(batch, &posted);
		/* It may not be the last one of the next submission. */
		if (unlikely(ret))
			last->send_flags = as_appended;

		batch->count -= posted;
		/* Native ones are in a batch that was posted whole, or not at all. */
		if (batch->count == 0) {
			batch->native = 0;
			/* the entries used last are in the cache */
			batch->first = batch->entries;
			batch->next = batch->entries;
		}
	}
	if (submitted)
		*submitted = posted;

	return ret;
}

int rpma_batch_get_count(const struct rpma_batch *batch, uint32_t *count)
{
	if (batch == NULL || count == NULL)
		return RPMA_E_INVAL;

	*count = batch->count;

	return 0;
}

int rpma_batch_clear(struct rpma_batch *batch)
{
	if (batch == NULL)
		return RPMA_E_INVAL;

	batch->next = batch->first;
	batch->count = 0;
	batch->native = 0;

	return 0;
}
