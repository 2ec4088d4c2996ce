/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What was written and is not flushed yet, as ranges of the server's workspace.
 *
 * A write that starts where the last range ends makes that range longer; any other one starts a
 * range of its own.  So while there is room, the ranges are exactly the bytes written, in order.
 */
#ifndef FIO_RPMA_RANGES_H
#define FIO_RPMA_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct range {
	uint64_t offset; /* bytes */
	uint64_t length; /* bytes */
};

struct ranges {
	struct range *r;
	uint32_t count;
	uint32_t capacity;
};

/* capacity: at least 2; returns 0 or ENOMEM */
int ranges_init(struct ranges *ranges, uint32_t capacity);
void ranges_free(struct ranges *ranges);

/* would ranges_add() start a new range? */
static inline bool ranges_starts_new(const struct ranges *ranges, uint64_t offset)
{
	const struct range *last;

	if (!ranges->count)
		return true;
	last = &ranges->r[ranges->count - 1];
	return last->offset + last->length != offset;
}

/* there must be room for a new range, if it is one */
static inline void ranges_add(struct ranges *ranges, uint64_t offset, uint64_t length)
{
	if (ranges_starts_new(ranges, offset))
		ranges->r[ranges->count++] = (struct range){offset, length};
	else
		ranges->r[ranges->count - 1].length += length;
}

static inline bool ranges_full(const struct ranges *ranges)
{
	return ranges->count == ranges->capacity;
}

/* sorts, and joins what overlaps or touches: each byte is in one range only */
void ranges_join(struct ranges *ranges);

/*
 * Makes room: ranges_join(), and where more than half are left, joins neighbours over the gap
 * between them.  Afterwards at most half of the capacity is in use, and everything added is still
 * covered.
 */
void ranges_compact(struct ranges *ranges);

#endif /* FIO_RPMA_RANGES_H */
