// SPDX-License-Identifier: BSD-3-Clause
/* The software RNIC's queues: what a queue pair has unasked, and a shared receive queue run dry. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "softrnic_pair.h"

#define MESSAGES 30000
#define AHEAD    8
#define ENOUGH_S 6 /* valgrind does not get far in it, but far enough */
#define SECONDS  20

static void a_queue_pair_says_what_it_has_and_has_room_for_inline_data(void **state)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct pair pair;
	struct ibv_qp *qp;

	(void)state;
	pair_open(&pair, NULL);
	attr.send_cq = attr.recv_cq = pair.client.cq;
	qp = ibv_create_qp(pair.client.id->pd, &attr);
	assert_non_null(qp);
	assert_in_range(attr.cap.max_inline_data, 16, SRN_MAX_INLINE);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	pair_close(&pair);
}

/* Unlike polling this leaves the sockets to the engine's thread. */
static void wait_without_polling(struct ibv_cq *ibcq)
{
	struct srn_cq *cq = srn_cq(ibcq);
	uint64_t end = srn_now_ns() + SECONDS * 1000000000ull;

	while (!__atomic_load_n(&cq->count, __ATOMIC_ACQUIRE)) {
		assert_true(srn_now_ns() < end);
		sched_yield();
	}
}

static void receives_posted_while_a_message_finds_none_are_not_missed(void **state)
{
	struct pair_setup setup = {.use_srq = true};
	struct ibv_recv_wr recv = {.num_sge = 1}, *bad;
	struct ibv_send_wr wr;
	struct ibv_sge sge, to;
	struct ibv_wc wc;
	struct pair pair;
	unsigned int i;
	uint64_t enough;

	(void)state;
	pair_open(&pair, &setup);
	to = sge_of(&pair.server, 0, 64);
	recv.sg_list = &to;
	sge = sge_of(&pair.client, 0, 64);
	wr = request(IBV_WR_SEND, &pair, &sge, 0);
	wr.send_flags = 0;
	enough = srn_now_ns() + ENOUGH_S * 1000000000ull;
	for (i = 0; i < MESSAGES + AHEAD && srn_now_ns() < enough; i++) {
		assert_int_equal(post(&pair.client, &wr), 0);
		if (i < AHEAD)
			continue;
		assert_int_equal(ibv_post_srq_recv(pair.srq, &recv, &bad), 0);
		wait_without_polling(pair.server.cq);
		assert_int_equal(srn_cq_pop(srn_cq(pair.server.cq), 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_queue_pair_says_what_it_has_and_has_room_for_inline_data,
				       with_time_limit),
		cmocka_unit_test_setup(receives_posted_while_a_message_finds_none_are_not_missed,
				       with_time_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
