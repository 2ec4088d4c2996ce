// SPDX-License-Identifier: BSD-3-Clause
/* The clock: an object of its own, so that a test can let time pass slower. */
#include <time.h>

#include "softrnic.h"

uint64_t srn_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
