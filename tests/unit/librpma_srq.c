/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues */

#include <errno.h>

#include "walk.h"

static struct rpma_peer *peer;
static struct rpma_srq_cfg *cfg;
static struct rpma_srq *srq;

static int new_srq(void)
{
	srq = UNTOUCHED;
	return rpma_srq_new(peer, cfg, &srq);
}

static void drop_srq(void)
{
	assert_ok(rpma_srq_delete(&srq));
	assert_null(srq);
}

static void with_peer(void)
{
	peer = peer_new();
	cfg = NULL;
}

static void without_peer(void)
{
	peer_delete(peer);
}

static void with_srq(void)
{
	with_peer();
	assert_ok(new_srq());
}

static void without_srq(void)
{
	drop_srq();
	without_peer();
}

static void with_srq_without_rcq(void)
{
	with_peer();
	assert_ok(rpma_srq_cfg_new(&cfg));
	assert_ok(rpma_srq_cfg_set_rcq_size(cfg, 0));
	assert_ok(new_srq());
	assert_ok(rpma_srq_cfg_delete(&cfg));
}

static void rpma_srq_new__peer_is_NULL__E_INVAL(void **state)
{
	(void)state;
	peer = NULL;
	cfg = NULL;
	assert_error(new_srq(), RPMA_E_INVAL);
	assert_untouched(srq);
}

static void rpma_srq_new__srq_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_peer();
	assert_error(rpma_srq_new(peer, NULL, NULL), RPMA_E_INVAL);
	without_peer();
}

static void rpma_srq_new__no_memory__E_NOMEM(void **state)
{
	(void)state;
	with_peer();
	mock_fail_any(1, false);
	assert_error(new_srq(), RPMA_E_NOMEM);
	assert_untouched(srq);
	without_peer();
}

static void new_srq_fails(enum mock_call call)
{
	with_peer();
	mock_fail(call, 1, mock_default_errno(call));
	assert_error(new_srq(), RPMA_E_PROVIDER);
	assert_untouched(srq);
	without_peer();
}

static void rpma_srq_new__no_SRQ__E_PROVIDER(void **state)
{
	(void)state;
	new_srq_fails(MOCK_ibv_create_srq);
}

static void rpma_srq_new__no_channel__E_PROVIDER(void **state)
{
	(void)state;
	new_srq_fails(MOCK_ibv_create_comp_channel);
}

static void rpma_srq_new__no_CQ__E_PROVIDER(void **state)
{
	(void)state;
	new_srq_fails(MOCK_ibv_create_cq);
}

static void rpma_srq_new__asking_for_events_fails__E_PROVIDER(void **state)
{
	(void)state;
	new_srq_fails(MOCK_ibv_req_notify_cq);
}

static void srq_untouched(int answer)
{
	(void)answer;
	assert_untouched(srq);
}

static void rpma_srq_new__leaks_nothing_whichever_call_fails(void **state)
{
	const struct walk w = {.prepare = with_peer,
			       .act = new_srq,
			       .check = srq_untouched,
			       .undo = drop_srq,
			       .finish = without_peer,
			       .at_least = 6};

	(void)state;
	walk(&w);
}

static void rpma_srq_new__without_configuration_has_the_default_one(void **state)
{
	(void)state;
	with_srq();
	assert_int_equal(mock_seen()->srq_attr.attr.max_wr, 100);
	assert_true(mock_seen()->srq_attr.attr.max_sge >= 1);
	assert_int_equal(mock_seen()->cq[0].cqe, 100);
	without_srq();
}

static void rpma_srq_new__uses_the_configuration(void **state)
{
	(void)state;
	with_peer();
	assert_ok(rpma_srq_cfg_new(&cfg));
	assert_ok(rpma_srq_cfg_set_rq_size(cfg, 31));
	assert_ok(rpma_srq_cfg_set_rcq_size(cfg, 32));
	assert_ok(new_srq());
	assert_int_equal(mock_seen()->srq_attr.attr.max_wr, 31);
	assert_int_equal(mock_seen()->cq[0].cqe, 32);
	assert_ok(rpma_srq_cfg_delete(&cfg));
	without_srq();
}

static void rpma_srq_delete__srq_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_srq_delete(NULL), RPMA_E_INVAL);
}

static void rpma_srq_delete__twice_is_harmless(void **state)
{
	(void)state;
	with_srq();
	drop_srq();
	drop_srq();
	without_peer();
}

static int delete_srq(void)
{
	return rpma_srq_delete(&srq);
}

static void srq_is_NULL(int answer)
{
	(void)answer;
	assert_null(srq);
}

static void rpma_srq_delete__goes_away_whichever_call_fails__E_PROVIDER(void **state)
{
	const struct walk w = {.prepare = with_srq,
			       .act = delete_srq,
			       .check = srq_is_NULL,
			       .finish = without_peer,
			       .consumes = true,
			       .at_least = 3};

	(void)state;
	walk(&w);
}

static void rpma_srq_get_rcq__srq_is_NULL__E_INVAL(void **state)
{
	struct rpma_cq *rcq = UNTOUCHED;

	(void)state;
	assert_error(rpma_srq_get_rcq(NULL, &rcq), RPMA_E_INVAL);
	assert_untouched(rcq);
}

static void rpma_srq_get_rcq__rcq_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_srq();
	assert_error(rpma_srq_get_rcq(srq, NULL), RPMA_E_INVAL);
	without_srq();
}

static void rpma_srq_get_rcq__is_one_that_can_be_waited_for(void **state)
{
	struct rpma_cq *rcq = UNTOUCHED;
	int fd = -77;

	(void)state;
	with_srq();
	assert_ok(rpma_srq_get_rcq(srq, &rcq));
	assert_ok(rpma_cq_get_fd(rcq, &fd));
	assert_int_equal(fd, mock_cq(0)->channel->fd);
	mock_cq_event(mock_cq(0));
	assert_ok(rpma_cq_wait(rcq));
	without_srq();
}

static void rpma_srq_get_rcq__none_is_NULL(void **state)
{
	struct rpma_cq *rcq = UNTOUCHED;

	(void)state;
	with_srq_without_rcq();
	assert_ok(rpma_srq_get_rcq(srq, &rcq));
	assert_null(rcq);
	assert_int_equal(mock_alive_of(MOCK_CQ), 0);
	without_srq();
}

static int recv_(struct rpma_mr_local *mr, size_t offset, size_t len)
{
	return rpma_srq_recv(srq, mr, offset, len, CONTEXT);
}

static void rpma_srq_recv__srq_is_NULL__E_INVAL(void **state)
{
	(void)state;
	srq = NULL;
	assert_error(recv_(NULL, 0, 0), RPMA_E_INVAL);
}

static void rpma_srq_recv__no_region_but_an_offset__E_INVAL(void **state)
{
	(void)state;
	with_srq();
	assert_error(recv_(NULL, 1, 0), RPMA_E_INVAL);
	without_srq();
}

static void rpma_srq_recv__no_region_but_a_length__E_INVAL(void **state)
{
	(void)state;
	with_srq();
	assert_error(recv_(NULL, 0, 1), RPMA_E_INVAL);
	without_srq();
}

static void rpma_srq_recv__beyond_the_region__E_INVAL(void **state)
{
	struct rpma_mr_local *mr;

	(void)state;
	with_srq();
	mr = mr_new(peer, RPMA_MR_USAGE_RECV);
	assert_error(recv_(mr, 0, REGION + 1), RPMA_E_INVAL);
	assert_error(recv_(mr, REGION, 1), RPMA_E_INVAL);
	assert_error(recv_(mr, SIZE_MAX, 2), RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_post_srq_recv), 0);
	mr_delete(mr);
	without_srq();
}

static void rpma_srq_recv__posting_fails__E_PROVIDER(void **state)
{
	(void)state;
	with_srq();
	mock_fail(MOCK_ibv_post_srq_recv, 1, ENOMEM);
	assert_error(recv_(NULL, 0, 0), RPMA_E_PROVIDER);
	without_srq();
}

static void rpma_srq_recv__posts_the_buffer(void **state)
{
	struct rpma_mr_local *mr;

	(void)state;
	with_srq();
	mr = mr_new(peer, RPMA_MR_USAGE_RECV);
	assert_ok(recv_(mr, 8, REGION - 8));
	assert_non_null(the_wr()->srq);
	assert_int_equal(the_wr()->wr_id, (uintptr_t)CONTEXT);
	assert_int_equal(the_wr()->num_sge, 1);
	assert_int_equal(the_wr()->sge.addr, (uintptr_t)region + 8);
	assert_int_equal(the_wr()->sge.length, REGION - 8);
	assert_int_equal(the_wr()->sge.lkey, MOCK_LKEY);
	mr_delete(mr);
	without_srq();
}

static void rpma_srq_recv__takes_an_empty_message(void **state)
{
	(void)state;
	with_srq();
	assert_ok(recv_(NULL, 0, 0));
	assert_int_equal(the_wr()->num_sge, 0);
	without_srq();
}

static struct rpma_conn_cfg *cfg_with_srq(void)
{
	struct rpma_conn_cfg *conn_cfg = cfg_new();

	assert_ok(rpma_conn_cfg_set_srq(conn_cfg, srq));
	return conn_cfg;
}

/* The QP takes its buffers from the SRQ, and its receives complete where those of the SRQ do. */
static void rpma_srq_new__a_connection_receives_through_its_CQ(void **state)
{
	struct rpma_conn_cfg *conn_cfg;
	struct rpma_conn *conn;

	(void)state;
	with_srq();
	conn_cfg = cfg_with_srq();
	assert_ok(rpma_conn_cfg_set_rcq_size(conn_cfg, 7));
	conn = conn_new(peer, conn_cfg);
	assert_non_null(mock_seen()->qp_attr.srq);
	/* the SRQ's and the main one, and no receive CQ of the connection's own */
	assert_int_equal(mock_alive_of(MOCK_CQ), 2);
	assert_ptr_equal(mock_seen()->qp_attr.recv_cq, mock_cq(0));
	assert_ptr_equal(mock_seen()->qp_attr.send_cq, mock_cq(1));
	cfg_delete(conn_cfg);
	conn_delete(conn);
	without_srq();
}

static void rpma_srq_new__without_CQ_a_connection_uses_its_own(void **state)
{
	struct rpma_conn_cfg *conn_cfg;
	struct rpma_conn *conn;
	struct rpma_cq *rcq = NULL;

	(void)state;
	with_srq_without_rcq();
	conn_cfg = cfg_with_srq();
	assert_ok(rpma_conn_cfg_set_rcq_size(conn_cfg, 7));
	conn = conn_new(peer, conn_cfg);
	assert_ok(rpma_conn_get_rcq(conn, &rcq));
	assert_non_null(rcq);
	assert_non_null(mock_seen()->qp_attr.srq);
	assert_ptr_equal(mock_seen()->qp_attr.recv_cq, mock_cq(1));
	cfg_delete(conn_cfg);
	conn_delete(conn);
	without_srq();
}

static void rpma_conn_req_new__shared_channel_beside_an_SRQ_with_a_CQ__E_INVAL(void **state)
{
	struct rpma_conn_req *req = UNTOUCHED;
	struct rpma_conn_cfg *conn_cfg;

	(void)state;
	with_srq();
	conn_cfg = cfg_with_srq();
	assert_ok(rpma_conn_cfg_set_compl_channel(conn_cfg, true));
	assert_error(rpma_conn_req_new(peer, "192.0.2.1", "7204", conn_cfg, &req), RPMA_E_INVAL);
	assert_untouched(req);
	cfg_delete(conn_cfg);
	without_srq();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_srq_new__peer_is_NULL__E_INVAL),
		RPMA_TEST(rpma_srq_new__srq_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_srq_new__no_memory__E_NOMEM),
		RPMA_TEST(rpma_srq_new__no_SRQ__E_PROVIDER),
		RPMA_TEST(rpma_srq_new__no_channel__E_PROVIDER),
		RPMA_TEST(rpma_srq_new__no_CQ__E_PROVIDER),
		RPMA_TEST(rpma_srq_new__asking_for_events_fails__E_PROVIDER),
		RPMA_TEST(rpma_srq_new__leaks_nothing_whichever_call_fails),
		RPMA_TEST(rpma_srq_new__without_configuration_has_the_default_one),
		RPMA_TEST(rpma_srq_new__uses_the_configuration),
		RPMA_TEST(rpma_srq_delete__srq_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_srq_delete__twice_is_harmless),
		RPMA_TEST(rpma_srq_delete__goes_away_whichever_call_fails__E_PROVIDER),
		RPMA_TEST(rpma_srq_get_rcq__srq_is_NULL__E_INVAL),
		RPMA_TEST(rpma_srq_get_rcq__rcq_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_srq_get_rcq__is_one_that_can_be_waited_for),
		RPMA_TEST(rpma_srq_get_rcq__none_is_NULL),
		RPMA_TEST(rpma_srq_recv__srq_is_NULL__E_INVAL),
		RPMA_TEST(rpma_srq_recv__no_region_but_an_offset__E_INVAL),
		RPMA_TEST(rpma_srq_recv__no_region_but_a_length__E_INVAL),
		RPMA_TEST(rpma_srq_recv__beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_srq_recv__posting_fails__E_PROVIDER),
		RPMA_TEST(rpma_srq_recv__posts_the_buffer),
		RPMA_TEST(rpma_srq_recv__takes_an_empty_message),
		RPMA_TEST(rpma_srq_new__a_connection_receives_through_its_CQ),
		RPMA_TEST(rpma_srq_new__without_CQ_a_connection_uses_its_own),
		RPMA_TEST(rpma_conn_req_new__shared_channel_beside_an_SRQ_with_a_CQ__E_INVAL),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
