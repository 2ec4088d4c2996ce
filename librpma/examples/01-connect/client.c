// SPDX-License-Identifier: BSD-3-Clause
/*
 * Connect to a server and exchange private data with it.
 *
 * usage: client ADDRESS PORT
 */
#include <stdio.h>
#include <string.h>

#include "../common.h"

int main(int argc, char *argv[])
{
	char word[] = "a word from the client";
	struct rpma_conn_private_data to_server = {.ptr = word, .len = sizeof(word)};
	struct rpma_conn_private_data from_server = {0};
	struct ibv_context *device = NULL;
	struct rpma_peer *peer = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	int ret = 1;

	if (argc != 3) {
		fprintf(stderr, "usage: %s ADDRESS PORT\n", argv[0]);
		return 2;
	}

	/* have the causes of errors on stderr, too */
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_WARNING);

	if (failed("find the device",
		   rpma_utils_get_ibv_context(argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE, &device)) ||
	    failed("open the device", rpma_peer_new(device, &peer)) ||
	    failed("reach the server", rpma_conn_req_new(peer, argv[1], argv[2], NULL, &req)) ||
	    failed("connect", rpma_conn_req_connect(&req, &to_server, &conn)) ||
	    conn_wait_for(conn, RPMA_CONN_ESTABLISHED) ||
	    failed("get the private data", rpma_conn_get_private_data(conn, &from_server)))
		goto out;

	/* it came from the network: nobody has promised that there is a zero at its end */
	printf("server: %.*s\n", from_server.len, (char *)from_server.ptr);

	if (failed("disconnect", rpma_conn_disconnect(conn)) ||
	    conn_wait_for(conn, RPMA_CONN_CLOSED))
		goto out;
	ret = 0;
out:
	rpma_conn_req_delete(&req);
	rpma_conn_delete(&conn);
	rpma_peer_delete(&peer);
	return ret;
}
