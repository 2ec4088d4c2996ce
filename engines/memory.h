/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The server's memory: DRAM, device DAX, or a file (on a DAX file system, if it is to be durable).
 */
#ifndef FIO_RPMA_MEMORY_H
#define FIO_RPMA_MEMORY_H

#include <libpmem2.h>

#include "fio-compat.h"

struct memory {
	char *ptr;
	size_t size; /* bytes */
	/* what the network can write is durable once it is flushed */
	bool persistent;
	bool file_backed; /* a file: a device may pin it only on demand */
	pmem2_persist_fn persist;
	char what[256]; /* the memory in words */

	struct pmem2_map *map;
	void *mapped; /* DRAM */
	size_t mapped_size;
};

/*
 * size: bytes this job thread needs.  filename=malloc is DRAM; else see memory_place() in memory.c
 * for which file, and which part of it, the thread gets.  Returns 0, or an errno after the reason
 * was said; then there is nothing to close.
 */
int memory_open(struct thread_data *td, size_t size, bool huge_pages, struct memory *memory);
void memory_close(struct memory *memory);

#endif /* FIO_RPMA_MEMORY_H */
