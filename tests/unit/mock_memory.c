/* SPDX-License-Identifier: BSD-3-Clause */
/* The allocating calls; the linker leads the library's here (--wrap). */

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "mock.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void __real_free(void *ptr);
int __real_posix_memalign(void **ptr, size_t alignment, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *s);
void *__real_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *addr, size_t length);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void __wrap_free(void *ptr);
int __wrap_posix_memalign(void **ptr, size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *s);
void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *addr, size_t length);

void *mock_alloc(size_t size)
{
	void *ptr = __real_calloc(1, size);

	if (!ptr)
		abort();
	return ptr;
}

void mock_free(void *ptr)
{
	__real_free(ptr);
}

static void *born(void *ptr)
{
	if (ptr)
		mock_born(MOCK_MEMORY, ptr, mock_free);
	return ptr;
}

void *__wrap_malloc(size_t size)
{
	return mock_fails(MOCK_malloc) ? NULL : born(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
	return mock_fails(MOCK_calloc) ? NULL : born(__real_calloc(count, size));
}

void *__wrap_realloc(void *ptr, size_t size)
{
	if (mock_fails(MOCK_realloc))
		return NULL;
	if (ptr)
		mock_dies(MOCK_MEMORY, ptr, MOCK_NO_CALL);
	return born(__real_realloc(ptr, size));
}

void __wrap_free(void *ptr)
{
	if (!ptr)
		return;
	/* a second free is told by the verdict, not by a crash */
	if (mock_is_alive(MOCK_MEMORY, ptr)) {
		mock_dies(MOCK_MEMORY, ptr, MOCK_NO_CALL);
		__real_free(ptr);
	} else {
		mock_wrong("memory %p is freed, but was not allocated or is freed already", ptr);
	}
}

int __wrap_posix_memalign(void **ptr, size_t alignment, size_t size)
{
	int error = mock_enter(MOCK_posix_memalign);

	if (!error)
		error = __real_posix_memalign(ptr, alignment, size);
	if (!error)
		born(*ptr);
	return error;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return mock_fails(MOCK_aligned_alloc) ? NULL : born(__real_aligned_alloc(alignment, size));
}

char *__wrap_strdup(const char *s)
{
	return mock_fails(MOCK_strdup) ? NULL : born(__real_strdup(s));
}

void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	void *ptr;

	if (mock_fails(MOCK_mmap))
		return MAP_FAILED;
	ptr = __real_mmap(addr, length, prot, flags, fd, offset);
	if (ptr != MAP_FAILED)
		mock_born(MOCK_MAPPING, ptr, NULL);
	return ptr;
}

int __wrap_munmap(void *addr, size_t length)
{
	int error = mock_dies(MOCK_MAPPING, addr, MOCK_munmap);

	if (error) {
		/* gone all the same, for the tools that look for leaks */
		__real_munmap(addr, length);
		errno = error;
		return -1;
	}
	return __real_munmap(addr, length);
}
