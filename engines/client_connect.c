/* SPDX-License-Identifier: GPL-2.0-only */
#include "client.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "link.h"
#include "say.h"

/* time between two tries, milliseconds: short at first, since the server may be just starting */
#define RETRY_FIRST 50
#define RETRY_MOST  200

/* longest time to resolve an address, milliseconds */
#define RESOLVE_LIMIT 1000

struct target {
	const char *address;
	char port[PORT_STR_SIZE];
	uint64_t deadline;
	unsigned int timeout_ms;
	bool told;          /* that it is waited for */
	const char *answer; /* what came of the last try */
};

static int say_no_device(struct client *c, const struct target *t, const char *reason)
{
	say_error(c->td, ENODEV, "no RDMA device of this host reaches serverip=%s: %s", t->address,
		  reason);
	return ENODEV;
}

static int open_device(struct client *c, const struct target *t)
{
	struct ibv_context *device;
	int ret = rpma_utils_get_ibv_context(t->address, RPMA_UTIL_IBV_CONTEXT_REMOTE, &device);

	if (ret)
		return say_no_device(c, t, say_rpma_reason(ret));
	ret = rpma_peer_new(device, &c->peer);
	if (ret) {
		say_error(c->td, ENODEV, "the RDMA device that reaches %s cannot be used: %s",
			  t->address, say_rpma_reason(ret));
		return ENODEV;
	}
	return 0;
}

/* as large as they need to be, as far as the device can; the rest waits in the client's own queue
 */
static int choose_queues(struct client *c, struct link_queues *queues)
{
	uint32_t depth = c->td->o.iodepth;
	struct method_queues own = {0};
	struct rpma_limits limits;
	int ret = rpma_peer_get_limits(c->peer, &limits);

	if (ret) {
		say_error(c->td, EIO, "the RDMA device does not tell its limits: %s",
			  say_rpma_reason(ret));
		return EIO;
	}
	if (td_max_bs(c->td) > limits.msg_size) {
		say_error(c->td, EINVAL,
			  "bs=%llu is more than the RDMA device moves at once, %" PRIu64,
			  td_max_bs(c->td), limits.msg_size);
		return EINVAL;
	}
	c->method->client_queues(depth, &own);
	queues->sq = depth + own.sq < limits.sq_size ? depth + own.sq : limits.sq_size;
	queues->rq = own.rq < limits.rq_size ? own.rq : limits.rq_size;
	if (queues->sq + queues->rq > limits.cq_size) {
		queues->rq = queues->rq < limits.cq_size / 4 ? queues->rq : limits.cq_size / 4;
		if (queues->sq > limits.cq_size - queues->rq)
			queues->sq = limits.cq_size - queues->rq;
	}
	return 0;
}

/* one try.  Returns 0, EAGAIN (try again; t->answer tells why), or another errno, said. */
static int try_once(struct client *c, struct target *t, struct link_queues *queues)
{
	uint8_t hello[WIRE_HELLO_SIZE];
	struct rpma_conn_private_data pdata = {.ptr = hello, .len = sizeof(hello)};
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_req *req;
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	int64_t left = (int64_t)(t->deadline - link_now_ms());
	int error, ret;

	left = left > 1 ? left : 1;
	queues->timeout_ms = left < RESOLVE_LIMIT ? (int)left : RESOLVE_LIMIT;
	error = link_config(c->td, queues, &cfg);
	if (error)
		return error;
	ret = rpma_conn_req_new(c->peer, t->address, t->port, cfg, &req);
	rpma_conn_cfg_delete(&cfg);
	if (ret) {
		t->answer = say_rpma_reason(ret);
		/* an address such as 127.0.0.1 resolves to any device, but no route leads there */
		if (say_rpma_errno() == ENODEV)
			return say_no_device(c, t, t->answer);
		return ret == RPMA_E_PROVIDER ? EAGAIN : EIO;
	}
	wire_hello_pack(c->method->wire, hello);
	ret = rpma_conn_req_connect(&req, &pdata, &c->conn);
	if (ret) {
		t->answer = say_rpma_reason(ret);
		return EAGAIN;
	}
	error = link_wait_event(c->td, c->conn, (int)left, &event);
	if (!error && event == RPMA_CONN_ESTABLISHED)
		return 0;
	rpma_conn_delete(&c->conn);
	if (error == ECANCELED)
		return error;
	t->answer = error                         ? "no answer"
		    : event == RPMA_CONN_REJECTED ? "it refuses"
						  : "it cannot be reached";
	return EAGAIN;
}

static void say_waiting(struct client *c, struct target *t)
{
	if (t->told)
		return;
	t->told = true;
	if (!c->td->subjob_number)
		say(c->td, "waiting up to %u ms for the server at %s port %s", t->timeout_ms,
		    t->address, t->port);
}

static void pause_ms(struct thread_data *td, unsigned int ms)
{
	for (; ms && !td->terminate; ms -= ms < 10 ? ms : 10)
		usleep((ms < 10 ? ms : 10) * 1000);
}

static int reach_server(struct client *c, struct target *t, struct link_queues *queues)
{
	unsigned int pause = RETRY_FIRST;
	int error;

	for (;;) {
		error = try_once(c, t, queues);
		if (error != EAGAIN)
			break;
		if (link_now_ms() + pause >= t->deadline) {
			error = ETIMEDOUT;
			break;
		}
		say_waiting(c, t);
		pause_ms(c->td, pause);
		if (c->td->terminate)
			return ECANCELED;
		pause = pause * 3 / 2 < RETRY_MOST ? pause * 3 / 2 : RETRY_MOST;
	}
	if (error && error != ECANCELED && error != ENODEV)
		say_error(c->td, error,
			  "cannot connect to the %s server at %s port %s within %u ms (%s): is it "
			  "running, with this address and port?",
			  c->method->name, t->address, t->port, t->timeout_ms, t->answer);
	return error;
}

static int take_workspace(struct client *c)
{
	struct rpma_conn_private_data pdata = {0};
	const char *wrong;
	size_t size;
	int flush_types, ret;

	rpma_conn_get_private_data(c->conn, &pdata);
	wrong = wire_workspace_parse(pdata.ptr, pdata.len, &c->workspace);
	if (!wrong && !c->workspace.slots && c->method->wire == WIRE_METHOD_GPSPM)
		wrong = "it takes no messages: it is not a GPSPM server";
	if (!wrong && c->workspace.slots && c->method->wire == WIRE_METHOD_APM)
		wrong = "it takes messages: it is not an APM server";
	if (!wrong) {
		ret = rpma_mr_remote_from_descriptor(c->workspace.descriptor,
						     c->workspace.descriptor_size, &c->region);
		if (ret)
			wrong = say_rpma_reason(ret);
	}
	if (wrong) {
		say_error(c->td, EPROTO, "the server cannot be used: %s", wrong);
		return EPROTO;
	}
	rpma_mr_remote_get_size(c->region, &size);
	rpma_mr_remote_get_flush_type(c->region, &flush_types);
	c->region_size = size;
	c->persistent = flush_types & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	return 0;
}

static int open_queues(struct client *c)
{
	struct rpma_limits limits;
	int ret;

	c->sq_size = 0;
	ret = rpma_conn_get_limits(c->conn, &limits);
	if (!ret)
		ret = rpma_conn_get_cq(c->conn, &c->cq);
	if (!ret)
		ret = rpma_conn_get_event_fd(c->conn, &c->event_fd);
	if (!ret)
		ret = rpma_batch_new(c->conn, limits.sq_size, &c->batch);
	if (ret) {
		say_error(c->td, EIO, "the connection's queues cannot be used: %s",
			  say_rpma_reason(ret));
		return EIO;
	}
	c->cq_fd = link_cq_fd(c->cq);
	/* a failed request completes whatever it is, so the CQ must hold all of the SQ */
	c->sq_size = limits.sq_size < limits.cq_size ? limits.sq_size : limits.cq_size;
	return 0;
}

int client_connect(struct client *c)
{
	const struct client_options *o = c->td->eo;
	struct target t = {
		.address = o->common.server_ip,
		.timeout_ms = o->connect_timeout,
		.deadline = link_now_ms() + o->connect_timeout,
		.answer = "no answer",
	};
	struct link_queues queues = {0};
	int error = options_port(c->td, t.port);

	if (!error)
		error = open_device(c, &t);
	if (!error)
		error = choose_queues(c, &queues);
	if (!error)
		error = reach_server(c, &t, &queues);
	if (!error)
		error = take_workspace(c);
	if (!error)
		error = open_queues(c);
	if (!error)
		error = c->method->client_open(c);
	return error;
}
