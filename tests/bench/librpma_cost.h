/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs and rdma_cm that do nothing, defined by the program itself, so that any librpma uses them.
 */
#ifndef LIBRPMA_COST_H
#define LIBRPMA_COST_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* native: the device says that it has native flush and native atomic write */
struct ibv_context *mock_device(bool native);

/* what the next polls of any CQ find */
void mock_completions(int number);

#endif /* LIBRPMA_COST_H */
