// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "conn.h"
#include "conn_cfg.h"
#include "conn_req.h"
#include "info.h"
#include "log.h"
#include "peer.h"
#include "private_data.h"
#include "queues.h"
#include "wr.h"

/* of rdma_conn_param: 7 retries is the most; an RNR retry count of 7 has no end */
#define RETRY_COUNT     7
#define RNR_RETRY_COUNT 7

struct rpma_conn_req {
	const struct rpma_peer *peer;
	struct rdma_cm_id *id;
	struct rpma_queues queues;
	struct rpma_conn_private_data pdata; /* of the other side */
	bool passive;
};

/* the id is the caller's still if this fails */
static int new_from_id(const struct rpma_peer *peer, struct rdma_cm_id *id,
		       const struct rpma_conn_cfg *cfg, bool passive,
		       struct rpma_conn_req **req_ptr)
{
	struct rpma_conn_req *req = calloc(1, sizeof(*req));

	if (req == NULL)
		return RPMA_E_NOMEM;

	int ret = rpma_queues_new(peer, id, cfg, &req->queues);

	if (ret) {
		free(req);
		return ret;
	}

	req->peer = peer;
	req->id = id;
	req->passive = passive;
	*req_ptr = req;

	return 0;
}

/* turn the other side away, if there is one, and be done with the id */
static int give_up_id(struct rdma_cm_id *id, bool passive)
{
	int ret = 0;

	if (passive && rdma_reject(id, NULL, 0)) {
		RPMA_LOG_CALL("rdma_reject()", errno);
		ret = RPMA_E_PROVIDER;
	}
	if (rdma_destroy_id(id)) {
		RPMA_LOG_CALL("rdma_destroy_id()", errno);
		ret = RPMA_E_PROVIDER;
	}

	return ret;
}

int rpma_conn_req_new_from_event(const struct rpma_peer *peer, struct rdma_cm_event *event,
				 const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr)
{
	struct rpma_conn_private_data pdata = {NULL, 0};
	struct rdma_cm_id *id = event->id;
	struct rpma_conn_req *req;
	int ret = rpma_private_data_store(event, &pdata);

	/* Shutting an endpoint down would wait for events that are not acked. */
	if (rdma_ack_cm_event(event)) {
		RPMA_LOG_CALL("rdma_ack_cm_event()", errno);
		RPMA_KEEP_FIRST(ret, RPMA_E_PROVIDER);
	}
	if (ret)
		goto err_give_up;

	ret = new_from_id(peer, id, cfg, true, &req);
	if (ret)
		goto err_give_up;

	req->pdata = pdata;
	*req_ptr = req;

	return 0;

err_give_up:
	(void)give_up_id(id, true);
	rpma_private_data_delete(&pdata);
	return ret;
}

int rpma_conn_req_new(struct rpma_peer *peer, const char *addr, const char *port,
		      const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr)
{
	const struct rpma_conn_cfg *use = cfg ? cfg : &rpma_conn_cfg_default;
	struct rdma_cm_id *id;

	if (peer == NULL || addr == NULL || port == NULL || req_ptr == NULL)
		return RPMA_E_INVAL;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP)) {
		RPMA_LOG_CALL("rdma_create_id()", errno);
		return RPMA_E_PROVIDER;
	}

	int ret = rpma_info_resolve(id, addr, port, use->timeout_ms);

	if (ret)
		goto err_destroy_id;

	if (rdma_resolve_route(id, use->timeout_ms)) {
		RPMA_LOG_ERROR("rdma_resolve_route(%s, %s, timeout=%d ms) failed: %s", addr, port,
			       use->timeout_ms, rpma_log_strerror(errno));
		ret = RPMA_E_PROVIDER;
		goto err_destroy_id;
	}

	ret = new_from_id(peer, id, use, false, req_ptr);
	if (ret)
		goto err_destroy_id;

	RPMA_LOG_NOTICE("requesting a connection to %s, port %s", addr, port);

	return 0;

err_destroy_id:
	(void)rdma_destroy_id(id);
	return ret;
}

int rpma_conn_req_delete(struct rpma_conn_req **req_ptr)
{
	if (req_ptr == NULL)
		return RPMA_E_INVAL;

	struct rpma_conn_req *req = *req_ptr;

	if (req == NULL)
		return 0;

	int ret = rpma_queues_delete(req->id, &req->queues);

	RPMA_KEEP_FIRST(ret, give_up_id(req->id, req->passive));
	rpma_private_data_delete(&req->pdata);
	free(req);
	*req_ptr = NULL;

	return ret;
}

static int start_connecting(const struct rpma_conn_req *req,
			    const struct rpma_conn_private_data *pdata)
{
	struct rdma_conn_param param = {
		.private_data = pdata ? pdata->ptr : NULL,
		.private_data_len = pdata ? pdata->len : 0,
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.flow_control = 1,
		.retry_count = RETRY_COUNT,
		.rnr_retry_count = RNR_RETRY_COUNT,
	};

	if (req->passive && rdma_accept(req->id, &param)) {
		RPMA_LOG_CALL("rdma_accept()", errno);
		return RPMA_E_PROVIDER;
	}
	if (!req->passive && rdma_connect(req->id, &param)) {
		RPMA_LOG_CALL("rdma_connect()", errno);
		return RPMA_E_PROVIDER;
	}

	return 0;
}

int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
			  const struct rpma_conn_private_data *pdata, struct rpma_conn **conn_ptr)
{
	if (req_ptr == NULL || *req_ptr == NULL)
		return RPMA_E_INVAL;

	struct rpma_conn_req *req = *req_ptr;
	struct rpma_conn *conn;
	int ret = RPMA_E_INVAL;

	if (conn_ptr == NULL)
		goto err_delete_req;
	if (pdata) {
		ret = rpma_private_data_check(pdata, req->id, req->passive);
		if (ret)
			goto err_delete_req;
	}

	/* First, so that all events of the connection come to its own channel. */
	ret = rpma_conn_new(req->peer, req->id, &req->queues, &req->pdata, &conn);
	if (ret)
		goto err_delete_req;

	ret = start_connecting(req, pdata);
	if (ret)
		(void)rpma_conn_delete(&conn);
	else
		*conn_ptr = conn;

	/* All it had is the connection's. */
	free(req);
	*req_ptr = NULL;

	return ret;

err_delete_req:
	(void)rpma_conn_req_delete(req_ptr);
	return ret;
}

int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst, size_t offset,
		       size_t len, const void *op_context)
{
	struct ibv_recv_wr wr, *bad;
	struct ibv_sge sge;

	if (req == NULL)
		return RPMA_E_INVAL;
	if (!rpma_recv_wr_set(&wr, &sge, dst, offset, len, op_context))
		return RPMA_E_INVAL;

	int ret = ibv_post_recv(req->id->qp, &wr, &bad);

	return likely(ret == 0) ? 0 : rpma_post_failed("ibv_post_recv()", ret);
}

int rpma_conn_req_get_private_data(const struct rpma_conn_req *req,
				   struct rpma_conn_private_data *pdata)
{
	if (req == NULL || pdata == NULL)
		return RPMA_E_INVAL;

	*pdata = req->pdata;

	return 0;
}
