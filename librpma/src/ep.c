// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>

#include "conn_cfg.h"
#include "conn_req.h"
#include "info.h"
#include "log.h"

struct rpma_ep {
	const struct rpma_peer *peer;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
};

int rpma_ep_listen(struct rpma_peer *peer, const char *addr, const char *port,
		   struct rpma_ep **ep_ptr)
{
	int ret = RPMA_E_PROVIDER;

	if (peer == NULL || addr == NULL || port == NULL || ep_ptr == NULL)
		return RPMA_E_INVAL;

	struct rpma_ep *ep = malloc(sizeof(*ep));

	if (ep == NULL)
		return RPMA_E_NOMEM;

	ep->peer = peer;
	ep->events = rdma_create_event_channel();
	if (ep->events == NULL) {
		RPMA_LOG_CALL("rdma_create_event_channel()", errno);
		goto err_free;
	}

	if (rdma_create_id(ep->events, &ep->id, NULL, RDMA_PS_TCP)) {
		RPMA_LOG_CALL("rdma_create_id()", errno);
		goto err_destroy_channel;
	}

	ret = rpma_info_bind(ep->id, addr, port);
	if (ret)
		goto err_destroy_id;

	/* 0: the system's own limit of connections that wait */
	if (rdma_listen(ep->id, 0)) {
		RPMA_LOG_ERROR("rdma_listen(%s, %s) failed: %s", addr, port,
			       rpma_log_strerror(errno));
		ret = RPMA_E_PROVIDER;
		goto err_destroy_id;
	}

	*ep_ptr = ep;
	RPMA_LOG_NOTICE("listening on %s, port %s", addr, port);

	return 0;

err_destroy_id:
	(void)rdma_destroy_id(ep->id);
err_destroy_channel:
	rdma_destroy_event_channel(ep->events);
err_free:
	free(ep);
	return ret;
}

int rpma_ep_shutdown(struct rpma_ep **ep_ptr)
{
	if (ep_ptr == NULL)
		return RPMA_E_INVAL;

	struct rpma_ep *ep = *ep_ptr;

	if (ep == NULL)
		return 0;

	if (rdma_destroy_id(ep->id)) {
		RPMA_LOG_CALL("rdma_destroy_id()", errno);
		return RPMA_E_PROVIDER;
	}

	rdma_destroy_event_channel(ep->events);
	free(ep);
	*ep_ptr = NULL;

	return 0;
}

int rpma_ep_get_fd(const struct rpma_ep *ep, int *fd)
{
	if (ep == NULL || fd == NULL)
		return RPMA_E_INVAL;

	*fd = ep->events->fd;

	return 0;
}

int rpma_ep_next_conn_req(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
			  struct rpma_conn_req **req_ptr)
{
	struct rdma_cm_event *event;

	if (ep == NULL || req_ptr == NULL)
		return RPMA_E_INVAL;

	if (rdma_get_cm_event(ep->events, &event)) {
		if (errno == ENODATA || errno == EAGAIN)
			return RPMA_E_NO_EVENT;
		RPMA_LOG_CALL("rdma_get_cm_event()", errno);
		return RPMA_E_PROVIDER;
	}

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		RPMA_LOG_ERROR("unexpected event %s", rdma_event_str(event->event));
		(void)rdma_ack_cm_event(event);
		return RPMA_E_INVAL;
	}

	return rpma_conn_req_new_from_event(ep->peer, event, cfg ? cfg : &rpma_conn_cfg_default,
					    req_ptr);
}
