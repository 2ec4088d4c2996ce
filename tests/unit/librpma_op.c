/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes: the three transfers between a region here and one there */

#include <arpa/inet.h>
#include <errno.h>

#include "walk.h"

enum { ON_ERROR = RPMA_F_COMPLETION_ON_ERROR, ALWAYS = RPMA_F_COMPLETION_ALWAYS };

static struct link l;

/* What the three have in common is checked for each of them by these. */
typedef int transfer(struct rpma_conn *conn, struct rpma_mr_local *local, size_t local_offset,
		     struct rpma_mr_remote *remote, size_t remote_offset, size_t len, int flags);

static int read_(struct rpma_conn *conn, struct rpma_mr_local *local, size_t local_offset,
		 struct rpma_mr_remote *remote, size_t remote_offset, size_t len, int flags)
{
	return rpma_read(conn, local, local_offset, remote, remote_offset, len, flags, CONTEXT);
}

static int write_(struct rpma_conn *conn, struct rpma_mr_local *local, size_t local_offset,
		  struct rpma_mr_remote *remote, size_t remote_offset, size_t len, int flags)
{
	return rpma_write(conn, remote, remote_offset, local, local_offset, len, flags, CONTEXT);
}

static int write_with_imm(struct rpma_conn *conn, struct rpma_mr_local *local, size_t local_offset,
			  struct rpma_mr_remote *remote, size_t remote_offset, size_t len,
			  int flags)
{
	return rpma_write_with_imm(conn, remote, remote_offset, local, local_offset, len, flags,
				   0x01020304, CONTEXT);
}

static void conn_is_NULL(transfer *t)
{
	link_up(&l);
	assert_error(t(NULL, l.local, 0, l.remote, 0, 8, ALWAYS), RPMA_E_INVAL);
	link_down(&l);
}

static void flags_are_0(transfer *t)
{
	link_up(&l);
	assert_error(t(l.conn, l.local, 0, l.remote, 0, 8, 0), RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_post_send), 0);
	link_down(&l);
}

static void no_local_region(transfer *t)
{
	link_up(&l);
	assert_error(t(l.conn, NULL, 0, l.remote, 0, 0, ALWAYS), RPMA_E_INVAL);
	assert_error(t(l.conn, NULL, 8, NULL, 0, 0, ALWAYS), RPMA_E_INVAL);
	assert_error(t(l.conn, NULL, 0, NULL, 0, 8, ALWAYS), RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_post_send), 0);
	link_down(&l);
}

static void no_remote_region(transfer *t)
{
	link_up(&l);
	assert_error(t(l.conn, l.local, 0, NULL, 0, 0, ALWAYS), RPMA_E_INVAL);
	assert_error(t(l.conn, NULL, 0, NULL, 8, 0, ALWAYS), RPMA_E_INVAL);
	assert_error(t(l.conn, NULL, 8, NULL, 8, 8, ALWAYS), RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_post_send), 0);
	link_down(&l);
}

static void beyond_the_local_region(transfer *t)
{
	struct rpma_mr_remote *huge;

	link_up(&l);
	huge = remote_new(0, UINT64_MAX, USAGE_ALL);
	assert_error(t(l.conn, l.local, 1, huge, 0, REGION, ALWAYS), RPMA_E_INVAL);
	assert_error(t(l.conn, l.local, REGION + 1, huge, 0, 0, ALWAYS), RPMA_E_INVAL);
	assert_error(t(l.conn, l.local, SIZE_MAX, huge, 0, 2, ALWAYS), RPMA_E_INVAL);
	assert_error(t(l.conn, l.local, 2, huge, 0, SIZE_MAX - 1, ALWAYS), RPMA_E_INVAL);
	assert_error(t(l.conn, l.local, 0, huge, 0, (1ULL << 32) + 8, ALWAYS), RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_post_send), 0);
	remote_delete(huge);
	link_down(&l);
}

/* A work request carries 32 bits of length: what does not fit must not be cut down to what does. */
static void longer_than_a_work_request(transfer *t)
{
	struct rpma_mr_local *local = NULL;
	struct rpma_mr_remote *remote;

	link_up(&l);
	assert_ok(rpma_mr_reg(l.peer, region, 1ULL << 33, USAGE_ALL, &local));
	remote = remote_new(0, 1ULL << 33, USAGE_ALL);
	assert_error(t(l.conn, local, 0, remote, 0, 1ULL << 32, ALWAYS), RPMA_E_INVAL);
	assert_error(t(l.conn, local, 0, remote, 0, (1ULL << 32) + 8, ALWAYS), RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_post_send), 0);
	assert_ok(t(l.conn, local, 1ULL << 32, remote, 1ULL << 32, UINT32_MAX, ALWAYS));
	assert_int_equal(the_wr()->sge.length, UINT32_MAX);
	mr_delete(local);
	remote_delete(remote);
	link_down(&l);
}

static void beyond_the_remote_region(transfer *t)
{
	struct rpma_mr_remote *small;

	link_up(&l);
	small = remote_new(REMOTE_ADDR, 16, USAGE_ALL);
	assert_error(t(l.conn, l.local, 0, small, 0, 17, ALWAYS), RPMA_E_INVAL);
	assert_error(t(l.conn, l.local, 0, small, 9, 8, ALWAYS), RPMA_E_INVAL);
	assert_error(t(l.conn, l.local, 0, small, 17, 0, ALWAYS), RPMA_E_INVAL);
	assert_error(t(l.conn, l.local, 0, small, SIZE_MAX - 7, 16, ALWAYS), RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_post_send), 0);
	remote_delete(small);
	link_down(&l);
}

static void posting_fails(transfer *t)
{
	link_up(&l);
	mock_fail(MOCK_ibv_post_send, 1, ENOMEM);
	assert_error(t(l.conn, l.local, 0, l.remote, 0, 8, ALWAYS), RPMA_E_PROVIDER);
	/* it can be tried again */
	assert_ok(t(l.conn, l.local, 0, l.remote, 0, 8, ALWAYS));
	link_down(&l);
}

static void posts(transfer *t, enum ibv_wr_opcode opcode)
{
	const struct mock_wr *wr;

	link_up(&l);
	assert_ok(t(l.conn, l.local, 8, l.remote, 24, REGION - 24, ALWAYS));
	wr = the_wr();
	assert_int_equal(wr->opcode, opcode);
	assert_int_equal(wr->wr_id, (uintptr_t)CONTEXT);
	assert_int_equal(wr->num_sge, 1);
	assert_int_equal(wr->sge.addr, (uintptr_t)region + 8);
	assert_int_equal(wr->sge.length, REGION - 24);
	assert_int_equal(wr->sge.lkey, MOCK_LKEY);
	assert_int_equal(wr->remote_addr, REMOTE_ADDR + 24);
	assert_int_equal(wr->rkey, REMOTE_RKEY);
	assert_int_equal(wr->send_flags, IBV_SEND_SIGNALED);
	link_down(&l);
}

static void only_always_is_signalled(transfer *t)
{
	link_up(&l);
	assert_ok(t(l.conn, l.local, 0, l.remote, 0, 8, ON_ERROR));
	assert_int_equal(the_wr()->send_flags, 0);
	link_down(&l);
}

static void may_be_empty(transfer *t)
{
	link_up(&l);
	assert_ok(t(l.conn, NULL, 0, NULL, 0, 0, ALWAYS));
	assert_int_equal(the_wr()->num_sge, 0);
	assert_int_equal(the_wr()->remote_addr, 0);
	assert_int_equal(the_wr()->rkey, 0);
	link_down(&l);
}

/* A region may end where the address space does. */
static void reaches_the_last_byte(transfer *t)
{
	struct rpma_mr_remote *last;

	link_up(&l);
	last = remote_new(UINT64_MAX - 15, 16, USAGE_ALL);
	assert_ok(t(l.conn, l.local, REGION - 8, last, 8, 8, ALWAYS));
	assert_int_equal(the_wr()->remote_addr, UINT64_MAX - 7);
	remote_delete(last);
	link_down(&l);
}

static void rpma_read__conn_is_NULL__E_INVAL(void **state)
{
	(void)state;
	conn_is_NULL(read_);
}

static void rpma_read__flags_are_0__E_INVAL(void **state)
{
	(void)state;
	flags_are_0(read_);
}

static void rpma_read__no_local_region__E_INVAL(void **state)
{
	(void)state;
	no_local_region(read_);
}

static void rpma_read__no_remote_region__E_INVAL(void **state)
{
	(void)state;
	no_remote_region(read_);
}

static void rpma_read__beyond_the_local_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_local_region(read_);
}

static void rpma_read__longer_than_a_work_request__E_INVAL(void **state)
{
	(void)state;
	longer_than_a_work_request(read_);
}

static void rpma_read__beyond_the_remote_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_remote_region(read_);
}

static void rpma_read__posting_fails__E_PROVIDER(void **state)
{
	(void)state;
	posting_fails(read_);
}

static void rpma_read__posts_what_was_asked_for(void **state)
{
	(void)state;
	posts(read_, IBV_WR_RDMA_READ);
}

static void rpma_read__completes_silently_unless_asked_to_tell(void **state)
{
	(void)state;
	only_always_is_signalled(read_);
}

static void rpma_read__of_nothing_needs_no_regions(void **state)
{
	(void)state;
	may_be_empty(read_);
}

static void rpma_read__reaches_the_last_byte_there_is(void **state)
{
	(void)state;
	reaches_the_last_byte(read_);
}

static void rpma_write__conn_is_NULL__E_INVAL(void **state)
{
	(void)state;
	conn_is_NULL(write_);
}

static void rpma_write__flags_are_0__E_INVAL(void **state)
{
	(void)state;
	flags_are_0(write_);
}

static void rpma_write__no_local_region__E_INVAL(void **state)
{
	(void)state;
	no_local_region(write_);
}

static void rpma_write__no_remote_region__E_INVAL(void **state)
{
	(void)state;
	no_remote_region(write_);
}

static void rpma_write__beyond_the_local_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_local_region(write_);
}

static void rpma_write__longer_than_a_work_request__E_INVAL(void **state)
{
	(void)state;
	longer_than_a_work_request(write_);
}

static void rpma_write__beyond_the_remote_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_remote_region(write_);
}

static void rpma_write__posting_fails__E_PROVIDER(void **state)
{
	(void)state;
	posting_fails(write_);
}

static void rpma_write__posts_what_was_asked_for(void **state)
{
	(void)state;
	posts(write_, IBV_WR_RDMA_WRITE);
}

static void rpma_write__completes_silently_unless_asked_to_tell(void **state)
{
	(void)state;
	only_always_is_signalled(write_);
}

static void rpma_write__of_nothing_needs_no_regions(void **state)
{
	(void)state;
	may_be_empty(write_);
}

static void rpma_write__reaches_the_last_byte_there_is(void **state)
{
	(void)state;
	reaches_the_last_byte(write_);
}

static void rpma_write_with_imm__conn_is_NULL__E_INVAL(void **state)
{
	(void)state;
	conn_is_NULL(write_with_imm);
}

static void rpma_write_with_imm__flags_are_0__E_INVAL(void **state)
{
	(void)state;
	flags_are_0(write_with_imm);
}

static void rpma_write_with_imm__no_local_region__E_INVAL(void **state)
{
	(void)state;
	no_local_region(write_with_imm);
}

static void rpma_write_with_imm__no_remote_region__E_INVAL(void **state)
{
	(void)state;
	no_remote_region(write_with_imm);
}

static void rpma_write_with_imm__beyond_the_local_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_local_region(write_with_imm);
}

static void rpma_write_with_imm__longer_than_a_work_request__E_INVAL(void **state)
{
	(void)state;
	longer_than_a_work_request(write_with_imm);
}

static void rpma_write_with_imm__beyond_the_remote_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_remote_region(write_with_imm);
}

static void rpma_write_with_imm__posting_fails__E_PROVIDER(void **state)
{
	(void)state;
	posting_fails(write_with_imm);
}

static void rpma_write_with_imm__posts_what_was_asked_for(void **state)
{
	(void)state;
	posts(write_with_imm, IBV_WR_RDMA_WRITE_WITH_IMM);
}

static void rpma_write_with_imm__completes_silently_unless_asked_to_tell(void **state)
{
	(void)state;
	only_always_is_signalled(write_with_imm);
}

static void rpma_write_with_imm__of_nothing_needs_no_regions(void **state)
{
	(void)state;
	may_be_empty(write_with_imm);
}

static void rpma_write_with_imm__reaches_the_last_byte_there_is(void **state)
{
	(void)state;
	reaches_the_last_byte(write_with_imm);
}

static void rpma_write_with_imm__imm_travels_in_network_byte_order(void **state)
{
	(void)state;
	link_up(&l);
	assert_ok(write_with_imm(l.conn, l.local, 0, l.remote, 0, 8, ALWAYS));
	assert_int_equal(the_wr()->imm_data, htonl(0x01020304));
	link_down(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_read__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_read__flags_are_0__E_INVAL),
		RPMA_TEST(rpma_read__no_local_region__E_INVAL),
		RPMA_TEST(rpma_read__no_remote_region__E_INVAL),
		RPMA_TEST(rpma_read__beyond_the_local_region__E_INVAL),
		RPMA_TEST(rpma_read__longer_than_a_work_request__E_INVAL),
		RPMA_TEST(rpma_read__beyond_the_remote_region__E_INVAL),
		RPMA_TEST(rpma_read__posting_fails__E_PROVIDER),
		RPMA_TEST(rpma_read__posts_what_was_asked_for),
		RPMA_TEST(rpma_read__completes_silently_unless_asked_to_tell),
		RPMA_TEST(rpma_read__of_nothing_needs_no_regions),
		RPMA_TEST(rpma_read__reaches_the_last_byte_there_is),
		RPMA_TEST(rpma_write__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_write__flags_are_0__E_INVAL),
		RPMA_TEST(rpma_write__no_local_region__E_INVAL),
		RPMA_TEST(rpma_write__no_remote_region__E_INVAL),
		RPMA_TEST(rpma_write__beyond_the_local_region__E_INVAL),
		RPMA_TEST(rpma_write__longer_than_a_work_request__E_INVAL),
		RPMA_TEST(rpma_write__beyond_the_remote_region__E_INVAL),
		RPMA_TEST(rpma_write__posting_fails__E_PROVIDER),
		RPMA_TEST(rpma_write__posts_what_was_asked_for),
		RPMA_TEST(rpma_write__completes_silently_unless_asked_to_tell),
		RPMA_TEST(rpma_write__of_nothing_needs_no_regions),
		RPMA_TEST(rpma_write__reaches_the_last_byte_there_is),
		RPMA_TEST(rpma_write_with_imm__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_write_with_imm__flags_are_0__E_INVAL),
		RPMA_TEST(rpma_write_with_imm__no_local_region__E_INVAL),
		RPMA_TEST(rpma_write_with_imm__no_remote_region__E_INVAL),
		RPMA_TEST(rpma_write_with_imm__beyond_the_local_region__E_INVAL),
		RPMA_TEST(rpma_write_with_imm__longer_than_a_work_request__E_INVAL),
		RPMA_TEST(rpma_write_with_imm__beyond_the_remote_region__E_INVAL),
		RPMA_TEST(rpma_write_with_imm__posting_fails__E_PROVIDER),
		RPMA_TEST(rpma_write_with_imm__posts_what_was_asked_for),
		RPMA_TEST(rpma_write_with_imm__completes_silently_unless_asked_to_tell),
		RPMA_TEST(rpma_write_with_imm__of_nothing_needs_no_regions),
		RPMA_TEST(rpma_write_with_imm__reaches_the_last_byte_there_is),
		RPMA_TEST(rpma_write_with_imm__imm_travels_in_network_byte_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
