// SPDX-License-Identifier: BSD-3-Clause
/* Connecting, listening, accepting, rejecting, disconnecting. */
#include <errno.h>
#include <string.h>

#include "softrnic.h"

static uint8_t depth_or(uint8_t wanted, uint8_t sentinel, uint8_t most)
{
	return wanted == sentinel ? most : wanted;
}

/* The depths a call may ask for: the device's, or the sentinel for all there is. */
static int fill_depths(struct rdma_conn_param *param, uint8_t resources, uint8_t depth)
{
	param->responder_resources =
		depth_or(param->responder_resources, RDMA_MAX_RESP_RES, resources);
	param->initiator_depth = depth_or(param->initiator_depth, RDMA_MAX_INIT_DEPTH, depth);
	return param->responder_resources > SRN_MAX_RD_ATOM ||
			       param->initiator_depth > SRN_MAX_RD_ATOM
		       ? EINVAL
		       : 0;
}

SRN_EXPORT int rdma_connect(struct rdma_cm_id *rid, struct rdma_conn_param *given)
{
	struct srn_id *id = srn_id(rid);
	struct rdma_conn_param param = {
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	int err;

	if (given)
		param = *given;
	err = fill_depths(&param, SRN_MAX_RD_ATOM, SRN_MAX_RD_ATOM);
	pthread_mutex_lock(&id->lock);
	if (!err && (id->state != SRN_ID_ROUTE || (!rid->qp && !srn_qp_known(param.qp_num))))
		err = EINVAL;
	if (!err) {
		id->state = SRN_ID_CONNECTING;
		err = srn_conn_connect(id, &param);
		if (err)
			id->state = SRN_ID_ROUTE;
	}
	pthread_mutex_unlock(&id->lock);
	return err ? srn_seterr(err) : srn_sync_complete(id);
}

SRN_EXPORT int rdma_listen(struct rdma_cm_id *rid, int backlog)
{
	struct srn_id *id = srn_id(rid);
	int err = EINVAL;

	pthread_mutex_lock(&id->lock);
	if (id->state == SRN_ID_BOUND)
		err = srn_listen(id, backlog);
	if (!err)
		id->state = SRN_ID_LISTENING;
	pthread_mutex_unlock(&id->lock);
	return srn_seterr(err);
}

SRN_EXPORT int rdma_get_request(struct rdma_cm_id *rlisten, struct rdma_cm_id **rid)
{
	struct srn_id *listen = srn_id(rlisten);
	struct rdma_cm_event *event;
	struct ibv_qp_init_attr attr;
	int err;

	if (!listen->sync)
		return srn_seterr(EINVAL);
	if (rlisten->event) {
		rdma_ack_cm_event(rlisten->event);
		rlisten->event = NULL;
	}
	if (rdma_get_cm_event(rlisten->channel, &event))
		return -1;
	err = event->status < 0 ? -event->status : event->status;
	if (!err && event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		err = EINVAL;
	if (!err && listen->qp_attr) {
		attr = *listen->qp_attr;
		if (rdma_create_qp(event->id, rlisten->pd, &attr))
			err = errno;
	}
	if (err) {
		rlisten->event = event;
		return srn_seterr(err);
	}
	*rid = event->id;
	(*rid)->event = event;
	return 0;
}

SRN_EXPORT int rdma_accept(struct rdma_cm_id *rid, struct rdma_conn_param *given)
{
	struct srn_id *id = srn_id(rid);
	struct rdma_conn_param param = id->request;
	int err;

	if (given) {
		param = *given;
	} else {
		param.private_data_len = 0;
		param.rnr_retry_count = 7;
	}
	err = fill_depths(&param, id->request.responder_resources, id->request.initiator_depth);
	pthread_mutex_lock(&id->lock);
	if (!err && id->state != SRN_ID_REQUEST)
		err = EINVAL;
	if (!err)
		err = srn_conn_accept(id, &param);
	pthread_mutex_unlock(&id->lock);
	if (err)
		return srn_seterr(err);
	srn_answered(id);
	return srn_sync_complete(id);
}

SRN_EXPORT int rdma_reject(struct rdma_cm_id *rid, const void *private_data,
			   uint8_t private_data_len)
{
	struct srn_id *id = srn_id(rid);
	int err = EINVAL;

	pthread_mutex_lock(&id->lock);
	if (id->state == SRN_ID_REQUEST) {
		id->state = SRN_ID_DISCONNECTED;
		err = srn_conn_reject(id, private_data, private_data_len);
	}
	pthread_mutex_unlock(&id->lock);
	srn_answered(id);
	return srn_seterr(err);
}

SRN_EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
			       uint8_t private_data_len)
{
	return rdma_reject(id, private_data, private_data_len);
}

SRN_EXPORT int rdma_disconnect(struct rdma_cm_id *rid)
{
	struct srn_id *id = srn_id(rid);

	if (id->state != SRN_ID_CONNECTED && id->state != SRN_ID_DISCONNECTED)
		return srn_seterr(EINVAL);
	srn_qp_disconnect(id);
	if (id->sync && rid->event && rid->event->event == RDMA_CM_EVENT_DISCONNECTED)
		return 0;
	return srn_sync_complete(id);
}

SRN_EXPORT int rdma_establish(struct rdma_cm_id *id)
{
	/* Only where no queue pair is known to rdma_cm; iWARP connects none without. */
	(void)id;
	return srn_seterr(EINVAL);
}

SRN_EXPORT int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	(void)id;
	return srn_seterr(event == IBV_EVENT_COMM_EST ? 0 : EINVAL);
}
