// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <string.h>

#include "conn_cfg.h"
#include "cq.h"
#include "log.h"
#include "peer.h"
#include "queues.h"
#include "srq.h"
#include "verbs_native.h"

/*
 * An atomic write that is not native goes inline, RPMA_ATOMIC_WRITE_ALIGNMENT bytes of it, so no
 * device can do with less.  Messages are sent inline as far as the device takes them: it need not
 * fetch what comes with the request.
 */
#define INLINE_LEAST  8
#define INLINE_WANTED 32

/* what a batch with a native operation in it can hold (see batch.c) */
#define BATCH_OPS                                                                               \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ)

static void log_create_qp_failed(const struct rpma_peer *peer, const struct rdma_cm_id *id,
				 const struct rpma_conn_cfg *cfg, int err)
{
	if (id->verbs != peer->pd->context)
		RPMA_LOG_ERROR("the peer is on device %s, the address is reached through %s; make "
			       "the peer with rpma_utils_get_ibv_context()",
			       ibv_get_device_name(peer->pd->context->device),
			       id->verbs ? ibv_get_device_name(id->verbs->device) : "none");
	else
		RPMA_LOG_ERROR("rdma_create_qp_ex(max_send_wr=%u, max_recv_wr=%u) failed: %s; the "
			       "device allows %d each",
			       cfg->sq_size, cfg->rq_size, rpma_log_strerror(err),
			       peer->attr.max_qp_wr);
}

static int create_qp(const struct rpma_peer *peer, struct rdma_cm_id *id,
		     const struct rpma_conn_cfg *cfg, struct rpma_cq *recv_cq,
		     struct rpma_queues *queues)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = queues->cq->cq,
		.recv_cq = recv_cq->cq,
		.srq = cfg->srq ? cfg->srq->srq : NULL,
		.cap =
			{
				.max_send_wr = cfg->sq_size,
				.max_recv_wr = cfg->rq_size,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = INLINE_WANTED,
			},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 0,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = peer->pd,
	};

	if (peer->native_flush)
		attr.send_ops_flags |= RPMA_QP_EX_WITH_FLUSH;
	if (peer->native_atomic_write)
		attr.send_ops_flags |= RPMA_QP_EX_WITH_ATOMIC_WRITE;
	if (attr.send_ops_flags) {
		attr.send_ops_flags |= BATCH_OPS;
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	}

	const struct ibv_qp_cap wanted = attr.cap;
	int ret = rdma_create_qp_ex(id, &attr);

	/* Nothing tells how much a device takes inline but its refusal. */
	if (ret && errno == EINVAL) {
		attr.cap = wanted;
		attr.cap.max_inline_data = INLINE_LEAST;
		ret = rdma_create_qp_ex(id, &attr);
	}
	if (ret) {
		log_create_qp_failed(peer, id, cfg, errno);
		return RPMA_E_PROVIDER;
	}

	queues->cap = attr.cap;
	queues->has_srq = cfg->srq != NULL;

	return 0;
}

static int destroy_channel(struct rpma_queues *queues)
{
	int err = queues->channel ? ibv_destroy_comp_channel(queues->channel) : 0;

	if (err == 0)
		return 0;

	RPMA_LOG_CALL("ibv_destroy_comp_channel()", err);
	return RPMA_E_PROVIDER;
}

int rpma_queues_new(const struct rpma_peer *peer, struct rdma_cm_id *id,
		    const struct rpma_conn_cfg *cfg, struct rpma_queues *queues)
{
	struct rpma_cq *srq_rcq = cfg->srq ? cfg->srq->rcq : NULL;
	int ret;

	memset(queues, 0, sizeof(*queues));

	if (cfg->shared_channel && srq_rcq) {
		RPMA_LOG_ERROR("a connection cannot share its completion channel when its shared "
			       "receive queue has a receive CQ of its own");
		return RPMA_E_INVAL;
	}

	if (cfg->shared_channel) {
		queues->channel = ibv_create_comp_channel(id->verbs);
		if (queues->channel == NULL) {
			RPMA_LOG_CALL("ibv_create_comp_channel()", errno);
			return RPMA_E_PROVIDER;
		}
	}

	ret = rpma_cq_new(id->verbs, cfg->cq_size, queues->channel, &queues->cq);
	if (ret)
		goto err_destroy_channel;

	if (cfg->rcq_size && srq_rcq == NULL) {
		ret = rpma_cq_new(id->verbs, cfg->rcq_size, queues->channel, &queues->rcq);
		if (ret)
			goto err_delete_cq;
	}

	struct rpma_cq *own = queues->rcq ? queues->rcq : queues->cq;

	ret = create_qp(peer, id, cfg, srq_rcq ? srq_rcq : own, queues);
	if (ret)
		goto err_delete_rcq;

	return 0;

err_delete_rcq:
	(void)rpma_cq_delete(&queues->rcq);
err_delete_cq:
	(void)rpma_cq_delete(&queues->cq);
err_destroy_channel:
	(void)destroy_channel(queues);
	return ret;
}

int rpma_queues_delete(struct rdma_cm_id *id, struct rpma_queues *queues)
{
	int ret;

	rdma_destroy_qp(id);
	ret = rpma_cq_delete(&queues->rcq);
	RPMA_KEEP_FIRST(ret, rpma_cq_delete(&queues->cq));
	RPMA_KEEP_FIRST(ret, destroy_channel(queues));

	return ret;
}
