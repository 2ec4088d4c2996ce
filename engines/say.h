/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages to the user.  They go to stderr, since fio's report owns stdout; under `fio --server`
 * they travel to the client.
 */
#ifndef FIO_RPMA_SAY_H
#define FIO_RPMA_SAY_H

#include "fio-compat.h"

/* one line: "<engine>: <job>: <message>" */
void say(struct thread_data *td, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* the same, and the job ends with an error; only the first error of a job is said */
void say_error(struct thread_data *td, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Why a call of librpma failed, in words: what librpma said about it, else what ret means.  Good
 * until the next call of librpma in this thread.
 */
const char *say_rpma_reason(int ret);

/* the errno that went with it; only of use where the call failed for one */
int say_rpma_errno(void);

/*
 * What to do about a request that could not be posted, "" if nothing is known: a device that posts
 * through the kernel is bound to the process that opened it, and a fio that ran a job as a thread
 * opened it for all that it forks later.
 */
const char *say_post_hint(void);

/* from now on librpma's messages are kept for say_rpma_reason(); with --debug=net they are shown */
void say_take_rpma_log(void);

#endif /* FIO_RPMA_SAY_H */
