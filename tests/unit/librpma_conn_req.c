/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection requests, outgoing: made and deleted; and what both kinds can do */

#include <errno.h>
#include <string.h>

#include "walk.h"

static struct rpma_peer *peer;
static struct rpma_conn_cfg *cfg;
static struct rpma_ep *ep;
static struct rpma_conn_req *req;

static int new_req(void)
{
	req = UNTOUCHED;
	return rpma_conn_req_new(peer, "192.0.2.1", "7204", cfg, &req);
}

static void drop_req(void)
{
	assert_ok(rpma_conn_req_delete(&req));
	assert_null(req);
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

static void req_untouched(int answer)
{
	(void)answer;
	assert_untouched(req);
}

static void rpma_conn_req_new__peer_is_NULL__E_INVAL(void **state)
{
	(void)state;
	peer = NULL;
	cfg = NULL;
	assert_error(new_req(), RPMA_E_INVAL);
	assert_untouched(req);
}

static void rpma_conn_req_new__addr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_peer();
	req = UNTOUCHED;
	assert_error(rpma_conn_req_new(peer, NULL, "7204", NULL, &req), RPMA_E_INVAL);
	assert_untouched(req);
	without_peer();
}

static void rpma_conn_req_new__port_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_peer();
	req = UNTOUCHED;
	assert_error(rpma_conn_req_new(peer, "192.0.2.1", NULL, NULL, &req), RPMA_E_INVAL);
	assert_untouched(req);
	without_peer();
}

static void rpma_conn_req_new__req_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_peer();
	assert_error(rpma_conn_req_new(peer, "192.0.2.1", "7204", NULL, NULL), RPMA_E_INVAL);
	without_peer();
}

/* getaddrinfo(3) takes the lower 16 bits of any number */
static void rpma_conn_req_new__no_such_port__E_INVAL(void **state)
{
	const char *const ports[] = {"65536", "72704", "4294967296", "99999999999999999999"};

	(void)state;
	with_peer();
	for (unsigned i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		req = UNTOUCHED;
		assert_error(rpma_conn_req_new(peer, "192.0.2.1", ports[i], NULL, &req),
			     RPMA_E_INVAL);
		assert_untouched(req);
	}
	without_peer();
}

static void rpma_conn_req_new__the_last_port_is_one(void **state)
{
	(void)state;
	with_peer();
	assert_ok(rpma_conn_req_new(peer, "192.0.2.1", "65535", NULL, &req));
	assert_string_equal(mock_seen()->addrinfo.service, "65535");
	drop_req();
	without_peer();
}

static void rpma_conn_req_new__no_memory__E_NOMEM(void **state)
{
	(void)state;
	with_peer();
	mock_fail(MOCK_malloc, 1, ENOMEM);
	if (new_req() == 0) {
		mock_fail_none();
		drop_req();
		mock_fail(MOCK_calloc, 1, ENOMEM);
		assert_error(new_req(), RPMA_E_NOMEM);
	}
	assert_untouched(req);
	without_peer();
}

static void new_req_fails(enum mock_call call)
{
	with_peer();
	mock_fail(call, 1, mock_default_errno(call));
	assert_error(new_req(), RPMA_E_PROVIDER);
	assert_untouched(req);
	without_peer();
}

static void rpma_conn_req_new__no_id__E_PROVIDER(void **state)
{
	(void)state;
	new_req_fails(MOCK_rdma_create_id);
}

static void rpma_conn_req_new__the_address_means_nothing__E_PROVIDER(void **state)
{
	(void)state;
	new_req_fails(MOCK_rdma_getaddrinfo);
}

static void rpma_conn_req_new__no_way_there__E_PROVIDER(void **state)
{
	(void)state;
	new_req_fails(MOCK_rdma_resolve_addr);
}

static void rpma_conn_req_new__no_route__E_PROVIDER(void **state)
{
	(void)state;
	new_req_fails(MOCK_rdma_resolve_route);
}

static void rpma_conn_req_new__no_CQ__E_PROVIDER(void **state)
{
	(void)state;
	new_req_fails(MOCK_ibv_create_cq);
}

static void rpma_conn_req_new__no_QP__E_PROVIDER(void **state)
{
	(void)state;
	new_req_fails(MOCK_rdma_create_qp);
}

static void rpma_conn_req_new__leaks_nothing_whichever_call_fails(void **state)
{
	const struct walk w = {.prepare = with_peer,
			       .act = new_req,
			       .check = req_untouched,
			       .undo = drop_req,
			       .finish = without_peer,
			       .at_least = 8};

	(void)state;
	walk(&w);
}

static void with_full_cfg(bool shared)
{
	with_peer();
	cfg = cfg_new();
	assert_ok(rpma_conn_cfg_set_rcq_size(cfg, 5));
	assert_ok(rpma_conn_cfg_set_compl_channel(cfg, shared));
}

static void with_rcq(void)
{
	with_full_cfg(false);
}

static void with_shared_channel(void)
{
	with_full_cfg(true);
}

static void without_cfg(void)
{
	cfg_delete(cfg);
	without_peer();
}

static void rpma_conn_req_new__with_receive_CQ_leaks_nothing_whichever_call_fails(void **state)
{
	struct walk w = {.prepare = with_rcq,
			 .act = new_req,
			 .check = req_untouched,
			 .undo = drop_req,
			 .finish = without_cfg,
			 .at_least = 10};

	(void)state;
	walk(&w);
	w.prepare = with_shared_channel;
	walk(&w);
}

static void rpma_conn_req_new__goes_where_it_was_told(void **state)
{
	(void)state;
	with_peer();
	assert_ok(new_req());
	assert_string_equal(mock_seen()->addrinfo.node, "192.0.2.1");
	assert_string_equal(mock_seen()->addrinfo.service, "7204");
	assert_false(mock_seen()->addrinfo.flags & RAI_PASSIVE);
	assert_int_equal(mock_seen()->resolve_timeout_ms[0], RPMA_DEFAULT_TIMEOUT_MS);
	assert_int_equal(mock_seen()->resolve_timeout_ms[1], RPMA_DEFAULT_TIMEOUT_MS);
	assert_int_equal(mock_alive_of(MOCK_ADDRINFO), 0);
	drop_req();
	without_peer();
}

static void rpma_conn_req_new__without_configuration_has_the_default_one(void **state)
{
	const struct ibv_qp_init_attr_ex *attr = &mock_seen()->qp_attr;

	(void)state;
	with_peer();
	assert_ok(new_req());
	assert_int_equal(mock_seen()->cq_count, 1);
	assert_int_equal(mock_seen()->cq[0].cqe, 10);
	assert_non_null(mock_seen()->cq[0].channel);
	assert_int_equal(attr->qp_type, IBV_QPT_RC);
	assert_int_equal(attr->cap.max_send_wr, 10);
	assert_int_equal(attr->cap.max_recv_wr, 10);
	assert_true(attr->cap.max_send_sge >= 1);
	assert_true(attr->cap.max_recv_sge >= 1);
	assert_true(attr->cap.max_inline_data >= 8);
	assert_ptr_equal(attr->send_cq, attr->recv_cq);
	assert_null(attr->srq);
	/* only what is asked for completes on success */
	assert_int_equal(attr->sq_sig_all, 0);
	drop_req();
	without_peer();
}

static void rpma_conn_req_new__uses_the_configuration(void **state)
{
	const struct mock_seen *seen = mock_seen();

	(void)state;
	with_rcq();
	assert_ok(rpma_conn_cfg_set_timeout(cfg, 4321));
	assert_ok(rpma_conn_cfg_set_cq_size(cfg, 21));
	assert_ok(rpma_conn_cfg_set_sq_size(cfg, 23));
	assert_ok(rpma_conn_cfg_set_rq_size(cfg, 24));
	assert_ok(new_req());
	assert_int_equal(seen->resolve_timeout_ms[0], 4321);
	assert_int_equal(seen->resolve_timeout_ms[1], 4321);
	assert_int_equal(seen->cq_count, 2);
	assert_int_equal(seen->cq[0].cqe, 21);
	assert_int_equal(seen->cq[1].cqe, 5);
	assert_ptr_not_equal(seen->cq[0].channel, seen->cq[1].channel);
	assert_int_equal(seen->qp_attr.cap.max_send_wr, 23);
	assert_int_equal(seen->qp_attr.cap.max_recv_wr, 24);
	assert_ptr_not_equal(seen->qp_attr.send_cq, seen->qp_attr.recv_cq);
	drop_req();
	without_cfg();
}

static void rpma_conn_req_new__a_shared_channel_is_one_for_both_CQs(void **state)
{
	const struct mock_seen *seen = mock_seen();

	(void)state;
	with_shared_channel();
	assert_ok(new_req());
	assert_int_equal(seen->cq_count, 2);
	assert_non_null(seen->cq[0].channel);
	assert_ptr_equal(seen->cq[0].channel, seen->cq[1].channel);
	assert_int_equal(mock_alive_of(MOCK_COMP_CHANNEL), 1);
	drop_req();
	without_cfg();
}

/* A size that no int holds must not become a small or a negative one on its way to verbs. */
static void rpma_conn_req_new__huge_sizes_are_not_wrapped(void **state)
{
	(void)state;
	with_peer();
	cfg = cfg_new();
	assert_ok(rpma_conn_cfg_set_cq_size(cfg, UINT32_MAX));
	if (new_req() == 0) {
		assert_int_equal(mock_seen()->cq[0].cqe, INT32_MAX);
		drop_req();
	}
	without_cfg();
}

static void rpma_conn_req_delete__req_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_conn_req_delete(NULL), RPMA_E_INVAL);
}

static void rpma_conn_req_delete__twice_is_harmless(void **state)
{
	(void)state;
	with_peer();
	assert_ok(new_req());
	drop_req();
	drop_req();
	without_peer();
}

static int delete_req(void)
{
	return rpma_conn_req_delete(&req);
}

static void with_outgoing(void)
{
	with_shared_channel();
	req = outgoing_new(peer, cfg);
}

static void with_incoming(void)
{
	with_rcq();
	ep = ep_new(peer);
	req = incoming_new(ep, cfg, "hello", 5);
}

static void without_incoming(void)
{
	assert_ok(rpma_ep_shutdown(&ep));
	without_cfg();
}

static void req_is_NULL(int answer)
{
	(void)answer;
	assert_null(req);
}

static void rpma_conn_req_delete__outgoing_goes_away_whichever_call_fails__E_PROVIDER(void **state)
{
	const struct walk w = {.prepare = with_outgoing,
			       .act = delete_req,
			       .check = req_is_NULL,
			       .finish = without_cfg,
			       .consumes = true,
			       .at_least = 3};

	(void)state;
	walk(&w);
}

static void rpma_conn_req_delete__incoming_goes_away_whichever_call_fails__E_PROVIDER(void **state)
{
	const struct walk w = {.prepare = with_incoming,
			       .act = delete_req,
			       .check = req_is_NULL,
			       .finish = without_incoming,
			       .consumes = true,
			       .at_least = 5};

	(void)state;
	walk(&w);
}

static void rpma_conn_req_delete__incoming_is_rejected(void **state)
{
	(void)state;
	with_incoming();
	drop_req();
	assert_int_equal(mock_calls(MOCK_rdma_reject), 1);
	without_incoming();
}

static void rpma_conn_req_delete__outgoing_tells_nobody(void **state)
{
	(void)state;
	with_outgoing();
	drop_req();
	assert_int_equal(mock_calls(MOCK_rdma_reject), 0);
	without_cfg();
}

static void rpma_conn_req_get_private_data__req_is_NULL__E_INVAL(void **state)
{
	struct rpma_conn_private_data pdata = {UNTOUCHED, 77};

	(void)state;
	assert_error(rpma_conn_req_get_private_data(NULL, &pdata), RPMA_E_INVAL);
	assert_untouched(pdata.ptr);
	assert_int_equal(pdata.len, 77);
}

static void rpma_conn_req_get_private_data__pdata_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_incoming();
	assert_error(rpma_conn_req_get_private_data(req, NULL), RPMA_E_INVAL);
	drop_req();
	without_incoming();
}

static void rpma_conn_req_get_private_data__gives_what_the_peer_sent(void **state)
{
	struct rpma_conn_private_data pdata = {UNTOUCHED, 77};
	uint8_t sent[MOCK_PRIVATE_DATA_MAX];

	(void)state;
	for (unsigned i = 0; i < sizeof(sent); i++)
		sent[i] = i;
	with_rcq();
	ep = ep_new(peer);
	for (unsigned len = 1; len <= sizeof(sent); len++) {
		req = incoming_new(ep, NULL, sent, len);
		assert_ok(rpma_conn_req_get_private_data(req, &pdata));
		assert_int_equal(pdata.len, len);
		assert_memory_equal(pdata.ptr, sent, len);
		drop_req();
	}
	without_incoming();
}

static void rpma_conn_req_get_private_data__none_is_NULL_and_0(void **state)
{
	struct rpma_conn_private_data pdata = {UNTOUCHED, 77};

	(void)state;
	with_rcq();
	ep = ep_new(peer);
	req = incoming_new(ep, NULL, NULL, 0);
	assert_ok(rpma_conn_req_get_private_data(req, &pdata));
	assert_null(pdata.ptr);
	assert_int_equal(pdata.len, 0);
	drop_req();
	without_incoming();
}

static void rpma_conn_req_get_private_data__outgoing_has_none(void **state)
{
	struct rpma_conn_private_data pdata = {UNTOUCHED, 77};

	(void)state;
	with_outgoing();
	assert_ok(rpma_conn_req_get_private_data(req, &pdata));
	assert_null(pdata.ptr);
	assert_int_equal(pdata.len, 0);
	drop_req();
	without_cfg();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_conn_req_new__peer_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_req_new__addr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_req_new__port_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_req_new__req_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_req_new__no_such_port__E_INVAL),
		RPMA_TEST(rpma_conn_req_new__the_last_port_is_one),
		RPMA_TEST(rpma_conn_req_new__no_memory__E_NOMEM),
		RPMA_TEST(rpma_conn_req_new__no_id__E_PROVIDER),
		RPMA_TEST(rpma_conn_req_new__the_address_means_nothing__E_PROVIDER),
		RPMA_TEST(rpma_conn_req_new__no_way_there__E_PROVIDER),
		RPMA_TEST(rpma_conn_req_new__no_route__E_PROVIDER),
		RPMA_TEST(rpma_conn_req_new__no_CQ__E_PROVIDER),
		RPMA_TEST(rpma_conn_req_new__no_QP__E_PROVIDER),
		RPMA_TEST(rpma_conn_req_new__leaks_nothing_whichever_call_fails),
		RPMA_TEST(rpma_conn_req_new__with_receive_CQ_leaks_nothing_whichever_call_fails),
		RPMA_TEST(rpma_conn_req_new__goes_where_it_was_told),
		RPMA_TEST(rpma_conn_req_new__without_configuration_has_the_default_one),
		RPMA_TEST(rpma_conn_req_new__uses_the_configuration),
		RPMA_TEST(rpma_conn_req_new__a_shared_channel_is_one_for_both_CQs),
		RPMA_TEST(rpma_conn_req_new__huge_sizes_are_not_wrapped),
		RPMA_TEST(rpma_conn_req_delete__req_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_req_delete__twice_is_harmless),
		RPMA_TEST(
			rpma_conn_req_delete__outgoing_goes_away_whichever_call_fails__E_PROVIDER),
		RPMA_TEST(
			rpma_conn_req_delete__incoming_goes_away_whichever_call_fails__E_PROVIDER),
		RPMA_TEST(rpma_conn_req_delete__incoming_is_rejected),
		RPMA_TEST(rpma_conn_req_delete__outgoing_tells_nobody),
		RPMA_TEST(rpma_conn_req_get_private_data__req_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_req_get_private_data__pdata_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_req_get_private_data__gives_what_the_peer_sent),
		RPMA_TEST(rpma_conn_req_get_private_data__none_is_NULL_and_0),
		RPMA_TEST(rpma_conn_req_get_private_data__outgoing_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
