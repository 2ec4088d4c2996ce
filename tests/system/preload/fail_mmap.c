/* SPDX-License-Identifier: BSD-3-Clause */
/* Want of memory: preloaded, an anonymous mmap() of exactly $FAIL_MMAP_BYTES bytes fails. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) void *mmap(void *at, size_t size, int prot, int flags,
						  int fd, off_t offset)
{
	const char *bytes = getenv("FAIL_MMAP_BYTES");

	if (bytes && flags & MAP_ANONYMOUS && size == strtoul(bytes, NULL, 10)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, size, prot, flags, fd, offset);
}
