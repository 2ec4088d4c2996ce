/* SPDX-License-Identifier: BSD-3-Clause */
/* Beyond librpma 1.3.0: flush modes, features, limits */

#include <errno.h>

#include "walk.h"

static struct link l;
static struct rpma_peer *peer;

static enum rpma_flush_mode mode_of(const struct rpma_conn *conn)
{
	enum rpma_flush_mode mode = RPMA_FLUSH_MODE_AUTO;

	assert_ok(rpma_conn_get_flush_mode(conn, &mode));
	return mode;
}

static void rpma_conn_set_flush_mode__conn_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_conn_set_flush_mode(NULL, RPMA_FLUSH_MODE_AUTO), RPMA_E_INVAL);
}

static void rpma_conn_set_flush_mode__unknown_mode__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	assert_error(rpma_conn_set_flush_mode(l.conn, (enum rpma_flush_mode)3), RPMA_E_INVAL);
	assert_error(rpma_conn_set_flush_mode(l.conn, (enum rpma_flush_mode) - 1), RPMA_E_INVAL);
	link_down(&l);
}

static void rpma_conn_set_flush_mode__native_where_there_is_none__E_NOSUPP(void **state)
{
	(void)state;
	link_up(&l);
	assert_error(rpma_conn_set_flush_mode(l.conn, RPMA_FLUSH_MODE_NATIVE), RPMA_E_NOSUPP);
	assert_int_equal(mode_of(l.conn), RPMA_FLUSH_MODE_READ);
	link_down(&l);
}

static void rpma_conn_set_flush_mode__auto_is_read_where_there_is_no_native(void **state)
{
	(void)state;
	link_up(&l);
	assert_int_equal(mode_of(l.conn), RPMA_FLUSH_MODE_READ);
	assert_ok(rpma_conn_set_flush_mode(l.conn, RPMA_FLUSH_MODE_READ));
	assert_int_equal(mode_of(l.conn), RPMA_FLUSH_MODE_READ);
	assert_ok(rpma_conn_set_flush_mode(l.conn, RPMA_FLUSH_MODE_AUTO));
	assert_int_equal(mode_of(l.conn), RPMA_FLUSH_MODE_READ);
	link_down(&l);
}

static void rpma_conn_get_flush_mode__conn_is_NULL__E_INVAL(void **state)
{
	enum rpma_flush_mode mode = RPMA_FLUSH_MODE_AUTO;

	(void)state;
	assert_error(rpma_conn_get_flush_mode(NULL, &mode), RPMA_E_INVAL);
	assert_int_equal(mode, RPMA_FLUSH_MODE_AUTO);
}

static void rpma_conn_get_flush_mode__mode_is_NULL__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	assert_error(rpma_conn_get_flush_mode(l.conn, NULL), RPMA_E_INVAL);
	link_down(&l);
}

static void rpma_peer_get_features__peer_is_NULL__E_INVAL(void **state)
{
	uint32_t features = 77;

	(void)state;
	assert_error(rpma_peer_get_features(NULL, &features), RPMA_E_INVAL);
	assert_int_equal(features, 77);
}

static void rpma_peer_get_features__features_is_NULL__E_INVAL(void **state)
{
	(void)state;
	peer = peer_new();
	assert_error(rpma_peer_get_features(peer, NULL), RPMA_E_INVAL);
	peer_delete(peer);
}

static uint32_t features_of_a_new_peer(void)
{
	uint32_t features = 77;

	peer = peer_new();
	assert_ok(rpma_peer_get_features(peer, &features));
	peer_delete(peer);
	return features;
}

static void rpma_peer_get_features__tells_of_on_demand_paging(void **state)
{
	(void)state;
	assert_int_equal(features_of_a_new_peer(), 0);
	mock_device()->odp = true;
	assert_int_equal(features_of_a_new_peer(), RPMA_FEATURE_ODP);
}

static void rpma_peer_get_limits__peer_is_NULL__E_INVAL(void **state)
{
	struct rpma_limits limits = {.sq_size = 77};

	(void)state;
	assert_error(rpma_peer_get_limits(NULL, &limits), RPMA_E_INVAL);
	assert_int_equal(limits.sq_size, 77);
}

static void rpma_peer_get_limits__limits_is_NULL__E_INVAL(void **state)
{
	(void)state;
	peer = peer_new();
	assert_error(rpma_peer_get_limits(peer, NULL), RPMA_E_INVAL);
	peer_delete(peer);
}

static void rpma_peer_get_limits__a_port_cannot_be_asked__E_PROVIDER(void **state)
{
	struct rpma_limits limits = {.sq_size = 77};

	(void)state;
	peer = peer_new();
	for (unsigned port = 1; port <= 2; port++) {
		mock_fail(MOCK_ibv_query_port, port, EIO);
		assert_error(rpma_peer_get_limits(peer, &limits), RPMA_E_PROVIDER);
		assert_int_equal(limits.sq_size, 77);
	}
	peer_delete(peer);
}

static void rpma_peer_get_limits__gives_the_device_s_and_its_weakest_port_s(void **state)
{
	struct rpma_limits limits;

	(void)state;
	peer = peer_new();
	assert_ok(rpma_peer_get_limits(peer, &limits));
	assert_int_equal(limits.sq_size, 1000);
	assert_int_equal(limits.rq_size, 1000);
	assert_int_equal(limits.cq_size, 2000);
	assert_int_equal(limits.srq_size, 3000);
	assert_int_equal(limits.msg_size, 1 << 30);
	mock_device()->port[1].max_msg_sz = 4096;
	assert_ok(rpma_peer_get_limits(peer, &limits));
	assert_int_equal(limits.msg_size, 4096);
	peer_delete(peer);
}

static void rpma_conn_get_limits__conn_is_NULL__E_INVAL(void **state)
{
	struct rpma_limits limits = {.sq_size = 77};

	(void)state;
	assert_error(rpma_conn_get_limits(NULL, &limits), RPMA_E_INVAL);
	assert_int_equal(limits.sq_size, 77);
}

static void rpma_conn_get_limits__limits_is_NULL__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	assert_error(rpma_conn_get_limits(l.conn, NULL), RPMA_E_INVAL);
	link_down(&l);
}

static void rpma_conn_get_limits__the_port_cannot_be_asked__E_PROVIDER(void **state)
{
	struct rpma_limits limits = {.sq_size = 77};

	(void)state;
	link_up(&l);
	mock_fail(MOCK_ibv_query_port, 1, EIO);
	assert_error(rpma_conn_get_limits(l.conn, &limits), RPMA_E_PROVIDER);
	assert_int_equal(limits.sq_size, 77);
	link_down(&l);
}

/* A device may give more than was asked for. */
static void rpma_conn_get_limits__gives_what_the_connection_was_given(void **state)
{
	struct rpma_limits limits;

	(void)state;
	mock_device()->qp_extra.max_send_wr = 6;
	mock_device()->qp_extra.max_recv_wr = 7;
	link_up(&l);
	assert_ok(rpma_conn_get_limits(l.conn, &limits));
	assert_int_equal(limits.sq_size, 16);
	assert_int_equal(limits.rq_size, 17);
	assert_int_equal(limits.cq_size, 10);
	assert_int_equal(limits.srq_size, 0);
	assert_int_equal(limits.msg_size, 1 << 30);
	link_down(&l);
}

static void rpma_conn_get_limits__no_receive_queue_beside_a_shared_one(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();
	struct rpma_srq *srq = NULL;
	struct rpma_limits limits;
	struct rpma_conn *conn;

	(void)state;
	peer = peer_new();
	assert_ok(rpma_srq_new(peer, NULL, &srq));
	assert_ok(rpma_conn_cfg_set_srq(cfg, srq));
	conn = conn_new(peer, cfg);
	assert_ok(rpma_conn_get_limits(conn, &limits));
	assert_int_equal(limits.rq_size, 0);
	conn_delete(conn);
	assert_ok(rpma_srq_delete(&srq));
	cfg_delete(cfg);
	peer_delete(peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_conn_set_flush_mode__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_set_flush_mode__unknown_mode__E_INVAL),
		RPMA_TEST(rpma_conn_set_flush_mode__native_where_there_is_none__E_NOSUPP),
		RPMA_TEST(rpma_conn_set_flush_mode__auto_is_read_where_there_is_no_native),
		RPMA_TEST(rpma_conn_get_flush_mode__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_get_flush_mode__mode_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_get_features__peer_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_get_features__features_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_get_features__tells_of_on_demand_paging),
		RPMA_TEST(rpma_peer_get_limits__peer_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_get_limits__limits_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_get_limits__a_port_cannot_be_asked__E_PROVIDER),
		RPMA_TEST(rpma_peer_get_limits__gives_the_device_s_and_its_weakest_port_s),
		RPMA_TEST(rpma_conn_get_limits__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_get_limits__limits_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_get_limits__the_port_cannot_be_asked__E_PROVIDER),
		RPMA_TEST(rpma_conn_get_limits__gives_what_the_connection_was_given),
		RPMA_TEST(rpma_conn_get_limits__no_receive_queue_beside_a_shared_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
