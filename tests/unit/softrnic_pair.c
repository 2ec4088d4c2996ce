// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softrnic_pair.h"

#define LIMIT_S     120 /* valgrind takes its time */
#define WC_LIMIT_NS 10000000000ull
#define LIMIT_NS    20000000000ull /* for what must come */

uint64_t __wrap_srn_now_ns(void);

/*
 * What the software RNIC takes for polling is a matter of so many polls in a millisecond, which
 * valgrind on a slow machine does not reach.  TEST_SLOWER=N lets its time pass N times slower.
 */
uint64_t __wrap_srn_now_ns(void)
{
	static uint64_t slower; /* threads read it */

	if (!__atomic_load_n(&slower, __ATOMIC_RELAXED)) {
		const char *text = getenv("TEST_SLOWER");
		uint64_t value = text ? strtoull(text, NULL, 10) : 1;

		__atomic_store_n(&slower, value ? value : 1, __ATOMIC_RELAXED);
	}
	return __real_srn_now_ns() / __atomic_load_n(&slower, __ATOMIC_RELAXED);
}

int with_time_limit(void **state)
{
	(void)state;
	alarm(LIMIT_S);
	return 0;
}

uint64_t test_limit(void)
{
	return __real_srn_now_ns() + LIMIT_NS;
}

bool in_time(uint64_t until)
{
	sched_yield();
	return __real_srn_now_ns() < until;
}

void make_polled(struct ibv_cq *cq)
{
	uint64_t until = test_limit();
	bool polled = false;
	struct ibv_wc wc;

	while (!polled && __real_srn_now_ns() < until) {
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
		polled = atomic_load(&srn_cq(cq)->polled);
	}
	assert_true(polled);
}

void expect_not_polled(struct ibv_cq *cq)
{
	uint64_t until = test_limit();

	while (atomic_load(&srn_cq(cq)->polled) && in_time(until))
		;
	assert_false(atomic_load(&srn_cq(cq)->polled));
}

void fill(uint8_t *buf, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = (uint8_t)(i * 7 + (i >> 8) + seed);
}

int expect_event(struct side *side, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	int status;

	assert_int_equal(rdma_get_cm_event(side->channel, &event), 0);
	assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
	status = event->status;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	return status;
}

struct rdma_cm_id *expect_request(struct side *side, struct rdma_conn_param *param)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_get_cm_event(side->channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = event->id;
	if (param)
		*param = event->param.conn;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	return id;
}

void side_open(struct side *side, struct ibv_srq *srq)
{
	struct rdma_cm_id *id = side->id;
	struct ibv_qp_init_attr_ex attr = {
		.cap = {.max_send_wr = PAIR_DEPTH,
			.max_recv_wr = PAIR_DEPTH,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 256},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = id->pd,
		.srq = srq,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_WRITE |
				  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV |
				  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | SRN_QP_EX_WITH_FLUSH,
	};

	side->comp = ibv_create_comp_channel(id->verbs);
	assert_non_null(side->comp);
	side->cq = ibv_create_cq(id->verbs, 4 * PAIR_DEPTH, side, side->comp, 0);
	assert_non_null(side->cq);
	attr.send_cq = attr.recv_cq = side->cq;
	assert_int_equal(rdma_create_qp_ex(id, &attr), 0);
	side->qpx = ibv_qp_to_qp_ex(id->qp);
	assert_non_null(side->qpx);
	side->buf = aligned_alloc(4096, PAIR_BUF);
	assert_non_null(side->buf);
	memset(side->buf, 0, PAIR_BUF);
	side->mr = ibv_reg_mr(id->pd, side->buf, PAIR_BUF, PAIR_ACCESS);
	assert_non_null(side->mr);
}

static void side_close(struct side *side)
{
	if (side->id && side->id->qp)
		rdma_destroy_qp(side->id);
	if (side->mr)
		assert_int_equal(ibv_dereg_mr(side->mr), 0);
	if (side->cq)
		assert_int_equal(ibv_destroy_cq(side->cq), 0);
	if (side->comp)
		assert_int_equal(ibv_destroy_comp_channel(side->comp), 0);
	if (side->id)
		assert_int_equal(rdma_destroy_id(side->id), 0);
	free(side->buf);
}

uint16_t pair_port(struct pair *pair)
{
	return ntohs(rdma_get_src_port(pair->listen));
}

static void listen_open(struct pair *pair)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	pair->server.channel = rdma_create_event_channel();
	assert_non_null(pair->server.channel);
	assert_int_equal(rdma_create_id(pair->server.channel, &pair->listen, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(pair->listen, (struct sockaddr *)&any), 0);
	assert_int_equal(rdma_listen(pair->listen, 8), 0);
}

int pair_request(struct pair *pair)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(pair_port(pair))};
	struct mpa_frame frame = {.revision = 1};
	uint8_t buf[MPA_HDR_LEN];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	mpa_encode(buf, &frame);
	assert_int_equal(send(fd, buf, sizeof(buf), MSG_NOSIGNAL), sizeof(buf));
	return fd;
}

void pair_open(struct pair *pair, const struct pair_setup *setup)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_conn_param param = {
		.responder_resources = 4, .initiator_depth = 4, .rnr_retry_count = 7};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = PAIR_DEPTH, .max_sge = 4}};

	memset(pair, 0, sizeof(*pair));
	if (setup && setup->param.responder_resources)
		param = setup->param;
	listen_open(pair);
	if (setup && setup->raw)
		return;
	to.sin_port = htons(pair_port(pair));
	pair->client.channel = rdma_create_event_channel();
	assert_int_equal(rdma_create_id(pair->client.channel, &pair->client.id, NULL, RDMA_PS_TCP),
			 0);
	assert_int_equal(rdma_resolve_addr(pair->client.id, NULL, (struct sockaddr *)&to, 1000), 0);
	expect_event(&pair->client, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(pair->client.id, 1000), 0);
	expect_event(&pair->client, RDMA_CM_EVENT_ROUTE_RESOLVED);
	side_open(&pair->client, NULL);
	assert_int_equal(rdma_connect(pair->client.id, &param), 0);
	pair->server.id = expect_request(&pair->server, NULL);
	if (setup && setup->use_srq) {
		pair->srq = ibv_create_srq(pair->server.id->pd, &srq);
		assert_non_null(pair->srq);
	}
	side_open(&pair->server, pair->srq);
	assert_int_equal(rdma_accept(pair->server.id, &param), 0);
	expect_event(&pair->server, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(&pair->client, RDMA_CM_EVENT_ESTABLISHED);
}

void pair_close(struct pair *pair)
{
	side_close(&pair->client);
	side_close(&pair->server);
	if (pair->srq)
		assert_int_equal(ibv_destroy_srq(pair->srq), 0);
	assert_int_equal(rdma_destroy_id(pair->listen), 0);
	rdma_destroy_event_channel(pair->server.channel);
	if (pair->client.channel)
		rdma_destroy_event_channel(pair->client.channel);
}

struct ibv_wc expect_wc(struct ibv_cq *cq)
{
	uint64_t until = srn_now_ns() + WC_LIMIT_NS;
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (n == 0 && srn_now_ns() < until);
	assert_int_equal(n, 1);
	return wc;
}

struct ibv_wc expect_success(struct ibv_cq *cq, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = expect_wc(cq);

	assert_string_equal(ibv_wc_status_str(wc.status), ibv_wc_status_str(IBV_WC_SUCCESS));
	assert_int_equal(wc.opcode, opcode);
	return wc;
}

int post(struct side *side, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(side->id->qp, wr, &bad);
}

struct ibv_sge sge_of(struct side *side, uint32_t offset, uint32_t length)
{
	return (struct ibv_sge){(uintptr_t)side->buf + offset, length, side->mr->lkey};
}

void post_recv(struct side *side, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = sge_of(side, offset, length);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(side->id->qp, &wr, &bad), 0);
}

struct ibv_send_wr request(enum ibv_wr_opcode opcode, struct pair *pair, struct ibv_sge *sge,
			   uint32_t remote_offset)
{
	struct ibv_send_wr wr = {.wr_id = 0x1234,
				 .sg_list = sge,
				 .num_sge = sge ? 1 : 0,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED};
	uint64_t remote = (uintptr_t)pair->server.buf + remote_offset;

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = pair->server.mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = pair->server.mr->rkey;
	}
	return wr;
}
