/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What client and server agree on: a log in the server's memory.  Eight bytes say how many bytes of
 * records there are; they are changed by an atomic write, after the record is in place.  Whenever
 * the power fails, the log has the new record or not, but never half of it.
 */
#include <stdint.h>

#define LOG_SIZE 4096
#define DATA_MAX (LOG_SIZE - sizeof(uint64_t))

struct log {
	uint64_t used; /* little endian */
	char data[DATA_MAX];
};
