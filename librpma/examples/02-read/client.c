// SPDX-License-Identifier: BSD-3-Clause
/*
 * Read the server's memory.
 *
 * usage: client ADDRESS PORT
 */
#include <stdio.h>
#include <stdlib.h>

#include "../common.h"
#include "text.h"

static int read_text(struct rpma_conn *conn, struct rpma_mr_local *mr)
{
	struct rpma_mr_remote *remote = NULL;
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc;
	int ret = -1;

	if (offer_take(conn, TEXT_SIZE, &remote) ||
	    failed("get the completion queue", rpma_conn_get_cq(conn, &cq)) ||
	    failed("read",
		   rpma_read(conn, mr, 0, remote, 0, TEXT_SIZE, RPMA_F_COMPLETION_ALWAYS, NULL)) ||
	    cq_wait_one(cq, &wc))
		goto out;
	ret = 0;
out:
	rpma_mr_remote_delete(&remote);
	return ret;
}

int main(int argc, char *argv[])
{
	struct rpma_peer *peer = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_conn *conn = NULL;
	char *text = NULL;
	int ret = 1;

	if (argc != 3) {
		fprintf(stderr, "usage: %s ADDRESS PORT\n", argv[0]);
		return 2;
	}

	text = buffer_new(TEXT_SIZE);
	if (text == NULL || peer_open(argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE, &peer) ||
	    failed("register memory",
		   rpma_mr_reg(peer, text, TEXT_SIZE, RPMA_MR_USAGE_READ_DST, &mr)) ||
	    client_connect(peer, argv[1], argv[2], NULL, &conn) || read_text(conn, mr))
		goto out;

	printf("read: %.*s\n", TEXT_SIZE, text);

	if (client_disconnect(&conn))
		goto out;
	ret = 0;
out:
	rpma_conn_delete(&conn);
	rpma_mr_dereg(&mr);
	rpma_peer_delete(&peer);
	free(text);
	return ret;
}
