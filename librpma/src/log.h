/* SPDX-License-Identifier: BSD-3-Clause */
/* Log messages: a threshold checked in place, everything else out of line. */
#ifndef RPMA_LOG_H
#define RPMA_LOG_H

#include "common.h"

extern int rpma_log_thresholds[RPMA_LOG_THRESHOLD_MAX];

RPMA_COLD __attribute__((format(printf, 5, 6))) void rpma_log_emit(enum rpma_log_level level,
								   const char *file, int line,
								   const char *function,
								   const char *format, ...);

/* the message for an errno value; providers give it with either sign */
RPMA_COLD const char *rpma_log_strerror(int err);

#define RPMA_LOG(level, ...)                                                                  \
	do {                                                                                  \
		if (unlikely((int)(level) <=                                                  \
			     __atomic_load_n(&rpma_log_thresholds[0], __ATOMIC_RELAXED)))     \
			rpma_log_emit(level, __FILE_NAME__, __LINE__, __func__, __VA_ARGS__); \
	} while (0)

#define RPMA_LOG_ERROR(...)   RPMA_LOG(RPMA_LOG_LEVEL_ERROR, __VA_ARGS__)
#define RPMA_LOG_WARNING(...) RPMA_LOG(RPMA_LOG_LEVEL_WARNING, __VA_ARGS__)
#define RPMA_LOG_NOTICE(...)  RPMA_LOG(RPMA_LOG_LEVEL_NOTICE, __VA_ARGS__)
#define RPMA_LOG_INFO(...)    RPMA_LOG(RPMA_LOG_LEVEL_INFO, __VA_ARGS__)

/* "CALL failed: reason" */
#define RPMA_LOG_CALL(call, err) RPMA_LOG_ERROR(call " failed: %s", rpma_log_strerror(err))

#endif /* RPMA_LOG_H */
