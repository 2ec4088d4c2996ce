// SPDX-License-Identifier: BSD-3-Clause
/*
 * peer HOST PORT STEP...  plays one side of a connection, step by step, and says on stdout what
 * it saw.  Bytes are given and shown in hexadecimal.
 *
 *   connect[=HEX]        connect, with private data     -> connected HEX | refused EVENT
 *   listen, get          wait for a connection request  -> listening, request HEX
 *   accept=HEX           accept it with that private data
 *   accept=SLOTS,SIZE    accept it, offering SIZE bytes of memory and that many message slots
 *   reject[=HEX]         refuse it
 *   send=HEX             send a message                 -> sent STATUS
 *   recv                 wait for a message             -> message HEX | ended
 *   answer[=SHIFT[,N]]   recv, and answer as a GPSPM server would, op_context + SHIFT (only N
 *                        times); repeated until the connection ends or an all-zero request came
 *   write=OFFSET,LENGTH  RDMA write (or read=) to the other side's region -> wrote STATUS
 *   write-imm=OFFSET,LENGTH  write with immediate data, which takes a receive there
 *   wait                 until the other side ends the connection         -> ended
 *   close                disconnect
 *   vanish               exit at once, telling nobody
 *
 * Without close or vanish the connection is torn down at the end of the steps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include "link.h"

enum {
	DESCRIPTOR_AT = 4, /* in the private data: slots (2), direct write (1), size (1), then it */
	DESCRIPTOR_SIZE = 21,
	PRIVATE_SIZE = 28,
	REQUEST_CONTEXT_AT = 19, /* tag and 8 bytes each: offset, length, then op_context */
	REQUEST_SIZE = 27,
	RESPONSE_SIZE = 9,
	USAGE_WRITE_DST = 1 << 3,
	USAGE_READ_SRC = 1 << 0,
	USAGE_FLUSH_VISIBILITY = 1 << 4,
};

static void say(const char *word, const uint8_t *data, size_t size)
{
	printf("%s ", word);
	for (size_t i = 0; i < size; i++)
		printf("%02x", data[i]);
	printf("\n");
	fflush(stdout);
}

static size_t from_hex(const char *hex, uint8_t *data, size_t room)
{
	size_t size = 0;
	unsigned int byte;

	for (; hex && hex[0] && hex[1]; hex += 2) {
		if (size == room || sscanf(hex, "%2x", &byte) != 1)
			die("bad or too many bytes: %s", hex);
		data[size++] = (uint8_t)byte;
	}
	return size;
}

static uint64_t little_endian(const uint8_t *at, size_t bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | at[bytes];
	return value;
}

static void put_little_endian(uint8_t *at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++, value >>= 8)
		at[i] = (uint8_t)value;
}

/* The private data of a well-behaved server that has this much memory and so many slots. */
static size_t honest_offer(struct link *l, const char *text, uint8_t *data)
{
	unsigned int slots;
	unsigned long long size;

	if (sscanf(text, "%u,%llu", &slots, &size) != 2)
		die("accept=SLOTS,SIZE: %s", text);
	memset(data, 0, PRIVATE_SIZE);
	put_little_endian(data, slots, 2);
	data[3] = DESCRIPTOR_SIZE;
	put_little_endian(data + DESCRIPTOR_AT, (uintptr_t)link_region(l), 8);
	put_little_endian(data + DESCRIPTOR_AT + 8, size, 8);
	put_little_endian(data + DESCRIPTOR_AT + 16, l->mr->rkey, 4);
	data[DESCRIPTOR_AT + 20] = USAGE_READ_SRC | USAGE_WRITE_DST | USAGE_FLUSH_VISIBILITY;
	return PRIVATE_SIZE;
}

static void step_accept(struct link *l, const char *arg)
{
	uint8_t data[256] = {0};
	size_t size = strchr(arg, ',') ? honest_offer(l, arg, data) : from_hex(arg, data, 196);
	int event = link_accept(l, data, size);

	if (event)
		printf("refused %s\n", rdma_event_str(event));
	else
		printf("accepted\n");
	fflush(stdout);
}

static void step_connect(struct link *l, const char *host, const char *port, const char *arg)
{
	uint8_t data[256];
	size_t size = from_hex(arg, data, 56);
	int event = link_connect(l, host, port, size ? data : NULL, size);

	if (event) {
		printf("refused %s\n", rdma_event_str(event));
		exit(0);
	}
	say("connected", l->private_data, l->private_size);
}

static void step_send(struct link *l, const char *arg)
{
	uint8_t data[4096];
	size_t size = from_hex(arg, data, sizeof(data));

	printf("sent %s\n", ibv_wc_status_str(link_send(l, data, size)));
	fflush(stdout);
}

/* Returns 0 when there is no more to receive. */
static int step_recv(struct link *l, uint8_t *data)
{
	int size = link_recv(l, data);

	if (size < 0) {
		printf("ended\n");
		fflush(stdout);
		return 0;
	}
	say("message", data, (size_t)size);
	return size;
}

static void step_answer(struct link *l, const char *arg)
{
	static const uint8_t done[8];
	const char *comma = arg ? strchr(arg, ',') : NULL;
	uint64_t shift = arg ? strtoull(arg, NULL, 0) : 0;
	uint64_t answers = comma ? strtoull(comma + 1, NULL, 0) : UINT64_MAX;
	uint8_t request[LINK_SLOT_SIZE], response[RESPONSE_SIZE] = {0x09};
	int size;

	while ((size = step_recv(l, request)) == REQUEST_SIZE) {
		uint64_t context = little_endian(request + REQUEST_CONTEXT_AT, 8);

		if (!memcmp(request + 1, done, 8) && !memcmp(request + 10, done, 8) &&
		    !memcmp(request + REQUEST_CONTEXT_AT, done, 8))
			return;
		if (!answers)
			continue;
		answers--;
		put_little_endian(response + 1, context + shift, 8);
		if (link_send(l, response, sizeof(response)) != IBV_WC_SUCCESS)
			return;
	}
}

static void step_rdma(struct link *l, enum ibv_wr_opcode opcode, const char *arg)
{
	long long offset;
	size_t size;
	uint64_t base = little_endian(l->private_data + DESCRIPTOR_AT, 8);
	uint32_t rkey = (uint32_t)little_endian(l->private_data + DESCRIPTOR_AT + 16, 4);

	if (sscanf(arg, "%lld,%zu", &offset, &size) != 2)
		die("OFFSET,LENGTH: %s", arg);
	printf("%s %s\n", opcode == IBV_WR_RDMA_READ ? "read" : "wrote",
	       ibv_wc_status_str(link_rdma(l, opcode, base + (uint64_t)offset, rkey, size)));
	fflush(stdout);
}

static void step(struct link *l, const char *host, const char *port, char *text)
{
	char *arg = strchr(text, '=');
	uint8_t data[LINK_SLOT_SIZE];

	if (arg)
		*arg++ = '\0';
	if (!strcmp(text, "connect")) {
		step_connect(l, host, port, arg);
	} else if (!strcmp(text, "listen")) {
		link_listen(l, host, port);
		say("listening", NULL, 0);
	} else if (!strcmp(text, "get")) {
		link_get_request(l);
		say("request", l->private_data, l->private_size);
	} else if (!strcmp(text, "accept") && arg) {
		step_accept(l, arg);
	} else if (!strcmp(text, "reject")) {
		link_reject(l, data, from_hex(arg, data, 128));
	} else if (!strcmp(text, "send")) {
		step_send(l, arg);
	} else if (!strcmp(text, "recv")) {
		step_recv(l, data);
	} else if (!strcmp(text, "answer")) {
		step_answer(l, arg);
	} else if (!strcmp(text, "write") && arg) {
		step_rdma(l, IBV_WR_RDMA_WRITE, arg);
	} else if (!strcmp(text, "write-imm") && arg) {
		step_rdma(l, IBV_WR_RDMA_WRITE_WITH_IMM, arg);
	} else if (!strcmp(text, "read") && arg) {
		step_rdma(l, IBV_WR_RDMA_READ, arg);
	} else if (!strcmp(text, "wait")) {
		link_wait_end(l);
		printf("ended\n");
		fflush(stdout);
	} else if (!strcmp(text, "close")) {
		rdma_disconnect(l->id);
	} else if (!strcmp(text, "vanish")) {
		_exit(0);
	} else {
		die("no such step: %s", text);
	}
}

int main(int argc, char **argv)
{
	struct link link;

	if (argc < 4) {
		fprintf(stderr, "usage: peer HOST PORT STEP...\n");
		return 2;
	}
	link_open(&link);
	for (int i = 3; i < argc; i++)
		step(&link, argv[1], argv[2], argv[i]);
	link_close(&link);
	return 0;
}
