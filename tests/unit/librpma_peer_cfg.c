/* SPDX-License-Identifier: BSD-3-Clause */
/* Peer configuration, and its descriptor, which comes from the network */

#include "walk.h"

static struct rpma_peer_cfg *pcfg_new(bool direct_write)
{
	struct rpma_peer_cfg *pcfg = NULL;

	assert_ok(rpma_peer_cfg_new(&pcfg));
	assert_non_null(pcfg);
	assert_ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, direct_write));
	return pcfg;
}

static void pcfg_delete(struct rpma_peer_cfg *pcfg)
{
	assert_ok(rpma_peer_cfg_delete(&pcfg));
	assert_null(pcfg);
}

static bool direct_write_of(const struct rpma_peer_cfg *pcfg)
{
	bool supported = false;

	assert_ok(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &supported));
	return supported;
}

static void rpma_peer_cfg_new__pcfg_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_peer_cfg_new(NULL), RPMA_E_INVAL);
}

static void rpma_peer_cfg_new__no_memory__E_NOMEM(void **state)
{
	struct rpma_peer_cfg *pcfg = UNTOUCHED;

	(void)state;
	mock_fail_any(1, false);
	assert_error(rpma_peer_cfg_new(&pcfg), RPMA_E_NOMEM);
	assert_untouched(pcfg);
}

static void rpma_peer_cfg_new__direct_write_to_pmem_is_off(void **state)
{
	struct rpma_peer_cfg *pcfg = NULL;

	(void)state;
	assert_ok(rpma_peer_cfg_new(&pcfg));
	assert_false(direct_write_of(pcfg));
	pcfg_delete(pcfg);
}

static void rpma_peer_cfg_delete__pcfg_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_peer_cfg_delete(NULL), RPMA_E_INVAL);
}

static void rpma_peer_cfg_delete__twice_is_harmless(void **state)
{
	struct rpma_peer_cfg *pcfg = pcfg_new(false);

	(void)state;
	assert_ok(rpma_peer_cfg_delete(&pcfg));
	assert_null(pcfg);
	assert_ok(rpma_peer_cfg_delete(&pcfg));
	assert_null(pcfg);
}

static void rpma_peer_cfg_set_direct_write_to_pmem__pcfg_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_peer_cfg_set_direct_write_to_pmem(NULL, true), RPMA_E_INVAL);
}

static void rpma_peer_cfg_set_direct_write_to_pmem__can_be_taken_back(void **state)
{
	struct rpma_peer_cfg *pcfg = pcfg_new(true);

	(void)state;
	assert_true(direct_write_of(pcfg));
	assert_ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, false));
	assert_false(direct_write_of(pcfg));
	pcfg_delete(pcfg);
}

static void rpma_peer_cfg_get_direct_write_to_pmem__pcfg_is_NULL__E_INVAL(void **state)
{
	bool supported = true;

	(void)state;
	assert_error(rpma_peer_cfg_get_direct_write_to_pmem(NULL, &supported), RPMA_E_INVAL);
	assert_true(supported);
}

static void rpma_peer_cfg_get_direct_write_to_pmem__supported_is_NULL__E_INVAL(void **state)
{
	struct rpma_peer_cfg *pcfg = pcfg_new(true);

	(void)state;
	assert_error(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, NULL), RPMA_E_INVAL);
	pcfg_delete(pcfg);
}

static void rpma_peer_cfg_get_direct_write_to_pmem__gives_what_was_set(void **state)
{
	struct rpma_peer_cfg *pcfg = pcfg_new(true);

	(void)state;
	assert_true(direct_write_of(pcfg));
	pcfg_delete(pcfg);
}

static void rpma_peer_cfg_get_descriptor__pcfg_is_NULL__E_INVAL(void **state)
{
	uint8_t desc = 0x5a;

	(void)state;
	assert_error(rpma_peer_cfg_get_descriptor(NULL, &desc), RPMA_E_INVAL);
	assert_int_equal(desc, 0x5a);
}

static void rpma_peer_cfg_get_descriptor__desc_is_NULL__E_INVAL(void **state)
{
	struct rpma_peer_cfg *pcfg = pcfg_new(true);

	(void)state;
	assert_error(rpma_peer_cfg_get_descriptor(pcfg, NULL), RPMA_E_INVAL);
	pcfg_delete(pcfg);
}

static void rpma_peer_cfg_get_descriptor__is_one_byte_0_or_1(void **state)
{
	struct rpma_peer_cfg *pcfg = pcfg_new(true);
	uint8_t desc[2] = {0x5a, 0x5a};

	(void)state;
	assert_ok(rpma_peer_cfg_get_descriptor(pcfg, desc));
	assert_int_equal(desc[0], 1);
	assert_int_equal(desc[1], 0x5a);
	assert_ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, false));
	assert_ok(rpma_peer_cfg_get_descriptor(pcfg, desc));
	assert_int_equal(desc[0], 0);
	assert_int_equal(desc[1], 0x5a);
	pcfg_delete(pcfg);
}

static void rpma_peer_cfg_get_descriptor_size__pcfg_is_NULL__E_INVAL(void **state)
{
	size_t size = 77;

	(void)state;
	assert_error(rpma_peer_cfg_get_descriptor_size(NULL, &size), RPMA_E_INVAL);
	assert_int_equal(size, 77);
}

static void rpma_peer_cfg_get_descriptor_size__desc_size_is_NULL__E_INVAL(void **state)
{
	struct rpma_peer_cfg *pcfg = pcfg_new(true);

	(void)state;
	assert_error(rpma_peer_cfg_get_descriptor_size(pcfg, NULL), RPMA_E_INVAL);
	pcfg_delete(pcfg);
}

static void rpma_peer_cfg_get_descriptor_size__is_1(void **state)
{
	struct rpma_peer_cfg *pcfg = pcfg_new(true);
	size_t size = 77;

	(void)state;
	assert_ok(rpma_peer_cfg_get_descriptor_size(pcfg, &size));
	assert_int_equal(size, 1);
	pcfg_delete(pcfg);
}

static void rpma_peer_cfg_from_descriptor__desc_is_NULL__E_INVAL(void **state)
{
	struct rpma_peer_cfg *pcfg = UNTOUCHED;

	(void)state;
	assert_error(rpma_peer_cfg_from_descriptor(NULL, 1, &pcfg), RPMA_E_INVAL);
	assert_untouched(pcfg);
}

static void rpma_peer_cfg_from_descriptor__pcfg_ptr_is_NULL__E_INVAL(void **state)
{
	uint8_t desc = 1;

	(void)state;
	assert_error(rpma_peer_cfg_from_descriptor(&desc, 1, NULL), RPMA_E_INVAL);
}

static void rpma_peer_cfg_from_descriptor__too_short__E_INVAL(void **state)
{
	struct rpma_peer_cfg *pcfg = UNTOUCHED;
	uint8_t desc = 1;

	(void)state;
	assert_error(rpma_peer_cfg_from_descriptor(&desc, 0, &pcfg), RPMA_E_INVAL);
	assert_untouched(pcfg);
}

static void rpma_peer_cfg_from_descriptor__no_memory__E_NOMEM(void **state)
{
	struct rpma_peer_cfg *pcfg = UNTOUCHED;
	uint8_t desc = 1;

	(void)state;
	mock_fail_any(1, false);
	assert_error(rpma_peer_cfg_from_descriptor(&desc, 1, &pcfg), RPMA_E_NOMEM);
	assert_untouched(pcfg);
}

static void rpma_peer_cfg_from_descriptor__a_longer_buffer_is_fine(void **state)
{
	const uint8_t desc[16] = {1, 0xff, 0xff};
	struct rpma_peer_cfg *pcfg = NULL;

	(void)state;
	assert_ok(rpma_peer_cfg_from_descriptor(desc, sizeof(desc), &pcfg));
	assert_true(direct_write_of(pcfg));
	pcfg_delete(pcfg);
}

/*
 * Only what says 1 promises persistence: from a byte with other bits the safe reading is none, or
 * an error, and never a bool that is neither true nor false.
 */
static void rpma_peer_cfg_from_descriptor__every_byte_is_an_error_or_0_or_1(void **state)
{
	(void)state;
	for (unsigned byte = 0; byte < 256; byte++) {
		struct rpma_peer_cfg *pcfg = UNTOUCHED;
		uint8_t desc = byte, again = 0x5a;
		int ret = rpma_peer_cfg_from_descriptor(&desc, 1, &pcfg);

		if (ret) {
			assert_true(byte > 1);
			assert_int_equal(ret, RPMA_E_INVAL);
			assert_untouched(pcfg);
			continue;
		}
		assert_ok(rpma_peer_cfg_get_descriptor(pcfg, &again));
		assert_true(again <= 1);
		if (byte <= 1)
			assert_int_equal(again, byte);
		pcfg_delete(pcfg);
	}
}

static void rpma_peer_cfg_from_descriptor__reads_what_get_descriptor_wrote(void **state)
{
	(void)state;
	for (int direct_write = 0; direct_write < 2; direct_write++) {
		struct rpma_peer_cfg *pcfg = pcfg_new(direct_write), *copy = NULL;
		uint8_t desc = 0;

		assert_ok(rpma_peer_cfg_get_descriptor(pcfg, &desc));
		assert_ok(rpma_peer_cfg_from_descriptor(&desc, 1, &copy));
		assert_int_equal(direct_write_of(copy), direct_write);
		pcfg_delete(copy);
		pcfg_delete(pcfg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_peer_cfg_new__pcfg_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_cfg_new__no_memory__E_NOMEM),
		RPMA_TEST(rpma_peer_cfg_new__direct_write_to_pmem_is_off),
		RPMA_TEST(rpma_peer_cfg_delete__pcfg_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_cfg_delete__twice_is_harmless),
		RPMA_TEST(rpma_peer_cfg_set_direct_write_to_pmem__pcfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_cfg_set_direct_write_to_pmem__can_be_taken_back),
		RPMA_TEST(rpma_peer_cfg_get_direct_write_to_pmem__pcfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_cfg_get_direct_write_to_pmem__supported_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_cfg_get_direct_write_to_pmem__gives_what_was_set),
		RPMA_TEST(rpma_peer_cfg_get_descriptor__pcfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_cfg_get_descriptor__desc_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_cfg_get_descriptor__is_one_byte_0_or_1),
		RPMA_TEST(rpma_peer_cfg_get_descriptor_size__pcfg_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_cfg_get_descriptor_size__desc_size_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_cfg_get_descriptor_size__is_1),
		RPMA_TEST(rpma_peer_cfg_from_descriptor__desc_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_cfg_from_descriptor__pcfg_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_peer_cfg_from_descriptor__too_short__E_INVAL),
		RPMA_TEST(rpma_peer_cfg_from_descriptor__no_memory__E_NOMEM),
		RPMA_TEST(rpma_peer_cfg_from_descriptor__a_longer_buffer_is_fine),
		RPMA_TEST(rpma_peer_cfg_from_descriptor__every_byte_is_an_error_or_0_or_1),
		RPMA_TEST(rpma_peer_cfg_from_descriptor__reads_what_get_descriptor_wrote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
