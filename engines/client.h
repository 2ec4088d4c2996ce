/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The client side of an engine, the same for every persistence method.
 *
 *   client.c          what fio calls once: set-up, connecting files, cleaning up
 *   client_connect.c  reaching the server, checking what it says
 *   client_io.c       what fio calls for each I/O
 *   client_wait.c     completions, waiting, noticing that the server is gone
 */
#ifndef FIO_RPMA_CLIENT_H
#define FIO_RPMA_CLIENT_H

#include <librpma.h>
#include <librpma_ext.h>

#include "fio-compat.h"
#include "method.h"
#include "options.h"
#include "ranges.h"
#include "wire.h"

/*
 * A request's wr_id: what it was, whose it was, and how far the send queue is empty when it is
 * done. 63..32 requests posted up to and including this one (modulo 2^32) 31..28 kind, 27..0 index
 */
enum client_wr {
	CLIENT_WR_IO,     /* completes the io_u with that index */
	CLIENT_WR_PART,   /* a write that completes with its group; seen only where it fails */
	CLIENT_WR_FLUSH,  /* one of the requests that complete the group of that token */
	CLIENT_WR_METHOD, /* the method's own, in the send queue */
	CLIENT_WR_RECV,   /* the method's own, in the receive queue */
};

#define CLIENT_INDEX_MAX ((1u << 28) - 1)

/* tokens are the index of a group's first io_u, or this: the flush that a sync waits for */
#define CLIENT_TOKEN_SYNC CLIENT_INDEX_MAX

#define CLIENT_NO_SLOT    UINT32_MAX

struct client_slot { /* one for each io_u, by its index */
	struct io_u *io_u;
	uint32_t next;    /* of the same group */
	uint32_t pending; /* flushes that the group waits for; in its first slot */
};

struct client_ring {
	struct io_u **io_u;
	uint32_t mask;
	uint32_t head;
	uint32_t count;
};

struct client {
	struct thread_data *td;
	const struct method *method;
	void *method_data;
	const char *how; /* how data becomes durable here, in words */

	struct rpma_peer *peer;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct rpma_batch *batch;
	struct rpma_mr_remote *region; /* the server's */
	struct rpma_mr_local *buffers; /* all of fio's io_u buffers */
	char *buffers_start;
	uint64_t buffers_size;
	uint64_t region_size;
	uint64_t file_size; /* each of the job's files has that much of the region */
	struct wire_workspace workspace;
	bool persistent; /* the server's memory is */
	enum rpma_flush_type flush_type;
	bool flush_ranges; /* each range needs a flush of its own; else one is for all */

	enum flush_when flush_when;
	bool flush_each_write;
	bool events; /* sleep instead of polling */
	int event_fd;
	int cq_fd;

	struct client_ring queued; /* taken from fio, not posted */
	struct client_ring done;   /* completed, not given back */
	struct client_slot *slots;
	uint32_t in_flight; /* io_us posted and not completed */
	struct ranges unflushed;
	uint32_t sync_pending;
	uint64_t flushing; /* bytes that a sync waits for */
	bool unsubmitted;  /* the device had no room for all of the batch */

	/* counters of send queue entries, modulo 2^32 */
	uint32_t sq_size;
	uint32_t sq_posted;
	uint32_t sq_done;
	uint32_t sq_signalled; /* the last one that will complete */

	uint32_t idle; /* polls since the last completion */
	uint64_t stalled_since;
	int error; /* an errno: the connection is of no more use */
};

static inline uint32_t client_sq_room(const struct client *c)
{
	return c->sq_size - (c->sq_posted - c->sq_done);
}

/* the op_context of the next request; count it with client_sq_appended() once it is in the batch */
static inline const void *client_wr_id(const struct client *c, enum client_wr kind, uint32_t index)
{
	return (const void *)((uint64_t)(c->sq_posted + 1) << 32 | (uint64_t)kind << 28 | index);
}

static inline void client_sq_appended(struct client *c, int flags)
{
	c->sq_posted++;
	if (flags == RPMA_F_COMPLETION_ALWAYS)
		c->sq_signalled = c->sq_posted;
}

static inline uint32_t client_wr_index(uint64_t wr_id)
{
	return wr_id & CLIENT_INDEX_MAX;
}

static inline enum client_wr client_wr_kind(uint64_t wr_id)
{
	return (enum client_wr)(wr_id >> 28 & 0xf);
}

static inline void client_ring_push(struct client_ring *ring, struct io_u *io_u)
{
	ring->io_u[(ring->head + ring->count++) & ring->mask] = io_u;
}

static inline struct io_u *client_ring_peek(const struct client_ring *ring)
{
	return ring->io_u[ring->head & ring->mask];
}

static inline struct io_u *client_ring_pop(struct client_ring *ring)
{
	ring->count--;
	return ring->io_u[ring->head++ & ring->mask];
}

/* client_connect.c */
int client_connect(struct client *c);

/* client_io.c */
enum fio_q_status client_queue(struct thread_data *td, struct io_u *io_u);
int client_commit(struct thread_data *td);
int client_getevents(struct thread_data *td, unsigned int min, unsigned int max,
		     const struct timespec *t);
struct io_u *client_event(struct thread_data *td, int event);
int client_post_queued(struct client *c);
/* all that was taken from fio is completed, and all that was written is flushed (but for `never`)
 */
int client_sync(struct client *c);

/* client_wait.c */
/* one flush of that token is done */
void client_flushed(struct client *c, uint32_t token);
/* collects completions and posts what has room then; client_progress() may sleep a little for them.
 * Both return 0 or c->error. */
int client_poll(struct client *c);
int client_progress(struct client *c);
/* collects what is there.  Returns the number of completions. */
int client_reap(struct client *c);
/* the connection is of no more use; says why, once */
int client_fail(struct client *c, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* FIO_RPMA_CLIENT_H */
