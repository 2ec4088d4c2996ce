// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <rdma/rdma_cma.h>

#include "device.h"
#include "info.h"
#include "log.h"

int rpma_utils_get_ibv_context(const char *addr, enum rpma_util_ibv_context_type type,
			       struct ibv_context **ibv_ctx_ptr)
{
	struct rdma_cm_id *id;
	int ret;

	if (addr == NULL || ibv_ctx_ptr == NULL)
		return RPMA_E_INVAL;
	if (type != RPMA_UTIL_IBV_CONTEXT_LOCAL && type != RPMA_UTIL_IBV_CONTEXT_REMOTE)
		return RPMA_E_INVAL;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP)) {
		ret = errno == ENOMEM ? RPMA_E_NOMEM : RPMA_E_PROVIDER;
		RPMA_LOG_CALL("rdma_create_id()", errno);
		return ret;
	}

	if (type == RPMA_UTIL_IBV_CONTEXT_LOCAL)
		ret = rpma_info_bind(id, addr, NULL);
	else
		ret = rpma_info_resolve(id, addr, NULL, RPMA_DEFAULT_TIMEOUT_MS);
	if (ret)
		goto out_destroy_id;

	if (id->verbs == NULL) {
		RPMA_LOG_ERROR("no single RDMA device belongs to address %s", addr);
		ret = RPMA_E_PROVIDER;
		goto out_destroy_id;
	}
	*ibv_ctx_ptr = id->verbs;

out_destroy_id:
	(void)rdma_destroy_id(id);
	return ret;
}

int rpma_utils_ibv_context_is_odp_capable(struct ibv_context *ibv_ctx, int *is_odp_capable)
{
	struct ibv_device_attr_ex attr;

	if (ibv_ctx == NULL || is_odp_capable == NULL)
		return RPMA_E_INVAL;

	int ret = rpma_device_query(ibv_ctx, &attr);

	if (ret)
		return ret;

	*is_odp_capable = rpma_device_has_odp(&attr);

	return 0;
}

const char *rpma_utils_conn_event_2str(enum rpma_conn_event conn_event)
{
	switch (conn_event) {
	case RPMA_CONN_UNDEFINED:
		return "Undefined connection event";
	case RPMA_CONN_ESTABLISHED:
		return "Connection established";
	case RPMA_CONN_CLOSED:
		return "Connection closed";
	case RPMA_CONN_LOST:
		return "Connection lost";
	case RPMA_CONN_REJECTED:
		return "Connection rejected";
	case RPMA_CONN_UNREACHABLE:
		return "Connection unreachable";
	default:
		return "Unsupported connection event";
	}
}
