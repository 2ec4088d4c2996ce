/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices by address, and words for numbers */

#include <errno.h>
#include <string.h>

#include "walk.h"

static void rpma_err_2str__every_error_has_words_of_its_own(void **state)
{
	const char *words[11];

	(void)state;
	words[10] = rpma_err_2str(0);
	for (int i = 0; i < 10; i++)
		words[i] = rpma_err_2str(RPMA_E_UNKNOWN - i);
	for (int i = 0; i < 11; i++) {
		assert_non_null(words[i]);
		assert_true(strlen(words[i]) > 3);
		for (int other = 0; other < i; other++)
			assert_string_not_equal(words[i], words[other]);
	}
}

static void rpma_err_2str__any_number_has_words(void **state)
{
	const int numbers[] = {
		1, -1, INT32_MIN, INT32_MAX, RPMA_E_NOT_SHARED_CHNL - 1, RPMA_E_UNKNOWN + 1};

	(void)state;
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_string_equal(rpma_err_2str(numbers[i]), rpma_err_2str(RPMA_E_UNKNOWN));
}

static void rpma_utils_conn_event_2str__every_event_has_words_of_its_own(void **state)
{
	(void)state;
	for (int event = RPMA_CONN_UNDEFINED; event <= RPMA_CONN_UNREACHABLE; event++) {
		const char *words = rpma_utils_conn_event_2str(event);

		assert_non_null(words);
		for (int other = RPMA_CONN_UNDEFINED; other < event; other++)
			assert_string_not_equal(words, rpma_utils_conn_event_2str(other));
	}
}

static void rpma_utils_conn_event_2str__any_number_has_words(void **state)
{
	(void)state;
	assert_non_null(rpma_utils_conn_event_2str((enum rpma_conn_event)77));
	assert_non_null(rpma_utils_conn_event_2str((enum rpma_conn_event) - 77));
}

static struct ibv_context *found;

static int find(enum rpma_util_ibv_context_type type)
{
	found = UNTOUCHED;
	return rpma_utils_get_ibv_context("192.0.2.1", type, &found);
}

static void rpma_utils_get_ibv_context__addr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	found = UNTOUCHED;
	assert_error(rpma_utils_get_ibv_context(NULL, RPMA_UTIL_IBV_CONTEXT_LOCAL, &found),
		     RPMA_E_INVAL);
	assert_untouched(found);
}

static void rpma_utils_get_ibv_context__ibv_ctx_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_utils_get_ibv_context("::1", RPMA_UTIL_IBV_CONTEXT_LOCAL, NULL),
		     RPMA_E_INVAL);
}

static void rpma_utils_get_ibv_context__unknown_type__E_INVAL(void **state)
{
	(void)state;
	assert_error(find((enum rpma_util_ibv_context_type)2), RPMA_E_INVAL);
	assert_untouched(found);
	assert_error(find((enum rpma_util_ibv_context_type) - 1), RPMA_E_INVAL);
	assert_untouched(found);
}

static void rpma_utils_get_ibv_context__the_address_means_nothing__E_PROVIDER(void **state)
{
	(void)state;
	mock_fail(MOCK_rdma_getaddrinfo, 1, EADDRNOTAVAIL);
	assert_error(find(RPMA_UTIL_IBV_CONTEXT_LOCAL), RPMA_E_PROVIDER);
	assert_untouched(found);
}

static void rpma_utils_get_ibv_context__not_a_local_address__E_PROVIDER(void **state)
{
	(void)state;
	mock_fail(MOCK_rdma_bind_addr, 1, EADDRNOTAVAIL);
	assert_error(find(RPMA_UTIL_IBV_CONTEXT_LOCAL), RPMA_E_PROVIDER);
	assert_untouched(found);
}

static void rpma_utils_get_ibv_context__no_way_there__E_PROVIDER(void **state)
{
	(void)state;
	mock_fail(MOCK_rdma_resolve_addr, 1, EHOSTUNREACH);
	assert_error(find(RPMA_UTIL_IBV_CONTEXT_REMOTE), RPMA_E_PROVIDER);
	assert_untouched(found);
}

/* 127.0.0.1 can be bound, but belongs to no RDMA device: there is no context then. */
static void rpma_utils_get_ibv_context__the_address_has_no_device__E_PROVIDER(void **state)
{
	(void)state;
	mock_device()->missing = true;
	assert_error(find(RPMA_UTIL_IBV_CONTEXT_LOCAL), RPMA_E_PROVIDER);
	assert_untouched(found);
}

static void rpma_utils_get_ibv_context__no_memory__E_NOMEM(void **state)
{
	(void)state;
	mock_fail(MOCK_rdma_create_id, 1, ENOMEM);
	assert_error(find(RPMA_UTIL_IBV_CONTEXT_LOCAL), RPMA_E_NOMEM);
	assert_untouched(found);
}

static void rpma_utils_get_ibv_context__finds_the_device_of_a_local_address(void **state)
{
	(void)state;
	assert_ok(find(RPMA_UTIL_IBV_CONTEXT_LOCAL));
	assert_ptr_equal(found, mock_context());
	assert_true(mock_seen()->addrinfo.flags & RAI_PASSIVE);
	assert_int_equal(mock_calls(MOCK_rdma_bind_addr), 1);
	assert_string_equal(mock_seen()->addrinfo.node, "192.0.2.1");
}

static void rpma_utils_get_ibv_context__finds_the_device_that_reaches_an_address(void **state)
{
	(void)state;
	assert_ok(find(RPMA_UTIL_IBV_CONTEXT_REMOTE));
	assert_ptr_equal(found, mock_context());
	assert_false(mock_seen()->addrinfo.flags & RAI_PASSIVE);
	assert_int_equal(mock_calls(MOCK_rdma_resolve_addr), 1);
	assert_int_equal(mock_seen()->resolve_timeout_ms[0], RPMA_DEFAULT_TIMEOUT_MS);
}

static int find_local(void)
{
	return find(RPMA_UTIL_IBV_CONTEXT_LOCAL);
}

static int find_remote(void)
{
	return find(RPMA_UTIL_IBV_CONTEXT_REMOTE);
}

static void found_untouched(int answer)
{
	(void)answer;
	assert_untouched(found);
}

static void rpma_utils_get_ibv_context__leaks_nothing_whichever_call_fails(void **state)
{
	/* the context is there; that the id could not be destroyed spoils nothing */
	const struct walk_expect expect[] = {{MOCK_rdma_destroy_id, 0}, WALK_END};
	struct walk w = {
		.act = find_local, .check = found_untouched, .expect = expect, .at_least = 3};

	(void)state;
	walk(&w);
	w.act = find_remote;
	walk(&w);
}

static void rpma_utils_ibv_context_is_odp_capable__ibv_ctx_is_NULL__E_INVAL(void **state)
{
	int capable = 77;

	(void)state;
	assert_error(rpma_utils_ibv_context_is_odp_capable(NULL, &capable), RPMA_E_INVAL);
}

static void rpma_utils_ibv_context_is_odp_capable__result_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_utils_ibv_context_is_odp_capable(mock_context(), NULL), RPMA_E_INVAL);
}

static void rpma_utils_ibv_context_is_odp_capable__the_device_fails__E_PROVIDER(void **state)
{
	int capable = 77;

	(void)state;
	mock_fail(MOCK_ibv_query_device_ex, 1, EIO);
	assert_error(rpma_utils_ibv_context_is_odp_capable(mock_context(), &capable),
		     RPMA_E_PROVIDER);
}

static int capable(void)
{
	int answer = 77;

	assert_ok(rpma_utils_ibv_context_is_odp_capable(mock_context(), &answer));
	return answer;
}

static void rpma_utils_ibv_context_is_odp_capable__needs_reads_and_writes_over_RC(void **state)
{
	(void)state;
	assert_int_equal(capable(), 0);
	mock_device()->odp = true;
	assert_int_equal(capable(), 1);
	mock_device()->odp_missing = IBV_ODP_SUPPORT_WRITE;
	assert_int_equal(capable(), 0);
	mock_device()->odp_missing = IBV_ODP_SUPPORT_READ;
	assert_int_equal(capable(), 0);
}

static void rpma_utils_ibv_context_is_odp_capable__not_without_extended_verbs(void **state)
{
	(void)state;
	mock_device()->odp = true;
	mock_device()->legacy = true;
	assert_int_equal(capable(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_err_2str__every_error_has_words_of_its_own),
		RPMA_TEST(rpma_err_2str__any_number_has_words),
		RPMA_TEST(rpma_utils_conn_event_2str__every_event_has_words_of_its_own),
		RPMA_TEST(rpma_utils_conn_event_2str__any_number_has_words),
		RPMA_TEST(rpma_utils_get_ibv_context__addr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_utils_get_ibv_context__ibv_ctx_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_utils_get_ibv_context__unknown_type__E_INVAL),
		RPMA_TEST(rpma_utils_get_ibv_context__the_address_means_nothing__E_PROVIDER),
		RPMA_TEST(rpma_utils_get_ibv_context__not_a_local_address__E_PROVIDER),
		RPMA_TEST(rpma_utils_get_ibv_context__no_way_there__E_PROVIDER),
		RPMA_TEST(rpma_utils_get_ibv_context__the_address_has_no_device__E_PROVIDER),
		RPMA_TEST(rpma_utils_get_ibv_context__no_memory__E_NOMEM),
		RPMA_TEST(rpma_utils_get_ibv_context__finds_the_device_of_a_local_address),
		RPMA_TEST(rpma_utils_get_ibv_context__finds_the_device_that_reaches_an_address),
		RPMA_TEST(rpma_utils_get_ibv_context__leaks_nothing_whichever_call_fails),
		RPMA_TEST(rpma_utils_ibv_context_is_odp_capable__ibv_ctx_is_NULL__E_INVAL),
		RPMA_TEST(rpma_utils_ibv_context_is_odp_capable__result_is_NULL__E_INVAL),
		RPMA_TEST(rpma_utils_ibv_context_is_odp_capable__the_device_fails__E_PROVIDER),
		RPMA_TEST(rpma_utils_ibv_context_is_odp_capable__needs_reads_and_writes_over_RC),
		RPMA_TEST(rpma_utils_ibv_context_is_odp_capable__not_without_extended_verbs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
