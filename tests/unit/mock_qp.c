/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP, and the extended way to post to it (ibv_wr_*). */

#include <errno.h>
#include <string.h>

#include "mock.h"
#include "librpma_config.h"

struct fake_qp {
	struct ibv_qp_ex ex;            /* first; its qp_base is what the library holds */
	struct mock_wr wr[MOCK_MAX_WR]; /* of the batch that was started */
	unsigned count;
	bool started;
	bool extended;
};

static struct mock_wr *next_wr(struct ibv_qp_ex *ex, int opcode)
{
	struct fake_qp *qp = (struct fake_qp *)ex;
	struct mock_wr *wr;

	if (!qp->started)
		mock_wrong(
			"a work request is built outside of ibv_wr_start() and ibv_wr_complete()");
	if (qp->count == sizeof(qp->wr) / sizeof(qp->wr[0]))
		qp->count--;
	wr = &qp->wr[qp->count++];
	*wr = (struct mock_wr){.qp = &ex->qp_base,
			       .wr_id = ex->wr_id,
			       .opcode = opcode,
			       .send_flags = ex->wr_flags,
			       .native = true};
	return wr;
}

static void remote(struct mock_wr *wr, uint32_t rkey, uint64_t remote_addr)
{
	wr->rkey = rkey;
	wr->remote_addr = remote_addr;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct fake_qp *qp = (struct fake_qp *)ex;

	if (qp->started)
		mock_wrong("ibv_wr_start() twice");
	qp->started = true;
	qp->count = 0;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct fake_qp *qp = (struct fake_qp *)ex;
	int error = mock_enter(MOCK_ibv_wr_complete);

	if (!qp->started)
		mock_wrong("ibv_wr_complete() without ibv_wr_start()");
	qp->started = false;
	if (error)
		return error;
	for (unsigned i = 0; i < qp->count; i++)
		mock_record_wr(&qp->wr[i]);
	mock_seen()->doorbells++;
	return 0;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	((struct fake_qp *)ex)->started = false;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	remote(next_wr(ex, IBV_WR_RDMA_READ), rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	remote(next_wr(ex, IBV_WR_RDMA_WRITE), rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	struct mock_wr *wr = next_wr(ex, IBV_WR_RDMA_WRITE_WITH_IMM);

	remote(wr, rkey, remote_addr);
	wr->imm_data = imm_data;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	next_wr(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	next_wr(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm_data;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct fake_qp *qp = (struct fake_qp *)ex;
	struct mock_wr *wr = &qp->wr[qp->count ? qp->count - 1 : 0];

	wr->num_sge = 1;
	wr->sge = (struct ibv_sge){.addr = addr, .length = length, .lkey = lkey};
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *sg_list)
{
	if (num_sge > 1)
		mock_wrong("%zu SGEs, but the QP was made for 1", num_sge);
	if (num_sge)
		wr_set_sge(ex, sg_list->lkey, sg_list->addr, sg_list->length);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct fake_qp *qp = (struct fake_qp *)ex;
	struct mock_wr *wr = &qp->wr[qp->count ? qp->count - 1 : 0];

	wr->num_sge = 1;
	wr->send_flags |= IBV_SEND_INLINE;
	wr->sge = (struct ibv_sge){.addr = (uintptr_t)addr, .length = length};
	if (length <= sizeof(wr->inlined))
		memcpy(wr->inlined, addr, length);
}

#ifdef NATIVE_ATOMIC_WRITE_SUPPORTED
static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *atomic_wr)
{
	struct mock_wr *wr = next_wr(ex, IBV_WR_ATOMIC_WRITE);

	remote(wr, rkey, remote_addr);
	memcpy(wr->inlined, atomic_wr, sizeof(uint64_t));
}
#endif

#ifdef NATIVE_FLUSH_SUPPORTED
static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len,
		     uint8_t type, uint8_t level)
{
	struct mock_wr *wr = next_wr(ex, IBV_WR_FLUSH);

	remote(wr, rkey, remote_addr);
	wr->flush_len = len;
	wr->flush_type = type;
	wr->flush_level = level;
}
#endif

struct ibv_qp *mock_qp_new(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	struct fake_qp *qp = mock_alloc(sizeof(*qp));
	bool extended = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	qp->ex.qp_base = (struct ibv_qp){.context = context,
					 .qp_context = attr->qp_context,
					 .pd = attr->pd,
					 .send_cq = attr->send_cq,
					 .recv_cq = attr->recv_cq,
					 .srq = attr->srq,
					 .qp_num = MOCK_QP_NUM,
					 .qp_type = attr->qp_type};
	if (!extended)
		return &qp->ex.qp_base;
	qp->extended = true;
	qp->ex.wr_start = wr_start;
	qp->ex.wr_complete = wr_complete;
	qp->ex.wr_abort = wr_abort;
	qp->ex.wr_set_sge = wr_set_sge;
	qp->ex.wr_set_sge_list = wr_set_sge_list;
	qp->ex.wr_set_inline_data = wr_set_inline_data;
	/* as a provider does: what was not asked for is not there */
	if (attr->send_ops_flags & IBV_QP_EX_WITH_RDMA_READ)
		qp->ex.wr_rdma_read = wr_rdma_read;
	if (attr->send_ops_flags & IBV_QP_EX_WITH_RDMA_WRITE)
		qp->ex.wr_rdma_write = wr_rdma_write;
	if (attr->send_ops_flags & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		qp->ex.wr_rdma_write_imm = wr_rdma_write_imm;
	if (attr->send_ops_flags & IBV_QP_EX_WITH_SEND)
		qp->ex.wr_send = wr_send;
	if (attr->send_ops_flags & IBV_QP_EX_WITH_SEND_WITH_IMM)
		qp->ex.wr_send_imm = wr_send_imm;
#ifdef NATIVE_ATOMIC_WRITE_SUPPORTED
	if (attr->send_ops_flags & IBV_QP_EX_WITH_ATOMIC_WRITE)
		qp->ex.wr_atomic_write = wr_atomic_write;
#endif
#ifdef NATIVE_FLUSH_SUPPORTED
	if (attr->send_ops_flags & IBV_QP_EX_WITH_FLUSH)
		qp->ex.wr_flush = wr_flush;
#endif
	return &qp->ex.qp_base;
}

void mock_qp_free(struct ibv_qp *qp)
{
	if (((struct fake_qp *)qp)->started)
		mock_wrong("a QP is destroyed between ibv_wr_start() and ibv_wr_complete()");
	mock_free(qp);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	if (mock_fails(MOCK_ibv_qp_to_qp_ex))
		return NULL;
	return ((struct fake_qp *)qp)->extended ? &((struct fake_qp *)qp)->ex : NULL;
}
