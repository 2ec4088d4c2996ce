/* SPDX-License-Identifier: GPL-2.0-only */
#include "say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <librpma.h>

#define LINE_SIZE 512

/* librpma has one log function for the whole process; each thread keeps its own last message */
static __thread char rpma_reason[LINE_SIZE];
static __thread int rpma_errno;

static void say_va(struct thread_data *td, const char *format, va_list args)
{
	char line[LINE_SIZE];

	vsnprintf(line, sizeof(line), format, args);
	log_err("%s: %s: %s\n", td->io_ops->name, td->o.name ? td->o.name : "job", line);
}

void say(struct thread_data *td, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_va(td, format, args);
	va_end(args);
}

void say_error(struct thread_data *td, int error, const char *format, ...)
{
	va_list args;

	if (td->error)
		return;
	va_start(args, format);
	say_va(td, format, args);
	va_end(args);
	td_vmsg(td, error, strerror(error), td->io_ops->name);
}

const char *say_rpma_reason(int ret)
{
	return rpma_reason[0] ? rpma_reason : rpma_err_2str(ret);
}

int say_rpma_errno(void)
{
	return rpma_errno;
}

const char *say_post_hint(void)
{
	if (rpma_errno != EACCES)
		return "";
	return ": an earlier job with thread=1 used the device in this fio, and the kernel refuses "
	       "it to processes; give all jobs thread=1, or put those without first";
}

__attribute__((format(printf, 5, 6))) static void
keep_message(enum rpma_log_level level, const char *file_name, const int line_no,
	     const char *function_name, const char *format, ...)
{
	int error = errno;
	va_list args;
	char line[LINE_SIZE];

	(void)file_name;
	(void)line_no;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	line[strcspn(line, "\n")] = '\0';
	if (level <= RPMA_LOG_LEVEL_WARNING) {
		snprintf(rpma_reason, sizeof(rpma_reason), "%s", line);
		rpma_errno = error;
	}
#ifdef FIO_INC_DEBUG
	if (fio_debug & 1UL << FD_NET)
		log_err("librpma: %s: %s\n", function_name ? function_name : "", line);
#else
	(void)function_name;
#endif
}

void say_take_rpma_log(void)
{
	rpma_log_set_function(keep_message);
	rpma_reason[0] = '\0';
	rpma_errno = 0;
}
