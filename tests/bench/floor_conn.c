/* SPDX-License-Identifier: BSD-3-Clause */
/* The floor's connection: rdma_cm, one queue pair, one completion queue, message slots. */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "librpma_config.h"
#include "floor.h"

/*
 * A work request for the write, one for what makes it durable; twice that, since those of I/Os that
 * are over keep their places until a later one is signalled.
 */
#define WRS_PER_IO      4

#define POLLS_PER_YIELD 256

int floor_fail(const char *what)
{
	fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
	return -1;
}

static struct rdma_addrinfo *resolve(const struct floor_options *opt)
{
	struct rdma_addrinfo hints = {
		.ai_flags = opt->server ? RAI_PASSIVE : 0,
		.ai_port_space = RDMA_PS_TCP,
	};
	struct rdma_addrinfo *info = NULL;

	if (rdma_getaddrinfo(opt->addr, opt->port, &hints, &info)) {
		floor_fail("rdma_getaddrinfo");
		return NULL;
	}
	return info;
}

/* Reads and native flushes wait at the target for their turn: as many as both ends allow. */
static void set_depths(struct rdma_conn_param *param, struct ibv_context *verbs)
{
	struct ibv_device_attr attr;

	param->retry_count = 7;
	param->rnr_retry_count = 7;
	param->responder_resources = 1;
	param->initiator_depth = 1;
	if (ibv_query_device(verbs, &attr) == 0) {
		param->responder_resources = attr.max_qp_rd_atom > 255 ? 255 : attr.max_qp_rd_atom;
		param->initiator_depth =
			attr.max_qp_init_rd_atom > 255 ? 255 : attr.max_qp_init_rd_atom;
	}
}

static int create_qp(struct floor_conn *conn, const struct floor_options *opt)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = conn->cq,
		.recv_cq = conn->cq,
		.qp_type = IBV_QPT_RC,
		.cap =
			{
				.max_send_wr = WRS_PER_IO * opt->depth + 1,
				.max_recv_wr = opt->depth + 1,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = sizeof(struct floor_request),
			},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = conn->id->pd,
	};

#ifdef NATIVE_FLUSH_SUPPORTED
	if (opt->method == FLOOR_NATIVE) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags =
			IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_SEND;
	}
#endif
	conn->sq_size = attr.cap.max_send_wr;
	if (rdma_create_qp_ex(conn->id, &attr))
		return floor_fail("rdma_create_qp_ex");
	if (opt->method == FLOOR_NATIVE)
		conn->qpx = ibv_qp_to_qp_ex(conn->id->qp);
	return 0;
}

int floor_post_recvs(struct floor_conn *conn, const uint64_t *slots, int count)
{
	struct ibv_sge sge[FLOOR_POLL_BATCH];
	struct ibv_recv_wr wr[FLOOR_POLL_BATCH], *bad;

	if (!count)
		return 0;
	for (int i = 0; i < count; i++) {
		sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)&conn->slots[slots[i]],
			.length = sizeof(struct floor_request),
			.lkey = conn->slots_mr->lkey,
		};
		wr[i] = (struct ibv_recv_wr){
			.wr_id = slots[i],
			.next = i + 1 < count ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
		};
	}
	errno = ibv_post_recv(conn->id->qp, wr, &bad);
	return errno ? floor_fail("ibv_post_recv") : 0;
}

void floor_sq_posted(struct floor_conn *conn, struct ibv_send_wr *wr, uint32_t count)
{
	conn->sq_posted += count;
	wr->wr_id = FLOOR_WR_SQ | conn->sq_posted;
	wr->send_flags &= ~IBV_SEND_SIGNALED;
	if (conn->sq_posted - conn->sq_signalled < conn->sq_size / 4)
		return;
	wr->send_flags |= IBV_SEND_SIGNALED;
	conn->sq_signalled = conn->sq_posted;
}

void floor_sq_done(struct floor_conn *conn, uint64_t wr_id)
{
	conn->sq_done = (uint32_t)wr_id;
}

void floor_polled(struct floor_conn *conn, int found)
{
	conn->empty_polls = found ? 0 : conn->empty_polls + 1;
	if (conn->empty_polls == POLLS_PER_YIELD) {
		conn->empty_polls = 0;
		sched_yield();
	}
}

/* Gives @id the queue pair and the receives that either end needs before it is connected. */
int floor_prepare(struct floor_conn *conn, const struct floor_options *opt, struct rdma_cm_id *id)
{
	size_t bytes = (opt->depth + 1) * sizeof(*conn->slots);

	conn->id = id;
	conn->channel = ibv_create_comp_channel(id->verbs);
	if (conn->channel == NULL)
		return floor_fail("ibv_create_comp_channel");
	conn->cq = ibv_create_cq(id->verbs, (WRS_PER_IO + 1) * (opt->depth + 1), NULL,
				 conn->channel, 0);
	if (conn->cq == NULL)
		return floor_fail("ibv_create_cq");
	if (create_qp(conn, opt))
		return -1;
	conn->slots = calloc(1, bytes);
	if (conn->slots == NULL)
		return floor_fail("out of memory");
	conn->slots_mr = ibv_reg_mr(id->pd, conn->slots, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (conn->slots_mr == NULL)
		return floor_fail("ibv_reg_mr of the messages");
	/* the one more than depth is for the client's last word */
	for (uint64_t i = 0; i <= opt->depth; i++)
		if (floor_post_recvs(conn, &i, 1))
			return -1;
	return 0;
}

int floor_connect(struct floor_conn *conn, const struct floor_options *opt)
{
	struct rdma_addrinfo *info = resolve(opt);
	struct rdma_conn_param param = {0};
	struct rdma_cm_id *id;
	int ret = -1;

	if (info == NULL)
		return -1;
	if (rdma_create_ep(&id, info, NULL, NULL)) {
		floor_fail("rdma_create_ep");
		goto out;
	}
	if (floor_prepare(conn, opt, id))
		goto out;
	set_depths(&param, id->verbs);
	if (rdma_connect(id, &param)) {
		floor_fail("rdma_connect");
		goto out;
	}
	if (id->event == NULL || id->event->param.conn.private_data_len < sizeof(conn->peer)) {
		fprintf(stderr, "floor: the server did not describe its memory\n");
		goto out;
	}
	memcpy(&conn->peer, id->event->param.conn.private_data, sizeof(conn->peer));
	ret = 0;
out:
	rdma_freeaddrinfo(info);
	return ret;
}

/* Waits for the one client; its id comes back in conn->id with a queue pair of its own. */
int floor_listen(struct floor_conn *conn, const struct floor_options *opt)
{
	struct rdma_addrinfo *info = resolve(opt);
	struct rdma_cm_id *id;
	int ret = -1;

	if (info == NULL)
		return -1;
	if (rdma_create_ep(&conn->listener, info, NULL, NULL)) {
		floor_fail("rdma_create_ep");
		goto out;
	}
	if (rdma_listen(conn->listener, 1)) {
		floor_fail("rdma_listen");
		goto out;
	}
	fprintf(stderr, "floor: ready\n");
	if (rdma_get_request(conn->listener, &id)) {
		floor_fail("rdma_get_request");
		goto out;
	}
	ret = floor_prepare(conn, opt, id);
out:
	rdma_freeaddrinfo(info);
	return ret;
}

int floor_accept(struct floor_conn *conn, const struct floor_region *region)
{
	struct rdma_conn_param param = {
		.private_data = region,
		.private_data_len = sizeof(*region),
	};

	set_depths(&param, conn->id->verbs);
	return rdma_accept(conn->id, &param) ? floor_fail("rdma_accept") : 0;
}

void floor_close(struct floor_conn *conn)
{
	if (conn->id) {
		if (conn->slots_mr)
			ibv_dereg_mr(conn->slots_mr);
		rdma_disconnect(conn->id);
		if (conn->id->qp)
			rdma_destroy_qp(conn->id);
		if (conn->cq)
			ibv_destroy_cq(conn->cq);
		if (conn->channel)
			ibv_destroy_comp_channel(conn->channel);
		rdma_destroy_ep(conn->id);
	}
	if (conn->listener)
		rdma_destroy_ep(conn->listener);
	free(conn->slots);
}
