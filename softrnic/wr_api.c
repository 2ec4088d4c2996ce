// SPDX-License-Identifier: BSD-3-Clause
/* Posting work requests with ibv_wr_*(3): one request at a time between start and complete. */
#include <errno.h>
#include <string.h>

#include "softrnic.h"

_Thread_local unsigned int srn_building;

static struct srn_qp *of(struct ibv_qp_ex *ex)
{
	return (struct srn_qp *)(void *)ex;
}

/* Between start and complete the queue pair stays locked, as the page wr_post(3) allows. */
static void wr_start(struct ibv_qp_ex *ex)
{
	struct srn_qp *qp = of(ex);

	pthread_mutex_lock(&qp->lock);
	srn_building++;
	qp->wr_built = 0;
	qp->wr_error = 0;
}

static struct srn_wqe *current(struct srn_qp *qp)
{
	return qp->wr_built ? srn_wqe(qp, qp->sq_tail + qp->wr_built - 1) : NULL;
}

static void check_last(struct srn_qp *qp)
{
	struct srn_wqe *wqe = current(qp);

	if (wqe && !qp->wr_error)
		qp->wr_error = srn_wqe_check(qp, wqe);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct srn_qp *qp = of(ex);
	enum ibv_qp_state state = ex->qp_base.state;
	int ret;

	check_last(qp);
	ret = qp->wr_error;
	if (!ret && state != IBV_QPS_RTS && state != IBV_QPS_ERR)
		ret = EINVAL;
	if (!ret) {
		qp->sq_tail += qp->wr_built;
		if (state == IBV_QPS_ERR)
			srn_qp_flush(qp, SRN_NO_WQE, IBV_WC_SUCCESS);
		else
			srn_stream_posted(qp);
	}
	qp->wr_built = 0;
	srn_building--;
	pthread_mutex_unlock(&qp->lock);
	srn_cq_posted(srn_cq(ex->qp_base.send_cq));
	return ret;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct srn_qp *qp = of(ex);

	qp->wr_built = 0;
	srn_building--;
	pthread_mutex_unlock(&qp->lock);
}

/* Begins a request; NULL if an earlier one failed or the queue is full. */
static struct srn_wqe *begin(struct ibv_qp_ex *ex, uint8_t opcode)
{
	struct srn_qp *qp = of(ex);
	struct srn_wqe *wqe;
	struct ibv_sge *sge;

	check_last(qp);
	if (qp->wr_error)
		return NULL;
	if (srn_sq_full(qp, qp->wr_built)) {
		qp->wr_error = ENOMEM;
		return NULL;
	}
	wqe = srn_wqe(qp, qp->sq_tail + qp->wr_built++);
	sge = wqe->sge;
	memset(wqe, 0, sizeof(*wqe));
	wqe->sge = sge;
	wqe->opcode = opcode;
	wqe->wr_id = ex->wr_id;
	wqe->flags = (uint8_t)(ex->wr_flags & ~(unsigned int)IBV_SEND_INLINE);
	return wqe;
}

static struct srn_wqe *begin_remote(struct ibv_qp_ex *ex, uint8_t opcode, uint32_t rkey,
				    uint64_t remote_addr)
{
	struct srn_wqe *wqe = begin(ex, opcode);

	if (wqe) {
		wqe->rkey = rkey;
		wqe->remote_addr = remote_addr;
	}
	return wqe;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct srn_wqe *wqe = begin(ex, IBV_WR_SEND_WITH_IMM);

	if (wqe)
		wqe->imm = imm;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct srn_wqe *wqe = begin(ex, IBV_WR_SEND_WITH_INV);

	if (wqe)
		wqe->imm = rkey;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ex, IBV_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
	struct srn_wqe *wqe = begin_remote(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);

	if (wqe)
		wqe->imm = imm;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	struct srn_wqe *wqe = begin_remote(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr);

	if (wqe) {
		wqe->compare_add = compare;
		wqe->swap = swap;
	}
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	struct srn_wqe *wqe = begin_remote(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr);

	if (wqe)
		wqe->compare_add = add;
}

static void set_inline(struct srn_qp *qp, struct srn_wqe *wqe, size_t num,
		       const struct ibv_data_buf *bufs)
{
	size_t i, length = 0;
	uint8_t *to;

	for (i = 0; i < num; i++) {
		if (bufs[i].length > qp->cap.max_inline_data - length) {
			qp->wr_error = EINVAL;
			return;
		}
		length += bufs[i].length;
	}
	to = wqe->inline_data =
		qp->sq_inline + (size_t)(wqe - qp->sq) * (qp->cap.max_inline_data + 1u);
	for (i = 0; i < num; i++) {
		memcpy(to, bufs[i].addr, bufs[i].length);
		to += bufs[i].length;
	}
	wqe->flags |= IBV_SEND_INLINE;
	wqe->length = (uint32_t)length;
	wqe->num_sge = 0;
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num,
				    const struct ibv_data_buf *bufs)
{
	struct srn_wqe *wqe = current(of(ex));

	if (wqe && !of(ex)->wr_error)
		set_inline(of(ex), wqe, num, bufs);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = {addr, length};

	wr_set_inline_data_list(ex, 1, &buf);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num, const struct ibv_sge *list)
{
	struct srn_qp *qp = of(ex);
	struct srn_wqe *wqe = current(qp);
	uint64_t length = 0;
	size_t i;

	if (!wqe || qp->wr_error)
		return;
	if (num > qp->cap.max_send_sge) {
		qp->wr_error = EINVAL;
		return;
	}
	for (i = 0; i < num; i++)
		length += list[i].length;
	if (length > SRN_MAX_MSG) {
		qp->wr_error = EINVAL;
		return;
	}
	if (num)
		memcpy(wqe->sge, list, num * sizeof(*list));
	wqe->num_sge = (uint32_t)num;
	wqe->length = (uint32_t)length;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	wr_set_sge_list(ex, 1, &sge);
}

/* The eight bytes are the request's own: the caller may reuse them at once. */
static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *atomic_wr)
{
	struct srn_qp *qp = of(ex);
	struct srn_wqe *wqe = begin_remote(ex, IBV_WR_ATOMIC_WRITE, rkey, remote_addr);

	if (!wqe)
		return;
	memcpy(&wqe->swap, atomic_wr, sizeof(wqe->swap));
	wqe->length = sizeof(wqe->swap);
	(void)qp;
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len,
		     uint8_t type, uint8_t level)
{
	struct srn_wqe *wqe = begin_remote(ex, SRN_WR_FLUSH, rkey, remote_addr);

	if (!wqe)
		return;
	wqe->compare_add = len;
	wqe->flush_type = type;
	wqe->flush_level = level;
	if (!type || (type & ~(SRN_FLUSH_GLOBAL | SRN_FLUSH_PERSISTENT)) || level > SRN_FLUSH_MR)
		of(ex)->wr_error = EINVAL;
}

/* Only what the program asked for may be posted; the rest stays NULL as on any provider. */
void srn_wr_api_init(struct srn_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->v.ex;
	uint64_t ops = qp->send_ops;

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	if (ops & IBV_QP_EX_WITH_SEND)
		ex->wr_send = wr_send;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_IMM)
		ex->wr_send_imm = wr_send_imm;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_INV)
		ex->wr_send_inv = wr_send_inv;
	if (ops & IBV_QP_EX_WITH_RDMA_READ)
		ex->wr_rdma_read = wr_rdma_read;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE)
		ex->wr_rdma_write = wr_rdma_write;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		ex->wr_rdma_write_imm = wr_rdma_write_imm;
	if (ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
		ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	if (ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
		ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	if (ops & IBV_QP_EX_WITH_ATOMIC_WRITE)
		ex->wr_atomic_write = wr_atomic_write;
	if (ops & SRN_QP_EX_WITH_FLUSH)
#if SRN_HAVE_FLUSH
		ex->wr_flush = wr_flush;
#else
		qp->v.wr_flush = wr_flush;
#endif
}
