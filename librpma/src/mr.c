// SPDX-License-Identifier: BSD-3-Clause
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "mr.h"
#include "peer.h"

#define USAGE_ALL        0xff
#define USAGE_FLUSH_TYPE (RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

/* on the wire; integers are little endian */
struct mr_descriptor {
	uint64_t addr;
	uint64_t size;
	uint32_t rkey;
	uint8_t usage;
} __attribute__((packed));

_Static_assert(sizeof(struct mr_descriptor) == 21, "the descriptor is a wire format");

int rpma_mr_reg(struct rpma_peer *peer, void *ptr, size_t size, int usage,
		struct rpma_mr_local **mr_ptr)
{
	if (peer == NULL || ptr == NULL || size == 0 || mr_ptr == NULL)
		return RPMA_E_INVAL;
	if (usage == 0 || (usage & ~USAGE_ALL))
		return RPMA_E_INVAL;

	struct rpma_mr_local *mr = malloc(sizeof(*mr));

	if (mr == NULL)
		return RPMA_E_NOMEM;

	mr->mr = rpma_peer_reg_mr(peer, ptr, size, usage);
	if (mr->mr == NULL) {
		free(mr);
		return RPMA_E_PROVIDER;
	}

	mr->addr = (uintptr_t)ptr;
	mr->size = size;
	mr->lkey = mr->mr->lkey;
	mr->usage = usage;
	*mr_ptr = mr;

	return 0;
}

int rpma_mr_dereg(struct rpma_mr_local **mr_ptr)
{
	if (mr_ptr == NULL)
		return RPMA_E_INVAL;

	struct rpma_mr_local *mr = *mr_ptr;

	if (mr == NULL)
		return 0;

	int ret = ibv_dereg_mr(mr->mr);

	if (ret) {
		RPMA_LOG_CALL("ibv_dereg_mr()", ret);
		return RPMA_E_PROVIDER;
	}

	free(mr);
	*mr_ptr = NULL;

	return 0;
}

int rpma_mr_get_ptr(const struct rpma_mr_local *mr, void **ptr)
{
	if (mr == NULL || ptr == NULL)
		return RPMA_E_INVAL;

	*ptr = (void *)(uintptr_t)mr->addr;

	return 0;
}

int rpma_mr_get_size(const struct rpma_mr_local *mr, size_t *size)
{
	if (mr == NULL || size == NULL)
		return RPMA_E_INVAL;

	*size = mr->size;

	return 0;
}

int rpma_mr_get_descriptor(const struct rpma_mr_local *mr, void *desc)
{
	if (mr == NULL || desc == NULL)
		return RPMA_E_INVAL;

	struct mr_descriptor wire = {
		.addr = htole64(mr->addr),
		.size = htole64(mr->size),
		.rkey = htole32(mr->mr->rkey),
		.usage = (uint8_t)mr->usage,
	};

	memcpy(desc, &wire, sizeof(wire));

	return 0;
}

int rpma_mr_get_descriptor_size(const struct rpma_mr_local *mr, size_t *desc_size)
{
	if (mr == NULL || desc_size == NULL)
		return RPMA_E_INVAL;

	*desc_size = sizeof(struct mr_descriptor);

	return 0;
}

int rpma_mr_remote_from_descriptor(const void *desc, size_t desc_size,
				   struct rpma_mr_remote **mr_ptr)
{
	struct mr_descriptor wire;

	if (desc == NULL || mr_ptr == NULL)
		return RPMA_E_INVAL;
	if (desc_size < sizeof(wire)) {
		RPMA_LOG_ERROR("the descriptor of a memory region has %zu bytes, at least %zu are "
			       "needed",
			       desc_size, sizeof(wire));
		return RPMA_E_INVAL;
	}

	memcpy(&wire, desc, sizeof(wire));

	uint64_t addr = le64toh(wire.addr);
	uint64_t size = le64toh(wire.size);

	if (wire.usage == 0) {
		RPMA_LOG_ERROR("the descriptor of a memory region gives it no usage");
		return RPMA_E_INVAL;
	}
	if (size == 0 || size - 1 > UINT64_MAX - addr || size > SIZE_MAX) {
		RPMA_LOG_ERROR(
			"the descriptor of a memory region is out of range: address 0x%" PRIx64
			", length 0x%" PRIx64,
			addr, size);
		return RPMA_E_INVAL;
	}

	struct rpma_mr_remote *mr = malloc(sizeof(*mr));

	if (mr == NULL)
		return RPMA_E_NOMEM;

	mr->addr = addr;
	mr->size = size;
	mr->rkey = le32toh(wire.rkey);
	mr->usage = wire.usage;
	*mr_ptr = mr;

	return 0;
}

int rpma_mr_remote_get_size(const struct rpma_mr_remote *mr, size_t *size)
{
	if (mr == NULL || size == NULL)
		return RPMA_E_INVAL;

	*size = mr->size;

	return 0;
}

int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote *mr, int *flush_type)
{
	if (mr == NULL || flush_type == NULL)
		return RPMA_E_INVAL;

	*flush_type = mr->usage & USAGE_FLUSH_TYPE;

	return 0;
}

int rpma_mr_remote_delete(struct rpma_mr_remote **mr_ptr)
{
	if (mr_ptr == NULL)
		return RPMA_E_INVAL;

	free(*mr_ptr);
	*mr_ptr = NULL;

	return 0;
}

int rpma_mr_advise(struct rpma_mr_local *mr, size_t offset, size_t len, int advice, uint32_t flags)
{
	if (mr == NULL || !rpma_range_fits(mr->size, offset, len) || len > UINT32_MAX)
		return RPMA_E_INVAL;

	struct ibv_sge sge = {
		.addr = mr->addr + offset,
		.length = (uint32_t)len,
		.lkey = mr->lkey,
	};
	int ret = ibv_advise_mr(mr->mr->pd, advice, flags, &sge, 1);

	if (ret == 0)
		return 0;

	RPMA_LOG_CALL("ibv_advise_mr()", ret);
	switch (abs(ret)) {
	case EINVAL:
	case EFAULT:
		return RPMA_E_INVAL;
	case EOPNOTSUPP:
		return RPMA_E_NOSUPP;
	default:
		return RPMA_E_PROVIDER;
	}
}
