/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fio hands over io_us one by one (queue) and says when to start them (commit).  A commit turns all
 * that waits into one chain of requests, in order, and rings the doorbell once:
 *
 *   read                       signalled; completes by itself
 *   write, flush_when=write    not signalled; completes with the flush behind its group.  A group
 * is one write (sync=1) or all the writes of the batch (sync=0) write, else signalled; what it
 * wrote is remembered until the next sync
 *
 * What has no room in the send queue, or in the method's, stays queued until completions make some.
 */
#include "client.h"

#include <errno.h>

#include "say.h"

struct posting {
	uint32_t group; /* the first io_u's index */
	uint32_t group_tail;
	uint32_t io_us;
	struct timespec now;
};

/* the requests that it takes to flush so many ranges */
static uint32_t flush_requests(const struct client *c, uint32_t ranges)
{
	return c->flush_ranges || !ranges ? ranges : 1;
}

/* beside so many other requests */
static bool flush_has_room(const struct client *c, uint32_t ranges, uint32_t others)
{
	uint32_t requests = flush_requests(c, ranges);

	return client_sq_room(c) >= requests + others &&
	       c->method->client_flush_room(c) >= requests;
}

/* room for this io_u and for the flush that its group then needs */
static bool has_room(const struct client *c, const struct io_u *io_u, uint64_t offset)
{
	uint32_t ranges = c->flush_when == FLUSH_ON_WRITE ? c->unflushed.count : 0;

	if (io_u->ddir == DDIR_WRITE && c->flush_when == FLUSH_ON_WRITE &&
	    ranges_starts_new(&c->unflushed, offset))
		ranges++;
	return flush_has_room(c, ranges, 1);
}

static int fail_append(struct client *c, const char *what, int ret)
{
	return client_fail(c, EIO, "%s cannot be posted: %s%s", what, say_rpma_reason(ret),
			   say_post_hint());
}

/* where in the region an io_u goes; false: fio asks for what is not there */
static bool io_u_place(const struct client *c, const struct io_u *io_u, uint64_t *offset,
		       uint64_t *buffer)
{
	uint64_t length = io_u->xfer_buflen;

	*offset = io_u->file->fileno * c->file_size + io_u->offset;
	*buffer = (uint64_t)((char *)io_u->xfer_buf - c->buffers_start);
	return length && length <= c->file_size && io_u->offset <= c->file_size - length &&
	       length <= c->buffers_size && *buffer <= c->buffers_size - length;
}

static int close_group(struct client *c, struct posting *p)
{
	uint32_t pending = 0;
	int error;

	error = c->method->client_flush(c, c->unflushed.r, c->unflushed.count, p->group, &pending);
	if (error)
		return error;
	c->slots[p->group].pending = pending;
	c->unflushed.count = 0;
	p->group = CLIENT_NO_SLOT;
	return 0;
}

static void join_group(struct client *c, struct posting *p, uint32_t index)
{
	c->slots[index].next = CLIENT_NO_SLOT;
	if (p->group == CLIENT_NO_SLOT)
		p->group = index;
	else
		c->slots[p->group_tail].next = index;
	p->group_tail = index;
}

static void remember(struct client *c, uint64_t offset, uint64_t length)
{
	if (ranges_full(&c->unflushed) && ranges_starts_new(&c->unflushed, offset))
		ranges_compact(&c->unflushed);
	ranges_add(&c->unflushed, offset, length);
}

static int append_write(struct client *c, struct posting *p, struct io_u *io_u, uint64_t offset,
			uint64_t buffer)
{
	bool grouped = c->flush_when == FLUSH_ON_WRITE;
	int flags = grouped ? RPMA_F_COMPLETION_ON_ERROR : RPMA_F_COMPLETION_ALWAYS;
	enum client_wr kind = grouped ? CLIENT_WR_PART : CLIENT_WR_IO;
	int ret = rpma_batch_write(c->batch, c->region, offset, c->buffers, buffer,
				   io_u->xfer_buflen, flags, client_wr_id(c, kind, io_u->index));

	if (ret)
		return fail_append(c, "a write", ret);
	client_sq_appended(c, flags);
	if (c->flush_when != FLUSH_NEVER)
		remember(c, offset, io_u->xfer_buflen);
	if (!grouped)
		return 0;
	join_group(c, p, io_u->index);
	return c->flush_each_write ? close_group(c, p) : 0;
}

static int append_read(struct client *c, struct io_u *io_u, uint64_t offset, uint64_t buffer)
{
	int flags = RPMA_F_COMPLETION_ALWAYS;
	int ret =
		rpma_batch_read(c->batch, c->buffers, buffer, c->region, offset, io_u->xfer_buflen,
				flags, client_wr_id(c, CLIENT_WR_IO, io_u->index));

	if (ret)
		return fail_append(c, "a read", ret);
	client_sq_appended(c, flags);
	return 0;
}

static int append(struct client *c, struct posting *p, struct io_u *io_u, uint64_t offset,
		  uint64_t buffer)
{
	c->slots[io_u->index].io_u = io_u;
	c->in_flight++;
	p->io_us++;
	if (io_u->ddir == DDIR_READ)
		return append_read(c, io_u, offset, buffer);
	return append_write(c, p, io_u, offset, buffer);
}

/* the delays that a log tells are from one I/O to the next */
static void issued(struct thread_data *td, const struct io_u *io_u)
{
	if (td->o.read_iolog_file)
		td->last_issue = io_u->issue_time;
}

/* fio wants to know when an I/O left, and counts the time before as its submission */
static void stamp(struct client *c, struct posting *p, struct io_u *io_u)
{
	if (!fio_fill_issue_time(c->td))
		return;
	if (!p->io_us)
		fio_gettime(&p->now, NULL);
	io_u->issue_time = p->now;
	issued(c->td, io_u);
	io_u_queued(c->td, io_u);
}

static int submit(struct client *c)
{
	int ret = rpma_batch_submit(c->batch, 0, NULL);

	/* room was counted, so it can only be the device that needs a moment */
	c->unsubmitted = ret == RPMA_E_AGAIN;
	if (c->unsubmitted)
		return 0;
	return ret ? fail_append(c, "a chain of requests", ret) : 0;
}

int client_post_queued(struct client *c)
{
	struct posting p = {.group = CLIENT_NO_SLOT};
	uint64_t offset, buffer;
	int error = 0;

	while (c->queued.count && !error) {
		struct io_u *io_u = client_ring_peek(&c->queued);

		if (!io_u_place(c, io_u, &offset, &buffer))
			return client_fail(c, EINVAL,
					   "an I/O of %llu bytes at offset %llu is outside the "
					   "server's memory of %" PRIu64 " bytes",
					   io_u->xfer_buflen, io_u->offset, c->file_size);
		if (!has_room(c, io_u, offset))
			break;
		client_ring_pop(&c->queued);
		stamp(c, &p, io_u);
		error = append(c, &p, io_u, offset, buffer);
	}
	if (!error && p.group != CLIENT_NO_SLOT)
		error = close_group(c, &p);
	if (!error)
		error = submit(c);
	if (p.io_us)
		io_u_mark_submit(c->td, p.io_us);
	return error;
}

/* flushes what is remembered, as fast as the queues take it */
static int flush_unflushed(struct client *c)
{
	struct ranges *u = &c->unflushed;
	uint32_t at = 0;
	int error = c->error;

	/* a sync's latency is what is measured: no sorting where one flush serves all */
	if (c->flush_ranges)
		ranges_join(u);
	while (at < u->count && !error) {
		uint32_t n = u->count - at, pending = 0;

		while (n && !flush_has_room(c, n, 0))
			n /= 2;
		if (!n) {
			error = client_progress(c);
			continue;
		}
		error = c->method->client_flush(c, u->r + at, n, CLIENT_TOKEN_SYNC, &pending);
		if (!error)
			error = submit(c);
		c->sync_pending += pending;
		for (; n; n--)
			c->flushing += u->r[at++].length;
	}
	u->count = 0;
	while (c->sync_pending && !error)
		error = client_progress(c);
	c->flushing = 0;
	return error;
}

int client_sync(struct client *c)
{
	int error = c->error;

	if (!error)
		error = client_post_queued(c);
	while (c->queued.count && !error)
		error = client_progress(c);
	if (!error)
		error = flush_unflushed(c);
	while (c->in_flight && !error)
		error = client_progress(c);
	return error;
}

static enum fio_q_status queue_sync(struct client *c, struct io_u *io_u)
{
	fio_gettime(&io_u->issue_time, NULL);
	issued(c->td, io_u);
	io_u->error = client_sync(c);
	io_u_mark_submit(c->td, 1);
	io_u_mark_complete(c->td, 1);
	return FIO_Q_COMPLETED;
}

enum fio_q_status client_queue(struct thread_data *td, struct io_u *io_u)
{
	struct client *c = td->io_ops_data;

	if (ddir_sync(io_u->ddir))
		return queue_sync(c, io_u);
	if (c->error || (io_u->ddir != DDIR_READ && io_u->ddir != DDIR_WRITE)) {
		io_u->error = c->error ? c->error : ENOTSUP;
		return FIO_Q_COMPLETED;
	}
	client_ring_push(&c->queued, io_u);
	return FIO_Q_QUEUED;
}

/*
 * Nothing is in flight on a connection that has failed, and fio has loops that end by nothing else:
 * it waits for that before it sleeps for thinktime or rate, whatever it is told.
 */
static int give_up(struct thread_data *td)
{
	struct client *c = td->io_ops_data;

	td->io_u_in_flight = 0;
	return -c->error;
}

int client_commit(struct thread_data *td)
{
	struct client *c = td->io_ops_data;

	if (!c->error && c->queued.count)
		client_post_queued(c);
	/* what has completed is fio's to collect; it commits before it does so */
	if (!c->error || c->done.count)
		return 0;
	return give_up(td);
}

/* a function of its own for the same reason as handle_completions() */
static __attribute__((noinline)) int wait_until_done(struct client *c, unsigned int min)
{
	int error = 0;

	while (c->done.count < min && !error && (c->in_flight || c->queued.count))
		error = client_progress(c);
	return error;
}

int client_getevents(struct thread_data *td, unsigned int min, unsigned int max,
		     const struct timespec *t)
{
	struct client *c = td->io_ops_data;
	int error = 0;

	(void)t;
	if (!min)
		error = client_poll(c);
	else if (c->done.count < min)
		error = wait_until_done(c, min);
	if (!c->done.count && error)
		return give_up(td);
	return (int)(c->done.count < max ? c->done.count : max);
}

struct io_u *client_event(struct thread_data *td, int event)
{
	struct client *c = td->io_ops_data;

	(void)event; /* fio takes them all, in order, before it asks for more */
	return client_ring_pop(&c->done);
}
