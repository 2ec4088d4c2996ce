/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: waiting, collecting, and the channel that two of them may share */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "walk.h"

static struct rpma_peer *peer;
static struct rpma_conn *conn;
static struct rpma_cq *cq, *rcq;

static void up(bool shared)
{
	struct rpma_conn_cfg *cfg = cfg_new();

	assert_ok(rpma_conn_cfg_set_rcq_size(cfg, 4));
	assert_ok(rpma_conn_cfg_set_compl_channel(cfg, shared));
	peer = peer_new();
	conn = conn_new(peer, cfg);
	assert_ok(rpma_conn_get_cq(conn, &cq));
	assert_ok(rpma_conn_get_rcq(conn, &rcq));
	cfg_delete(cfg);
}

static void separate(void)
{
	up(false);
}

static void shared(void)
{
	up(true);
}

static void down(void)
{
	conn_delete(conn);
	peer_delete(peer);
}

static void rpma_cq_get_fd__cq_is_NULL__E_INVAL(void **state)
{
	int fd = -77;

	(void)state;
	assert_error(rpma_cq_get_fd(NULL, &fd), RPMA_E_INVAL);
	assert_int_equal(fd, -77);
}

static void rpma_cq_get_fd__fd_is_NULL__E_INVAL(void **state)
{
	(void)state;
	separate();
	assert_error(rpma_cq_get_fd(cq, NULL), RPMA_E_INVAL);
	down();
}

static void rpma_cq_get_fd__is_the_channel_s(void **state)
{
	int fd = -77;

	(void)state;
	separate();
	assert_ok(rpma_cq_get_fd(cq, &fd));
	assert_int_equal(fd, mock_cq(0)->channel->fd);
	assert_ok(rpma_cq_get_fd(rcq, &fd));
	assert_int_equal(fd, mock_cq(1)->channel->fd);
	down();
}

static void rpma_cq_wait__cq_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_cq_wait(NULL), RPMA_E_INVAL);
}

static void rpma_cq_wait__nothing_completed__E_NO_COMPLETION(void **state)
{
	int fd;

	(void)state;
	separate();
	assert_ok(rpma_cq_get_fd(cq, &fd));
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_error(rpma_cq_wait(cq), RPMA_E_NO_COMPLETION);
	mock_cq_event(mock_cq(0));
	mock_fail(MOCK_ibv_get_cq_event, 1, EINTR);
	assert_error(rpma_cq_wait(cq), RPMA_E_NO_COMPLETION);
	down();
}

static void rpma_cq_wait__asking_for_the_next_fails__E_PROVIDER(void **state)
{
	(void)state;
	separate();
	mock_cq_event(mock_cq(0));
	mock_fail(MOCK_ibv_req_notify_cq, 1, EIO);
	assert_error(rpma_cq_wait(cq), RPMA_E_PROVIDER);
	down();
}

static void rpma_cq_wait__the_channel_is_shared__E_SHARED_CHANNEL(void **state)
{
	(void)state;
	shared();
	mock_cq_event(mock_cq(0));
	assert_error(rpma_cq_wait(cq), RPMA_E_SHARED_CHANNEL);
	assert_error(rpma_cq_wait(rcq), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(mock_calls(MOCK_ibv_get_cq_event), 0);
	down();
}

/* Asked for before it waits, the next event cannot be missed. */
static void rpma_cq_wait__acknowledges_and_asks_for_the_next(void **state)
{
	unsigned asked;

	(void)state;
	separate();
	asked = mock_calls(MOCK_ibv_req_notify_cq);
	/* both CQs asked when they were made */
	assert_int_equal(asked, 2);
	for (unsigned i = 1; i <= 3; i++) {
		mock_cq_event(mock_cq(0));
		assert_ok(rpma_cq_wait(cq));
		assert_int_equal(mock_calls(MOCK_ibv_req_notify_cq), asked + i);
	}
	/* that every event was acknowledged is seen when the CQ is destroyed */
	down();
}

static int wait_for(struct rpma_cq **who, bool *is_rcq)
{
	*who = UNTOUCHED;
	return rpma_conn_wait(conn, RPMA_W_WAIT_FOR_COMPLETION, who, is_rcq);
}

static void rpma_conn_wait__conn_is_NULL__E_INVAL(void **state)
{
	struct rpma_cq *who;
	bool is_rcq = false;

	(void)state;
	conn = NULL;
	assert_error(wait_for(&who, &is_rcq), RPMA_E_INVAL);
	assert_untouched(who);
}

static void rpma_conn_wait__cq_is_NULL__E_INVAL(void **state)
{
	bool is_rcq = false;

	(void)state;
	shared();
	assert_error(rpma_conn_wait(conn, 0, NULL, &is_rcq), RPMA_E_INVAL);
	down();
}

static void rpma_conn_wait__the_channels_are_separate__E_NOT_SHARED_CHNL(void **state)
{
	struct rpma_cq *who;

	(void)state;
	separate();
	mock_cq_event(mock_cq(0));
	assert_error(wait_for(&who, NULL), RPMA_E_NOT_SHARED_CHNL);
	assert_untouched(who);
	assert_int_equal(mock_calls(MOCK_ibv_get_cq_event), 0);
	down();
}

static void rpma_conn_wait__nothing_completed__E_NO_COMPLETION(void **state)
{
	struct rpma_cq *who;
	int fd;

	(void)state;
	shared();
	assert_ok(rpma_conn_get_compl_fd(conn, &fd));
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_error(wait_for(&who, NULL), RPMA_E_NO_COMPLETION);
	assert_untouched(who);
	down();
}

static void rpma_conn_wait__a_CQ_of_somebody_else__E_UNKNOWN(void **state)
{
	struct rpma_cq *who;
	struct ibv_cq *stranger;

	(void)state;
	shared();
	stranger = ibv_create_cq(mock_context(), 1, NULL, mock_cq(0)->channel, 0);
	mock_cq_event(stranger);
	assert_error(wait_for(&who, NULL), RPMA_E_UNKNOWN);
	assert_untouched(who);
	/* its event was acknowledged nevertheless, or this would wait */
	assert_int_equal(ibv_destroy_cq(stranger), 0);
	down();
}

static void rpma_conn_wait__asking_for_the_next_fails__E_PROVIDER(void **state)
{
	struct rpma_cq *who;

	(void)state;
	shared();
	mock_cq_event(mock_cq(1));
	mock_fail(MOCK_ibv_req_notify_cq, 1, EIO);
	assert_error(wait_for(&who, NULL), RPMA_E_PROVIDER);
	assert_untouched(who);
	down();
}

static void rpma_conn_wait__tells_which_CQ_it_was(void **state)
{
	struct rpma_cq *who;
	bool is_rcq = true;

	(void)state;
	shared();
	mock_cq_event(mock_cq(0));
	mock_cq_event(mock_cq(1));
	assert_ok(wait_for(&who, &is_rcq));
	assert_ptr_equal(who, cq);
	assert_false(is_rcq);
	assert_ok(wait_for(&who, &is_rcq));
	assert_ptr_equal(who, rcq);
	assert_true(is_rcq);
	down();
}

static void rpma_conn_wait__is_rcq_may_be_NULL(void **state)
{
	struct rpma_cq *who;

	(void)state;
	shared();
	mock_cq_event(mock_cq(1));
	assert_ok(wait_for(&who, NULL));
	assert_ptr_equal(who, rcq);
	down();
}

static void rpma_conn_wait__works_without_a_receive_CQ(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();
	struct rpma_cq *who;
	bool is_rcq = true;

	(void)state;
	assert_ok(rpma_conn_cfg_set_compl_channel(cfg, true));
	peer = peer_new();
	conn = conn_new(peer, cfg);
	cfg_delete(cfg);
	assert_ok(rpma_conn_get_cq(conn, &cq));
	mock_cq_event(mock_cq(0));
	assert_ok(wait_for(&who, &is_rcq));
	assert_ptr_equal(who, cq);
	assert_false(is_rcq);
	down();
}

static void rpma_conn_get_compl_fd__conn_is_NULL__E_INVAL(void **state)
{
	int fd = -77;

	(void)state;
	assert_error(rpma_conn_get_compl_fd(NULL, &fd), RPMA_E_INVAL);
	assert_int_equal(fd, -77);
}

static void rpma_conn_get_compl_fd__fd_is_NULL__E_INVAL(void **state)
{
	(void)state;
	shared();
	assert_error(rpma_conn_get_compl_fd(conn, NULL), RPMA_E_INVAL);
	down();
}

static void rpma_conn_get_compl_fd__the_channels_are_separate__E_NOT_SHARED_CHNL(void **state)
{
	int fd = -77;

	(void)state;
	separate();
	assert_error(rpma_conn_get_compl_fd(conn, &fd), RPMA_E_NOT_SHARED_CHNL);
	assert_int_equal(fd, -77);
	down();
}

static void rpma_conn_get_compl_fd__is_the_shared_channel_s(void **state)
{
	int fd = -77;

	(void)state;
	shared();
	assert_ok(rpma_conn_get_compl_fd(conn, &fd));
	assert_int_equal(fd, mock_cq(0)->channel->fd);
	down();
}

static struct ibv_wc wc[4];

static int get(int count, int *got)
{
	memset(wc, 0, sizeof(wc));
	return rpma_cq_get_wc(cq, count, wc, got);
}

static void ready(unsigned count)
{
	mock_device()->wc_ready = count;
	for (unsigned i = 0; i < count; i++)
		mock_device()->wc[i] = (struct ibv_wc){
			.wr_id = 100 + i, .status = IBV_WC_SUCCESS, .opcode = IBV_WC_RDMA_READ};
}

static void rpma_cq_get_wc__cq_is_NULL__E_INVAL(void **state)
{
	int got = -77;

	(void)state;
	cq = NULL;
	assert_error(get(1, &got), RPMA_E_INVAL);
	assert_int_equal(got, -77);
}

static void rpma_cq_get_wc__wc_is_NULL__E_INVAL(void **state)
{
	int got = -77;

	(void)state;
	separate();
	ready(1);
	assert_error(rpma_cq_get_wc(cq, 1, NULL, &got), RPMA_E_INVAL);
	assert_int_equal(got, -77);
	down();
}

static void rpma_cq_get_wc__no_room__E_INVAL(void **state)
{
	int got = -77;

	(void)state;
	separate();
	ready(1);
	assert_error(get(0, &got), RPMA_E_INVAL);
	assert_error(get(-1, &got), RPMA_E_INVAL);
	assert_error(get(INT32_MIN, &got), RPMA_E_INVAL);
	assert_int_equal(got, -77);
	down();
}

static void rpma_cq_get_wc__several_but_no_count__E_INVAL(void **state)
{
	(void)state;
	separate();
	ready(2);
	assert_error(get(2, NULL), RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_poll_cq), 0);
	down();
}

static void rpma_cq_get_wc__nothing_completed__E_NO_COMPLETION(void **state)
{
	int got = -77;

	(void)state;
	separate();
	assert_error(get(4, &got), RPMA_E_NO_COMPLETION);
	assert_int_equal(got, -77);
	down();
}

static void rpma_cq_get_wc__polling_fails__E_PROVIDER(void **state)
{
	int got = -77;

	(void)state;
	separate();
	mock_fail(MOCK_ibv_poll_cq, 1, EIO);
	assert_error(get(1, &got), RPMA_E_PROVIDER);
	assert_int_equal(got, -77);
	down();
}

static void rpma_cq_get_wc__more_than_there_was_room_for__E_UNKNOWN(void **state)
{
	int got = -77;

	(void)state;
	separate();
	mock_device()->poll_result = 3;
	assert_error(get(2, &got), RPMA_E_UNKNOWN);
	assert_int_equal(got, -77);
	down();
}

static void rpma_cq_get_wc__one_needs_no_count(void **state)
{
	(void)state;
	separate();
	ready(2);
	assert_ok(get(1, NULL));
	assert_int_equal(wc[0].wr_id, 100);
	assert_ok(get(1, NULL));
	assert_int_equal(wc[0].wr_id, 101);
	assert_error(get(1, NULL), RPMA_E_NO_COMPLETION);
	down();
}

static void rpma_cq_get_wc__gives_as_many_as_there_are(void **state)
{
	int got = -77;

	(void)state;
	separate();
	ready(3);
	assert_ok(get(4, &got));
	assert_int_equal(got, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(wc[i].wr_id, 100 + i);
	down();
}

static void rpma_cq_get_wc__gives_no_more_than_asked_for(void **state)
{
	int got = -77;

	(void)state;
	separate();
	ready(4);
	assert_ok(get(3, &got));
	assert_int_equal(got, 3);
	assert_ok(get(3, &got));
	assert_int_equal(got, 1);
	assert_int_equal(wc[0].wr_id, 103);
	down();
}

/* A failed operation is a completion like any other; its status tells. */
static void rpma_cq_get_wc__gives_failed_operations_too(void **state)
{
	int got = -77;

	(void)state;
	separate();
	ready(1);
	mock_device()->wc[0].status = IBV_WC_REM_ACCESS_ERR;
	assert_ok(get(1, &got));
	assert_int_equal(got, 1);
	assert_int_equal(wc[0].status, IBV_WC_REM_ACCESS_ERR);
	down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_cq_get_fd__cq_is_NULL__E_INVAL),
		RPMA_TEST(rpma_cq_get_fd__fd_is_NULL__E_INVAL),
		RPMA_TEST(rpma_cq_get_fd__is_the_channel_s),
		RPMA_TEST(rpma_cq_wait__cq_is_NULL__E_INVAL),
		RPMA_TEST(rpma_cq_wait__nothing_completed__E_NO_COMPLETION),
		RPMA_TEST(rpma_cq_wait__asking_for_the_next_fails__E_PROVIDER),
		RPMA_TEST(rpma_cq_wait__the_channel_is_shared__E_SHARED_CHANNEL),
		RPMA_TEST(rpma_cq_wait__acknowledges_and_asks_for_the_next),
		RPMA_TEST(rpma_conn_wait__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_wait__cq_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_wait__the_channels_are_separate__E_NOT_SHARED_CHNL),
		RPMA_TEST(rpma_conn_wait__nothing_completed__E_NO_COMPLETION),
		RPMA_TEST(rpma_conn_wait__a_CQ_of_somebody_else__E_UNKNOWN),
		RPMA_TEST(rpma_conn_wait__asking_for_the_next_fails__E_PROVIDER),
		RPMA_TEST(rpma_conn_wait__tells_which_CQ_it_was),
		RPMA_TEST(rpma_conn_wait__is_rcq_may_be_NULL),
		RPMA_TEST(rpma_conn_wait__works_without_a_receive_CQ),
		RPMA_TEST(rpma_conn_get_compl_fd__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_get_compl_fd__fd_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_get_compl_fd__the_channels_are_separate__E_NOT_SHARED_CHNL),
		RPMA_TEST(rpma_conn_get_compl_fd__is_the_shared_channel_s),
		RPMA_TEST(rpma_cq_get_wc__cq_is_NULL__E_INVAL),
		RPMA_TEST(rpma_cq_get_wc__wc_is_NULL__E_INVAL),
		RPMA_TEST(rpma_cq_get_wc__no_room__E_INVAL),
		RPMA_TEST(rpma_cq_get_wc__several_but_no_count__E_INVAL),
		RPMA_TEST(rpma_cq_get_wc__nothing_completed__E_NO_COMPLETION),
		RPMA_TEST(rpma_cq_get_wc__polling_fails__E_PROVIDER),
		RPMA_TEST(rpma_cq_get_wc__more_than_there_was_room_for__E_UNKNOWN),
		RPMA_TEST(rpma_cq_get_wc__one_needs_no_count),
		RPMA_TEST(rpma_cq_get_wc__gives_as_many_as_there_are),
		RPMA_TEST(rpma_cq_get_wc__gives_no_more_than_asked_for),
		RPMA_TEST(rpma_cq_get_wc__gives_failed_operations_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
