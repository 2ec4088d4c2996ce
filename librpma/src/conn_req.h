/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPMA_CONN_REQ_H
#define RPMA_CONN_REQ_H

#include <rdma/rdma_cma.h>

#include "common.h"

/*
 * A request that came in.  Copies the private data and acks the event, whatever happens; on failure
 * the other side has been rejected and event->id is gone.  0, RPMA_E_INVAL, RPMA_E_NOMEM or
 * RPMA_E_PROVIDER.
 */
int rpma_conn_req_new_from_event(const struct rpma_peer *peer, struct rdma_cm_event *event,
				 const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr);

#endif /* RPMA_CONN_REQ_H */
