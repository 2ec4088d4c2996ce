/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A persistence method: how written data becomes durable.  Each is one file that fills one table;
 * client and server know nothing else of it.  To add one: write its file, give it a number in
 * wire.h, and export its two engines in plugin.c.
 */
#ifndef FIO_RPMA_METHOD_H
#define FIO_RPMA_METHOD_H

#include <stdbool.h>
#include <stdint.h>

#include <librpma.h>

#include "ranges.h"
#include "wire.h"

struct client;
struct server;
struct server_conn;

/* numbers of work requests beside those of the shared flow (writes, reads, the server's probe) */
struct method_queues {
	uint32_t sq;
	uint32_t rq;
};

/* Functions that return int: 0, or an errno after the reason was said. */
struct method {
	const char *name;
	enum wire_method wire;

	/* --- client --- */

	/* what the queues must hold for iodepth flushes at once */
	void (*client_queues)(uint32_t iodepth, struct method_queues *queues);
	/* the connection is there; decides how to flush and puts it into words in client.h's how */
	int (*client_open)(struct client *client);
	/* how many more ranges can be flushed now, beside what the send queue allows */
	uint32_t (*client_flush_room)(const struct client *client);
	/*
	 * Appends to the client's batch what makes the ranges durable, count >= 1, at most one
	 * request a range.  Once done, client_flushed(client, token) is called *pending times.
	 */
	int (*client_flush)(struct client *client, const struct range *ranges, uint32_t count,
			    uint32_t token, uint32_t *pending);
	/* a message came, or one of the client's own requests (CLIENT_WR_METHOD) is done */
	int (*client_completion)(struct client *client, const struct ibv_wc *wc);
	/* says goodbye to the server: all is done, the connection is sound */
	void (*client_goodbye)(struct client *client);
	/* frees what client_open() took; the connection may be broken */
	void (*client_close)(struct client *client);

	/* --- server --- */

	/* the server's CPUs take part in every flush, so busy_wait_polling=1 makes sense */
	bool server_works;
	void (*server_queues)(const struct server *server, struct method_queues *queues);
	/* receive slots to announce */
	uint16_t (*server_slots)(const struct server *server);
	/* once per job thread, before the first client; undone by server_close() even where it
	 * fails */
	int (*server_open)(struct server *server);
	void (*server_close)(struct server *server);
	/* a client knocks: post receives */
	int (*server_accept)(struct server_conn *conn, struct rpma_conn_req *req);
	/* the client is connected; undone by server_hangup(), which may come without it */
	int (*server_connected)(struct server_conn *conn);
	void (*server_hangup)(struct server_conn *conn);
	/* a successful completion; sets conn->goodbye when the client says that it is done */
	int (*server_completion)(struct server_conn *conn, const struct ibv_wc *wc);
	/* a group of completions is through: post what they led to */
	int (*server_submit)(struct server_conn *conn);
};

extern const struct method method_apm;
extern const struct method method_gpspm;

#endif /* FIO_RPMA_METHOD_H */
