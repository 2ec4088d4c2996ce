/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: send, send with immediate data, receive */

#include <arpa/inet.h>
#include <errno.h>

#include "walk.h"

enum { ON_ERROR = RPMA_F_COMPLETION_ON_ERROR, ALWAYS = RPMA_F_COMPLETION_ALWAYS };

static struct link l;

/* What both ways to send have in common is checked for each of them by these. */
typedef int sender(struct rpma_conn *conn, struct rpma_mr_local *mr, size_t offset, size_t len,
		   int flags);

static int send_(struct rpma_conn *conn, struct rpma_mr_local *mr, size_t offset, size_t len,
		 int flags)
{
	return rpma_send(conn, mr, offset, len, flags, CONTEXT);
}

static int send_with_imm(struct rpma_conn *conn, struct rpma_mr_local *mr, size_t offset,
			 size_t len, int flags)
{
	return rpma_send_with_imm(conn, mr, offset, len, flags, 0x01020304, CONTEXT);
}

/* A receive has no flags; it always completes. */
static int recv_(struct rpma_conn *conn, struct rpma_mr_local *mr, size_t offset, size_t len,
		 int flags)
{
	(void)flags;
	return rpma_recv(conn, mr, offset, len, CONTEXT);
}

static unsigned posted(void)
{
	return mock_calls(MOCK_ibv_post_send) + mock_calls(MOCK_ibv_post_recv);
}

static void conn_is_NULL(sender *s)
{
	link_up(&l);
	assert_error(s(NULL, l.local, 0, 8, ALWAYS), RPMA_E_INVAL);
	link_down(&l);
}

static void flags_are_0(sender *s)
{
	link_up(&l);
	assert_error(s(l.conn, l.local, 0, 8, 0), RPMA_E_INVAL);
	assert_int_equal(posted(), 0);
	link_down(&l);
}

static void no_region_but_an_offset(sender *s)
{
	link_up(&l);
	assert_error(s(l.conn, NULL, 1, 0, ALWAYS), RPMA_E_INVAL);
	assert_int_equal(posted(), 0);
	link_down(&l);
}

static void no_region_but_a_length(sender *s)
{
	link_up(&l);
	assert_error(s(l.conn, NULL, 0, 1, ALWAYS), RPMA_E_INVAL);
	assert_int_equal(posted(), 0);
	link_down(&l);
}

static void beyond_the_region(sender *s)
{
	link_up(&l);
	assert_error(s(l.conn, l.local, 0, REGION + 1, ALWAYS), RPMA_E_INVAL);
	assert_error(s(l.conn, l.local, REGION + 1, 0, ALWAYS), RPMA_E_INVAL);
	assert_error(s(l.conn, l.local, SIZE_MAX, 2, ALWAYS), RPMA_E_INVAL);
	assert_error(s(l.conn, l.local, 8, SIZE_MAX - 7, ALWAYS), RPMA_E_INVAL);
	assert_int_equal(posted(), 0);
	link_down(&l);
}

/* A work request carries 32 bits of length: what does not fit must not be cut down to what does. */
static void longer_than_a_work_request(sender *s)
{
	struct rpma_mr_local *local = NULL;

	link_up(&l);
	assert_ok(rpma_mr_reg(l.peer, region, 1ULL << 33, USAGE_ALL, &local));
	assert_error(s(l.conn, local, 0, 1ULL << 32, ALWAYS), RPMA_E_INVAL);
	assert_error(s(l.conn, local, 0, (1ULL << 32) + 8, ALWAYS), RPMA_E_INVAL);
	assert_int_equal(posted(), 0);
	mr_delete(local);
	link_down(&l);
}

static void posting_fails(sender *s, enum mock_call call)
{
	link_up(&l);
	mock_fail(call, 1, ENOMEM);
	assert_error(s(l.conn, l.local, 0, 8, ALWAYS), RPMA_E_PROVIDER);
	/* it can be tried again */
	assert_ok(s(l.conn, l.local, 0, 8, ALWAYS));
	link_down(&l);
}

static void posts(sender *s)
{
	const struct mock_wr *wr;

	link_up(&l);
	assert_ok(s(l.conn, l.local, 8, REGION - 8, ALWAYS));
	wr = the_wr();
	assert_int_equal(wr->wr_id, (uintptr_t)CONTEXT);
	assert_int_equal(wr->num_sge, 1);
	assert_int_equal(wr->sge.addr, (uintptr_t)region + 8);
	assert_int_equal(wr->sge.length, REGION - 8);
	assert_int_equal(wr->sge.lkey, MOCK_LKEY);
	assert_non_null(wr->qp);
	link_down(&l);
}

static void may_be_empty(sender *s)
{
	link_up(&l);
	assert_ok(s(l.conn, NULL, 0, 0, ALWAYS));
	assert_int_equal(the_wr()->num_sge, 0);
	link_down(&l);
}

static void flags_become_send_flags(sender *s, enum ibv_wr_opcode opcode)
{
	link_up(&l);
	assert_ok(s(l.conn, l.local, 0, REGION, ALWAYS));
	assert_int_equal(the_wr()->opcode, opcode);
	assert_int_equal(the_wr()->send_flags, IBV_SEND_SIGNALED);
	forget_wr();
	assert_ok(s(l.conn, l.local, 0, REGION, ON_ERROR));
	assert_int_equal(the_wr()->send_flags, 0);
	link_down(&l);
}

/* The device need not fetch it then, and its memory may change at once. */
static void a_small_one_goes_inline(sender *s)
{
	uint8_t sent[32];

	link_up(&l);
	memset(region, 0x5a, sizeof(sent));
	memset(sent, 0x5a, sizeof(sent));
	assert_ok(s(l.conn, l.local, 0, sizeof(sent), ALWAYS));
	memset(region, 0, sizeof(sent));
	assert_int_equal(the_wr()->send_flags, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	assert_int_equal(the_wr()->sge.length, sizeof(sent));
	assert_memory_equal(the_wr()->inlined, sent, sizeof(sent));
	forget_wr();
	assert_ok(s(l.conn, l.local, 0, sizeof(sent) + 1, ALWAYS));
	assert_int_equal(the_wr()->send_flags, IBV_SEND_SIGNALED);
	link_down(&l);
}

static void a_device_that_takes_less_inline_gets_less(sender *s)
{
	mock_device()->max_inline = 8;
	link_up(&l);
	assert_int_equal(mock_seen()->qp_attr.cap.max_inline_data, 8);
	assert_ok(s(l.conn, l.local, 0, 8, ALWAYS));
	assert_int_equal(the_wr()->send_flags, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	forget_wr();
	assert_ok(s(l.conn, l.local, 0, 9, ALWAYS));
	assert_int_equal(the_wr()->send_flags, IBV_SEND_SIGNALED);
	link_down(&l);
}

static void rpma_send__conn_is_NULL__E_INVAL(void **state)
{
	(void)state;
	conn_is_NULL(send_);
}

static void rpma_send__flags_are_0__E_INVAL(void **state)
{
	(void)state;
	flags_are_0(send_);
}

static void rpma_send__no_region_but_an_offset__E_INVAL(void **state)
{
	(void)state;
	no_region_but_an_offset(send_);
}

static void rpma_send__no_region_but_a_length__E_INVAL(void **state)
{
	(void)state;
	no_region_but_a_length(send_);
}

static void rpma_send__beyond_the_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_region(send_);
}

static void rpma_send__longer_than_a_work_request__E_INVAL(void **state)
{
	(void)state;
	longer_than_a_work_request(send_);
}

static void rpma_send__posting_fails__E_PROVIDER(void **state)
{
	(void)state;
	posting_fails(send_, MOCK_ibv_post_send);
}

static void rpma_send__posts_what_was_asked_for(void **state)
{
	(void)state;
	posts(send_);
}

static void rpma_send__completes_silently_unless_asked_to_tell(void **state)
{
	(void)state;
	flags_become_send_flags(send_, IBV_WR_SEND);
}

static void rpma_send__a_small_message_goes_inline(void **state)
{
	(void)state;
	a_small_one_goes_inline(send_);
}

static void rpma_send__a_device_that_takes_less_inline_gets_less(void **state)
{
	(void)state;
	a_device_that_takes_less_inline_gets_less(send_);
}

static void rpma_send__takes_an_empty_message(void **state)
{
	(void)state;
	may_be_empty(send_);
}

static void rpma_send_with_imm__conn_is_NULL__E_INVAL(void **state)
{
	(void)state;
	conn_is_NULL(send_with_imm);
}

static void rpma_send_with_imm__flags_are_0__E_INVAL(void **state)
{
	(void)state;
	flags_are_0(send_with_imm);
}

static void rpma_send_with_imm__no_region_but_an_offset__E_INVAL(void **state)
{
	(void)state;
	no_region_but_an_offset(send_with_imm);
}

static void rpma_send_with_imm__no_region_but_a_length__E_INVAL(void **state)
{
	(void)state;
	no_region_but_a_length(send_with_imm);
}

static void rpma_send_with_imm__beyond_the_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_region(send_with_imm);
}

static void rpma_send_with_imm__longer_than_a_work_request__E_INVAL(void **state)
{
	(void)state;
	longer_than_a_work_request(send_with_imm);
}

static void rpma_send_with_imm__posting_fails__E_PROVIDER(void **state)
{
	(void)state;
	posting_fails(send_with_imm, MOCK_ibv_post_send);
}

static void rpma_send_with_imm__posts_what_was_asked_for(void **state)
{
	(void)state;
	posts(send_with_imm);
}

static void rpma_send_with_imm__completes_silently_unless_asked_to_tell(void **state)
{
	(void)state;
	flags_become_send_flags(send_with_imm, IBV_WR_SEND_WITH_IMM);
}

static void rpma_send_with_imm__a_small_message_goes_inline(void **state)
{
	(void)state;
	a_small_one_goes_inline(send_with_imm);
}

static void rpma_send_with_imm__a_device_that_takes_less_inline_gets_less(void **state)
{
	(void)state;
	a_device_that_takes_less_inline_gets_less(send_with_imm);
}

static void rpma_send_with_imm__takes_an_empty_message(void **state)
{
	(void)state;
	may_be_empty(send_with_imm);
}

static void rpma_recv__conn_is_NULL__E_INVAL(void **state)
{
	(void)state;
	conn_is_NULL(recv_);
}

static void rpma_recv__no_region_but_an_offset__E_INVAL(void **state)
{
	(void)state;
	no_region_but_an_offset(recv_);
}

static void rpma_recv__no_region_but_a_length__E_INVAL(void **state)
{
	(void)state;
	no_region_but_a_length(recv_);
}

static void rpma_recv__beyond_the_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_region(recv_);
}

static void rpma_recv__longer_than_a_work_request__E_INVAL(void **state)
{
	(void)state;
	longer_than_a_work_request(recv_);
}

static void rpma_recv__posting_fails__E_PROVIDER(void **state)
{
	(void)state;
	posting_fails(recv_, MOCK_ibv_post_recv);
}

static void rpma_recv__posts_what_was_asked_for(void **state)
{
	(void)state;
	posts(recv_);
}

static void rpma_recv__takes_an_empty_message(void **state)
{
	(void)state;
	may_be_empty(recv_);
}

static void rpma_send_with_imm__imm_travels_in_network_byte_order(void **state)
{
	(void)state;
	link_up(&l);
	assert_ok(send_with_imm(l.conn, l.local, 0, 8, ALWAYS));
	assert_int_equal(the_wr()->imm_data, htonl(0x01020304));
	link_down(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_send__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_send__flags_are_0__E_INVAL),
		RPMA_TEST(rpma_send__no_region_but_an_offset__E_INVAL),
		RPMA_TEST(rpma_send__no_region_but_a_length__E_INVAL),
		RPMA_TEST(rpma_send__beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_send__longer_than_a_work_request__E_INVAL),
		RPMA_TEST(rpma_send__posting_fails__E_PROVIDER),
		RPMA_TEST(rpma_send__posts_what_was_asked_for),
		RPMA_TEST(rpma_send__completes_silently_unless_asked_to_tell),
		RPMA_TEST(rpma_send__a_small_message_goes_inline),
		RPMA_TEST(rpma_send__a_device_that_takes_less_inline_gets_less),
		RPMA_TEST(rpma_send__takes_an_empty_message),
		RPMA_TEST(rpma_send_with_imm__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_send_with_imm__flags_are_0__E_INVAL),
		RPMA_TEST(rpma_send_with_imm__no_region_but_an_offset__E_INVAL),
		RPMA_TEST(rpma_send_with_imm__no_region_but_a_length__E_INVAL),
		RPMA_TEST(rpma_send_with_imm__beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_send_with_imm__longer_than_a_work_request__E_INVAL),
		RPMA_TEST(rpma_send_with_imm__posting_fails__E_PROVIDER),
		RPMA_TEST(rpma_send_with_imm__posts_what_was_asked_for),
		RPMA_TEST(rpma_send_with_imm__completes_silently_unless_asked_to_tell),
		RPMA_TEST(rpma_send_with_imm__a_small_message_goes_inline),
		RPMA_TEST(rpma_send_with_imm__a_device_that_takes_less_inline_gets_less),
		RPMA_TEST(rpma_send_with_imm__takes_an_empty_message),
		RPMA_TEST(rpma_recv__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_recv__no_region_but_an_offset__E_INVAL),
		RPMA_TEST(rpma_recv__no_region_but_a_length__E_INVAL),
		RPMA_TEST(rpma_recv__beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_recv__longer_than_a_work_request__E_INVAL),
		RPMA_TEST(rpma_recv__posting_fails__E_PROVIDER),
		RPMA_TEST(rpma_recv__posts_what_was_asked_for),
		RPMA_TEST(rpma_recv__takes_an_empty_message),
		RPMA_TEST(rpma_send_with_imm__imm_travels_in_network_byte_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
