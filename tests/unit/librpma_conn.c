/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection: events, private data, getters, disconnecting, deleting */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "walk.h"

static struct rpma_peer *peer;
static struct rpma_conn_cfg *cfg;
static struct rpma_conn *conn;
static enum rpma_conn_event event;

/* Connected, but not established yet: no event was there. */
static void with_connecting(void)
{
	struct rpma_conn_req *req;

	peer = peer_new();
	req = outgoing_new(peer, NULL);
	assert_ok(rpma_conn_req_connect(&req, NULL, &conn));
}

static void with_conn(void)
{
	peer = peer_new();
	conn = conn_new(peer, NULL);
}

static void without_conn(void)
{
	conn_delete(conn);
	peer_delete(peer);
}

static const struct rdma_cm_id *id(void)
{
	return mock_id(0);
}

static int next(void)
{
	event = (enum rpma_conn_event)77;
	return rpma_conn_next_event(conn, &event);
}

static void rpma_conn_next_event__conn_is_NULL__E_INVAL(void **state)
{
	(void)state;
	conn = NULL;
	assert_error(next(), RPMA_E_INVAL);
}

static void rpma_conn_next_event__event_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_conn();
	mock_cm_event(id(), RDMA_CM_EVENT_DISCONNECTED, NULL, 0, 0);
	assert_error(rpma_conn_next_event(conn, NULL), RPMA_E_INVAL);
	without_conn();
}

static void rpma_conn_next_event__nothing_happened__E_NO_EVENT(void **state)
{
	int fd;

	(void)state;
	with_conn();
	assert_ok(rpma_conn_get_event_fd(conn, &fd));
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_error(next(), RPMA_E_NO_EVENT);
	mock_fail(MOCK_rdma_get_cm_event, 1, ENODATA);
	assert_error(next(), RPMA_E_NO_EVENT);
	without_conn();
}

static void rpma_conn_next_event__no_events_can_be_got__E_PROVIDER(void **state)
{
	(void)state;
	with_conn();
	mock_fail(MOCK_rdma_get_cm_event, 1, EBADF);
	assert_error(next(), RPMA_E_PROVIDER);
	without_conn();
}

static void rpma_conn_next_event__acknowledging_fails__E_PROVIDER(void **state)
{
	struct rpma_conn_private_data pdata = {UNTOUCHED, 77};

	(void)state;
	with_connecting();
	mock_cm_event(id(), RDMA_CM_EVENT_ESTABLISHED, "hello", 5, 0);
	mock_fail(MOCK_rdma_ack_cm_event, 1, EIO);
	assert_error(next(), RPMA_E_PROVIDER);
	/* nor is there what came with it */
	assert_ok(rpma_conn_get_private_data(conn, &pdata));
	assert_null(pdata.ptr);
	assert_int_equal(pdata.len, 0);
	without_conn();
}

static void rpma_conn_next_event__no_memory_for_private_data__E_NOMEM(void **state)
{
	struct rpma_conn_private_data pdata;

	(void)state;
	with_connecting();
	mock_cm_event(id(), RDMA_CM_EVENT_ESTABLISHED, "hello", 5, 0);
	mock_fail_any(2, false);
	if (next() == 0) {
		/* no memory is taken here */
		assert_int_equal(event, RPMA_CONN_ESTABLISHED);
		fail_msg("%s() failed and nobody noticed", mock_name(mock_failed()));
	}
	assert_int_equal(mock_failed() <= MOCK_strdup, 1);
	mock_fail_none();
	assert_int_equal(mock_alive_of(MOCK_CM_EVENT), 0);
	assert_ok(rpma_conn_get_private_data(conn, &pdata));
	assert_null(pdata.ptr);
	without_conn();
}

static void rpma_conn_next_event__an_event_that_means_nothing__E_UNKNOWN(void **state)
{
	const enum rdma_cm_event_type others[] = {
		RDMA_CM_EVENT_ADDR_RESOLVED,    RDMA_CM_EVENT_ROUTE_RESOLVED,
		RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_MULTICAST_JOIN,
		RDMA_CM_EVENT_MULTICAST_ERROR,  (enum rdma_cm_event_type)77};

	(void)state;
	with_conn();
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		mock_cm_event(id(), others[i], NULL, 0, 0);
		assert_error(next(), RPMA_E_UNKNOWN);
		assert_int_equal(mock_alive_of(MOCK_CM_EVENT), 0);
	}
	/* it does no harm to what follows */
	mock_cm_event(id(), RDMA_CM_EVENT_DISCONNECTED, NULL, 0, 0);
	assert_ok(next());
	assert_int_equal(event, RPMA_CONN_CLOSED);
	without_conn();
}

static void rpma_conn_next_event__tells_what_happened(void **state)
{
	const struct {
		enum rdma_cm_event_type cm;
		enum rpma_conn_event rpma;
	} events[] = {
		{RDMA_CM_EVENT_ESTABLISHED, RPMA_CONN_ESTABLISHED},
		{RDMA_CM_EVENT_CONNECT_ERROR, RPMA_CONN_LOST},
		{RDMA_CM_EVENT_DEVICE_REMOVAL, RPMA_CONN_LOST},
		{RDMA_CM_EVENT_DISCONNECTED, RPMA_CONN_CLOSED},
		{RDMA_CM_EVENT_TIMEWAIT_EXIT, RPMA_CONN_CLOSED},
		{RDMA_CM_EVENT_REJECTED, RPMA_CONN_REJECTED},
		{RDMA_CM_EVENT_UNREACHABLE, RPMA_CONN_UNREACHABLE},
	};

	(void)state;
	with_connecting();
	for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		mock_cm_event(id(), events[i].cm, NULL, 0, 0);
		assert_ok(next());
		assert_int_equal(event, events[i].rpma);
	}
	without_conn();
}

static void with_waiting_event(void)
{
	with_connecting();
	mock_cm_event(id(), RDMA_CM_EVENT_ESTABLISHED, "hello", 5, 0);
}

static int next_ok(void)
{
	return next();
}

static void rpma_conn_next_event__leaks_nothing_whichever_call_fails(void **state)
{
	const struct walk w = {.prepare = with_waiting_event,
			       .act = next_ok,
			       .finish = without_conn,
			       .consumes = true, /* the event */
			       .at_least = 3};

	(void)state;
	walk(&w);
}

static void rpma_conn_get_private_data__conn_is_NULL__E_INVAL(void **state)
{
	struct rpma_conn_private_data pdata = {UNTOUCHED, 77};

	(void)state;
	assert_error(rpma_conn_get_private_data(NULL, &pdata), RPMA_E_INVAL);
	assert_untouched(pdata.ptr);
	assert_int_equal(pdata.len, 77);
}

static void rpma_conn_get_private_data__pdata_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_conn();
	assert_error(rpma_conn_get_private_data(conn, NULL), RPMA_E_INVAL);
	without_conn();
}

static void rpma_conn_get_private_data__is_there_once_established(void **state)
{
	struct rpma_conn_private_data pdata = {UNTOUCHED, 77};

	(void)state;
	with_waiting_event();
	assert_ok(rpma_conn_get_private_data(conn, &pdata));
	assert_null(pdata.ptr);
	assert_int_equal(pdata.len, 0);
	assert_ok(next());
	assert_ok(rpma_conn_get_private_data(conn, &pdata));
	assert_int_equal(pdata.len, 5);
	assert_memory_equal(pdata.ptr, "hello", 5);
	without_conn();
}

static void rpma_conn_get_private_data__none_is_NULL_and_0(void **state)
{
	struct rpma_conn_private_data pdata = {UNTOUCHED, 77};

	(void)state;
	with_conn();
	assert_ok(rpma_conn_get_private_data(conn, &pdata));
	assert_null(pdata.ptr);
	assert_int_equal(pdata.len, 0);
	without_conn();
}

/* Whatever the peer sends later, the first is not lost and the second leaks not. */
static void rpma_conn_get_private_data__survives_events_with_data_of_their_own(void **state)
{
	struct rpma_conn_private_data pdata;

	(void)state;
	with_waiting_event();
	assert_ok(next());
	mock_cm_event(id(), RDMA_CM_EVENT_DISCONNECTED, "bye", 3, 0);
	assert_ok(next());
	assert_ok(rpma_conn_get_private_data(conn, &pdata));
	assert_int_equal(pdata.len, 5);
	assert_memory_equal(pdata.ptr, "hello", 5);
	without_conn();
}

static void rpma_conn_get_private_data__every_length_arrives(void **state)
{
	struct rpma_conn_private_data pdata;
	uint8_t sent[MOCK_PRIVATE_DATA_MAX];

	(void)state;
	for (unsigned i = 0; i < sizeof(sent); i++)
		sent[i] = i;
	for (unsigned len = 1; len <= sizeof(sent); len++) {
		mock_reset();
		with_connecting();
		mock_cm_event(id(), RDMA_CM_EVENT_ESTABLISHED, sent, len, 0);
		assert_ok(next());
		assert_ok(rpma_conn_get_private_data(conn, &pdata));
		assert_int_equal(pdata.len, len);
		assert_memory_equal(pdata.ptr, sent, len);
		without_conn();
		assert_null(mock_verdict());
	}
}

static void rpma_conn_get_event_fd__conn_is_NULL__E_INVAL(void **state)
{
	int fd = -77;

	(void)state;
	assert_error(rpma_conn_get_event_fd(NULL, &fd), RPMA_E_INVAL);
	assert_int_equal(fd, -77);
}

static void rpma_conn_get_event_fd__fd_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_conn();
	assert_error(rpma_conn_get_event_fd(conn, NULL), RPMA_E_INVAL);
	without_conn();
}

static void rpma_conn_get_event_fd__is_the_event_channel_s(void **state)
{
	int fd = -77;

	(void)state;
	with_conn();
	assert_ok(rpma_conn_get_event_fd(conn, &fd));
	assert_int_equal(fd, id()->channel->fd);
	without_conn();
}

static void rpma_conn_get_qp_num__conn_is_NULL__E_INVAL(void **state)
{
	uint32_t qp_num = 77;

	(void)state;
	assert_error(rpma_conn_get_qp_num(NULL, &qp_num), RPMA_E_INVAL);
	assert_int_equal(qp_num, 77);
}

static void rpma_conn_get_qp_num__qp_num_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_conn();
	assert_error(rpma_conn_get_qp_num(conn, NULL), RPMA_E_INVAL);
	without_conn();
}

static void rpma_conn_get_qp_num__is_the_QP_s(void **state)
{
	uint32_t qp_num = 77;

	(void)state;
	with_conn();
	assert_ok(rpma_conn_get_qp_num(conn, &qp_num));
	assert_int_equal(qp_num, MOCK_QP_NUM);
	without_conn();
}

static void rpma_conn_get_cq__conn_is_NULL__E_INVAL(void **state)
{
	struct rpma_cq *cq = UNTOUCHED;

	(void)state;
	assert_error(rpma_conn_get_cq(NULL, &cq), RPMA_E_INVAL);
	assert_untouched(cq);
}

static void rpma_conn_get_cq__cq_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_conn();
	assert_error(rpma_conn_get_cq(conn, NULL), RPMA_E_INVAL);
	without_conn();
}

static void rpma_conn_get_cq__is_the_main_one(void **state)
{
	struct rpma_cq *cq = UNTOUCHED;
	int fd = -77;

	(void)state;
	with_conn();
	assert_ok(rpma_conn_get_cq(conn, &cq));
	assert_ok(rpma_cq_get_fd(cq, &fd));
	assert_int_equal(fd, mock_cq(0)->channel->fd);
	without_conn();
}

static void rpma_conn_get_rcq__conn_is_NULL__E_INVAL(void **state)
{
	struct rpma_cq *rcq = UNTOUCHED;

	(void)state;
	assert_error(rpma_conn_get_rcq(NULL, &rcq), RPMA_E_INVAL);
	assert_untouched(rcq);
}

static void rpma_conn_get_rcq__rcq_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_conn();
	assert_error(rpma_conn_get_rcq(conn, NULL), RPMA_E_INVAL);
	without_conn();
}

static void rpma_conn_get_rcq__none_is_NULL(void **state)
{
	struct rpma_cq *rcq = UNTOUCHED;

	(void)state;
	with_conn();
	assert_ok(rpma_conn_get_rcq(conn, &rcq));
	assert_null(rcq);
	without_conn();
}

static void rpma_conn_get_rcq__is_another_than_the_main_one(void **state)
{
	struct rpma_cq *cq = UNTOUCHED, *rcq = UNTOUCHED;
	int fd = -77, rcq_fd = -77;

	(void)state;
	cfg = cfg_new();
	assert_ok(rpma_conn_cfg_set_rcq_size(cfg, 1));
	peer = peer_new();
	conn = conn_new(peer, cfg);
	assert_ok(rpma_conn_get_cq(conn, &cq));
	assert_ok(rpma_conn_get_rcq(conn, &rcq));
	assert_non_null(rcq);
	assert_ptr_not_equal(rcq, cq);
	assert_ok(rpma_cq_get_fd(cq, &fd));
	assert_ok(rpma_cq_get_fd(rcq, &rcq_fd));
	assert_int_not_equal(fd, rcq_fd);
	without_conn();
	cfg_delete(cfg);
}

static void rpma_conn_apply_remote_peer_cfg__conn_is_NULL__E_INVAL(void **state)
{
	struct rpma_peer_cfg *pcfg = NULL;

	(void)state;
	assert_ok(rpma_peer_cfg_new(&pcfg));
	assert_error(rpma_conn_apply_remote_peer_cfg(NULL, pcfg), RPMA_E_INVAL);
	assert_ok(rpma_peer_cfg_delete(&pcfg));
}

static void rpma_conn_apply_remote_peer_cfg__pcfg_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_conn();
	assert_error(rpma_conn_apply_remote_peer_cfg(conn, NULL), RPMA_E_INVAL);
	without_conn();
}

static void rpma_conn_disconnect__conn_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_conn_disconnect(NULL), RPMA_E_INVAL);
}

static void rpma_conn_disconnect__disconnecting_fails__E_PROVIDER(void **state)
{
	(void)state;
	with_conn();
	mock_fail(MOCK_rdma_disconnect, 1, EINVAL);
	assert_error(rpma_conn_disconnect(conn), RPMA_E_PROVIDER);
	without_conn();
}

static void rpma_conn_disconnect__before_and_after_the_other_side(void **state)
{
	(void)state;
	with_conn();
	assert_ok(rpma_conn_disconnect(conn));
	mock_cm_event(id(), RDMA_CM_EVENT_DISCONNECTED, NULL, 0, 0);
	assert_ok(next());
	assert_int_equal(event, RPMA_CONN_CLOSED);
	assert_ok(rpma_conn_disconnect(conn));
	assert_int_equal(mock_calls(MOCK_rdma_disconnect), 2);
	without_conn();
}

static void rpma_conn_delete__conn_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_conn_delete(NULL), RPMA_E_INVAL);
}

static void rpma_conn_delete__twice_is_harmless(void **state)
{
	(void)state;
	with_conn();
	assert_ok(rpma_conn_delete(&conn));
	assert_null(conn);
	assert_ok(rpma_conn_delete(&conn));
	assert_null(conn);
	peer_delete(peer);
}

static void rpma_conn_delete__events_that_wait_are_dropped(void **state)
{
	(void)state;
	with_waiting_event();
	without_conn();
}

static int delete_conn(void)
{
	return rpma_conn_delete(&conn);
}

static void with_everything(void)
{
	cfg = cfg_new();
	assert_ok(rpma_conn_cfg_set_rcq_size(cfg, 1));
	peer = peer_new();
	conn = conn_new(peer, cfg);
	cfg_delete(cfg);
}

static void without_peer(void)
{
	peer_delete(peer);
}

static void conn_is_NULL(int answer)
{
	(void)answer;
	assert_null(conn);
}

static void rpma_conn_delete__goes_away_whichever_call_fails__E_PROVIDER(void **state)
{
	const struct walk_expect expect[] = {{MOCK_munmap, RPMA_E_INVAL}, WALK_END};
	const struct walk w = {.prepare = with_everything,
			       .act = delete_conn,
			       .check = conn_is_NULL,
			       .finish = without_peer,
			       .expect = expect,
			       .consumes = true,
			       .at_least = 5};

	(void)state;
	walk(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_conn_next_event__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_next_event__event_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_next_event__nothing_happened__E_NO_EVENT),
		RPMA_TEST(rpma_conn_next_event__no_events_can_be_got__E_PROVIDER),
		RPMA_TEST(rpma_conn_next_event__acknowledging_fails__E_PROVIDER),
		RPMA_TEST(rpma_conn_next_event__no_memory_for_private_data__E_NOMEM),
		RPMA_TEST(rpma_conn_next_event__an_event_that_means_nothing__E_UNKNOWN),
		RPMA_TEST(rpma_conn_next_event__tells_what_happened),
		RPMA_TEST(rpma_conn_next_event__leaks_nothing_whichever_call_fails),
		RPMA_TEST(rpma_conn_get_private_data__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_get_private_data__pdata_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_get_private_data__is_there_once_established),
		RPMA_TEST(rpma_conn_get_private_data__none_is_NULL_and_0),
		RPMA_TEST(rpma_conn_get_private_data__survives_events_with_data_of_their_own),
		RPMA_TEST(rpma_conn_get_private_data__every_length_arrives),
		RPMA_TEST(rpma_conn_get_event_fd__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_get_event_fd__fd_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_get_event_fd__is_the_event_channel_s),
		RPMA_TEST(rpma_conn_get_qp_num__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_get_qp_num__qp_num_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_get_qp_num__is_the_QP_s),
		RPMA_TEST(rpma_conn_get_cq__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_get_cq__cq_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_get_cq__is_the_main_one),
		RPMA_TEST(rpma_conn_get_rcq__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_get_rcq__rcq_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_get_rcq__none_is_NULL),
		RPMA_TEST(rpma_conn_get_rcq__is_another_than_the_main_one),
		RPMA_TEST(rpma_conn_apply_remote_peer_cfg__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_apply_remote_peer_cfg__pcfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_disconnect__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_disconnect__disconnecting_fails__E_PROVIDER),
		RPMA_TEST(rpma_conn_disconnect__before_and_after_the_other_side),
		RPMA_TEST(rpma_conn_delete__conn_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_delete__twice_is_harmless),
		RPMA_TEST(rpma_conn_delete__events_that_wait_are_dropped),
		RPMA_TEST(rpma_conn_delete__goes_away_whichever_call_fails__E_PROVIDER),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
