/* SPDX-License-Identifier: GPL-2.0-only */
#include "ranges.h"

#include <errno.h>
#include <stdlib.h>

int ranges_init(struct ranges *ranges, uint32_t capacity)
{
	ranges->r = calloc(capacity, sizeof(*ranges->r));
	ranges->count = 0;
	ranges->capacity = capacity;
	return ranges->r ? 0 : ENOMEM;
}

void ranges_free(struct ranges *ranges)
{
	free(ranges->r);
	*ranges = (struct ranges){0};
}

static int by_offset(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static void cover(struct range *into, const struct range *other)
{
	uint64_t end = other->offset + other->length;

	if (end > into->offset + into->length)
		into->length = end - into->offset;
}

void ranges_join(struct ranges *ranges)
{
	struct range *r = ranges->r;
	uint32_t n = 0;

	if (ranges->count < 2)
		return;
	qsort(r, ranges->count, sizeof(*r), by_offset);
	for (uint32_t i = 1; i < ranges->count; i++) {
		if (r[i].offset <= r[n].offset + r[n].length)
			cover(&r[n], &r[i]);
		else
			r[++n] = r[i];
	}
	ranges->count = n + 1;
}

void ranges_compact(struct ranges *ranges)
{
	struct range *r = ranges->r;
	uint32_t n;

	ranges_join(ranges);
	if (ranges->count <= ranges->capacity / 2)
		return;

	for (n = 0; 2 * n < ranges->count; n++) {
		r[n] = r[2 * n];
		if (2 * n + 1 < ranges->count)
			cover(&r[n], &r[2 * n + 1]);
	}
	ranges->count = n;
}
