/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fuzzers share: input taken apart, and a stop when something is not as it must be. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                         \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                \
		}                                                                               \
	} while (0)

/* Takes len bytes off the input, or what is left of it and zeroes. */
static inline void take(const uint8_t **data, size_t *size, void *to, size_t len)
{
	size_t got = len < *size ? len : *size;

	memset(to, 0, len);
	memcpy(to, *data, got);
	*data += got;
	*size -= got;
}

/* The mock has seen nothing wrong, and nothing more is alive than there was. */
static inline void must_be_clean(unsigned alive)
{
	if (mock_fault()) {
		fprintf(stderr, "%s\n", mock_fault());
		abort();
	}
	MUST(mock_alive() == alive);
}

#endif
