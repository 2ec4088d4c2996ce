// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "conn.h"
#include "cq.h"
#include "device.h"
#include "log.h"
#include "peer.h"
#include "peer_cfg.h"
#include "private_data.h"

static void update_flush_usage(struct rpma_conn *conn)
{
	bool persistent = conn->native_flush || conn->direct_write_to_pmem;

	uint32_t usage = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
			 (persistent ? RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT : 0);

	__atomic_store_n(&conn->flush_usage, usage, __ATOMIC_RELAXED);
}

int rpma_conn_new(const struct rpma_peer *peer, struct rdma_cm_id *id,
		  const struct rpma_queues *queues, const struct rpma_conn_private_data *pdata,
		  struct rpma_conn **conn_ptr)
{
	int ret = RPMA_E_PROVIDER;
	struct rpma_conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL)
		return RPMA_E_NOMEM;

	/* NULL where the QP was made without native operations */
	conn->qp_ex = ibv_qp_to_qp_ex(id->qp);
	conn->native_flush = peer->native_flush && conn->qp_ex;
	conn->native_atomic_write = peer->native_atomic_write && conn->qp_ex;
	update_flush_usage(conn);

	if (!conn->native_flush) {
		ret = rpma_flush_buffer_new(peer, &conn->flush_buffer);
		if (ret)
			goto err_free;
	}

	conn->events = rdma_create_event_channel();
	if (conn->events == NULL) {
		RPMA_LOG_CALL("rdma_create_event_channel()", errno);
		ret = RPMA_E_PROVIDER;
		goto err_delete_buffer;
	}

	if (rdma_migrate_id(id, conn->events)) {
		RPMA_LOG_CALL("rdma_migrate_id()", errno);
		ret = RPMA_E_PROVIDER;
		goto err_destroy_channel;
	}

	conn->qp = id->qp;
	conn->peer = peer;
	conn->id = id;
	conn->queues = *queues;
	conn->pdata = *pdata;
	*conn_ptr = conn;

	return 0;

err_destroy_channel:
	rdma_destroy_event_channel(conn->events);
err_delete_buffer:
	(void)rpma_flush_buffer_delete(&conn->flush_buffer);
err_free:
	free(conn);
	return ret;
}

int rpma_conn_delete(struct rpma_conn **conn_ptr)
{
	if (conn_ptr == NULL)
		return RPMA_E_INVAL;

	struct rpma_conn *conn = *conn_ptr;

	if (conn == NULL)
		return 0;

	/* The QP goes before the buffer, which a flush may still be reading into. */
	int ret = rpma_queues_delete(conn->id, &conn->queues);

	RPMA_KEEP_FIRST(ret, rpma_flush_buffer_delete(&conn->flush_buffer));
	if (rdma_destroy_id(conn->id)) {
		RPMA_LOG_CALL("rdma_destroy_id()", errno);
		RPMA_KEEP_FIRST(ret, RPMA_E_PROVIDER);
	}
	rdma_destroy_event_channel(conn->events);
	rpma_private_data_delete(&conn->pdata);
	free(conn);
	*conn_ptr = NULL;

	return ret;
}

static enum rpma_conn_event translate_event(enum rdma_cm_event_type event)
{
	switch (event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		return RPMA_CONN_ESTABLISHED;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return RPMA_CONN_CLOSED;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return RPMA_CONN_LOST;
	case RDMA_CM_EVENT_REJECTED:
		return RPMA_CONN_REJECTED;
	case RDMA_CM_EVENT_UNREACHABLE:
		return RPMA_CONN_UNREACHABLE;
	default:
		return RPMA_CONN_UNDEFINED;
	}
}

int rpma_conn_next_event(struct rpma_conn *conn, enum rpma_conn_event *event)
{
	struct rdma_cm_event *cm_event;
	int ret = 0;

	if (conn == NULL || event == NULL)
		return RPMA_E_INVAL;

	if (rdma_get_cm_event(conn->events, &cm_event)) {
		if (errno == ENODATA || errno == EAGAIN)
			return RPMA_E_NO_EVENT;
		RPMA_LOG_CALL("rdma_get_cm_event()", errno);
		return RPMA_E_PROVIDER;
	}

	enum rdma_cm_event_type type = cm_event->event;
	int status = cm_event->status;
	bool came = false;

	/* The passive side has had its private data with the request. */
	if (type == RDMA_CM_EVENT_ESTABLISHED && conn->pdata.ptr == NULL) {
		ret = rpma_private_data_store(cm_event, &conn->pdata);
		came = true;
	}

	if (rdma_ack_cm_event(cm_event)) {
		RPMA_LOG_CALL("rdma_ack_cm_event()", errno);
		RPMA_KEEP_FIRST(ret, RPMA_E_PROVIDER);
	}
	if (ret) {
		if (came)
			rpma_private_data_delete(&conn->pdata);
		return ret;
	}

	enum rpma_conn_event translated = translate_event(type);

	if (translated == RPMA_CONN_UNDEFINED) {
		RPMA_LOG_ERROR("unexpected event %s (status %d)", rdma_event_str(type), status);
		*event = RPMA_CONN_UNDEFINED;
		return RPMA_E_UNKNOWN;
	}

	RPMA_LOG_NOTICE("%s (%s, status %d)", rpma_utils_conn_event_2str(translated),
			rdma_event_str(type), status);
	*event = translated;

	return 0;
}

int rpma_conn_disconnect(struct rpma_conn *conn)
{
	if (conn == NULL)
		return RPMA_E_INVAL;

	if (rdma_disconnect(conn->id)) {
		RPMA_LOG_CALL("rdma_disconnect()", errno);
		return RPMA_E_PROVIDER;
	}

	return 0;
}

int rpma_conn_wait(struct rpma_conn *conn, int flags, struct rpma_cq **cq, bool *is_rcq)
{
	struct ibv_cq *ready;

	(void)flags; /* RPMA_W_WAIT_FOR_COMPLETION is all there is */

	if (conn == NULL || cq == NULL)
		return RPMA_E_INVAL;
	if (conn->queues.channel == NULL)
		return RPMA_E_NOT_SHARED_CHNL;

	int ret = rpma_cq_take_event(conn->queues.channel, &ready);

	if (ret)
		return ret;

	struct rpma_cq *rcq = conn->queues.rcq;
	bool from_rcq = rcq && rcq->cq == ready;

	if (!from_rcq && conn->queues.cq->cq != ready) {
		RPMA_LOG_ERROR("ibv_get_cq_event() gave a CQ that is not of this connection");
		return RPMA_E_UNKNOWN;
	}

	*cq = from_rcq ? rcq : conn->queues.cq;
	if (is_rcq)
		*is_rcq = from_rcq;

	return 0;
}

int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn, const struct rpma_peer_cfg *pcfg)
{
	if (conn == NULL || pcfg == NULL)
		return RPMA_E_INVAL;

	conn->direct_write_to_pmem = pcfg->direct_write_to_pmem;
	update_flush_usage(conn);

	return 0;
}

int rpma_conn_set_flush_mode(struct rpma_conn *conn, enum rpma_flush_mode mode)
{
	if (conn == NULL)
		return RPMA_E_INVAL;
	if (mode != RPMA_FLUSH_MODE_AUTO && mode != RPMA_FLUSH_MODE_NATIVE &&
	    mode != RPMA_FLUSH_MODE_READ)
		return RPMA_E_INVAL;

	bool can_native = conn->peer->native_flush && conn->qp_ex;

	if (mode == RPMA_FLUSH_MODE_NATIVE && !can_native) {
		RPMA_LOG_ERROR("no native flush on this connection: the device %s or this build "
			       "has none",
			       ibv_get_device_name(conn->peer->pd->context->device));
		return RPMA_E_NOSUPP;
	}

	bool native = mode != RPMA_FLUSH_MODE_READ && can_native;

	if (!native) {
		int ret = rpma_flush_buffer_new(conn->peer, &conn->flush_buffer);

		if (ret)
			return ret;
	}

	conn->native_flush = native;
	update_flush_usage(conn);

	return 0;
}

int rpma_conn_get_flush_mode(const struct rpma_conn *conn, enum rpma_flush_mode *mode)
{
	if (conn == NULL || mode == NULL)
		return RPMA_E_INVAL;

	*mode = conn->native_flush ? RPMA_FLUSH_MODE_NATIVE : RPMA_FLUSH_MODE_READ;

	return 0;
}

int rpma_conn_get_limits(const struct rpma_conn *conn, struct rpma_limits *limits)
{
	uint64_t msg_size;

	if (conn == NULL || limits == NULL)
		return RPMA_E_INVAL;

	int ret = rpma_device_msg_size(conn->id->verbs, conn->id->port_num, &msg_size);

	if (ret)
		return ret;

	limits->sq_size = conn->queues.cap.max_send_wr;
	limits->rq_size = conn->queues.has_srq ? 0 : conn->queues.cap.max_recv_wr;
	limits->cq_size = conn->queues.cq->cq->cqe;
	limits->srq_size = 0;
	limits->msg_size = msg_size;

	return 0;
}

int rpma_conn_get_event_fd(const struct rpma_conn *conn, int *fd)
{
	if (conn == NULL || fd == NULL)
		return RPMA_E_INVAL;

	*fd = conn->events->fd;

	return 0;
}

int rpma_conn_get_compl_fd(const struct rpma_conn *conn, int *fd)
{
	if (conn == NULL || fd == NULL)
		return RPMA_E_INVAL;
	if (conn->queues.channel == NULL)
		return RPMA_E_NOT_SHARED_CHNL;

	*fd = conn->queues.channel->fd;

	return 0;
}

int rpma_conn_get_private_data(const struct rpma_conn *conn, struct rpma_conn_private_data *pdata)
{
	if (conn == NULL || pdata == NULL)
		return RPMA_E_INVAL;

	*pdata = conn->pdata;

	return 0;
}

int rpma_conn_get_qp_num(const struct rpma_conn *conn, uint32_t *qp_num)
{
	if (conn == NULL || qp_num == NULL)
		return RPMA_E_INVAL;

	*qp_num = conn->qp->qp_num;

	return 0;
}

int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq_ptr)
{
	if (conn == NULL || cq_ptr == NULL)
		return RPMA_E_INVAL;

	*cq_ptr = conn->queues.cq;

	return 0;
}

int rpma_conn_get_rcq(const struct rpma_conn *conn, struct rpma_cq **rcq_ptr)
{
	if (conn == NULL || rcq_ptr == NULL)
		return RPMA_E_INVAL;

	*rcq_ptr = conn->queues.rcq;

	return 0;
}
