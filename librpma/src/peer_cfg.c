// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>

#include "log.h"
#include "peer_cfg.h"

/* on the wire: one byte, 0 or 1 */
#define DESCRIPTOR_SIZE 1

int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr)
{
	if (pcfg_ptr == NULL)
		return RPMA_E_INVAL;

	struct rpma_peer_cfg *pcfg = calloc(1, sizeof(*pcfg));

	if (pcfg == NULL)
		return RPMA_E_NOMEM;

	*pcfg_ptr = pcfg;

	return 0;
}

int rpma_peer_cfg_delete(struct rpma_peer_cfg **pcfg_ptr)
{
	if (pcfg_ptr == NULL)
		return RPMA_E_INVAL;

	free(*pcfg_ptr);
	*pcfg_ptr = NULL;

	return 0;
}

int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg *pcfg, bool supported)
{
	if (pcfg == NULL)
		return RPMA_E_INVAL;

	pcfg->direct_write_to_pmem = supported;

	return 0;
}

int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg *pcfg, bool *supported)
{
	if (pcfg == NULL || supported == NULL)
		return RPMA_E_INVAL;

	*supported = pcfg->direct_write_to_pmem;

	return 0;
}

int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg *pcfg, void *desc)
{
	if (pcfg == NULL || desc == NULL)
		return RPMA_E_INVAL;

	*(uint8_t *)desc = pcfg->direct_write_to_pmem;

	return 0;
}

int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg *pcfg, size_t *desc_size)
{
	if (pcfg == NULL || desc_size == NULL)
		return RPMA_E_INVAL;

	*desc_size = DESCRIPTOR_SIZE;

	return 0;
}

int rpma_peer_cfg_from_descriptor(const void *desc, size_t desc_size,
				  struct rpma_peer_cfg **pcfg_ptr)
{
	if (desc == NULL || pcfg_ptr == NULL)
		return RPMA_E_INVAL;
	if (desc_size < DESCRIPTOR_SIZE) {
		RPMA_LOG_ERROR("the descriptor of a peer configuration has %zu bytes, at least %d "
			       "is needed",
			       desc_size, DESCRIPTOR_SIZE);
		return RPMA_E_INVAL;
	}

	uint8_t value = *(const uint8_t *)desc;

	if (value > 1) {
		RPMA_LOG_ERROR("the descriptor of a peer configuration holds %u, 0 or 1 is known",
			       value);
		return RPMA_E_INVAL;
	}

	struct rpma_peer_cfg *pcfg = malloc(sizeof(*pcfg));

	if (pcfg == NULL)
		return RPMA_E_NOMEM;

	pcfg->direct_write_to_pmem = value;
	*pcfg_ptr = pcfg;

	return 0;
}
