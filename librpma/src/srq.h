/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPMA_SRQ_H
#define RPMA_SRQ_H

#include "common.h"

struct rpma_srq {
	struct ibv_srq *srq;
	struct rpma_cq *rcq; /* NULL: each connection uses its own */
};

#endif /* RPMA_SRQ_H */
