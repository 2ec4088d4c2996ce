/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fio sees a job that does no I/O of its own (FIO_NOIO): it opens a file, asks for one I/O, and
 * gets it back when the last client has been served.
 */
#include "server.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>

#include "engine.h"
#include "say.h"

/* longest sleep, and spell of work, milliseconds: so soon is fio's wish to end noticed */
#define TICK 50

/*
 * At most so many rounds of polling between two looks at connections, clock and newcomers, and
 * idle ones between two offers of the CPU to whoever needs it more.
 */
#define ROUNDS_PER_LOOK  1024
#define ROUNDS_PER_YIELD 256

static int check_options(struct thread_data *td)
{
	const struct server_options *o = td->eo;

	if (!o->common.server_ip || !o->common.server_ip[0]) {
		say_error(td, EINVAL, "serverip= is missing: give the address to listen on");
		return EINVAL;
	}
	/* fio lets negative numbers through where there is no lower end but 0 */
	if (o->clients > INT_MAX) {
		say_error(td, EINVAL,
			  "clients=%d is negative: give a number of clients, or 0 for no limit",
			  (int)o->clients);
		return EINVAL;
	}
	if (!options_job_size(td)) {
		say_error(td, EINVAL, "size= is missing: give the size of one client's workspace");
		return EINVAL;
	}
	return 0;
}

static int open_device(struct server *s)
{
	const struct server_options *o = s->td->eo;
	struct ibv_context *device;
	const char *address = o->common.server_ip;
	int ret = rpma_utils_get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &device);

	if (!ret)
		ret = rpma_peer_new(device, &s->peer);
	if (ret) {
		say_error(s->td, ENODEV, "no RDMA device of this host has serverip=%s: %s", address,
			  say_rpma_reason(ret));
		return ENODEV;
	}
	return 0;
}

static int open_memory(struct server *s)
{
	const struct server_options *o = s->td->eo;
	unsigned long long each = options_job_size(s->td);
	size_t size;

	if (__builtin_mul_overflow(each, (unsigned long long)o->clients_at_once, &size)) {
		say_error(s->td, EINVAL,
			  "size=%llu for each of %u clients is more memory than "
			  "there can be",
			  each, o->clients_at_once);
		return EINVAL;
	}
	return memory_open(s->td, size, o->hugepage != 0, &s->memory);
}

static int open_conns(struct server *s)
{
	const struct server_options *o = s->td->eo;
	int error = 0;

	s->wanted = o->clients;
	s->conns_count = o->clients_at_once;
	s->polling = s->method->server_works && o->common.busy_wait_polling;
	s->conns = calloc(s->conns_count, sizeof(*s->conns));
	s->fds = calloc(1 + 2 * (size_t)s->conns_count, sizeof(*s->fds));
	if (!s->conns || !s->fds) {
		say_error(s->td, ENOMEM, "out of memory for clients_at_once=%u", s->conns_count);
		return ENOMEM;
	}
	for (uint32_t i = 0; i < s->conns_count; i++) {
		s->conns[i].server = s;
		s->conns[i].index = i;
	}
	for (uint32_t i = 0; i < s->conns_count && !error; i++)
		error = server_conn_open(&s->conns[i]);
	return error;
}

static int choose_queues(struct server *s)
{
	struct method_queues own = {0};
	struct rpma_limits limits;
	int ret = rpma_peer_get_limits(s->peer, &limits);

	if (ret) {
		say_error(s->td, EIO, "the RDMA device does not tell its limits: %s",
			  say_rpma_reason(ret));
		return EIO;
	}
	s->method->server_queues(s, &own);
	s->queues.sq = own.sq + 1; /* the sign of life */
	s->queues.rq = own.rq;
	s->queues.timeout_ms = 1000;
	if (s->queues.sq > limits.sq_size || s->queues.rq > limits.rq_size ||
	    s->queues.sq + s->queues.rq > limits.cq_size) {
		say_error(s->td, EINVAL,
			  "iodepth=%u is more than the RDMA device can queue: make it smaller",
			  s->td->o.iodepth);
		return EINVAL;
	}
	return 0;
}

static int listen_there(struct server *s)
{
	const struct server_options *o = s->td->eo;
	const char *address = o->common.server_ip;
	char port[PORT_STR_SIZE];
	int error = options_port(s->td, port);
	int ret;

	if (error)
		return error;
	errno = 0;
	ret = rpma_ep_listen(s->peer, address, port, &s->ep);
	if (!ret)
		ret = rpma_ep_get_fd(s->ep, &s->ep_fd);
	if (ret) {
		error = errno == EADDRINUSE ? EADDRINUSE : EIO;
		say_error(s->td, error, "cannot listen on %s port %s: %s", address, port,
			  error == EADDRINUSE ? "the port is in use" : say_rpma_reason(ret));
		return error;
	}
	if (!s->td->subjob_number)
		say(s->td, "listening on %s port %s; memory: %s", address, port, s->memory.what);
	return 0;
}

static void server_close(struct server *s)
{
	if (s->ep)
		rpma_ep_shutdown(&s->ep);
	/* all at once: each may take as long as a client may to agree */
	for (uint32_t i = 0; s->conns && i < s->conns_count; i++)
		server_conn_end(&s->conns[i]);
	for (uint32_t i = 0; s->conns && i < s->conns_count; i++)
		server_conn_close(&s->conns[i]);
	s->method->server_close(s);
	memory_close(&s->memory);
	if (s->peer)
		rpma_peer_delete(&s->peer);
	free(s->conns);
	free(s->fds);
	free(s);
}

static void server_cleanup(struct thread_data *td)
{
	struct server *s = td->io_ops_data;

	if (s)
		server_close(s);
	td->io_ops_data = NULL;
}

/* in the job's thread or process: only here are devices opened */
static int server_post_init(struct thread_data *td)
{
	struct server *s;
	int error;

	say_take_rpma_log();
	error = engine_check(td);
	if (!error)
		error = check_options(td);
	if (error)
		return error;
	s = calloc(1, sizeof(*s));
	if (!s) {
		say_error(td, ENOMEM, "out of memory");
		return ENOMEM;
	}
	s->td = td;
	s->method = engine_method(td);
	td->io_ops_data = s;

	error = open_device(s);
	if (!error)
		error = choose_queues(s);
	if (!error)
		error = open_memory(s);
	if (!error)
		error = open_conns(s);
	if (!error)
		error = s->method->server_open(s);
	if (!error)
		error = listen_there(s);
	return error;
}

static struct server_conn *find_conn(struct server *s, enum server_conn_state state)
{
	for (uint32_t i = 0; i < s->conns_count; i++) {
		if (s->conns[i].state == state)
			return &s->conns[i];
	}
	return NULL;
}

static bool wants_more(const struct server *s)
{
	return !s->wanted || s->served + s->active < s->wanted;
}

/* all places are taken, but one is about to be free */
static bool newcomers_wait(struct server *s)
{
	return wants_more(s) && !find_conn(s, CONN_FREE) && find_conn(s, CONN_ENDING);
}

/* who finds no place is turned away, and tries again */
static void take_newcomer(struct server *s)
{
	struct server_conn *conn = wants_more(s) ? find_conn(s, CONN_FREE) : NULL;
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_req *req;
	int ret;

	if (link_config(s->td, &s->queues, &cfg))
		return;
	ret = rpma_ep_next_conn_req(s->ep, cfg, &req);
	rpma_conn_cfg_delete(&cfg);
	if (ret)
		return;
	if (conn)
		server_conn_accept(conn, req);
	else
		rpma_conn_req_delete(&req);
}

/* waits for whatever comes first, and handles all of it but completions */
static void look(struct server *s, int timeout_ms)
{
	struct pollfd *fds = s->fds;
	uint32_t n = 1;

	fds[0] = (struct pollfd){.fd = newcomers_wait(s) ? -1 : s->ep_fd, .events = POLLIN};
	for (uint32_t i = 0; i < s->conns_count; i++, n += 2) {
		struct server_conn *conn = &s->conns[i];
		bool cq = server_conn_is_live(conn) && !s->polling;

		fds[n] = (struct pollfd){.fd = conn->state == CONN_FREE ? -1 : conn->event_fd,
					 .events = POLLIN};
		fds[n + 1] = (struct pollfd){.fd = cq ? conn->cq_fd : -1, .events = POLLIN};
	}
	poll(fds, n, timeout_ms);
	for (uint32_t i = 0; i < s->conns_count; i++) {
		struct server_conn *conn = &s->conns[i];

		if (fds[2 + 2 * i].revents && server_conn_is_live(conn))
			rpma_cq_wait(conn->cq);
		if (conn->state != CONN_FREE)
			server_conn_look(conn, fds[1 + 2 * i].revents != 0);
	}
	if (fds[0].revents && !newcomers_wait(s))
		take_newcomer(s);
}

/* one poll of each: who always has more to do takes neither the others' turn nor look()'s */
static int poll_conns(struct server *s)
{
	int work = 0;

	for (uint32_t i = 0; i < s->conns_count; i++) {
		struct server_conn *conn = &s->conns[i];

		if (server_conn_is_live(conn))
			work += server_conn_poll(conn);
	}
	return work;
}

/* as for a client of the same options, runtime= begins when ramp_time= is over; both in us */
static bool time_is_up(const struct server *s)
{
	const struct thread_data *td = s->td;

	return td->terminate ||
	       (td->o.timeout && utime_since_now(&td->epoch) >= td->o.ramp_time + td->o.timeout);
}

/*
 * Rounds of polling until it is time for a look, which those with work in them make sooner.  One
 * without any is the last for who does not spin.  Returns whether there may be more to do.
 */
static bool poll_rounds(struct server *s, bool spin, uint32_t *idle)
{
	uint64_t start = link_now_ms();

	for (uint32_t rounds = 0; rounds < ROUNDS_PER_LOOK; rounds++) {
		if (poll_conns(s)) {
			*idle = 0;
			if (link_now_ms() - start >= TICK)
				return true;
		} else if (!spin) {
			return false;
		} else if (++*idle % ROUNDS_PER_YIELD == 0) {
			sched_yield();
		}
	}
	return true;
}

static void serve(struct server *s)
{
	uint32_t idle = 0;

	while ((wants_more(s) || s->active) && !time_is_up(s)) {
		bool more = poll_rounds(s, s->polling && s->active, &idle);

		/*
		 * A CQ tells of the first completion after it was armed: when it was made, or when
		 * look() took the event before.  So one that a poll finds empty is armed, or its
		 * event is still to be taken, and whatever comes later ends the sleep.  Of what is
		 * left in one that a poll found something in, no event may tell: no sleep then.
		 */
		look(s, more ? 0 : TICK);
	}
}

static enum fio_q_status server_queue(struct thread_data *td, struct io_u *io_u)
{
	struct server *s = td->io_ops_data;

	serve(s);
	if (s->failed && !td->error)
		td_verror(td, ECONNABORTED, "a client ended badly");
	td->done = 1;
	/* fio counts reads and writes; this was neither */
	io_u->ddir = DDIR_INVAL;
	return FIO_Q_COMPLETED;
}

/* fio may not take the size for that of a file, and not for something to read */
static int server_setup(struct thread_data *td)
{
	struct fio_file *f;
	unsigned int i;

	if (!td->error && check_options(td))
		return 1;
	for_each_file (td, f, i) {
		f->real_file_size = UINT64_MAX / 2;
		fio_file_set_size_known(f);
	}
	return 0;
}

static int server_init(struct thread_data *td)
{
	(void)td;
	return 0;
}

static int server_file_nop(struct thread_data *td, struct fio_file *f)
{
	(void)td;
	(void)f;
	return 0;
}

/*
 * Never called, but fio insists on them in an engine that is not FIO_SYNCIO.  (For one that is, and
 * an iodepth above 1, it prints a note into its report.)
 */
static int server_getevents(struct thread_data *td, unsigned int min, unsigned int max,
			    const struct timespec *t)
{
	(void)td;
	(void)min;
	(void)max;
	(void)t;
	return 0;
}

static struct io_u *server_event(struct thread_data *td, int event)
{
	(void)td;
	(void)event;
	return NULL;
}

#define SERVER_ENGINE(engine_name, engine_method)                                    \
	{                                                                            \
		.ops =                                                               \
			{                                                            \
				.name = #engine_name,                                \
				.version = FIO_IOOPS_VERSION,                        \
				.flags = FIO_DISKLESSIO | FIO_NOIO | FIO_NOSTATS,    \
				.setup = server_setup,                               \
				.init = server_init,                                 \
				.post_init = server_post_init,                       \
				.queue = server_queue,                               \
				.getevents = server_getevents,                       \
				.event = server_event,                               \
				.cleanup = server_cleanup,                           \
				.open_file = server_file_nop,                        \
				.close_file = server_file_nop,                       \
				.unlink_file = server_file_nop,                      \
				.option_struct_size = sizeof(struct server_options), \
				.options = server_options,                           \
			},                                                           \
		.method = &engine_method,                                            \
	}

ENGINE_EXPORT struct engine librpma_apm_server = SERVER_ENGINE(librpma_apm_server, method_apm);
ENGINE_EXPORT struct engine librpma_gpspm_server =
	SERVER_ENGINE(librpma_gpspm_server, method_gpspm);
