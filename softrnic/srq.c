// SPDX-License-Identifier: BSD-3-Clause
/* Receive queues: a queue pair's own, and shared ones. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic.h"

int srn_rq_init(struct srn_rq *rq, uint32_t size, uint32_t max_sge)
{
	memset(rq, 0, sizeof(*rq));
	rq->size = size ? size : 1;
	rq->max_sge = max_sge ? max_sge : 1;
	rq->ring = calloc(rq->size, sizeof(*rq->ring));
	rq->sges = calloc((size_t)rq->size * rq->max_sge, sizeof(*rq->sges));
	if (rq->ring && rq->sges)
		return 0;
	srn_rq_free(rq);
	return ENOMEM;
}

void srn_rq_free(struct srn_rq *rq)
{
	free(rq->ring);
	free(rq->sges);
	memset(rq, 0, sizeof(*rq));
}

int srn_rq_post(struct srn_rq *rq, const struct ibv_recv_wr *wr)
{
	struct srn_rwqe *rwqe;
	uint32_t slot;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	if (rq->count == rq->size)
		return ENOMEM;
	slot = (rq->head + rq->count) % rq->size;
	rwqe = &rq->ring[slot];
	rwqe->wr_id = wr->wr_id;
	rwqe->num_sge = (uint32_t)wr->num_sge;
	rwqe->sge = rq->sges + (size_t)slot * rq->max_sge;
	if (wr->num_sge)
		memcpy(rwqe->sge, wr->sg_list, rwqe->num_sge * sizeof(*rwqe->sge));
	rq->count++;
	return 0;
}

bool srn_rq_take(struct srn_rq *rq, struct srn_rwqe *rwqe, struct ibv_sge *sge)
{
	if (!rq->count)
		return false;
	*rwqe = rq->ring[rq->head];
	memcpy(sge, rwqe->sge, rwqe->num_sge * sizeof(*sge));
	rwqe->sge = sge;
	rq->head = (rq->head + 1) % rq->size;
	rq->count--;
	return true;
}

bool srn_srq_take(struct srn_srq *srq, struct srn_rwqe *rwqe, struct ibv_sge *sge)
{
	bool taken, limit = false;

	pthread_mutex_lock(&srq->lock);
	taken = srn_rq_take(&srq->rq, rwqe, sge);
	if (taken && srq->rq.count < srq->limit) {
		srq->limit = 0;
		limit = true;
	}
	pthread_mutex_unlock(&srq->lock);
	if (limit)
		srn_async_event(srq->srq.context, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	return taken;
}

int srn_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct srn_srq *srq = (struct srn_srq *)ibsrq;
	struct srn_qp *qp;
	int ret = 0;

	pthread_mutex_lock(&srq->lock);
	for (; wr && !ret; wr = ret ? wr : wr->next)
		ret = srn_rq_post(&srq->rq, wr);
	/* Queue pairs whose SENDs found it empty go on, on the engine: their locks come first. */
	TAILQ_FOREACH(qp, &srq->stalled, stalled_link)
	srn_src_kick(&qp->src);
	pthread_mutex_unlock(&srq->lock);
	if (ret)
		*bad_wr = wr;
	return ret;
}

struct ibv_srq *srn_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct srn_srq *srq;

	if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type != IBV_SRQT_BASIC) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd ||
	    attr->attr.max_wr > SRN_MAX_SRQ_WR || attr->attr.max_sge > SRN_MAX_SGE ||
	    !attr->attr.max_wr) {
		errno = EINVAL;
		return NULL;
	}
	srq = calloc(1, sizeof(*srq));
	if (!srq || srn_rq_init(&srq->rq, attr->attr.max_wr, attr->attr.max_sge)) {
		free(srq);
		errno = ENOMEM;
		return NULL;
	}
	attr->attr.max_sge = srq->rq.max_sge;
	TAILQ_INIT(&srq->stalled);
	pthread_mutex_init(&srq->lock, NULL);
	srq->srq.context = context;
	srq->srq.srq_context = attr->srq_context;
	srq->srq.pd = attr->pd;
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
	atomic_fetch_add(&((struct srn_pd *)attr->pd)->users, 1);
	return &srq->srq;
}

SRN_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_srq *srq = srn_create_srq_ex(pd->context, &ex);

	if (srq)
		attr->attr = ex.attr;
	return srq;
}

SRN_EXPORT int ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct srn_srq *srq = (struct srn_srq *)ibsrq;
	struct srn_rq bigger;
	int ret = 0;

	if (mask & ~(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR))
		return EINVAL;
	pthread_mutex_lock(&srq->lock);
	if (mask & IBV_SRQ_MAX_WR) {
		ret = EINVAL;
		if (!attr->max_wr || attr->max_wr > SRN_MAX_SRQ_WR || attr->max_wr < srq->rq.count)
			goto out;
		ret = srn_rq_init(&bigger, attr->max_wr, srq->rq.max_sge);
		if (ret)
			goto out;
		while (srq->rq.count) {
			struct srn_rwqe *to = &bigger.ring[bigger.count];
			struct ibv_sge *sge = bigger.sges + (size_t)bigger.count * bigger.max_sge;

			srn_rq_take(&srq->rq, to, sge);
			bigger.count++;
		}
		srn_rq_free(&srq->rq);
		srq->rq = bigger;
	}
	if (mask & IBV_SRQ_LIMIT) {
		if (attr->srq_limit > srq->rq.size)
			ret = EINVAL;
		else
			srq->limit = attr->srq_limit;
	}
out:
	pthread_mutex_unlock(&srq->lock);
	return ret;
}

SRN_EXPORT int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct srn_srq *srq = (struct srn_srq *)ibsrq;

	pthread_mutex_lock(&srq->lock);
	attr->max_wr = srq->rq.size;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = srq->limit;
	pthread_mutex_unlock(&srq->lock);
	return 0;
}

int srn_get_srq_num(struct ibv_srq *srq, uint32_t *num)
{
	(void)srq;
	(void)num;
	return EOPNOTSUPP; /* only XRC has numbers */
}

SRN_EXPORT int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
	struct srn_srq *srq = (struct srn_srq *)ibsrq;

	if (atomic_load(&srq->users))
		return EBUSY;
	srn_async_forget(ibsrq->context, srq, &ibsrq->mutex, &ibsrq->cond, &srq->async_given,
			 &ibsrq->events_completed);
	atomic_fetch_sub(&((struct srn_pd *)ibsrq->pd)->users, 1);
	pthread_mutex_destroy(&srq->lock);
	pthread_mutex_destroy(&ibsrq->mutex);
	pthread_cond_destroy(&ibsrq->cond);
	srn_rq_free(&srq->rq);
	free(srq);
	return 0;
}
