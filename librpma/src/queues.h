/* SPDX-License-Identifier: BSD-3-Clause */
/* The QP of a connection with its CQs: made for a request, handed on to the connection. */
#ifndef RPMA_QUEUES_H
#define RPMA_QUEUES_H

#include <rdma/rdma_cma.h>

#include "common.h"

struct rpma_peer;

struct rpma_queues {
	struct rpma_cq *cq;
	struct rpma_cq *rcq;              /* NULL: receives complete elsewhere */
	struct ibv_comp_channel *channel; /* shared by both, or NULL */
	struct ibv_qp_cap cap;            /* what the QP was given */
	bool has_srq;
};

/* 0 or RPMA_E_INVAL, RPMA_E_NOMEM, RPMA_E_PROVIDER; the QP is id->qp */
int rpma_queues_new(const struct rpma_peer *peer, struct rdma_cm_id *id,
		    const struct rpma_conn_cfg *cfg, struct rpma_queues *queues);

/* all of it, whatever fails; 0 or RPMA_E_PROVIDER */
int rpma_queues_delete(struct rdma_cm_id *id, struct rpma_queues *queues);

#endif /* RPMA_QUEUES_H */
