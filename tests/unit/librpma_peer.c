/* SPDX-License-Identifier: BSD-3-Clause */
/* Peer: a device and a protection domain on it */

#include <errno.h>

#include "walk.h"

static struct rpma_peer *peer;

static void rpma_peer_new__ibv_ctx_is_NULL__E_INVAL(void **state)
{
	(void)state;
	peer = UNTOUCHED;
	assert_error(rpma_peer_new(NULL, &peer), RPMA_E_INVAL);
	assert_untouched(peer);
}

static void rpma_peer_new__peer_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_peer_new(mock_context(), NULL), RPMA_E_INVAL);
}

static void rpma_peer_new__no_memory_for_a_PD__E_NOMEM(void **state)
{
	(void)state;
	peer = UNTOUCHED;
	mock_fail(MOCK_ibv_alloc_pd, 1, ENOMEM);
	assert_error(rpma_peer_new(mock_context(), &peer), RPMA_E_NOMEM);
	assert_untouched(peer);
}

static void rpma_peer_new__no_PD__E_PROVIDER(void **state)
{
	(void)state;
	peer = UNTOUCHED;
	mock_fail(MOCK_ibv_alloc_pd, 1, EMFILE);
	assert_error(rpma_peer_new(mock_context(), &peer), RPMA_E_PROVIDER);
	assert_untouched(peer);
}

static void rpma_peer_new__no_PD_and_no_reason__E_UNKNOWN(void **state)
{
	(void)state;
	peer = UNTOUCHED;
	mock_fail(MOCK_ibv_alloc_pd, 1, MOCK_WITHOUT_ERRNO);
	assert_error(rpma_peer_new(mock_context(), &peer), RPMA_E_UNKNOWN);
	assert_untouched(peer);
}

static void rpma_peer_new__a_device_without_extended_verbs_will_do(void **state)
{
	uint32_t features = 77;

	(void)state;
	mock_device()->legacy = true;
	peer = peer_new();
	assert_ok(rpma_peer_get_features(peer, &features));
	assert_int_equal(features, 0);
	peer_delete(peer);
}

static int new_peer(void)
{
	peer = UNTOUCHED;
	return rpma_peer_new(mock_context(), &peer);
}

static void new_peer_check(int answer)
{
	(void)answer;
	assert_untouched(peer);
}

static void delete_peer(void)
{
	peer_delete(peer);
}

static void rpma_peer_new__leaks_nothing_whichever_call_fails(void **state)
{
	const struct walk w = {
		.act = new_peer, .check = new_peer_check, .undo = delete_peer, .at_least = 2};

	(void)state;
	walk(&w);
}

static void rpma_peer_delete__peer_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_peer_delete(NULL), RPMA_E_INVAL);
}

static void rpma_peer_delete__twice_is_harmless(void **state)
{
	(void)state;
	peer = peer_new();
	assert_ok(rpma_peer_delete(&peer));
	assert_null(peer);
	assert_ok(rpma_peer_delete(&peer));
	assert_null(peer);
}

/* The peer stays: what still holds the PD can be given up first, and the deletion tried again. */
static void rpma_peer_delete__the_PD_stays__E_PROVIDER(void **state)
{
	struct rpma_peer *before;

	(void)state;
	peer = before = peer_new();
	mock_fail(MOCK_ibv_dealloc_pd, 1, EBUSY);
	assert_error(rpma_peer_delete(&peer), RPMA_E_PROVIDER);
	assert_ptr_equal(peer, before);
	assert_ok(rpma_peer_delete(&peer));
	assert_null(peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_peer_new__ibv_ctx_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_new__peer_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_new__no_memory_for_a_PD__E_NOMEM),
		RPMA_TEST(rpma_peer_new__no_PD__E_PROVIDER),
		RPMA_TEST(rpma_peer_new__no_PD_and_no_reason__E_UNKNOWN),
		RPMA_TEST(rpma_peer_new__a_device_without_extended_verbs_will_do),
		RPMA_TEST(rpma_peer_new__leaks_nothing_whichever_call_fails),
		RPMA_TEST(rpma_peer_delete__peer_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_delete__twice_is_harmless),
		RPMA_TEST(rpma_peer_delete__the_PD_stays__E_PROVIDER),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
