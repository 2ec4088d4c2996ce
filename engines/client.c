/* SPDX-License-Identifier: GPL-2.0-only */
#include "client.h"

#include <errno.h>
#include <stdlib.h>

#include "engine.h"
#include "link.h"
#include "say.h"

/* ranges kept between two syncs with flush_when=sync; even */
#define SYNC_RANGES 4096

/* what fio can ask for and an RDMA client cannot do */
static int refuse_impossible(struct thread_data *td)
{
	const struct client_options *o = td->eo;

	if (td_trim(td)) {
		say_error(td, ENOTSUP,
			  "there is no trim over RDMA; use rw=read, write, rw, randread, "
			  "randwrite or randrw");
		return ENOTSUP;
	}
	if (td->o.pre_read) {
		say_error(td, ENOTSUP, "pre_read=1: there is no local file to read");
		return ENOTSUP;
	}
	if (td->o.iodepth > CLIENT_INDEX_MAX) {
		say_error(td, EINVAL, "iodepth=%u is too large", td->o.iodepth);
		return EINVAL;
	}
	if (!o->common.server_ip || !o->common.server_ip[0]) {
		say_error(td, EINVAL, "serverip= is missing: give the address of the server");
		return EINVAL;
	}
	return 0;
}

static int ring_init(struct client_ring *ring, uint32_t entries)
{
	uint32_t size = 1;

	while (size < entries)
		size <<= 1;
	ring->io_u = calloc(size, sizeof(*ring->io_u));
	ring->mask = size - 1;
	return ring->io_u ? 0 : ENOMEM;
}

static void client_free(struct client *c)
{
	free(c->queued.io_u);
	free(c->done.io_u);
	free(c->slots);
	ranges_free(&c->unflushed);
	free(c);
}

static struct client *client_new(struct thread_data *td)
{
	const struct client_options *o = td->eo;
	uint32_t ranges = o->flush_when == FLUSH_ON_SYNC ? SYNC_RANGES : td->o.iodepth + 1;
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->td = td;
	c->method = engine_method(td);
	c->flush_when = (enum flush_when)o->flush_when;
	c->flush_each_write = td->o.sync_io != 0;
	c->events = !o->common.busy_wait_polling;
	c->slots = calloc(td->o.iodepth, sizeof(*c->slots));
	if (!c->slots || ring_init(&c->queued, td->o.iodepth) ||
	    ring_init(&c->done, td->o.iodepth) || ranges_init(&c->unflushed, ranges)) {
		client_free(c);
		return NULL;
	}
	return c;
}

/* fio's buffers, which lie one behind the other, as one memory region */
static int register_buffers(struct client *c)
{
	struct thread_data *td = c->td;
	int ret;

	c->buffers_start = td->io_u_all.io_us[0]->buf;
	c->buffers_size = (uint64_t)td_max_bs(td) * td->o.iodepth;
	ret = rpma_mr_reg(c->peer, c->buffers_start, c->buffers_size,
			  RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC, &c->buffers);
	if (ret) {
		say_error(td, ENOMEM, "fio's buffers (%" PRIu64 " bytes) cannot be registered: %s",
			  c->buffers_size, say_rpma_reason(ret));
		return ENOMEM;
	}
	return 0;
}

static void client_close(struct client *c)
{
	if (c->conn && !c->error && c->batch) {
		/* in an error, fio abandons what is in flight; there is nothing to wait for then */
		if (!client_sync(c))
			c->method->client_goodbye(c);
	}
	if (c->batch)
		rpma_batch_delete(&c->batch);
	link_close(c->td, &c->conn);
	if (c->method_data)
		c->method->client_close(c);
	if (c->buffers)
		rpma_mr_dereg(&c->buffers);
	if (c->region)
		rpma_mr_remote_delete(&c->region);
	if (c->peer)
		rpma_peer_delete(&c->peer);
	client_free(c);
}

static void client_cleanup(struct thread_data *td)
{
	struct client *c = td->io_ops_data;

	if (c)
		client_close(c);
	td->io_ops_data = NULL;
}

/* in one line: where, what memory, and what becomes of the data */
static void tell(struct client *c)
{
	const struct client_options *o = c->td->eo;

	if (!c->td->subjob_number)
		say(c->td, "connected to %s; memory: %" PRIu64 " bytes; flush: %s",
		    o->common.server_ip, c->region_size,
		    c->flush_when == FLUSH_NEVER ? "none (flush_when=never): data is NOT durable"
						 : c->how);
}

/* in the job's thread or process: only from there are devices opened */
static int client_init(struct thread_data *td)
{
	struct client *c = client_new(td);

	if (!c) {
		say_error(td, ENOMEM, "out of memory for iodepth=%u", td->o.iodepth);
		return ENOMEM;
	}
	td->io_ops_data = c;
	return 0;
}

/*
 * Some versions of fio set up files before they call post_init, others after it, and both need the
 * connection: whoever comes first makes it.
 */
static int connect_once(struct client *c)
{
	int error;

	if (c->conn)
		return 0;
	say_take_rpma_log();
	error = engine_check(c->td);
	if (!error)
		error = refuse_impossible(c->td);
	if (!error)
		error = client_connect(c);
	return error;
}

static int client_post_init(struct thread_data *td)
{
	struct client *c = td->io_ops_data;
	int error = connect_once(c);

	if (!error)
		error = register_buffers(c);
	if (!error)
		tell(c);
	return error;
}

static int check_sizes(struct client *c, unsigned long long size)
{
	struct thread_data *td = c->td;
	unsigned int files = td->o.nr_files ? td->o.nr_files : 1;

	c->file_size = c->region_size / files;
	if (size / files > c->file_size || td->o.start_offset > c->file_size ||
	    size / files > c->file_size - td->o.start_offset) {
		say_error(td, ENOSPC,
			  "the server's memory is too small for the job: it has %" PRIu64
			  " bytes, size=%llu at offset=%llu was asked for",
			  c->region_size, size, td->o.start_offset);
		return ENOSPC;
	}
	if (td_max_bs(td) > c->file_size) {
		say_error(td, ENOSPC,
			  "the server's memory is too small for the job: it has %" PRIu64
			  " bytes%s, one block has %llu",
			  c->region_size, files > 1 ? " for all files" : "", td_max_bs(td));
		return ENOSPC;
	}
	return 0;
}

/*
 * Where fio sets up files for all jobs before it starts the first one (create_serialize=1), no
 * server can be asked yet.  So then the files get a size that admits everything, and fio is made to
 * ask again from within the job, where the true size is known.
 */
static int client_setup(struct thread_data *td)
{
	struct client *c = td->io_ops_data;
	unsigned long long size = options_job_size(td);
	struct fio_file *f;
	uint64_t file_size = 1ULL << 50;
	unsigned int i;

	if (c) {
		if (connect_once(c) || check_sizes(c, size))
			return 1;
		td->o.size = size;
		file_size = c->file_size;
	} else {
		td->o.create_serialize = 0;
	}
	for_each_file (td, f, i) {
		f->real_file_size = file_size;
		fio_file_set_size_known(f);
	}
	return 0;
}

static int client_open_file(struct thread_data *td, struct fio_file *f)
{
	struct client *c = td->io_ops_data;

	if (f->file_offset <= c->file_size && f->io_size <= c->file_size - f->file_offset)
		return 0;
	say_error(td, ENOSPC,
		  "the server's memory is too small for the job: it has %" PRIu64
		  " bytes for each file, and fio's options reach to %llu",
		  c->file_size, (unsigned long long)(f->file_offset + f->io_size));
	return 1;
}

/*
 * Once a job is done (latency_target and read_iolog end it so), fio asks for no more completions,
 * and it frees its buffers before it cleans up: by then nothing may be in flight.
 */
static void client_io_u_free(struct thread_data *td, struct io_u *io_u)
{
	struct client *c = td->io_ops_data;

	(void)io_u;
	if (c && !c->error && (c->in_flight || c->queued.count))
		client_sync(c);
}

static int client_file_nop(struct thread_data *td, struct fio_file *f)
{
	(void)td;
	(void)f;
	return 0;
}

#define CLIENT_ENGINE(engine_name, engine_method)                                       \
	{                                                                               \
		.ops =                                                                  \
			{                                                               \
				.name = #engine_name,                                   \
				.version = FIO_IOOPS_VERSION,                           \
				.flags = FIO_DISKLESSIO | FIO_ASYNCIO_SETS_ISSUE_TIME | \
					 FIO_NO_OFFLOAD,                                \
				.setup = client_setup,                                  \
				.init = client_init,                                    \
				.post_init = client_post_init,                          \
				.queue = client_queue,                                  \
				.commit = client_commit,                                \
				.getevents = client_getevents,                          \
				.event = client_event,                                  \
				.cleanup = client_cleanup,                              \
				.io_u_free = client_io_u_free,                          \
				.open_file = client_open_file,                          \
				.close_file = client_file_nop,                          \
				.unlink_file = client_file_nop,                         \
				.option_struct_size = sizeof(struct client_options),    \
				.options = client_options,                              \
			},                                                              \
		.method = &engine_method,                                               \
	}

ENGINE_EXPORT struct engine librpma_apm_client = CLIENT_ENGINE(librpma_apm_client, method_apm);
ENGINE_EXPORT struct engine librpma_gpspm_client =
	CLIENT_ENGINE(librpma_gpspm_client, method_gpspm);
