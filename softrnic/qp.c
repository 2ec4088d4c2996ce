// SPDX-License-Identifier: BSD-3-Clause
/* Queue pairs: their life, states and attributes. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softrnic.h"

#define SEND_OPS                                                                                \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                              \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |              \
	 IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE | SRN_QP_EX_WITH_FLUSH)

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, srn_qp) all_qps = LIST_HEAD_INITIALIZER(all_qps);
static uint32_t last_number = 1;

static int check_attr(const struct ibv_qp_init_attr_ex *attr, const struct ibv_pd *pd)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS;

	if (!pd || !attr->send_cq || !attr->recv_cq)
		return EINVAL;
	if (attr->comp_mask & ~known)
		return EOPNOTSUPP;
	if (attr->qp_type != IBV_QPT_RC)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
	    (attr->send_ops_flags & ~(uint64_t)SEND_OPS))
		return EOPNOTSUPP;
	if (attr->cap.max_send_wr > SRN_MAX_QP_WR || attr->cap.max_recv_wr > SRN_MAX_QP_WR ||
	    attr->cap.max_send_sge > SRN_MAX_SGE || attr->cap.max_recv_sge > SRN_MAX_SGE ||
	    attr->cap.max_inline_data > SRN_MAX_INLINE)
		return EINVAL;
	return 0;
}

static void free_rings(struct srn_qp *qp)
{
	free(qp->sq);
	free(qp->sq_sge);
	free(qp->sq_inline);
	free(qp->waiting);
	free(qp->responses);
	free(qp->rx.buf);
	free(qp->rx.recv_sge);
	free(qp->tx.copies);
	srn_rq_free(&qp->rq);
}

static int alloc_rings(struct srn_qp *qp)
{
	const struct ibv_qp_cap *cap = &qp->cap;
	uint32_t i;

	for (qp->sq_size = 1; qp->sq_size < cap->max_send_wr;)
		qp->sq_size *= 2;
	qp->sq = calloc(qp->sq_size, sizeof(*qp->sq));
	qp->sq_sge = calloc((size_t)qp->sq_size * cap->max_send_sge + 1, sizeof(*qp->sq_sge));
	qp->sq_inline = calloc((size_t)qp->sq_size, cap->max_inline_data + 1u);
	qp->waiting = calloc(SRN_MAX_RD_ATOM, sizeof(*qp->waiting));
	qp->responses = calloc(SRN_MAX_RD_ATOM, sizeof(*qp->responses));
	qp->rx.recv_sge = calloc(SRN_MAX_SGE, sizeof(*qp->rx.recv_sge));
	if (!qp->sq || !qp->sq_sge || !qp->sq_inline || !qp->waiting || !qp->responses ||
	    !qp->rx.recv_sge || srn_rq_init(&qp->rq, cap->max_recv_wr, cap->max_recv_sge)) {
		free_rings(qp);
		return ENOMEM;
	}
	for (i = 0; i < qp->sq_size; i++)
		qp->sq[i].sge = qp->sq_sge + (size_t)i * cap->max_send_sge;
	return 0;
}

/* With all_lock held. */
static struct srn_qp *find_locked(uint32_t qp_num)
{
	struct srn_qp *qp;

	LIST_FOREACH(qp, &all_qps, all)
	if (qp->v.ex.qp_base.qp_num == qp_num)
		break;
	return qp;
}

static void init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	/* Held for a system call at most: waiting beats sleeping. */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

struct ibv_qp *srn_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_pd *pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL;
	struct srn_qp *qp;
	struct ibv_qp *base;
	int err = check_attr(attr, pd);

	if (err)
		goto err_errno;
	err = ENOMEM;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		goto err_errno;
	qp->cap = attr->cap;
	/* Programs take some room for inline data for granted, as devices give some unasked. */
	if (qp->cap.max_inline_data < SRN_MIN_INLINE)
		qp->cap.max_inline_data = SRN_MIN_INLINE;
	err = alloc_rings(qp);
	if (err)
		goto err_free;
	qp->fd = qp->src.fd = -1;
	qp->sig_all = attr->sq_sig_all;
	base = &qp->v.ex.qp_base;
	base->context = context;
	base->qp_context = attr->qp_context;
	base->pd = pd;
	base->send_cq = attr->send_cq;
	base->recv_cq = attr->recv_cq;
	base->srq = attr->srq;
	base->state = IBV_QPS_RESET;
	base->qp_type = attr->qp_type;
	pthread_mutex_init(&base->mutex, NULL);
	pthread_cond_init(&base->cond, NULL);
	init_lock(&qp->lock);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		qp->send_ops = attr->send_ops_flags;
	srn_wr_api_init(qp);
	err = srn_cq_attach(srn_cq(attr->send_cq), qp);
	if (err)
		goto err_rings;
	if (attr->recv_cq != attr->send_cq) {
		err = srn_cq_attach(srn_cq(attr->recv_cq), qp);
		if (err)
			goto err_detach;
	}
	atomic_fetch_add(&((struct srn_pd *)pd)->users, 1);
	if (attr->srq)
		atomic_fetch_add(&((struct srn_srq *)attr->srq)->users, 1);
	pthread_mutex_lock(&all_lock);
	/* They come round again: a queue pair that lives long keeps its own. */
	do
		last_number = (last_number + 1) & 0xffffff;
	while (!last_number || find_locked(last_number));
	base->qp_num = base->handle = last_number;
	LIST_INSERT_HEAD(&all_qps, qp, all);
	pthread_mutex_unlock(&all_lock);
	attr->cap = qp->cap;
	return base;

err_detach:
	srn_cq_detach(srn_cq(attr->send_cq), qp);
err_rings:
	free_rings(qp);
err_free:
	free(qp);
err_errno:
	errno = err;
	return NULL;
}

SRN_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = srn_create_qp_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

SRN_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct srn_qp *sqp = srn_qp(qp);

	return sqp->send_ops ? &sqp->v.ex : NULL;
}

bool srn_qp_known(uint32_t qp_num)
{
	struct srn_qp *qp;

	pthread_mutex_lock(&all_lock);
	qp = find_locked(qp_num);
	pthread_mutex_unlock(&all_lock);
	return qp;
}

struct srn_qp *srn_qp_find(uint32_t qp_num)
{
	struct srn_qp *qp;

	pthread_mutex_lock(&all_lock);
	qp = find_locked(qp_num);
	if (qp)
		pthread_mutex_lock(&qp->lock);
	pthread_mutex_unlock(&all_lock);
	return qp;
}

static void for_id(struct srn_id *id, bool fail)
{
	struct srn_qp *qp;

	pthread_mutex_lock(&all_lock);
	LIST_FOREACH(qp, &all_qps, all)
	{
		pthread_mutex_lock(&qp->lock);
		if (qp->id == id && fail) {
			srn_tx_run(qp);
			srn_qp_fail(qp, NULL, SRN_NO_WQE, IBV_WC_SUCCESS);
		}
		if (qp->id == id)
			qp->id = NULL;
		pthread_mutex_unlock(&qp->lock);
	}
	pthread_mutex_unlock(&all_lock);
}

void srn_qp_disconnect(struct srn_id *id)
{
	for_id(id, true);
}

void srn_qp_forget_id(struct srn_id *id)
{
	for_id(id, false);
}

void srn_adopt_orphans(struct srn_cq *cq)
{
	struct srn_qp *qp;

	pthread_mutex_lock(&all_lock);
	LIST_FOREACH(qp, &all_qps, all)
	{
		pthread_mutex_lock(&qp->lock);
		srn_cq_adopt(cq, qp);
		pthread_mutex_unlock(&qp->lock);
	}
	pthread_mutex_unlock(&all_lock);
}

SRN_EXPORT int ibv_destroy_qp(struct ibv_qp *base)
{
	struct srn_qp *qp = srn_qp(base);

	/* Who found it before holds its lock; from here on nobody finds it. */
	pthread_mutex_lock(&all_lock);
	pthread_mutex_lock(&qp->lock);
	LIST_REMOVE(qp, all);
	srn_tx_run(qp);
	srn_qp_fail(qp, NULL, SRN_NO_WQE, IBV_WC_SUCCESS);
	qp->id = NULL;
	pthread_mutex_unlock(&qp->lock);
	pthread_mutex_unlock(&all_lock);
	srn_cq_undefer(qp);
	srn_cq_forget_sender(qp);
	srn_cq_detach(srn_cq(base->send_cq), qp);
	if (base->recv_cq != base->send_cq)
		srn_cq_detach(srn_cq(base->recv_cq), qp);
	srn_qp_leave_adopter(qp);
	srn_src_remove(&qp->src);
	srn_async_forget(base->context, qp, &base->mutex, &base->cond, &qp->async_given,
			 &base->events_completed);
	atomic_fetch_sub(&((struct srn_pd *)base->pd)->users, 1);
	if (base->srq)
		atomic_fetch_sub(&((struct srn_srq *)base->srq)->users, 1);
	pthread_mutex_destroy(&qp->lock);
	pthread_mutex_destroy(&base->mutex);
	pthread_cond_destroy(&base->cond);
	free_rings(qp);
	free(qp);
	return 0;
}

static void qp_after_fork(struct srn_qp *qp)
{
	init_lock(&qp->lock);
	if (qp->id) /* the engine may be about to leave it */
		pthread_mutex_init(&qp->id->lock, NULL);
	if (qp->fd >= 0)
		qp->v.ex.qp_base.state = IBV_QPS_ERR;
	/* The engine has closed the socket; nobody shall hear of this end. */
	qp->fd = qp->src.fd = -1;
	qp->connected = false;
	qp->id = NULL;
	qp->adopter = NULL;
	qp->deferred = qp->on_stalled = qp->rx.stalled = false;
	memset(qp->cq_interest, 0, sizeof(qp->cq_interest));
}

void srn_qps_after_fork(void)
{
	struct srn_qp *qp, *next, *first = LIST_FIRST(&all_qps);
	struct srn_srq *srq;

	srn_building = 0;
	pthread_mutex_init(&all_lock, NULL);
	for (qp = first; qp; qp = LIST_NEXT(qp, all)) {
		srn_cq_after_fork(srn_cq(qp->v.ex.qp_base.send_cq));
		srn_cq_after_fork(srn_cq(qp->v.ex.qp_base.recv_cq));
		if (qp->adopter)
			srn_cq_after_fork(qp->adopter);
		srq = (struct srn_srq *)qp->v.ex.qp_base.srq;
		if (srq) {
			pthread_mutex_init(&srq->lock, NULL);
			TAILQ_INIT(&srq->stalled);
		}
	}
	/* Another thread may have been at the list: it is sound forwards only. */
	LIST_INIT(&all_qps);
	for (qp = first; qp; qp = next) {
		next = LIST_NEXT(qp, all);
		qp_after_fork(qp);
		LIST_INSERT_HEAD(&all_qps, qp, all);
	}
}

static bool transition_allowed(const struct srn_qp *qp, enum ibv_qp_state from,
			       enum ibv_qp_state to)
{
	switch (to) {
	case IBV_QPS_RESET:
		return !qp->connected;
	case IBV_QPS_INIT:
		return from == IBV_QPS_RESET || from == IBV_QPS_INIT;
	case IBV_QPS_RTR:
	case IBV_QPS_RTS:
		/* Only rdma_cm brings an iWARP queue pair here; told again is fine. */
		return from == IBV_QPS_RTS;
	case IBV_QPS_ERR:
		return from != IBV_QPS_RESET;
	default:
		return false;
	}
}

static void reset(struct srn_qp *qp)
{
	qp->sq_head = qp->sq_tx = qp->sq_tail = qp->sq_seen = 0;
	qp->wr_built = 0;
	srn_cq_forget_sender(qp);
	qp->waiting_count = 0;
	qp->rq.head = qp->rq.count = 0;
	free(qp->rx.buf);
	free(qp->tx.copies);
	memset(&qp->tx, 0, sizeof(qp->tx));
	qp->rx = (struct srn_rx){.recv_sge = qp->rx.recv_sge};
}

SRN_EXPORT int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
	struct srn_qp *qp = srn_qp(base);
	int ret = 0;

	pthread_mutex_lock(&qp->lock);
	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != base->state)
		ret = EINVAL;
	else if ((mask & IBV_QP_STATE) && !transition_allowed(qp, base->state, attr->qp_state))
		ret = EINVAL;
	if (ret)
		goto out;
	if (mask & IBV_QP_ACCESS_FLAGS)
		qp->access = attr->qp_access_flags;
	if (!(mask & IBV_QP_STATE) || attr->qp_state == base->state)
		goto out;
	if (attr->qp_state == IBV_QPS_ERR) {
		srn_qp_fail(qp, NULL, SRN_NO_WQE, IBV_WC_SUCCESS);
	} else if (attr->qp_state == IBV_QPS_RESET) {
		reset(qp);
		base->state = IBV_QPS_RESET;
	} else {
		base->state = attr->qp_state;
	}
out:
	pthread_mutex_unlock(&qp->lock);
	return ret;
}

SRN_EXPORT int ibv_query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask,
			    struct ibv_qp_init_attr *init)
{
	struct srn_qp *qp = srn_qp(base);

	(void)mask;
	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	pthread_mutex_lock(&qp->lock);
	attr->qp_state = attr->cur_qp_state = base->state;
	attr->path_mtu = IBV_MTU_4096;
	attr->cap = qp->cap;
	attr->qp_access_flags = qp->access;
	attr->max_rd_atomic = (uint8_t)qp->ord;
	attr->max_dest_rd_atomic = (uint8_t)qp->ird;
	attr->port_num = 1;
	pthread_mutex_unlock(&qp->lock);
	init->qp_context = base->qp_context;
	init->send_cq = base->send_cq;
	init->recv_cq = base->recv_cq;
	init->srq = base->srq;
	init->cap = qp->cap;
	init->qp_type = base->qp_type;
	init->sq_sig_all = qp->sig_all;
	return 0;
}

SRN_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 1; /* bytes are placed as the stream brings them */
}
