// SPDX-License-Identifier: BSD-3-Clause
/* Messages, receive CQ, shared completion channel and shared receive queue on a real device. */
#include <arpa/inet.h>
#include <string.h>

#include "pair.h"

static void test_messages_arrive_with_and_without_immediate_data(void **state)
{
	struct ibv_wc wc;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	struct end *c = &pair.client, *s = &pair.server;

	strcpy(c->memory, "a message");
	assert_ok(rpma_recv(s->conn, s->mr, 256, 64, "recv"));
	assert_ok(rpma_send(c->conn, c->mr, 0, 10, RPMA_F_COMPLETION_ALWAYS, "send"));
	expect_wc(c->cq, "send");
	next_wc(s->cq, &wc);
	assert_int_equal(wc.wr_id, (uintptr_t) "recv");
	assert_int_equal(wc.byte_len, 10);
	assert_false(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_string_equal(s->memory + 256, "a message");

	assert_ok(rpma_recv(s->conn, NULL, 0, 0, "recv"));
	assert_ok(rpma_send_with_imm(c->conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, 0x01020304,
				     "send"));
	expect_wc(c->cq, "send");
	next_wc(s->cq, &wc);
	assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), 0x01020304);

	assert_ok(rpma_recv(s->conn, NULL, 0, 0, "recv"));
	assert_ok(rpma_write_with_imm(c->conn, c->remote, 512, c->mr, 0, 10,
				      RPMA_F_COMPLETION_ALWAYS, 42, "write"));
	expect_wc(c->cq, "write");
	next_wc(s->cq, &wc);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), 42);
	assert_string_equal(s->memory + 512, "a message");
	pair_close(&pair);
}

static void test_a_receive_posted_to_the_request_gets_the_first_message(void **state)
{
	struct rpma_conn_req *active, *passive;
	struct pair pair;
	int fd;

	(void)state;
	pair_listen(&pair, NULL);
	struct end *c = &pair.client, *s = &pair.server;

	assert_ok(rpma_conn_req_new(c->peer, test_address(), pair.port, NULL, &active));
	assert_ok(rpma_conn_req_recv(active, c->mr, 0, 64, "early"));
	assert_ok(rpma_conn_req_connect(&active, NULL, &c->conn));
	assert_ok(rpma_ep_get_fd(pair.ep, &fd));
	wait_readable(fd);
	assert_ok(rpma_ep_next_conn_req(pair.ep, NULL, &passive));
	assert_ok(rpma_conn_req_recv(passive, s->mr, 0, 64, "early too"));
	assert_ok(rpma_conn_req_connect(&passive, NULL, &s->conn));
	assert_int_equal(next_event(c->conn), RPMA_CONN_ESTABLISHED);
	assert_int_equal(next_event(s->conn), RPMA_CONN_ESTABLISHED);
	assert_ok(rpma_conn_get_cq(c->conn, &c->cq));
	assert_ok(rpma_conn_get_cq(s->conn, &s->cq));

	strcpy(c->memory + 128, "to the server");
	assert_ok(rpma_send(c->conn, c->mr, 128, 14, RPMA_F_COMPLETION_ON_ERROR, NULL));
	expect_wc(s->cq, "early too");
	assert_string_equal(s->memory, "to the server");
	strcpy(s->memory + 128, "to the client");
	assert_ok(rpma_send(s->conn, s->mr, 128, 14, RPMA_F_COMPLETION_ON_ERROR, NULL));
	expect_wc(c->cq, "early");
	assert_string_equal(c->memory, "to the client");
	pair_close(&pair);
}

static void test_waiting_for_a_completion_by_its_event(void **state)
{
	struct pair pair;
	int fd;

	(void)state;
	pair_open(&pair, NULL);
	struct end *c = &pair.client;

	assert_ok(rpma_cq_get_fd(c->cq, &fd));
	for (int i = 0; i < 3; i++) {
		assert_ok(rpma_read(c->conn, c->mr, 0, c->remote, 0, 64, RPMA_F_COMPLETION_ALWAYS,
				    "read"));
		wait_readable(fd);
		assert_ok(rpma_cq_wait(c->cq));
		expect_wc(c->cq, "read");
	}
	pair_close(&pair);
}

static void test_receives_complete_on_the_receive_cq(void **state)
{
	struct rpma_conn_cfg *cfg;
	struct rpma_cq *rcq;
	struct pair pair;
	int fd;

	(void)state;
	assert_ok(rpma_conn_cfg_new(&cfg));
	assert_ok(rpma_conn_cfg_set_rcq_size(cfg, 10));

	struct options options = {.server_cfg = cfg};

	pair_open(&pair, &options);
	struct end *c = &pair.client, *s = &pair.server;

	assert_ok(rpma_conn_get_rcq(c->conn, &rcq));
	assert_null(rcq);
	assert_ok(rpma_conn_get_rcq(s->conn, &rcq));
	assert_non_null(rcq);
	assert_int_equal(rpma_conn_get_compl_fd(s->conn, &fd), RPMA_E_NOT_SHARED_CHNL);
	assert_int_equal(rpma_conn_wait(s->conn, 0, &rcq, NULL), RPMA_E_NOT_SHARED_CHNL);
	assert_ok(rpma_recv(s->conn, s->mr, 0, 64, "recv"));
	assert_ok(rpma_send(c->conn, c->mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, "send"));
	expect_wc(c->cq, "send");
	expect_wc(rcq, "recv");
	expect_no_wc(s->cq);
	assert_ok(rpma_conn_cfg_delete(&cfg));
	pair_close(&pair);
}

static void test_a_shared_channel_tells_which_cq_has_something(void **state)
{
	struct rpma_conn_cfg *cfg;
	struct rpma_cq *rcq, *ready;
	struct pair pair;
	bool is_rcq;
	int fd;

	(void)state;
	assert_ok(rpma_conn_cfg_new(&cfg));
	assert_ok(rpma_conn_cfg_set_rcq_size(cfg, 10));
	assert_ok(rpma_conn_cfg_set_compl_channel(cfg, true));

	struct options options = {.server_cfg = cfg};

	pair_open(&pair, &options);
	struct end *c = &pair.client, *s = &pair.server;

	assert_ok(rpma_conn_get_rcq(s->conn, &rcq));
	assert_ok(rpma_conn_get_compl_fd(s->conn, &fd));
	assert_int_equal(rpma_cq_wait(s->cq), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_cq_wait(rcq), RPMA_E_SHARED_CHANNEL);

	assert_ok(rpma_recv(s->conn, s->mr, 0, 64, "recv"));
	assert_ok(rpma_send(c->conn, c->mr, 0, 8, RPMA_F_COMPLETION_ON_ERROR, NULL));
	wait_readable(fd);
	assert_ok(rpma_conn_wait(s->conn, RPMA_W_WAIT_FOR_COMPLETION, &ready, &is_rcq));
	assert_ptr_equal(ready, rcq);
	assert_true(is_rcq);
	expect_wc(ready, "recv");

	assert_ok(rpma_read(s->conn, s->mr, 0, s->remote, 0, 8, RPMA_F_COMPLETION_ALWAYS, "read"));
	wait_readable(fd);
	assert_ok(rpma_conn_wait(s->conn, 0, &ready, NULL));
	assert_ptr_equal(ready, s->cq);
	expect_wc(ready, "read");
	assert_ok(rpma_conn_cfg_delete(&cfg));
	pair_close(&pair);
}

/* the server's peer outlives its SRQ, so the two are taken apart by hand */
static void receive_through_srq(uint32_t rcq_size)
{
	struct rpma_srq_cfg *srq_cfg;
	struct rpma_conn_cfg *cfg;
	struct rpma_srq *srq;
	struct rpma_cq *rcq;
	struct pair pair;

	pair_listen(&pair, NULL);
	struct end *c = &pair.client, *s = &pair.server;

	assert_ok(rpma_srq_cfg_new(&srq_cfg));
	assert_ok(rpma_srq_cfg_set_rcq_size(srq_cfg, rcq_size));
	assert_ok(rpma_srq_new(s->peer, srq_cfg, &srq));
	assert_ok(rpma_srq_cfg_delete(&srq_cfg));
	assert_ok(rpma_srq_get_rcq(srq, &rcq));
	assert_true((rcq != NULL) == (rcq_size != 0));
	assert_ok(rpma_conn_cfg_new(&cfg));
	assert_ok(rpma_conn_cfg_set_srq(cfg, srq));

	struct options options = {.server_cfg = cfg};

	pair_connect(&pair, &options);
	assert_ok(rpma_srq_recv(srq, s->mr, 0, 64, "srq"));
	strcpy(c->memory, "through the shared queue");
	assert_ok(rpma_send(c->conn, c->mr, 0, 25, RPMA_F_COMPLETION_ON_ERROR, NULL));
	expect_wc(rcq ? rcq : s->cq, "srq");
	assert_string_equal(s->memory, "through the shared queue");

	pair_disconnect(&pair);
	assert_ok(rpma_srq_delete(&srq));
	assert_ok(rpma_conn_cfg_delete(&cfg));
	pair_close(&pair);
}

static void test_a_shared_receive_queue_with_a_receive_cq_of_its_own(void **state)
{
	(void)state;
	receive_through_srq(16);
}

static void test_a_shared_receive_queue_without_one(void **state)
{
	(void)state;
	receive_through_srq(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_arrive_with_and_without_immediate_data),
		cmocka_unit_test(test_a_receive_posted_to_the_request_gets_the_first_message),
		cmocka_unit_test(test_waiting_for_a_completion_by_its_event),
		cmocka_unit_test(test_receives_complete_on_the_receive_cq),
		cmocka_unit_test(test_a_shared_channel_tells_which_cq_has_something),
		cmocka_unit_test(test_a_shared_receive_queue_with_a_receive_cq_of_its_own),
		cmocka_unit_test(test_a_shared_receive_queue_without_one),
	};

	return cmocka_run_group_tests_name("librpma_messages", tests, NULL, NULL);
}
