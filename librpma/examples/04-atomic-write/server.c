// SPDX-License-Identifier: BSD-3-Clause
/*
 * Keep a log that clients append to.
 *
 * usage: server ADDRESS PORT [FILE]
 */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>

#include "../common.h"
#include "../memory.h"
#include "log.h"

static int print_log(const struct log *log)
{
	uint64_t used = le64toh(log->used);

	/* the client could write anything */
	if (used > DATA_MAX) {
		fprintf(stderr, "the log claims to have %" PRIu64 " bytes, %zu fit\n", used,
			DATA_MAX);
		return -1;
	}
	fwrite(log->data, 1, used, stdout);
	return 0;
}

int main(int argc, char *argv[])
{
	struct memory memory = {0};
	struct rpma_peer *peer = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_ep *ep = NULL;
	struct rpma_conn *conn = NULL;
	struct offer offer;
	struct rpma_conn_private_data pdata = {.ptr = &offer, .len = sizeof(offer)};
	int ret = 1;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: %s ADDRESS PORT [FILE]\n", argv[0]);
		return 2;
	}

	if (memory_open(&memory, argc > 3 ? argv[3] : NULL, LOG_SIZE) ||
	    peer_open(argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL, &peer) ||
	    failed("register memory", rpma_mr_reg(peer, memory.ptr, LOG_SIZE,
						  RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
							  RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
						  &mr)) ||
	    offer_make(mr, false, &offer) || server_listen(peer, argv[1], argv[2], &ep) ||
	    server_accept(ep, NULL, &pdata, &conn) || server_wait_closed(&conn))
		goto out;

	memory_persist(&memory, LOG_SIZE);
	if (print_log(memory.ptr))
		goto out;
	ret = 0;
out:
	rpma_conn_delete(&conn);
	rpma_ep_shutdown(&ep);
	rpma_mr_dereg(&mr);
	rpma_peer_delete(&peer);
	memory_close(&memory);
	return ret;
}
