/* SPDX-License-Identifier: GPL-2.0-only */
/* The bytes of fio 3.37's engines, and what happens to any others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire.h"

#define SIZE (1ULL << 20)

/* address, length, rkey, usage: read source, write destination, flush to visibility */
static const uint8_t descriptor[WIRE_DESCRIPTOR_SIZE] = {
	0x00, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0xef, 0xbe, 0xad, 0xde, 0x19,
};

static void workspace_bytes(uint8_t bytes[WIRE_WORKSPACE_SIZE])
{
	memset(bytes, 0, WIRE_WORKSPACE_SIZE);
	bytes[0] = 0x34;
	bytes[1] = 0x12;
	bytes[2] = 1;
	bytes[3] = WIRE_DESCRIPTOR_SIZE;
	memcpy(bytes + 4, descriptor, sizeof(descriptor));
}

static void workspace_is_packed_into_these_28_bytes(void **state)
{
	struct wire_workspace ws = {.slots = 0x1234,
				    .direct_write_to_pmem = 1,
				    .descriptor_size = WIRE_DESCRIPTOR_SIZE};
	uint8_t expected[WIRE_WORKSPACE_SIZE], packed[WIRE_WORKSPACE_SIZE];

	(void)state;
	memcpy(ws.descriptor, descriptor, sizeof(descriptor));
	workspace_bytes(expected);
	memset(packed, 0xff, sizeof(packed));
	wire_workspace_pack(&ws, packed);
	assert_memory_equal(packed, expected, sizeof(expected));
}

static void workspace_is_parsed_from_28_bytes_and_from_padded_ones(void **state)
{
	uint8_t bytes[196] = {0};
	struct wire_workspace ws;

	(void)state;
	workspace_bytes(bytes);
	for (size_t size = WIRE_WORKSPACE_SIZE; size <= sizeof(bytes); size++) {
		memset(&ws, 0, sizeof(ws));
		assert_null(wire_workspace_parse(bytes, size, &ws));
		assert_int_equal(ws.slots, 0x1234);
		assert_int_equal(ws.direct_write_to_pmem, 1);
		assert_int_equal(ws.descriptor_size, WIRE_DESCRIPTOR_SIZE);
		assert_memory_equal(ws.descriptor, descriptor, sizeof(descriptor));
	}
}

static void workspace_that_is_too_short_is_refused(void **state)
{
	struct wire_workspace ws;

	(void)state;
	assert_non_null(wire_workspace_parse(NULL, 0, &ws));
	for (size_t size = 0; size < WIRE_WORKSPACE_SIZE; size++) {
		uint8_t full[WIRE_WORKSPACE_SIZE];
		uint8_t *exact = malloc(size + 1);

		workspace_bytes(full);
		memcpy(exact, full, size);
		assert_non_null(wire_workspace_parse(exact, size, &ws));
		free(exact);
	}
}

/* one byte of a good one changed */
static const char *parse_changed(size_t at, uint8_t value)
{
	uint8_t bytes[WIRE_WORKSPACE_SIZE];
	struct wire_workspace ws;

	workspace_bytes(bytes);
	bytes[at] = value;
	return wire_workspace_parse(bytes, sizeof(bytes), &ws);
}

static void workspace_with_an_impossible_field_is_refused(void **state)
{
	(void)state;
	for (unsigned int direct = 2; direct < 256; direct++)
		assert_non_null(parse_changed(2, (uint8_t)direct));
	for (unsigned int size = 0; size < 256; size++) {
		if (size < WIRE_DESCRIPTOR_SIZE || size > WIRE_DESCRIPTOR_MAX_SIZE)
			assert_non_null(parse_changed(3, (uint8_t)size));
		else
			assert_null(parse_changed(3, (uint8_t)size));
	}
}

static void workspace_without_a_needed_right_is_refused(void **state)
{
	(void)state;
	for (unsigned int usage = 0; usage < 256; usage++) {
		int enough = (usage & 0x09) == 0x09 && usage & 0x30;

		assert_int_equal(parse_changed(24, (uint8_t)usage) == NULL, enough);
	}
}

static void hello_names_its_method(void **state)
{
	static const uint8_t apm[WIRE_HELLO_SIZE] = {'r', 'p', 'm', 'a', 1, 1, 0, 0};
	uint8_t packed[56] = {0};

	(void)state;
	wire_hello_pack(WIRE_METHOD_APM, packed);
	assert_memory_equal(packed, apm, sizeof(apm));
	assert_int_equal(wire_hello_parse(packed, sizeof(apm)), WIRE_METHOD_APM);
	assert_int_equal(wire_hello_parse(packed, sizeof(packed)), WIRE_METHOD_APM);
	wire_hello_pack(WIRE_METHOD_GPSPM, packed);
	assert_int_equal(wire_hello_parse(packed, WIRE_HELLO_SIZE), WIRE_METHOD_GPSPM);
}

static void private_data_that_is_no_hello_means_nothing(void **state)
{
	uint8_t hello[WIRE_HELLO_SIZE], zeros[56] = {0};

	(void)state;
	assert_int_equal(wire_hello_parse(NULL, 0), WIRE_METHOD_ANY);
	assert_int_equal(wire_hello_parse(zeros, sizeof(zeros)), WIRE_METHOD_ANY);
	wire_hello_pack(WIRE_METHOD_APM, hello);
	assert_int_equal(wire_hello_parse(hello, WIRE_HELLO_SIZE - 1), WIRE_METHOD_ANY);
	hello[5] = 3;
	assert_int_equal(wire_hello_parse(hello, sizeof(hello)), WIRE_METHOD_ANY);
	hello[5] = WIRE_METHOD_APM;
	hello[4] = 0;
	assert_int_equal(wire_hello_parse(hello, sizeof(hello)), WIRE_METHOD_ANY);
	hello[4] = 1;
	hello[0] = 'R';
	assert_int_equal(wire_hello_parse(hello, sizeof(hello)), WIRE_METHOD_ANY);
}

static const struct wire_request sample = {
	.offset = 0x0102030405060708, .length = 0x1000, .op_context = UINT64_MAX};

static const uint8_t sample_bytes[WIRE_REQUEST_SIZE] = {
	0x09, 8, 7, 6, 5,    4,    3,    2,    1,    0x11, 0,    0x10, 0,    0,
	0,    0, 0, 0, 0x19, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
};

static void request_is_packed_into_these_27_bytes(void **state)
{
	uint8_t packed[WIRE_REQUEST_SIZE];
	struct wire_request back;

	(void)state;
	wire_request_pack(&sample, packed);
	assert_memory_equal(packed, sample_bytes, sizeof(packed));
	assert_null(wire_request_parse(packed, sizeof(packed), &back));
	assert_int_equal(back.offset, sample.offset);
	assert_int_equal(back.length, sample.length);
	assert_int_equal(back.op_context, sample.op_context);
}

static void request_may_have_its_fields_in_any_order(void **state)
{
	uint8_t turned[WIRE_REQUEST_SIZE];
	struct wire_request back;

	(void)state;
	memcpy(turned, sample_bytes + 18, 9);
	memcpy(turned + 9, sample_bytes, 18);
	assert_null(wire_request_parse(turned, sizeof(turned), &back));
	assert_int_equal(back.offset, sample.offset);
	assert_int_equal(back.length, sample.length);
	assert_int_equal(back.op_context, sample.op_context);
}

static void request_of_any_other_length_is_refused(void **state)
{
	struct wire_request back;

	(void)state;
	assert_non_null(wire_request_parse(NULL, 0, &back));
	for (size_t size = 0; size <= WIRE_SLOT_SIZE; size++) {
		uint8_t *bytes = calloc(1, size + 1);

		memcpy(bytes, sample_bytes,
		       size < sizeof(sample_bytes) ? size : sizeof(sample_bytes));
		assert_int_equal(wire_request_parse(bytes, size, &back) == NULL,
				 size == WIRE_REQUEST_SIZE);
		free(bytes);
	}
}

static void request_with_a_wrong_key_is_refused(void **state)
{
	struct wire_request back;

	(void)state;
	for (size_t at = 0; at < WIRE_REQUEST_SIZE; at += 9) {
		for (unsigned int key = 0; key < 256; key++) {
			uint8_t bytes[WIRE_REQUEST_SIZE];

			memcpy(bytes, sample_bytes, sizeof(bytes));
			bytes[at] = (uint8_t)key;
			assert_int_equal(wire_request_parse(bytes, sizeof(bytes), &back) == NULL,
					 key == sample_bytes[at]);
		}
	}
}

static void only_three_zeros_are_the_last_request(void **state)
{
	struct wire_request request = {0};

	(void)state;
	assert_true(wire_request_is_last(&request));
	request.op_context = 1;
	assert_false(wire_request_is_last(&request));
	request = (struct wire_request){.offset = 1};
	assert_false(wire_request_is_last(&request));
	request = (struct wire_request){.length = 1};
	assert_false(wire_request_is_last(&request));
}

static int fits(uint64_t offset, uint64_t length)
{
	struct wire_request request = {.offset = offset, .length = length};

	return wire_request_check(&request, SIZE) == NULL;
}

static void request_has_to_lie_in_the_workspace(void **state)
{
	(void)state;
	assert_true(fits(0, 1));
	assert_true(fits(0, SIZE));
	assert_true(fits(SIZE - 1, 1));
	assert_false(fits(0, 0));
	assert_false(fits(0, SIZE + 1));
	assert_false(fits(SIZE, 1));
	assert_false(fits(SIZE - 1, 2));
	assert_false(fits(UINT64_MAX, 1));
	assert_false(fits(0, UINT64_MAX));
	assert_false(fits(1, UINT64_MAX));
	assert_false(fits(UINT64_MAX - 7, 16));
	assert_false(fits(1ULL << 63, 1ULL << 63));
}

static void response_is_packed_into_these_9_bytes(void **state)
{
	static const uint8_t expected[WIRE_RESPONSE_SIZE] = {0x09, 8, 7, 6, 5, 4, 3, 2, 1};
	uint8_t packed[WIRE_RESPONSE_SIZE];
	uint64_t context;

	(void)state;
	wire_response_pack(0x0102030405060708, packed);
	assert_memory_equal(packed, expected, sizeof(expected));
	assert_null(wire_response_parse(packed, sizeof(packed), &context));
	assert_int_equal(context, 0x0102030405060708);
}

static void response_of_another_form_is_refused(void **state)
{
	uint8_t bytes[WIRE_RESPONSE_SIZE + 9] = {0x09};
	uint64_t context;

	(void)state;
	for (size_t size = 0; size <= sizeof(bytes); size++)
		assert_int_equal(wire_response_parse(bytes, size, &context) == NULL,
				 size == WIRE_RESPONSE_SIZE);
	for (unsigned int key = 0; key < 256; key++) {
		bytes[0] = (uint8_t)key;
		assert_int_equal(wire_response_parse(bytes, WIRE_RESPONSE_SIZE, &context) == NULL,
				 key == 0x09);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workspace_is_packed_into_these_28_bytes),
		cmocka_unit_test(workspace_is_parsed_from_28_bytes_and_from_padded_ones),
		cmocka_unit_test(workspace_that_is_too_short_is_refused),
		cmocka_unit_test(workspace_with_an_impossible_field_is_refused),
		cmocka_unit_test(workspace_without_a_needed_right_is_refused),
		cmocka_unit_test(hello_names_its_method),
		cmocka_unit_test(private_data_that_is_no_hello_means_nothing),
		cmocka_unit_test(request_is_packed_into_these_27_bytes),
		cmocka_unit_test(request_may_have_its_fields_in_any_order),
		cmocka_unit_test(request_of_any_other_length_is_refused),
		cmocka_unit_test(request_with_a_wrong_key_is_refused),
		cmocka_unit_test(only_three_zeros_are_the_last_request),
		cmocka_unit_test(request_has_to_lie_in_the_workspace),
		cmocka_unit_test(response_is_packed_into_these_9_bytes),
		cmocka_unit_test(response_of_another_form_is_refused),
	};

	return cmocka_run_group_tests_name("engines_wire", tests, NULL, NULL);
}
