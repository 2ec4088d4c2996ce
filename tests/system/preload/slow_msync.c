/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is slow to make durable: preloaded, each msync() takes $SLOW_MSYNC_MS milliseconds
 * more.  libpmem2 calls it for files that are not on a DAX file system.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) int msync(void *at, size_t size, int flags)
{
	const char *text = getenv("SLOW_MSYNC_MS");
	long ms = text ? atol(text) : 0;
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&pause, NULL);
	return (int)syscall(SYS_msync, at, size, flags);
}
