// SPDX-License-Identifier: BSD-3-Clause
#include <string.h>

#include "device.h"
#include "log.h"
#include "verbs_native.h"

int rpma_device_query(struct ibv_context *ctx, struct ibv_device_attr_ex *attr)
{
	memset(attr, 0, sizeof(*attr));

	int ret = ibv_query_device_ex(ctx, NULL, attr);

	if (ret) {
		RPMA_LOG_CALL("ibv_query_device_ex()", ret);
		return RPMA_E_PROVIDER;
	}

	return 0;
}

bool rpma_device_has_odp(const struct ibv_device_attr_ex *attr)
{
	uint32_t rc = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;

	return (attr->odp_caps.general_caps & IBV_ODP_SUPPORT) &&
	       (attr->odp_caps.per_transport_caps.rc_odp_caps & rc) == rc;
}

bool rpma_device_has_flush(const struct ibv_device_attr_ex *attr)
{
	return RPMA_DEVICE_FLUSH &&
	       (attr->device_cap_flags_ex & RPMA_DEVICE_FLUSH) == RPMA_DEVICE_FLUSH;
}

bool rpma_device_has_atomic_write(const struct ibv_device_attr_ex *attr)
{
	return (attr->device_cap_flags_ex & RPMA_DEVICE_ATOMIC_WRITE) != 0;
}

int rpma_device_msg_size(struct ibv_context *ctx, uint8_t port, uint64_t *msg_size)
{
	struct ibv_port_attr attr;
	int ret = ibv_query_port(ctx, port, &attr);

	if (ret) {
		RPMA_LOG_CALL("ibv_query_port()", ret);
		return RPMA_E_PROVIDER;
	}
	*msg_size = attr.max_msg_sz;

	return 0;
}
