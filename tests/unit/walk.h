/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Walks one function through the failure of every allocation and of every verbs and rdma_cm call
 * it makes: one run for each, until a run has none left to fail.  Then once more, with every
 * giving-up that follows the first failure failing as well.
 *
 * After each run: the answer is the documented one, the log names the call that failed, nothing is
 * left that was not there before, nothing was given up twice or too early, and the walk's own check
 * holds.
 */
#ifndef TESTS_UNIT_WALK_H
#define TESTS_UNIT_WALK_H

#include "fixture.h"

struct walk_expect {
	enum mock_call call;
	int answer; /* 0: the function succeeds all the same */
};

struct walk {
	/* What the function needs; nothing fails here. */
	void (*prepare)(void);
	/* The function, once. */
	int (*act)(void);
	/* What must hold after a failure: outputs untouched or NULL, a way to try again, ... */
	void (*check)(int answer);
	/* Gives up what act() made, after success. */
	void (*undo)(void);
	/* Gives up what prepare() made. */
	void (*finish)(void);
	/*
	 * Answers that are not the rule (allocations: RPMA_E_NOMEM, all others: RPMA_E_PROVIDER).
	 * Ends with an element of all zeroes after at least one; NULL: none.
	 */
	const struct walk_expect *expect;
	/* act() gives up what prepare() made, also when it fails */
	bool consumes;
	/* the fewest calls that must have been there to fail */
	unsigned at_least;
};

#define WALK_END                \
	{                       \
		MOCK_NO_CALL, 0 \
	}

void walk(const struct walk *walk);

#endif
