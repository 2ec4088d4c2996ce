/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * GPSPM, the general purpose server persistency method: the client asks the server by a message,
 * the server's CPU flushes the range and answers by another.  wire.h has the messages.
 *
 * Either side has as many slots of memory as the server announced: a slot holds one request and its
 * response.  A client never has more requests under way than that.
 */
#include "client.h"
#include "server.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "link.h"
#include "say.h"

#define SLOT_PAIR (2 * WIRE_SLOT_SIZE)

static size_t send_offset(uint32_t slot)
{
	return (size_t)slot * SLOT_PAIR;
}

static size_t recv_offset(uint32_t slot)
{
	return (size_t)slot * SLOT_PAIR + WIRE_SLOT_SIZE;
}

struct messages {
	uint8_t *memory;
	size_t size;
	struct rpma_mr_local *mr;
};

static int messages_open(struct thread_data *td, struct rpma_peer *peer, size_t slots,
			 struct messages *m)
{
	int ret;

	m->size = slots * SLOT_PAIR;
	m->memory = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->memory == MAP_FAILED) {
		m->memory = NULL;
		say_error(td, ENOMEM, "out of memory for %zu messages", slots);
		return ENOMEM;
	}
	ret = rpma_mr_reg(peer, m->memory, m->size, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV,
			  &m->mr);
	if (ret) {
		say_error(td, ENOMEM, "the memory of %zu messages cannot be registered: %s", slots,
			  say_rpma_reason(ret));
		return ENOMEM;
	}
	return 0;
}

static void messages_close(struct messages *m)
{
	if (m->mr)
		rpma_mr_dereg(&m->mr);
	if (m->memory)
		munmap(m->memory, m->size);
}

/* --- client --- */

/* how long the server has to take the goodbye, milliseconds */
#define GOODBYE_LIMIT 500

struct request_slot {
	uint64_t context; /* of the request under way; 0: none */
	uint32_t token;
};

struct gpspm_client {
	struct messages messages;
	uint32_t slots;
	struct request_slot *request;
	uint32_t *free; /* a stack of slots */
	uint32_t free_count;
	uint32_t serial;
	bool said_goodbye;
};

static void client_queues(uint32_t iodepth, struct method_queues *queues)
{
	/*
	 * Requests and the goodbye, and what send_flags() leaves unsignalled: of 3 * iodepth + 1
	 * places, three quarters are enough for a write and a request for each I/O.
	 */
	queues->sq = 2 * iodepth + 1;
	queues->rq = iodepth;
}

/* one receive for each slot; a receive belongs to no slot, since answers may come in any order */
static int post_recv(struct client *c, uint32_t slot)
{
	struct gpspm_client *g = c->method_data;
	int ret = rpma_recv(c->conn, g->messages.mr, recv_offset(slot), WIRE_SLOT_SIZE,
			    (const void *)((uint64_t)CLIENT_WR_RECV << 28 | slot));

	return ret ? client_fail(c, EIO, "a receive cannot be posted: %s", say_rpma_reason(ret))
		   : 0;
}

static int client_open(struct client *c)
{
	const struct client_options *o = c->td->eo;
	struct rpma_limits limits;
	struct gpspm_client *g;
	int error = 0;
	int ret = rpma_conn_get_limits(c->conn, &limits);

	if (o->flush_how != FLUSH_AUTO)
		return client_fail(c, ENOTSUP,
				   "flush_mode=%s is for librpma_apm_client: with GPSPM the server "
				   "flushes",
				   o->flush_how == FLUSH_NATIVE ? "native" : "read");
	if (ret)
		return client_fail(c, EIO, "no limits: %s", say_rpma_reason(ret));
	g = calloc(1, sizeof(*g));
	if (!g)
		return client_fail(c, ENOMEM, "out of memory");
	c->method_data = g;
	g->slots = c->workspace.slots < limits.rq_size ? c->workspace.slots : limits.rq_size;
	if (g->slots > c->td->o.iodepth)
		g->slots = c->td->o.iodepth;
	g->request = calloc(g->slots, sizeof(*g->request));
	g->free = calloc(g->slots, sizeof(*g->free));
	if (!g->request || !g->free)
		return client_fail(c, ENOMEM, "out of memory for %u messages", g->slots);
	error = messages_open(c->td, c->peer, g->slots, &g->messages);
	for (uint32_t i = 0; i < g->slots && !error; i++) {
		g->free[g->free_count++] = g->slots - 1 - i;
		error = post_recv(c, i);
	}
	c->flush_ranges = true;
	c->how = c->persistent
			 ? "by the server (GPSPM), persistent"
			 : "by the server (GPSPM): data is NOT durable, the server's memory is "
			   "not persistent";
	return error;
}

static uint32_t client_flush_room(const struct client *c)
{
	const struct gpspm_client *g = c->method_data;

	return g->free_count;
}

/*
 * A send is signalled only now and then: to free its place in the send queue.  At most a quarter of
 * the queue then waits for a completion that has not been asked for.
 */
static int send_flags(const struct client *c)
{
	return c->sq_posted + 1 - c->sq_signalled >= c->sq_size / 4 ? RPMA_F_COMPLETION_ALWAYS
								    : RPMA_F_COMPLETION_ON_ERROR;
}

static int send_request(struct client *c, const struct range *range, uint32_t token)
{
	struct gpspm_client *g = c->method_data;
	uint32_t slot = g->free[--g->free_count];
	struct wire_request request = {
		.offset = range->offset,
		.length = range->length,
		/* never 0, and never that of an earlier request of the slot */
		.op_context = (uint64_t)++g->serial << 32 | (slot + 1),
	};
	int flags = send_flags(c);
	int ret;

	g->request[slot] = (struct request_slot){.context = request.op_context, .token = token};
	wire_request_pack(&request, g->messages.memory + send_offset(slot));
	ret = rpma_batch_send(c->batch, g->messages.mr, send_offset(slot), WIRE_REQUEST_SIZE, flags,
			      client_wr_id(c, CLIENT_WR_METHOD, slot));
	if (ret)
		return client_fail(c, EIO, "a flush request cannot be posted: %s",
				   say_rpma_reason(ret));
	client_sq_appended(c, flags);
	return 0;
}

static int client_flush(struct client *c, const struct range *ranges, uint32_t count,
			uint32_t token, uint32_t *pending)
{
	int error = 0;

	for (uint32_t i = 0; i < count && !error; i++)
		error = send_request(c, &ranges[i], token);
	*pending = count;
	return error;
}

static int take_response(struct client *c, const struct ibv_wc *wc)
{
	struct gpspm_client *g = c->method_data;
	uint32_t recv = client_wr_index(wc->wr_id), slot;
	uint64_t context;
	const char *wrong =
		wire_response_parse(g->messages.memory + recv_offset(recv), wc->byte_len, &context);
	int error;

	if (wrong)
		return client_fail(c, EPROTO, "the server's response cannot be read: %s", wrong);
	slot = (uint32_t)context - 1;
	if (slot >= g->slots || g->request[slot].context != context)
		return client_fail(c, EPROTO,
				   "the server's response is to a request that was never "
				   "made");
	error = post_recv(c, recv);
	if (error)
		return error;
	g->request[slot].context = 0;
	g->free[g->free_count++] = slot;
	client_flushed(c, g->request[slot].token);
	return 0;
}

static int client_completion(struct client *c, const struct ibv_wc *wc)
{
	struct gpspm_client *g = c->method_data;

	if (client_wr_kind(wc->wr_id) == CLIENT_WR_RECV)
		return take_response(c, wc);
	if (client_wr_index(wc->wr_id) == CLIENT_INDEX_MAX)
		g->said_goodbye = true;
	return 0;
}

static void client_goodbye(struct client *c)
{
	static const struct wire_request last = {0};
	struct gpspm_client *g = c->method_data;
	uint64_t deadline = link_now_ms() + GOODBYE_LIMIT;
	int flags = RPMA_F_COMPLETION_ALWAYS;

	if (!g->messages.mr)
		return; /* there was no memory for them */
	wire_request_pack(&last, g->messages.memory + send_offset(0));
	if (rpma_send(c->conn, g->messages.mr, send_offset(0), WIRE_REQUEST_SIZE, flags,
		      client_wr_id(c, CLIENT_WR_METHOD, CLIENT_INDEX_MAX)))
		return;
	client_sq_appended(c, flags);
	while (!g->said_goodbye && !c->error && link_now_ms() < deadline)
		client_reap(c);
}

static void client_close(struct client *c)
{
	struct gpspm_client *g = c->method_data;

	messages_close(&g->messages);
	free(g->request);
	free(g->free);
	free(g);
}

/* --- server --- */

struct gpspm_server {
	struct messages messages; /* of all connections */
	uint32_t slots;           /* of each */
	struct gpspm_conn *conns;
};

/* requests that were received and wait for room in the send queue, oldest first */
struct gpspm_conn {
	uint32_t first_slot;
	uint32_t sq_size, sq_posted, sq_done, sq_signalled;
	struct {
		uint32_t slot;
		uint32_t size; /* bytes */
	} * waiting;
	uint32_t head, count;
};

static void server_queues(const struct server *s, struct method_queues *queues)
{
	/* a response's place is free only after a later, signalled one; see response_flags() */
	queues->sq = 2 * s->td->o.iodepth;
	queues->rq = s->td->o.iodepth;
}

static uint16_t server_slots(const struct server *s)
{
	const struct gpspm_server *g = s->method_data;

	return (uint16_t)g->slots;
}

static int server_open(struct server *s)
{
	uint32_t slots = s->td->o.iodepth;
	struct gpspm_server *g;

	if (slots > UINT16_MAX) {
		say_error(s->td, EINVAL, "iodepth=%u is more than a GPSPM server can announce, %u",
			  slots, UINT16_MAX);
		return EINVAL;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		goto no_memory;
	s->method_data = g;
	g->slots = slots;
	g->conns = calloc(s->conns_count, sizeof(*g->conns));
	if (!g->conns)
		goto no_memory;
	for (uint32_t i = 0; i < s->conns_count; i++) {
		struct gpspm_conn *gc = &g->conns[i];

		gc->first_slot = i * slots;
		gc->waiting = calloc(slots, sizeof(*gc->waiting));
		if (!gc->waiting)
			goto no_memory;
		s->conns[i].method_data = gc;
	}
	return messages_open(s->td, s->peer, (size_t)slots * s->conns_count, &g->messages);
no_memory:
	say_error(s->td, ENOMEM, "out of memory for iodepth=%u", slots);
	return ENOMEM;
}

static void server_close(struct server *s)
{
	struct gpspm_server *g = s->method_data;

	if (!g)
		return;
	messages_close(&g->messages);
	for (uint32_t i = 0; g->conns && i < s->conns_count; i++)
		free(g->conns[i].waiting);
	free(g->conns);
	free(g);
}

/* as client_wr_id(): the send queue's counter and the slot */
static const void *server_wr_id(uint32_t counter, uint32_t slot)
{
	return (const void *)((uint64_t)counter << 32 | slot);
}

static int server_accept(struct server_conn *conn, struct rpma_conn_req *req)
{
	struct gpspm_server *g = conn->server->method_data;
	struct gpspm_conn *gc = conn->method_data;

	gc->head = gc->count = 0;
	gc->sq_posted = gc->sq_done = gc->sq_signalled = 0;
	for (uint32_t i = 0; i < g->slots; i++) {
		uint32_t slot = gc->first_slot + i;
		int ret = rpma_conn_req_recv(req, g->messages.mr, recv_offset(slot), WIRE_SLOT_SIZE,
					     server_wr_id(0, slot));

		if (ret) {
			say(conn->server->td, "a client cannot be received: %s",
			    say_rpma_reason(ret));
			return EIO;
		}
	}
	return 0;
}

static int server_connected(struct server_conn *conn)
{
	struct gpspm_conn *gc = conn->method_data;

	/* the device may have given more; the sign of life needs one */
	gc->sq_size = 2 * conn->server->td->o.iodepth;
	return 0;
}

static void server_hangup(struct server_conn *conn)
{
	(void)conn;
}

static int response_flags(const struct gpspm_conn *gc)
{
	return gc->sq_posted + 1 - gc->sq_signalled >= (gc->sq_size + 3) / 4
		       ? RPMA_F_COMPLETION_ALWAYS
		       : RPMA_F_COMPLETION_ON_ERROR;
}

/* the receive is posted again before the response tells the client that it may use it */
static int respond(struct server_conn *conn, uint32_t slot, uint64_t context)
{
	struct gpspm_server *g = conn->server->method_data;
	struct gpspm_conn *gc = conn->method_data;
	int flags = response_flags(gc);
	int ret = rpma_recv(conn->conn, g->messages.mr, recv_offset(slot), WIRE_SLOT_SIZE,
			    server_wr_id(0, slot));

	if (!ret) {
		wire_response_pack(context, g->messages.memory + send_offset(slot));
		ret = rpma_batch_send(conn->batch, g->messages.mr, send_offset(slot),
				      WIRE_RESPONSE_SIZE, flags,
				      server_wr_id(gc->sq_posted + 1, slot));
	}
	if (ret) {
		server_conn_refuse(conn, "its request cannot be answered: %s",
				   say_rpma_reason(ret));
		return EIO;
	}
	gc->sq_posted++;
	if (flags == RPMA_F_COMPLETION_ALWAYS)
		gc->sq_signalled = gc->sq_posted;
	return 0;
}

static int answer(struct server_conn *conn, uint32_t slot, uint32_t size)
{
	struct gpspm_server *g = conn->server->method_data;
	struct wire_request request;
	const char *wrong =
		wire_request_parse(g->messages.memory + recv_offset(slot), size, &request);

	if (wrong) {
		server_conn_refuse(conn, "its flush request of %u bytes cannot be read: %s", size,
				   wrong);
		return EPROTO;
	}
	if (wire_request_is_last(&request)) {
		conn->goodbye = true;
		return 0;
	}
	wrong = wire_request_check(&request, conn->workspace_size);
	if (wrong) {
		server_conn_refuse(conn,
				   "its flush request (offset %" PRIu64 ", length %" PRIu64
				   ") is not for its workspace of %" PRIu64 " bytes: %s",
				   request.offset, request.length, conn->workspace_size, wrong);
		return EPROTO;
	}
	conn->server->memory.persist(conn->workspace + request.offset, request.length);
	return respond(conn, slot, request.op_context);
}

static int answer_waiting(struct server_conn *conn)
{
	struct gpspm_server *g = conn->server->method_data;
	struct gpspm_conn *gc = conn->method_data;

	while (gc->count && gc->sq_posted - gc->sq_done < gc->sq_size) {
		uint32_t at = gc->head;
		int error;

		gc->head = at + 1 == g->slots ? 0 : at + 1;
		gc->count--;
		error = answer(conn, gc->waiting[at].slot, gc->waiting[at].size);
		if (error)
			return error;
	}
	return 0;
}

static int server_completion(struct server_conn *conn, const struct ibv_wc *wc)
{
	struct gpspm_server *g = conn->server->method_data;
	struct gpspm_conn *gc = conn->method_data;
	uint32_t at;

	if (!(wc->opcode & IBV_WC_RECV)) {
		gc->sq_done = (uint32_t)(wc->wr_id >> 32);
		return 0;
	}
	/* a write's immediate data takes a receive, and brings no message */
	if (wc->opcode != IBV_WC_RECV) {
		server_conn_refuse(conn, "it wrote with immediate data instead of sending a flush "
					 "request");
		return EPROTO;
	}
	/* there are as many receives as slots, so there is room */
	at = gc->head + gc->count++;
	at = at >= g->slots ? at - g->slots : at;
	gc->waiting[at].slot = (uint32_t)wc->wr_id;
	gc->waiting[at].size = wc->byte_len;
	return 0;
}

static int server_submit(struct server_conn *conn)
{
	int error = answer_waiting(conn);
	int ret;

	if (error)
		return error;
	ret = rpma_batch_submit(conn->batch, 0, NULL);
	if (ret && ret != RPMA_E_AGAIN) {
		server_conn_refuse(conn, "its requests cannot be answered: %s%s",
				   say_rpma_reason(ret), say_post_hint());
		return EIO;
	}
	return 0;
}

const struct method method_gpspm = {
	.name = "GPSPM",
	.wire = WIRE_METHOD_GPSPM,
	.client_queues = client_queues,
	.client_open = client_open,
	.client_flush_room = client_flush_room,
	.client_flush = client_flush,
	.client_completion = client_completion,
	.client_goodbye = client_goodbye,
	.client_close = client_close,
	.server_works = true,
	.server_queues = server_queues,
	.server_slots = server_slots,
	.server_open = server_open,
	.server_close = server_close,
	.server_accept = server_accept,
	.server_connected = server_connected,
	.server_hangup = server_hangup,
	.server_completion = server_completion,
	.server_submit = server_submit,
};
