/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device says about itself. */
#ifndef RPMA_DEVICE_H
#define RPMA_DEVICE_H

#include "common.h"

/* 0 or RPMA_E_PROVIDER, with the reason in the log */
int rpma_device_query(struct ibv_context *ctx, struct ibv_device_attr_ex *attr);

/* on-demand paging for writes and reads over RC, which is what registering fsdax memory needs */
bool rpma_device_has_odp(const struct ibv_device_attr_ex *attr);
bool rpma_device_has_flush(const struct ibv_device_attr_ex *attr);
bool rpma_device_has_atomic_write(const struct ibv_device_attr_ex *attr);

/* max_msg_sz of a port, ports counting from 1: 0 or RPMA_E_PROVIDER, with the reason in the log */
int rpma_device_msg_size(struct ibv_context *ctx, uint8_t port, uint64_t *msg_size);

#endif /* RPMA_DEVICE_H */
