/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <string.h>

#include "walk.h"

/* whether the log has told that the call failed, by its name */
static bool told;

static void listen_to_log(enum rpma_log_level level, const char *file_name, const int line_no,
			  const char *function_name, const char *format, ...)
{
	char text[1024];
	va_list args;

	(void)file_name;
	(void)line_no;
	(void)function_name;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (level == RPMA_LOG_LEVEL_ERROR && strstr(text, mock_name(mock_failed())))
		told = true;
}

/* Lack of memory has a code of its own, and what is no fault is not logged. */
static bool must_be_told(enum mock_call failed, int answer)
{
	return failed != MOCK_NO_CALL && answer == RPMA_E_PROVIDER && failed > MOCK_mmap;
}

static int rule(enum mock_call call)
{
	return call <= MOCK_mmap ? RPMA_E_NOMEM : RPMA_E_PROVIDER;
}

static int expected(const struct walk *walk, enum mock_call call)
{
	for (const struct walk_expect *e = walk->expect; e && e->call != MOCK_NO_CALL; e++)
		if (e->call == call)
			return e->answer;
	return rule(call);
}

/* One run with the nth call failing; false if there was no nth call. */
static bool step(const struct walk *walk, unsigned nth, bool cleanup_too)
{
	enum mock_call failed;
	unsigned before;
	int answer;

	mock_reset();
	if (walk->prepare)
		walk->prepare();
	before = mock_alive();
	told = false;
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG);
	rpma_log_set_function(listen_to_log);
	mock_fail_any(nth, cleanup_too);
	answer = walk->act();
	failed = mock_failed();
	mock_fail_none();
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION);

	if (failed != MOCK_NO_CALL && answer != expected(walk, failed))
		fail_msg("call %u, %s(), failed: the answer was %d, not %d", nth, mock_name(failed),
			 answer, expected(walk, failed));
	if (failed == MOCK_NO_CALL && answer)
		fail_msg("nothing failed, yet the answer was %d", answer);
	if (must_be_told(failed, answer) && !told)
		fail_msg("call %u, %s(), failed: the log does not tell", nth, mock_name(failed));
	if (answer && walk->check)
		walk->check(answer);
	if (mock_fault())
		fail_msg("call %u, %s(), failed: %s", nth, mock_name(failed), mock_fault());
	if (answer && !walk->consumes && !mock_gives_up(failed) && mock_alive() != before)
		fail_msg("call %u, %s(), failed: %u objects before, %u after", nth,
			 mock_name(failed), before, mock_alive());
	if (!answer && walk->undo)
		walk->undo();
	if (walk->finish)
		walk->finish();
	if (mock_verdict())
		fail_msg("call %u, %s(), failed: %s", nth, mock_name(failed), mock_verdict());
	return failed != MOCK_NO_CALL;
}

void walk(const struct walk *walk)
{
	unsigned calls = 0;

	while (step(walk, calls + 1, false))
		calls++;
	if (calls < walk->at_least)
		fail_msg("%u calls could fail, at least %u should", calls, walk->at_least);
	for (unsigned nth = 1; nth <= calls; nth++)
		step(walk, nth, true);
	mock_reset();
}
