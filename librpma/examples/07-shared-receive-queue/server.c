// SPDX-License-Identifier: BSD-3-Clause
/*
 * Receive the messages of several clients into one supply of buffers.
 *
 * usage: server ADDRESS PORT CLIENTS
 */
#include <stdio.h>
#include <stdlib.h>

#include "../common.h"
#include "message.h"

struct server {
	struct rpma_peer *peer;
	struct rpma_mr_local *mr;
	struct rpma_srq *srq;
	struct rpma_conn_cfg *cfg;
	struct rpma_ep *ep;
	int clients;
	struct rpma_conn **conns;
	char *buffers;
};

/* the queue with all its buffers, and a configuration that makes connections use it */
static int queue_open(struct server *server)
{
	uint32_t count = (uint32_t)server->clients * MESSAGES_MAX;
	struct rpma_srq_cfg *cfg = NULL;
	int ret = -1;

	if (failed("make a configuration", rpma_srq_cfg_new(&cfg)) ||
	    failed("set the size", rpma_srq_cfg_set_rq_size(cfg, count)) ||
	    failed("set the size", rpma_srq_cfg_set_rcq_size(cfg, count)) ||
	    failed("make the queue", rpma_srq_new(server->peer, cfg, &server->srq)) ||
	    failed("make a configuration", rpma_conn_cfg_new(&server->cfg)) ||
	    failed("set the queue", rpma_conn_cfg_set_srq(server->cfg, server->srq)))
		goto out;
	for (uint32_t i = 0; i < count; i++) {
		/* the context says which buffer it is */
		size_t at = (size_t)i * MESSAGE_SIZE;

		if (failed("post a receive", rpma_srq_recv(server->srq, server->mr, at,
							   MESSAGE_SIZE, server->buffers + at)))
			goto out;
	}
	ret = 0;
out:
	rpma_srq_cfg_delete(&cfg);
	return ret;
}

/* which client has this queue pair? */
static int client_of(const struct server *server, uint32_t qp_num)
{
	for (int i = 0; i < server->clients; i++) {
		uint32_t number;

		if (rpma_conn_get_qp_num(server->conns[i], &number) == 0 && number == qp_num)
			return i;
	}
	return -1;
}

static int receive_all(struct server *server)
{
	int talking = server->clients;
	struct rpma_cq *rcq = NULL;
	struct ibv_wc wc;

	if (failed("get the completion queue", rpma_srq_get_rcq(server->srq, &rcq)))
		return -1;
	while (talking > 0) {
		if (cq_wait_one(rcq, &wc))
			return -1;
		if (wc.byte_len == 0)
			talking--;
		else
			printf("client %d: %.*s\n", client_of(server, wc.qp_num), (int)wc.byte_len,
			       (char *)(uintptr_t)wc.wr_id);
	}
	return 0;
}

int main(int argc, char *argv[])
{
	struct server server = {.clients = argc == 4 ? atoi(argv[3]) : 0};
	size_t size = (size_t)server.clients * MESSAGES_MAX * MESSAGE_SIZE;
	int ret = 1;

	if (server.clients < 1) {
		fprintf(stderr, "usage: %s ADDRESS PORT CLIENTS\n", argv[0]);
		return 2;
	}

	server.buffers = buffer_new(size);
	server.conns = calloc((size_t)server.clients, sizeof(struct rpma_conn *));
	if (server.buffers == NULL || server.conns == NULL ||
	    peer_open(argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL, &server.peer) ||
	    failed("register memory", rpma_mr_reg(server.peer, server.buffers, size,
						  RPMA_MR_USAGE_RECV, &server.mr)) ||
	    queue_open(&server) || server_listen(server.peer, argv[1], argv[2], &server.ep))
		goto out;
	for (int i = 0; i < server.clients; i++)
		if (server_accept(server.ep, server.cfg, NULL, &server.conns[i]))
			goto out;
	if (receive_all(&server))
		goto out;
	for (int i = 0; i < server.clients; i++)
		if (server_wait_closed(&server.conns[i]))
			goto out;
	ret = 0;
out:
	for (int i = 0; server.conns && i < server.clients; i++)
		rpma_conn_delete(&server.conns[i]);
	rpma_ep_shutdown(&server.ep);
	rpma_conn_cfg_delete(&server.cfg);
	rpma_srq_delete(&server.srq);
	rpma_mr_dereg(&server.mr);
	rpma_peer_delete(&server.peer);
	free(server.conns);
	free(server.buffers);
	return ret;
}
