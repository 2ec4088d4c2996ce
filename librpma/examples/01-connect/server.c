// SPDX-License-Identifier: BSD-3-Clause
/*
 * Accept one connection and exchange private data with the client.
 *
 * usage: server ADDRESS PORT
 */
#include <stdio.h>
#include <string.h>

#include "../common.h"

static int serve(struct rpma_ep *ep)
{
	char answer[] = "a word from the server";
	struct rpma_conn_private_data to_client = {.ptr = answer, .len = sizeof(answer)};
	struct rpma_conn_private_data from_client = {0};
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	int ret = -1;

	if (failed("get a request", rpma_ep_next_conn_req(ep, NULL, &req)) ||
	    failed("get the private data", rpma_conn_req_get_private_data(req, &from_client)))
		goto out;

	/* it came from the network: nobody has promised that there is a zero at its end */
	printf("client: %.*s\n", from_client.len, (char *)from_client.ptr);

	if (failed("accept", rpma_conn_req_connect(&req, &to_client, &conn)) ||
	    /* here the two would work */
	    server_wait_closed(&conn))
		goto out;
	ret = 0;
out:
	rpma_conn_req_delete(&req);
	rpma_conn_delete(&conn);
	return ret;
}

int main(int argc, char *argv[])
{
	struct ibv_context *device = NULL;
	struct rpma_peer *peer = NULL;
	struct rpma_ep *ep = NULL;
	int ret = -1;

	if (argc != 3) {
		fprintf(stderr, "usage: %s ADDRESS PORT\n", argv[0]);
		return 2;
	}

	/* have the causes of errors on stderr, too */
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_WARNING);

	if (failed("find the device",
		   rpma_utils_get_ibv_context(argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL, &device)) ||
	    failed("open the device", rpma_peer_new(device, &peer)) ||
	    failed("listen", rpma_ep_listen(peer, argv[1], argv[2], &ep)))
		goto out;

	puts("ready");
	fflush(stdout);
	ret = serve(ep);
out:
	rpma_ep_shutdown(&ep);
	rpma_peer_delete(&peer);
	return ret ? 1 : 0;
}
