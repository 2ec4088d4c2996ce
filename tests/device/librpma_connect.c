// SPDX-License-Identifier: BSD-3-Clause
/* Connections on a real device: private data, refusals, time-outs, events, queues. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

/* TEST-NET-1 of RFC 5737: nobody is there */
#define NOBODY "192.0.2.1"

static char bytes[256];

static struct rpma_conn_private_data data_of(uint8_t len)
{
	struct rpma_conn_private_data data = {.ptr = bytes, .len = len};

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i + 1);

	return data;
}

/* InfiniBand does not carry the length: what arrives may be longer, with zeros at its end. */
static void expect_data(const struct rpma_conn *conn, const struct rpma_conn_private_data *sent)
{
	struct rpma_conn_private_data got;

	assert_ok(rpma_conn_get_private_data(conn, &got));
	assert_true(got.len >= sent->len);
	assert_memory_equal(got.ptr, sent->ptr, sent->len);
	for (int i = sent->len; i < got.len; i++)
		assert_int_equal(((char *)got.ptr)[i], 0);
}

static void test_private_data_of_1_byte_and_of_the_most_arrives(void **state)
{
	uint8_t lengths[][2] = {{1, 1}, {56, 196}};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rpma_conn_private_data active = data_of(lengths[i][0]);
		struct rpma_conn_private_data passive = data_of(lengths[i][1]);
		struct options options = {.client_data = &active, .server_data = &passive};
		struct pair pair;

		pair_open(&pair, &options);
		expect_data(pair.server.conn, &active);
		expect_data(pair.client.conn, &passive);
		pair_close(&pair);
	}
}

/* or RoCE */
static bool is_infiniband(void)
{
	struct ibv_context *ctx;

	assert_ok(rpma_utils_get_ibv_context(test_address(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));

	return ctx->device->transport_type == IBV_TRANSPORT_IB;
}

static void test_private_data_that_is_empty_or_too_long_is_an_error_told_by_name(void **state)
{
	struct pair pair;
	uint8_t lengths[] = {0, 57, 255};

	(void)state;
	pair_listen(&pair, NULL);
	log_capture();
	for (size_t i = 0; i < (is_infiniband() ? 3 : 1); i++) {
		struct rpma_conn_private_data data = data_of(lengths[i]);
		struct rpma_conn_req *req;
		struct rpma_conn *conn = NULL;

		assert_ok(
			rpma_conn_req_new(pair.client.peer, test_address(), pair.port, NULL, &req));
		assert_int_equal(rpma_conn_req_connect(&req, &data, &conn), RPMA_E_INVAL);
		assert_null(req);
		assert_null(conn);
		assert_non_null(strstr(log_last(), lengths[i] ? "too long" : "empty"));
	}
	pair_close(&pair);
}

static void test_a_request_that_is_deleted_is_rejected(void **state)
{
	struct rpma_conn_req *active, *passive;
	struct pair pair;
	int fd;

	(void)state;
	pair_listen(&pair, NULL);
	assert_ok(rpma_conn_req_new(pair.client.peer, test_address(), pair.port, NULL, &active));
	assert_ok(rpma_conn_req_connect(&active, NULL, &pair.client.conn));
	assert_ok(rpma_ep_get_fd(pair.ep, &fd));
	wait_readable(fd);
	assert_ok(rpma_ep_next_conn_req(pair.ep, NULL, &passive));
	assert_ok(rpma_conn_req_delete(&passive));
	assert_null(passive);
	assert_int_equal(next_event(pair.client.conn), RPMA_CONN_REJECTED);
	assert_ok(rpma_conn_delete(&pair.client.conn));
	pair_close(&pair);
}

static void test_a_port_where_nobody_listens_rejects(void **state)
{
	struct rpma_conn_req *req;
	struct pair pair;

	(void)state;
	pair_listen(&pair, NULL);
	assert_ok(rpma_conn_req_new(pair.client.peer, test_address(), "20999", NULL, &req));
	assert_ok(rpma_conn_req_connect(&req, NULL, &pair.client.conn));
	assert_int_equal(next_event(pair.client.conn), RPMA_CONN_REJECTED);
	assert_ok(rpma_conn_delete(&pair.client.conn));
	pair_close(&pair);
}

static void test_an_address_that_nobody_has_does_not_resolve(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn_cfg *cfg;
	struct rpma_peer *peer = new_peer();

	(void)state;
	log_capture();
	assert_ok(rpma_conn_cfg_new(&cfg));
	assert_ok(rpma_conn_cfg_set_timeout(cfg, 500));
	int ret = rpma_conn_req_new(peer, NOBODY, "7204", cfg, &req);

	/* Over TCP an address resolves without a word to its owner. */
	if (is_infiniband()) {
		assert_int_equal(ret, RPMA_E_PROVIDER);
		assert_null(req);
		assert_non_null(strstr(log_last(), NOBODY));
	}
	assert_ok(rpma_conn_req_delete(&req));
	assert_ok(rpma_conn_cfg_delete(&cfg));
	assert_ok(rpma_peer_delete(&peer));
}

static void test_a_port_above_65535_is_refused(void **state)
{
	struct rpma_peer *peer = new_peer();
	struct rpma_conn_req *req = NULL;
	struct rpma_ep *ep = NULL;

	(void)state;
	log_capture();
	assert_int_equal(rpma_conn_req_new(peer, test_address(), "72040", NULL, &req),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_ep_listen(peer, test_address(), "72040", &ep), RPMA_E_INVAL);
	assert_non_null(strstr(log_last(), "72040"));
	assert_ok(rpma_peer_delete(&peer));
}

static void test_an_endpoint_shuts_down_while_a_request_waits_and_it_can_still_connect(void **state)
{
	struct rpma_conn_req *active, *passive;
	struct pair pair;
	int fd;

	(void)state;
	pair_listen(&pair, NULL);
	assert_ok(rpma_conn_req_new(pair.client.peer, test_address(), pair.port, NULL, &active));
	assert_ok(rpma_conn_req_connect(&active, NULL, &pair.client.conn));
	assert_ok(rpma_ep_get_fd(pair.ep, &fd));
	wait_readable(fd);
	assert_ok(rpma_ep_next_conn_req(pair.ep, NULL, &passive));
	/* moves the request's events to a channel of its own */
	assert_ok(rpma_conn_req_connect(&passive, NULL, &pair.server.conn));
	assert_ok(rpma_ep_shutdown(&pair.ep));
	assert_null(pair.ep);
	assert_int_equal(next_event(pair.client.conn), RPMA_CONN_ESTABLISHED);
	assert_int_equal(next_event(pair.server.conn), RPMA_CONN_ESTABLISHED);
	pair_close(&pair);
}

static void set_nonblocking(int fd)
{
	assert_true(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0);
}

static void test_nothing_blocks_where_the_fd_does_not(void **state)
{
	struct rpma_conn_req *req = NULL;
	enum rpma_conn_event event;
	struct pair pair;
	int fd;

	(void)state;
	pair_open(&pair, NULL);
	assert_ok(rpma_ep_get_fd(pair.ep, &fd));
	set_nonblocking(fd);
	assert_int_equal(rpma_ep_next_conn_req(pair.ep, NULL, &req), RPMA_E_NO_EVENT);
	assert_null(req);
	assert_ok(rpma_conn_get_event_fd(pair.client.conn, &fd));
	set_nonblocking(fd);
	assert_int_equal(rpma_conn_next_event(pair.client.conn, &event), RPMA_E_NO_EVENT);
	assert_ok(rpma_cq_get_fd(pair.client.cq, &fd));
	set_nonblocking(fd);
	assert_int_equal(rpma_cq_wait(pair.client.cq), RPMA_E_NO_COMPLETION);
	pair_close(&pair);
}

static void test_the_limits_of_a_connection_lie_within_those_of_its_device(void **state)
{
	struct rpma_limits device, conn;
	struct rpma_conn_cfg *cfg;
	struct pair pair;

	(void)state;
	assert_ok(rpma_conn_cfg_new(&cfg));
	assert_ok(rpma_conn_cfg_set_sq_size(cfg, 100));
	assert_ok(rpma_conn_cfg_set_cq_size(cfg, 100));

	struct options options = {.client_cfg = cfg};

	pair_open(&pair, &options);
	assert_ok(rpma_peer_get_limits(pair.client.peer, &device));
	assert_ok(rpma_conn_get_limits(pair.client.conn, &conn));
	assert_in_range(conn.sq_size, 100, device.sq_size);
	assert_in_range(conn.rq_size, 10, device.rq_size);
	assert_in_range(conn.cq_size, 100, device.cq_size);
	assert_in_range(conn.msg_size, MEMORY_SIZE, UINT64_MAX);
	assert_ok(rpma_conn_cfg_delete(&cfg));
	pair_close(&pair);
}

static void test_queues_larger_than_the_device_allows_are_refused_by_name(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_limits device;
	struct rpma_conn_cfg *cfg;
	struct pair pair;

	(void)state;
	log_capture();
	pair_listen(&pair, NULL);
	assert_ok(rpma_peer_get_limits(pair.client.peer, &device));
	assert_ok(rpma_conn_cfg_new(&cfg));
	assert_ok(rpma_conn_cfg_set_sq_size(cfg, device.sq_size + 1));
	assert_int_equal(rpma_conn_req_new(pair.client.peer, test_address(), pair.port, cfg, &req),
			 RPMA_E_PROVIDER);
	assert_null(req);
	assert_non_null(strstr(log_last(), "max_send_wr"));
	assert_ok(rpma_conn_cfg_delete(&cfg));
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_private_data_of_1_byte_and_of_the_most_arrives),
		cmocka_unit_test(
			test_private_data_that_is_empty_or_too_long_is_an_error_told_by_name),
		cmocka_unit_test(test_a_request_that_is_deleted_is_rejected),
		cmocka_unit_test(test_a_port_where_nobody_listens_rejects),
		cmocka_unit_test(test_an_address_that_nobody_has_does_not_resolve),
		cmocka_unit_test(test_a_port_above_65535_is_refused),
		cmocka_unit_test(
			test_an_endpoint_shuts_down_while_a_request_waits_and_it_can_still_connect),
		cmocka_unit_test(test_nothing_blocks_where_the_fd_does_not),
		cmocka_unit_test(test_the_limits_of_a_connection_lie_within_those_of_its_device),
		cmocka_unit_test(test_queues_larger_than_the_device_allows_are_refused_by_name),
	};

	return cmocka_run_group_tests_name("librpma_connect", tests, NULL, NULL);
}
