/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration of a shared receive queue */

#include "walk.h"

static struct rpma_srq_cfg *srq_cfg_new(void)
{
	struct rpma_srq_cfg *cfg = NULL;

	assert_ok(rpma_srq_cfg_new(&cfg));
	assert_non_null(cfg);
	return cfg;
}

static void srq_cfg_delete(struct rpma_srq_cfg *cfg)
{
	assert_ok(rpma_srq_cfg_delete(&cfg));
	assert_null(cfg);
}

static void rpma_srq_cfg_new__result_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_srq_cfg_new(NULL), RPMA_E_INVAL);
}

static void rpma_srq_cfg_new__no_memory__E_NOMEM(void **state)
{
	struct rpma_srq_cfg *cfg = UNTOUCHED;

	(void)state;
	mock_fail_any(1, false);
	assert_error(rpma_srq_cfg_new(&cfg), RPMA_E_NOMEM);
	assert_untouched(cfg);
}

static void rpma_srq_cfg_new__has_the_documented_defaults(void **state)
{
	struct rpma_srq_cfg *cfg = srq_cfg_new();
	uint32_t rq_size, rcq_size;

	(void)state;
	assert_ok(rpma_srq_cfg_get_rq_size(cfg, &rq_size));
	assert_ok(rpma_srq_cfg_get_rcq_size(cfg, &rcq_size));
	assert_int_equal(rq_size, 100);
	assert_int_equal(rcq_size, 100);
	srq_cfg_delete(cfg);
}

static void rpma_srq_cfg_delete__cfg_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_srq_cfg_delete(NULL), RPMA_E_INVAL);
}

static void rpma_srq_cfg_delete__twice_is_harmless(void **state)
{
	struct rpma_srq_cfg *cfg = srq_cfg_new();

	(void)state;
	assert_ok(rpma_srq_cfg_delete(&cfg));
	assert_null(cfg);
	assert_ok(rpma_srq_cfg_delete(&cfg));
	assert_null(cfg);
}

static void rpma_srq_cfg_set_rq_size__cfg_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_srq_cfg_set_rq_size(NULL, UINT32_MAX), RPMA_E_INVAL);
}

static void rpma_srq_cfg_set_rq_size__is_what_get_gives(void **state)
{
	struct rpma_srq_cfg *cfg = srq_cfg_new();
	uint32_t value = 77;

	(void)state;
	assert_ok(rpma_srq_cfg_set_rq_size(cfg, UINT32_MAX));
	assert_ok(rpma_srq_cfg_get_rq_size(cfg, &value));
	assert_int_equal(value, UINT32_MAX);
	srq_cfg_delete(cfg);
}

static void rpma_srq_cfg_get_rq_size__cfg_is_NULL__E_INVAL(void **state)
{
	uint32_t value = 77;

	(void)state;
	assert_error(rpma_srq_cfg_get_rq_size(NULL, &value), RPMA_E_INVAL);
	assert_int_equal(value, 77);
}

static void rpma_srq_cfg_get_rq_size__result_is_NULL__E_INVAL(void **state)
{
	struct rpma_srq_cfg *cfg = srq_cfg_new();

	(void)state;
	assert_error(rpma_srq_cfg_get_rq_size(cfg, NULL), RPMA_E_INVAL);
	srq_cfg_delete(cfg);
}

static void rpma_srq_cfg_set_rcq_size__cfg_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_srq_cfg_set_rcq_size(NULL, UINT32_MAX), RPMA_E_INVAL);
}

static void rpma_srq_cfg_set_rcq_size__is_what_get_gives(void **state)
{
	struct rpma_srq_cfg *cfg = srq_cfg_new();
	uint32_t value = 77;

	(void)state;
	assert_ok(rpma_srq_cfg_set_rcq_size(cfg, UINT32_MAX));
	assert_ok(rpma_srq_cfg_get_rcq_size(cfg, &value));
	assert_int_equal(value, UINT32_MAX);
	srq_cfg_delete(cfg);
}

static void rpma_srq_cfg_get_rcq_size__cfg_is_NULL__E_INVAL(void **state)
{
	uint32_t value = 77;

	(void)state;
	assert_error(rpma_srq_cfg_get_rcq_size(NULL, &value), RPMA_E_INVAL);
	assert_int_equal(value, 77);
}

static void rpma_srq_cfg_get_rcq_size__result_is_NULL__E_INVAL(void **state)
{
	struct rpma_srq_cfg *cfg = srq_cfg_new();

	(void)state;
	assert_error(rpma_srq_cfg_get_rcq_size(cfg, NULL), RPMA_E_INVAL);
	srq_cfg_delete(cfg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_srq_cfg_new__result_is_NULL__E_INVAL),
		RPMA_TEST(rpma_srq_cfg_new__no_memory__E_NOMEM),
		RPMA_TEST(rpma_srq_cfg_new__has_the_documented_defaults),
		RPMA_TEST(rpma_srq_cfg_delete__cfg_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_srq_cfg_delete__twice_is_harmless),
		RPMA_TEST(rpma_srq_cfg_set_rq_size__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_srq_cfg_set_rq_size__is_what_get_gives),
		RPMA_TEST(rpma_srq_cfg_get_rq_size__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_srq_cfg_get_rq_size__result_is_NULL__E_INVAL),
		RPMA_TEST(rpma_srq_cfg_set_rcq_size__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_srq_cfg_set_rcq_size__is_what_get_gives),
		RPMA_TEST(rpma_srq_cfg_get_rcq_size__cfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_srq_cfg_get_rcq_size__result_is_NULL__E_INVAL),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
