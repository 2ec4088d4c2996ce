/* SPDX-License-Identifier: GPL-2.0-only */
#include "options.h"

#include <errno.h>
#include <stdlib.h>

#include "say.h"

#define COMMON(member) offsetof(struct common_options, member)
#define CLIENT(member) offsetof(struct client_options, member)
#define SERVER(member) offsetof(struct server_options, member)

/* clang-format off */
#define OPT_END { .name = NULL }

#define OPT_COMMON \
	{ \
		.name = "serverip", \
		.lname = "Address of the server", \
		.type = FIO_OPT_STR_STORE, \
		.off1 = COMMON(server_ip), \
		.help = "IP address that the server listens on; its RDMA device is the one used", \
		.def = "", \
		.category = FIO_OPT_C_ENGINE, \
		.group = COMPAT_OPT_GROUP, \
	}, { \
		.name = "port", \
		.lname = "Base port of the server", \
		.type = FIO_OPT_STR_STORE, \
		.off1 = COMMON(port), \
		.help = "Port that the server listens on; job thread n uses port + n - 1", \
		.def = "7204", \
		.category = FIO_OPT_C_ENGINE, \
		.group = COMPAT_OPT_GROUP, \
	}, { \
		.name = "direct_write_to_pmem", \
		.lname = "Direct write to persistent memory", \
		.type = FIO_OPT_BOOL, \
		.off1 = COMMON(direct_write_to_pmem), \
		.help = "Server: set to 1 only where RDMA writes go past the CPU caches to persistent " \
			"memory, so that a read-based flush makes them durable", \
		.def = "", \
		.category = FIO_OPT_C_ENGINE, \
		.group = COMPAT_OPT_GROUP, \
	}, { \
		.name = "busy_wait_polling", \
		.lname = "Poll for completions", \
		.type = FIO_OPT_BOOL, \
		.off1 = COMMON(busy_wait_polling), \
		.help = "1: poll for completions, the fastest; 0: sleep until one comes, which leaves " \
			"the CPU to others", \
		.def = "1", \
		.category = FIO_OPT_C_ENGINE, \
		.group = COMPAT_OPT_GROUP, \
	}

#define OPT_FLUSH_MODE \
	{ \
		.name = "flush_mode", \
		.lname = "How to flush", \
		.type = FIO_OPT_STR, \
		.off1 = CLIENT(flush_how), \
		.help = "How written data is flushed (APM; with GPSPM the server flushes)", \
		.def = "auto", \
		.posval = { \
			{ .ival = "auto", .oval = FLUSH_AUTO, \
			  .help = "native where the RDMA device has it, else read", }, \
			{ .ival = "native", .oval = FLUSH_NATIVE, \
			  .help = "the RDMA flush operation", }, \
			{ .ival = "read", .oval = FLUSH_READ, \
			  .help = "an 8-byte RDMA read behind the writes", }, \
		}, \
		.category = FIO_OPT_C_ENGINE, \
		.group = COMPAT_OPT_GROUP, \
	}

#define OPT_CLIENT \
	{ \
		.name = "flush_when", \
		.lname = "When to flush", \
		.type = FIO_OPT_STR, \
		.off1 = CLIENT(flush_when), \
		.help = "When written data is flushed", \
		.def = "write", \
		.posval = { \
			{ .ival = "write", .oval = FLUSH_ON_WRITE, \
			  .help = "after each write (sync=1) or each submitted batch (sync=0)", }, \
			{ .ival = "sync", .oval = FLUSH_ON_SYNC, \
			  .help = "at fsync= and fdatasync= points and at the end of the job only", }, \
			{ .ival = "never", .oval = FLUSH_NEVER, \
			  .help = "never: the floor to compare with, nothing is durable", }, \
		}, \
		.category = FIO_OPT_C_ENGINE, \
		.group = COMPAT_OPT_GROUP, \
	}, { \
		.name = "connect_timeout", \
		.lname = "Time to reach the server", \
		.type = FIO_OPT_INT, \
		.off1 = CLIENT(connect_timeout), \
		.help = "How long to try to reach the server, in milliseconds", \
		.def = "8000", \
		.minval = 1, \
		.maxval = 3600000, \
		.category = FIO_OPT_C_ENGINE, \
		.group = COMPAT_OPT_GROUP, \
	}

struct fio_option client_options[] = { OPT_COMMON, OPT_FLUSH_MODE, OPT_CLIENT, OPT_END };

struct fio_option server_options[] = {
	OPT_COMMON,
	{
		.name = "clients",
		.lname = "Clients to serve",
		.type = FIO_OPT_INT,
		.off1 = SERVER(clients),
		.help = "How many clients each job thread serves before it ends; 0: until the job ends",
		.def = "1",
		.minval = 0,
		.maxval = INT_MAX,
		.category = FIO_OPT_C_ENGINE,
		.group = COMPAT_OPT_GROUP,
	}, {
		.name = "clients_at_once",
		.lname = "Clients at the same time",
		.type = FIO_OPT_INT,
		.off1 = SERVER(clients_at_once),
		.help = "How many clients a job thread serves at the same time; each has size= bytes of "
			"its own",
		.def = "1",
		.minval = 1,
		.maxval = 1024,
		.category = FIO_OPT_C_ENGINE,
		.group = COMPAT_OPT_GROUP,
	}, {
		.name = "hugepage",
		.lname = "Huge pages",
		.type = FIO_OPT_BOOL,
		.off1 = SERVER(hugepage),
		.help = "1: take the memory of filename=malloc from huge pages",
		.def = "0",
		.category = FIO_OPT_C_ENGINE,
		.group = COMPAT_OPT_GROUP,
	},
	OPT_END
};
/* clang-format on */

int options_port(struct thread_data *td, char port[PORT_STR_SIZE])
{
	const struct common_options *o = td->eo;
	unsigned long base;
	char *end;

	errno = 0;
	base = strtoul(o->port, &end, 10);
	if (errno || end == o->port || *end || o->port[0] == '-' || base < 1 || base > 65535) {
		say_error(td, EINVAL, "port=%s is no port number: give one from 1 to 65535",
			  o->port);
		return EINVAL;
	}
	base += td->thread_number - 1;
	if (base > 65535) {
		say_error(td, EINVAL,
			  "port=%s is too high: thread %u would use %lu, and ports end at 65535",
			  o->port, td->thread_number, base);
		return EINVAL;
	}
	snprintf(port, PORT_STR_SIZE, "%lu", base);
	return 0;
}

unsigned long long options_job_size(struct thread_data *td)
{
	struct common_options *o = td->eo;

	if (!o->job_size_known) {
		o->job_size = td->o.size;
		o->job_size_known = true;
	}
	return o->job_size;
}
