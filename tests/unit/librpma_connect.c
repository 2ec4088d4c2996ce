/* SPDX-License-Identifier: BSD-3-Clause */
/* From a request to a connection: rpma_conn_req_connect(), and receives posted before it */

#include <errno.h>
#include <string.h>

#include "walk.h"

enum { ACTIVE_MAX = 56, PASSIVE_MAX = 196 };

static struct rpma_peer *peer;
static struct rpma_ep *ep;
static struct rpma_conn_req *req;
static struct rpma_conn *conn;
static struct rpma_conn_private_data pdata, *given;
static uint8_t data[UINT8_MAX];

static int connect_(void)
{
	conn = UNTOUCHED;
	return rpma_conn_req_connect(&req, given, &conn);
}

static void with_outgoing(void)
{
	given = NULL;
	peer = peer_new();
	req = outgoing_new(peer, NULL);
}

static void with_incoming(void)
{
	given = NULL;
	peer = peer_new();
	ep = ep_new(peer);
	req = incoming_new(ep, NULL, "hello", 5);
}

static void without_peer(void)
{
	peer_delete(peer);
}

static void without_ep(void)
{
	assert_ok(rpma_ep_shutdown(&ep));
	without_peer();
}

static void drop_conn(void)
{
	assert_null(req);
	conn_delete(conn);
}

/* "*req_ptr is NULL on success and on failure, *conn_ptr is not set on failure" */
static void req_gone_conn_untouched(int answer)
{
	(void)answer;
	assert_null(req);
	assert_untouched(conn);
}

static void give(void *ptr, uint8_t len)
{
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = i ^ 0x5a;
	pdata.ptr = ptr;
	pdata.len = len;
	given = &pdata;
}

static void rpma_conn_req_connect__req_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	conn = UNTOUCHED;
	assert_error(rpma_conn_req_connect(NULL, NULL, &conn), RPMA_E_INVAL);
	assert_untouched(conn);
}

static void rpma_conn_req_connect__no_request__E_INVAL(void **state)
{
	(void)state;
	req = NULL;
	given = NULL;
	assert_error(connect_(), RPMA_E_INVAL);
	assert_untouched(conn);
}

static void rpma_conn_req_connect__conn_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_outgoing();
	assert_error(rpma_conn_req_connect(&req, NULL, NULL), RPMA_E_INVAL);
	assert_null(req);
	without_peer();
}

static void rpma_conn_req_connect__pdata_of_0_bytes__E_INVAL(void **state)
{
	(void)state;
	with_outgoing();
	give(data, 0);
	assert_error(connect_(), RPMA_E_INVAL);
	req_gone_conn_untouched(0);
	without_peer();
}

static void rpma_conn_req_connect__pdata_without_a_pointer__E_INVAL(void **state)
{
	(void)state;
	with_outgoing();
	give(NULL, 1);
	assert_error(connect_(), RPMA_E_INVAL);
	req_gone_conn_untouched(0);
	without_peer();
}

static void rpma_conn_req_connect__pdata_too_long_for_the_active_side__E_INVAL(void **state)
{
	(void)state;
	for (unsigned len = ACTIVE_MAX + 1; len <= UINT8_MAX; len++) {
		mock_reset();
		with_outgoing();
		give(data, len);
		assert_error(connect_(), RPMA_E_INVAL);
		req_gone_conn_untouched(0);
		assert_int_equal(mock_calls(MOCK_rdma_connect), 0);
		without_peer();
		assert_null(mock_verdict());
	}
}

static void rpma_conn_req_connect__pdata_too_long_for_the_passive_side__E_INVAL(void **state)
{
	(void)state;
	for (unsigned len = PASSIVE_MAX + 1; len <= UINT8_MAX; len++) {
		mock_reset();
		with_incoming();
		give(data, len);
		assert_error(connect_(), RPMA_E_INVAL);
		req_gone_conn_untouched(0);
		assert_int_equal(mock_calls(MOCK_rdma_accept), 0);
		without_ep();
		assert_null(mock_verdict());
	}
}

static void rpma_conn_req_connect__no_memory__E_NOMEM(void **state)
{
	(void)state;
	with_outgoing();
	mock_fail(MOCK_malloc, 1, ENOMEM);
	if (connect_() == 0) {
		mock_fail_none();
		drop_conn();
		req = outgoing_new(peer, NULL);
		mock_fail(MOCK_calloc, 1, ENOMEM);
		assert_error(connect_(), RPMA_E_NOMEM);
	}
	req_gone_conn_untouched(0);
	without_peer();
}

static void rpma_conn_req_connect__connecting_fails__E_PROVIDER(void **state)
{
	(void)state;
	with_outgoing();
	mock_fail(MOCK_rdma_connect, 1, ECONNREFUSED);
	assert_error(connect_(), RPMA_E_PROVIDER);
	req_gone_conn_untouched(0);
	without_peer();
}

static void rpma_conn_req_connect__accepting_fails__E_PROVIDER(void **state)
{
	(void)state;
	with_incoming();
	mock_fail(MOCK_rdma_accept, 1, EIO);
	assert_error(connect_(), RPMA_E_PROVIDER);
	req_gone_conn_untouched(0);
	without_ep();
}

/* A QP that takes no native operations is one that works without them. */
static const struct walk_expect expect[] = {{MOCK_ibv_qp_to_qp_ex, 0}, WALK_END};

static void rpma_conn_req_connect__active_leaks_nothing_whichever_call_fails(void **state)
{
	const struct walk w = {.prepare = with_outgoing,
			       .act = connect_,
			       .check = req_gone_conn_untouched,
			       .undo = drop_conn,
			       .finish = without_peer,
			       .expect = expect,
			       .consumes = true,
			       .at_least = 3};

	(void)state;
	walk(&w);
}

static void rpma_conn_req_connect__passive_leaks_nothing_whichever_call_fails(void **state)
{
	const struct walk w = {.prepare = with_incoming,
			       .act = connect_,
			       .check = req_gone_conn_untouched,
			       .undo = drop_conn,
			       .finish = without_ep,
			       .expect = expect,
			       .consumes = true,
			       .at_least = 3};

	(void)state;
	walk(&w);
}

static void rpma_conn_req_connect__active_sends_1_to_56_bytes(void **state)
{
	(void)state;
	for (unsigned len = 1; len <= ACTIVE_MAX; len++) {
		mock_reset();
		with_outgoing();
		give(data, len);
		assert_ok(connect_());
		assert_true(mock_seen()->conn.given);
		assert_int_equal(mock_seen()->conn.param.private_data_len, len);
		assert_memory_equal(mock_seen()->conn.private_data, data, len);
		drop_conn();
		without_peer();
		assert_null(mock_verdict());
	}
}

static void rpma_conn_req_connect__passive_sends_1_to_196_bytes(void **state)
{
	(void)state;
	for (unsigned len = 1; len <= PASSIVE_MAX; len++) {
		mock_reset();
		with_incoming();
		give(data, len);
		assert_ok(connect_());
		assert_int_equal(mock_seen()->conn.param.private_data_len, len);
		assert_memory_equal(mock_seen()->conn.private_data, data, len);
		drop_conn();
		without_ep();
		assert_null(mock_verdict());
	}
}

/* iWARP has room for more, see RFC 5044. */
static void rpma_conn_req_connect__iwarp_sends_up_to_255_bytes(void **state)
{
	(void)state;
	mock_device()->transport = IBV_TRANSPORT_IWARP;
	with_outgoing();
	give(data, UINT8_MAX);
	assert_ok(connect_());
	assert_int_equal(mock_seen()->conn.param.private_data_len, UINT8_MAX);
	assert_memory_equal(mock_seen()->conn.private_data, data, UINT8_MAX);
	drop_conn();
	without_peer();
}

static void rpma_conn_req_connect__without_pdata_sends_none(void **state)
{
	(void)state;
	with_outgoing();
	assert_ok(connect_());
	assert_int_equal(mock_seen()->conn.param.private_data_len, 0);
	drop_conn();
	without_peer();
}

/* Reads may be outstanding in both directions, and a busy receiver is waited for. */
static void rpma_conn_req_connect__asks_for_reads_and_retries(void **state)
{
	const struct rdma_conn_param *param = &mock_seen()->conn.param;

	(void)state;
	with_outgoing();
	assert_ok(connect_());
	assert_true(mock_seen()->conn.given);
	assert_true(param->responder_resources > 0);
	assert_true(param->initiator_depth > 0);
	assert_true(param->retry_count > 0 && param->retry_count <= 7);
	assert_int_equal(param->rnr_retry_count, 7);
	drop_conn();
	without_peer();
}

/* Nobody waits in rdma_connect(): the id has moved to an event channel of the connection's own. */
static void rpma_conn_req_connect__every_connection_has_its_own_events(void **state)
{
	struct rpma_conn *other;
	int fd, other_fd;

	(void)state;
	with_outgoing();
	assert_ok(connect_());
	other = conn_new(peer, NULL);
	assert_ok(rpma_conn_get_event_fd(conn, &fd));
	assert_ok(rpma_conn_get_event_fd(other, &other_fd));
	assert_int_not_equal(fd, other_fd);
	conn_delete(other);
	drop_conn();
	without_peer();
}

/* What came with the request belongs to the connection from then on. */
static void rpma_conn_req_connect__passive_keeps_the_private_data(void **state)
{
	struct rpma_conn_private_data got = {UNTOUCHED, 77};

	(void)state;
	with_incoming();
	assert_ok(connect_());
	assert_int_equal(mock_alive_of(MOCK_CM_EVENT), 0);
	assert_ok(rpma_conn_get_private_data(conn, &got));
	assert_int_equal(got.len, 5);
	assert_memory_equal(got.ptr, "hello", 5);
	drop_conn();
	without_ep();
}

static int recv_(struct rpma_mr_local *mr, size_t offset, size_t len)
{
	return rpma_conn_req_recv(req, mr, offset, len, CONTEXT);
}

static void drop_req(void)
{
	assert_ok(rpma_conn_req_delete(&req));
	without_peer();
}

static void rpma_conn_req_recv__req_is_NULL__E_INVAL(void **state)
{
	(void)state;
	req = NULL;
	assert_error(recv_(NULL, 0, 0), RPMA_E_INVAL);
}

static void rpma_conn_req_recv__no_region_but_an_offset__E_INVAL(void **state)
{
	(void)state;
	with_outgoing();
	assert_error(recv_(NULL, 1, 0), RPMA_E_INVAL);
	drop_req();
}

static void rpma_conn_req_recv__no_region_but_a_length__E_INVAL(void **state)
{
	(void)state;
	with_outgoing();
	assert_error(recv_(NULL, 0, 1), RPMA_E_INVAL);
	drop_req();
}

static void rpma_conn_req_recv__beyond_the_region__E_INVAL(void **state)
{
	struct rpma_mr_local *mr;

	(void)state;
	with_outgoing();
	mr = mr_new(peer, RPMA_MR_USAGE_RECV);
	assert_error(recv_(mr, 0, REGION + 1), RPMA_E_INVAL);
	assert_error(recv_(mr, REGION, 1), RPMA_E_INVAL);
	assert_error(recv_(mr, SIZE_MAX, 2), RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_post_recv), 0);
	mr_delete(mr);
	drop_req();
}

static void rpma_conn_req_recv__posting_fails__E_PROVIDER(void **state)
{
	struct rpma_mr_local *mr;

	(void)state;
	with_outgoing();
	mr = mr_new(peer, RPMA_MR_USAGE_RECV);
	mock_fail(MOCK_ibv_post_recv, 1, ENOMEM);
	assert_error(recv_(mr, 0, 8), RPMA_E_PROVIDER);
	mr_delete(mr);
	drop_req();
}

static void rpma_conn_req_recv__posts_the_buffer(void **state)
{
	struct rpma_mr_local *mr;

	(void)state;
	with_outgoing();
	mr = mr_new(peer, RPMA_MR_USAGE_RECV);
	assert_ok(recv_(mr, 8, REGION - 8));
	assert_int_equal(the_wr()->wr_id, (uintptr_t)CONTEXT);
	assert_int_equal(the_wr()->num_sge, 1);
	assert_int_equal(the_wr()->sge.addr, (uintptr_t)region + 8);
	assert_int_equal(the_wr()->sge.length, REGION - 8);
	assert_int_equal(the_wr()->sge.lkey, MOCK_LKEY);
	mr_delete(mr);
	drop_req();
}

static void rpma_conn_req_recv__takes_an_empty_message(void **state)
{
	(void)state;
	with_outgoing();
	assert_ok(recv_(NULL, 0, 0));
	assert_int_equal(the_wr()->num_sge, 0);
	drop_req();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_conn_req_connect__req_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_req_connect__no_request__E_INVAL),
		RPMA_TEST(rpma_conn_req_connect__conn_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_req_connect__pdata_of_0_bytes__E_INVAL),
		RPMA_TEST(rpma_conn_req_connect__pdata_without_a_pointer__E_INVAL),
		RPMA_TEST(rpma_conn_req_connect__pdata_too_long_for_the_active_side__E_INVAL),
		RPMA_TEST(rpma_conn_req_connect__pdata_too_long_for_the_passive_side__E_INVAL),
		RPMA_TEST(rpma_conn_req_connect__no_memory__E_NOMEM),
		RPMA_TEST(rpma_conn_req_connect__connecting_fails__E_PROVIDER),
		RPMA_TEST(rpma_conn_req_connect__accepting_fails__E_PROVIDER),
		RPMA_TEST(rpma_conn_req_connect__active_leaks_nothing_whichever_call_fails),
		RPMA_TEST(rpma_conn_req_connect__passive_leaks_nothing_whichever_call_fails),
		RPMA_TEST(rpma_conn_req_connect__active_sends_1_to_56_bytes),
		RPMA_TEST(rpma_conn_req_connect__passive_sends_1_to_196_bytes),
		RPMA_TEST(rpma_conn_req_connect__iwarp_sends_up_to_255_bytes),
		RPMA_TEST(rpma_conn_req_connect__without_pdata_sends_none),
		RPMA_TEST(rpma_conn_req_connect__asks_for_reads_and_retries),
		RPMA_TEST(rpma_conn_req_connect__every_connection_has_its_own_events),
		RPMA_TEST(rpma_conn_req_connect__passive_keeps_the_private_data),
		RPMA_TEST(rpma_conn_req_recv__req_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_req_recv__no_region_but_an_offset__E_INVAL),
		RPMA_TEST(rpma_conn_req_recv__no_region_but_a_length__E_INVAL),
		RPMA_TEST(rpma_conn_req_recv__beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_conn_req_recv__posting_fails__E_PROVIDER),
		RPMA_TEST(rpma_conn_req_recv__posts_the_buffer),
		RPMA_TEST(rpma_conn_req_recv__takes_an_empty_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
