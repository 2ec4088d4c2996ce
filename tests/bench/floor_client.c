/* SPDX-License-Identifier: BSD-3-Clause */
/* The floor's client: keeps `depth` I/Os in flight for some seconds and prints what it achieved. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "librpma_config.h"
#include "floor.h"

#define GOODBYE_NS 2000000000ull /* a server that is gone does not answer */

/* The others are named by their slot, below depth, or by FLOOR_WR_SQ. */
#define WR_GOODBYE UINT64_MAX

/* The work requests of one I/O: the write and what makes it durable, or the read alone. */
struct io {
	struct ibv_send_wr wr[2];
	struct ibv_sge sge[2];
	struct floor_request message;
};

struct client {
	const struct floor_options *opt;
	struct floor_conn conn;
	char *buffer; /* depth blocks, then the 8 bytes a flushing read lands in */
	size_t buffer_size;
	struct ibv_mr *mr;
	struct io *chain; /* batch of them */
	uint64_t *idle;   /* a stack of the slots that are not in flight */
	unsigned idle_count;
	uint64_t next; /* offset of the next I/O */
	uint64_t done;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static bool by_message(const struct client *c)
{
	return c->opt->method == FLOOR_GPSPM && !c->opt->reads;
}

static uint64_t next_offset(struct client *c)
{
	uint64_t offset = c->next;

	c->next += c->opt->block;
	if (c->next + c->opt->block > c->conn.peer.size)
		c->next = 0;
	return offset;
}

/* All that is the same for each I/O is filled in once. */
static void init_io(struct client *c, struct io *io)
{
	const struct floor_options *opt = c->opt;
	uint32_t rkey = c->conn.peer.rkey;

	io->sge[0] = (struct ibv_sge){.length = opt->block, .lkey = c->mr->lkey};
	io->wr[0] = (struct ibv_send_wr){
		.opcode = opt->reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		.sg_list = &io->sge[0],
		.num_sge = 1,
		.wr.rdma.rkey = rkey,
	};
	io->wr[1] = (struct ibv_send_wr){.sg_list = &io->sge[1], .num_sge = 1};
	if (opt->reads || opt->method == FLOOR_NONE) {
		io->wr[0].send_flags = IBV_SEND_SIGNALED;
		return;
	}
	io->wr[0].next = &io->wr[1];
	if (by_message(c)) {
		io->sge[1] = (struct ibv_sge){
			.addr = (uintptr_t)&io->message,
			.length = sizeof(io->message),
		};
		io->wr[1].opcode = IBV_WR_SEND;
		io->wr[1].send_flags = IBV_SEND_INLINE;
	} else {
		io->sge[1] = (struct ibv_sge){
			.addr = (uintptr_t)c->buffer + opt->depth * opt->block,
			.length = 8,
			.lkey = c->mr->lkey,
		};
		io->wr[1].opcode = IBV_WR_RDMA_READ;
		io->wr[1].send_flags = IBV_SEND_SIGNALED;
		io->wr[1].wr.rdma.rkey = rkey;
	}
}

/* Fills in an I/O; returns its last request. */
static struct ibv_send_wr *set_io(struct client *c, struct io *io, uint64_t slot)
{
	uint64_t offset = next_offset(c), remote = c->conn.peer.addr + offset;
	struct ibv_send_wr *last = &io->wr[io->wr[0].send_flags & IBV_SEND_SIGNALED ? 0 : 1];

	io->sge[0].addr = (uintptr_t)c->buffer + slot * c->opt->block;
	io->wr[0].wr.rdma.remote_addr = remote;
	last->wr_id = slot;
	if (by_message(c)) {
		io->message = (struct floor_request){
			.offset = offset, .length = c->opt->block, .cookie = slot};
		floor_sq_posted(&c->conn, last, 2);
	} else {
		last->wr.rdma.remote_addr = remote;
	}
	return last;
}

#ifdef NATIVE_FLUSH_SUPPORTED
static int post_native(struct client *c, unsigned count)
{
	struct ibv_qp_ex *qp = c->conn.qpx;
	const struct floor_region *peer = &c->conn.peer;
	bool persistent = strcmp(c->opt->memory, "malloc") != 0;
	size_t block = c->opt->block;

	ibv_wr_start(qp);
	for (unsigned i = 0; i < count; i++) {
		uint64_t slot = c->idle[--c->idle_count], remote = peer->addr + next_offset(c);

		qp->wr_id = slot;
		qp->wr_flags = 0;
		ibv_wr_rdma_write(qp, peer->rkey, remote);
		ibv_wr_set_sge(qp, c->mr->lkey, (uintptr_t)c->buffer + slot * block, block);
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_flush(qp, peer->rkey, remote, block,
			     persistent ? IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	}
	errno = ibv_wr_complete(qp);
	return errno ? floor_fail("ibv_wr_complete") : 0;
}
#else
static int post_native(struct client *c, unsigned count)
{
	(void)c, (void)count;
	fprintf(stderr, "floor: built without native flush: the verbs headers do not have it\n");
	return -1;
}
#endif

/* Takes the time that a program would to make @count I/Os. */
static void think(const struct client *c, unsigned count)
{
	uint64_t until;

	if (!c->opt->think)
		return;
	until = now_ns() + (uint64_t)c->opt->think * count;
	while (now_ns() < until)
		;
}

/* Posts @count idle I/Os as one chain. */
static int post_ios(struct client *c, unsigned count)
{
	struct ibv_send_wr *last = NULL, *bad;

	think(c, count);
	if (c->opt->method == FLOOR_NATIVE && !c->opt->reads)
		return post_native(c, count);
	for (unsigned i = 0; i < count; i++) {
		if (last)
			last->next = c->chain[i].wr;
		last = set_io(c, &c->chain[i], c->idle[--c->idle_count]);
	}
	last->next = NULL;
	errno = ibv_post_send(c->conn.id->qp, c->chain[0].wr, &bad);
	return errno ? floor_fail("ibv_post_send") : 0;
}

static int post_idle(struct client *c)
{
	while (c->idle_count) {
		unsigned n = c->idle_count < c->opt->batch ? c->idle_count : c->opt->batch;

		if (c->conn.sq_size - (c->conn.sq_posted - c->conn.sq_done) < 2 * n)
			break; /* goes on with the next completions */
		if (post_ios(c, n))
			return -1;
	}
	return 0;
}

static void io_done(struct client *c, uint64_t slot)
{
	c->idle[c->idle_count++] = slot;
	c->done++;
}

static int take_completions(struct client *c)
{
	struct ibv_wc wc[FLOOR_POLL_BATCH];
	uint64_t received[FLOOR_POLL_BATCH];
	int n = ibv_poll_cq(c->conn.cq, FLOOR_POLL_BATCH, wc), answers = 0;

	if (n < 0)
		return floor_fail("ibv_poll_cq");
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "floor: completion: %s\n", ibv_wc_status_str(wc[i].status));
			return -1;
		}
		if (wc[i].opcode & IBV_WC_RECV) {
			uint64_t cookie = c->conn.slots[wc[i].wr_id].cookie;

			if (wc[i].byte_len != sizeof(struct floor_request) ||
			    cookie >= c->opt->depth) {
				fprintf(stderr, "floor: unexpected answer from the server\n");
				return -1;
			}
			received[answers++] = wc[i].wr_id;
			io_done(c, cookie);
		} else if (wc[i].wr_id & FLOOR_WR_SQ) {
			floor_sq_done(&c->conn, wc[i].wr_id);
		} else {
			io_done(c, wc[i].wr_id);
		}
	}
	floor_polled(&c->conn, n);
	return floor_post_recvs(&c->conn, received, answers);
}

static int run(struct client *c)
{
	uint64_t start = now_ns(), warm = start + c->opt->warm_up * 1e9, from = 0;
	uint64_t end = warm + c->opt->seconds * 1e9, now = start;

	while (now < end) {
		if (post_idle(c) || take_completions(c))
			return -1;
		now = now_ns();
		if (from == 0 && now >= warm) {
			from = now;
			c->done = 0;
		}
	}
	printf("%.1f\n", c->done * 1e9 / (now - from));
	return 0;
}

/*
 * Tells the server that this was all, and waits until it was told: a send queue is in order, so
 * nothing can then be on its way into memory that the server gives back.
 */
static void say_goodbye(struct client *c)
{
	struct ibv_send_wr last = {
		.wr_id = WR_GOODBYE, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	uint64_t end = now_ns() + GOODBYE_NS;
	struct ibv_wc wc = {0};

	/* the queue may be full of I/Os that still have to complete */
	while (ibv_post_send(c->conn.id->qp, &last, &bad) && now_ns() < end)
		ibv_poll_cq(c->conn.cq, 1, &wc);
	while (wc.wr_id != WR_GOODBYE && now_ns() < end)
		if (ibv_poll_cq(c->conn.cq, 1, &wc) < 0)
			break;
}

static int open_buffers(struct client *c)
{
	const struct floor_options *opt = c->opt;

	c->buffer_size = opt->depth * opt->block + 8;
	c->buffer = mmap(NULL, c->buffer_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	if (c->buffer == MAP_FAILED) {
		c->buffer = NULL;
		return floor_fail("mmap");
	}
	memset(c->buffer, 0x5a, c->buffer_size);
	/* iWARP wants remote-write access of a read's sink */
	c->mr = ibv_reg_mr(c->conn.id->pd, c->buffer, c->buffer_size,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (c->mr == NULL)
		return floor_fail("ibv_reg_mr");
	c->chain = calloc(opt->batch, sizeof(*c->chain));
	c->idle = calloc(opt->depth, sizeof(*c->idle));
	if (c->chain == NULL || c->idle == NULL)
		return floor_fail("out of memory");
	for (unsigned i = 0; i < opt->batch; i++)
		init_io(c, &c->chain[i]);
	while (c->idle_count < opt->depth) {
		c->idle[c->idle_count] = c->idle_count;
		c->idle_count++;
	}
	return 0;
}

int floor_client(const struct floor_options *opt)
{
	struct client c = {.opt = opt};
	int ret = -1;

	if (floor_connect(&c.conn, opt))
		goto out;
	if (opt->block > c.conn.peer.size) {
		fprintf(stderr, "floor: blocks of %zu bytes, but the server has %zu\n", opt->block,
			(size_t)c.conn.peer.size);
		goto out;
	}
	if (open_buffers(&c))
		goto out;
	ret = run(&c);
	if (ret == 0)
		say_goodbye(&c);
out:
	if (c.mr)
		ibv_dereg_mr(c.mr);
	floor_close(&c.conn);
	if (c.buffer)
		munmap(c.buffer, c.buffer_size);
	free(c.chain);
	free(c.idle);
	return ret;
}
