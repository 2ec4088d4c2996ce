/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches: posting all that waits with one doorbell */

#include <arpa/inet.h>
#include <errno.h>

#include "batch.h"

static void rpma_batch_submit__batch_is_NULL__E_INVAL(void **state)
{
	uint32_t submitted = 77;

	(void)state;
	assert_error(rpma_batch_submit(NULL, 0, &submitted), RPMA_E_INVAL);
}

static void rpma_batch_submit__unknown_flags__E_INVAL(void **state)
{
	(void)state;
	up();
	assert_ok(add(0, ALWAYS));
	assert_error(rpma_batch_submit(batch, ON_ERROR, NULL), RPMA_E_INVAL);
	assert_error(rpma_batch_submit(batch, 4, NULL), RPMA_E_INVAL);
	assert_error(rpma_batch_submit(batch, -1, NULL), RPMA_E_INVAL);
	assert_int_equal(waiting(), 1);
	assert_int_equal(mock_seen()->wr_count, 0);
	down();
}

static void rpma_batch_submit__of_nothing_posts_nothing(void **state)
{
	uint32_t submitted = 77;

	(void)state;
	up();
	assert_ok(rpma_batch_submit(batch, ALWAYS, &submitted));
	assert_int_equal(submitted, 0);
	assert_int_equal(mock_calls(MOCK_ibv_post_send), 0);
	down();
}

static void rpma_batch_submit__rings_once_for_all_in_order(void **state)
{
	uint32_t submitted = 77;

	(void)state;
	up();
	assert_ok(add(0, ON_ERROR));
	assert_ok(add(1, ALWAYS));
	assert_ok(add(2, ON_ERROR));
	assert_ok(rpma_batch_submit(batch, 0, &submitted));
	assert_int_equal(submitted, 3);
	assert_int_equal(waiting(), 0);
	assert_int_equal(mock_seen()->doorbells, 1);
	assert_int_equal(mock_seen()->wr_count, 3);
	assert_posted(&mock_seen()->wr[0], 0, 0);
	assert_posted(&mock_seen()->wr[1], 1, IBV_SEND_SIGNALED);
	assert_posted(&mock_seen()->wr[2], 2, 0);
	down();
}

static void rpma_batch_submit__posts_one_of_each(void **state)
{
	const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,    IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ /* flush */,
		IBV_WR_RDMA_WRITE /* atomic */};

	(void)state;
	link_up(&l);
	conn_apply_direct_write(l.conn);
	assert_ok(rpma_batch_new(l.conn, 7, &batch));
	for (unsigned which = 0; which < 7; which++)
		assert_ok(one_of_each(batch, l.remote, l.local, 8, ALWAYS, which));
	assert_ok(rpma_batch_submit(batch, 0, NULL));
	assert_int_equal(mock_seen()->wr_count, 7);
	assert_int_equal(mock_seen()->doorbells, 1);
	for (unsigned which = 0; which < 7; which++) {
		assert_int_equal(mock_seen()->wr[which].opcode, opcodes[which]);
		assert_int_equal(mock_seen()->wr[which].wr_id, 100 + which);
		assert_int_equal(mock_seen()->wr[which].sge.length, 8);
	}
	assert_int_equal(mock_seen()->wr[WRITE_WITH_IMM].imm_data, htonl(2));
	assert_int_equal(mock_seen()->wr[SEND_WITH_IMM].imm_data, htonl(4));
	down();
}

static void rpma_batch_submit__ALWAYS_signals_the_last(void **state)
{
	(void)state;
	up();
	assert_ok(add(0, ON_ERROR));
	assert_ok(add(1, ON_ERROR));
	assert_ok(rpma_batch_submit(batch, ALWAYS, NULL));
	assert_posted(&mock_seen()->wr[0], 0, 0);
	assert_posted(&mock_seen()->wr[1], 1, IBV_SEND_SIGNALED);
	down();
}

/* However often, and wherever in its memory the first one lies. */
static void rpma_batch_submit__again_and_again_keeps_the_order(void **state)
{
	(void)state;
	up();
	for (unsigned round = 0; round < 20; round++) {
		unsigned count = 1 + round % CAPACITY;

		forget_wr();
		for (unsigned i = 0; i < count; i++)
			assert_ok(add(i, ON_ERROR));
		assert_ok(rpma_batch_submit(batch, 0, NULL));
		assert_int_equal(mock_seen()->wr_count, count);
		for (unsigned i = 0; i < count; i++)
			assert_posted(&mock_seen()->wr[i], i, 0);
	}
	down();
}

static void rpma_batch_submit__the_send_queue_is_full__E_AGAIN(void **state)
{
	(void)state;
	for (unsigned room = 0; room < CAPACITY; room++) {
		uint32_t submitted = 77;

		mock_reset();
		up();
		for (unsigned i = 0; i < CAPACITY; i++)
			assert_ok(add(i, ON_ERROR));
		mock_device()->sq_is_full = true;
		mock_device()->sq_room = room;
		assert_error(rpma_batch_submit(batch, 0, &submitted), RPMA_E_AGAIN);
		assert_int_equal(submitted, room);
		assert_int_equal(waiting(), CAPACITY - room);
		/* what was not posted still waits, and what is added comes after it */
		mock_device()->sq_is_full = false;
		if (room)
			assert_ok(add(CAPACITY, ON_ERROR));
		assert_ok(rpma_batch_submit(batch, 0, &submitted));
		assert_int_equal(mock_seen()->wr_count, CAPACITY + (room ? 1 : 0));
		for (unsigned i = 0; i < mock_seen()->wr_count; i++)
			assert_posted(&mock_seen()->wr[i], i, 0);
		down();
		assert_null(mock_verdict());
	}
}

/* A signal asked for by a submission that failed is not one that was asked for later. */
static void rpma_batch_submit__a_failed_one_signals_nothing_later(void **state)
{
	(void)state;
	up();
	assert_ok(add(0, ON_ERROR));
	mock_device()->sq_is_full = true;
	assert_error(rpma_batch_submit(batch, ALWAYS, NULL), RPMA_E_AGAIN);
	mock_device()->sq_is_full = false;
	assert_ok(add(1, ON_ERROR));
	assert_ok(rpma_batch_submit(batch, 0, NULL));
	assert_posted(&mock_seen()->wr[0], 0, 0);
	assert_posted(&mock_seen()->wr[1], 1, 0);
	down();
}

static void rpma_batch_submit__the_device_refuses__E_PROVIDER(void **state)
{
	uint32_t submitted = 77;

	(void)state;
	up();
	assert_ok(add(0, ALWAYS));
	assert_ok(add(1, ALWAYS));
	mock_fail(MOCK_ibv_post_send, 1, EINVAL);
	assert_error(rpma_batch_submit(batch, 0, &submitted), RPMA_E_PROVIDER);
	assert_int_equal(submitted, 0);
	assert_int_equal(waiting(), 2);
	assert_ok(rpma_batch_submit(batch, 0, &submitted));
	assert_int_equal(submitted, 2);
	down();
}

static void rpma_batch_get_count__batch_is_NULL__E_INVAL(void **state)
{
	uint32_t count = 77;

	(void)state;
	assert_error(rpma_batch_get_count(NULL, &count), RPMA_E_INVAL);
	assert_int_equal(count, 77);
}

static void rpma_batch_get_count__count_is_NULL__E_INVAL(void **state)
{
	(void)state;
	up();
	assert_error(rpma_batch_get_count(batch, NULL), RPMA_E_INVAL);
	down();
}

static void rpma_batch_clear__batch_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_batch_clear(NULL), RPMA_E_INVAL);
}

static void rpma_batch_clear__drops_what_waits(void **state)
{
	(void)state;
	up();
	assert_ok(add(0, ALWAYS));
	assert_ok(add(1, ALWAYS));
	assert_ok(rpma_batch_clear(batch));
	assert_int_equal(waiting(), 0);
	assert_ok(add(2, ON_ERROR));
	assert_ok(rpma_batch_submit(batch, 0, NULL));
	assert_posted(the_wr(), 2, 0);
	down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_batch_submit__batch_is_NULL__E_INVAL),
		RPMA_TEST(rpma_batch_submit__unknown_flags__E_INVAL),
		RPMA_TEST(rpma_batch_submit__of_nothing_posts_nothing),
		RPMA_TEST(rpma_batch_submit__rings_once_for_all_in_order),
		RPMA_TEST(rpma_batch_submit__posts_one_of_each),
		RPMA_TEST(rpma_batch_submit__ALWAYS_signals_the_last),
		RPMA_TEST(rpma_batch_submit__again_and_again_keeps_the_order),
		RPMA_TEST(rpma_batch_submit__the_send_queue_is_full__E_AGAIN),
		RPMA_TEST(rpma_batch_submit__a_failed_one_signals_nothing_later),
		RPMA_TEST(rpma_batch_submit__the_device_refuses__E_PROVIDER),
		RPMA_TEST(rpma_batch_get_count__batch_is_NULL__E_INVAL),
		RPMA_TEST(rpma_batch_get_count__count_is_NULL__E_INVAL),
		RPMA_TEST(rpma_batch_clear__batch_is_NULL__E_INVAL),
		RPMA_TEST(rpma_batch_clear__drops_what_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
