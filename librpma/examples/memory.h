/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a server: a file by libpmem2, or DRAM. */
#ifndef EXAMPLES_MEMORY_H
#define EXAMPLES_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct pmem2_map;

struct memory {
	void *ptr;
	size_t size;
	bool is_pmem; /* what reaches it is persistent: no DRAM, no page cache */
	struct pmem2_map *map;
};

/*
 * At least size bytes.  path: a file on persistent memory, a device DAX, or any other file; NULL:
 * DRAM, filled with zeros.  Returns 0, or -1 after a line on stderr.
 */
int memory_open(struct memory *memory, const char *path, size_t size);

/* what the CPU or a device wrote is in the file afterwards, whatever kind of file it is */
void memory_persist(const struct memory *memory, size_t size);

void memory_close(struct memory *memory);

#endif /* EXAMPLES_MEMORY_H */
