/* SPDX-License-Identifier: GPL-2.0-only */
/* What engines get from their peers: private data of either side, requests, responses. */
#include "fuzz.h"

#include "wire.h"

/* of exactly that size, so that one byte too many is seen */
static uint8_t *copy_of(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	MUST(copy);
	memcpy(copy, data, size);
	return copy;
}

static void workspace(const uint8_t *data, size_t size)
{
	struct wire_workspace ws;
	uint8_t again[WIRE_WORKSPACE_SIZE];

	if (wire_workspace_parse(data, size, &ws))
		return;
	MUST(size >= WIRE_WORKSPACE_SIZE);
	MUST(ws.descriptor_size >= WIRE_DESCRIPTOR_SIZE &&
	     ws.descriptor_size <= WIRE_DESCRIPTOR_MAX_SIZE);
	MUST(ws.direct_write_to_pmem <= 1);
	wire_workspace_pack(&ws, again);
	MUST(!memcmp(again, data, 4u + ws.descriptor_size));
}

static void request(const uint8_t *data, size_t size)
{
	struct wire_request r, back;
	uint8_t again[WIRE_REQUEST_SIZE];
	uint64_t workspace_size = 1 << 20;

	if (wire_request_parse(data, size, &r))
		return;
	MUST(size == WIRE_REQUEST_SIZE);
	wire_request_pack(&r, again);
	MUST(!wire_request_parse(again, sizeof(again), &back));
	MUST(!memcmp(&r, &back, sizeof(r)));
	if (wire_request_check(&r, workspace_size))
		return;
	MUST(r.length && r.offset < workspace_size && r.length <= workspace_size);
	MUST(r.offset + r.length <= workspace_size);
}

static void response(const uint8_t *data, size_t size)
{
	uint8_t again[WIRE_RESPONSE_SIZE];
	uint64_t context;

	if (wire_response_parse(data, size, &context))
		return;
	MUST(size == WIRE_RESPONSE_SIZE);
	wire_response_pack(context, again);
	MUST(!memcmp(again, data, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = copy_of(data, size);
	enum wire_method method = wire_hello_parse(copy, size);

	MUST(method == WIRE_METHOD_ANY || size >= WIRE_HELLO_SIZE);
	workspace(copy, size);
	request(copy, size);
	response(copy, size);
	free(copy);
	return 0;
}
