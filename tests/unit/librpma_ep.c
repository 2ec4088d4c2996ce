/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoint: listens, and gives connection requests */

#include <errno.h>
#include <fcntl.h>

#include "walk.h"

static struct rpma_peer *peer;
static struct rpma_ep *ep;
static struct rpma_conn_req *req;

static int listen_(void)
{
	ep = UNTOUCHED;
	return rpma_ep_listen(peer, "192.0.2.1", "7204", &ep);
}

static void with_peer(void)
{
	peer = peer_new();
}

static void without_peer(void)
{
	peer_delete(peer);
}

static void with_ep(void)
{
	peer = peer_new();
	ep = ep_new(peer);
}

static void shut(void)
{
	assert_ok(rpma_ep_shutdown(&ep));
	assert_null(ep);
}

static void without_ep(void)
{
	shut();
	peer_delete(peer);
}

static void ep_untouched(int answer)
{
	(void)answer;
	assert_untouched(ep);
}

static void rpma_ep_listen__peer_is_NULL__E_INVAL(void **state)
{
	(void)state;
	peer = NULL;
	assert_error(listen_(), RPMA_E_INVAL);
	assert_untouched(ep);
}

static void rpma_ep_listen__addr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_peer();
	ep = UNTOUCHED;
	assert_error(rpma_ep_listen(peer, NULL, "7204", &ep), RPMA_E_INVAL);
	assert_untouched(ep);
	without_peer();
}

static void rpma_ep_listen__port_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_peer();
	ep = UNTOUCHED;
	assert_error(rpma_ep_listen(peer, "192.0.2.1", NULL, &ep), RPMA_E_INVAL);
	assert_untouched(ep);
	without_peer();
}

static void rpma_ep_listen__ep_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_peer();
	assert_error(rpma_ep_listen(peer, "192.0.2.1", "7204", NULL), RPMA_E_INVAL);
	without_peer();
}

/* getaddrinfo(3) takes the lower 16 bits of any number */
static void rpma_ep_listen__no_such_port__E_INVAL(void **state)
{
	const char *const ports[] = {"65536", "72704", "4294967296", "99999999999999999999"};

	(void)state;
	with_peer();
	for (unsigned i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		ep = UNTOUCHED;
		assert_error(rpma_ep_listen(peer, "192.0.2.1", ports[i], &ep), RPMA_E_INVAL);
		assert_untouched(ep);
	}
	without_peer();
}

static void rpma_ep_listen__the_last_port_is_one(void **state)
{
	(void)state;
	with_peer();
	assert_ok(rpma_ep_listen(peer, "192.0.2.1", "65535", &ep));
	assert_string_equal(mock_seen()->addrinfo.service, "65535");
	shut();
	without_peer();
}

static void rpma_ep_listen__no_memory__E_NOMEM(void **state)
{
	(void)state;
	with_peer();
	mock_fail(MOCK_malloc, 1, ENOMEM);
	assert_error(listen_(), RPMA_E_NOMEM);
	assert_untouched(ep);
	without_peer();
}

static void rpma_ep_listen__the_port_is_in_use__E_PROVIDER(void **state)
{
	(void)state;
	with_peer();
	mock_fail(MOCK_rdma_bind_addr, 1, EADDRINUSE);
	assert_error(listen_(), RPMA_E_PROVIDER);
	assert_untouched(ep);
	without_peer();
}

static void rpma_ep_listen__listening_is_refused__E_PROVIDER(void **state)
{
	(void)state;
	with_peer();
	mock_fail(MOCK_rdma_listen, 1, EADDRINUSE);
	assert_error(listen_(), RPMA_E_PROVIDER);
	assert_untouched(ep);
	without_peer();
}

static void rpma_ep_listen__leaks_nothing_whichever_call_fails(void **state)
{
	const struct walk w = {.prepare = with_peer,
			       .act = listen_,
			       .check = ep_untouched,
			       .undo = shut,
			       .finish = without_peer,
			       .at_least = 6};

	(void)state;
	walk(&w);
}

static void rpma_ep_listen__listens_where_it_was_told(void **state)
{
	(void)state;
	with_ep();
	assert_string_equal(mock_seen()->addrinfo.node, "192.0.2.1");
	assert_string_equal(mock_seen()->addrinfo.service, "7204");
	assert_true(mock_seen()->addrinfo.flags & RAI_PASSIVE);
	assert_int_equal(mock_calls(MOCK_rdma_listen), 1);
	assert_int_equal(mock_alive_of(MOCK_ADDRINFO), 0);
	without_ep();
}

static void rpma_ep_shutdown__ep_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_ep_shutdown(NULL), RPMA_E_INVAL);
}

static void rpma_ep_shutdown__twice_is_harmless(void **state)
{
	(void)state;
	with_ep();
	shut();
	shut();
	without_peer();
}

static void rpma_ep_shutdown__the_id_stays__E_PROVIDER(void **state)
{
	struct rpma_ep *before;

	(void)state;
	with_ep();
	before = ep;
	mock_fail(MOCK_rdma_destroy_id, 1, EIO);
	assert_error(rpma_ep_shutdown(&ep), RPMA_E_PROVIDER);
	/* it can be tried again */
	assert_ptr_equal(ep, before);
	without_ep();
}

static void rpma_ep_shutdown__waiting_requests_are_dropped(void **state)
{
	(void)state;
	with_ep();
	mock_conn_request(ep_id(), NULL, 0);
	mock_conn_request(ep_id(), "x", 1);
	without_ep();
}

static void rpma_ep_get_fd__ep_is_NULL__E_INVAL(void **state)
{
	int fd = -77;

	(void)state;
	assert_error(rpma_ep_get_fd(NULL, &fd), RPMA_E_INVAL);
	assert_int_equal(fd, -77);
}

static void rpma_ep_get_fd__fd_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_ep();
	assert_error(rpma_ep_get_fd(ep, NULL), RPMA_E_INVAL);
	without_ep();
}

static void rpma_ep_get_fd__is_the_event_channel_s(void **state)
{
	int fd = -77;

	(void)state;
	with_ep();
	assert_ok(rpma_ep_get_fd(ep, &fd));
	assert_int_equal(fd, ep_id()->channel->fd);
	without_ep();
}

static int next_req(void)
{
	req = UNTOUCHED;
	return rpma_ep_next_conn_req(ep, NULL, &req);
}

static void req_untouched(int answer)
{
	(void)answer;
	assert_untouched(req);
}

static void rpma_ep_next_conn_req__ep_is_NULL__E_INVAL(void **state)
{
	(void)state;
	ep = NULL;
	assert_error(next_req(), RPMA_E_INVAL);
	assert_untouched(req);
}

static void rpma_ep_next_conn_req__req_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_ep();
	mock_conn_request(ep_id(), NULL, 0);
	assert_error(rpma_ep_next_conn_req(ep, NULL, NULL), RPMA_E_INVAL);
	without_ep();
}

static void rpma_ep_next_conn_req__another_event__E_INVAL(void **state)
{
	const enum rdma_cm_event_type others[] = {
		RDMA_CM_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_ADDR_CHANGE, RDMA_CM_EVENT_ESTABLISHED,
		RDMA_CM_EVENT_TIMEWAIT_EXIT};

	(void)state;
	with_ep();
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		mock_cm_event(ep_id(), others[i], NULL, 0, 0);
		assert_error(next_req(), RPMA_E_INVAL);
		assert_untouched(req);
		assert_int_equal(mock_alive_of(MOCK_CM_EVENT), 0);
	}
	without_ep();
}

static void rpma_ep_next_conn_req__nobody_calls__E_NO_EVENT(void **state)
{
	int fd;

	(void)state;
	with_ep();
	assert_ok(rpma_ep_get_fd(ep, &fd));
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_error(next_req(), RPMA_E_NO_EVENT);
	assert_untouched(req);
	/* librdmacm's word for an answer of the kernel that is no event */
	mock_fail(MOCK_rdma_get_cm_event, 1, ENODATA);
	assert_error(next_req(), RPMA_E_NO_EVENT);
	assert_untouched(req);
	without_ep();
}

static void rpma_ep_next_conn_req__no_events_can_be_got__E_PROVIDER(void **state)
{
	(void)state;
	with_ep();
	mock_conn_request(ep_id(), NULL, 0);
	mock_fail(MOCK_rdma_get_cm_event, 1, EBADF);
	assert_error(next_req(), RPMA_E_PROVIDER);
	assert_untouched(req);
	without_ep();
}

static void rpma_ep_next_conn_req__acknowledging_fails__E_PROVIDER(void **state)
{
	(void)state;
	with_ep();
	mock_conn_request(ep_id(), NULL, 0);
	mock_fail(MOCK_rdma_ack_cm_event, 1, EIO);
	assert_error(next_req(), RPMA_E_PROVIDER);
	assert_untouched(req);
	without_ep();
}

static void rpma_ep_next_conn_req__no_memory__E_NOMEM(void **state)
{
	(void)state;
	with_ep();
	mock_conn_request(ep_id(), NULL, 0);
	mock_fail(MOCK_malloc, 1, ENOMEM);
	if (next_req() == 0) {
		mock_fail_none();
		assert_ok(rpma_conn_req_delete(&req));
		mock_conn_request(ep_id(), NULL, 0);
		mock_fail(MOCK_calloc, 1, ENOMEM);
		assert_error(next_req(), RPMA_E_NOMEM);
	}
	assert_untouched(req);
	without_ep();
}

static void with_waiting_req(void)
{
	with_ep();
	mock_conn_request(ep_id(), "greeting", 8);
}

static void drop_req(void)
{
	assert_ok(rpma_conn_req_delete(&req));
	assert_null(req);
}

/* A failure loses this one request: it is rejected, the endpoint is as good as before. */
static void next_req_check(int answer)
{
	req_untouched(answer);
	if (mock_alive_of(MOCK_ID) != 1 && !mock_fault())
		fail_msg("the id of a lost request is left behind");
	mock_conn_request(ep_id(), NULL, 0);
	assert_ok(next_req());
	drop_req();
}

static void rpma_ep_next_conn_req__leaks_nothing_whichever_call_fails(void **state)
{
	const struct walk w = {.prepare = with_waiting_req,
			       .act = next_req,
			       .check = next_req_check,
			       .undo = drop_req,
			       .finish = without_ep,
			       .at_least = 5};

	(void)state;
	walk(&w);
}

static void rpma_ep_next_conn_req__gives_requests_in_the_order_they_came(void **state)
{
	struct rpma_conn_private_data pdata;

	(void)state;
	with_ep();
	mock_conn_request(ep_id(), "first", 5);
	mock_conn_request(ep_id(), "second", 6);
	assert_ok(next_req());
	assert_ok(rpma_conn_req_get_private_data(req, &pdata));
	assert_int_equal(pdata.len, 5);
	assert_memory_equal(pdata.ptr, "first", 5);
	drop_req();
	assert_ok(next_req());
	assert_ok(rpma_conn_req_get_private_data(req, &pdata));
	assert_int_equal(pdata.len, 6);
	drop_req();
	without_ep();
}

/* "The connections established using the endpoint will still exist after deleting the endpoint." */
static void rpma_ep_next_conn_req__a_connection_outlives_its_endpoint(void **state)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_conn *conn = NULL;

	(void)state;
	with_waiting_req();
	assert_ok(next_req());
	assert_ok(rpma_conn_req_connect(&req, NULL, &conn));
	shut();
	mock_cm_event(mock_id(0), RDMA_CM_EVENT_ESTABLISHED, NULL, 0, 0);
	assert_ok(rpma_conn_next_event(conn, &event));
	assert_int_equal(event, RPMA_CONN_ESTABLISHED);
	conn_delete(conn);
	without_peer();
}

static void rpma_ep_next_conn_req__uses_the_configuration(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();

	(void)state;
	with_waiting_req();
	assert_ok(rpma_conn_cfg_set_cq_size(cfg, 21));
	assert_ok(rpma_conn_cfg_set_rcq_size(cfg, 22));
	assert_ok(rpma_conn_cfg_set_sq_size(cfg, 23));
	assert_ok(rpma_conn_cfg_set_rq_size(cfg, 24));
	assert_ok(rpma_ep_next_conn_req(ep, cfg, &req));
	assert_int_equal(mock_seen()->cq[0].cqe, 21);
	assert_int_equal(mock_seen()->cq[1].cqe, 22);
	assert_int_equal(mock_seen()->qp_attr.cap.max_send_wr, 23);
	assert_int_equal(mock_seen()->qp_attr.cap.max_recv_wr, 24);
	drop_req();
	without_ep();
	cfg_delete(cfg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_ep_listen__peer_is_NULL__E_INVAL),
		RPMA_TEST(rpma_ep_listen__addr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_ep_listen__port_is_NULL__E_INVAL),
		RPMA_TEST(rpma_ep_listen__ep_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_ep_listen__no_such_port__E_INVAL),
		RPMA_TEST(rpma_ep_listen__the_last_port_is_one),
		RPMA_TEST(rpma_ep_listen__no_memory__E_NOMEM),
		RPMA_TEST(rpma_ep_listen__the_port_is_in_use__E_PROVIDER),
		RPMA_TEST(rpma_ep_listen__listening_is_refused__E_PROVIDER),
		RPMA_TEST(rpma_ep_listen__leaks_nothing_whichever_call_fails),
		RPMA_TEST(rpma_ep_listen__listens_where_it_was_told),
		RPMA_TEST(rpma_ep_shutdown__ep_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_ep_shutdown__twice_is_harmless),
		RPMA_TEST(rpma_ep_shutdown__the_id_stays__E_PROVIDER),
		RPMA_TEST(rpma_ep_shutdown__waiting_requests_are_dropped),
		RPMA_TEST(rpma_ep_get_fd__ep_is_NULL__E_INVAL),
		RPMA_TEST(rpma_ep_get_fd__fd_is_NULL__E_INVAL),
		RPMA_TEST(rpma_ep_get_fd__is_the_event_channel_s),
		RPMA_TEST(rpma_ep_next_conn_req__ep_is_NULL__E_INVAL),
		RPMA_TEST(rpma_ep_next_conn_req__req_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_ep_next_conn_req__another_event__E_INVAL),
		RPMA_TEST(rpma_ep_next_conn_req__nobody_calls__E_NO_EVENT),
		RPMA_TEST(rpma_ep_next_conn_req__no_events_can_be_got__E_PROVIDER),
		RPMA_TEST(rpma_ep_next_conn_req__acknowledging_fails__E_PROVIDER),
		RPMA_TEST(rpma_ep_next_conn_req__no_memory__E_NOMEM),
		RPMA_TEST(rpma_ep_next_conn_req__leaks_nothing_whichever_call_fails),
		RPMA_TEST(rpma_ep_next_conn_req__gives_requests_in_the_order_they_came),
		RPMA_TEST(rpma_ep_next_conn_req__a_connection_outlives_its_endpoint),
		RPMA_TEST(rpma_ep_next_conn_req__uses_the_configuration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
