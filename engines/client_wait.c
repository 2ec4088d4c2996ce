/* SPDX-License-Identifier: GPL-2.0-only */
#include "client.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>

#include "link.h"
#include "say.h"

#define REAP_BATCH 32

/*
 * Empty polls between two looks at the connection and the clock, and between two offers of the CPU
 * to whoever needs it more: where there are fewer CPUs than polling threads, the very peer.
 */
#define POLLS_PER_LOOK  1024
#define POLLS_PER_YIELD 256

/* with nothing completed for so long, the server is taken for gone, milliseconds */
#define STALL_LIMIT            6000
#define STALL_LIMIT_TERMINATED 1000

/* a sync may have the server's CPU flush all its memory at one go: bytes that take it 1 ms */
#define FLUSHED_PER_MS (64 * 1024)

/* longest sleep between two looks, milliseconds */
#define SLEEP 50

int client_fail(struct client *c, int error, const char *format, ...)
{
	char reason[400];
	va_list args;

	if (c->error)
		return c->error;
	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	c->error = error;
	say_error(c->td, error, "%s", reason);
	/* fio frees its buffers whatever is in flight: nothing may be written to them any more */
	if (c->conn)
		rpma_conn_disconnect(c->conn);
	return error;
}

static int fail_event(struct client *c, enum rpma_conn_event event)
{
	if (event == RPMA_CONN_CLOSED)
		return client_fail(c, ECONNRESET,
				   "the server ended the connection with %u I/O in "
				   "flight",
				   c->in_flight);
	return client_fail(c, ECONNRESET,
			   "the connection to the server is gone (%s) with %u I/O in "
			   "flight",
			   rpma_utils_conn_event_2str(event), c->in_flight);
}

static const char *wr_name(enum client_wr kind)
{
	switch (kind) {
	case CLIENT_WR_IO:
		return "a read or write";
	case CLIENT_WR_PART:
		return "a write";
	case CLIENT_WR_FLUSH:
		return "a flush";
	case CLIENT_WR_METHOD:
	case CLIENT_WR_RECV:
		break;
	}
	return "a message";
}

static const char *status_hint(enum ibv_wc_status status, enum client_wr kind)
{
	if (kind == CLIENT_WR_FLUSH &&
	    (status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR))
		return "; if the server's device has no native flush, set flush_mode=read";
	if (status == IBV_WC_RETRY_EXC_ERR)
		return "; the server does not answer";
	return "";
}

static int fail_completion(struct client *c, const struct ibv_wc *wc)
{
	enum client_wr kind = client_wr_kind(wc->wr_id);
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	/* a request that was cut off says less than the event that cut it off, which may be late */
	if (wc->status == IBV_WC_WR_FLUSH_ERR && !link_wait_event(c->td, c->conn, 200, &event))
		return fail_event(c, event);
	return client_fail(c, EIO, "%s failed: %s%s", wr_name(kind), ibv_wc_status_str(wc->status),
			   status_hint(wc->status, kind));
}

static void io_done(struct client *c, struct io_u *io_u)
{
	io_u->error = 0;
	io_u->resid = 0;
	c->in_flight--;
	client_ring_push(&c->done, io_u);
}

void client_flushed(struct client *c, uint32_t token)
{
	struct client_slot *slot;

	if (token == CLIENT_TOKEN_SYNC) {
		c->sync_pending--;
		return;
	}
	slot = &c->slots[token];
	if (--slot->pending)
		return;
	for (;;) {
		uint32_t next = slot->next;

		io_done(c, slot->io_u);
		if (next == CLIENT_NO_SLOT)
			return;
		slot = &c->slots[next];
	}
}

static int handle_completion(struct client *c, const struct ibv_wc *wc)
{
	enum client_wr kind = client_wr_kind(wc->wr_id);

	if (wc->status != IBV_WC_SUCCESS)
		return fail_completion(c, wc);
	if (kind == CLIENT_WR_RECV)
		return c->method->client_completion(c, wc);

	c->sq_done = (uint32_t)(wc->wr_id >> 32);
	if (kind == CLIENT_WR_IO)
		io_done(c, c->slots[client_wr_index(wc->wr_id)].io_u);
	else if (kind == CLIENT_WR_FLUSH)
		client_flushed(c, client_wr_index(wc->wr_id));
	else if (kind == CLIENT_WR_METHOD)
		return c->method->client_completion(c, wc);
	return 0;
}

/* a function of its own so that a profile tells completions from empty polls */
static __attribute__((noinline)) void handle_completions(struct client *c, const struct ibv_wc *wc,
							 int n)
{
	for (int i = 0; i < n; i++) {
		if (handle_completion(c, &wc[i]))
			break;
	}
}

int client_reap(struct client *c)
{
	struct ibv_wc wc[REAP_BATCH];
	int n = 0;
	int ret = rpma_cq_get_wc(c->cq, REAP_BATCH, wc, &n);

	if (ret) {
		if (ret != RPMA_E_NO_COMPLETION)
			client_fail(c, EIO, "completions cannot be collected: %s",
				    say_rpma_reason(ret));
		return 0;
	}
	handle_completions(c, wc, n);
	return n;
}

/* told to end, by Ctrl-C say; a job whose time is over is not: fio terminates that one, too */
static bool interrupted(const struct thread_data *td)
{
	unsigned long long time = td->o.timeout;

	return td->terminate && !(time && utime_since_now(&td->epoch) >= time);
}

/* milliseconds without a completion until the server is taken for gone */
static uint64_t stall_limit(const struct client *c)
{
	if (interrupted(c->td))
		return STALL_LIMIT_TERMINATED;
	return STALL_LIMIT + (c->method->server_works ? c->flushing / FLUSHED_PER_MS : 0);
}

/* is the server still there? */
static int look(struct client *c)
{
	enum rpma_conn_event event = link_next_event(c->conn);
	uint64_t now = link_now_ms();
	uint64_t limit = stall_limit(c);

	if (event != RPMA_CONN_UNDEFINED)
		return fail_event(c, event);
	if (!c->stalled_since)
		c->stalled_since = now;
	else if (now - c->stalled_since >= limit)
		return client_fail(c, ETIMEDOUT,
				   "the server has not answered for %llu s; %u I/O in flight",
				   (unsigned long long)limit / 1000, c->in_flight);
	return 0;
}

/* sleeps until something completes or the connection says something */
static void sleep_for_event(struct client *c)
{
	struct pollfd pfd[2] = {
		{.fd = c->cq_fd, .events = POLLIN},
		{.fd = c->event_fd, .events = POLLIN},
	};

	if (poll(pfd, 2, SLEEP) > 0 && pfd[0].revents)
		rpma_cq_wait(c->cq);
}

int client_poll(struct client *c)
{
	if (c->error)
		return c->error;
	if (client_reap(c)) {
		c->idle = 0;
		c->stalled_since = 0;
		if (!c->error && (c->queued.count || c->unsubmitted))
			client_post_queued(c);
	} else if (++c->idle % POLLS_PER_YIELD == 0) {
		sched_yield();
		if (c->idle % POLLS_PER_LOOK == 0)
			look(c);
	}
	return c->error;
}

int client_progress(struct client *c)
{
	uint32_t idle = c->idle;

	client_poll(c);
	if (!c->events || c->error || c->idle <= idle)
		return c->error;
	sleep_for_event(c);
	return look(c);
}
