/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * APM, the appliance persistency method: the client flushes, by an RDMA operation behind its
 * writes; the server's CPUs have no part in it.
 *
 * A native flush names the range it is for.  A read-based one is an 8-byte read that cannot pass
 * any write before it on the connection, so one at the end serves all ranges.
 */
#include "client.h"
#include "server.h"

#include <errno.h>

#include "link.h"
#include "say.h"

/* --- client --- */

/* how long the server has to take the goodbye, milliseconds */
#define GOODBYE_LIMIT 500

static void client_queues(uint32_t iodepth, struct method_queues *queues)
{
	queues->sq = iodepth + 1; /* flushes, the goodbye */
	queues->rq = 1;
}

static int set_flush_mode(struct client *c)
{
	static const enum rpma_flush_mode modes[] = {
		[FLUSH_AUTO] = RPMA_FLUSH_MODE_AUTO,
		[FLUSH_NATIVE] = RPMA_FLUSH_MODE_NATIVE,
		[FLUSH_READ] = RPMA_FLUSH_MODE_READ,
	};
	const struct client_options *o = c->td->eo;
	int ret = rpma_conn_set_flush_mode(c->conn, modes[o->flush_how]);

	if (ret) {
		say_error(c->td, ENOTSUP, "flush_mode=%s is not possible here: %s",
			  o->flush_how == FLUSH_NATIVE ? "native" : "read", say_rpma_reason(ret));
		return ENOTSUP;
	}
	return 0;
}

/* tells librpma that read-based flushes to this server make data durable */
static int allow_direct_write(struct client *c)
{
	struct rpma_peer_cfg *pcfg;
	int ret = rpma_peer_cfg_new(&pcfg);

	if (!ret) {
		ret = rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true);
		if (!ret)
			ret = rpma_conn_apply_remote_peer_cfg(c->conn, pcfg);
		rpma_peer_cfg_delete(&pcfg);
	}
	if (ret)
		say_error(c->td, EIO, "direct_write_to_pmem cannot be applied: %s",
			  say_rpma_reason(ret));
	return ret ? EIO : 0;
}

static const char *how(const struct client *c, bool native)
{
	if (c->flush_type == RPMA_FLUSH_TYPE_PERSISTENT)
		return native ? "native, persistent" : "read-based, persistent";
	if (!c->persistent)
		return native ? "native, visibility only: data is NOT durable, the server's memory "
				"is not persistent"
			      : "read-based, visibility only: data is NOT durable, the server's "
				"memory is not persistent";
	return "read-based, visibility only: data is NOT durable, the server has "
	       "direct_write_to_pmem=0";
}

static int client_open(struct client *c)
{
	enum rpma_flush_mode mode;
	bool native;
	int error = set_flush_mode(c);

	if (!error && c->workspace.direct_write_to_pmem)
		error = allow_direct_write(c);
	if (error)
		return error;
	rpma_conn_get_flush_mode(c->conn, &mode);
	native = mode == RPMA_FLUSH_MODE_NATIVE;
	c->flush_type = c->persistent && (native || c->workspace.direct_write_to_pmem)
				? RPMA_FLUSH_TYPE_PERSISTENT
				: RPMA_FLUSH_TYPE_VISIBILITY;
	c->flush_ranges = native;
	c->how = how(c, native);
	return 0;
}

static uint32_t client_flush_room(const struct client *c)
{
	(void)c;
	return UINT32_MAX;
}

static int client_flush(struct client *c, const struct range *ranges, uint32_t count,
			uint32_t token, uint32_t *pending)
{
	for (uint32_t i = c->flush_ranges ? 0 : count - 1; i < count; i++) {
		int flags = i == count - 1 ? RPMA_F_COMPLETION_ALWAYS : RPMA_F_COMPLETION_ON_ERROR;
		int ret = rpma_batch_flush(c->batch, c->region, ranges[i].offset, ranges[i].length,
					   c->flush_type, flags,
					   client_wr_id(c, CLIENT_WR_FLUSH, token));

		if (ret)
			return client_fail(c, EIO, "a flush cannot be posted: %s",
					   say_rpma_reason(ret));
		client_sq_appended(c, flags);
	}
	*pending = 1;
	return 0;
}

static int client_completion(struct client *c, const struct ibv_wc *wc)
{
	(void)wc;
	c->sync_pending = 0;
	return 0;
}

/* an empty message; an older server has no receive for it, so it is not waited for long */
static void client_goodbye(struct client *c)
{
	uint64_t deadline = link_now_ms() + GOODBYE_LIMIT;
	int flags = RPMA_F_COMPLETION_ALWAYS;

	if (rpma_send(c->conn, NULL, 0, 0, flags, client_wr_id(c, CLIENT_WR_METHOD, 0)))
		return;
	client_sq_appended(c, flags);
	c->sync_pending = 1;
	while (c->sync_pending && !c->error && link_now_ms() < deadline)
		client_reap(c);
}

static void client_close(struct client *c)
{
	(void)c;
}

/* --- server --- */

static void server_queues(const struct server *s, struct method_queues *queues)
{
	(void)s;
	queues->sq = 0;
	queues->rq = 1; /* the goodbye */
}

static uint16_t server_slots(const struct server *s)
{
	(void)s;
	return 0;
}

static int server_open(struct server *s)
{
	(void)s;
	return 0;
}

static void server_close(struct server *s)
{
	(void)s;
}

static int server_accept(struct server_conn *conn, struct rpma_conn_req *req)
{
	int ret = rpma_conn_req_recv(req, NULL, 0, 0, NULL);

	if (ret)
		say(conn->server->td, "a client cannot be received: %s", say_rpma_reason(ret));
	return ret ? EIO : 0;
}

static int server_connected(struct server_conn *conn)
{
	(void)conn;
	return 0;
}

static void server_hangup(struct server_conn *conn)
{
	(void)conn;
}

static int server_completion(struct server_conn *conn, const struct ibv_wc *wc)
{
	if (wc->opcode == IBV_WC_RECV)
		conn->goodbye = true;
	return 0;
}

static int server_submit(struct server_conn *conn)
{
	(void)conn;
	return 0;
}

const struct method method_apm = {
	.name = "APM",
	.wire = WIRE_METHOD_APM,
	.client_queues = client_queues,
	.client_open = client_open,
	.client_flush_room = client_flush_room,
	.client_flush = client_flush,
	.client_completion = client_completion,
	.client_goodbye = client_goodbye,
	.client_close = client_close,
	.server_works = false,
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
