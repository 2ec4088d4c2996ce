/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of batches share. */
#ifndef TESTS_UNIT_BATCH_H
#define TESTS_UNIT_BATCH_H

#include "walk.h"

enum { ON_ERROR = RPMA_F_COMPLETION_ON_ERROR, ALWAYS = RPMA_F_COMPLETION_ALWAYS };
enum { CAPACITY = 4 };

static struct link l;
static struct rpma_batch *batch;

static inline void *context(unsigned i)
{
	return (void *)(uintptr_t)(100 + i);
}

static inline void up(void)
{
	link_up(&l);
	conn_apply_direct_write(l.conn);
	assert_ok(rpma_batch_new(l.conn, CAPACITY, &batch));
}

static inline void down(void)
{
	assert_ok(rpma_batch_delete(&batch));
	assert_null(batch);
	link_down(&l);
}

static inline uint32_t waiting(void)
{
	uint32_t count = 77;

	assert_ok(rpma_batch_get_count(batch, &count));
	return count;
}

/* Appends the ith write, of i + 1 bytes. */
static inline int add(unsigned i, int flags)
{
	return rpma_batch_write(batch, l.remote, 8 * i, l.local, 8 * i, i + 1, flags, context(i));
}

static inline void assert_posted(const struct mock_wr *wr, unsigned i, unsigned send_flags)
{
	assert_int_equal(wr->opcode, IBV_WR_RDMA_WRITE);
	assert_int_equal(wr->wr_id, 100 + i);
	assert_int_equal(wr->remote_addr, REMOTE_ADDR + 8 * i);
	assert_int_equal(wr->rkey, REMOTE_RKEY);
	assert_int_equal(wr->sge.addr, (uintptr_t)region + 8 * i);
	assert_int_equal(wr->sge.length, i + 1);
	assert_int_equal(wr->send_flags, send_flags);
}

/* One of each, all with the same flags. */
static inline int one_of_each(struct rpma_batch *b, struct rpma_mr_remote *remote,
			      struct rpma_mr_local *local, size_t offset, int flags, unsigned which)
{
	switch (which) {
	case 0:
		return rpma_batch_read(b, local, offset, remote, 0, 8, flags, context(0));
	case 1:
		return rpma_batch_write(b, remote, 0, local, offset, 8, flags, context(1));
	case 2:
		return rpma_batch_write_with_imm(b, remote, 0, local, offset, 8, flags, 2,
						 context(2));
	case 3:
		return rpma_batch_send(b, local, offset, 8, flags, context(3));
	case 4:
		return rpma_batch_send_with_imm(b, local, offset, 8, flags, 4, context(4));
	case 5:
		return rpma_batch_flush(b, remote, offset, 8, RPMA_FLUSH_TYPE_PERSISTENT, flags,
					context(5));
	default:
		return rpma_batch_atomic_write(b, remote, offset, "8 bytes", flags, context(6));
	}
}

enum { READ, WRITE, WRITE_WITH_IMM, SEND, SEND_WITH_IMM, FLUSH, ATOMIC_WRITE };

#endif
