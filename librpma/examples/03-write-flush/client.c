// SPDX-License-Identifier: BSD-3-Clause
/*
 * Write a text into the server's persistent memory and flush it.
 *
 * usage: client ADDRESS PORT [TEXT]
 */
#include <stdio.h>
#include <stdlib.h>

#include "../common.h"
#include "text.h"

/* flush as far as the server's memory allows; tells which it was */
static int flush(struct rpma_conn *conn, struct rpma_mr_remote *remote)
{
	int types = 0;
	int ret = RPMA_E_NOSUPP;

	if (failed("get the flush types", rpma_mr_remote_get_flush_type(remote, &types)))
		return -1;

	if (types & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)
		ret = rpma_flush(conn, remote, 0, TEXT_SIZE, RPMA_FLUSH_TYPE_PERSISTENT,
				 RPMA_F_COMPLETION_ALWAYS, NULL);
	if (ret == 0) {
		puts("flush: persistent");
		return 0;
	}
	if (ret != RPMA_E_NOSUPP)
		return failed("flush", ret) ? -1 : 0;

	/* no persistent memory, or the device has no native flush and nothing was promised */
	puts("flush: visible");
	if (failed("flush", rpma_flush(conn, remote, 0, TEXT_SIZE, RPMA_FLUSH_TYPE_VISIBILITY,
				       RPMA_F_COMPLETION_ALWAYS, NULL)))
		return -1;
	return 0;
}

static int write_text(struct rpma_conn *conn, struct rpma_mr_local *mr)
{
	struct rpma_mr_remote *remote = NULL;
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc;
	int ret = -1;

	if (offer_take(conn, TEXT_SIZE, &remote) ||
	    failed("get the completion queue", rpma_conn_get_cq(conn, &cq)) ||
	    /* if the flush succeeds so did the write before it: one completion is enough */
	    failed("write", rpma_write(conn, remote, 0, mr, 0, TEXT_SIZE,
				       RPMA_F_COMPLETION_ON_ERROR, NULL)) ||
	    flush(conn, remote) || cq_wait_one(cq, &wc))
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

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: %s ADDRESS PORT [TEXT]\n", argv[0]);
		return 2;
	}

	text = buffer_new(TEXT_SIZE);
	if (text == NULL)
		goto out;
	snprintf(text, TEXT_SIZE, "%s", argc == 4 ? argv[3] : "what the client wrote");

	if (peer_open(argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE, &peer) ||
	    failed("register memory",
		   rpma_mr_reg(peer, text, TEXT_SIZE, RPMA_MR_USAGE_WRITE_SRC, &mr)) ||
	    client_connect(peer, argv[1], argv[2], NULL, &conn) || write_text(conn, mr) ||
	    client_disconnect(&conn))
		goto out;
	ret = 0;
out:
	rpma_conn_delete(&conn);
	rpma_mr_dereg(&mr);
	rpma_peer_delete(&peer);
	free(text);
	return ret;
}
