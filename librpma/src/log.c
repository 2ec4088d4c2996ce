// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "log.h"

#define MESSAGE_SIZE 1024

int rpma_log_thresholds[RPMA_LOG_THRESHOLD_MAX] = {
	[RPMA_LOG_THRESHOLD] = RPMA_LOG_LEVEL_WARNING,
	[RPMA_LOG_THRESHOLD_AUX] = RPMA_LOG_DISABLED,
};

/* NULL: write_default() */
static rpma_log_function *log_function;

static const struct {
	const char *name;
	int priority;
} levels[] = {
	[RPMA_LOG_LEVEL_FATAL] = {"fatal", LOG_CRIT},
	[RPMA_LOG_LEVEL_ERROR] = {"error", LOG_ERR},
	[RPMA_LOG_LEVEL_WARNING] = {"warning", LOG_WARNING},
	[RPMA_LOG_LEVEL_NOTICE] = {"notice", LOG_NOTICE},
	[RPMA_LOG_LEVEL_INFO] = {"info", LOG_INFO},
	[RPMA_LOG_LEVEL_DEBUG] = {"debug", LOG_DEBUG},
};

static void write_default(enum rpma_log_level level, const char *file, int line,
			  const char *function, const char *message)
{
	int aux = __atomic_load_n(&rpma_log_thresholds[RPMA_LOG_THRESHOLD_AUX], __ATOMIC_RELAXED);

	/* No openlog(): the program's own ident and options are not ours to change. */
	syslog(LOG_USER | levels[level].priority, "librpma %s: %s (%s:%d %s)", levels[level].name,
	       message, file, line, function);

	if ((int)level <= aux)
		fprintf(stderr, "librpma %s: %s (%s:%d %s)\n", levels[level].name, message, file,
			line, function);
}

void rpma_log_emit(enum rpma_log_level level, const char *file, int line, const char *function,
		   const char *format, ...)
{
	rpma_log_function *user = __atomic_load_n(&log_function, __ATOMIC_ACQUIRE);
	int saved_errno = errno;
	char message[MESSAGE_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);

	if (user)
		user(level, file, line, function, "%s", message);
	else
		write_default(level, file, line, function, message);

	errno = saved_errno;
}

const char *rpma_log_strerror(int err)
{
	return strerror(err < 0 ? -err : err);
}

int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level)
{
	if (threshold != RPMA_LOG_THRESHOLD && threshold != RPMA_LOG_THRESHOLD_AUX)
		return RPMA_E_INVAL;
	if ((int)level < RPMA_LOG_DISABLED || (int)level > RPMA_LOG_LEVEL_DEBUG)
		return RPMA_E_INVAL;

	__atomic_store_n(&rpma_log_thresholds[threshold], (int)level, __ATOMIC_RELAXED);

	return 0;
}

int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level *level)
{
	if (threshold != RPMA_LOG_THRESHOLD && threshold != RPMA_LOG_THRESHOLD_AUX)
		return RPMA_E_INVAL;
	if (level == NULL)
		return RPMA_E_INVAL;

	*level = (enum rpma_log_level)__atomic_load_n(&rpma_log_thresholds[threshold],
						      __ATOMIC_RELAXED);

	return 0;
}

int rpma_log_set_function(rpma_log_function *function)
{
	__atomic_store_n(&log_function, function, __ATOMIC_RELEASE);

	return 0;
}
