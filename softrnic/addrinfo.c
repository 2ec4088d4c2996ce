// SPDX-License-Identifier: BSD-3-Clause
/* rdma_getaddrinfo(3): names to addresses, by the C library. */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic.h"

static struct sockaddr *copy(const struct sockaddr *addr, socklen_t len)
{
	/* Room for any family, as programs copy whole sockaddr_storages. */
	struct sockaddr *to = calloc(1, sizeof(struct sockaddr_storage));

	if (to)
		memcpy(to, addr, len);
	return to;
}

static int fill(struct rdma_addrinfo *rai, const struct addrinfo *ai,
		const struct rdma_addrinfo *hints)
{
	bool passive = hints && (hints->ai_flags & RAI_PASSIVE);
	struct sockaddr *addr = copy(ai->ai_addr, ai->ai_addrlen);

	rai->ai_flags = hints ? hints->ai_flags : 0;
	rai->ai_family = ai->ai_family;
	rai->ai_qp_type = hints && hints->ai_qp_type ? hints->ai_qp_type : IBV_QPT_RC;
	rai->ai_port_space = hints && hints->ai_port_space   ? hints->ai_port_space
			     : rai->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP
							     : RDMA_PS_TCP;
	if (passive) {
		rai->ai_src_addr = addr;
		rai->ai_src_len = ai->ai_addrlen;
	} else {
		rai->ai_dst_addr = addr;
		rai->ai_dst_len = ai->ai_addrlen;
	}
	if (!passive && hints && hints->ai_src_len) {
		rai->ai_src_addr = copy(hints->ai_src_addr, hints->ai_src_len);
		rai->ai_src_len = hints->ai_src_len;
		if (!rai->ai_src_addr)
			return EAI_MEMORY;
	}
	return addr ? 0 : EAI_MEMORY;
}

SRN_EXPORT int rdma_getaddrinfo(const char *node, const char *service,
				const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	struct addrinfo ask = {.ai_socktype = SOCK_STREAM}, *ai;
	struct rdma_addrinfo *rai;
	int ret;

	if (hints) {
		if (hints->ai_flags & RAI_PASSIVE)
			ask.ai_flags |= AI_PASSIVE;
		if (hints->ai_flags & RAI_NUMERICHOST)
			ask.ai_flags |= AI_NUMERICHOST;
		if ((hints->ai_flags & RAI_FAMILY) || hints->ai_family)
			ask.ai_family = hints->ai_family;
	}
	ret = getaddrinfo(node, service, &ask, &ai);
	if (ret) {
		if (ret != EAI_SYSTEM)
			errno = ret == EAI_MEMORY ? ENOMEM : ENODATA;
		return ret;
	}
	rai = calloc(1, sizeof(*rai));
	ret = rai ? fill(rai, ai, hints) : EAI_MEMORY;
	freeaddrinfo(ai);
	if (ret) {
		rdma_freeaddrinfo(rai);
		errno = ENOMEM;
		return ret;
	}
	*res = rai;
	return 0;
}

SRN_EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res);
	}
}
