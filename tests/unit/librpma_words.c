/* SPDX-License-Identifier: BSD-3-Clause */
/* What the log says of the mistakes that are made most: one line, with what helps */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "walk.h"

static unsigned errors;
static char text[1024];

static void keep(enum rpma_log_level level, const char *file_name, const int line_no,
		 const char *function_name, const char *format, ...)
{
	va_list args;

	(void)file_name;
	(void)line_no;
	(void)function_name;
	if (level > RPMA_LOG_LEVEL_ERROR)
		return;
	errors++;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
}

static int words_setup(void **state)
{
	int ret = unit_setup(state);

	errors = 0;
	rpma_log_set_function(keep);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG);
	return ret;
}

static int words_teardown(void **state)
{
	rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION);
	return unit_teardown(state);
}

/* One error was logged, in one line, and it has these words. */
static void said(const char *const *words)
{
	assert_int_equal(errors, 1);
	assert_null(strchr(text, '\n'));
	for (; *words; words++)
		if (!strstr(text, *words))
			fail_msg("no \"%s\" in \"%s\"", *words, text);
}

#define assert_said(...) said((const char *const[]){__VA_ARGS__, NULL})

static void rpma_conn_req_new__the_log_names_the_peer_s_and_the_address_s_device(void **state)
{
	struct rpma_conn_req *req = UNTOUCHED;
	struct rpma_peer *peer = peer_new();

	(void)state;
	mock_device()->transport = IBV_TRANSPORT_IWARP;
	mock_fail(MOCK_rdma_create_qp, 1, ENODEV);
	assert_error(rpma_conn_req_new(peer, "192.0.2.1", "7204", NULL, &req), RPMA_E_PROVIDER);
	assert_said("fake_ib", "fake_iwarp", "rpma_utils_get_ibv_context");
	mock_device()->transport = IBV_TRANSPORT_IB;
	peer_delete(peer);
}

static void rpma_conn_req_new__the_log_tells_how_large_a_queue_can_be(void **state)
{
	struct rpma_conn_req *req = UNTOUCHED;
	struct rpma_conn_cfg *cfg = cfg_new();
	struct rpma_peer *peer = peer_new();

	(void)state;
	assert_ok(rpma_conn_cfg_set_sq_size(cfg, 54321));
	mock_fail(MOCK_rdma_create_qp, 1, ENOMEM);
	assert_error(rpma_conn_req_new(peer, "192.0.2.1", "7204", cfg, &req), RPMA_E_PROVIDER);
	assert_said("54321", "1000");
	peer_delete(peer);
	cfg_delete(cfg);
}

static void rpma_conn_req_new__the_log_names_address_port_and_reason(void **state)
{
	struct rpma_conn_req *req = UNTOUCHED;
	struct rpma_peer *peer = peer_new();

	(void)state;
	mock_fail(MOCK_rdma_resolve_addr, 1, EHOSTUNREACH);
	assert_error(rpma_conn_req_new(peer, "192.0.2.1", "7204", NULL, &req), RPMA_E_PROVIDER);
	assert_said("192.0.2.1", "7204", strerror(EHOSTUNREACH));
	peer_delete(peer);
}

static void rpma_ep_listen__the_log_names_address_port_and_reason(void **state)
{
	struct rpma_ep *ep = UNTOUCHED;
	struct rpma_peer *peer = peer_new();

	(void)state;
	mock_fail(MOCK_rdma_bind_addr, 1, EADDRINUSE);
	assert_error(rpma_ep_listen(peer, "192.0.2.1", "7204", &ep), RPMA_E_PROVIDER);
	assert_said("192.0.2.1", "7204", strerror(EADDRINUSE));
	peer_delete(peer);
}

static void rpma_ep_listen__the_log_tells_the_largest_port(void **state)
{
	struct rpma_ep *ep = UNTOUCHED;
	struct rpma_peer *peer = peer_new();

	(void)state;
	assert_error(rpma_ep_listen(peer, "192.0.2.1", "72040", &ep), RPMA_E_INVAL);
	assert_said("72040", "65535");
	peer_delete(peer);
}

static void rpma_conn_req_connect__the_log_tells_how_much_private_data_fits(void **state)
{
	struct rpma_peer *peer = peer_new();
	struct rpma_conn_req *req = outgoing_new(peer, NULL);
	struct rpma_conn_private_data pdata = {region, 57};
	struct rpma_conn *conn = UNTOUCHED;

	(void)state;
	assert_error(rpma_conn_req_connect(&req, &pdata, &conn), RPMA_E_INVAL);
	assert_said("57", "56");
	peer_delete(peer);
}

static void rpma_mr_reg__the_log_tells_what_to_do_about_locked_memory(void **state)
{
	struct rpma_mr_local *mr = UNTOUCHED;
	struct rpma_peer *peer = peer_new();

	(void)state;
	mock_fail(MOCK_ibv_reg_mr, 1, ENOMEM);
	assert_error(rpma_mr_reg(peer, region, REGION, USAGE_ALL, &mr), RPMA_E_PROVIDER);
	assert_said("4096", strerror(ENOMEM), "ulimit -l");
	peer_delete(peer);
}

static void rpma_mr_reg__the_log_tells_why_memory_cannot_be_pinned(void **state)
{
	struct rpma_mr_local *mr = UNTOUCHED;
	struct rpma_peer *peer = peer_new();

	(void)state;
	mock_device()->reg_mr_errno_without_odp = EOPNOTSUPP;
	assert_error(rpma_mr_reg(peer, region, REGION, USAGE_ALL, &mr), RPMA_E_PROVIDER);
	assert_said("fsdax", "on-demand paging");
	peer_delete(peer);
}

/* What the device has is not what is missing. */
static void rpma_mr_reg__the_log_blames_no_paging_that_is_there(void **state)
{
	struct rpma_mr_local *mr = UNTOUCHED;
	struct rpma_peer *peer;

	(void)state;
	mock_device()->odp = true;
	mock_device()->reg_mr_errno_without_odp = EOPNOTSUPP;
	peer = peer_new();
	mock_fail(MOCK_ibv_reg_mr, 2, EOPNOTSUPP);
	assert_error(rpma_mr_reg(peer, region, REGION, USAGE_ALL, &mr), RPMA_E_PROVIDER);
	assert_said("ibv_reg_mr", strerror(EOPNOTSUPP));
	assert_null(strstr(text, "needs a device with on-demand paging"));
	peer_delete(peer);
}

static void rpma_flush__the_log_tells_which_side_has_to_declare_what(void **state)
{
	struct link l;

	(void)state;
	link_up(&l);
	assert_error(rpma_flush(l.conn, l.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT,
				RPMA_F_COMPLETION_ALWAYS, NULL),
		     RPMA_E_NOSUPP);
	assert_said("direct write to PMem", "rpma_conn_apply_remote_peer_cfg");
	link_down(&l);
}

static void rpma_mr_remote_from_descriptor__the_log_tells_what_is_wrong(void **state)
{
	struct rpma_mr_remote *mr = UNTOUCHED;
	uint8_t desc[21];

	(void)state;
	descriptor(desc, 0x1234, UINT64_MAX, REMOTE_RKEY, USAGE_ALL);
	assert_error(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &mr), RPMA_E_INVAL);
	assert_said("0x1234", "0xffffffffffffffff");
}

static void rpma_peer_cfg_from_descriptor__the_log_tells_what_is_known(void **state)
{
	struct rpma_peer_cfg *pcfg = UNTOUCHED;
	uint8_t desc = 200;

	(void)state;
	assert_error(rpma_peer_cfg_from_descriptor(&desc, 1, &pcfg), RPMA_E_INVAL);
	assert_said("200", "0 or 1");
}

#undef RPMA_TEST
#define RPMA_TEST(name) cmocka_unit_test_setup_teardown(name, words_setup, words_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_conn_req_new__the_log_names_the_peer_s_and_the_address_s_device),
		RPMA_TEST(rpma_conn_req_new__the_log_tells_how_large_a_queue_can_be),
		RPMA_TEST(rpma_conn_req_new__the_log_names_address_port_and_reason),
		RPMA_TEST(rpma_ep_listen__the_log_names_address_port_and_reason),
		RPMA_TEST(rpma_ep_listen__the_log_tells_the_largest_port),
		RPMA_TEST(rpma_conn_req_connect__the_log_tells_how_much_private_data_fits),
		RPMA_TEST(rpma_mr_reg__the_log_tells_what_to_do_about_locked_memory),
		RPMA_TEST(rpma_mr_reg__the_log_tells_why_memory_cannot_be_pinned),
		RPMA_TEST(rpma_mr_reg__the_log_blames_no_paging_that_is_there),
		RPMA_TEST(rpma_flush__the_log_tells_which_side_has_to_declare_what),
		RPMA_TEST(rpma_mr_remote_from_descriptor__the_log_tells_what_is_wrong),
		RPMA_TEST(rpma_peer_cfg_from_descriptor__the_log_tells_what_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
