/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A memory region's descriptor from the network, and an operation on what it became: no operation
 * may reach beyond the region, whatever the descriptor says and whatever offsets are used.
 */

#include "fuzz.h"

static struct link l;

static int post(struct rpma_mr_remote *mr, unsigned op, uint64_t local_offset, uint64_t offset,
		uint64_t len, int flags)
{
	switch (op % 6) {
	case 0:
		return rpma_read(l.conn, l.local, local_offset, mr, offset, len, flags, NULL);
	case 1:
		return rpma_write(l.conn, mr, offset, l.local, local_offset, len, flags, NULL);
	case 2:
		return rpma_write_with_imm(l.conn, mr, offset, l.local, local_offset, len, flags,
					   op, NULL);
	case 3:
		return rpma_atomic_write(l.conn, mr, offset, "8 bytes", flags, NULL);
	case 4:
		return rpma_flush(l.conn, mr, offset, len, RPMA_FLUSH_TYPE_PERSISTENT, flags, NULL);
	default:
		return rpma_flush(l.conn, mr, offset, len, RPMA_FLUSH_TYPE_VISIBILITY, flags, NULL);
	}
}

/* What was posted lies within both regions. */
static void check_posted(uint64_t addr, uint64_t size, bool is_flush)
{
	const struct mock_wr *wr = &mock_seen()->wr[0];
	uint64_t begin = wr->remote_addr - addr;

	MUST(mock_seen()->wr_count == 1);
	MUST(wr->remote_addr >= addr);
	MUST(begin <= size && wr->sge.length <= size - begin);
	if (is_flush || wr->send_flags & IBV_SEND_INLINE)
		return;
	MUST(wr->sge.addr >= (uintptr_t)region);
	MUST(wr->sge.addr + wr->sge.length <= (uintptr_t)region + REGION);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct {
		uint64_t local_offset;
		uint64_t offset;
		uint64_t len;
		uint8_t op;
		uint8_t flags;
		uint8_t desc_size;
	} input;
	struct rpma_mr_remote *mr = UNTOUCHED;
	uint64_t addr, length;
	size_t desc_size, mr_size = 0;
	unsigned alive;
	void *desc;
	int ret, type = 0;

	if (!l.peer) {
		mock_reset();
		rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
		link_up(&l);
		conn_apply_direct_write(l.conn);
	}
	take(&data, &size, &input, sizeof(input));
	alive = mock_alive();
	forget_wr();

	/* exactly as large as it says, so that reading one byte beyond it is found */
	desc_size = input.desc_size % 32;
	desc = mock_alloc(desc_size ? desc_size : 1);
	take(&data, &size, desc, desc_size);
	ret = rpma_mr_remote_from_descriptor(desc, desc_size, &mr);
	if (ret) {
		MUST(ret == RPMA_E_INVAL && mr == UNTOUCHED);
		goto out;
	}
	MUST(desc_size >= 21);
	memcpy(&addr, desc, 8);
	memcpy(&length, (char *)desc + 8, 8);
	MUST(rpma_mr_remote_get_size(mr, &mr_size) == 0 && mr_size == length);
	MUST(length && addr + (length - 1) >= addr);
	MUST(rpma_mr_remote_get_flush_type(mr, &type) == 0);
	MUST(type == (((uint8_t *)desc)[20] & 0x30));

	/* half of the offsets near the end of the region */
	if (input.op & 0x80)
		input.offset = length - input.offset % 64;
	if (input.op & 0x40)
		input.len %= 64;
	ret = post(mr, input.op & 0x3f, input.local_offset % (REGION + 8), input.offset, input.len,
		   input.flags % 4);
	if (ret == 0)
		check_posted(addr, length, (input.op & 0x3f) % 6 >= 4);
	else
		MUST(mock_seen()->wr_count == 0);
	MUST(rpma_mr_remote_delete(&mr) == 0 && !mr);
out:
	mock_free(desc);
	must_be_clean(alive);
	return 0;
}
