// SPDX-License-Identifier: BSD-3-Clause
/* Posting work requests with ibv_post_send(3) and ibv_post_recv(3). */
#include <errno.h>
#include <string.h>

#include "softrnic.h"

static bool needs_extension(uint8_t opcode)
{
	return opcode == SRN_WR_FLUSH || opcode == IBV_WR_ATOMIC_WRITE ||
	       opcode == IBV_WR_SEND_WITH_IMM;
}

static bool waits_for_response(uint8_t opcode)
{
	return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == SRN_WR_FLUSH ||
	       opcode == IBV_WR_ATOMIC_WRITE;
}

int srn_wqe_check(struct srn_qp *qp, const struct srn_wqe *wqe)
{
	bool error = qp->v.ex.qp_base.state == IBV_QPS_ERR;

	switch (wqe->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_WRITE:
		if (wqe->length != sizeof(uint64_t))
			return EINVAL;
		break;
	case IBV_WR_RDMA_READ:
	case SRN_WR_FLUSH:
		if (wqe->flags & IBV_SEND_INLINE)
			return EINVAL;
		break;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		break;
	default:
		return EOPNOTSUPP;
	}
	if ((wqe->flags & IBV_SEND_INLINE) && (wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
					       wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD))
		return EINVAL;
	if (wqe->length > SRN_MAX_MSG)
		return EINVAL;
	if (error)
		return 0; /* it will be flushed */
	if (needs_extension(wqe->opcode) && !qp->extended)
		return EOPNOTSUPP;
	if (waits_for_response(wqe->opcode) && !qp->ord)
		return EINVAL;
	return 0;
}

static int fill(struct srn_qp *qp, struct srn_wqe *wqe, const struct ibv_send_wr *wr)
{
	uint64_t length = 0;
	uint8_t *to;
	int i;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
		return EINVAL;
	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if (length > SRN_MAX_MSG)
		return EINVAL;
	wqe->wr_id = wr->wr_id;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->flags = (uint8_t)wr->send_flags;
	wqe->length = (uint32_t)length;
	wqe->imm = wr->imm_data;
	wqe->num_sge = (uint32_t)wr->num_sge;
	wqe->inline_data = NULL;
	wqe->framed = wqe->placed = 0;
	wqe->framed_all = wqe->done = false;
	wqe->remote_addr = wr->wr.rdma.remote_addr;
	wqe->rkey = wr->wr.rdma.rkey;
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
	}
	if (!(wqe->flags & IBV_SEND_INLINE)) {
		if (wr->num_sge)
			memcpy(wqe->sge, wr->sg_list, wqe->num_sge * sizeof(*wqe->sge));
		return srn_wqe_check(qp, wqe);
	}
	if (length > qp->cap.max_inline_data)
		return EINVAL;
	to = wqe->inline_data =
		qp->sq_inline + (size_t)(wqe - qp->sq) * (qp->cap.max_inline_data + 1u);
	for (i = 0; i < wr->num_sge; i++) {
		memcpy(to, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
	return srn_wqe_check(qp, wqe);
}

/* The ring may have more places than the program asked for. */
bool srn_sq_full(struct srn_qp *qp, uint32_t more)
{
	return qp->sq_tail + more - qp->sq_head + atomic_load(&qp->unpolled) >= qp->cap.max_send_wr;
}

int srn_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct srn_qp *qp = srn_qp(base);
	int ret = 0;

	pthread_mutex_lock(&qp->lock);
	if (base->state != IBV_QPS_RTS && base->state != IBV_QPS_ERR)
		ret = EINVAL;
	while (wr && !ret) {
		if (srn_sq_full(qp, 0))
			ret = ENOMEM;
		else
			ret = fill(qp, srn_wqe(qp, qp->sq_tail), wr);
		if (ret)
			break;
		qp->sq_tail++;
		wr = wr->next;
	}
	if (base->state == IBV_QPS_ERR)
		srn_qp_flush(qp, SRN_NO_WQE, IBV_WC_SUCCESS);
	else if (base->state == IBV_QPS_RTS)
		srn_stream_posted(qp);
	pthread_mutex_unlock(&qp->lock);
	srn_cq_posted(srn_cq(base->send_cq));
	if (ret)
		*bad_wr = wr;
	return ret;
}

int srn_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct srn_qp *qp = srn_qp(base);
	int ret = 0;

	pthread_mutex_lock(&qp->lock);
	if (base->state == IBV_QPS_RESET || base->srq)
		ret = EINVAL;
	for (; wr && !ret; wr = ret ? wr : wr->next)
		ret = srn_rq_post(&qp->rq, wr);
	if (base->state == IBV_QPS_ERR)
		srn_qp_flush(qp, SRN_NO_WQE, IBV_WC_SUCCESS);
	else if (qp->rx.stalled)
		srn_rx_resume(qp);
	pthread_mutex_unlock(&qp->lock);
	if (ret)
		*bad_wr = wr;
	return ret;
}
