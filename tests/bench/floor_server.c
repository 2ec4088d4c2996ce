/* SPDX-License-Identifier: BSD-3-Clause */
/* The floor's server: offers its memory to one client and, for GPSPM, flushes what it is asked to.
 */

#include <errno.h>
#include <fcntl.h>
#include <libpmem2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "librpma_config.h"
#include "floor.h"

struct memory {
	char *base;
	size_t size;
	struct pmem2_map *map;
	bool dram; /* mapped by mmap(), which libpmem2 only knows of */
	pmem2_persist_fn persist;
};

struct server {
	const struct floor_options *opt;
	struct floor_conn conn;
	struct memory memory;
	struct ibv_mr *mr;
	bool done;
};

static int map_file(struct memory *mem, const struct floor_options *opt)
{
	struct pmem2_config *cfg = NULL;
	struct pmem2_source *src = NULL;
	int fd = open(opt->memory, O_RDWR), ret = -1;

	if (fd < 0)
		return floor_fail(opt->memory);
	if (pmem2_source_from_fd(&src, fd) || pmem2_config_new(&cfg) ||
	    pmem2_config_set_length(cfg, opt->size) ||
	    pmem2_config_set_required_store_granularity(cfg, PMEM2_GRANULARITY_PAGE) ||
	    pmem2_map_new(&mem->map, cfg, src)) {
		fprintf(stderr, "floor: %s: %s\n", opt->memory, pmem2_errormsg());
		goto out;
	}
	mem->base = pmem2_map_get_address(mem->map);
	mem->size = opt->size;
	mem->persist = pmem2_get_persist_fn(mem->map);
	ret = 0;
out:
	pmem2_config_delete(&cfg);
	pmem2_source_delete(&src);
	close(fd);
	return ret;
}

/*
 * DRAM: flushed out of the CPU caches for GPSPM as persistent memory would be, since that is part
 * of the work, and the engine's server does it.
 */
static int map_dram(struct memory *mem, const struct floor_options *opt)
{
	struct pmem2_source *src = NULL;
	int ret = -1;

	mem->base = mmap(NULL, opt->size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (mem->base == MAP_FAILED) {
		mem->base = NULL;
		return floor_fail("mmap");
	}
	mem->size = opt->size;
	mem->dram = true;
	if (pmem2_source_from_anon(&src, opt->size) ||
	    pmem2_map_from_existing(&mem->map, src, mem->base, opt->size,
				    PMEM2_GRANULARITY_CACHE_LINE)) {
		fprintf(stderr, "floor: DRAM: %s\n", pmem2_errormsg());
		goto out;
	}
	mem->persist = pmem2_get_persist_fn(mem->map);
	ret = 0;
out:
	pmem2_source_delete(&src);
	return ret;
}

static int map_memory(struct memory *mem, const struct floor_options *opt)
{
	return strcmp(opt->memory, "malloc") == 0 ? map_dram(mem, opt) : map_file(mem, opt);
}

static void unmap_memory(struct memory *mem)
{
	if (mem->map)
		pmem2_map_delete(&mem->map);
	if (mem->dram)
		munmap(mem->base, mem->size);
}

static int access_rights(const struct floor_options *opt)
{
	int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

#ifdef NATIVE_FLUSH_SUPPORTED
	/* a device refuses the persistent right for memory that is not persistent */
	if (opt->method == FLOOR_NATIVE)
		rights |= strcmp(opt->memory, "malloc") == 0 ? IBV_ACCESS_FLUSH_GLOBAL
							     : IBV_ACCESS_FLUSH_PERSISTENT;
#else
	(void)opt;
#endif
	return rights;
}

/* Whether it polls for requests; else it sleeps until the client says goodbye. */
static bool poll_forever(const struct server *s)
{
	return s->opt->method == FLOOR_GPSPM;
}

/* The answers to what one poll brought: one chain. */
struct answers {
	uint64_t slots[FLOOR_POLL_BATCH];
	struct floor_request text[FLOOR_POLL_BATCH];
	struct ibv_sge sge[FLOOR_POLL_BATCH];
	struct ibv_send_wr wr[FLOOR_POLL_BATCH];
	int count;
};

/* Flushes the range that message @slot asks for, and puts the answer to it into the chain. */
static int answer(struct server *s, uint64_t slot, struct answers *a)
{
	struct floor_request *req = &a->text[a->count];
	int i = a->count++;

	a->slots[i] = slot;
	*req = s->conn.slots[slot];
	if (req->offset > s->memory.size || req->length > s->memory.size - req->offset) {
		fprintf(stderr, "floor: the client asked for a flush outside the memory\n");
		return -1;
	}
	s->memory.persist(s->memory.base + req->offset, req->length);
	a->sge[i] = (struct ibv_sge){.addr = (uintptr_t)req, .length = sizeof(*req)};
	a->wr[i] = (struct ibv_send_wr){
		.opcode = IBV_WR_SEND,
		.sg_list = &a->sge[i],
		.num_sge = 1,
		.send_flags = IBV_SEND_INLINE,
	};
	floor_sq_posted(&s->conn, &a->wr[i], 1);
	if (i)
		a->wr[i - 1].next = &a->wr[i];
	return 0;
}

static int send_answers(struct server *s, struct answers *a)
{
	struct ibv_send_wr *bad;

	if (!a->count)
		return 0;
	/* the answered client may send at once: its message must find a receive */
	if (floor_post_recvs(&s->conn, a->slots, a->count))
		return -1;
	errno = ibv_post_send(s->conn.id->qp, a->wr, &bad);
	return errno ? floor_fail("ibv_post_send") : 0;
}

static int take_completions(struct server *s)
{
	struct ibv_wc wc[FLOOR_POLL_BATCH];
	struct answers answers;
	int n = ibv_poll_cq(s->conn.cq, FLOOR_POLL_BATCH, wc);

	if (n < 0)
		return floor_fail("ibv_poll_cq");
	answers.count = 0;
	for (int i = 0; i < n && !s->done; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "floor: completion: %s\n", ibv_wc_status_str(wc[i].status));
			return -1;
		}
		if (!(wc[i].opcode & IBV_WC_RECV))
			floor_sq_done(&s->conn, wc[i].wr_id);
		else if (wc[i].byte_len == 0)
			s->done = true;
		else if (wc[i].byte_len != sizeof(struct floor_request) ||
			 answer(s, wc[i].wr_id, &answers))
			return -1;
	}
	if (poll_forever(s))
		floor_polled(&s->conn, n);
	return send_answers(s, &answers) ? -1 : n;
}

static int serve(struct server *s)
{
	bool poll = poll_forever(s);
	void *context;
	struct ibv_cq *cq;
	int n;

	while (!s->done) {
		if (!poll && ibv_req_notify_cq(s->conn.cq, 0))
			return floor_fail("ibv_req_notify_cq");
		n = take_completions(s);
		if (n < 0)
			return -1;
		if (poll || n > 0)
			continue;
		if (ibv_get_cq_event(s->conn.channel, &cq, &context))
			return floor_fail("ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	}
	return 0;
}

int floor_server(const struct floor_options *opt)
{
	struct server s = {.opt = opt};
	struct floor_region region;
	int ret = -1;

	if (map_memory(&s.memory, opt) || floor_listen(&s.conn, opt))
		goto out;
	s.mr = ibv_reg_mr(s.conn.id->pd, s.memory.base, s.memory.size, access_rights(opt));
	if (s.mr == NULL) {
		floor_fail("ibv_reg_mr of the memory");
		goto out;
	}
	region = (struct floor_region){
		.addr = (uintptr_t)s.memory.base, .size = s.memory.size, .rkey = s.mr->rkey};
	if (floor_accept(&s.conn, &region) || serve(&s))
		goto out;
	ret = 0;
out:
	if (s.mr)
		ibv_dereg_mr(s.mr);
	floor_close(&s.conn);
	unmap_memory(&s.memory);
	return ret;
}
