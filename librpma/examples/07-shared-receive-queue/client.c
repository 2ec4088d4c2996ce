// SPDX-License-Identifier: BSD-3-Clause
/*
 * Send messages to a server; the client does not see that the server's buffers are shared.
 *
 * usage: client ADDRESS PORT MESSAGE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common.h"
#include "message.h"

static int send_all(struct rpma_conn *conn, struct rpma_mr_local *mr, char *buffer,
		    char *const messages[], int count)
{
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc;

	if (failed("get the completion queue", rpma_conn_get_cq(conn, &cq)))
		return -1;
	for (int i = 0; i < count; i++) {
		size_t len = strnlen(messages[i], MESSAGE_SIZE);

		memcpy(buffer, messages[i], len);
		if (len > 0 &&
		    (failed("send", rpma_send(conn, mr, 0, len, RPMA_F_COMPLETION_ALWAYS, NULL)) ||
		     cq_wait_one(cq, &wc)))
			return -1;
	}
	if (failed("send", rpma_send(conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, NULL)) ||
	    cq_wait_one(cq, &wc))
		return -1;
	return 0;
}

int main(int argc, char *argv[])
{
	struct rpma_peer *peer = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_conn *conn = NULL;
	char *buffer = NULL;
	int ret = 1;

	if (argc < 4 || argc - 3 > MESSAGES_MAX - 1) {
		fprintf(stderr, "usage: %s ADDRESS PORT MESSAGE... (at most %d)\n", argv[0],
			MESSAGES_MAX - 1);
		return 2;
	}

	buffer = buffer_new(MESSAGE_SIZE);
	if (buffer == NULL || peer_open(argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE, &peer) ||
	    failed("register memory",
		   rpma_mr_reg(peer, buffer, MESSAGE_SIZE, RPMA_MR_USAGE_SEND, &mr)) ||
	    client_connect(peer, argv[1], argv[2], NULL, &conn) ||
	    send_all(conn, mr, buffer, argv + 3, argc - 3) || client_disconnect(&conn))
		goto out;
	ret = 0;
out:
	rpma_conn_delete(&conn);
	rpma_mr_dereg(&mr);
	rpma_peer_delete(&peer);
	free(buffer);
	return ret;
}
