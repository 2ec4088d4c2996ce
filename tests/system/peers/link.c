// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>
#include "link.h"

#define MESSAGE_OFFSET ((size_t)LINK_SLOTS * LINK_SLOT_SIZE)
#define REGION_OFFSET  (MESSAGE_OFFSET + 2 * 4096)
#define MEMORY_SIZE    (REGION_OFFSET + LINK_REGION)
#define RESOLVE_MS     5000

void die(const char *what, ...)
{
	va_list args;

	va_start(args, what);
	fprintf(stderr, "peer: ");
	vfprintf(stderr, what, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

static void must(int failed, const char *what)
{
	if (failed)
		die("%s: %s", what, strerror(errno));
}

/* Waits for the next event, takes its private data along; returns what it was. */
static enum rdma_cm_event_type next_event(struct link *l, struct rdma_cm_id **id)
{
	struct pollfd fd = {.fd = l->channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	size_t size;

	if (poll(&fd, 1, LINK_LIMIT_MS) != 1)
		die("no connection event within %d ms", LINK_LIMIT_MS);
	must(rdma_get_cm_event(l->channel, &event), "rdma_get_cm_event");
	type = event->event;
	if (id)
		*id = event->id;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_ESTABLISHED ||
	    type == RDMA_CM_EVENT_REJECTED) {
		size = event->param.conn.private_data_len;
		l->private_size = event->param.conn.private_data ? size : 0;
		memcpy(l->private_data, event->param.conn.private_data ?: "", l->private_size);
	}
	if (type == RDMA_CM_EVENT_DISCONNECTED)
		l->ended = 1;
	rdma_ack_cm_event(event);
	return type;
}

static void post_recv(struct link *l, uint64_t slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)l->memory + slot * LINK_SLOT_SIZE,
			      .length = LINK_SLOT_SIZE,
			      .lkey = l->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	must((errno = ibv_post_recv(l->id->qp, &wr, &bad)), "ibv_post_recv");
}

static void make_qp(struct link *l)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 16,
						.max_recv_wr = LINK_SLOTS,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct ibv_context *verbs = l->id->verbs;

	must(!(l->pd = ibv_alloc_pd(verbs)), "ibv_alloc_pd");
	must(!(l->arrivals = ibv_create_comp_channel(verbs)), "ibv_create_comp_channel");
	must(!(l->send_cq = ibv_create_cq(verbs, 16, NULL, NULL, 0)), "ibv_create_cq");
	must(!(l->recv_cq = ibv_create_cq(verbs, LINK_SLOTS, NULL, l->arrivals, 0)),
	     "ibv_create_cq");
	must(!(l->memory = aligned_alloc(4096, MEMORY_SIZE)), "aligned_alloc");
	memset(l->memory, 0, MEMORY_SIZE);
	must(!(l->mr = ibv_reg_mr(l->pd, l->memory, MEMORY_SIZE,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					  IBV_ACCESS_REMOTE_READ)),
	     "ibv_reg_mr");
	attr.send_cq = l->send_cq;
	attr.recv_cq = l->recv_cq;
	must(rdma_create_qp(l->id, l->pd, &attr), "rdma_create_qp");
	must(ibv_req_notify_cq(l->recv_cq, 0), "ibv_req_notify_cq");
	for (uint64_t slot = 0; slot < LINK_SLOTS; slot++)
		post_recv(l, slot);
}

static struct rdma_conn_param with_data(const void *data, size_t size)
{
	struct rdma_conn_param param = {.private_data = data,
					.private_data_len = (uint8_t)size,
					.responder_resources = 4,
					.initiator_depth = 4,
					.retry_count = 7,
					.rnr_retry_count = 3};

	return param;
}

static struct addrinfo *look_up(const char *host, const char *port)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;

	if (getaddrinfo(host, port, &hints, &found))
		die("no such address: %s:%s", host, port);
	return found;
}

void link_open(struct link *l)
{
	memset(l, 0, sizeof(*l));
	must(!(l->channel = rdma_create_event_channel()), "rdma_create_event_channel");
}

int link_connect(struct link *l, const char *host, const char *port, const void *data, size_t size)
{
	struct rdma_conn_param param = with_data(data, size);
	struct addrinfo *to = look_up(host, port);
	enum rdma_cm_event_type event;

	must(rdma_create_id(l->channel, &l->id, l, RDMA_PS_TCP), "rdma_create_id");
	must(rdma_resolve_addr(l->id, NULL, to->ai_addr, RESOLVE_MS), "rdma_resolve_addr");
	freeaddrinfo(to);
	event = next_event(l, NULL);
	if (event != RDMA_CM_EVENT_ADDR_RESOLVED)
		return event;
	must(rdma_resolve_route(l->id, RESOLVE_MS), "rdma_resolve_route");
	event = next_event(l, NULL);
	if (event != RDMA_CM_EVENT_ROUTE_RESOLVED)
		return event;
	make_qp(l);
	must(rdma_connect(l->id, &param), "rdma_connect");
	event = next_event(l, NULL);
	return event == RDMA_CM_EVENT_ESTABLISHED ? 0 : event;
}

void link_listen(struct link *l, const char *host, const char *port)
{
	struct addrinfo *on = look_up(host, port);

	must(rdma_create_id(l->channel, &l->listener, l, RDMA_PS_TCP), "rdma_create_id");
	must(rdma_bind_addr(l->listener, on->ai_addr), "rdma_bind_addr");
	freeaddrinfo(on);
	must(rdma_listen(l->listener, 4), "rdma_listen");
}

void link_get_request(struct link *l)
{
	enum rdma_cm_event_type event = next_event(l, &l->id);

	if (event != RDMA_CM_EVENT_CONNECT_REQUEST)
		die("got %s instead of a connection request", rdma_event_str(event));
	make_qp(l);
}

int link_accept(struct link *l, const void *data, size_t size)
{
	struct rdma_conn_param param = with_data(data, size);
	enum rdma_cm_event_type event;

	must(rdma_accept(l->id, &param), "rdma_accept");
	event = next_event(l, NULL);
	return event == RDMA_CM_EVENT_ESTABLISHED ? 0 : event;
}

void link_reject(struct link *l, const void *data, size_t size)
{
	must(rdma_reject(l->id, data, (uint8_t)size), "rdma_reject");
}

/* A completion comes by itself: the transport gives up long before the limit. */
static enum ibv_wc_status completion_of(struct link *l, struct ibv_send_wr *wr)
{
	struct pollfd none;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	must((errno = ibv_post_send(l->id->qp, wr, &bad)), "ibv_post_send");
	for (int waited = 0; (n = ibv_poll_cq(l->send_cq, 1, &wc)) == 0; waited++) {
		if (waited == LINK_LIMIT_MS)
			die("no completion within %d ms", LINK_LIMIT_MS);
		poll(&none, 0, 1);
	}
	must(n < 0, "ibv_poll_cq");
	return wc.status;
}

enum ibv_wc_status link_send(struct link *l, const void *data, size_t size)
{
	struct ibv_sge sge = {.addr = (uintptr_t)l->memory + MESSAGE_OFFSET,
			      .length = (uint32_t)size,
			      .lkey = l->mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED};

	memcpy(l->memory + MESSAGE_OFFSET, data, size);
	return completion_of(l, &wr);
}

enum ibv_wc_status link_rdma(struct link *l, enum ibv_wr_opcode opcode, uint64_t address,
			     uint32_t rkey, size_t size)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)link_region(l), .length = (uint32_t)size, .lkey = l->mr->lkey};
	struct ibv_send_wr wr = {.opcode = opcode,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = address, .rkey = rkey}};

	return completion_of(l, &wr);
}

int link_recv(struct link *l, void *data)
{
	struct pollfd fds[2] = {{.fd = l->arrivals->fd, .events = POLLIN},
				{.fd = l->channel->fd, .events = POLLIN}};
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	for (;;) {
		if (ibv_poll_cq(l->recv_cq, 1, &wc) == 1) {
			if (wc.status != IBV_WC_SUCCESS)
				return -1;
			memcpy(data, l->memory + wc.wr_id * LINK_SLOT_SIZE, wc.byte_len);
			post_recv(l, wc.wr_id);
			return (int)wc.byte_len;
		}
		if (l->ended)
			return -1;
		if (poll(fds, 2, LINK_LIMIT_MS) < 1)
			die("no message within %d ms", LINK_LIMIT_MS);
		if (fds[0].revents) {
			must(ibv_get_cq_event(l->arrivals, &cq, &context), "ibv_get_cq_event");
			ibv_ack_cq_events(cq, 1);
			must(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
		}
		if (fds[1].revents)
			next_event(l, NULL);
	}
}

void link_wait_end(struct link *l)
{
	while (!l->ended)
		next_event(l, NULL);
}

uint8_t *link_region(struct link *l)
{
	return l->memory + REGION_OFFSET;
}

void link_close(struct link *l)
{
	if (l->id) {
		if (l->id->qp)
			rdma_destroy_qp(l->id);
		if (l->mr)
			ibv_dereg_mr(l->mr);
		if (l->send_cq)
			ibv_destroy_cq(l->send_cq);
		if (l->recv_cq)
			ibv_destroy_cq(l->recv_cq);
		if (l->arrivals)
			ibv_destroy_comp_channel(l->arrivals);
		if (l->pd)
			ibv_dealloc_pd(l->pd);
		rdma_destroy_id(l->id);
	}
	if (l->listener)
		rdma_destroy_id(l->listener);
	rdma_destroy_event_channel(l->channel);
	free(l->memory);
}
