// SPDX-License-Identifier: BSD-3-Clause
/* Operations that post at once.  Every instruction here is paid for by each I/O of a program. */
#include "conn.h"
#include "log.h"
#include "verbs_native.h"
#include "wr.h"

int rpma_post_failed(const char *call, int err)
{
	RPMA_LOG_ERROR("%s failed: %s", call, rpma_log_strerror(err));

	return RPMA_E_PROVIDER;
}

RPMA_INLINE int post(const struct rpma_conn *conn, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->next = NULL;

	int ret = ibv_post_send(conn->qp, wr, &bad);

	return likely(ret == 0) ? 0 : rpma_post_failed("ibv_post_send()", ret);
}

RPMA_INLINE int post_transfer(const struct rpma_conn *conn, struct ibv_send_wr *wr,
			      const struct rpma_mr_local *local, size_t local_offset,
			      const struct rpma_mr_remote *remote, size_t remote_offset, size_t len,
			      enum ibv_wr_opcode opcode, int flags, const void *op_context)
{
	struct ibv_sge sge;

	if (unlikely(conn == NULL || flags == 0))
		return RPMA_E_INVAL;
	if (unlikely(!rpma_wr_set_transfer(wr, &sge, local, local_offset, remote, remote_offset,
					   len)))
		return RPMA_E_INVAL;

	rpma_wr_set_common(wr, opcode, flags, op_context);

	return post(conn, wr);
}

int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t dst_offset,
	      const struct rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
	      const void *op_context)
{
	struct ibv_send_wr wr;

	return post_transfer(conn, &wr, dst, dst_offset, src, src_offset, len, IBV_WR_RDMA_READ,
			     flags, op_context);
}

int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
	       const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
	       const void *op_context)
{
	struct ibv_send_wr wr;

	return post_transfer(conn, &wr, src, src_offset, dst, dst_offset, len, IBV_WR_RDMA_WRITE,
			     flags, op_context);
}

int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
			const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
			uint32_t imm, const void *op_context)
{
	struct ibv_send_wr wr;

	wr.imm_data = htonl(imm);

	return post_transfer(conn, &wr, src, src_offset, dst, dst_offset, len,
			     IBV_WR_RDMA_WRITE_WITH_IMM, flags, op_context);
}

RPMA_INLINE int post_send(const struct rpma_conn *conn, struct ibv_send_wr *wr,
			  const struct rpma_mr_local *src, size_t offset, size_t len,
			  enum ibv_wr_opcode opcode, int flags, const void *op_context)
{
	struct ibv_sge sge;

	if (unlikely(conn == NULL || flags == 0))
		return RPMA_E_INVAL;
	if (unlikely(!rpma_wr_set_local(wr, &sge, src, offset, len)))
		return RPMA_E_INVAL;

	rpma_wr_set_common(wr, opcode, flags, op_context);
	rpma_wr_set_inline(wr, conn->queues.cap.max_inline_data);

	return post(conn, wr);
}

int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset, size_t len,
	      int flags, const void *op_context)
{
	struct ibv_send_wr wr;

	return post_send(conn, &wr, src, offset, len, IBV_WR_SEND, flags, op_context);
}

int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
		       size_t len, int flags, uint32_t imm, const void *op_context)
{
	struct ibv_send_wr wr;

	wr.imm_data = htonl(imm);

	return post_send(conn, &wr, src, offset, len, IBV_WR_SEND_WITH_IMM, flags, op_context);
}

int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset, size_t len,
	      const void *op_context)
{
	struct ibv_recv_wr wr, *bad;
	struct ibv_sge sge;

	if (unlikely(conn == NULL))
		return RPMA_E_INVAL;
	if (unlikely(!rpma_recv_wr_set(&wr, &sge, dst, offset, len, op_context)))
		return RPMA_E_INVAL;

	int ret = ibv_post_recv(conn->qp, &wr, &bad);

	return likely(ret == 0) ? 0 : rpma_post_failed("ibv_post_recv()", ret);
}

RPMA_INLINE int complete_native(struct ibv_qp_ex *qp)
{
	int ret = ibv_wr_complete(qp);

	return likely(ret == 0) ? 0 : rpma_post_failed("ibv_wr_complete()", ret);
}

int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
		      const char src[8], int flags, const void *op_context)
{
	if (unlikely(conn == NULL || dst == NULL || src == NULL || flags == 0))
		return RPMA_E_INVAL;
	if (unlikely(!rpma_wr_atomic_fits(dst, dst_offset)))
		return RPMA_E_INVAL;

	if (conn->native_atomic_write) {
		ibv_wr_start(conn->qp_ex);
		conn->qp_ex->wr_id = (uintptr_t)op_context;
		/* a read-based flush posted before it must be through, as with the inline write */
		conn->qp_ex->wr_flags = (flags & IBV_SEND_SIGNALED) | IBV_SEND_FENCE;
		rpma_wr_atomic_write(conn->qp_ex, dst->rkey, dst->addr + dst_offset, src);
		return complete_native(conn->qp_ex);
	}

	struct ibv_send_wr wr;
	struct ibv_sge sge;

	rpma_wr_set_atomic_inline(&wr, &sge, dst, dst_offset, src, flags, op_context);

	return post(conn, &wr);
}

int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset, size_t len,
	       enum rpma_flush_type type, int flags, const void *op_context)
{
	if (unlikely(conn == NULL || dst == NULL || flags == 0))
		return RPMA_E_INVAL;

	int ret = rpma_conn_check_flush(conn, dst, dst_offset, len, type);

	if (unlikely(ret))
		return ret;

	if (conn->native_flush) {
		ibv_wr_start(conn->qp_ex);
		conn->qp_ex->wr_id = (uintptr_t)op_context;
		conn->qp_ex->wr_flags = flags & IBV_SEND_SIGNALED;
		rpma_wr_flush(conn->qp_ex, dst->rkey, dst->addr + dst_offset, len, type);
		return complete_native(conn->qp_ex);
	}

	struct ibv_send_wr wr;
	struct ibv_sge sge;

	rpma_conn_set_flush_read(conn, &wr, &sge, dst, dst_offset);
	rpma_wr_set_common(&wr, IBV_WR_RDMA_READ, flags, op_context);

	return post(conn, &wr);
}
