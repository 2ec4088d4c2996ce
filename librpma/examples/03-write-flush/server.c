// SPDX-License-Identifier: BSD-3-Clause
/*
 * Let a client write persistent memory and flush what it wrote.
 *
 * usage: server ADDRESS PORT [FILE [direct]]
 *
 * FILE is a device DAX or a file on persistent memory; without it, or with any other file, the
 * client is offered a flush for visibility only.  "direct" promises that this platform persists
 * what the device writes, so that a flush may be a read: see
 * rpma_peer_cfg_set_direct_write_to_pmem(3).
 */
#include <stdio.h>
#include <string.h>

#include "../common.h"
#include "../memory.h"
#include "text.h"

int main(int argc, char *argv[])
{
	struct memory memory = {0};
	struct rpma_peer *peer = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_ep *ep = NULL;
	struct rpma_conn *conn = NULL;
	struct offer offer;
	struct rpma_conn_private_data pdata = {.ptr = &offer, .len = sizeof(offer)};
	int usage = RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
	bool direct = argc == 5 && strcmp(argv[4], "direct") == 0;
	int ret = 1;

	if (argc < 3 || argc > 5 || (argc == 5 && !direct)) {
		fprintf(stderr, "usage: %s ADDRESS PORT [FILE [direct]]\n", argv[0]);
		return 2;
	}

	if (memory_open(&memory, argc > 3 ? argv[3] : NULL, TEXT_SIZE))
		goto out;
	if (memory.is_pmem)
		usage |= RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;

	if (peer_open(argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL, &peer) ||
	    failed("register memory", rpma_mr_reg(peer, memory.ptr, memory.size, usage, &mr)) ||
	    offer_make(mr, direct, &offer) || server_listen(peer, argv[1], argv[2], &ep) ||
	    server_accept(ep, NULL, &pdata, &conn) || server_wait_closed(&conn))
		goto out;

	/* whoever could only make it visible has left the rest to this side */
	memory_persist(&memory, TEXT_SIZE);
	printf("written: %.*s\n", TEXT_SIZE, (char *)memory.ptr);
	ret = 0;
out:
	rpma_conn_delete(&conn);
	rpma_ep_shutdown(&ep);
	rpma_mr_dereg(&mr);
	rpma_peer_delete(&peer);
	memory_close(&memory);
	return ret;
}
