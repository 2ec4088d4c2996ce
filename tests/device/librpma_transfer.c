// SPDX-License-Identifier: BSD-3-Clause
/* Reads, writes, atomic writes and flushes on a real device, in DRAM and on device DAX. */
#include <fcntl.h>
#include <linux/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"

#define DAX_SIZE    (2UL << 20) /* a device DAX is mapped in units of 2 MiB */
#define PACKET_SIZE 1024        /* fits into the path MTU of an Ethernet of 1500 */

static void test_what_is_written_is_read_back_with_offsets_on_both_sides(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	struct end *c = &pair.client;

	strcpy(c->memory + 100, "what the client wrote");
	assert_ok(rpma_write(c->conn, c->remote, 4000, c->mr, 100, 22, RPMA_F_COMPLETION_ALWAYS,
			     "write"));
	expect_wc(c->cq, "write");
	assert_ok(rpma_read(c->conn, c->mr, 8000, c->remote, 4000, 22, RPMA_F_COMPLETION_ALWAYS,
			    "read"));
	expect_wc(c->cq, "read");
	/* A write that has completed is on its way (iWARP); a read behind it has found it there. */
	assert_string_equal(pair.server.memory + 4000, "what the client wrote");
	assert_string_equal(c->memory + 8000, "what the client wrote");
	pair_close(&pair);
}

static void test_an_operation_completing_on_error_only_says_nothing_when_it_succeeds(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	struct end *c = &pair.client;

	assert_ok(rpma_write(c->conn, c->remote, 0, c->mr, 0, 8, RPMA_F_COMPLETION_ON_ERROR, "1"));
	assert_ok(rpma_read(c->conn, c->mr, 0, c->remote, 0, 8, RPMA_F_COMPLETION_ALWAYS, "2"));
	expect_wc(c->cq, "2");
	expect_no_wc(c->cq);
	pair_close(&pair);
}

static void test_transfers_of_0_bytes_complete(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	struct end *c = &pair.client;

	assert_ok(rpma_write(c->conn, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, "write"));
	expect_wc(c->cq, "write");
	assert_ok(rpma_read(c->conn, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, "read"));
	expect_wc(c->cq, "read");
	pair_close(&pair);
}

static void test_ranges_outside_a_region_are_refused_before_anything_is_posted(void **state)
{
	static const size_t wrong[][2] = {{MEMORY_SIZE, 1},     {0, MEMORY_SIZE + 1},
					  {MEMORY_SIZE - 1, 2}, {SIZE_MAX, 1},
					  {SIZE_MAX - 6, 8},    {1, SIZE_MAX},
					  {0, 1UL << 32},       {MEMORY_SIZE, SIZE_MAX - 1}};
	int flags = RPMA_F_COMPLETION_ALWAYS;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	struct end *c = &pair.client;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		size_t at = wrong[i][0], len = wrong[i][1];

		assert_int_equal(rpma_write(c->conn, c->remote, at, c->mr, 0, len, flags, NULL),
				 RPMA_E_INVAL);
		assert_int_equal(rpma_write(c->conn, c->remote, 0, c->mr, at, len, flags, NULL),
				 RPMA_E_INVAL);
		assert_int_equal(rpma_read(c->conn, c->mr, at, c->remote, 0, len, flags, NULL),
				 RPMA_E_INVAL);
		assert_int_equal(rpma_flush(c->conn, c->remote, at, len, RPMA_FLUSH_TYPE_VISIBILITY,
					    flags, NULL),
				 RPMA_E_INVAL);
		assert_int_equal(rpma_send(c->conn, c->mr, at, len, flags, NULL), RPMA_E_INVAL);
		assert_int_equal(rpma_recv(c->conn, c->mr, at, len, NULL), RPMA_E_INVAL);
	}
	expect_no_wc(c->cq);
	pair_close(&pair);
}

/* a descriptor that promises more than there is */
static void test_a_forged_descriptor_ends_in_an_access_error_and_nothing_is_touched(void **state)
{
	static const char beyond[] = "beyond";
	uint8_t descriptor[21];
	struct rpma_mr_remote *forged;
	struct ibv_wc wc;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	struct end *c = &pair.client;
	uint64_t size = pair.server.size * 2;

	assert_ok(rpma_mr_get_descriptor(pair.server.mr, descriptor));
	memcpy(descriptor + 8, &size, sizeof(size));
	assert_ok(rpma_mr_remote_from_descriptor(descriptor, sizeof(descriptor), &forged));
	memset(c->memory, 'x', 16);
	assert_ok(rpma_write(c->conn, forged, pair.server.size - 8, c->mr, 0, 16,
			     RPMA_F_COMPLETION_ON_ERROR, beyond));
	assert_ok(rpma_read(c->conn, c->mr, 0, c->remote, 0, 8, RPMA_F_COMPLETION_ALWAYS, "read"));
	next_wc(c->cq, &wc);
	/* InfiniBand answers the write; on iWARP it has completed, and the read is told. */
	if (wc.wr_id == (uintptr_t)beyond)
		assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	else
		assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(pair.server.memory[pair.server.size - 8], 0);
	assert_ok(rpma_mr_remote_delete(&forged));
	/* The connection is broken; either side may hear of it in its own way. */
	assert_ok(rpma_conn_delete(&c->conn));
	assert_ok(rpma_conn_delete(&pair.server.conn));
	pair_close(&pair);
}

static void write_and_flush(struct pair *pair, enum rpma_flush_type type)
{
	struct end *c = &pair->client;
	size_t offsets[] = {0, 13, c->size - 4096};

	for (int i = 0; i < 3; i++) {
		memset(c->memory, 'a' + i, 4096);
		assert_ok(rpma_write(c->conn, c->remote, offsets[i], c->mr, 0, 4096,
				     RPMA_F_COMPLETION_ON_ERROR, "write"));
		assert_ok(rpma_flush(c->conn, c->remote, offsets[i], 4096, type,
				     RPMA_F_COMPLETION_ALWAYS, "flush"));
		expect_wc(c->cq, "flush");
		assert_memory_equal(pair->server.memory + offsets[i], c->memory, 4096);
	}
	/* the region's last byte, where 8 would be too many */
	assert_ok(rpma_flush(c->conn, c->remote, pair->server.size - 1, 1, type,
			     RPMA_F_COMPLETION_ALWAYS, "last"));
	expect_wc(c->cq, "last");
	expect_no_wc(c->cq);
}

static void flush_in_every_mode(struct pair *pair, enum rpma_flush_type type)
{
	struct end *c = &pair->client;
	enum rpma_flush_mode mode;
	bool native = features() & RPMA_FEATURE_NATIVE_FLUSH;

	assert_ok(rpma_conn_get_flush_mode(c->conn, &mode));
	assert_int_equal(mode, native ? RPMA_FLUSH_MODE_NATIVE : RPMA_FLUSH_MODE_READ);
	write_and_flush(pair, type);

	assert_ok(rpma_conn_set_flush_mode(c->conn, RPMA_FLUSH_MODE_READ));
	assert_ok(rpma_conn_get_flush_mode(c->conn, &mode));
	assert_int_equal(mode, RPMA_FLUSH_MODE_READ);
	write_and_flush(pair, type);

	log_capture();
	assert_int_equal(rpma_conn_set_flush_mode(c->conn, RPMA_FLUSH_MODE_NATIVE),
			 native ? 0 : RPMA_E_NOSUPP);
	write_and_flush(pair, type);
}

static void test_dram_is_flushed_to_visibility_in_every_mode(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	flush_in_every_mode(&pair, RPMA_FLUSH_TYPE_VISIBILITY);
	pair_close(&pair);
}

static void test_a_flush_that_the_region_was_not_registered_for_is_not_supported(void **state)
{
	struct pair pair;

	(void)state;
	log_capture();
	pair_open(&pair, NULL);
	assert_int_equal(rpma_flush(pair.client.conn, pair.client.remote, 0, 8,
				    RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, NULL),
			 RPMA_E_NOSUPP);
	pair_close(&pair);
}

static void
test_dram_registered_as_persistent_is_refused_by_a_device_with_native_flush(void **state)
{
	struct rpma_mr_local *mr = NULL;
	struct rpma_peer *peer;
	char *memory;

	(void)state;
	if (!(features() & RPMA_FEATURE_NATIVE_FLUSH))
		skip();

	peer = new_peer();
	memory =
		mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	log_capture();
	assert_int_equal(rpma_mr_reg(peer, memory, MEMORY_SIZE,
				     RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
				     &mr),
			 RPMA_E_PROVIDER);
	assert_null(mr);
	assert_non_null(strstr(log_last(), "use FLUSH_TYPE_VISIBILITY"));
	munmap(memory, MEMORY_SIZE);
	assert_ok(rpma_peer_delete(&peer));
}

static void test_device_dax_is_flushed_to_persistence_in_every_mode(void **state)
{
	const char *path = getenv("RPMA_TEST_DEVDAX");
	struct rpma_peer_cfg *pcfg;
	struct pair pair;

	(void)state;
	if (path == NULL)
		skip();

	int fd = open(path, O_RDWR);
	struct options options = {
		.memory = mmap(NULL, DAX_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
		.size = DAX_SIZE,
		.usage = RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
	};

	assert_ptr_not_equal(options.memory, MAP_FAILED);
	pair_open(&pair, &options);

	/* By reads only if the server's platform makes a write persistent. */
	log_capture();
	assert_ok(rpma_conn_set_flush_mode(pair.client.conn, RPMA_FLUSH_MODE_READ));
	assert_int_equal(rpma_flush(pair.client.conn, pair.client.remote, 0, 8,
				    RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, NULL),
			 RPMA_E_NOSUPP);
	assert_ok(rpma_conn_set_flush_mode(pair.client.conn, RPMA_FLUSH_MODE_AUTO));
	if (features() & RPMA_FEATURE_NATIVE_FLUSH)
		write_and_flush(&pair, RPMA_FLUSH_TYPE_PERSISTENT);

	assert_ok(rpma_peer_cfg_new(&pcfg));
	assert_ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	assert_ok(rpma_conn_apply_remote_peer_cfg(pair.client.conn, pcfg));
	assert_ok(rpma_peer_cfg_delete(&pcfg));
	flush_in_every_mode(&pair, RPMA_FLUSH_TYPE_PERSISTENT);
	flush_in_every_mode(&pair, RPMA_FLUSH_TYPE_VISIBILITY);

	pair_close(&pair);
	munmap(options.memory, DAX_SIZE);
	close(fd);
}

/* a new file on $RPMA_TEST_FSDAX, mapped; the caller unmaps and closes */
static char *map_fsdax_file(const char *folder, int *fd)
{
	char path[256];
	char *memory;

	snprintf(path, sizeof(path), "%s/librpma_transfer", folder);
	*fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_int_not_equal(*fd, -1);
	assert_ok(unlink(path));
	assert_ok(posix_fallocate(*fd, 0, DAX_SIZE));
	memory = mmap(NULL, DAX_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, *fd,
		      0);
	assert_ptr_not_equal(memory, MAP_FAILED);

	return memory;
}

static void refuse_fsdax(char *memory)
{
	struct rpma_peer *peer = new_peer();
	struct rpma_mr_local *mr = NULL;

	log_capture();
	assert_int_equal(rpma_mr_reg(peer, memory, DAX_SIZE, RPMA_MR_USAGE_WRITE_DST, &mr),
			 RPMA_E_PROVIDER);
	assert_null(mr);
	assert_non_null(strstr(log_last(), "on-demand paging"));
	assert_ok(rpma_peer_delete(&peer));
}

/*
 * Not write_and_flush(): with on-demand paging, rxe of Linux 7.3.4 stores only the first packet
 * that falls into a page where it belongs.  Of 4096 bytes at a path MTU of 1024, memory and file
 * had 1024, though all completions were successful and an RDMA read gave back all 4096.
 */
static void write_one_packet_and_flush(struct pair *pair, enum rpma_flush_type type)
{
	struct end *c = &pair->client;
	size_t offsets[] = {0, 8192, pair->server.size - 4096};

	for (int i = 0; i < 3; i++) {
		memset(c->memory, 'a' + i, PACKET_SIZE);
		assert_ok(rpma_write(c->conn, c->remote, offsets[i], c->mr, 0, PACKET_SIZE,
				     RPMA_F_COMPLETION_ON_ERROR, "write"));
		assert_ok(rpma_flush(c->conn, c->remote, offsets[i], PACKET_SIZE, type,
				     RPMA_F_COMPLETION_ALWAYS, "flush"));
		expect_wc(c->cq, "flush");
		assert_memory_equal(pair->server.memory + offsets[i], c->memory, PACKET_SIZE);
	}
}

static void use_fsdax(char *memory)
{
	struct options options = {
		.memory = memory,
		.size = DAX_SIZE,
		.usage = RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
	};
	struct pair pair;

	log_capture();
	pair_open(&pair, &options);

	int advised = rpma_mr_advise(pair.server.mr, 0, 4096, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				     IBV_ADVISE_MR_FLAG_FLUSH);

	/* A device may have on-demand paging and take no advice on it: rxe with rdma-core 56. */
	assert_true(advised == 0 || advised == RPMA_E_NOSUPP);
	assert_int_equal(rpma_mr_advise(pair.server.mr, DAX_SIZE, 1,
					IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
					IBV_ADVISE_MR_FLAG_FLUSH),
			 RPMA_E_INVAL);
	write_one_packet_and_flush(&pair, RPMA_FLUSH_TYPE_PERSISTENT);
	pair_close(&pair);
}

static void test_fsdax_works_with_on_demand_paging_and_is_refused_without(void **state)
{
	const char *folder = getenv("RPMA_TEST_FSDAX");
	char *memory;
	int fd;

	(void)state;
	if (folder == NULL)
		skip();

	memory = map_fsdax_file(folder, &fd);
	if (features() & RPMA_FEATURE_ODP)
		use_fsdax(memory);
	else
		refuse_fsdax(memory);
	munmap(memory, DAX_SIZE);
	close(fd);
}

static void test_an_atomic_write_stores_8_bytes(void **state)
{
	char value[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	char copy[8];
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	struct end *c = &pair.client;

	memcpy(copy, value, sizeof(value));
	assert_ok(rpma_atomic_write(c->conn, c->remote, 64, value, RPMA_F_COMPLETION_ALWAYS,
				    "atomic"));
	memset(value, 0, sizeof(value));
	expect_wc(c->cq, "atomic");
	assert_memory_equal(pair.server.memory + 64, copy, 8);
	assert_int_equal(pair.server.memory[72], 0);
	assert_int_equal(
		rpma_atomic_write(c->conn, c->remote, 60, value, RPMA_F_COMPLETION_ALWAYS, NULL),
		RPMA_E_INVAL);
	assert_int_equal(rpma_atomic_write(c->conn, c->remote, MEMORY_SIZE, value,
					   RPMA_F_COMPLETION_ALWAYS, NULL),
			 RPMA_E_INVAL);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read_back_with_offsets_on_both_sides),
		cmocka_unit_test(
			test_an_operation_completing_on_error_only_says_nothing_when_it_succeeds),
		cmocka_unit_test(test_transfers_of_0_bytes_complete),
		cmocka_unit_test(
			test_ranges_outside_a_region_are_refused_before_anything_is_posted),
		cmocka_unit_test(
			test_a_forged_descriptor_ends_in_an_access_error_and_nothing_is_touched),
		cmocka_unit_test(test_dram_is_flushed_to_visibility_in_every_mode),
		cmocka_unit_test(
			test_a_flush_that_the_region_was_not_registered_for_is_not_supported),
		cmocka_unit_test(
			test_dram_registered_as_persistent_is_refused_by_a_device_with_native_flush),
		cmocka_unit_test(test_device_dax_is_flushed_to_persistence_in_every_mode),
		cmocka_unit_test(test_fsdax_works_with_on_demand_paging_and_is_refused_without),
		cmocka_unit_test(test_an_atomic_write_stores_8_bytes),
	};

	return cmocka_run_group_tests_name("librpma_transfer", tests, NULL, NULL);
}
