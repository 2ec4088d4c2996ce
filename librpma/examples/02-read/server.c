// SPDX-License-Identifier: BSD-3-Clause
/*
 * Let a client read memory of this process.
 *
 * usage: server ADDRESS PORT
 */
#include <stdio.h>
#include <stdlib.h>

#include "../common.h"
#include "text.h"

int main(int argc, char *argv[])
{
	struct rpma_peer *peer = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_ep *ep = NULL;
	struct rpma_conn *conn = NULL;
	struct offer offer;
	struct rpma_conn_private_data pdata = {.ptr = &offer, .len = sizeof(offer)};
	char *text = NULL;
	int ret = 1;

	if (argc != 3) {
		fprintf(stderr, "usage: %s ADDRESS PORT\n", argv[0]);
		return 2;
	}

	text = buffer_new(TEXT_SIZE);
	if (text == NULL || peer_open(argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL, &peer) ||
	    failed("register memory",
		   rpma_mr_reg(peer, text, TEXT_SIZE, RPMA_MR_USAGE_READ_SRC, &mr)))
		goto out;
	snprintf(text, TEXT_SIZE, "what the server's memory holds");

	if (offer_make(mr, false, &offer) || server_listen(peer, argv[1], argv[2], &ep) ||
	    server_accept(ep, NULL, &pdata, &conn) ||
	    /* the client reads, this process has nothing to do */
	    server_wait_closed(&conn))
		goto out;
	ret = 0;
out:
	rpma_conn_delete(&conn);
	rpma_ep_shutdown(&ep);
	rpma_mr_dereg(&mr);
	rpma_peer_delete(&peer);
	free(text);
	return ret;
}
