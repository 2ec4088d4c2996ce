// SPDX-License-Identifier: BSD-3-Clause
/*
 * Answer the messages of a client in capitals.
 *
 * usage: server ADDRESS PORT
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common.h"
#include "message.h"

/* receives have a completion queue of their own, so that they do not mix with sends */
static int accept_client(struct rpma_ep *ep, struct rpma_mr_local *mr, struct rpma_conn **conn_ptr)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_conn_req *req = NULL;
	int ret = -1;

	if (failed("make a configuration", rpma_conn_cfg_new(&cfg)) ||
	    failed("set the size", rpma_conn_cfg_set_rcq_size(cfg, 10)) ||
	    failed("get a request", rpma_ep_next_conn_req(ep, cfg, &req)) ||
	    /* the client may send as soon as it is connected: be prepared before */
	    failed("post a receive", rpma_conn_req_recv(req, mr, RECV_AT, MESSAGE_SIZE, NULL)) ||
	    failed("accept", rpma_conn_req_connect(&req, NULL, conn_ptr)))
		goto out;
	ret = conn_wait_for(*conn_ptr, RPMA_CONN_ESTABLISHED);
out:
	rpma_conn_req_delete(&req);
	rpma_conn_cfg_delete(&cfg);
	return ret;
}

static int converse(struct rpma_conn *conn, struct rpma_mr_local *mr, char *buffer)
{
	struct rpma_cq *cq = NULL, *rcq = NULL;
	struct ibv_wc wc;

	if (failed("get the completion queue", rpma_conn_get_cq(conn, &cq)) ||
	    failed("get the receive completion queue", rpma_conn_get_rcq(conn, &rcq)))
		return -1;

	for (uint32_t number = 1;; number++) {
		if (cq_wait_one(rcq, &wc))
			return -1;

		uint32_t len = wc.byte_len;

		if (len == 0)
			return 0;
		for (uint32_t i = 0; i < len; i++)
			buffer[SEND_AT + i] = (char)toupper((unsigned char)buffer[RECV_AT + i]);

		/* first a place for the next message, then the answer that may cause it */
		if (failed("post a receive", rpma_recv(conn, mr, RECV_AT, MESSAGE_SIZE, NULL)) ||
		    failed("send", rpma_send_with_imm(conn, mr, SEND_AT, len,
						      RPMA_F_COMPLETION_ALWAYS, number, NULL)) ||
		    cq_wait_one(cq, &wc))
			return -1;
	}
}

int main(int argc, char *argv[])
{
	struct rpma_peer *peer = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_ep *ep = NULL;
	struct rpma_conn *conn = NULL;
	char *buffer = NULL;
	int ret = 1;

	if (argc != 3) {
		fprintf(stderr, "usage: %s ADDRESS PORT\n", argv[0]);
		return 2;
	}

	buffer = buffer_new(MESSAGES_SIZE);
	if (buffer == NULL || peer_open(argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL, &peer) ||
	    failed("register memory", rpma_mr_reg(peer, buffer, MESSAGES_SIZE,
						  RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mr)) ||
	    server_listen(peer, argv[1], argv[2], &ep) || accept_client(ep, mr, &conn) ||
	    converse(conn, mr, buffer) || server_wait_closed(&conn))
		goto out;
	ret = 0;
out:
	rpma_conn_delete(&conn);
	rpma_ep_shutdown(&ep);
	rpma_mr_dereg(&mr);
	rpma_peer_delete(&peer);
	free(buffer);
	return ret;
}
