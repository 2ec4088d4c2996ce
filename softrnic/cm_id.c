// SPDX-License-Identifier: BSD-3-Clause
/* Identifiers: their life, addresses and options. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softrnic.h"

struct srn_id *srn_id_new(struct rdma_event_channel *channel, void *context,
			  enum rdma_port_space ps)
{
	struct srn_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = IBV_QPT_RC;
	id->bound_fd = -1;
	pthread_mutex_init(&id->lock, NULL);
	pthread_cond_init(&id->acked, NULL);
	TAILQ_INIT(&id->events);
	return id;
}

void srn_id_bind_device(struct srn_id *id)
{
	id->id.verbs = srn_cm_context();
	if (!id->id.pd)
		id->id.pd = srn_cm_pd();
	id->id.port_num = 1;
}

SRN_EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out,
			      void *context, enum rdma_port_space ps)
{
	struct rdma_event_channel *own = NULL;
	struct srn_id *id;

	/* TCP only: iWARP has no datagrams and this device no InfiniBand. */
	if (ps != RDMA_PS_TCP)
		return srn_seterr(ps == RDMA_PS_UDP || ps == RDMA_PS_IB || ps == RDMA_PS_IPOIB
					  ? EPROTONOSUPPORT
					  : EINVAL);
	if (!channel) {
		own = channel = rdma_create_event_channel();
		if (!own)
			return -1;
	}
	id = srn_id_new(channel, context, ps);
	if (!id) {
		if (own)
			rdma_destroy_event_channel(own);
		return srn_seterr(ENOMEM);
	}
	id->sync = own;
	*out = &id->id;
	return 0;
}

SRN_EXPORT int rdma_destroy_id(struct rdma_cm_id *rid)
{
	struct srn_id *id = srn_id(rid);

	if (id->listener)
		srn_listener_free(id->listener);
	if (id->conn)
		srn_conn_free(id->conn);
	srn_answered(id);
	srn_qp_forget_id(id);
	if (id->sync && rid->event) {
		rdma_ack_cm_event(rid->event);
		rid->event = NULL;
	}
	srn_id_drain(id);
	if (id->sync)
		rdma_destroy_event_channel(rid->channel);
	if (id->bound_fd >= 0)
		close(id->bound_fd);
	pthread_mutex_destroy(&id->lock);
	pthread_cond_destroy(&id->acked);
	free(id->qp_attr);
	free(id);
	return 0;
}

socklen_t srn_addr_len(const struct sockaddr *addr)
{
	switch (addr ? addr->sa_family : AF_UNSPEC) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

static bool is_wildcard(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)addr)->sin_addr.s_addr ==
		       htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(
		&((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr);
}

int srn_socket(struct srn_id *id, int family)
{
	int one = 1, only = id->afonly;
	int fd = id->bound_fd;

	if (fd >= 0) {
		id->bound_fd = -1;
		return fd;
	}
	fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	/* As with RDMA ports: one that was used a moment ago is free again. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
	if (id->tos)
		setsockopt(fd, IPPROTO_IP, IP_TOS, &id->tos, sizeof(id->tos));
	srn_tcp_new(fd);
	return fd;
}

static int bind_source(struct srn_id *id, const struct sockaddr *addr)
{
	struct sockaddr *source = &id->id.route.addr.src_addr;
	socklen_t len = srn_addr_len(addr), got = sizeof(struct sockaddr_storage);
	int fd, err;

	if (!len)
		return EAFNOSUPPORT;
	fd = srn_socket(id, addr->sa_family);
	if (fd < 0)
		return errno;
	if (bind(fd, addr, len) || getsockname(fd, source, &got)) {
		err = errno;
		close(fd);
		return err;
	}
	id->bound_fd = fd;
	return 0;
}

SRN_EXPORT int rdma_bind_addr(struct rdma_cm_id *rid, struct sockaddr *addr)
{
	struct srn_id *id = srn_id(rid);
	int err = EINVAL;

	pthread_mutex_lock(&id->lock);
	if (id->state == SRN_ID_IDLE)
		err = bind_source(id, addr);
	if (!err) {
		id->state = SRN_ID_BOUND;
		if (!is_wildcard(addr))
			srn_id_bind_device(id);
	}
	pthread_mutex_unlock(&id->lock);
	return srn_seterr(err);
}

/* Which local address leads to dst: the routing table knows. */
static int source_for(const struct sockaddr *dst, struct sockaddr *source)
{
	struct sockaddr_storage to = {0};
	socklen_t len = srn_addr_len(dst), got = sizeof(struct sockaddr_storage);
	int fd, err = 0;

	memcpy(&to, dst, len);
	if (to.ss_family == AF_INET)
		((struct sockaddr_in *)(void *)&to)->sin_port = htons(9);
	else
		((struct sockaddr_in6 *)(void *)&to)->sin6_port = htons(9);
	fd = socket(dst->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	if (connect(fd, (struct sockaddr *)&to, len) || getsockname(fd, source, &got))
		err = errno;
	close(fd);
	if (source->sa_family == AF_INET)
		((struct sockaddr_in *)(void *)source)->sin_port = 0;
	else
		((struct sockaddr_in6 *)(void *)source)->sin6_port = 0;
	return err;
}

static int resolve_addr(struct srn_id *id, struct sockaddr *src, struct sockaddr *dst)
{
	struct rdma_addr *addr = &id->id.route.addr;
	socklen_t len = srn_addr_len(dst);
	int err = 0;

	if (id->state != SRN_ID_IDLE && id->state != SRN_ID_BOUND)
		return EINVAL;
	if (!len || (src && src->sa_family && src->sa_family != dst->sa_family))
		return EINVAL;
	if (src && src->sa_family && id->state == SRN_ID_IDLE)
		err = bind_source(id, src);
	else if (id->state == SRN_ID_IDLE)
		err = source_for(dst, &addr->src_addr);
	if (err)
		return err;
	memcpy(&addr->dst_storage, dst, len);
	srn_id_bind_device(id);
	id->state = SRN_ID_ADDR;
	return srn_cm_event(id, NULL, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL);
}

SRN_EXPORT int rdma_resolve_addr(struct rdma_cm_id *rid, struct sockaddr *src, struct sockaddr *dst,
				 int timeout_ms)
{
	struct srn_id *id = srn_id(rid);
	int err;

	(void)timeout_ms;
	pthread_mutex_lock(&id->lock);
	err = resolve_addr(id, src, dst);
	pthread_mutex_unlock(&id->lock);
	return err ? srn_seterr(err) : srn_sync_complete(id);
}

SRN_EXPORT int rdma_resolve_route(struct rdma_cm_id *rid, int timeout_ms)
{
	struct srn_id *id = srn_id(rid);
	int err = EINVAL;

	(void)timeout_ms;
	pthread_mutex_lock(&id->lock);
	if (id->state == SRN_ID_ADDR) {
		id->state = SRN_ID_ROUTE;
		err = srn_cm_event(id, NULL, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL);
	}
	pthread_mutex_unlock(&id->lock);
	return err ? srn_seterr(err) : srn_sync_complete(id);
}

static __be16 port_of(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)(const void *)addr)->sin_port;
	case AF_INET6:
		return ((const struct sockaddr_in6 *)(const void *)addr)->sin6_port;
	default:
		return 0;
	}
}

SRN_EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.src_addr);
}

SRN_EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_addr);
}

SRN_EXPORT int rdma_set_option(struct rdma_cm_id *rid, int level, int optname, void *optval,
			       size_t optlen)
{
	struct srn_id *id = srn_id(rid);
	int err = 0;

	if (level != RDMA_OPTION_ID)
		return srn_seterr(ENOSYS); /* as on any iWARP device */
	pthread_mutex_lock(&id->lock);
	switch (optname) {
	case RDMA_OPTION_ID_TOS:
		if (optlen != sizeof(uint8_t))
			err = EINVAL;
		else
			id->tos = *(uint8_t *)optval;
		break;
	case RDMA_OPTION_ID_REUSEADDR:
	case RDMA_OPTION_ID_AFONLY:
		if (optlen != sizeof(int) || id->state != SRN_ID_IDLE)
			err = EINVAL;
		else if (optname == RDMA_OPTION_ID_AFONLY)
			id->afonly = *(int *)optval;
		else
			id->reuse = *(int *)optval;
		break;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		err = optlen != sizeof(uint8_t) ? EINVAL : 0; /* TCP has its own */
		break;
	default:
		err = ENOSYS;
		break;
	}
	pthread_mutex_unlock(&id->lock);
	return srn_seterr(err);
}
