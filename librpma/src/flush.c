// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <sys/mman.h>

#include "conn.h"
#include "flush.h"
#include "log.h"
#include "peer.h"

/* the kernel gives whole pages, whatever their size */
#define BUFFER_SIZE RPMA_FLUSH_READ_SIZE

int rpma_flush_buffer_new(const struct rpma_peer *peer, struct rpma_flush_buffer *buffer)
{
	if (buffer->addr)
		return 0;

	void *ptr =
		mmap(NULL, BUFFER_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (ptr == MAP_FAILED) {
		RPMA_LOG_CALL("mmap()", errno);
		return RPMA_E_NOMEM;
	}

	buffer->mr = rpma_peer_reg_mr(peer, ptr, BUFFER_SIZE, RPMA_MR_USAGE_READ_DST);
	if (buffer->mr == NULL) {
		(void)munmap(ptr, BUFFER_SIZE);
		return RPMA_E_PROVIDER;
	}

	buffer->addr = (uintptr_t)ptr;
	buffer->lkey = buffer->mr->lkey;

	return 0;
}

int rpma_flush_buffer_delete(struct rpma_flush_buffer *buffer)
{
	int ret = 0;

	if (buffer->addr == 0)
		return 0;

	int err = ibv_dereg_mr(buffer->mr);

	if (err) {
		RPMA_LOG_CALL("ibv_dereg_mr()", err);
		ret = RPMA_E_PROVIDER;
	}

	if (munmap((void *)(uintptr_t)buffer->addr, BUFFER_SIZE)) {
		RPMA_LOG_CALL("munmap()", errno);
		RPMA_KEEP_FIRST(ret, RPMA_E_INVAL);
	}
	buffer->addr = 0;

	return ret;
}

int rpma_flush_refused(const struct rpma_conn *conn, enum rpma_flush_type type)
{
	if (type == RPMA_FLUSH_TYPE_PERSISTENT &&
	    !(__atomic_load_n(&conn->flush_usage, __ATOMIC_RELAXED) &
	      RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT))
		RPMA_LOG_ERROR("no persistent flush by RDMA read: the other side has not declared "
			       "direct write to PMem, see rpma_conn_apply_remote_peer_cfg()");
	else
		RPMA_LOG_ERROR("the remote memory region is not registered for FLUSH_TYPE_%s",
			       type == RPMA_FLUSH_TYPE_PERSISTENT ? "PERSISTENT" : "VISIBILITY");

	return RPMA_E_NOSUPP;
}
