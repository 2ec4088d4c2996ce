/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions of the other side, from descriptors, which come from the network */

#include <string.h>

#include "walk.h"

static int from(const uint8_t *desc, size_t size, struct rpma_mr_remote **mr)
{
	*mr = UNTOUCHED;
	return rpma_mr_remote_from_descriptor(desc, size, mr);
}

static void refused(uint64_t addr, uint64_t len, uint8_t usage)
{
	struct rpma_mr_remote *mr;
	uint8_t desc[21];

	descriptor(desc, addr, len, REMOTE_RKEY, usage);
	assert_error(from(desc, sizeof(desc), &mr), RPMA_E_INVAL);
	assert_untouched(mr);
}

static void rpma_mr_remote_from_descriptor__desc_is_NULL__E_INVAL(void **state)
{
	struct rpma_mr_remote *mr;

	(void)state;
	assert_error(from(NULL, 21, &mr), RPMA_E_INVAL);
	assert_untouched(mr);
}

static void rpma_mr_remote_from_descriptor__mr_ptr_is_NULL__E_INVAL(void **state)
{
	uint8_t desc[21];

	(void)state;
	descriptor(desc, REMOTE_ADDR, REGION, REMOTE_RKEY, USAGE_ALL);
	assert_error(rpma_mr_remote_from_descriptor(desc, sizeof(desc), NULL), RPMA_E_INVAL);
}

static void rpma_mr_remote_from_descriptor__too_short__E_INVAL(void **state)
{
	struct rpma_mr_remote *mr;
	uint8_t desc[21];

	(void)state;
	descriptor(desc, REMOTE_ADDR, REGION, REMOTE_RKEY, USAGE_ALL);
	for (size_t size = 0; size < sizeof(desc); size++) {
		assert_error(from(desc, size, &mr), RPMA_E_INVAL);
		assert_untouched(mr);
	}
}

static void rpma_mr_remote_from_descriptor__no_usage__E_INVAL(void **state)
{
	(void)state;
	refused(REMOTE_ADDR, REGION, 0);
}

static void rpma_mr_remote_from_descriptor__no_length__E_INVAL(void **state)
{
	(void)state;
	refused(REMOTE_ADDR, 0, USAGE_ALL);
	refused(0, 0, USAGE_ALL);
}

static void rpma_mr_remote_from_descriptor__passes_2_to_the_64__E_INVAL(void **state)
{
	(void)state;
	refused(UINT64_MAX, 2, USAGE_ALL);
	refused(2, UINT64_MAX, USAGE_ALL);
	refused(UINT64_MAX, UINT64_MAX, USAGE_ALL);
	refused(1ULL << 63, (1ULL << 63) + 1, USAGE_ALL);
}

static void rpma_mr_remote_from_descriptor__no_memory__E_NOMEM(void **state)
{
	struct rpma_mr_remote *mr;
	uint8_t desc[21];

	(void)state;
	descriptor(desc, REMOTE_ADDR, REGION, REMOTE_RKEY, USAGE_ALL);
	mock_fail_any(1, false);
	assert_error(from(desc, sizeof(desc), &mr), RPMA_E_NOMEM);
	assert_untouched(mr);
}

/* The last byte of the address space is a place like any other. */
static void rpma_mr_remote_from_descriptor__may_end_at_2_to_the_64(void **state)
{
	struct rpma_mr_remote *mr = remote_new(UINT64_MAX - 7, 8, USAGE_ALL);
	size_t size = 0;

	(void)state;
	assert_ok(rpma_mr_remote_get_size(mr, &size));
	assert_int_equal(size, 8);
	remote_delete(mr);
	mr = remote_new(1, UINT64_MAX, USAGE_ALL);
	assert_ok(rpma_mr_remote_get_size(mr, &size));
	assert_int_equal(size, SIZE_MAX);
	remote_delete(mr);
}

static void rpma_mr_remote_from_descriptor__a_longer_buffer_is_fine(void **state)
{
	struct rpma_mr_remote *mr;
	uint8_t desc[64];
	size_t size = 0;

	(void)state;
	memset(desc, 0xff, sizeof(desc));
	descriptor(desc, REMOTE_ADDR, REGION, REMOTE_RKEY, USAGE_ALL);
	assert_ok(from(desc, sizeof(desc), &mr));
	assert_ok(rpma_mr_remote_get_size(mr, &size));
	assert_int_equal(size, REGION);
	remote_delete(mr);
}

static void rpma_mr_remote_from_descriptor__need_not_be_aligned(void **state)
{
	struct rpma_mr_remote *mr;
	uint8_t buffer[32];

	(void)state;
	for (unsigned offset = 0; offset < 8; offset++) {
		descriptor(buffer + offset, REMOTE_ADDR, REGION, REMOTE_RKEY, USAGE_ALL);
		assert_ok(from(buffer + offset, 21, &mr));
		remote_delete(mr);
	}
}

static void rpma_mr_remote_from_descriptor__reads_what_get_descriptor_wrote(void **state)
{
	struct rpma_peer *peer = peer_new();
	struct rpma_mr_local *local = mr_new(peer, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
	struct rpma_mr_remote *mr;
	uint8_t desc[21];
	size_t size = 0;
	int type = 0;

	(void)state;
	assert_ok(rpma_mr_get_descriptor(local, desc));
	assert_ok(from(desc, sizeof(desc), &mr));
	assert_ok(rpma_mr_remote_get_size(mr, &size));
	assert_ok(rpma_mr_remote_get_flush_type(mr, &type));
	assert_int_equal(size, REGION);
	assert_int_equal(type, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
	remote_delete(mr);
	mr_delete(local);
	peer_delete(peer);
}

static void rpma_mr_remote_get_size__mr_is_NULL__E_INVAL(void **state)
{
	size_t size = 77;

	(void)state;
	assert_error(rpma_mr_remote_get_size(NULL, &size), RPMA_E_INVAL);
	assert_int_equal(size, 77);
}

static void rpma_mr_remote_get_size__size_is_NULL__E_INVAL(void **state)
{
	struct rpma_mr_remote *mr = remote_new(REMOTE_ADDR, REGION, USAGE_ALL);

	(void)state;
	assert_error(rpma_mr_remote_get_size(mr, NULL), RPMA_E_INVAL);
	remote_delete(mr);
}

static void rpma_mr_remote_get_flush_type__mr_is_NULL__E_INVAL(void **state)
{
	int type = 77;

	(void)state;
	assert_error(rpma_mr_remote_get_flush_type(NULL, &type), RPMA_E_INVAL);
	assert_int_equal(type, 77);
}

static void rpma_mr_remote_get_flush_type__flush_type_is_NULL__E_INVAL(void **state)
{
	struct rpma_mr_remote *mr = remote_new(REMOTE_ADDR, REGION, USAGE_ALL);

	(void)state;
	assert_error(rpma_mr_remote_get_flush_type(mr, NULL), RPMA_E_INVAL);
	remote_delete(mr);
}

static void rpma_mr_remote_get_flush_type__gives_these_bits_only(void **state)
{
	const int both = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;

	(void)state;
	for (int usage = 1; usage <= USAGE_ALL; usage++) {
		struct rpma_mr_remote *mr = remote_new(REMOTE_ADDR, REGION, usage);
		int type = 77;

		assert_ok(rpma_mr_remote_get_flush_type(mr, &type));
		assert_int_equal(type, usage & both);
		remote_delete(mr);
	}
}

static void rpma_mr_remote_delete__mr_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_mr_remote_delete(NULL), RPMA_E_INVAL);
}

static void rpma_mr_remote_delete__twice_is_harmless(void **state)
{
	struct rpma_mr_remote *mr = remote_new(REMOTE_ADDR, REGION, USAGE_ALL);

	(void)state;
	assert_ok(rpma_mr_remote_delete(&mr));
	assert_null(mr);
	assert_ok(rpma_mr_remote_delete(&mr));
	assert_null(mr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_mr_remote_from_descriptor__desc_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_remote_from_descriptor__mr_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_remote_from_descriptor__too_short__E_INVAL),
		RPMA_TEST(rpma_mr_remote_from_descriptor__no_usage__E_INVAL),
		RPMA_TEST(rpma_mr_remote_from_descriptor__no_length__E_INVAL),
		RPMA_TEST(rpma_mr_remote_from_descriptor__passes_2_to_the_64__E_INVAL),
		RPMA_TEST(rpma_mr_remote_from_descriptor__no_memory__E_NOMEM),
		RPMA_TEST(rpma_mr_remote_from_descriptor__may_end_at_2_to_the_64),
		RPMA_TEST(rpma_mr_remote_from_descriptor__a_longer_buffer_is_fine),
		RPMA_TEST(rpma_mr_remote_from_descriptor__need_not_be_aligned),
		RPMA_TEST(rpma_mr_remote_from_descriptor__reads_what_get_descriptor_wrote),
		RPMA_TEST(rpma_mr_remote_get_size__mr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_remote_get_size__size_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_remote_get_flush_type__mr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_remote_get_flush_type__flush_type_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_remote_get_flush_type__gives_these_bits_only),
		RPMA_TEST(rpma_mr_remote_delete__mr_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_remote_delete__twice_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
