// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libpmem2.h>

#include "common.h"
#include "memory.h"

static int map_file(struct memory *memory, int fd)
{
	struct pmem2_config *config = NULL;
	struct pmem2_source *source = NULL;
	int ret = pmem2_source_from_fd(&source, fd);

	if (ret == 0)
		ret = pmem2_config_new(&config);
	if (ret == 0)
		ret = pmem2_config_set_required_store_granularity(config, PMEM2_GRANULARITY_PAGE);
	if (ret == 0)
		ret = pmem2_map_new(&memory->map, config, source);
	pmem2_config_delete(&config);
	pmem2_source_delete(&source);
	return ret;
}

int memory_open(struct memory *memory, const char *path, size_t size)
{
	*memory = (struct memory){.size = size};
	if (path == NULL) {
		memory->ptr = buffer_new(size);
		return memory->ptr ? 0 : -1;
	}

	int fd = open(path, O_RDWR);

	if (fd < 0) {
		perror(path);
		return -1;
	}

	int ret = map_file(memory, fd);

	close(fd);
	if (ret) {
		fprintf(stderr, "cannot map %s: %s\n", path, pmem2_errormsg());
		return -1;
	}
	memory->ptr = pmem2_map_get_address(memory->map);
	memory->size = pmem2_map_get_size(memory->map);
	memory->is_pmem = pmem2_map_get_store_granularity(memory->map) != PMEM2_GRANULARITY_PAGE;
	if (memory->size < size) {
		fprintf(stderr, "%s has %zu bytes, needed are %zu\n", path, memory->size, size);
		memory_close(memory);
		return -1;
	}
	return 0;
}

void memory_persist(const struct memory *memory, size_t size)
{
	if (memory->map)
		pmem2_get_persist_fn(memory->map)(memory->ptr, size);
}

void memory_close(struct memory *memory)
{
	if (memory->map)
		pmem2_map_delete(&memory->map);
	else
		free(memory->ptr);
	memory->ptr = NULL;
}
