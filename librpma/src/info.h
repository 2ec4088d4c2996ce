/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: from what the user wrote to an rdma_cm id bound or resolved. */
#ifndef RPMA_INFO_H
#define RPMA_INFO_H

#include <rdma/rdma_cma.h>

#include "common.h"

enum rpma_info_side {
	RPMA_INFO_PASSIVE, /* an address of this host */
	RPMA_INFO_ACTIVE,  /* an address to reach */
};

/*
 * Both: port may be NULL; 0, RPMA_E_INVAL (port is no port) or RPMA_E_PROVIDER, with the reason in
 * the log.
 */

int rpma_info_bind(struct rdma_cm_id *id, const char *addr, const char *port);
int rpma_info_resolve(struct rdma_cm_id *id, const char *addr, const char *port, int timeout_ms);

#endif /* RPMA_INFO_H */
