// SPDX-License-Identifier: BSD-3-Clause
/* Listening identifiers: new TCP connections, their handshakes, and requests for the program. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softrnic.h"

#define DEFAULT_BACKLOG 1024
#define MAX_HANDSHAKES  128 /* of peers that have not said what they want */
#define ACCEPT_BATCH    16
#define ACCEPT_RETRY_NS 100000000ull /* after want of descriptors or memory */

/* Guards the listeners' lists of unanswered requests. */
static pthread_mutex_t requests_lock = PTHREAD_MUTEX_INITIALIZER;

void srn_requests_after_fork(void)
{
	pthread_mutex_init(&requests_lock, NULL);
}

bool srn_listener_forget(struct srn_listener *listener, struct srn_conn *conn)
{
	if (!conn->listed)
		return false;
	TAILQ_REMOVE(&listener->handshakes, conn, link);
	listener->handshake_count--;
	conn->listed = false;
	return true;
}

/* A flood of silent connections makes room by dropping the one that has been silent longest. */
static void evict_oldest(struct srn_listener *listener)
{
	struct srn_conn *oldest = NULL;

	pthread_mutex_lock(&listener->lock);
	if (listener->handshake_count >= MAX_HANDSHAKES) {
		oldest = TAILQ_FIRST(&listener->handshakes);
		srn_listener_forget(listener, oldest);
	}
	pthread_mutex_unlock(&listener->lock);
	if (oldest)
		srn_conn_free(oldest);
}

/* Who waits to be accepted keeps the socket readable: without a pause the engine would spin. */
static void pause_listener(struct srn_src *src)
{
	srn_src_interest(src, 0);
	srn_src_deadline(src, srn_now_ns() + ACCEPT_RETRY_NS);
}

static int listener_handle(struct srn_src *src, uint32_t events)
{
	struct srn_listener *listener = container_of(src, struct srn_listener, src);
	int i, fd;

	(void)events;
	for (i = 0; i < ACCEPT_BATCH; i++) {
		fd = accept4(src->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			    errno == ENOMEM)
				pause_listener(src);
			break;
		}
		evict_oldest(listener);
		if (srn_conn_passive(listener, fd))
			close(fd);
	}
	return 0;
}

static void listener_expire(struct srn_src *src)
{
	srn_src_interest(src, EPOLLIN);
}

int srn_listen(struct srn_id *id, int backlog)
{
	struct srn_listener *listener;
	int err;

	if (id->bound_fd < 0)
		return EINVAL;
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return ENOMEM;
	listener->id = id;
	listener->backlog = backlog > 0 ? (unsigned int)backlog : DEFAULT_BACKLOG;
	pthread_mutex_init(&listener->lock, NULL);
	TAILQ_INIT(&listener->handshakes);
	TAILQ_INIT(&listener->requests);
	listener->src.fd = id->bound_fd;
	listener->src.handle = listener_handle;
	listener->src.expire = listener_expire;
	/* The program's backlog bounds requests; what TCP holds for the engine is another matter.
	 */
	if (listen(id->bound_fd, DEFAULT_BACKLOG)) {
		err = errno;
		goto err_free;
	}
	err = srn_src_add(&listener->src);
	if (err)
		goto err_free;
	id->bound_fd = -1;
	id->listener = listener;
	srn_src_interest(&listener->src, EPOLLIN);
	return 0;

err_free:
	pthread_mutex_destroy(&listener->lock);
	free(listener);
	return err;
}

void srn_listener_free(struct srn_listener *listener)
{
	struct srn_conn *conn;
	struct srn_id *id;

	srn_src_remove(&listener->src);
	close(listener->src.fd);
	for (;;) {
		pthread_mutex_lock(&listener->lock);
		conn = TAILQ_FIRST(&listener->handshakes);
		if (conn)
			srn_listener_forget(listener, conn);
		pthread_mutex_unlock(&listener->lock);
		if (!conn)
			break;
		srn_conn_free(conn);
	}
	pthread_mutex_lock(&requests_lock);
	while ((id = TAILQ_FIRST(&listener->requests))) {
		TAILQ_REMOVE(&listener->requests, id, sibling);
		id->parent = NULL;
	}
	pthread_mutex_unlock(&requests_lock);
	listener->id->listener = NULL;
	pthread_mutex_destroy(&listener->lock);
	free(listener);
}

void srn_answered(struct srn_id *id)
{
	pthread_mutex_lock(&requests_lock);
	if (id->parent) {
		TAILQ_REMOVE(&id->parent->requests, id, sibling);
		id->parent->request_count--;
		id->parent = NULL;
	}
	pthread_mutex_unlock(&requests_lock);
}

static bool admit(struct srn_listener *listener, struct srn_id *id)
{
	bool room;

	pthread_mutex_lock(&requests_lock);
	room = listener->request_count < listener->backlog;
	if (room) {
		TAILQ_INSERT_TAIL(&listener->requests, id, sibling);
		listener->request_count++;
		id->parent = listener;
	}
	pthread_mutex_unlock(&requests_lock);
	return room;
}

static uint8_t depth(uint16_t words)
{
	uint16_t n = words & MPA_DEPTH_MASK;

	return (uint8_t)(n < SRN_MAX_RD_ATOM ? n : SRN_MAX_RD_ATOM);
}

/* The new identifier of a request, as far as the connection tells; NULL if there is no memory. */
static struct srn_id *request_id(struct srn_conn *conn, const struct rdma_conn_param *param)
{
	struct srn_id *listen = conn->listener->id;
	/* Its channel it gets when the program takes the event: the listener may move till then. */
	struct srn_id *id = srn_id_new(NULL, NULL, listen->id.ps);
	socklen_t addr_len = sizeof(struct sockaddr_storage);

	if (!id)
		return NULL;
	id->request = *param;
	id->request.private_data = NULL;
	getsockname(conn->src.fd, &id->id.route.addr.src_addr, &addr_len);
	addr_len = sizeof(struct sockaddr_storage);
	getpeername(conn->src.fd, &id->id.route.addr.dst_addr, &addr_len);
	srn_id_bind_device(id);
	id->state = SRN_ID_REQUEST;
	return id;
}

/* With the listener's lock held, so that it is there until the program can know of the request. */
static int tell_request(struct srn_conn *conn, const struct rdma_conn_param *param)
{
	struct srn_listener *listener = conn->listener;
	struct srn_id *id = request_id(conn, param);

	if (!id)
		return ENOMEM;
	if (!admit(listener, id)) {
		rdma_destroy_id(&id->id);
		return EAGAIN;
	}
	srn_listener_forget(listener, conn);
	conn->id = id;
	id->conn = conn;
	if (srn_cm_event(id, listener->id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, param))
		rdma_destroy_id(&id->id);
	return 0;
}

int srn_listener_request(struct srn_conn *conn, const uint8_t *data, size_t len)
{
	struct srn_listener *listener = conn->listener;
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = (uint8_t)(len > UINT8_MAX ? UINT8_MAX : len),
		/* What the peer may ask of this side, and this side of the peer. */
		.responder_resources = depth(conn->depths.ord),
		.initiator_depth = depth(conn->depths.ird),
		.flow_control = 1,
	};
	int err = 0;

	pthread_mutex_lock(&listener->lock);
	/* Else the listening id is being destroyed, the connection with it. */
	if (conn->listed)
		err = tell_request(conn, &param);
	pthread_mutex_unlock(&listener->lock);
	return err;
}
