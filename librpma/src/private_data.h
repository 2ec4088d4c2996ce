/* SPDX-License-Identifier: BSD-3-Clause */
/* Private data that came with a connection event, kept beyond that event. */
#ifndef RPMA_PRIVATE_DATA_H
#define RPMA_PRIVATE_DATA_H

#include <rdma/rdma_cma.h>

#include "common.h"

/* copies; no data is fine.  0 or RPMA_E_NOMEM, then *pdata is as before */
int rpma_private_data_store(const struct rdma_cm_event *event,
			    struct rpma_conn_private_data *pdata);

/* frees; *pdata is empty then */
void rpma_private_data_delete(struct rpma_conn_private_data *pdata);

/*
 * 0, or RPMA_E_INVAL (with the reason in the log) if pdata is empty or more than id's transport
 * carries from that side.
 */
int rpma_private_data_check(const struct rpma_conn_private_data *pdata, const struct rdma_cm_id *id,
			    bool passive);

#endif /* RPMA_PRIVATE_DATA_H */
