/* SPDX-License-Identifier: GPL-2.0-only */
#include "server.h"

#include <errno.h>
#include <stdarg.h>

#include "say.h"

#define REAP_BATCH 32

/* how long a client may take to complete the handshake, milliseconds */
#define HANDSHAKE_LIMIT 5000

/* how long after its requests were cut off a connection's end may be told, milliseconds */
#define END_LIMIT 1000

/*
 * A client that is quiet is asked for a sign of life: an empty RDMA read, which its device answers
 * without its knowledge.  Only so does a server notice a peer that was cut off without a word.
 */
#define QUIET_LIMIT  2000 /* milliseconds until it is asked */
#define ANSWER_LIMIT 5000 /* milliseconds until it is taken for gone */

/* rpma_mr_advise() takes less than 4 GiB at once */
#define PREFETCH_BYTES ((uint64_t)1 << 30)

/* what is mapped on demand is mapped now, where the device can; else at the first write */
static void prefetch(struct server_conn *conn)
{
	uint64_t at, left;

	for (at = 0; at < conn->workspace_size; at += PREFETCH_BYTES) {
		left = conn->workspace_size - at;
		if (rpma_mr_advise(conn->region, at, left < PREFETCH_BYTES ? left : PREFETCH_BYTES,
				   IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH))
			return;
	}
}

int server_conn_open(struct server_conn *conn)
{
	struct server *s = conn->server;
	int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
		    RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
	int ret;

	conn->workspace_size = s->memory.size / s->conns_count;
	conn->workspace = s->memory.ptr + conn->index * conn->workspace_size;
	if (s->memory.persistent)
		usage |= RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	ret = rpma_mr_reg(s->peer, conn->workspace, conn->workspace_size, usage, &conn->region);
	if (ret) {
		say_error(s->td, EIO, "the RDMA device cannot register %s: %s%s", s->memory.what,
			  say_rpma_reason(ret), s->memory.file_backed ? "; use device DAX" : "");
		return EIO;
	}
	if (s->memory.file_backed)
		prefetch(conn);
	return 0;
}

bool server_conn_is_live(const struct server_conn *conn)
{
	return conn->state == CONN_CONNECTING || conn->state == CONN_SERVED;
}

static void free_place(struct server_conn *conn)
{
	if (conn->conn)
		rpma_conn_delete(&conn->conn);
	conn->server->method->server_hangup(conn);
	conn->state = CONN_FREE;
}

/* Others are served while the client agrees; one that has left itself has agreed. */
void server_conn_end(struct server_conn *conn)
{
	if (!server_conn_is_live(conn))
		return;
	if (conn->batch)
		rpma_batch_delete(&conn->batch);
	conn->server->active--;
	conn->state = CONN_ENDING;
	conn->heard_ms = link_now_ms();
	if (!conn->conn || rpma_conn_disconnect(conn->conn) || conn->closed)
		free_place(conn);
}

static void look_for_end(struct server_conn *conn, bool event)
{
	if ((event && link_next_event(conn->conn) != RPMA_CONN_UNDEFINED) ||
	    link_now_ms() - conn->heard_ms >= LINK_DISCONNECT_LIMIT)
		free_place(conn);
}

void server_conn_close(struct server_conn *conn)
{
	server_conn_end(conn);
	if (conn->state == CONN_ENDING) {
		uint64_t took = link_now_ms() - conn->heard_ms;

		link_wait_end(conn->server->td, conn->conn,
			      took < LINK_DISCONNECT_LIMIT ? LINK_DISCONNECT_LIMIT - (int)took : 0);
		free_place(conn);
	}
	if (conn->region)
		rpma_mr_dereg(&conn->region);
}

/* a client that was connected has ended; a handshake that failed counts for nothing */
static void ended(struct server_conn *conn, bool well)
{
	struct server *s = conn->server;

	/* one of another method saw that this is not its server, and left */
	if (conn->state == CONN_SERVED &&
	    (conn->hello == WIRE_METHOD_ANY || conn->hello == s->method->wire)) {
		s->served++;
		if (!well)
			s->failed = true;
	}
	server_conn_end(conn);
}

/* who has said goodbye was served, however the connection ends */
static void lost(struct server_conn *conn, const char *how)
{
	if (conn->state == CONN_SERVED && !conn->goodbye)
		say(conn->server->td, "the connection to a client is gone: %s", how);
	ended(conn, conn->goodbye);
}

void server_conn_refuse(struct server_conn *conn, const char *format, ...)
{
	char reason[400];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	say(conn->server->td, "a client is cut off: %s", reason);
	ended(conn, false);
}

static int offer_workspace(struct server_conn *conn, struct rpma_conn_req **req)
{
	const struct common_options *o = conn->server->td->eo;
	struct wire_workspace ws = {
		.slots = conn->server->method->server_slots(conn->server),
		.direct_write_to_pmem = o->direct_write_to_pmem != 0,
		.descriptor_size = WIRE_DESCRIPTOR_SIZE,
	};
	uint8_t packed[WIRE_WORKSPACE_SIZE];
	struct rpma_conn_private_data pdata = {.ptr = packed, .len = sizeof(packed)};
	size_t size;
	int ret = rpma_mr_get_descriptor_size(conn->region, &size);

	if (!ret && size != WIRE_DESCRIPTOR_SIZE)
		ret = RPMA_E_INVAL;
	if (!ret)
		ret = rpma_mr_get_descriptor(conn->region, ws.descriptor);
	if (!ret) {
		wire_workspace_pack(&ws, packed);
		ret = rpma_conn_req_connect(req, &pdata, &conn->conn);
	}
	return ret;
}

void server_conn_accept(struct server_conn *conn, struct rpma_conn_req *req)
{
	struct server *s = conn->server;
	struct rpma_conn_private_data pdata = {0};
	int ret;

	rpma_conn_req_get_private_data(req, &pdata);
	conn->hello = wire_hello_parse(pdata.ptr, pdata.len);
	conn->goodbye = false;
	conn->closed = false;
	conn->probed = false;
	conn->event_fd = -1;
	conn->heard_ms = link_now_ms();
	conn->state = CONN_CONNECTING;
	s->active++;
	if (s->method->server_accept(conn, req)) {
		rpma_conn_req_delete(&req);
		ended(conn, false);
		return;
	}
	ret = offer_workspace(conn, &req);
	if (!ret)
		ret = rpma_conn_get_event_fd(conn->conn, &conn->event_fd);
	if (!ret)
		ret = rpma_conn_get_cq(conn->conn, &conn->cq);
	if (ret) {
		say(s->td, "a client cannot be accepted: %s", say_rpma_reason(ret));
		if (req)
			rpma_conn_req_delete(&req);
		ended(conn, false);
		return;
	}
	conn->cq_fd = link_cq_fd(conn->cq);
}

/*
 * The client's last message of the handshake came, or what only one that is connected sends: a
 * request, or its leaving.  The former may be lost, or be overtaken by these (IBTA: RTU, DREQ).
 */
static void established(struct server_conn *conn)
{
	struct server *s = conn->server;
	struct rpma_limits limits;
	int ret = rpma_conn_get_limits(conn->conn, &limits);

	if (!ret)
		ret = rpma_batch_new(conn->conn, limits.sq_size, &conn->batch);
	if (ret) {
		say(s->td, "a client's queues cannot be used: %s", say_rpma_reason(ret));
		ended(conn, false);
		return;
	}
	conn->state = CONN_SERVED;
	if (s->method->server_connected(conn))
		ended(conn, false);
}

/* what it sent before it left may still lie in the CQ */
static void closed(struct server_conn *conn)
{
	conn->closed = true;
	while (conn->state == CONN_SERVED && !conn->goodbye && server_conn_poll(conn) > 0)
		;
	if (conn->state != CONN_SERVED)
		return;
	if (conn->goodbye || conn->hello == WIRE_METHOD_ANY)
		ended(conn, true);
	else if (conn->hello != conn->server->method->wire) {
		say(conn->server->td, "a client of another persistence method came and left");
		ended(conn, true);
	} else
		lost(conn, "it ended without a goodbye, so it was killed or has failed");
}

static void handle_event(struct server_conn *conn)
{
	enum rpma_conn_event event = link_next_event(conn->conn);

	if (event == RPMA_CONN_UNDEFINED)
		return;
	conn->heard_ms = link_now_ms();
	conn->closed = event != RPMA_CONN_ESTABLISHED;
	if (event != RPMA_CONN_ESTABLISHED && event != RPMA_CONN_CLOSED) {
		lost(conn, rpma_utils_conn_event_2str(event));
		return;
	}
	if (conn->state == CONN_CONNECTING)
		established(conn);
	if (event == RPMA_CONN_CLOSED && conn->state == CONN_SERVED)
		closed(conn);
}

static void ask_for_sign_of_life(struct server_conn *conn)
{
	conn->heard_ms = link_now_ms();
	if (!rpma_read(conn->conn, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS,
		       (const void *)SERVER_WR_PROBE))
		conn->probed = true;
}

static void check_time(struct server_conn *conn)
{
	uint64_t quiet = link_now_ms() - conn->heard_ms;

	if (conn->state == CONN_CONNECTING && quiet > HANDSHAKE_LIMIT)
		lost(conn, "the handshake took too long");
	else if (conn->state == CONN_SERVED && conn->probed && quiet > ANSWER_LIMIT)
		lost(conn, "it does not answer");
	else if (conn->state == CONN_SERVED && !conn->probed && quiet > QUIET_LIMIT)
		ask_for_sign_of_life(conn);
}

void server_conn_look(struct server_conn *conn, bool event)
{
	if (conn->state == CONN_ENDING) {
		look_for_end(conn, event);
		return;
	}
	if (event)
		handle_event(conn);
	check_time(conn);
}

/* whether the client left; the word that it had come may still wait before that one */
static bool has_left(struct server_conn *conn)
{
	enum rpma_conn_event event;

	do {
		if (link_wait_event(conn->server->td, conn->conn, END_LIMIT, &event))
			return false;
	} while (event == RPMA_CONN_ESTABLISHED);
	return event == RPMA_CONN_CLOSED;
}

static void handle_completion(struct server_conn *conn, const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_SUCCESS) {
		if (wc->wr_id == SERVER_WR_PROBE)
			conn->probed = false;
		else
			conn->server->method->server_completion(conn, wc);
		return;
	}
	/* closed() looks for what came before those that were cut off */
	if (wc->status == IBV_WC_WR_FLUSH_ERR && conn->closed)
		return;
	/* receives that are cut off belong to the end of a connection, which has an event */
	if (wc->status == IBV_WC_WR_FLUSH_ERR && (conn->goodbye || has_left(conn)))
		closed(conn);
	else
		lost(conn, ibv_wc_status_str(wc->status));
}

int server_conn_poll(struct server_conn *conn)
{
	struct ibv_wc wc[REAP_BATCH];
	int n = 0;

	if (rpma_cq_get_wc(conn->cq, REAP_BATCH, wc, &n))
		return 0;
	/* what is cut off during the handshake has an event */
	if (conn->state == CONN_CONNECTING && wc[0].status == IBV_WC_SUCCESS)
		established(conn);
	for (int i = 0; i < n && conn->state == CONN_SERVED; i++) {
		/* what came before the end counts, a goodbye above all */
		if (wc[i].status != IBV_WC_SUCCESS)
			conn->server->method->server_submit(conn);
		if (conn->state == CONN_SERVED)
			handle_completion(conn, &wc[i]);
	}
	if (conn->state == CONN_SERVED)
		conn->server->method->server_submit(conn);
	return n;
}
