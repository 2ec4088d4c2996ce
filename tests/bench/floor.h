/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floor: the work of the engines done with nothing but verbs.
 *
 * What a job of the RPMA engines achieves is compared with this program, which sends the same work
 * requests over the same device with no fio, no librpma and no checks.  The difference is what fio
 * and our layers cost.
 *
 * It does the least that the pattern needs: an I/O whose completion was polled is posted again at
 * once, as one chain (the write and what makes it durable) with one doorbell, or up to --batch of
 * them by one; completions are polled by up to 32; nothing is signalled but what ends an I/O
 * (GPSPM: but what keeps the send queue moving); the server answers all that one poll brought by
 * one doorbell.  It reads the clock once a poll, not for each I/O, and keeps no latencies.
 */
#ifndef FLOOR_H
#define FLOOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <rdma/rdma_cma.h>

/* How written data are made durable. */
enum floor_method {
	FLOOR_NONE,   /* not at all */
	FLOOR_READ,   /* an 8-byte RDMA read behind the write */
	FLOOR_NATIVE, /* RDMA flush behind the write */
	FLOOR_GPSPM,  /* a message to the server, whose CPU flushes and answers */
};

struct floor_options {
	bool server;
	bool reads; /* RDMA reads instead of writes */
	enum floor_method method;
	const char *addr;
	const char *port;
	const char *memory; /* "malloc" or the path of a device DAX or a file */
	size_t size;        /* bytes of memory the server offers */
	size_t block;       /* bytes per I/O */
	unsigned depth;     /* I/Os in flight */
	unsigned batch;     /* I/Os that one doorbell may start */
	double seconds;     /* how long the client measures */
	double warm_up;     /* how long it works before it does, seconds */
	unsigned think;     /* nanoseconds the client spends on an I/O before it posts it */
};

/* What the server tells the client about its memory, in the private data of the accept. */
struct floor_region {
	uint64_t addr;
	uint64_t size;
	uint32_t rkey;
} __attribute__((packed));

#define FLOOR_POLL_BATCH 32

/* Deepest queue: a device often has no more than 16384 work requests to give. */
#define FLOOR_DEPTH_MAX 4000

/* A GPSPM request and its answer: the range to make durable; the answer returns the cookie. */
struct floor_request {
	uint64_t offset;
	uint64_t length;
	uint64_t cookie;
};

/* One end of a connection. */
struct floor_conn {
	struct rdma_cm_id *listener; /* server only */
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp_ex *qpx;       /* NULL unless native flush is used */
	struct floor_request *slots; /* depth + 1 messages to receive into */
	struct ibv_mr *slots_mr;
	uint32_t sq_size; /* work requests; the counters are modulo 2^32 */
	uint32_t sq_posted, sq_done, sq_signalled;
	uint32_t empty_polls;     /* in a row */
	struct floor_region peer; /* client only: the server's memory */
};

/* Each returns 0, or -1 after one line on stderr. */
int floor_connect(struct floor_conn *conn, const struct floor_options *opt);
int floor_listen(struct floor_conn *conn, const struct floor_options *opt);
int floor_prepare(struct floor_conn *conn, const struct floor_options *opt, struct rdma_cm_id *id);
int floor_accept(struct floor_conn *conn, const struct floor_region *region);
void floor_close(struct floor_conn *conn);
/* @count is at most FLOOR_POLL_BATCH */
int floor_post_recvs(struct floor_conn *conn, const uint64_t *slots, int count);
int floor_fail(const char *what);

/*
 * For sends of which only some are signalled: counts @count more, the last of which is @wr, and has
 * it signalled when a quarter of the queue was not.  A completion of it goes to floor_sq_done().
 */
void floor_sq_posted(struct floor_conn *conn, struct ibv_send_wr *wr, uint32_t count);
void floor_sq_done(struct floor_conn *conn, uint64_t wr_id);

/* After each poll: where there are fewer CPUs than pollers, the peer wants this one at times. */
void floor_polled(struct floor_conn *conn, int found);

/* In the wr_id of a request that ends no I/O. */
#define FLOOR_WR_SQ (1ull << 63)

int floor_client(const struct floor_options *opt);
int floor_server(const struct floor_options *opt);

#endif
