// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "device.h"
#include "log.h"
#include "peer.h"
#include "verbs_native.h"

#define FLUSH_USAGE (RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

static int usage_to_access(const struct rpma_peer *peer, int usage)
{
	int access = 0;

	/* A flush may be an RDMA read, by the peer's choice. */
	if (usage & (RPMA_MR_USAGE_READ_SRC | FLUSH_USAGE))
		access |= IBV_ACCESS_REMOTE_READ;
	if (usage & (RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_RECV))
		access |= IBV_ACCESS_LOCAL_WRITE;
	/* iWARP answers a read with a message that writes: RFC 5040, section 5.2. */
	if ((usage & RPMA_MR_USAGE_WRITE_DST) || (peer->iwarp && (usage & RPMA_MR_USAGE_READ_DST)))
		access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	if (peer->native_flush && (usage & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY))
		access |= RPMA_ACCESS_FLUSH_GLOBAL;
	if (peer->native_flush && (usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT))
		access |= RPMA_ACCESS_FLUSH_PERSISTENT;

	return access;
}

static void log_reg_mr_failed(const struct rpma_peer *peer, void *ptr, size_t size, int usage,
			      int access, int err)
{
	const char *hint = "";

	if (err == EINVAL && peer->native_flush && (usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT))
		hint = "; a device with native flush takes FLUSH_TYPE_PERSISTENT for persistent "
		       "memory only, use FLUSH_TYPE_VISIBILITY for other memory";
	else if (err == EOPNOTSUPP && !peer->odp)
		hint = "; memory that cannot be pinned (fsdax) needs a device with on-demand "
		       "paging";
	else if (err == ENOMEM)
		hint = "; is there a limit on locked memory (ulimit -l)?";

	RPMA_LOG_ERROR("ibv_reg_mr(addr=%p, length=%zu, access=0x%x) failed: %s%s", ptr, size,
		       access, rpma_log_strerror(err), hint);
}

struct ibv_mr *rpma_peer_reg_mr(const struct rpma_peer *peer, void *ptr, size_t size, int usage)
{
	int access = usage_to_access(peer, usage);
	/* The function, not the macro: none of these rights is an optional one. */
	struct ibv_mr *mr = (ibv_reg_mr)(peer->pd, ptr, size, access);

	if (mr == NULL && errno == EOPNOTSUPP && peer->odp) {
		access |= IBV_ACCESS_ON_DEMAND;
		mr = (ibv_reg_mr)(peer->pd, ptr, size, access);
	}
	if (mr == NULL)
		log_reg_mr_failed(peer, ptr, size, usage, access, errno);

	return mr;
}

int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr)
{
	struct ibv_device_attr_ex attr;

	if (ibv_ctx == NULL || peer_ptr == NULL)
		return RPMA_E_INVAL;

	int ret = rpma_device_query(ibv_ctx, &attr);

	if (ret)
		return ret;

	struct rpma_peer *peer = malloc(sizeof(*peer));

	if (peer == NULL)
		return RPMA_E_NOMEM;

	errno = 0;
	peer->pd = ibv_alloc_pd(ibv_ctx);
	if (peer->pd == NULL) {
		ret = errno == ENOMEM ? RPMA_E_NOMEM : errno ? RPMA_E_PROVIDER : RPMA_E_UNKNOWN;
		RPMA_LOG_CALL("ibv_alloc_pd()", errno);
		goto err_free;
	}

	peer->native_flush = rpma_device_has_flush(&attr);
	peer->native_atomic_write = rpma_device_has_atomic_write(&attr);
	peer->odp = rpma_device_has_odp(&attr);
	peer->iwarp = ibv_ctx->device->transport_type == IBV_TRANSPORT_IWARP;
	peer->attr = attr.orig_attr;
	*peer_ptr = peer;

	RPMA_LOG_INFO("flush is %s, atomic write is %s, on-demand paging is %s",
		      peer->native_flush ? "native" : "an RDMA read",
		      peer->native_atomic_write ? "native" : "an RDMA write",
		      peer->odp ? "there" : "not there");

	return 0;

err_free:
	free(peer);
	return ret;
}

int rpma_peer_delete(struct rpma_peer **peer_ptr)
{
	if (peer_ptr == NULL)
		return RPMA_E_INVAL;

	struct rpma_peer *peer = *peer_ptr;

	if (peer == NULL)
		return 0;

	int ret = ibv_dealloc_pd(peer->pd);

	if (ret) {
		RPMA_LOG_CALL("ibv_dealloc_pd()", ret);
		return RPMA_E_PROVIDER;
	}

	free(peer);
	*peer_ptr = NULL;

	return 0;
}

int rpma_peer_get_features(const struct rpma_peer *peer, uint32_t *features)
{
	if (peer == NULL || features == NULL)
		return RPMA_E_INVAL;

	*features = (peer->native_flush ? RPMA_FEATURE_NATIVE_FLUSH : 0) |
		    (peer->native_atomic_write ? RPMA_FEATURE_NATIVE_ATOMIC_WRITE : 0) |
		    (peer->odp ? RPMA_FEATURE_ODP : 0);

	return 0;
}

int rpma_peer_get_limits(const struct rpma_peer *peer, struct rpma_limits *limits)
{
	if (peer == NULL || limits == NULL)
		return RPMA_E_INVAL;

	uint64_t msg_size = UINT64_MAX;

	for (unsigned int port = 1; port <= peer->attr.phys_port_cnt; port++) {
		uint64_t size;
		int ret = rpma_device_msg_size(peer->pd->context, port, &size);

		if (ret)
			return ret;
		if (size < msg_size)
			msg_size = size;
	}

	limits->sq_size = peer->attr.max_qp_wr;
	limits->rq_size = peer->attr.max_qp_wr;
	limits->cq_size = peer->attr.max_cqe;
	limits->srq_size = peer->attr.max_srq_wr;
	limits->msg_size = msg_size;

	return 0;
}
