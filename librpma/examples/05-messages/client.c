// SPDX-License-Identifier: BSD-3-Clause
/*
 * Send messages to the server and print what it answers.
 *
 * usage: client ADDRESS PORT MESSAGE...
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common.h"
#include "message.h"

struct client {
	struct rpma_peer *peer;
	struct rpma_mr_local *mr;
	struct rpma_conn *conn;
	struct rpma_cq *cq, *rcq;
	char *buffer;
};

static int client_open(struct client *client, const char *addr, const char *port)
{
	struct rpma_conn_cfg *cfg = NULL;
	int ret = -1;

	client->buffer = buffer_new(MESSAGES_SIZE);
	if (client->buffer == NULL ||
	    peer_open(addr, RPMA_UTIL_IBV_CONTEXT_REMOTE, &client->peer) ||
	    failed("register memory",
		   rpma_mr_reg(client->peer, client->buffer, MESSAGES_SIZE,
			       RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &client->mr)) ||
	    /* receives have a completion queue of their own, so that they do not mix with sends */
	    failed("make a configuration", rpma_conn_cfg_new(&cfg)) ||
	    failed("set the size", rpma_conn_cfg_set_rcq_size(cfg, 10)) ||
	    client_connect(client->peer, addr, port, cfg, &client->conn) ||
	    failed("get the completion queue", rpma_conn_get_cq(client->conn, &client->cq)) ||
	    failed("get the receive completion queue",
		   rpma_conn_get_rcq(client->conn, &client->rcq)))
		goto out;
	ret = 0;
out:
	rpma_conn_cfg_delete(&cfg);
	return ret;
}

static int ask(struct client *client, const char *message)
{
	size_t len = strnlen(message, MESSAGE_SIZE);
	struct ibv_wc wc;

	memcpy(client->buffer + SEND_AT, message, len);

	/* first a place for the answer, then the message that causes it */
	if (failed("post a receive",
		   rpma_recv(client->conn, client->mr, RECV_AT, MESSAGE_SIZE, NULL)) ||
	    failed("send", rpma_send(client->conn, client->mr, SEND_AT, len,
				     RPMA_F_COMPLETION_ALWAYS, NULL)) ||
	    cq_wait_one(client->cq, &wc) || cq_wait_one(client->rcq, &wc))
		return -1;

	if (!(wc.wc_flags & IBV_WC_WITH_IMM)) {
		fprintf(stderr, "the answer has no number\n");
		return -1;
	}
	printf("answer %u: %.*s\n", ntohl(wc.imm_data), (int)wc.byte_len, client->buffer + RECV_AT);
	return 0;
}

/* an empty message needs no memory */
static int say_goodbye(struct client *client)
{
	struct ibv_wc wc;

	if (failed("send", rpma_send(client->conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, NULL)) ||
	    cq_wait_one(client->cq, &wc))
		return -1;
	return client_disconnect(&client->conn);
}

int main(int argc, char *argv[])
{
	struct client client = {0};
	int ret = 1;

	if (argc < 4) {
		fprintf(stderr, "usage: %s ADDRESS PORT MESSAGE...\n", argv[0]);
		return 2;
	}

	if (client_open(&client, argv[1], argv[2]))
		goto out;
	for (int i = 3; i < argc; i++)
		if (argv[i][0] != '\0' && ask(&client, argv[i]))
			goto out;
	if (say_goodbye(&client))
		goto out;
	ret = 0;
out:
	rpma_conn_delete(&client.conn);
	rpma_mr_dereg(&client.mr);
	rpma_peer_delete(&client.peer);
	free(client.buffer);
	return ret;
}
