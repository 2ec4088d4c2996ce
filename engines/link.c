/* SPDX-License-Identifier: GPL-2.0-only */
#include "link.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "say.h"

/* how often a wait looks whether fio wants the job to end, milliseconds */
#define TICK 50

uint64_t link_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

int link_config(struct thread_data *td, const struct link_queues *queues,
		struct rpma_conn_cfg **cfg)
{
	int ret = rpma_conn_cfg_new(cfg);

	if (ret) {
		say_error(td, ENOMEM, "no connection configuration: %s", say_rpma_reason(ret));
		return ENOMEM;
	}
	ret = rpma_conn_cfg_set_sq_size(*cfg, queues->sq);
	if (!ret)
		ret = rpma_conn_cfg_set_rq_size(*cfg, queues->rq);
	if (!ret)
		ret = rpma_conn_cfg_set_cq_size(*cfg, queues->sq + queues->rq);
	if (!ret)
		ret = rpma_conn_cfg_set_timeout(*cfg, queues->timeout_ms);
	if (ret) {
		say_error(td, EINVAL, "the connection's queues cannot be set up: %s",
			  say_rpma_reason(ret));
		rpma_conn_cfg_delete(cfg);
		return EINVAL;
	}
	return 0;
}

static int event_fd(const struct rpma_conn *conn)
{
	int fd;

	return rpma_conn_get_event_fd(conn, &fd) ? -1 : fd;
}

enum rpma_conn_event link_next_event(struct rpma_conn *conn)
{
	struct pollfd pfd = {.fd = event_fd(conn), .events = POLLIN};
	enum rpma_conn_event event;

	if (poll(&pfd, 1, 0) != 1 || rpma_conn_next_event(conn, &event))
		return RPMA_CONN_UNDEFINED;
	return event;
}

/* fio's wish to end; a client that ends in an orderly way is not hurried */
static bool wait_is_over(struct thread_data *td, uint64_t deadline, bool heed_terminate, int *error)
{
	if (heed_terminate && td->terminate) {
		*error = ECANCELED;
		return true;
	}
	*error = ETIMEDOUT;
	return link_now_ms() >= deadline;
}

static int wait_event(struct thread_data *td, struct rpma_conn *conn, int timeout_ms,
		      bool heed_terminate, enum rpma_conn_event *event)
{
	struct pollfd pfd = {.fd = event_fd(conn), .events = POLLIN};
	uint64_t deadline = link_now_ms() + (timeout_ms > 0 ? (uint64_t)timeout_ms : 0);
	int error, ret;

	do {
		if (poll(&pfd, 1, TICK) == 1) {
			ret = rpma_conn_next_event(conn, event);
			if (!ret)
				return 0;
			if (ret != RPMA_E_NO_EVENT)
				return EIO;
		}
	} while (!wait_is_over(td, deadline, heed_terminate, &error));
	return error;
}

int link_wait_event(struct thread_data *td, struct rpma_conn *conn, int timeout_ms,
		    enum rpma_conn_event *event)
{
	return wait_event(td, conn, timeout_ms, true, event);
}

void link_wait_end(struct thread_data *td, struct rpma_conn *conn, int limit_ms)
{
	enum rpma_conn_event event;

	wait_event(td, conn, limit_ms, false, &event);
}

void link_close(struct thread_data *td, struct rpma_conn **conn)
{
	if (!*conn)
		return;
	if (!rpma_conn_disconnect(*conn))
		link_wait_end(td, *conn, LINK_DISCONNECT_LIMIT);
	rpma_conn_delete(conn);
}

int link_cq_fd(struct rpma_cq *cq)
{
	int fd;

	return rpma_cq_get_fd(cq, &fd) ? -1 : fd;
}
