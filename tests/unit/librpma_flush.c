/* SPDX-License-Identifier: BSD-3-Clause */
/* Flush and atomic write, as they are where device or build have no native ones */

#include <errno.h>
#include <string.h>

#include "walk.h"

enum { ON_ERROR = RPMA_F_COMPLETION_ON_ERROR, ALWAYS = RPMA_F_COMPLETION_ALWAYS };
static const enum rpma_flush_type persistent = RPMA_FLUSH_TYPE_PERSISTENT;
static const enum rpma_flush_type visibility = RPMA_FLUSH_TYPE_VISIBILITY;

static struct link l;

static int flush(size_t offset, size_t len, enum rpma_flush_type type, int flags)
{
	return rpma_flush(l.conn, l.remote, offset, len, type, flags, CONTEXT);
}

/* The remote region gets another usage or size. */
static void remote_is(uint64_t addr, uint64_t len, int usage)
{
	remote_delete(l.remote);
	l.remote = remote_new(addr, len, usage);
}

static void rpma_flush__conn_is_NULL__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	assert_error(rpma_flush(NULL, l.remote, 0, 8, visibility, ALWAYS, CONTEXT), RPMA_E_INVAL);
	link_down(&l);
}

static void rpma_flush__dst_is_NULL__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	assert_error(rpma_flush(l.conn, NULL, 0, 8, visibility, ALWAYS, CONTEXT), RPMA_E_INVAL);
	link_down(&l);
}

static void rpma_flush__unknown_type__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	conn_apply_direct_write(l.conn);
	assert_error(flush(0, 8, (enum rpma_flush_type)2, ALWAYS), RPMA_E_INVAL);
	assert_error(flush(0, 8, (enum rpma_flush_type) - 1, ALWAYS), RPMA_E_INVAL);
	assert_error(flush(0, 8, (enum rpma_flush_type)32, ALWAYS), RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_post_send), 0);
	link_down(&l);
}

static void rpma_flush__flags_are_0__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	assert_error(flush(0, 8, visibility, 0), RPMA_E_INVAL);
	link_down(&l);
}

static void rpma_flush__beyond_the_region__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	assert_error(flush(0, REGION + 1, visibility, ALWAYS), RPMA_E_INVAL);
	assert_error(flush(REGION + 1, 0, visibility, ALWAYS), RPMA_E_INVAL);
	assert_error(flush(SIZE_MAX, 2, visibility, ALWAYS), RPMA_E_INVAL);
	assert_error(flush(8, SIZE_MAX - 7, visibility, ALWAYS), RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_post_send), 0);
	link_down(&l);
}

static void rpma_flush__persistent_without_direct_write__E_NOSUPP(void **state)
{
	(void)state;
	link_up(&l);
	assert_error(flush(0, 8, persistent, ALWAYS), RPMA_E_NOSUPP);
	assert_int_equal(mock_calls(MOCK_ibv_post_send), 0);
	link_down(&l);
}

static void rpma_flush__persistent_to_a_region_that_is_not__E_NOSUPP(void **state)
{
	(void)state;
	link_up(&l);
	conn_apply_direct_write(l.conn);
	remote_is(REMOTE_ADDR, REGION, USAGE_ALL & ~RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
	assert_error(flush(0, 8, persistent, ALWAYS), RPMA_E_NOSUPP);
	assert_ok(flush(0, 8, visibility, ALWAYS));
	link_down(&l);
}

static void rpma_flush__visibility_of_a_region_without_it__E_NOSUPP(void **state)
{
	(void)state;
	link_up(&l);
	conn_apply_direct_write(l.conn);
	remote_is(REMOTE_ADDR, REGION, USAGE_ALL & ~RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
	assert_error(flush(0, 8, visibility, ALWAYS), RPMA_E_NOSUPP);
	assert_ok(flush(0, 8, persistent, ALWAYS));
	link_down(&l);
}

static void rpma_flush__posting_fails__E_PROVIDER(void **state)
{
	(void)state;
	link_up(&l);
	mock_fail(MOCK_ibv_post_send, 1, ENOMEM);
	assert_error(flush(0, 8, visibility, ALWAYS), RPMA_E_PROVIDER);
	link_down(&l);
}

/* The read cannot pass the writes before it, and comes from the region that was written. */
static void rpma_flush__is_a_read_of_8_bytes_from_the_region(void **state)
{
	const struct mock_wr *wr;

	(void)state;
	link_up(&l);
	assert_ok(flush(64, REGION - 64, visibility, ALWAYS));
	wr = the_wr();
	assert_int_equal(wr->opcode, IBV_WR_RDMA_READ);
	assert_int_equal(wr->wr_id, (uintptr_t)CONTEXT);
	assert_int_equal(wr->remote_addr, REMOTE_ADDR + 64);
	assert_int_equal(wr->rkey, REMOTE_RKEY);
	assert_int_equal(wr->num_sge, 1);
	assert_int_equal(wr->sge.length, 8);
	assert_int_equal(wr->send_flags, IBV_SEND_SIGNALED);
	assert_int_equal(wr->sge.lkey, MOCK_LKEY);
	/* into memory of its own, never the user's */
	assert_true(wr->sge.addr < (uintptr_t)region || wr->sge.addr >= (uintptr_t)region + REGION);
	link_down(&l);
}

static void rpma_flush__completes_silently_unless_asked_to_tell(void **state)
{
	(void)state;
	link_up(&l);
	assert_ok(flush(0, 8, visibility, ON_ERROR));
	assert_int_equal(the_wr()->send_flags, 0);
	link_down(&l);
}

/* Whatever range is flushed, the read stays within the region. */
static void rpma_flush__never_reads_beyond_the_region(void **state)
{
	(void)state;
	link_up(&l);
	for (uint64_t size = 1; size <= 20; size++) {
		remote_is(UINT64_MAX - size + 1, size, USAGE_ALL);
		for (uint64_t offset = 0; offset <= size; offset++) {
			const struct mock_wr *wr;
			uint64_t begin;

			forget_wr();
			assert_ok(flush(offset, size - offset, visibility, ALWAYS));
			wr = the_wr();
			begin = wr->remote_addr - (UINT64_MAX - size + 1);
			assert_true(wr->remote_addr >= UINT64_MAX - size + 1);
			assert_true(begin <= size && wr->sge.length <= size - begin);
			assert_true(wr->sge.length > 0);
		}
	}
	link_down(&l);
}

static void rpma_flush__of_nothing_is_a_flush(void **state)
{
	(void)state;
	link_up(&l);
	assert_ok(flush(0, 0, visibility, ALWAYS));
	assert_int_equal(the_wr()->opcode, IBV_WR_RDMA_READ);
	link_down(&l);
}

static void rpma_conn_apply_remote_peer_cfg__allows_persistent_flushes(void **state)
{
	(void)state;
	link_up(&l);
	conn_apply_direct_write(l.conn);
	assert_ok(flush(8, 8, persistent, ALWAYS));
	assert_int_equal(the_wr()->opcode, IBV_WR_RDMA_READ);
	link_down(&l);
}

/* It is copied, and the last one holds. */
static void rpma_conn_apply_remote_peer_cfg__can_be_taken_back(void **state)
{
	struct rpma_peer_cfg *pcfg = NULL;

	(void)state;
	link_up(&l);
	assert_ok(rpma_peer_cfg_new(&pcfg));
	assert_ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	assert_ok(rpma_conn_apply_remote_peer_cfg(l.conn, pcfg));
	assert_ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, false));
	assert_ok(flush(0, 8, persistent, ALWAYS));
	assert_ok(rpma_conn_apply_remote_peer_cfg(l.conn, pcfg));
	assert_error(flush(0, 8, persistent, ALWAYS), RPMA_E_NOSUPP);
	assert_ok(rpma_peer_cfg_delete(&pcfg));
	link_down(&l);
}

static int atomic_write(size_t offset, const char *src, int flags)
{
	return rpma_atomic_write(l.conn, l.remote, offset, src, flags, CONTEXT);
}

static void rpma_atomic_write__conn_is_NULL__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	assert_error(rpma_atomic_write(NULL, l.remote, 0, "8 bytes", ALWAYS, CONTEXT),
		     RPMA_E_INVAL);
	link_down(&l);
}

static void rpma_atomic_write__dst_is_NULL__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	assert_error(rpma_atomic_write(l.conn, NULL, 0, "8 bytes", ALWAYS, CONTEXT), RPMA_E_INVAL);
	link_down(&l);
}

static void rpma_atomic_write__src_is_NULL__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	/* through a variable: the compiler would know what the header says of src */
	const char *volatile none = NULL;

	assert_error(atomic_write(0, none, ALWAYS), RPMA_E_INVAL);
	link_down(&l);
}

static void rpma_atomic_write__flags_are_0__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	assert_error(atomic_write(0, "8 bytes", 0), RPMA_E_INVAL);
	link_down(&l);
}

static void rpma_atomic_write__not_aligned__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	for (size_t offset = 1; offset < 8; offset++)
		assert_error(atomic_write(offset, "8 bytes", ALWAYS), RPMA_E_INVAL);
	/* what counts is where the bytes go, not where the region begins */
	remote_is(REMOTE_ADDR + 4, REGION, USAGE_ALL);
	assert_error(atomic_write(0, "8 bytes", ALWAYS), RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_post_send), 0);
	link_down(&l);
}

static void rpma_atomic_write__beyond_the_region__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	assert_error(atomic_write(REGION, "8 bytes", ALWAYS), RPMA_E_INVAL);
	assert_error(atomic_write(SIZE_MAX - 7, "8 bytes", ALWAYS), RPMA_E_INVAL);
	remote_is(REMOTE_ADDR, 7, USAGE_ALL);
	assert_error(atomic_write(0, "8 bytes", ALWAYS), RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_post_send), 0);
	link_down(&l);
}

static void rpma_atomic_write__posting_fails__E_PROVIDER(void **state)
{
	(void)state;
	link_up(&l);
	mock_fail(MOCK_ibv_post_send, 1, ENOMEM);
	assert_error(atomic_write(0, "8 bytes", ALWAYS), RPMA_E_PROVIDER);
	link_down(&l);
}

/* src may be reused at once, so the bytes must be in the work request itself. */
static void rpma_atomic_write__is_an_inline_fenced_write_of_8_bytes(void **state)
{
	const struct mock_wr *wr;

	(void)state;
	link_up(&l);
	assert_ok(atomic_write(REGION - 8, "8 bytes", ALWAYS));
	wr = the_wr();
	assert_int_equal(wr->opcode, IBV_WR_RDMA_WRITE);
	assert_int_equal(wr->wr_id, (uintptr_t)CONTEXT);
	assert_int_equal(wr->remote_addr, REMOTE_ADDR + REGION - 8);
	assert_int_equal(wr->rkey, REMOTE_RKEY);
	assert_int_equal(wr->sge.length, 8);
	assert_memory_equal(wr->inlined, "8 bytes", 8);
	assert_int_equal(wr->send_flags, IBV_SEND_SIGNALED | IBV_SEND_INLINE | IBV_SEND_FENCE);
	link_down(&l);
}

static void rpma_atomic_write__completes_silently_unless_asked_to_tell(void **state)
{
	(void)state;
	link_up(&l);
	assert_ok(atomic_write(0, "8 bytes", ON_ERROR));
	assert_int_equal(the_wr()->send_flags, IBV_SEND_INLINE | IBV_SEND_FENCE);
	link_down(&l);
}

static void rpma_atomic_write__takes_bytes_from_any_address(void **state)
{
	char bytes[16] = "0123456789abcdef";

	(void)state;
	link_up(&l);
	for (unsigned i = 0; i < 8; i++) {
		forget_wr();
		assert_ok(atomic_write(0, bytes + i, ALWAYS));
		assert_memory_equal(the_wr()->inlined, bytes + i, 8);
	}
	link_down(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_flush__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_flush__dst_is_NULL__E_INVAL),
		RPMA_TEST(rpma_flush__unknown_type__E_INVAL),
		RPMA_TEST(rpma_flush__flags_are_0__E_INVAL),
		RPMA_TEST(rpma_flush__beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_flush__persistent_without_direct_write__E_NOSUPP),
		RPMA_TEST(rpma_flush__persistent_to_a_region_that_is_not__E_NOSUPP),
		RPMA_TEST(rpma_flush__visibility_of_a_region_without_it__E_NOSUPP),
		RPMA_TEST(rpma_flush__posting_fails__E_PROVIDER),
		RPMA_TEST(rpma_flush__is_a_read_of_8_bytes_from_the_region),
		RPMA_TEST(rpma_flush__completes_silently_unless_asked_to_tell),
		RPMA_TEST(rpma_flush__never_reads_beyond_the_region),
		RPMA_TEST(rpma_flush__of_nothing_is_a_flush),
		RPMA_TEST(rpma_conn_apply_remote_peer_cfg__allows_persistent_flushes),
		RPMA_TEST(rpma_conn_apply_remote_peer_cfg__can_be_taken_back),
		RPMA_TEST(rpma_atomic_write__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_atomic_write__dst_is_NULL__E_INVAL),
		RPMA_TEST(rpma_atomic_write__src_is_NULL__E_INVAL),
		RPMA_TEST(rpma_atomic_write__flags_are_0__E_INVAL),
		RPMA_TEST(rpma_atomic_write__not_aligned__E_INVAL),
		RPMA_TEST(rpma_atomic_write__beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_atomic_write__posting_fails__E_PROVIDER),
		RPMA_TEST(rpma_atomic_write__is_an_inline_fenced_write_of_8_bytes),
		RPMA_TEST(rpma_atomic_write__completes_silently_unless_asked_to_tell),
		RPMA_TEST(rpma_atomic_write__takes_bytes_from_any_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
