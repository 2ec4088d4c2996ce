// SPDX-License-Identifier: BSD-3-Clause
/*
 * Write a state into the server's memory again and again, and tell the server each time.
 *
 * usage: client ADDRESS PORT STATE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common.h"
#include "state.h"

static int write_states(struct rpma_conn *conn, struct rpma_mr_local *mr, char *state,
			char *const states[], int count)
{
	struct rpma_mr_remote *remote = NULL;
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc;
	int ret = -1;

	if (offer_take(conn, STATE_SIZE, &remote) ||
	    failed("get the completion queue", rpma_conn_get_cq(conn, &cq)))
		goto out;

	for (int i = 0; i < count; i++) {
		memset(state, 0, STATE_SIZE);
		memcpy(state, states[i], strnlen(states[i], STATE_SIZE));
		if (failed("write",
			   rpma_write_with_imm(conn, remote, 0, mr, 0, STATE_SIZE,
					       RPMA_F_COMPLETION_ALWAYS, (uint32_t)i + 1, NULL)) ||
		    cq_wait_one(cq, &wc))
			goto out;
	}
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
	char *state = NULL;
	int ret = 1;

	if (argc < 4 || argc - 3 > UPDATES_MAX) {
		fprintf(stderr, "usage: %s ADDRESS PORT STATE... (at most %d)\n", argv[0],
			UPDATES_MAX);
		return 2;
	}

	state = buffer_new(STATE_SIZE);
	if (state == NULL || peer_open(argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE, &peer) ||
	    failed("register memory",
		   rpma_mr_reg(peer, state, STATE_SIZE, RPMA_MR_USAGE_WRITE_SRC, &mr)) ||
	    client_connect(peer, argv[1], argv[2], NULL, &conn) ||
	    write_states(conn, mr, state, argv + 3, argc - 3) || client_disconnect(&conn))
		goto out;
	ret = 0;
out:
	rpma_conn_delete(&conn);
	rpma_mr_dereg(&mr);
	rpma_peer_delete(&peer);
	free(state);
	return ret;
}
