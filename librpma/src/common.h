/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every file here includes: the public headers and a few words.
 *
 * All is compiled with hidden visibility.  For the shared library the public declarations are made
 * visible here; in the static one they stay hidden, so that a plugin linked with it exports none.
 */
#ifndef RPMA_COMMON_H
#define RPMA_COMMON_H

#ifdef RPMA_SHARED
#pragma GCC visibility push(default)
#endif
#include "librpma.h"
#include "librpma_ext.h"
#ifdef RPMA_SHARED
#pragma GCC visibility pop
#endif

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define RPMA_INLINE static inline __attribute__((always_inline))
#define RPMA_COLD   __attribute__((cold, noinline))

/* the first error is the one to report while the rest of an object is taken down */
#define RPMA_KEEP_FIRST(ret, call)    \
	do {                          \
		int ret_ = (call);    \
		if (!(ret))           \
			(ret) = ret_; \
	} while (0)

#endif /* RPMA_COMMON_H */
