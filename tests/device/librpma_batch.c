// SPDX-License-Identifier: BSD-3-Clause
/* Batches on a real device. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define SQ_SIZE 32

static void open_pair_with_queues(struct pair *pair, struct rpma_conn_cfg **cfg)
{
	struct options options = {0};

	assert_ok(rpma_conn_cfg_new(cfg));
	assert_ok(rpma_conn_cfg_set_sq_size(*cfg, SQ_SIZE));
	assert_ok(rpma_conn_cfg_set_cq_size(*cfg, 8 * SQ_SIZE));
	assert_ok(rpma_conn_cfg_set_rq_size(*cfg, SQ_SIZE));
	options.client_cfg = *cfg;
	options.server_cfg = *cfg;
	pair_open(pair, &options);
}

static void
test_a_batch_completes_in_order_and_the_last_can_be_signalled_at_submission(void **state)
{
	struct rpma_conn_cfg *cfg;
	struct rpma_batch *batch;
	struct pair pair;
	uint32_t submitted, count;

	(void)state;
	open_pair_with_queues(&pair, &cfg);
	struct end *c = &pair.client;

	assert_ok(rpma_batch_new(c->conn, SQ_SIZE, &batch));
	for (int round = 0; round < 5; round++) {
		for (size_t i = 0; i < 20; i++) {
			c->memory[i] = (char)(round + i);
			assert_ok(rpma_batch_write(batch, c->remote, 100 + i, c->mr, i, 1,
						   RPMA_F_COMPLETION_ON_ERROR, "write"));
		}
		assert_ok(rpma_batch_read(batch, c->mr, 200, c->remote, 100, 20,
					  RPMA_F_COMPLETION_ON_ERROR, "read"));
		assert_ok(rpma_batch_get_count(batch, &count));
		assert_int_equal(count, 21);
		expect_no_wc(c->cq);
		assert_ok(rpma_batch_submit(batch, RPMA_F_COMPLETION_ALWAYS, &submitted));
		assert_int_equal(submitted, 21);
		expect_wc(c->cq, "read");
		expect_no_wc(c->cq);
		assert_memory_equal(pair.server.memory + 100, c->memory, 20);
		assert_memory_equal(c->memory + 200, c->memory, 20);
	}
	assert_ok(rpma_batch_delete(&batch));
	assert_null(batch);
	assert_ok(rpma_conn_cfg_delete(&cfg));
	pair_close(&pair);
}

static void append_one_of_each(struct rpma_batch *batch, struct end *c)
{
	int flags = RPMA_F_COMPLETION_ALWAYS;
	char value[8] = "atomic!";

	memset(c->memory, 'w', 64);
	memset(c->memory + 512, 's', 64);
	assert_ok(rpma_batch_write(batch, c->remote, 0, c->mr, 0, 64, flags, "write"));
	assert_ok(rpma_batch_flush(batch, c->remote, 0, 64, RPMA_FLUSH_TYPE_VISIBILITY, flags,
				   "flush"));
	assert_ok(rpma_batch_atomic_write(batch, c->remote, 128, value, flags, "atomic"));
	memset(value, 0, sizeof(value));
	assert_ok(rpma_batch_read(batch, c->mr, 256, c->remote, 0, 64, flags, "read"));
	assert_ok(rpma_batch_send(batch, c->mr, 512, 64, flags, "send"));
	assert_ok(rpma_batch_send_with_imm(batch, NULL, 0, 0, flags, 7, "send imm"));
	assert_ok(rpma_batch_write_with_imm(batch, c->remote, 320, c->mr, 0, 8, flags, 9,
					    "write imm"));
}

static void one_of_each_in_one_batch(struct pair *pair)
{
	static const char *const names[] = {"write", "flush",    "atomic",   "read",
					    "send",  "send imm", "write imm"};
	struct end *c = &pair->client, *s = &pair->server;
	struct rpma_batch *batch;
	struct ibv_wc wc;

	memset(s->memory, 0, s->size);
	assert_ok(rpma_recv(s->conn, s->mr, 1024, 64, "recv"));
	assert_ok(rpma_recv(s->conn, NULL, 0, 0, "recv imm"));
	assert_ok(rpma_recv(s->conn, NULL, 0, 0, "written imm"));
	assert_ok(rpma_batch_new(c->conn, SQ_SIZE, &batch));
	append_one_of_each(batch, c);
	assert_ok(rpma_batch_submit(batch, 0, NULL));

	for (int i = 0; i < 7; i++) {
		next_wc(c->cq, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_string_equal((const char *)(uintptr_t)wc.wr_id, names[i]);
	}
	expect_wc(s->cq, "recv");
	next_wc(s->cq, &wc);
	assert_int_equal(ntohl(wc.imm_data), 7);
	next_wc(s->cq, &wc);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), 9);
	assert_memory_equal(s->memory, c->memory, 64);
	assert_memory_equal(s->memory + 128, "atomic!", 8);
	assert_memory_equal(c->memory + 256, c->memory, 64);
	assert_memory_equal(s->memory + 1024, c->memory + 512, 64);
	assert_memory_equal(s->memory + 320, c->memory, 8);
	assert_ok(rpma_batch_delete(&batch));
}

static void test_every_operation_works_in_a_batch_in_every_flush_mode(void **state)
{
	struct rpma_conn_cfg *cfg;
	struct pair pair;

	(void)state;
	open_pair_with_queues(&pair, &cfg);
	one_of_each_in_one_batch(&pair);
	assert_ok(rpma_conn_set_flush_mode(pair.client.conn, RPMA_FLUSH_MODE_READ));
	one_of_each_in_one_batch(&pair);
	assert_ok(rpma_conn_cfg_delete(&cfg));
	pair_close(&pair);
}

/* how many more the send queue takes is the device's to say; nothing may be lost or come twice */
static void test_what_a_full_send_queue_does_not_take_is_submitted_later_and_in_order(void **state)
{
	struct rpma_conn_cfg *cfg;
	struct rpma_batch *batches[4];
	struct rpma_limits limits;
	struct pair pair;
	uintptr_t id = 0, completed = 0;

	(void)state;
	log_capture();
	open_pair_with_queues(&pair, &cfg);
	struct end *c = &pair.client;

	assert_ok(rpma_conn_get_limits(c->conn, &limits));
	for (int i = 0; i < 4; i++) {
		assert_ok(rpma_batch_new(c->conn, limits.sq_size, &batches[i]));
		assert_int_equal(
			rpma_batch_new(c->conn, limits.sq_size + 1, &(struct rpma_batch *){0}),
			RPMA_E_INVAL);
		for (uint32_t j = 0; j < limits.sq_size; j++)
			assert_ok(rpma_batch_read(batches[i], c->mr, 0, c->remote, 0, 4096,
						  RPMA_F_COMPLETION_ALWAYS, (void *)++id));
		assert_int_equal(rpma_batch_read(batches[i], c->mr, 0, c->remote, 0, 8,
						 RPMA_F_COMPLETION_ALWAYS, NULL),
				 RPMA_E_AGAIN);
	}
	for (int i = 0; i < 4;) {
		int ret = rpma_batch_submit(batches[i], 0, NULL);
		struct ibv_wc wc;

		if (ret == 0) {
			i++;
			continue;
		}
		assert_int_equal(ret, RPMA_E_AGAIN);
		next_wc(c->cq, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, ++completed);
	}
	while (completed < id)
		expect_wc(c->cq, (void *)++completed);
	expect_no_wc(c->cq);
	for (int i = 0; i < 4; i++)
		assert_ok(rpma_batch_delete(&batches[i]));
	assert_ok(rpma_conn_cfg_delete(&cfg));
	pair_close(&pair);
}

static void test_a_cleared_batch_posts_nothing(void **state)
{
	struct rpma_conn_cfg *cfg;
	struct rpma_batch *batch;
	struct pair pair;
	uint32_t submitted;

	(void)state;
	open_pair_with_queues(&pair, &cfg);
	struct end *c = &pair.client;

	assert_ok(rpma_batch_new(c->conn, SQ_SIZE, &batch));
	memset(c->memory, 'x', 8);
	assert_ok(rpma_batch_write(batch, c->remote, 0, c->mr, 0, 8, RPMA_F_COMPLETION_ALWAYS,
				   "cleared"));
	assert_ok(rpma_batch_clear(batch));
	assert_ok(rpma_batch_submit(batch, 0, &submitted));
	assert_int_equal(submitted, 0);
	assert_ok(rpma_batch_write(batch, c->remote, 8, c->mr, 0, 8, RPMA_F_COMPLETION_ALWAYS,
				   "kept"));
	assert_ok(rpma_batch_submit(batch, 0, &submitted));
	expect_wc(c->cq, "kept");
	assert_ok(rpma_read(c->conn, c->mr, 64, c->remote, 0, 8, RPMA_F_COMPLETION_ALWAYS, "read"));
	expect_wc(c->cq, "read");
	assert_int_equal(pair.server.memory[0], 0);
	assert_int_equal(pair.server.memory[8], 'x');
	assert_ok(rpma_batch_delete(&batch));
	assert_ok(rpma_conn_cfg_delete(&cfg));
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_batch_completes_in_order_and_the_last_can_be_signalled_at_submission),
		cmocka_unit_test(test_every_operation_works_in_a_batch_in_every_flush_mode),
		cmocka_unit_test(
			test_what_a_full_send_queue_does_not_take_is_submitted_later_and_in_order),
		cmocka_unit_test(test_a_cleared_batch_posts_nothing),
	};

	return cmocka_run_group_tests_name("librpma_batch", tests, NULL, NULL);
}
