/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What client and server tell each other, byte for byte that of fio 3.37's engines.
 *
 * Every function here is pure.  What comes from the peer is untrusted: a parser accepts exactly one
 * form and says by its return value whether it got it.  Multi-byte numbers are little endian.
 */
#ifndef FIO_RPMA_WIRE_H
#define FIO_RPMA_WIRE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Private data of the accept, server to client:
 *   u16 receive slots (0: the server takes no messages), u8 direct write to PMem, u8 length of the
 *   region descriptor, 24 bytes of which the first `length` are the descriptor.
 */
#define WIRE_WORKSPACE_SIZE      28
#define WIRE_DESCRIPTOR_SIZE     21
#define WIRE_DESCRIPTOR_MAX_SIZE 24

struct wire_workspace {
	uint16_t slots;
	uint8_t direct_write_to_pmem; /* 0 or 1 */
	uint8_t descriptor_size;
	uint8_t descriptor[WIRE_DESCRIPTOR_MAX_SIZE];
};

void wire_workspace_pack(const struct wire_workspace *ws, uint8_t out[WIRE_WORKSPACE_SIZE]);

/* NULL, or what is wrong with it in words */
const char *wire_workspace_parse(const void *data, size_t size, struct wire_workspace *ws);

/*
 * Private data of the request, client to server.  fio 3.37's clients send none; ours send a hello,
 * which promises a goodbye: with APM an empty message, with GPSPM the all-zero request.  So a
 * server can tell a client that has finished from one that died. "rpma", u8 version (1), u8 method,
 * u16 zero
 */
#define WIRE_HELLO_SIZE 8

enum wire_method {
	WIRE_METHOD_ANY = 0, /* no hello: an older client */
	WIRE_METHOD_APM = 1,
	WIRE_METHOD_GPSPM = 2,
};

void wire_hello_pack(enum wire_method method, uint8_t out[WIRE_HELLO_SIZE]);

/*
 * Whatever is no hello is WIRE_METHOD_ANY: nothing depends on private data of others.  Bytes behind
 * the hello are a device's padding or a later version's, and are ignored.
 */
enum wire_method wire_hello_parse(const void *data, size_t size);

/*
 * GPSPM messages, protocol buffers (proto2) with all fields required:
 *   request:  fixed64 offset = 1, fixed64 length = 2, fixed64 op_context = 3
 *   response: fixed64 op_context = 1
 * A message slot is 512 bytes.  A request of three zeros says that the client is done.
 */
#define WIRE_SLOT_SIZE     512
#define WIRE_REQUEST_SIZE  27
#define WIRE_RESPONSE_SIZE 9

struct wire_request {
	uint64_t offset; /* bytes from the start of the workspace */
	uint64_t length; /* bytes */
	uint64_t op_context;
};

void wire_request_pack(const struct wire_request *request, uint8_t out[WIRE_REQUEST_SIZE]);
void wire_response_pack(uint64_t op_context, uint8_t out[WIRE_RESPONSE_SIZE]);

/*
 * Fields may come in any order, as protocol buffers allow.  Refused: a missing, repeated or unknown
 * field, another wire type, a field that is cut off, an empty message.
 */
const char *wire_request_parse(const void *data, size_t size, struct wire_request *request);
const char *wire_response_parse(const void *data, size_t size, uint64_t *op_context);

int wire_request_is_last(const struct wire_request *request);

/* NULL, or why [offset, offset + length) is no range of a workspace of that size */
const char *wire_request_check(const struct wire_request *request, uint64_t workspace_size);

#endif /* FIO_RPMA_WIRE_H */
