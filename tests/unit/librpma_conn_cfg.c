/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection configuration */

#include "walk.h"

/* never looked into by a configuration */
#define CONTEXT_SRQ ((struct rpma_srq *)(uintptr_t)0x5150)

static void rpma_conn_cfg_new__result_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_conn_cfg_new(NULL), RPMA_E_INVAL);
}

static void rpma_conn_cfg_new__no_memory__E_NOMEM(void **state)
{
	struct rpma_conn_cfg *cfg = UNTOUCHED;

	(void)state;
	mock_fail_any(1, false);
	assert_error(rpma_conn_cfg_new(&cfg), RPMA_E_NOMEM);
	assert_untouched(cfg);
}

static void rpma_conn_cfg_new__has_the_documented_defaults(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();
	uint32_t cq_size, rcq_size, sq_size, rq_size;
	struct rpma_srq *srq;
	int timeout_ms;
	bool shared;

	(void)state;
	assert_ok(rpma_conn_cfg_get_timeout(cfg, &timeout_ms));
	assert_ok(rpma_conn_cfg_get_cq_size(cfg, &cq_size));
	assert_ok(rpma_conn_cfg_get_rcq_size(cfg, &rcq_size));
	assert_ok(rpma_conn_cfg_get_sq_size(cfg, &sq_size));
	assert_ok(rpma_conn_cfg_get_rq_size(cfg, &rq_size));
	assert_ok(rpma_conn_cfg_get_compl_channel(cfg, &shared));
	assert_ok(rpma_conn_cfg_get_srq(cfg, &srq));
	assert_int_equal(timeout_ms, 1000);
	assert_int_equal(cq_size, 10);
	assert_int_equal(rcq_size, 0);
	assert_int_equal(sq_size, 10);
	assert_int_equal(rq_size, 10);
	assert_false(shared);
	assert_null(srq);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_delete__cfg_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_conn_cfg_delete(NULL), RPMA_E_INVAL);
}

static void rpma_conn_cfg_delete__twice_is_harmless(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();

	(void)state;
	assert_ok(rpma_conn_cfg_delete(&cfg));
	assert_null(cfg);
	assert_ok(rpma_conn_cfg_delete(&cfg));
	assert_null(cfg);
}

static void rpma_conn_cfg_set_timeout__cfg_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_conn_cfg_set_timeout(NULL, 250), RPMA_E_INVAL);
}

static void rpma_conn_cfg_set_timeout__is_what_get_gives(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();
	int value = -77;

	(void)state;
	assert_ok(rpma_conn_cfg_set_timeout(cfg, 250));
	assert_ok(rpma_conn_cfg_get_timeout(cfg, &value));
	assert_int_equal(value, 250);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_get_timeout__cfg_is_NULL__E_INVAL(void **state)
{
	int value = -77;

	(void)state;
	assert_error(rpma_conn_cfg_get_timeout(NULL, &value), RPMA_E_INVAL);
	assert_int_equal(value, -77);
}

static void rpma_conn_cfg_get_timeout__result_is_NULL__E_INVAL(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();

	(void)state;
	assert_error(rpma_conn_cfg_get_timeout(cfg, NULL), RPMA_E_INVAL);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_set_cq_size__cfg_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_conn_cfg_set_cq_size(NULL, UINT32_MAX), RPMA_E_INVAL);
}

static void rpma_conn_cfg_set_cq_size__is_what_get_gives(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();
	uint32_t value = 77;

	(void)state;
	assert_ok(rpma_conn_cfg_set_cq_size(cfg, UINT32_MAX));
	assert_ok(rpma_conn_cfg_get_cq_size(cfg, &value));
	assert_int_equal(value, UINT32_MAX);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_get_cq_size__cfg_is_NULL__E_INVAL(void **state)
{
	uint32_t value = 77;

	(void)state;
	assert_error(rpma_conn_cfg_get_cq_size(NULL, &value), RPMA_E_INVAL);
	assert_int_equal(value, 77);
}

static void rpma_conn_cfg_get_cq_size__result_is_NULL__E_INVAL(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();

	(void)state;
	assert_error(rpma_conn_cfg_get_cq_size(cfg, NULL), RPMA_E_INVAL);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_set_rcq_size__cfg_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_conn_cfg_set_rcq_size(NULL, UINT32_MAX), RPMA_E_INVAL);
}

static void rpma_conn_cfg_set_rcq_size__is_what_get_gives(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();
	uint32_t value = 77;

	(void)state;
	assert_ok(rpma_conn_cfg_set_rcq_size(cfg, UINT32_MAX));
	assert_ok(rpma_conn_cfg_get_rcq_size(cfg, &value));
	assert_int_equal(value, UINT32_MAX);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_get_rcq_size__cfg_is_NULL__E_INVAL(void **state)
{
	uint32_t value = 77;

	(void)state;
	assert_error(rpma_conn_cfg_get_rcq_size(NULL, &value), RPMA_E_INVAL);
	assert_int_equal(value, 77);
}

static void rpma_conn_cfg_get_rcq_size__result_is_NULL__E_INVAL(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();

	(void)state;
	assert_error(rpma_conn_cfg_get_rcq_size(cfg, NULL), RPMA_E_INVAL);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_set_sq_size__cfg_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_conn_cfg_set_sq_size(NULL, UINT32_MAX), RPMA_E_INVAL);
}

static void rpma_conn_cfg_set_sq_size__is_what_get_gives(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();
	uint32_t value = 77;

	(void)state;
	assert_ok(rpma_conn_cfg_set_sq_size(cfg, UINT32_MAX));
	assert_ok(rpma_conn_cfg_get_sq_size(cfg, &value));
	assert_int_equal(value, UINT32_MAX);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_get_sq_size__cfg_is_NULL__E_INVAL(void **state)
{
	uint32_t value = 77;

	(void)state;
	assert_error(rpma_conn_cfg_get_sq_size(NULL, &value), RPMA_E_INVAL);
	assert_int_equal(value, 77);
}

static void rpma_conn_cfg_get_sq_size__result_is_NULL__E_INVAL(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();

	(void)state;
	assert_error(rpma_conn_cfg_get_sq_size(cfg, NULL), RPMA_E_INVAL);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_set_rq_size__cfg_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_conn_cfg_set_rq_size(NULL, UINT32_MAX), RPMA_E_INVAL);
}

static void rpma_conn_cfg_set_rq_size__is_what_get_gives(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();
	uint32_t value = 77;

	(void)state;
	assert_ok(rpma_conn_cfg_set_rq_size(cfg, UINT32_MAX));
	assert_ok(rpma_conn_cfg_get_rq_size(cfg, &value));
	assert_int_equal(value, UINT32_MAX);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_get_rq_size__cfg_is_NULL__E_INVAL(void **state)
{
	uint32_t value = 77;

	(void)state;
	assert_error(rpma_conn_cfg_get_rq_size(NULL, &value), RPMA_E_INVAL);
	assert_int_equal(value, 77);
}

static void rpma_conn_cfg_get_rq_size__result_is_NULL__E_INVAL(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();

	(void)state;
	assert_error(rpma_conn_cfg_get_rq_size(cfg, NULL), RPMA_E_INVAL);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_set_compl_channel__cfg_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_conn_cfg_set_compl_channel(NULL, true), RPMA_E_INVAL);
}

static void rpma_conn_cfg_set_compl_channel__is_what_get_gives(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();
	bool value = false;

	(void)state;
	assert_ok(rpma_conn_cfg_set_compl_channel(cfg, true));
	assert_ok(rpma_conn_cfg_get_compl_channel(cfg, &value));
	assert_int_equal(value, true);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_get_compl_channel__cfg_is_NULL__E_INVAL(void **state)
{
	bool value = false;

	(void)state;
	assert_error(rpma_conn_cfg_get_compl_channel(NULL, &value), RPMA_E_INVAL);
	assert_int_equal(value, false);
}

static void rpma_conn_cfg_get_compl_channel__result_is_NULL__E_INVAL(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();

	(void)state;
	assert_error(rpma_conn_cfg_get_compl_channel(cfg, NULL), RPMA_E_INVAL);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_set_srq__cfg_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_conn_cfg_set_srq(NULL, CONTEXT_SRQ), RPMA_E_INVAL);
}

static void rpma_conn_cfg_set_srq__is_what_get_gives(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();
	struct rpma_srq *value = UNTOUCHED;

	(void)state;
	assert_ok(rpma_conn_cfg_set_srq(cfg, CONTEXT_SRQ));
	assert_ok(rpma_conn_cfg_get_srq(cfg, &value));
	assert_ptr_equal(value, CONTEXT_SRQ);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_get_srq__cfg_is_NULL__E_INVAL(void **state)
{
	struct rpma_srq *value = UNTOUCHED;

	(void)state;
	assert_error(rpma_conn_cfg_get_srq(NULL, &value), RPMA_E_INVAL);
	assert_ptr_equal(value, UNTOUCHED);
}

static void rpma_conn_cfg_get_srq__result_is_NULL__E_INVAL(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();

	(void)state;
	assert_error(rpma_conn_cfg_get_srq(cfg, NULL), RPMA_E_INVAL);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_set_timeout__negative__E_INVAL(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();
	int timeout_ms;

	(void)state;
	assert_error(rpma_conn_cfg_set_timeout(cfg, -1), RPMA_E_INVAL);
	assert_error(rpma_conn_cfg_set_timeout(cfg, INT32_MIN), RPMA_E_INVAL);
	assert_ok(rpma_conn_cfg_get_timeout(cfg, &timeout_ms));
	assert_int_equal(timeout_ms, RPMA_DEFAULT_TIMEOUT_MS);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_set_timeout__zero_is_a_timeout(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();
	int timeout_ms;

	(void)state;
	assert_ok(rpma_conn_cfg_set_timeout(cfg, 0));
	assert_ok(rpma_conn_cfg_get_timeout(cfg, &timeout_ms));
	assert_int_equal(timeout_ms, 0);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_set_compl_channel__can_be_taken_back(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();
	bool shared = true;

	(void)state;
	assert_ok(rpma_conn_cfg_set_compl_channel(cfg, true));
	assert_ok(rpma_conn_cfg_set_compl_channel(cfg, false));
	assert_ok(rpma_conn_cfg_get_compl_channel(cfg, &shared));
	assert_false(shared);
	cfg_delete(cfg);
}

static void rpma_conn_cfg_set_srq__NULL_takes_it_back(void **state)
{
	struct rpma_conn_cfg *cfg = cfg_new();
	struct rpma_srq *srq = UNTOUCHED;

	(void)state;
	assert_ok(rpma_conn_cfg_set_srq(cfg, CONTEXT_SRQ));
	assert_ok(rpma_conn_cfg_set_srq(cfg, NULL));
	assert_ok(rpma_conn_cfg_get_srq(cfg, &srq));
	assert_null(srq);
	cfg_delete(cfg);
}

/* Two configurations share nothing. */
static void rpma_conn_cfg_new__each_is_its_own(void **state)
{
	struct rpma_conn_cfg *one = cfg_new(), *other = cfg_new();
	uint32_t cq_size;

	(void)state;
	assert_ok(rpma_conn_cfg_set_cq_size(one, 99));
	assert_ok(rpma_conn_cfg_get_cq_size(other, &cq_size));
	assert_int_equal(cq_size, 10);
	cfg_delete(one);
	cfg_delete(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_conn_cfg_new__result_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_new__no_memory__E_NOMEM),
		RPMA_TEST(rpma_conn_cfg_new__has_the_documented_defaults),
		RPMA_TEST(rpma_conn_cfg_delete__cfg_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_delete__twice_is_harmless),
		RPMA_TEST(rpma_conn_cfg_set_timeout__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_set_timeout__is_what_get_gives),
		RPMA_TEST(rpma_conn_cfg_get_timeout__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_get_timeout__result_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_set_cq_size__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_set_cq_size__is_what_get_gives),
		RPMA_TEST(rpma_conn_cfg_get_cq_size__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_get_cq_size__result_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_set_rcq_size__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_set_rcq_size__is_what_get_gives),
		RPMA_TEST(rpma_conn_cfg_get_rcq_size__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_get_rcq_size__result_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_set_sq_size__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_set_sq_size__is_what_get_gives),
		RPMA_TEST(rpma_conn_cfg_get_sq_size__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_get_sq_size__result_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_set_rq_size__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_set_rq_size__is_what_get_gives),
		RPMA_TEST(rpma_conn_cfg_get_rq_size__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_get_rq_size__result_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_set_compl_channel__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_set_compl_channel__is_what_get_gives),
		RPMA_TEST(rpma_conn_cfg_get_compl_channel__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_get_compl_channel__result_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_set_srq__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_set_srq__is_what_get_gives),
		RPMA_TEST(rpma_conn_cfg_get_srq__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_get_srq__result_is_NULL__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_set_timeout__negative__E_INVAL),
		RPMA_TEST(rpma_conn_cfg_set_timeout__zero_is_a_timeout),
		RPMA_TEST(rpma_conn_cfg_set_compl_channel__can_be_taken_back),
		RPMA_TEST(rpma_conn_cfg_set_srq__NULL_takes_it_back),
		RPMA_TEST(rpma_conn_cfg_new__each_is_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
