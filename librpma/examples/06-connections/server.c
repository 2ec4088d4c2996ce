// SPDX-License-Identifier: BSD-3-Clause
/*
 * Serve several clients from one thread: one epoll loop waits for requests, for the events of the
 * connections and for their completions.  Both completion queues of a connection share a channel,
 * so that it needs one descriptor for completions.
 *
 * usage: server ADDRESS PORT CLIENTS
 *
 * It ends when so many clients have come and gone.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../common.h"
#include "state.h"

struct client {
	int number;
	struct rpma_mr_local *mr;
	struct rpma_conn *conn;
	uint32_t updates;
	char *state;
};

struct server {
	struct rpma_peer *peer;
	struct rpma_conn_cfg *cfg;
	struct rpma_ep *ep;
	int epoll;
	int coming, leaving; /* clients still expected to do so */
	struct client *clients;
	struct watch *watches;
};

/* what to do when a descriptor is readable; client is NULL for the endpoint's */
struct watch {
	int (*handle)(struct server *server, struct client *client);
	struct client *client;
};

static int watch(struct server *server, struct watch *watch, int fd,
		 int (*handle)(struct server *server, struct client *client), struct client *client)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};
	int flags = fcntl(fd, F_GETFL);

	*watch = (struct watch){.handle = handle, .client = client};
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ||
	    epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event)) {
		perror("cannot watch a descriptor");
		return -1;
	}
	return 0;
}

/* all that is in the queue; failed receives are what a closed connection leaves behind */
static int drain(struct client *client, struct rpma_cq *cq)
{
	struct ibv_wc wc;
	int ret;

	while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == 0) {
		if (wc.status == IBV_WC_WR_FLUSH_ERR)
			continue;
		if (wc_check(&wc))
			return -1;
		if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM)
			client->updates = ntohl(wc.imm_data);
	}
	return ret == RPMA_E_NO_COMPLETION ? 0 : -1;
}

static int handle_completions(struct server *server, struct client *client)
{
	struct rpma_cq *cq = NULL;
	int ret;

	(void)server;
	while ((ret = rpma_conn_wait(client->conn, 0, &cq, NULL)) == 0)
		if (drain(client, cq))
			return -1;
	return ret == RPMA_E_NO_COMPLETION ? 0 : -1;
}

static int client_left(struct server *server, struct client *client)
{
	struct rpma_cq *rcq = NULL;

	/* what arrived just before the end */
	if (failed("get the receive completion queue", rpma_conn_get_rcq(client->conn, &rcq)) ||
	    drain(client, rcq))
		return -1;

	printf("client %d: %u updates, at last %.*s\n", client->number, client->updates, STATE_SIZE,
	       client->state);
	fflush(stdout);
	server->leaving--;

	/* this closes the descriptors, and epoll forgets them */
	if (failed("disconnect", rpma_conn_disconnect(client->conn)) ||
	    failed("delete the connection", rpma_conn_delete(&client->conn)))
		return -1;
	return 0;
}

static int handle_event(struct server *server, struct client *client)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	if (failed("get an event", rpma_conn_next_event(client->conn, &event)))
		return -1;
	if (event == RPMA_CONN_ESTABLISHED)
		return 0;
	if (event == RPMA_CONN_CLOSED)
		return client_left(server, client);
	fprintf(stderr, "client %d: %s\n", client->number, rpma_utils_conn_event_2str(event));
	return -1;
}

/* a region for each, so that none needs to know of another's */
static int client_accept(struct server *server, struct client *client, struct rpma_conn_req **req)
{
	struct offer offer;
	struct rpma_conn_private_data pdata = {.ptr = &offer, .len = sizeof(offer)};

	client->state = buffer_new(STATE_SIZE);
	if (client->state == NULL ||
	    failed("register memory",
		   rpma_mr_reg(server->peer, client->state, STATE_SIZE,
			       RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_RECV, &client->mr)) ||
	    offer_make(client->mr, false, &offer))
		return -1;
	for (int i = 0; i < UPDATES_MAX; i++)
		/* a receive has a buffer, but what is written does not go there */
		if (failed("post a receive",
			   rpma_conn_req_recv(*req, client->mr, 0, STATE_SIZE, client)))
			return -1;
	if (failed("accept", rpma_conn_req_connect(req, &pdata, &client->conn)))
		return -1;
	return 0;
}

static int handle_request(struct server *server, struct client *unused)
{
	struct rpma_conn_req *req = NULL;
	int event_fd = -1, completion_fd = -1;
	int ret = rpma_ep_next_conn_req(server->ep, server->cfg, &req);

	(void)unused;
	if (ret == RPMA_E_NO_EVENT)
		return 0;
	if (failed("get a request", ret))
		return -1;
	if (server->coming == 0) {
		fprintf(stderr, "one client too many is refused\n");
		return failed("refuse", rpma_conn_req_delete(&req)) ? -1 : 0;
	}

	int number = --server->coming;
	struct client *client = &server->clients[number];
	struct watch *watches = &server->watches[2 * number];

	client->number = number;
	ret = -1;
	if (client_accept(server, client, &req) ||
	    failed("get the descriptor", rpma_conn_get_event_fd(client->conn, &event_fd)) ||
	    failed("get the descriptor", rpma_conn_get_compl_fd(client->conn, &completion_fd)) ||
	    watch(server, &watches[0], event_fd, handle_event, client) ||
	    watch(server, &watches[1], completion_fd, handle_completions, client))
		goto out;
	ret = 0;
out:
	rpma_conn_req_delete(&req);
	return ret;
}

static int serve(struct server *server)
{
	while (server->leaving > 0) {
		struct epoll_event event;
		/* one at a time: what is handled may make others obsolete */
		int count = epoll_wait(server->epoll, &event, 1, -1);

		if (count < 0 && errno != EINTR) {
			perror("cannot wait");
			return -1;
		}
		if (count != 1)
			continue;

		struct watch *watch = event.data.ptr;

		if (watch->handle(server, watch->client))
			return -1;
	}
	return 0;
}

int main(int argc, char *argv[])
{
	struct server server = {.epoll = -1};
	struct watch requests;
	int ret = 1, fd = -1, clients = argc == 4 ? atoi(argv[3]) : 0;

	if (clients < 1) {
		fprintf(stderr, "usage: %s ADDRESS PORT CLIENTS\n", argv[0]);
		return 2;
	}

	server.coming = server.leaving = clients;
	server.clients = calloc((size_t)clients, sizeof(*server.clients));
	server.watches = calloc((size_t)clients, 2 * sizeof(*server.watches));
	server.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server.clients == NULL || server.watches == NULL || server.epoll < 0) {
		perror("cannot start");
		goto out;
	}

	if (peer_open(argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL, &server.peer) ||
	    failed("make a configuration", rpma_conn_cfg_new(&server.cfg)) ||
	    failed("set the size", rpma_conn_cfg_set_rcq_size(server.cfg, UPDATES_MAX)) ||
	    failed("share the channel", rpma_conn_cfg_set_compl_channel(server.cfg, true)) ||
	    server_listen(server.peer, argv[1], argv[2], &server.ep) ||
	    failed("get the descriptor", rpma_ep_get_fd(server.ep, &fd)) ||
	    watch(&server, &requests, fd, handle_request, NULL) || serve(&server))
		goto out;
	ret = 0;
out:
	for (int i = 0; server.clients && i < clients; i++) {
		rpma_conn_delete(&server.clients[i].conn);
		rpma_mr_dereg(&server.clients[i].mr);
		free(server.clients[i].state);
	}
	rpma_ep_shutdown(&server.ep);
	rpma_conn_cfg_delete(&server.cfg);
	rpma_peer_delete(&server.peer);
	if (server.epoll >= 0)
		close(server.epoll);
	free(server.watches);
	free(server.clients);
	return ret;
}
