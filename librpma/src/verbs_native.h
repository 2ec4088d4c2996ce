/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Native flush (rdma-core 45 and later) and native atomic write (44 and later), behind names that
 * exist whatever headers the library is built with.  librpma/probe-verbs decides once per build.
 * Without them the feature bits are 0, so that nothing below is ever reached.
 */
#ifndef RPMA_VERBS_NATIVE_H
#define RPMA_VERBS_NATIVE_H

#include "common.h"
#include "librpma_config.h"

/* bits of device_cap_flags_ex: the kernel's (enum ib_uverbs_device_cap_flags), in no user header */
#define DEVICE_CAP_FLUSH_GLOBAL     (1ULL << 38)
#define DEVICE_CAP_FLUSH_PERSISTENT (1ULL << 39)
#define DEVICE_CAP_ATOMIC_WRITE     (1ULL << 40)

#ifdef NATIVE_FLUSH_SUPPORTED
#define RPMA_DEVICE_FLUSH            (DEVICE_CAP_FLUSH_GLOBAL | DEVICE_CAP_FLUSH_PERSISTENT)
#define RPMA_ACCESS_FLUSH_GLOBAL     IBV_ACCESS_FLUSH_GLOBAL
#define RPMA_ACCESS_FLUSH_PERSISTENT IBV_ACCESS_FLUSH_PERSISTENT
#define RPMA_QP_EX_WITH_FLUSH        IBV_QP_EX_WITH_FLUSH
#define RPMA_WR_FLUSH                IBV_WR_FLUSH

RPMA_INLINE void rpma_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len,
			       enum rpma_flush_type type)
{
	uint8_t placement =
		type == RPMA_FLUSH_TYPE_PERSISTENT ? IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL;

	/* The length on the wire has 32 bits; beyond them, all of the region. */
	uint8_t level = likely(len <= UINT32_MAX) ? IBV_FLUSH_RANGE : IBV_FLUSH_MR;

	ibv_wr_flush(qp, rkey, addr, len, placement, level);
}
#else
#define RPMA_DEVICE_FLUSH            0
#define RPMA_ACCESS_FLUSH_GLOBAL     0
#define RPMA_ACCESS_FLUSH_PERSISTENT 0
#define RPMA_QP_EX_WITH_FLUSH        0
#define RPMA_WR_FLUSH                1000 /* no opcode of verbs */

RPMA_INLINE void rpma_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len,
			       enum rpma_flush_type type)
{
	(void)qp, (void)rkey, (void)addr, (void)len, (void)type;
}
#endif

#ifdef NATIVE_ATOMIC_WRITE_SUPPORTED
#define RPMA_DEVICE_ATOMIC_WRITE     DEVICE_CAP_ATOMIC_WRITE
#define RPMA_QP_EX_WITH_ATOMIC_WRITE IBV_QP_EX_WITH_ATOMIC_WRITE
#define RPMA_WR_ATOMIC_WRITE         IBV_WR_ATOMIC_WRITE

RPMA_INLINE void rpma_wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr,
				      const void *value)
{
	ibv_wr_atomic_write(qp, rkey, addr, value);
}
#else
#define RPMA_DEVICE_ATOMIC_WRITE     0
#define RPMA_QP_EX_WITH_ATOMIC_WRITE 0
#define RPMA_WR_ATOMIC_WRITE         1001 /* no opcode of verbs */

RPMA_INLINE void rpma_wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr,
				      const void *value)
{
	(void)qp, (void)rkey, (void)addr, (void)value;
}
#endif

#endif /* RPMA_VERBS_NATIVE_H */
