/* SPDX-License-Identifier: GPL-2.0-only */
/* What is remembered of writes until they are flushed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ranges.h"

#define CAPACITY 64

static int setup(void **state)
{
	struct ranges *ranges = calloc(1, sizeof(*ranges));

	*state = ranges;
	return ranges_init(ranges, CAPACITY);
}

static int teardown(void **state)
{
	ranges_free(*state);
	free(*state);
	return 0;
}

static void assert_range(const struct ranges *ranges, uint32_t at, uint64_t offset, uint64_t length)
{
	assert_int_equal(ranges->r[at].offset, offset);
	assert_int_equal(ranges->r[at].length, length);
}

static void writes_that_follow_each_other_are_one_range(void **state)
{
	struct ranges *ranges = *state;

	for (uint64_t i = 0; i < 1000; i++)
		ranges_add(ranges, 8192 + 4096 * i, 4096);
	assert_int_equal(ranges->count, 1);
	assert_range(ranges, 0, 8192, 1000 * 4096);
}

static void a_gap_starts_a_range(void **state)
{
	struct ranges *ranges = *state;

	ranges_add(ranges, 0, 4096);
	ranges_add(ranges, 8192, 4096);
	assert_int_equal(ranges->count, 2);
	assert_range(ranges, 0, 0, 4096);
	assert_range(ranges, 1, 8192, 4096);
}

static void a_wrap_starts_a_range(void **state)
{
	struct ranges *ranges = *state;

	ranges_add(ranges, 4096, 4096);
	ranges_add(ranges, 0, 4096);
	assert_int_equal(ranges->count, 2);
	assert_range(ranges, 0, 4096, 4096);
	assert_range(ranges, 1, 0, 4096);
}

static void a_write_to_the_same_place_starts_a_range(void **state)
{
	struct ranges *ranges = *state;

	ranges_add(ranges, 0, 4096);
	ranges_add(ranges, 0, 4096);
	assert_int_equal(ranges->count, 2);
}

static void compacting_joins_what_touches_or_overlaps(void **state)
{
	struct ranges *ranges = *state;

	ranges_add(ranges, 8192, 4096);
	ranges_add(ranges, 0, 4096);
	ranges_add(ranges, 0, 6000);
	ranges_add(ranges, 20000, 10);
	ranges_add(ranges, 12288, 1);
	ranges_compact(ranges);
	assert_int_equal(ranges->count, 3);
	assert_range(ranges, 0, 0, 6000);
	assert_range(ranges, 1, 8192, 4097);
	assert_range(ranges, 2, 20000, 10);
}

static void compacting_nothing_leaves_nothing(void **state)
{
	ranges_compact(*state);
	assert_int_equal(((struct ranges *)*state)->count, 0);
}

static int covered(const struct ranges *ranges, uint64_t byte)
{
	for (uint32_t i = 0; i < ranges->count; i++) {
		if (byte >= ranges->r[i].offset && byte - ranges->r[i].offset < ranges->r[i].length)
			return 1;
	}
	return 0;
}

static void compacting_makes_room_and_loses_nothing(void **state)
{
	struct ranges *ranges = *state;
	enum { BLOCKS = 4096 };
	static uint8_t written[BLOCKS];
	uint32_t highest = 0;

	srand(1);
	memset(written, 0, sizeof(written));
	for (int i = 0; i < 10000; i++) {
		uint32_t block = (uint32_t)rand() % BLOCKS;

		if (ranges_full(ranges) && ranges_starts_new(ranges, block * 64)) {
			ranges_compact(ranges);
			assert_true(ranges->count <= CAPACITY / 2);
		}
		ranges_add(ranges, block * 64, 64);
		assert_true(ranges->count <= CAPACITY);
		written[block] = 1;
		highest = block > highest ? block : highest;
	}
	for (uint32_t block = 0; block < BLOCKS; block++) {
		if (!written[block])
			continue;
		assert_true(covered(ranges, block * 64));
		assert_true(covered(ranges, block * 64 + 63));
	}
	for (uint32_t i = 0; i < ranges->count; i++)
		assert_true(ranges->r[i].offset + ranges->r[i].length <= (highest + 1) * 64);
}

static void what_is_written_again_joins_one_range(void **state)
{
	struct ranges *ranges = *state;

	for (uint64_t i = 0; i < 4; i++) {
		ranges_add(ranges, 8192, 4096);
		ranges_add(ranges, 12288, 4096);
		ranges_add(ranges, 0, 4096);
	}
	ranges_join(ranges);
	assert_int_equal(ranges->count, 2);
	assert_range(ranges, 0, 0, 4096);
	assert_range(ranges, 1, 8192, 8192);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(writes_that_follow_each_other_are_one_range, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_gap_starts_a_range, setup, teardown),
		cmocka_unit_test_setup_teardown(a_wrap_starts_a_range, setup, teardown),
		cmocka_unit_test_setup_teardown(a_write_to_the_same_place_starts_a_range, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_written_again_joins_one_range, setup,
						teardown),
		cmocka_unit_test_setup_teardown(compacting_joins_what_touches_or_overlaps, setup,
						teardown),
		cmocka_unit_test_setup_teardown(compacting_nothing_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(compacting_makes_room_and_loses_nothing, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("engines_ranges", tests, NULL, NULL);
}
