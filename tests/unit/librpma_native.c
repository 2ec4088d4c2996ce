/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Native flush and native atomic write, as far as the headers of this build have them.  What the
 * headers have not is shown to be not there, whatever the device says.
 */

#include <endian.h>
#include <errno.h>

#include "librpma_config.h"
#include "walk.h"

enum { ON_ERROR = RPMA_F_COMPLETION_ON_ERROR, ALWAYS = RPMA_F_COMPLETION_ALWAYS };

#ifdef NATIVE_FLUSH_SUPPORTED
enum { BUILD_HAS_FLUSH = true };
#else
enum { BUILD_HAS_FLUSH = false };
#endif
#ifdef NATIVE_ATOMIC_WRITE_SUPPORTED
enum { BUILD_HAS_ATOMIC_WRITE = true };
#else
enum { BUILD_HAS_ATOMIC_WRITE = false };
#endif

static struct link l;

/* A device that has it all. */
static void native_up(void)
{
	mock_device()->native_flush = true;
	mock_device()->native_atomic_write = true;
	link_up(&l);
}

static void rpma_peer_get_features__are_those_of_device_and_build(void **state)
{
	uint32_t features = 77;

	(void)state;
	native_up();
	assert_ok(rpma_peer_get_features(l.peer, &features));
	assert_int_equal(features,
			 (BUILD_HAS_FLUSH ? RPMA_FEATURE_NATIVE_FLUSH : 0) |
				 (BUILD_HAS_ATOMIC_WRITE ? RPMA_FEATURE_NATIVE_ATOMIC_WRITE : 0));
	link_down(&l);
}

static void rpma_conn_get_flush_mode__is_native_where_device_and_build_are(void **state)
{
	enum rpma_flush_mode mode = RPMA_FLUSH_MODE_AUTO;

	(void)state;
	native_up();
	assert_ok(rpma_conn_get_flush_mode(l.conn, &mode));
	assert_int_equal(mode, BUILD_HAS_FLUSH ? RPMA_FLUSH_MODE_NATIVE : RPMA_FLUSH_MODE_READ);
	link_down(&l);
}

#ifdef NATIVE_ATOMIC_WRITE_SUPPORTED
static void rpma_atomic_write__native_posts_the_8_bytes(void **state)
{
	const struct mock_wr *wr;

	(void)state;
	native_up();
	assert_ok(rpma_atomic_write(l.conn, l.remote, 16, "8 bytes", ALWAYS, CONTEXT));
	wr = the_wr();
	assert_true(wr->native);
	assert_int_equal(wr->opcode, IBV_WR_ATOMIC_WRITE);
	assert_int_equal(wr->wr_id, (uintptr_t)CONTEXT);
	assert_int_equal(wr->remote_addr, REMOTE_ADDR + 16);
	assert_int_equal(wr->rkey, REMOTE_RKEY);
	assert_memory_equal(wr->inlined, "8 bytes", 8);
	assert_int_equal(wr->send_flags, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	link_down(&l);
}

static void rpma_atomic_write__native_completes_silently_unless_asked_to_tell(void **state)
{
	(void)state;
	native_up();
	assert_ok(rpma_atomic_write(l.conn, l.remote, 0, "8 bytes", ON_ERROR, CONTEXT));
	assert_int_equal(the_wr()->send_flags, IBV_SEND_FENCE);
	link_down(&l);
}

static void rpma_atomic_write__native_posting_fails__E_PROVIDER(void **state)
{
	(void)state;
	native_up();
	mock_fail(MOCK_ibv_wr_complete, 1, ENOMEM);
	assert_error(rpma_atomic_write(l.conn, l.remote, 0, "8 bytes", ALWAYS, CONTEXT),
		     RPMA_E_PROVIDER);
	/* the QP is not left in the middle of something */
	assert_ok(rpma_atomic_write(l.conn, l.remote, 0, "8 bytes", ALWAYS, CONTEXT));
	link_down(&l);
}

static void rpma_atomic_write__native_not_aligned__E_INVAL(void **state)
{
	(void)state;
	native_up();
	assert_error(rpma_atomic_write(l.conn, l.remote, 4, "8 bytes", ALWAYS, CONTEXT),
		     RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_wr_complete), 0);
	link_down(&l);
}

/* The other operations stay what they are. */
static void rpma_write__beside_native_operations_is_the_same(void **state)
{
	(void)state;
	native_up();
	assert_ok(rpma_write(l.conn, l.remote, 0, l.local, 0, 8, ALWAYS, CONTEXT));
	assert_int_equal(the_wr()->opcode, IBV_WR_RDMA_WRITE);
	assert_false(the_wr()->native);
	link_down(&l);
}

/* A QP that has no extended side is one without native operations. */
static void rpma_atomic_write__without_an_extended_QP_is_not_native(void **state)
{
	(void)state;
	mock_device()->native_atomic_write = true;
	l.peer = peer_new();
	mock_fail(MOCK_ibv_qp_to_qp_ex, 1, EOPNOTSUPP);
	l.conn = conn_new(l.peer, NULL);
	l.local = mr_new(l.peer, USAGE_ALL);
	l.remote = remote_new(REMOTE_ADDR, REGION, USAGE_ALL);
	forget_wr();
	assert_ok(rpma_atomic_write(l.conn, l.remote, 0, "8 bytes", ALWAYS, CONTEXT));
	assert_int_equal(the_wr()->opcode, IBV_WR_RDMA_WRITE);
	link_down(&l);
}

static struct rpma_batch *batch;

/* One of each kind, with a native one among them: all go the extended way, in order. */
static void append_all(void)
{
	assert_ok(rpma_batch_new(l.conn, 8, &batch));
	assert_ok(rpma_batch_write(batch, l.remote, 8, l.local, 16, 24, ON_ERROR, CONTEXT));
	assert_ok(rpma_batch_write_with_imm(batch, l.remote, 0, l.local, 0, 8, ON_ERROR, 7, NULL));
	assert_ok(rpma_batch_read(batch, l.local, 0, l.remote, 0, 8, ON_ERROR, NULL));
	assert_ok(rpma_batch_send(batch, l.local, 0, 8, ON_ERROR, NULL));
	assert_ok(rpma_batch_send_with_imm(batch, NULL, 0, 0, ON_ERROR, 9, NULL));
	assert_ok(rpma_batch_atomic_write(batch, l.remote, 0, "8 bytes", ALWAYS, CONTEXT));
}

static void rpma_batch_submit__native_rings_once_for_all_in_order(void **state)
{
	const int opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
			       IBV_WR_SEND,       IBV_WR_SEND_WITH_IMM,       IBV_WR_ATOMIC_WRITE};
	const int flags[] = {0, 0, 0, IBV_SEND_INLINE, 0, IBV_SEND_SIGNALED | IBV_SEND_FENCE};
	const struct mock_wr *wr = mock_seen()->wr;
	uint32_t submitted = 77;

	(void)state;
	native_up();
	append_all();
	assert_ok(rpma_batch_submit(batch, 0, &submitted));
	assert_int_equal(submitted, 6);
	assert_int_equal(mock_seen()->doorbells, 1);
	assert_int_equal(mock_seen()->wr_count, 6);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(wr[i].opcode, opcodes[i]);
		assert_true(wr[i].native);
		assert_int_equal(wr[i].send_flags, flags[i]);
	}
	assert_int_equal(wr[0].wr_id, (uintptr_t)CONTEXT);
	assert_int_equal(wr[0].remote_addr, REMOTE_ADDR + 8);
	assert_int_equal(wr[0].sge.addr, (uintptr_t)region + 16);
	assert_int_equal(wr[0].sge.length, 24);
	assert_int_equal(wr[0].sge.lkey, MOCK_LKEY);
	assert_int_equal(wr[1].imm_data, htobe32(7));
	assert_memory_equal(wr[3].inlined, region, 8);
	assert_int_equal(wr[4].imm_data, htobe32(9));
	assert_int_equal(wr[4].num_sge, 0);
	assert_memory_equal(wr[5].inlined, "8 bytes", 8);
	assert_ok(rpma_batch_delete(&batch));
	link_down(&l);
}

/* The extended way posts all or nothing. */
static void rpma_batch_submit__native_and_the_send_queue_is_full__E_AGAIN(void **state)
{
	uint32_t submitted = 77, count = 77;

	(void)state;
	native_up();
	append_all();
	mock_fail(MOCK_ibv_wr_complete, 1, ENOMEM);
	assert_error(rpma_batch_submit(batch, 0, &submitted), RPMA_E_AGAIN);
	assert_int_equal(submitted, 0);
	assert_ok(rpma_batch_get_count(batch, &count));
	assert_int_equal(count, 6);
	assert_ok(rpma_batch_submit(batch, 0, &submitted));
	assert_int_equal(submitted, 6);
	assert_int_equal(mock_seen()->wr[5].opcode, IBV_WR_ATOMIC_WRITE);
	assert_ok(rpma_batch_delete(&batch));
	link_down(&l);
}

static void rpma_batch_submit__native_and_the_device_refuses__E_PROVIDER(void **state)
{
	(void)state;
	native_up();
	append_all();
	mock_fail(MOCK_ibv_wr_complete, 1, EINVAL);
	assert_error(rpma_batch_submit(batch, 0, NULL), RPMA_E_PROVIDER);
	assert_ok(rpma_batch_delete(&batch));
	link_down(&l);
}

static void rpma_batch_submit__after_a_native_one_goes_the_plain_way_again(void **state)
{
	(void)state;
	native_up();
	append_all();
	assert_ok(rpma_batch_submit(batch, 0, NULL));
	forget_wr();
	assert_ok(rpma_batch_write(batch, l.remote, 0, l.local, 0, 8, ALWAYS, CONTEXT));
	assert_ok(rpma_batch_submit(batch, 0, NULL));
	assert_false(the_wr()->native);
	assert_ok(rpma_batch_delete(&batch));
	link_down(&l);
}

static void rpma_batch_clear__drops_native_ones(void **state)
{
	(void)state;
	native_up();
	append_all();
	assert_ok(rpma_batch_clear(batch));
	assert_ok(rpma_batch_write(batch, l.remote, 0, l.local, 0, 8, ALWAYS, CONTEXT));
	assert_ok(rpma_batch_submit(batch, 0, NULL));
	assert_false(the_wr()->native);
	assert_ok(rpma_batch_delete(&batch));
	link_down(&l);
}

static struct rpma_conn_req *req;

static int new_req(void)
{
	req = UNTOUCHED;
	return rpma_conn_req_new(l.peer, "192.0.2.1", "7204", NULL, &req);
}

static void with_native_peer(void)
{
	mock_device()->native_flush = true;
	mock_device()->native_atomic_write = true;
	l.peer = peer_new();
}

static void drop_req(void)
{
	assert_ok(rpma_conn_req_delete(&req));
}

static void without_peer(void)
{
	peer_delete(l.peer);
}

static void rpma_conn_req_new__native_leaks_nothing_whichever_call_fails(void **state)
{
	const struct walk w = {.prepare = with_native_peer,
			       .act = new_req,
			       .undo = drop_req,
			       .finish = without_peer,
			       .at_least = 8};

	(void)state;
	walk(&w);
}
#endif

#ifdef NATIVE_FLUSH_SUPPORTED
static int flush(uint64_t offset, uint64_t len, enum rpma_flush_type type, int flags)
{
	return rpma_flush(l.conn, l.remote, offset, len, type, flags, CONTEXT);
}

static void rpma_flush__native_names_range_and_type(void **state)
{
	const struct mock_wr *wr;

	(void)state;
	native_up();
	assert_ok(flush(64, 128, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS));
	wr = the_wr();
	assert_int_equal(wr->opcode, IBV_WR_FLUSH);
	assert_int_equal(wr->wr_id, (uintptr_t)CONTEXT);
	assert_int_equal(wr->remote_addr, REMOTE_ADDR + 64);
	assert_int_equal(wr->rkey, REMOTE_RKEY);
	assert_int_equal(wr->flush_len, 128);
	assert_int_equal(wr->flush_type, IBV_FLUSH_GLOBAL);
	assert_int_equal(wr->flush_level, IBV_FLUSH_RANGE);
	assert_int_equal(wr->send_flags, IBV_SEND_SIGNALED);
	link_down(&l);
}

/* The device itself sees to it: what the peer says of its platform does not matter. */
static void rpma_flush__native_is_persistent_without_direct_write(void **state)
{
	(void)state;
	native_up();
	assert_ok(flush(0, 8, RPMA_FLUSH_TYPE_PERSISTENT, ON_ERROR));
	assert_int_equal(the_wr()->flush_type, IBV_FLUSH_PERSISTENT);
	assert_int_equal(the_wr()->send_flags, 0);
	link_down(&l);
}

/* 32 bits of length are on the wire: beyond them, the whole region is flushed. */
static void rpma_flush__native_longer_than_the_wire_can_say_flushes_the_region(void **state)
{
	(void)state;
	native_up();
	remote_delete(l.remote);
	l.remote = remote_new(REMOTE_ADDR, 1ULL << 34, USAGE_ALL);
	assert_ok(flush(0, UINT32_MAX, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS));
	assert_int_equal(the_wr()->flush_level, IBV_FLUSH_RANGE);
	forget_wr();
	assert_ok(flush(0, 1ULL << 32, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS));
	assert_int_equal(the_wr()->flush_level, IBV_FLUSH_MR);
	link_down(&l);
}

static void rpma_flush__native_to_a_region_that_is_not_persistent__E_NOSUPP(void **state)
{
	(void)state;
	native_up();
	remote_delete(l.remote);
	l.remote = remote_new(REMOTE_ADDR, REGION, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
	assert_error(flush(0, 8, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS), RPMA_E_NOSUPP);
	link_down(&l);
}

static void rpma_flush__native_beyond_the_region__E_INVAL(void **state)
{
	(void)state;
	native_up();
	assert_error(flush(8, REGION, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS), RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_wr_complete), 0);
	link_down(&l);
}

static void rpma_flush__native_posting_fails__E_PROVIDER(void **state)
{
	(void)state;
	native_up();
	mock_fail(MOCK_ibv_wr_complete, 1, ENOMEM);
	assert_error(flush(0, 8, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS), RPMA_E_PROVIDER);
	link_down(&l);
}

static int rights_of(int usage)
{
	mock_seen()->reg_mr.attempts = 0;
	mr_delete(mr_new(l.peer, usage));
	return mock_seen()->reg_mr.access[0];
}

static void rpma_mr_reg__native_gives_flush_rights_where_asked_for(void **state)
{
	const int flush_rights = IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;

	(void)state;
	native_up();
	assert_int_equal(rights_of(RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY) & flush_rights,
			 IBV_ACCESS_FLUSH_GLOBAL);
	assert_int_equal(rights_of(RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT) & flush_rights,
			 IBV_ACCESS_FLUSH_PERSISTENT);
	assert_int_equal(rights_of(RPMA_MR_USAGE_WRITE_DST) & flush_rights, 0);
	link_down(&l);
}

/* The peer may flush by read all the same. */
static void rpma_mr_reg__native_can_be_flushed_by_read_too(void **state)
{
	(void)state;
	native_up();
	assert_true(rights_of(RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY) & IBV_ACCESS_REMOTE_READ);
	assert_true(rights_of(RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT) & IBV_ACCESS_REMOTE_READ);
	link_down(&l);
}

/* rxe's answer for DRAM */
static void rpma_mr_reg__persistent_flush_of_memory_that_is_not__E_PROVIDER(void **state)
{
	struct rpma_mr_local *mr = UNTOUCHED;

	(void)state;
	native_up();
	mock_fail(MOCK_ibv_reg_mr, 1, EINVAL);
	assert_error(rpma_mr_reg(l.peer, region, REGION, RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, &mr),
		     RPMA_E_PROVIDER);
	assert_untouched(mr);
	link_down(&l);
}

static void rpma_conn_set_flush_mode__read_flushes_by_read_and_back(void **state)
{
	(void)state;
	native_up();
	assert_ok(rpma_conn_set_flush_mode(l.conn, RPMA_FLUSH_MODE_READ));
	assert_error(flush(0, 8, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS), RPMA_E_NOSUPP);
	assert_ok(flush(0, 8, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS));
	assert_int_equal(the_wr()->opcode, IBV_WR_RDMA_READ);
	forget_wr();
	assert_ok(rpma_conn_set_flush_mode(l.conn, RPMA_FLUSH_MODE_NATIVE));
	assert_ok(flush(0, 8, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS));
	assert_int_equal(the_wr()->opcode, IBV_WR_FLUSH);
	link_down(&l);
}

static void rpma_conn_set_flush_mode__native_without_an_extended_QP__E_NOSUPP(void **state)
{
	(void)state;
	mock_device()->native_flush = true;
	l.peer = peer_new();
	mock_fail(MOCK_ibv_qp_to_qp_ex, 1, EOPNOTSUPP);
	l.conn = conn_new(l.peer, NULL);
	assert_error(rpma_conn_set_flush_mode(l.conn, RPMA_FLUSH_MODE_NATIVE), RPMA_E_NOSUPP);
	conn_delete(l.conn);
	peer_delete(l.peer);
}

static void rpma_conn_set_flush_mode__no_memory_for_the_buffer__E_NOMEM(void **state)
{
	enum rpma_flush_mode mode;

	(void)state;
	native_up();
	mock_fail(MOCK_mmap, 1, ENOMEM);
	assert_error(rpma_conn_set_flush_mode(l.conn, RPMA_FLUSH_MODE_READ), RPMA_E_NOMEM);
	assert_ok(rpma_conn_get_flush_mode(l.conn, &mode));
	assert_int_equal(mode, RPMA_FLUSH_MODE_NATIVE);
	link_down(&l);
}

static void rpma_conn_set_flush_mode__the_buffer_cannot_be_registered__E_PROVIDER(void **state)
{
	enum rpma_flush_mode mode;

	(void)state;
	native_up();
	mock_fail(MOCK_ibv_reg_mr, 1, ENOMEM);
	assert_error(rpma_conn_set_flush_mode(l.conn, RPMA_FLUSH_MODE_READ), RPMA_E_PROVIDER);
	assert_ok(rpma_conn_get_flush_mode(l.conn, &mode));
	assert_int_equal(mode, RPMA_FLUSH_MODE_NATIVE);
	assert_int_equal(mock_alive_of(MOCK_MAPPING), 0);
	link_down(&l);
}

static void rpma_batch_flush__native_rings_once_with_the_write_before_it(void **state)
{
	struct rpma_batch *b = NULL;

	(void)state;
	native_up();
	assert_ok(rpma_batch_new(l.conn, 2, &b));
	assert_ok(rpma_batch_write(b, l.remote, 0, l.local, 0, 8, ON_ERROR, NULL));
	assert_ok(
		rpma_batch_flush(b, l.remote, 16, 8, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, CONTEXT));
	assert_ok(rpma_batch_submit(b, 0, NULL));
	assert_int_equal(mock_seen()->doorbells, 1);
	assert_int_equal(mock_seen()->wr[0].opcode, IBV_WR_RDMA_WRITE);
	assert_int_equal(mock_seen()->wr[1].opcode, IBV_WR_FLUSH);
	assert_int_equal(mock_seen()->wr[1].flush_len, 8);
	assert_int_equal(mock_seen()->wr[1].flush_type, IBV_FLUSH_GLOBAL);
	assert_int_equal(mock_seen()->wr[1].remote_addr, REMOTE_ADDR + 16);
	assert_int_equal(mock_seen()->wr[1].rkey, REMOTE_RKEY);
	assert_int_equal(mock_seen()->wr[1].wr_id, (uintptr_t)CONTEXT);
	assert_ok(rpma_batch_delete(&b));
	link_down(&l);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_peer_get_features__are_those_of_device_and_build),
		RPMA_TEST(rpma_conn_get_flush_mode__is_native_where_device_and_build_are),
#ifdef NATIVE_ATOMIC_WRITE_SUPPORTED
		RPMA_TEST(rpma_atomic_write__native_posts_the_8_bytes),
		RPMA_TEST(rpma_atomic_write__native_completes_silently_unless_asked_to_tell),
		RPMA_TEST(rpma_atomic_write__native_posting_fails__E_PROVIDER),
		RPMA_TEST(rpma_atomic_write__native_not_aligned__E_INVAL),
		RPMA_TEST(rpma_write__beside_native_operations_is_the_same),
		RPMA_TEST(rpma_atomic_write__without_an_extended_QP_is_not_native),
		RPMA_TEST(rpma_batch_submit__native_rings_once_for_all_in_order),
		RPMA_TEST(rpma_batch_submit__native_and_the_send_queue_is_full__E_AGAIN),
		RPMA_TEST(rpma_batch_submit__native_and_the_device_refuses__E_PROVIDER),
		RPMA_TEST(rpma_batch_submit__after_a_native_one_goes_the_plain_way_again),
		RPMA_TEST(rpma_batch_clear__drops_native_ones),
		RPMA_TEST(rpma_conn_req_new__native_leaks_nothing_whichever_call_fails),
#endif
#ifdef NATIVE_FLUSH_SUPPORTED
		RPMA_TEST(rpma_flush__native_names_range_and_type),
		RPMA_TEST(rpma_flush__native_is_persistent_without_direct_write),
		RPMA_TEST(rpma_flush__native_longer_than_the_wire_can_say_flushes_the_region),
		RPMA_TEST(rpma_flush__native_to_a_region_that_is_not_persistent__E_NOSUPP),
		RPMA_TEST(rpma_flush__native_beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_flush__native_posting_fails__E_PROVIDER),
		RPMA_TEST(rpma_mr_reg__native_gives_flush_rights_where_asked_for),
		RPMA_TEST(rpma_mr_reg__native_can_be_flushed_by_read_too),
		RPMA_TEST(rpma_mr_reg__persistent_flush_of_memory_that_is_not__E_PROVIDER),
		RPMA_TEST(rpma_conn_set_flush_mode__read_flushes_by_read_and_back),
		RPMA_TEST(rpma_conn_set_flush_mode__native_without_an_extended_QP__E_NOSUPP),
		RPMA_TEST(rpma_conn_set_flush_mode__no_memory_for_the_buffer__E_NOMEM),
		RPMA_TEST(rpma_conn_set_flush_mode__the_buffer_cannot_be_registered__E_PROVIDER),
		RPMA_TEST(rpma_batch_flush__native_rings_once_with_the_write_before_it),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
