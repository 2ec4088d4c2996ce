// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "log.h"

#define PORT_MAX 65535

/* getaddrinfo() cuts a number that is too large down to 16 bits without a word */
static bool port_is_too_large(const char *port)
{
	size_t digits = strspn(port, "0123456789");

	return digits > 0 && port[digits] == '\0' &&
	       (digits > 9 || strtoul(port, NULL, 10) > PORT_MAX);
}

static int get_info(const char *addr, const char *port, enum rpma_info_side side,
		    struct rdma_addrinfo **info)
{
	struct rdma_addrinfo hints = {
		.ai_flags = side == RPMA_INFO_PASSIVE ? RAI_PASSIVE : 0,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
	};

	if (port && port_is_too_large(port)) {
		RPMA_LOG_ERROR("port %s is no port: the largest is %d", port, PORT_MAX);
		return RPMA_E_INVAL;
	}

	int ret = rdma_getaddrinfo(addr, port, &hints, info);

	if (ret) {
		/* -1 comes with errno, anything else is of getaddrinfo() */
		RPMA_LOG_ERROR("rdma_getaddrinfo(%s, %s) failed: %s", addr, port ? port : "no port",
			       ret == -1 ? rpma_log_strerror(errno) : gai_strerror(ret));
		return RPMA_E_PROVIDER;
	}

	return 0;
}

int rpma_info_bind(struct rdma_cm_id *id, const char *addr, const char *port)
{
	struct rdma_addrinfo *info;
	int ret = get_info(addr, port, RPMA_INFO_PASSIVE, &info);

	if (ret)
		return ret;

	if (rdma_bind_addr(id, info->ai_src_addr)) {
		RPMA_LOG_ERROR("rdma_bind_addr(%s, %s) failed: %s", addr, port ? port : "no port",
			       rpma_log_strerror(errno));
		ret = RPMA_E_PROVIDER;
	}
	rdma_freeaddrinfo(info);

	return ret;
}

int rpma_info_resolve(struct rdma_cm_id *id, const char *addr, const char *port, int timeout_ms)
{
	struct rdma_addrinfo *info;
	int ret = get_info(addr, port, RPMA_INFO_ACTIVE, &info);

	if (ret)
		return ret;

	if (rdma_resolve_addr(id, info->ai_src_addr, info->ai_dst_addr, timeout_ms)) {
		RPMA_LOG_ERROR("rdma_resolve_addr(%s, %s, timeout=%d ms) failed: %s", addr,
			       port ? port : "no port", timeout_ms, rpma_log_strerror(errno));
		ret = RPMA_E_PROVIDER;
	}
	rdma_freeaddrinfo(info);

	return ret;
}
