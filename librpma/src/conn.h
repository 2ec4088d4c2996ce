/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPMA_CONN_H
#define RPMA_CONN_H

#include <rdma/rdma_cma.h>

#include "common.h"
#include "flush.h"
#include "mr.h"
#include "queues.h"

struct rpma_conn {
	/* for operations */
	struct ibv_qp *qp;
	struct ibv_qp_ex *qp_ex; /* NULL: nothing native on this QP */
	uint32_t flush_usage;    /* RPMA_MR_USAGE_FLUSH_TYPE_*: what can be flushed */
	bool native_flush;
	bool native_atomic_write;
	struct rpma_flush_buffer flush_buffer;

	const struct rpma_peer *peer;
	struct rdma_cm_id *id;
	struct rdma_event_channel *events;
	struct rpma_queues queues;
	struct rpma_conn_private_data pdata;
	bool direct_write_to_pmem; /* by the other side */
};

/*
 * 0, RPMA_E_NOMEM or RPMA_E_PROVIDER.  On success the connection owns id, *queues and *pdata; on
 * failure they are the caller's still.
 */
int rpma_conn_new(const struct rpma_peer *peer, struct rdma_cm_id *id,
		  const struct rpma_queues *queues, const struct rpma_conn_private_data *pdata,
		  struct rpma_conn **conn_ptr);

/* is the range one that can be flushed so?  0, RPMA_E_INVAL or RPMA_E_NOSUPP */
RPMA_INLINE int rpma_conn_check_flush(const struct rpma_conn *conn, const struct rpma_mr_remote *mr,
				      size_t offset, size_t len, enum rpma_flush_type type)
{
	_Static_assert(RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT >> RPMA_FLUSH_TYPE_VISIBILITY ==
			       RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
		       "a type is a shift");
	uint32_t usage;

	if (unlikely((unsigned int)type > RPMA_FLUSH_TYPE_VISIBILITY))
		return RPMA_E_INVAL;
	usage = RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT >> type;
	/* Another thread may be applying the configuration of the other side. */
	if (unlikely(!(__atomic_load_n(&conn->flush_usage, __ATOMIC_RELAXED) & mr->usage & usage)))
		return rpma_flush_refused(conn, type);
	if (unlikely(!rpma_range_fits(mr->size, offset, len)))
		return RPMA_E_INVAL;

	return 0;
}

/* an RDMA read of the flushed range's first bytes, or of the region's last where it ends before */
RPMA_INLINE void rpma_conn_set_flush_read(const struct rpma_conn *conn, struct ibv_send_wr *wr,
					  struct ibv_sge *sge, const struct rpma_mr_remote *mr,
					  size_t offset)
{
	uint64_t length = mr->size < RPMA_FLUSH_READ_SIZE ? mr->size : RPMA_FLUSH_READ_SIZE;
	uint64_t last = mr->size - length;

	sge->addr = conn->flush_buffer.addr;
	sge->length = (uint32_t)length;
	sge->lkey = conn->flush_buffer.lkey;
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->wr.rdma.remote_addr = mr->addr + (offset < last ? offset : last);
	wr->wr.rdma.rkey = mr->rkey;
}

#endif /* RPMA_CONN_H */
