// SPDX-License-Identifier: BSD-3-Clause
/*
 * Append records to the server's log.
 *
 * usage: client ADDRESS PORT RECORD...
 */
#include <endian.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common.h"
#include "log.h"

struct client {
	struct rpma_peer *peer;
	struct rpma_mr_local *mr; /* a copy of the log */
	struct log *log;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct rpma_mr_remote *remote;
};

static int read_used(struct client *client, uint64_t *used)
{
	struct ibv_wc wc;

	if (failed("read", rpma_read(client->conn, client->mr, 0, client->remote, 0,
				     sizeof(uint64_t), RPMA_F_COMPLETION_ALWAYS, NULL)) ||
	    cq_wait_one(client->cq, &wc))
		return -1;
	*used = le64toh(client->log->used);
	if (*used > DATA_MAX) {
		fprintf(stderr, "the log claims to have %" PRIu64 " bytes, %zu fit\n", *used,
			DATA_MAX);
		return -1;
	}
	return 0;
}

static int append(struct client *client, const char *record)
{
	uint64_t used, new_used;
	struct ibv_wc wc;

	if (read_used(client, &used))
		return -1;

	size_t room = DATA_MAX - used;
	size_t at = offsetof(struct log, data) + used;
	int len = snprintf(client->log->data + used, room, "%s\n", record);

	if (len < 0 || (size_t)len >= room) {
		fprintf(stderr, "no room in the log for: %s\n", record);
		return -1;
	}
	new_used = htole64(used + (uint64_t)len);

	/* four steps in this order, each carried out after the one before; one completion for all
	 */
	if (failed("write the record", rpma_write(client->conn, client->remote, at, client->mr, at,
						  (size_t)len, RPMA_F_COMPLETION_ON_ERROR, NULL)) ||
	    failed("flush the record",
		   rpma_flush(client->conn, client->remote, at, (size_t)len,
			      RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ON_ERROR, NULL)) ||
	    failed("make the record count",
		   rpma_atomic_write(client->conn, client->remote, 0, (const char *)&new_used,
				     RPMA_F_COMPLETION_ON_ERROR, NULL)) ||
	    failed("flush that",
		   rpma_flush(client->conn, client->remote, 0, sizeof(new_used),
			      RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, NULL)))
		return -1;
	return cq_wait_one(client->cq, &wc);
}

int main(int argc, char *argv[])
{
	struct client client = {0};
	int usage = RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC;
	int ret = 1;

	if (argc < 4) {
		fprintf(stderr, "usage: %s ADDRESS PORT RECORD...\n", argv[0]);
		return 2;
	}

	client.log = buffer_new(LOG_SIZE);
	if (client.log == NULL || peer_open(argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE, &client.peer) ||
	    failed("register memory",
		   rpma_mr_reg(client.peer, client.log, LOG_SIZE, usage, &client.mr)) ||
	    client_connect(client.peer, argv[1], argv[2], NULL, &client.conn) ||
	    offer_take(client.conn, LOG_SIZE, &client.remote) ||
	    failed("get the completion queue", rpma_conn_get_cq(client.conn, &client.cq)))
		goto out;

	for (int i = 3; i < argc; i++)
		if (append(&client, argv[i]))
			goto out;

	if (client_disconnect(&client.conn))
		goto out;
	ret = 0;
out:
	rpma_mr_remote_delete(&client.remote);
	rpma_conn_delete(&client.conn);
	rpma_mr_dereg(&client.mr);
	rpma_peer_delete(&client.peer);
	free(client.log);
	return ret;
}
