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
	const char *ms = getenv("SLOW_MSYNC_MS");
	struct timespec pause = {.tv_nsec = (ms ? atol(ms) : 0) * 1000000};

	nanosleep(&pause, NULL);
	return (int)syscall(SYS_msync, at, size, flags);
}
