/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The engines' job options.  fio fills one of these structures per job (td->eo).
 */
#ifndef FIO_RPMA_OPTIONS_H
#define FIO_RPMA_OPTIONS_H

#include "fio-compat.h"

enum flush_how {
	FLUSH_AUTO,
	FLUSH_NATIVE,
	FLUSH_READ,
};

enum flush_when {
	FLUSH_ON_WRITE, /* sync=1: after each write; else once per submitted batch */
	FLUSH_ON_SYNC,  /* at fio's sync points, and at the end of the job */
	FLUSH_NEVER,
};

/* what all four engines have; the first member is fio's own (it puts a pointer there) */
struct common_options {
	void *pad;
	char *server_ip;
	char *port;
	unsigned int direct_write_to_pmem;
	unsigned int busy_wait_polling;
	/* size= as the job has it: fio changes its own copy while it sets up files */
	unsigned long long job_size;
	bool job_size_known;
};

struct client_options {
	struct common_options common;
	unsigned int flush_how;
	unsigned int flush_when;
	unsigned int connect_timeout; /* milliseconds */
};

struct server_options {
	struct common_options common;
	unsigned int clients; /* 0: no limit */
	unsigned int clients_at_once;
	unsigned int hugepage;
};

extern struct fio_option client_options[];
extern struct fio_option server_options[];

#define PORT_STR_SIZE 6

/* the port of this job thread: port= + thread number - 1.  Returns 0, or EINVAL after saying why.
 */
int options_port(struct thread_data *td, char port[PORT_STR_SIZE]);

/* size= as in the job file, 0 where it has none, however often fio has set up files since */
unsigned long long options_job_size(struct thread_data *td);

#endif /* FIO_RPMA_OPTIONS_H */
