/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPMA_PEER_CFG_H
#define RPMA_PEER_CFG_H

#include "common.h"

struct rpma_peer_cfg {
	bool direct_write_to_pmem;
};

#endif /* RPMA_PEER_CFG_H */
