// SPDX-License-Identifier: BSD-3-Clause
/* Queue pairs, shared receive queues and completion queues made through an identifier. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/rdma_verbs.h>

#include "softrnic.h"

static struct ibv_cq *create_cq(struct rdma_cm_id *id, uint32_t size,
				struct ibv_comp_channel **channel)
{
	struct ibv_cq *cq;

	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return NULL;
	cq = ibv_create_cq(id->verbs, size ? (int)size : 1, id, *channel, 0);
	if (cq)
		return cq;
	ibv_destroy_comp_channel(*channel);
	*channel = NULL;
	return NULL;
}

static void destroy_cq(struct ibv_cq **cq, struct ibv_comp_channel **channel)
{
	if (*cq)
		ibv_destroy_cq(*cq);
	if (*channel)
		ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

static void destroy_cqs(struct srn_id *id)
{
	if (id->own_recv_cq)
		destroy_cq(&id->id.recv_cq, &id->id.recv_cq_channel);
	if (id->own_send_cq)
		destroy_cq(&id->id.send_cq, &id->id.send_cq_channel);
	id->own_recv_cq = id->own_send_cq = false;
}

/* Makes the CQs the program did not bring. */
static int create_cqs(struct srn_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *rid = &id->id;

	if (!attr->recv_cq && rid->recv_cq)
		attr->recv_cq = rid->recv_cq;
	if (!attr->send_cq) {
		rid->send_cq = create_cq(rid, attr->cap.max_send_wr, &rid->send_cq_channel);
		id->own_send_cq = rid->send_cq;
		if (!rid->send_cq)
			return errno;
		attr->send_cq = rid->send_cq;
	}
	if (!attr->recv_cq) {
		rid->recv_cq = create_cq(rid, attr->cap.max_recv_wr, &rid->recv_cq_channel);
		id->own_recv_cq = rid->recv_cq;
		if (!rid->recv_cq) {
			destroy_cqs(id);
			return errno;
		}
		attr->recv_cq = rid->recv_cq;
	}
	return 0;
}

SRN_EXPORT int rdma_create_qp_ex(struct rdma_cm_id *rid, struct ibv_qp_init_attr_ex *attr)
{
	struct srn_id *id = srn_id(rid);
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT};
	struct ibv_qp *qp;
	int err;

	if (rid->qp || !rid->verbs)
		return srn_seterr(EINVAL);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = rid->pd;
	}
	if (!attr->pd || attr->pd->context != rid->verbs)
		return srn_seterr(EINVAL);
	if (rid->srq && attr->srq && rid->srq != attr->srq)
		return srn_seterr(EINVAL);
	if (!attr->srq)
		attr->srq = rid->srq;
	err = create_cqs(id, attr);
	if (err)
		return srn_seterr(err);
	qp = srn_create_qp_ex(rid->verbs, attr);
	if (!qp) {
		err = errno;
		destroy_cqs(id);
		return srn_seterr(err);
	}
	ibv_modify_qp(qp, &init, IBV_QP_STATE);
	pthread_mutex_lock(&id->lock);
	rid->pd = attr->pd;
	rid->qp = qp;
	pthread_mutex_unlock(&id->lock);
	return 0;
}

SRN_EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
			      struct ibv_qp_init_attr *attr)
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
		.pd = pd ? pd : id->pd,
	};
	int ret = rdma_create_qp_ex(id, &ex);

	if (!ret)
		attr->cap = ex.cap;
	return ret;
}

SRN_EXPORT void rdma_destroy_qp(struct rdma_cm_id *rid)
{
	struct srn_id *id = srn_id(rid);
	struct ibv_qp *qp;

	pthread_mutex_lock(&id->lock);
	qp = rid->qp;
	rid->qp = NULL;
	pthread_mutex_unlock(&id->lock);
	if (qp)
		ibv_destroy_qp(qp);
	destroy_cqs(id);
}

SRN_EXPORT int rdma_create_srq_ex(struct rdma_cm_id *rid, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq;

	if (rid->srq || !rid->verbs)
		return srn_seterr(EINVAL);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = rid->pd;
	}
	srq = srn_create_srq_ex(rid->verbs, attr);
	if (!srq)
		return -1;
	rid->pd = attr->pd;
	rid->srq = srq;
	return 0;
}

SRN_EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
			       struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};
	int ret = rdma_create_srq_ex(id, &ex);

	if (!ret)
		attr->attr = ex.attr;
	return ret;
}

SRN_EXPORT void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id->srq)
		ibv_destroy_srq(id->srq);
	id->srq = NULL;
}

SRN_EXPORT int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd,
			      struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *id;
	int err;

	if (rdma_create_id(NULL, &id, NULL, (enum rdma_port_space)res->ai_port_space))
		return -1;
	if (attr)
		attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	if (res->ai_flags & RAI_PASSIVE) {
		if (rdma_bind_addr(id, res->ai_src_addr))
			goto err_id;
		if (pd)
			id->pd = pd;
		if (attr) {
			srn_id(id)->qp_attr = malloc(sizeof(*attr));
			if (!srn_id(id)->qp_attr) {
				errno = ENOMEM;
				goto err_id;
			}
			*srn_id(id)->qp_attr = *attr;
		}
		goto out;
	}
	if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, 2000) ||
	    rdma_resolve_route(id, 2000))
		goto err_id;
	if (attr && rdma_create_qp(id, pd, attr))
		goto err_id;
out:
	*out = id;
	return 0;

err_id:
	err = errno;
	rdma_destroy_id(id);
	return srn_seterr(err);
}

SRN_EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

SRN_EXPORT int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	enum ibv_qp_state state = attr->qp_state;

	if (!id->verbs)
		return srn_seterr(EINVAL);
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = state;
	switch (state) {
	case IBV_QPS_INIT:
		attr->qp_access_flags =
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
		*mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
		return 0;
	case IBV_QPS_RTR:
	case IBV_QPS_RTS:
		*mask = 0; /* the connection itself does it */
		return 0;
	default:
		return srn_seterr(EINVAL);
	}
}
