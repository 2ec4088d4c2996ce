// SPDX-License-Identifier: BSD-3-Clause
/* The fuzz target of tests/fuzz, fed by a seeded generator: the same inputs every time. */
#include <stdlib.h>

#include "softrnic_pair.h"
#include "softrnic_rx.h"

#define ROUNDS 3000

static uint8_t biased(unsigned int i)
{
	/* most fields right most of the time, or nothing deep is reached */
	switch (i % 6) {
	case 0:
		return (uint8_t)(rand() % 16);
	case 1:
		return rand() % 4 ? 1 : (uint8_t)(rand() % 64);
	case 2:
		return rand() % 8 ? 0 : (uint8_t)rand();
	case 3:
		return rand() % 4 ? (uint8_t)(6 + rand() % 100) : (uint8_t)(rand() % 8);
	default:
		return rand() % 2 ? (uint8_t)(rand() % 16) : (uint8_t)rand();
	}
}

static void generated_frames_break_nothing(void **state)
{
	uint8_t input[1 + 6 * 20];
	unsigned int round, i, len;

	(void)state;
	srand(20);
	for (round = 0; round < ROUNDS; round++) {
		len = 1 + 6 * (1 + (unsigned int)rand() % 20);
		input[0] = (uint8_t)(4 | (round & 3));
		for (i = 1; i < len; i++)
			input[i] = biased(i - 1);
		assert_int_equal(LLVMFuzzerTestOneInput(input, len), 0);
	}
}

static void random_bytes_break_nothing(void **state)
{
	uint8_t input[600];
	unsigned int round, i;

	(void)state;
	srand(21);
	for (round = 0; round < ROUNDS; round++) {
		input[0] = (uint8_t)(round & 3);
		for (i = 1; i < sizeof(input); i++)
			input[i] = (uint8_t)rand();
		input[1] = 0;
		input[2] = (uint8_t)(rand() % 80);
		input[3] = (uint8_t)(0x41 | (rand() & 0x80));
		input[4] = (uint8_t)(0x40 | rand() % 16);
		assert_int_equal(LLVMFuzzerTestOneInput(input, sizeof(input)), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generated_frames_break_nothing),
		cmocka_unit_test(random_bytes_break_nothing),
	};

	return cmocka_run_group_tests_name("softrnic_fuzzed", tests, NULL, NULL);
}
