/* SPDX-License-Identifier: GPL-2.0-only */
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"

#define DRAM_NAME "malloc"

static size_t round_up(size_t value, size_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static size_t huge_page_size(void)
{
	size_t kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Hugepagesize: %zu kB", &kib) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kib * 1024;
}

/*
 * Lets libpmem2 choose the persist function for DRAM as if it were persistent memory behind the CPU
 * caches, so that it costs what it would cost there.
 */
static int persist_dram(struct thread_data *td, struct memory *memory)
{
	struct pmem2_source *source;
	int ret = pmem2_source_from_anon(&source, memory->mapped_size);

	if (!ret) {
		ret = pmem2_map_from_existing(&memory->map, source, memory->mapped,
					      memory->mapped_size, PMEM2_GRANULARITY_CACHE_LINE);
		pmem2_source_delete(&source);
	}
	if (ret) {
		say_error(td, ENOMEM, "libpmem2 does not take the DRAM: %s", pmem2_errormsg());
		return ENOMEM;
	}
	memory->persist = pmem2_get_persist_fn(memory->map);
	return 0;
}

static int open_dram(struct thread_data *td, size_t size, bool huge_pages, struct memory *memory)
{
	size_t unit = huge_pages ? huge_page_size() : (size_t)sysconf(_SC_PAGESIZE);
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (huge_pages ? MAP_HUGETLB : 0);

	if (!unit) {
		say_error(td, ENOTSUP, "hugepage=1, but this kernel has no huge pages");
		return ENOTSUP;
	}
	memory->mapped_size = round_up(size, unit);
	memory->mapped = mmap(NULL, memory->mapped_size, PROT_READ | PROT_WRITE,
			      flags | MAP_POPULATE, -1, 0);
	if (memory->mapped == MAP_FAILED) {
		memory->mapped = NULL;
		if (huge_pages)
			say_error(
				td, ENOMEM,
				"hugepage=1: %zu free huge pages of %zu KiB are needed; make them "
				"with vm.nr_hugepages, or set hugepage=0",
				memory->mapped_size / unit, unit / 1024);
		else
			say_error(td, ENOMEM, "there is no memory for size: %zu bytes of DRAM",
				  size);
		return ENOMEM;
	}
	memory->ptr = memory->mapped;
	memory->size = size;
	snprintf(memory->what, sizeof(memory->what), "DRAM%s, NOT persistent",
		 huge_pages ? " in huge pages" : "");
	return persist_dram(td, memory);
}

struct place {
	const char *path;
	bool device;       /* a character device */
	uint64_t offset;   /* of this thread's part */
	uint64_t capacity; /* bytes the file or device has */
	size_t alignment;
};

/*
 * Device DAX: thread n of the whole job file has the n-th slice.  Files: the threads of one job
 * take the named files in turn, and where there are more threads than files, a file's next slice
 * each round.  fio's offset= moves all of it.
 */
static void memory_place(struct thread_data *td, size_t size, struct place *place)
{
	unsigned int files = td->o.nr_files ? td->o.nr_files : 1;
	struct stat st;
	uint64_t slice;

	place->path = td->files[td->subjob_number % files]->file_name;
	place->device = !stat(place->path, &st) && S_ISCHR(st.st_mode);
	slice = place->device ? td->thread_number - 1 : td->subjob_number / files;
	place->offset = td->o.start_offset + slice * size;
}

static int check_place(struct thread_data *td, size_t size, struct pmem2_source *source,
		       struct place *place)
{
	size_t capacity;

	if (pmem2_source_size(source, &capacity) ||
	    pmem2_source_alignment(source, &place->alignment)) {
		say_error(td, EINVAL, "%s is neither device DAX nor a regular file: %s",
			  place->path, pmem2_errormsg());
		return EINVAL;
	}
	place->capacity = capacity;
	if (place->offset > capacity || size > capacity - place->offset) {
		say_error(td, ENOSPC,
			  "%s is too small: this thread needs bytes %" PRIu64 " to %" PRIu64
			  ", and it has %zu",
			  place->path, place->offset, place->offset + size, capacity);
		return ENOSPC;
	}
	return 0;
}

static const char *granularity_name(enum pmem2_granularity granularity)
{
	switch (granularity) {
	case PMEM2_GRANULARITY_BYTE:
		return "byte";
	case PMEM2_GRANULARITY_CACHE_LINE:
		return "cache line";
	case PMEM2_GRANULARITY_PAGE:
		return "page";
	}
	return "unknown";
}

static void describe(const struct place *place, enum pmem2_granularity granularity,
		     struct memory *memory)
{
	snprintf(memory->what, sizeof(memory->what),
		 "%s of %s from byte %" PRIu64 ", granularity: %s, %s",
		 place->device ? "device DAX" : "file", place->path, place->offset,
		 granularity_name(granularity),
		 memory->persistent ? "persistent"
				    : "NOT persistent: it is not on a DAX file system");
}

/*
 * A map must start and end where the device's alignment allows, which a slice need not do.  So the
 * map is the smallest one allowed around the slice.
 */
static int map_place(struct thread_data *td, size_t size, struct pmem2_source *source,
		     const struct place *place, struct memory *memory)
{
	uint64_t start = place->offset / place->alignment * place->alignment;
	uint64_t end = round_up(place->offset + size, place->alignment);
	enum pmem2_granularity granularity;
	struct pmem2_config *config;
	int ret = pmem2_config_new(&config);

	if (!ret) {
		if (place->device && end > place->capacity)
			end = place->capacity;
		ret = pmem2_config_set_required_store_granularity(config, PMEM2_GRANULARITY_PAGE);
		if (!ret)
			ret = pmem2_config_set_offset(config, start);
		if (!ret)
			ret = pmem2_config_set_length(config, end - start);
		if (!ret)
			ret = pmem2_map_new(&memory->map, config, source);
		pmem2_config_delete(&config);
	}
	if (ret) {
		say_error(td, EINVAL, "%s cannot be mapped: %s", place->path, pmem2_errormsg());
		return EINVAL;
	}
	granularity = pmem2_map_get_store_granularity(memory->map);
	memory->persist = pmem2_get_persist_fn(memory->map);
	memory->ptr = (char *)pmem2_map_get_address(memory->map) + (place->offset - start);
	memory->size = size;
	/* behind the page cache a flush by the network ends in DRAM */
	memory->persistent = granularity != PMEM2_GRANULARITY_PAGE;
	memory->file_backed = !place->device;
	describe(place, granularity, memory);
	return 0;
}

static int open_file(struct thread_data *td, size_t size, struct memory *memory)
{
	struct pmem2_source *source;
	struct place place = {0};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd, error;

	if (size % page) {
		say_error(td, EINVAL, "size=%zu is not a multiple of the page size, %zu bytes",
			  size, page);
		return EINVAL;
	}
	memory_place(td, size, &place);
	fd = open(place.path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		error = errno;
		say_error(td, error,
			  "filename=%s cannot be opened: %s; name device DAX, an existing file, or "
			  "malloc for DRAM",
			  place.path, strerror(error));
		return error;
	}
	if (pmem2_source_from_fd(&source, fd)) {
		say_error(td, EINVAL, "%s cannot be used as memory: %s", place.path,
			  pmem2_errormsg());
		error = EINVAL;
		goto close_fd;
	}
	error = check_place(td, size, source, &place);
	if (!error)
		error = map_place(td, size, source, &place, memory);
	pmem2_source_delete(&source);
close_fd:
	close(fd);
	return error;
}

int memory_open(struct thread_data *td, size_t size, bool huge_pages, struct memory *memory)
{
	const char *name = td->files[0]->file_name;
	bool dram = !strcmp(name, DRAM_NAME);
	int error;

	memset(memory, 0, sizeof(*memory));
	if (huge_pages && !dram) {
		say_error(td, EINVAL, "hugepage=1 is for filename=malloc, not for %s", name);
		return EINVAL;
	}
	error = dram ? open_dram(td, size, huge_pages, memory) : open_file(td, size, memory);
	if (error)
		memory_close(memory);
	return error;
}

void memory_close(struct memory *memory)
{
	if (memory->map)
		pmem2_map_delete(&memory->map);
	if (memory->mapped)
		munmap(memory->mapped, memory->mapped_size);
	memset(memory, 0, sizeof(*memory));
}
