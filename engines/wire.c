/* SPDX-License-Identifier: GPL-2.0-only */
#include "wire.h"

#include <endian.h>
#include <string.h>

static const uint8_t hello_magic[4] = {'r', 'p', 'm', 'a'};
#define HELLO_VERSION 1

/* the last byte of a region descriptor: what the region may be used for (librpma.h) */
#define DESCRIPTOR_USAGE_AT 20
#define USAGE_ACCESS        (1 << 0 | 1 << 3) /* read from, written to */
#define USAGE_FLUSH         (1 << 4 | 1 << 5) /* visibility, persistence */

static void put_le16(uint8_t *out, uint16_t value)
{
	value = htole16(value);
	memcpy(out, &value, sizeof(value));
}

static uint16_t get_le16(const uint8_t *in)
{
	uint16_t value;

	memcpy(&value, in, sizeof(value));
	return le16toh(value);
}

static void put_le64(uint8_t *out, uint64_t value)
{
	value = htole64(value);
	memcpy(out, &value, sizeof(value));
}

static uint64_t get_le64(const uint8_t *in)
{
	uint64_t value;

	memcpy(&value, in, sizeof(value));
	return le64toh(value);
}

void wire_workspace_pack(const struct wire_workspace *ws, uint8_t out[WIRE_WORKSPACE_SIZE])
{
	memset(out, 0, WIRE_WORKSPACE_SIZE);
	put_le16(out, ws->slots);
	out[2] = ws->direct_write_to_pmem;
	out[3] = ws->descriptor_size;
	memcpy(out + 4, ws->descriptor, ws->descriptor_size);
}

const char *wire_workspace_parse(const void *data, size_t size, struct wire_workspace *ws)
{
	const uint8_t *in = data;

	/* rdma_cm may pad private data, so more than it should be is fine */
	if (!in || size < WIRE_WORKSPACE_SIZE)
		return "its private data is too short";
	if (in[2] > 1)
		return "its direct_write_to_pmem is neither 0 nor 1";
	if (in[3] < WIRE_DESCRIPTOR_SIZE || in[3] > WIRE_DESCRIPTOR_MAX_SIZE)
		return "the region descriptor in its private data has an impossible length";
	if ((in[4 + DESCRIPTOR_USAGE_AT] & USAGE_ACCESS) != USAGE_ACCESS ||
	    !(in[4 + DESCRIPTOR_USAGE_AT] & USAGE_FLUSH))
		return "its memory region may not be read, written and flushed";
	ws->slots = get_le16(in);
	ws->direct_write_to_pmem = in[2];
	ws->descriptor_size = in[3];
	memcpy(ws->descriptor, in + 4, sizeof(ws->descriptor));
	return NULL;
}

void wire_hello_pack(enum wire_method method, uint8_t out[WIRE_HELLO_SIZE])
{
	memset(out, 0, WIRE_HELLO_SIZE);
	memcpy(out, hello_magic, sizeof(hello_magic));
	out[4] = HELLO_VERSION;
	out[5] = (uint8_t)method;
}

enum wire_method wire_hello_parse(const void *data, size_t size)
{
	const uint8_t *in = data;

	if (!in || size < WIRE_HELLO_SIZE || memcmp(in, hello_magic, sizeof(hello_magic)) ||
	    in[4] < HELLO_VERSION)
		return WIRE_METHOD_ANY;
	return in[5] == WIRE_METHOD_APM || in[5] == WIRE_METHOD_GPSPM ? (enum wire_method)in[5]
								      : WIRE_METHOD_ANY;
}

/* a protocol buffers key: field number and wire type, 1 = 64 bits */
#define FIXED64_KEY(field) ((uint8_t)((field) << 3 | 1))
#define FIXED64_SIZE       9

static uint8_t *put_fixed64(uint8_t *out, unsigned int field, uint64_t value)
{
	out[0] = FIXED64_KEY(field);
	put_le64(out + 1, value);
	return out + FIXED64_SIZE;
}

/* fields 1 to count, each fixed64 and exactly once */
static const char *get_fixed64s(const uint8_t *in, size_t size, uint64_t *fields,
				unsigned int count)
{
	unsigned int seen = 0;

	if (!in || size != count * FIXED64_SIZE)
		return "its length is wrong";
	for (; size; size -= FIXED64_SIZE, in += FIXED64_SIZE) {
		unsigned int field = in[0] >> 3;

		if (field < 1 || field > count || in[0] != FIXED64_KEY(field))
			return "it has an unknown field";
		if (seen & 1u << field)
			return "it has a field twice";
		seen |= 1u << field;
		fields[field - 1] = get_le64(in + 1);
	}
	return NULL;
}

void wire_request_pack(const struct wire_request *request, uint8_t out[WIRE_REQUEST_SIZE])
{
	out = put_fixed64(out, 1, request->offset);
	out = put_fixed64(out, 2, request->length);
	put_fixed64(out, 3, request->op_context);
}

void wire_response_pack(uint64_t op_context, uint8_t out[WIRE_RESPONSE_SIZE])
{
	put_fixed64(out, 1, op_context);
}

const char *wire_request_parse(const void *data, size_t size, struct wire_request *request)
{
	uint64_t fields[3];
	const char *wrong = get_fixed64s(data, size, fields, 3);

	if (wrong)
		return wrong;
	request->offset = fields[0];
	request->length = fields[1];
	request->op_context = fields[2];
	return NULL;
}

const char *wire_response_parse(const void *data, size_t size, uint64_t *op_context)
{
	return get_fixed64s(data, size, op_context, 1);
}

int wire_request_is_last(const struct wire_request *request)
{
	return !request->offset && !request->length && !request->op_context;
}

const char *wire_request_check(const struct wire_request *request, uint64_t workspace_size)
{
	if (!request->length)
		return "its length is 0";
	if (request->offset >= workspace_size)
		return "it starts behind the end of the workspace";
	if (request->length > workspace_size - request->offset)
		return "it ends behind the end of the workspace";
	return NULL;
}
