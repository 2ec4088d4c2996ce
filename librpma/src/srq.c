// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "cq.h"
#include "log.h"
#include "peer.h"
#include "srq.h"
#include "srq_cfg.h"
#include "wr.h"

int rpma_srq_new(struct rpma_peer *peer, struct rpma_srq_cfg *cfg, struct rpma_srq **srq_ptr)
{
	const struct rpma_srq_cfg *use = cfg ? cfg : &rpma_srq_cfg_default;

	if (peer == NULL || srq_ptr == NULL)
		return RPMA_E_INVAL;

	struct rpma_srq *srq = calloc(1, sizeof(*srq));

	if (srq == NULL)
		return RPMA_E_NOMEM;

	struct ibv_srq_init_attr attr = {
		.attr = {.max_wr = use->rq_size, .max_sge = 1},
	};
	int ret = RPMA_E_PROVIDER;

	srq->srq = ibv_create_srq(peer->pd, &attr);
	if (srq->srq == NULL) {
		RPMA_LOG_ERROR("ibv_create_srq(max_wr=%u) failed: %s; the device allows %d",
			       use->rq_size, rpma_log_strerror(errno), peer->attr.max_srq_wr);
		goto err_free;
	}

	if (use->rcq_size) {
		ret = rpma_cq_new(peer->pd->context, use->rcq_size, NULL, &srq->rcq);
		if (ret)
			goto err_destroy_srq;
	}

	*srq_ptr = srq;

	return 0;

err_destroy_srq:
	(void)ibv_destroy_srq(srq->srq);
err_free:
	free(srq);
	return ret;
}

int rpma_srq_delete(struct rpma_srq **srq_ptr)
{
	if (srq_ptr == NULL)
		return RPMA_E_INVAL;

	struct rpma_srq *srq = *srq_ptr;

	if (srq == NULL)
		return 0;

	int ret = rpma_cq_delete(&srq->rcq);
	int err = ibv_destroy_srq(srq->srq);

	if (err) {
		RPMA_LOG_CALL("ibv_destroy_srq()", err);
		RPMA_KEEP_FIRST(ret, RPMA_E_PROVIDER);
	}

	free(srq);
	*srq_ptr = NULL;

	return ret;
}

int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst, size_t offset, size_t len,
		  const void *op_context)
{
	struct ibv_recv_wr wr, *bad;
	struct ibv_sge sge;

	if (unlikely(srq == NULL))
		return RPMA_E_INVAL;
	if (unlikely(!rpma_recv_wr_set(&wr, &sge, dst, offset, len, op_context)))
		return RPMA_E_INVAL;

	int ret = ibv_post_srq_recv(srq->srq, &wr, &bad);

	return likely(ret == 0) ? 0 : rpma_post_failed("ibv_post_srq_recv()", ret);
}

int rpma_srq_get_rcq(const struct rpma_srq *srq, struct rpma_cq **rcq_ptr)
{
	if (srq == NULL || rcq_ptr == NULL)
		return RPMA_E_INVAL;

	*rcq_ptr = srq->rcq;

	return 0;
}
