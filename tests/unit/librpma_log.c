/* SPDX-License-Identifier: BSD-3-Clause */
/* The log: thresholds, a user's function, the default one */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "walk.h"

/* what reached syslog(3); the linker leads the library's calls here (--wrap) */
static struct {
	unsigned count;
	int priority;
	char text[2048];
} syslogged;

void __wrap_syslog(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));
void __wrap___syslog_chk(int priority, int flag, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void take(int priority, const char *format, va_list args)
{
	syslogged.count++;
	syslogged.priority = priority;
	vsnprintf(syslogged.text, sizeof(syslogged.text), format, args);
}

void __wrap_syslog(int priority, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	take(priority, format, args);
	va_end(args);
}

void __wrap___syslog_chk(int priority, int flag, const char *format, ...)
{
	va_list args;

	(void)flag;
	va_start(args, format);
	take(priority, format, args);
	va_end(args);
}

/* what reached the user's function */
static struct {
	unsigned count;
	enum rpma_log_level level;
	char file[64];
	int line;
	char function[64];
	char text[2048];
} logged;

static void log_here(enum rpma_log_level level, const char *file_name, const int line_no,
		     const char *function_name, const char *format, ...)
{
	va_list args;

	logged.count++;
	logged.level = level;
	logged.line = line_no;
	snprintf(logged.file, sizeof(logged.file), "%s", file_name ? file_name : "");
	snprintf(logged.function, sizeof(logged.function), "%s",
		 function_name ? function_name : "");
	va_start(args, format);
	vsnprintf(logged.text, sizeof(logged.text), format, args);
	va_end(args);
	errno = ENOTTY; /* whatever it does to errno must not change what the library sees */
}

/* Makes the library log an error. */
static void provoke_error(void)
{
	struct rpma_mr_remote *mr = NULL;

	assert_error(rpma_mr_remote_from_descriptor("", 0, &mr), RPMA_E_INVAL);
}

static void set(enum rpma_log_threshold threshold, enum rpma_log_level level)
{
	assert_ok(rpma_log_set_threshold(threshold, level));
}

static int log_setup(void **state)
{
	memset(&logged, 0, sizeof(logged));
	memset(&syslogged, 0, sizeof(syslogged));
	return unit_setup(state);
}

static int log_teardown(void **state)
{
	rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED);
	return unit_teardown(state);
}

/* Must be the first: nothing has set them yet. */
static void rpma_log_get_threshold__defaults_are_WARNING_and_DISABLED(void **state)
{
	enum rpma_log_level level = RPMA_LOG_LEVEL_FATAL;

	(void)state;
	assert_ok(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level));
	assert_int_equal(level, RPMA_LOG_LEVEL_WARNING);
	assert_ok(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_AUX, &level));
	assert_int_equal(level, RPMA_LOG_DISABLED);
}

static void rpma_log_get_threshold__unknown_threshold__E_INVAL(void **state)
{
	enum rpma_log_level level = RPMA_LOG_LEVEL_FATAL;

	(void)state;
	assert_error(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_MAX, &level), RPMA_E_INVAL);
	assert_error(rpma_log_get_threshold((enum rpma_log_threshold) - 1, &level), RPMA_E_INVAL);
	assert_int_equal(level, RPMA_LOG_LEVEL_FATAL);
}

static void rpma_log_get_threshold__level_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, NULL), RPMA_E_INVAL);
}

static void rpma_log_set_threshold__unknown_threshold__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_MAX, RPMA_LOG_LEVEL_INFO),
		     RPMA_E_INVAL);
	assert_error(rpma_log_set_threshold((enum rpma_log_threshold) - 1, RPMA_LOG_LEVEL_INFO),
		     RPMA_E_INVAL);
}

static void rpma_log_set_threshold__unknown_level__E_INVAL(void **state)
{
	enum rpma_log_level level;

	(void)state;
	set(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_NOTICE);
	assert_error(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED - 1),
		     RPMA_E_INVAL);
	assert_error(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG + 1),
		     RPMA_E_INVAL);
	assert_ok(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level));
	assert_int_equal(level, RPMA_LOG_LEVEL_NOTICE);
}

static void rpma_log_set_threshold__every_level_is_what_get_gives(void **state)
{
	(void)state;
	for (int level = RPMA_LOG_DISABLED; level <= RPMA_LOG_LEVEL_DEBUG; level++) {
		enum rpma_log_level got, other;

		set(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_INFO);
		set(RPMA_LOG_THRESHOLD, level);
		assert_ok(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &got));
		assert_ok(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_AUX, &other));
		assert_int_equal(got, level);
		assert_int_equal(other, RPMA_LOG_LEVEL_INFO);
	}
}

static void rpma_log_set_threshold__nothing_above_it_is_logged(void **state)
{
	(void)state;
	assert_ok(rpma_log_set_function(log_here));
	set(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_FATAL);
	provoke_error();
	assert_int_equal(logged.count, 0);
	set(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	provoke_error();
	assert_int_equal(logged.count, 0);
	set(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR);
	provoke_error();
	assert_int_equal(logged.count, 1);
}

static void rpma_log_set_function__gets_level_place_and_text(void **state)
{
	(void)state;
	assert_ok(rpma_log_set_function(log_here));
	set(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG);
	provoke_error();
	assert_int_equal(logged.count, 1);
	assert_int_equal(logged.level, RPMA_LOG_LEVEL_ERROR);
	assert_string_equal(logged.file, "mr.c");
	assert_string_equal(logged.function, "rpma_mr_remote_from_descriptor");
	assert_true(logged.line > 0);
	assert_non_null(strstr(logged.text, "21"));
	assert_null(strchr(logged.text, '\n'));
	assert_int_equal(syslogged.count, 0);
}

static void rpma_log_set_function__NULL_is_the_default_function(void **state)
{
	(void)state;
	set(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR);
	assert_ok(rpma_log_set_function(log_here));
	assert_ok(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION));
	provoke_error();
	assert_int_equal(logged.count, 0);
	assert_int_equal(syslogged.count, 1);
}

/* The caller's errno is the caller's: a failed call still tells why after it was logged. */
static void rpma_log_set_function__cannot_change_errno(void **state)
{
	struct rpma_peer *peer = UNTOUCHED;

	(void)state;
	set(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG);
	assert_ok(rpma_log_set_function(log_here));
	mock_fail(MOCK_ibv_alloc_pd, 1, ENOMEM);
	assert_error(rpma_peer_new(mock_context(), &peer), RPMA_E_NOMEM);
	assert_true(logged.count > 0);
	assert_int_equal(errno, ENOMEM);
}

static void rpma_log_set_function__is_told_why_verbs_failed(void **state)
{
	struct rpma_peer *peer = UNTOUCHED;

	(void)state;
	set(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR);
	assert_ok(rpma_log_set_function(log_here));
	mock_fail(MOCK_ibv_alloc_pd, 1, EMFILE);
	assert_error(rpma_peer_new(mock_context(), &peer), RPMA_E_PROVIDER);
	assert_non_null(strstr(logged.text, "ibv_alloc_pd"));
	assert_non_null(strstr(logged.text, strerror(EMFILE)));
}

/* What was written to stderr while do_it() ran. */
static size_t stderr_of(void (*do_it)(void), char *text, size_t size)
{
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t got;

	assert_non_null(file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	do_it();
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	got = fread(text, 1, size - 1, file);
	text[got] = '\0';
	fclose(file);
	return got;
}

static void rpma_log_set_threshold__the_default_function_writes_to_syslog_alone(void **state)
{
	char text[1024];

	(void)state;
	set(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR);
	assert_int_equal(stderr_of(provoke_error, text, sizeof(text)), 0);
	assert_int_equal(syslogged.count, 1);
	assert_int_equal(syslogged.priority & LOG_PRIMASK, LOG_ERR);
	assert_non_null(strstr(syslogged.text, "mr.c"));
}

static void rpma_log_set_threshold__AUX_adds_stderr(void **state)
{
	char text[1024];

	(void)state;
	set(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR);
	set(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_ERROR);
	assert_true(stderr_of(provoke_error, text, sizeof(text)) > 0);
	assert_int_equal(syslogged.count, 1);
	assert_non_null(strstr(text, "mr.c"));
	/* one message, one line */
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	set(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_FATAL);
	assert_int_equal(stderr_of(provoke_error, text, sizeof(text)), 0);
}

static void rpma_log_set_threshold__AUX_adds_nothing_above_the_main_one(void **state)
{
	char text[1024];

	(void)state;
	set(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_FATAL);
	set(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_DEBUG);
	assert_int_equal(stderr_of(provoke_error, text, sizeof(text)), 0);
	assert_int_equal(syslogged.count, 0);
}

#undef RPMA_TEST
#define RPMA_TEST(name) cmocka_unit_test_setup_teardown(name, log_setup, log_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_log_get_threshold__unknown_threshold__E_INVAL),
		RPMA_TEST(rpma_log_get_threshold__level_is_NULL__E_INVAL),
		RPMA_TEST(rpma_log_set_threshold__unknown_threshold__E_INVAL),
		RPMA_TEST(rpma_log_set_threshold__unknown_level__E_INVAL),
		RPMA_TEST(rpma_log_set_threshold__every_level_is_what_get_gives),
		RPMA_TEST(rpma_log_set_threshold__nothing_above_it_is_logged),
		RPMA_TEST(rpma_log_set_function__gets_level_place_and_text),
		RPMA_TEST(rpma_log_set_function__NULL_is_the_default_function),
		RPMA_TEST(rpma_log_set_function__cannot_change_errno),
		RPMA_TEST(rpma_log_set_function__is_told_why_verbs_failed),
		RPMA_TEST(rpma_log_set_threshold__the_default_function_writes_to_syslog_alone),
		RPMA_TEST(rpma_log_set_threshold__AUX_adds_stderr),
		RPMA_TEST(rpma_log_set_threshold__AUX_adds_nothing_above_the_main_one),
	};
	/* before a set-up touches the thresholds */
	const struct CMUnitTest defaults[] = {
		cmocka_unit_test(rpma_log_get_threshold__defaults_are_WARNING_and_DISABLED),
	};
	int failed = cmocka_run_group_tests_name("log defaults", defaults, NULL, NULL);

	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
