/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The server side of an engine, the same for every persistence method.
 *
 *   server.c       what fio calls, and the loop that serves
 *   server_conn.c  one client: accepting it, its completions, noticing that it is gone
 */
#ifndef FIO_RPMA_SERVER_H
#define FIO_RPMA_SERVER_H

#include <librpma.h>
#include <librpma_ext.h>

#include "fio-compat.h"
#include "link.h"
#include "memory.h"
#include "method.h"
#include "options.h"
#include "wire.h"

struct server;

enum server_conn_state {
	CONN_FREE,
	CONN_CONNECTING, /* accepted, not yet established */
	CONN_SERVED,
	CONN_ENDING, /* disconnected; the client has a moment to agree, and others are served */
};

/* a place for one client, and the workspace that belongs to it */
struct server_conn {
	struct server *server;
	uint32_t index;
	char *workspace;
	uint64_t workspace_size;
	struct rpma_mr_local *region; /* the workspace */

	enum server_conn_state state;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct rpma_batch *batch;
	int event_fd;
	int cq_fd;
	enum wire_method hello; /* a client that said hello will say goodbye */
	bool goodbye;
	bool closed;       /* the end of the connection was told */
	bool probed;       /* a sign of life was asked for */
	uint64_t heard_ms; /* last sign of life, or when it was asked for, or the end began */
	void *method_data;
};

struct server {
	struct thread_data *td;
	const struct method *method;
	void *method_data;

	struct rpma_peer *peer;
	struct rpma_ep *ep;
	int ep_fd;
	struct memory memory;
	struct link_queues queues;

	struct server_conn *conns;
	uint32_t conns_count; /* clients_at_once */
	uint32_t active;      /* clients that are connecting or served */
	unsigned int wanted;  /* clients to serve, 0: no limit */
	unsigned int served;
	bool polling; /* the CQs are polled, not waited for */
	bool failed;  /* a client ended badly */
	struct pollfd *fds;
};

/* wr_id of the server's own request; a method's requests have others */
#define SERVER_WR_PROBE UINT64_MAX

/* server_conn.c */
int server_conn_open(struct server_conn *conn); /* registers the workspace */
/* begins the end of one that is live; its place is free when both sides know */
void server_conn_end(struct server_conn *conn);
/* waits for that, and gives all back */
void server_conn_close(struct server_conn *conn);
void server_conn_accept(struct server_conn *conn, struct rpma_conn_req *req);
/* connecting or served */
bool server_conn_is_live(const struct server_conn *conn);
/* of one that is: collects completions.  Returns how many; the client may be gone after it. */
int server_conn_poll(struct server_conn *conn);
/* of one whose place is taken: a connection event, time for a sign of life or for the end */
void server_conn_look(struct server_conn *conn, bool event);
/* the client did what it must not do: says so, and ends the connection */
void server_conn_refuse(struct server_conn *conn, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* FIO_RPMA_SERVER_H */
