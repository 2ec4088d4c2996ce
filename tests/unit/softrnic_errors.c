// SPDX-License-Identifier: BSD-3-Clause
/* What goes wrong, and what the two sides hear of it. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softrnic_pair.h"

static void assert_status(struct ibv_wc wc, enum ibv_wc_status status)
{
	assert_string_equal(ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
}

static void expect_async(struct side *side, enum ibv_event_type type)
{
	struct ibv_async_event event;

	assert_int_equal(ibv_get_async_event(side->id->verbs, &event), 0);
	assert_string_equal(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	assert_ptr_equal(event.element.qp, side->id->qp);
	ibv_ack_async_event(&event);
}

/* Posts wr, which the peer must refuse, and two more; tells what became of the three. */
static void refused(struct pair *pair, struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	struct ibv_sge sge = sge_of(&pair->client, 0, 8);
	struct ibv_send_wr more = request(IBV_WR_RDMA_READ, pair, &sge, 0), again = more;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	post_recv(&pair->server, 50, 0, 8);
	wr->next = &more;
	more.next = &again;
	assert_int_equal(post(&pair->client, wr), 0);
	assert_status(expect_wc(pair->client.cq), status);
	assert_status(expect_wc(pair->client.cq), IBV_WC_WR_FLUSH_ERR);
	assert_status(expect_wc(pair->client.cq), IBV_WC_WR_FLUSH_ERR);
	assert_status(expect_wc(pair->server.cq), IBV_WC_WR_FLUSH_ERR);
	expect_event(&pair->client, RDMA_CM_EVENT_DISCONNECTED);
	expect_event(&pair->server, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(ibv_query_qp(pair->server.id->qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
}

static void a_read_past_the_region_is_a_remote_access_error(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	sge = sge_of(&pair.client, 0, 8);
	wr = request(IBV_WR_RDMA_READ, &pair, &sge, PAIR_BUF - 7);
	refused(&pair, &wr, IBV_WC_REM_ACCESS_ERR);
	expect_async(&pair.server, IBV_EVENT_QP_ACCESS_ERR);
	pair_close(&pair);
}

static void a_read_with_an_unknown_key_is_a_remote_access_error(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	sge = sge_of(&pair.client, 0, 8);
	wr = request(IBV_WR_RDMA_READ, &pair, &sge, 0);
	wr.wr.rdma.rkey ^= 1;
	refused(&pair, &wr, IBV_WC_REM_ACCESS_ERR);
	pair_close(&pair);
}

static void a_read_whose_range_wraps_is_a_remote_access_error(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	sge = sge_of(&pair.client, 0, 8);
	wr = request(IBV_WR_RDMA_READ, &pair, &sge, 0);
	wr.wr.rdma.remote_addr = UINT64_MAX - 3;
	refused(&pair, &wr, IBV_WC_REM_ACCESS_ERR);
	pair_close(&pair);
}

static void rights_are_checked_on_every_access(void **state)
{
	const struct {
		enum ibv_wr_opcode opcode;
		int missing;
	} cases[] = {
		{IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC},
		{IBV_WR_ATOMIC_WRITE, IBV_ACCESS_REMOTE_WRITE},
	};
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pair_open(&pair, NULL);
		assert_int_equal(ibv_rereg_mr(pair.server.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
					      NULL, 0, PAIR_ACCESS & ~cases[i].missing),
				 0);
		sge = sge_of(&pair.client, 0, 8);
		wr = request(cases[i].opcode, &pair, &sge, 0);
		wr.wr.atomic.compare_add = 1;
		refused(&pair, &wr, IBV_WC_REM_ACCESS_ERR);
		assert_memory_equal(pair.server.buf, "\0\0\0\0\0\0\0\0", 8);
		pair_close(&pair);
	}
}

static void a_refused_write_places_nothing_and_fails_what_follows(void **state)
{
	struct ibv_send_wr wr, read;
	struct ibv_sge sge, back;
	struct pair pair;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		pair_open(&pair, NULL);
		memset(pair.client.buf, 0xff, 64);
		sge = sge_of(&pair.client, 0, 64);
		back = sge_of(&pair.client, 4096, 8);
		wr = request(IBV_WR_RDMA_WRITE, &pair, &sge, i == 0 ? PAIR_BUF - 63 : 0);
		if (i == 1)
			wr.wr.rdma.rkey += 0x100;
		if (i == 2)
			assert_int_equal(ibv_rereg_mr(pair.server.mr, IBV_REREG_MR_CHANGE_ACCESS,
						      NULL, NULL, 0,
						      PAIR_ACCESS & ~IBV_ACCESS_REMOTE_WRITE),
					 0);
		read = request(IBV_WR_RDMA_READ, &pair, &back, 0);
		wr.next = &read;
		wr.send_flags = 0;
		assert_int_equal(post(&pair.client, &wr), 0);
		assert_status(expect_wc(pair.client.cq), IBV_WC_REM_ACCESS_ERR);
		expect_event(&pair.server, RDMA_CM_EVENT_DISCONNECTED);
		assert_int_equal(pair.server.buf[PAIR_BUF - 1], 0);
		assert_int_equal(pair.server.buf[0], 0);
		pair_close(&pair);
	}
}

static void a_region_of_another_protection_domain_is_refused(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_pd *other;
	struct ibv_mr *mr;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	other = ibv_alloc_pd(pair.server.id->verbs);
	mr = ibv_reg_mr(other, pair.server.buf, 4096, PAIR_ACCESS);
	assert_non_null(mr);
	sge = sge_of(&pair.client, 0, 8);
	wr = request(IBV_WR_RDMA_READ, &pair, &sge, 0);
	wr.wr.rdma.rkey = mr->rkey;
	refused(&pair, &wr, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_pd(other), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	pair_close(&pair);
}

static void a_flush_without_the_right_is_refused(void **state)
{
	struct ibv_send_wr wr = {0};
	struct srn_qp *qp;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	(void)wr;
	assert_int_equal(ibv_rereg_mr(pair.server.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      PAIR_ACCESS & ~SRN_ACCESS_FLUSH_PERSISTENT),
			 0);
	qp = srn_qp(pair.client.id->qp);
	ibv_wr_start(pair.client.qpx);
	pair.client.qpx->wr_flags = IBV_SEND_SIGNALED;
#if SRN_HAVE_FLUSH
	qp->v.ex.wr_flush(pair.client.qpx, pair.server.mr->rkey, (uintptr_t)pair.server.buf, 8,
			  SRN_FLUSH_PERSISTENT, SRN_FLUSH_RANGE);
#else
	qp->v.wr_flush(pair.client.qpx, pair.server.mr->rkey, (uintptr_t)pair.server.buf, 8,
		       SRN_FLUSH_PERSISTENT, SRN_FLUSH_RANGE);
#endif
	assert_int_equal(ibv_wr_complete(pair.client.qpx), 0);
	assert_status(expect_wc(pair.client.cq), IBV_WC_REM_ACCESS_ERR);
	pair_close(&pair);
}

static void a_misaligned_atomic_is_an_invalid_request(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	sge = sge_of(&pair.client, 0, 8);
	wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, &pair, &sge, 4);
	refused(&pair, &wr, IBV_WC_REM_INV_REQ_ERR);
	pair_close(&pair);
}

static void a_send_longer_than_the_receive_is_an_error_on_both_sides(void **state)
{
	struct ibv_send_wr wr, read;
	struct ibv_sge sge, back;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	post_recv(&pair.server, 3, 0, 10);
	sge = sge_of(&pair.client, 0, 11);
	back = sge_of(&pair.client, 64, 8);
	wr = request(IBV_WR_SEND, &pair, &sge, 0);
	read = request(IBV_WR_RDMA_READ, &pair, &back, 0);
	wr.next = &read;
	wr.send_flags = 0;
	assert_int_equal(post(&pair.client, &wr), 0);
	assert_status(expect_wc(pair.server.cq), IBV_WC_LOC_LEN_ERR);
	assert_status(expect_wc(pair.client.cq), IBV_WC_REM_INV_REQ_ERR);
	pair_close(&pair);
}

static void a_send_nobody_receives_ends_in_rnr_after_the_retries(void **state)
{
	struct pair_setup setup = {.param = {.responder_resources = 4, .initiator_depth = 4}};
	struct ibv_send_wr wr, read;
	struct ibv_sge sge, back;
	struct pair pair;
	uint64_t before;

	(void)state;
	pair_open(&pair, &setup);
	sge = sge_of(&pair.client, 0, 11);
	back = sge_of(&pair.client, 64, 8);
	wr = request(IBV_WR_SEND, &pair, &sge, 0);
	read = request(IBV_WR_RDMA_READ, &pair, &back, 0);
	wr.next = &read;
	wr.send_flags = 0;
	before = srn_now_ns();
	assert_int_equal(post(&pair.client, &wr), 0);
	assert_status(expect_wc(pair.client.cq), IBV_WC_RNR_RETRY_EXC_ERR);
	assert_true(srn_now_ns() - before > 600000000);
	pair_close(&pair);
}

static void a_bad_local_key_is_a_local_protection_error(void **state)
{
	const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ,
					      IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		pair_open(&pair, NULL);
		sge = sge_of(&pair.client, 0, 8);
		sge.lkey ^= 1;
		wr = request(opcodes[i], &pair, &sge, 0);
		assert_int_equal(post(&pair.client, &wr), 0);
		assert_status(expect_wc(pair.client.cq), IBV_WC_LOC_PROT_ERR);
		expect_event(&pair.client, RDMA_CM_EVENT_DISCONNECTED);
		expect_event(&pair.server, RDMA_CM_EVENT_DISCONNECTED);
		pair_close(&pair);
	}
}

static void a_receive_with_a_bad_key_is_a_local_protection_error(void **state)
{
	struct ibv_sge bad = {0}, sge;
	struct ibv_recv_wr recv = {.sg_list = &bad, .num_sge = 1}, *bad_wr;
	struct ibv_send_wr wr;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	bad = sge_of(&pair.server, 0, 64);
	bad.lkey ^= 1;
	assert_int_equal(ibv_post_recv(pair.server.id->qp, &recv, &bad_wr), 0);
	sge = sge_of(&pair.client, 0, 8);
	wr = request(IBV_WR_SEND, &pair, &sge, 0);
	assert_int_equal(post(&pair.client, &wr), 0);
	assert_status(expect_wc(pair.server.cq), IBV_WC_LOC_PROT_ERR);
	pair_close(&pair);
}

static void a_disconnect_flushes_both_sides(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	post_recv(&pair.client, 1, 0, 8);
	post_recv(&pair.server, 2, 0, 8);
	assert_int_equal(rdma_disconnect(pair.client.id), 0);
	assert_status(expect_wc(pair.client.cq), IBV_WC_WR_FLUSH_ERR);
	assert_status(expect_wc(pair.server.cq), IBV_WC_WR_FLUSH_ERR);
	expect_event(&pair.client, RDMA_CM_EVENT_DISCONNECTED);
	expect_event(&pair.server, RDMA_CM_EVENT_DISCONNECTED);
	/* requests posted later are flushed too */
	sge = sge_of(&pair.client, 0, 8);
	wr = request(IBV_WR_SEND, &pair, &sge, 0);
	assert_int_equal(post(&pair.client, &wr), 0);
	assert_status(expect_wc(pair.client.cq), IBV_WC_WR_FLUSH_ERR);
	post_recv(&pair.server, 9, 0, 8);
	assert_int_equal(expect_wc(pair.server.cq).wr_id, 9);
	assert_int_equal(rdma_disconnect(pair.server.id), 0);
	pair_close(&pair);
}

static void what_was_sent_before_a_disconnect_arrives(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	post_recv(&pair.server, 2, 0, PAIR_BUF);
	fill(pair.client.buf, 100000, 5);
	sge = sge_of(&pair.client, 0, 100000);
	wr = request(IBV_WR_SEND, &pair, &sge, 0);
	assert_int_equal(post(&pair.client, &wr), 0);
	expect_success(pair.client.cq, IBV_WC_SEND);
	assert_int_equal(rdma_disconnect(pair.client.id), 0);
	expect_success(pair.server.cq, IBV_WC_RECV);
	assert_memory_equal(pair.server.buf, pair.client.buf, 100000);
	pair_close(&pair);
}

static void the_device_refuses_what_a_device_refuses(void **state)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};
	struct ibv_send_wr wr;
	struct ibv_sge sge[5];
	struct ibv_qp *qp;
	struct pair pair;
	void *gone;

	(void)state;
	pair_open(&pair, NULL);
	attr.send_cq = attr.recv_cq = pair.client.cq;
	assert_null(ibv_create_qp(pair.client.id->pd, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.qp_type = IBV_QPT_RC;
	attr.cap.max_send_wr = SRN_MAX_QP_WR + 1;
	assert_null(ibv_create_qp(pair.client.id->pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.cap.max_send_wr = attr.cap.max_send_sge = 4;
	qp = ibv_create_qp(pair.client.id->pd, &attr);
	assert_non_null(qp);
	assert_null(ibv_qp_to_qp_ex(qp));
	sge[0] = sge_of(&pair.client, 0, 8);
	wr = request(IBV_WR_SEND, &pair, sge, 0);
	assert_int_equal(ibv_post_send(qp, &wr, &(struct ibv_send_wr *){NULL}), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &rts, IBV_QP_STATE), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	wr.num_sge = 5;
	assert_int_equal(post(&pair.client, &wr), EINVAL);
	wr = request(IBV_WR_LOCAL_INV, &pair, NULL, 0);
	assert_int_equal(post(&pair.client, &wr), EOPNOTSUPP);
	sge[0].length = 257;
	wr = request(IBV_WR_SEND, &pair, sge, 0);
	wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(post(&pair.client, &wr), EINVAL);
	assert_null(ibv_reg_mr(pair.client.id->pd, pair.client.buf, 8, IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_mr(pair.client.id->pd, pair.client.buf, 0, 0));
	assert_int_equal(errno, EINVAL);
	gone = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(gone, 8192);
	assert_null(ibv_reg_mr(pair.client.id->pd, gone, 8192, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	assert_int_equal(ibv_destroy_cq(pair.client.cq), EBUSY);
	assert_int_equal(ibv_destroy_comp_channel(pair.client.comp), EBUSY);
	assert_int_equal(rdma_establish(pair.client.id), -1);
	pair_close(&pair);
}

static void connecting_to_a_closed_port_is_rejected(void **state)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(1)};
	struct side side = {0};
	struct rdma_conn_param param = {0};

	(void)state;
	side.channel = rdma_create_event_channel();
	assert_int_equal(rdma_create_id(side.channel, &side.id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(side.id, NULL, (struct sockaddr *)&to, 1000), 0);
	expect_event(&side, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_connect(side.id, &param), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_resolve_route(side.id, 1000), 0);
	expect_event(&side, RDMA_CM_EVENT_ROUTE_RESOLVED);
	side_open(&side, NULL);
	assert_int_equal(rdma_connect(side.id, &param), 0);
	assert_int_equal(expect_event(&side, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
	rdma_destroy_qp(side.id);
	ibv_dereg_mr(side.mr);
	ibv_destroy_cq(side.cq);
	ibv_destroy_comp_channel(side.comp);
	assert_int_equal(rdma_destroy_id(side.id), 0);
	rdma_destroy_event_channel(side.channel);
	free(side.buf);
}

static void a_rejection_carries_private_data(void **state)
{
	struct pair_setup setup = {.raw = true};
	struct rdma_conn_param param = {.private_data = "please",
					.private_data_len = 6,
					.responder_resources = 3,
					.initiator_depth = 2},
			       got;
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_cm_event *event;
	struct side side = {0};
	struct pair pair;

	(void)state;
	pair_open(&pair, &setup);
	to.sin_port = htons(pair_port(&pair));
	/* a synchronous id would wait in rdma_connect: the test is both sides */
	side.channel = rdma_create_event_channel();
	assert_int_equal(rdma_create_id(side.channel, &side.id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(side.id, NULL, (struct sockaddr *)&to, 1000), 0);
	expect_event(&side, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(side.id, 1000), 0);
	expect_event(&side, RDMA_CM_EVENT_ROUTE_RESOLVED);
	side_open(&side, NULL);
	assert_int_equal(rdma_connect(side.id, &param), 0);
	assert_int_equal(rdma_get_cm_event(pair.server.channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	got = event->param.conn;
	assert_ptr_equal(event->listen_id, pair.listen);
	assert_int_equal(got.private_data_len, 6);
	assert_memory_equal(got.private_data, "please", 6);
	assert_int_equal(got.responder_resources, 2);
	assert_int_equal(got.initiator_depth, 3);
	assert_int_equal(rdma_reject(event->id, "no way", 6), 0);
	assert_int_equal(rdma_destroy_id(event->id), 0);
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_get_cm_event(side.channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, -ECONNREFUSED);
	assert_int_equal(event->param.conn.private_data_len, 6);
	assert_memory_equal(event->param.conn.private_data, "no way", 6);
	rdma_ack_cm_event(event);
	rdma_destroy_qp(side.id);
	ibv_dereg_mr(side.mr);
	ibv_destroy_cq(side.cq);
	ibv_destroy_comp_channel(side.comp);
	assert_int_equal(rdma_destroy_id(side.id), 0);
	rdma_destroy_event_channel(side.channel);
	free(side.buf);
	pair_close(&pair);
}

static void an_empty_non_blocking_channel_says_eagain(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct pollfd pfd = {.fd = channel->fd, .events = POLLIN};

	(void)state;
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(rdma_get_cm_event(channel, &event), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	rdma_destroy_event_channel(channel);
}

static void events_follow_an_id_to_another_channel(void **state)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct side moved;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	assert_int_equal(rdma_disconnect(pair.server.id), 0); /* its event is queued */
	assert_int_equal(rdma_migrate_id(pair.server.id, other), 0);
	moved = pair.server;
	moved.channel = other;
	expect_event(&moved, RDMA_CM_EVENT_DISCONNECTED);
	pair_close(&pair);
	rdma_destroy_event_channel(other);
}

static void a_port_in_use_cannot_be_listened_on(void **state)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_cm_id *id;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	addr.sin_port = htons(pair_port(&pair));
	assert_int_equal(rdma_create_id(pair.server.channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&addr), -1);
	assert_int_equal(errno, EADDRINUSE);
	addr.sin_addr.s_addr = htonl(0xc0000263); /* TEST-NET-1: not this host's */
	addr.sin_port = 0;
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&addr), -1);
	assert_int_equal(errno, EADDRNOTAVAIL);
	assert_int_equal(rdma_destroy_id(id), 0);
	pair_close(&pair);
}

#define TEST(f) cmocka_unit_test_setup(f, with_time_limit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_read_past_the_region_is_a_remote_access_error),
		TEST(a_read_with_an_unknown_key_is_a_remote_access_error),
		TEST(a_read_whose_range_wraps_is_a_remote_access_error),
		TEST(rights_are_checked_on_every_access),
		TEST(a_refused_write_places_nothing_and_fails_what_follows),
		TEST(a_region_of_another_protection_domain_is_refused),
		TEST(a_flush_without_the_right_is_refused),
		TEST(a_misaligned_atomic_is_an_invalid_request),
		TEST(a_send_longer_than_the_receive_is_an_error_on_both_sides),
		TEST(a_send_nobody_receives_ends_in_rnr_after_the_retries),
		TEST(a_bad_local_key_is_a_local_protection_error),
		TEST(a_receive_with_a_bad_key_is_a_local_protection_error),
		TEST(a_disconnect_flushes_both_sides),
		TEST(what_was_sent_before_a_disconnect_arrives),
		TEST(the_device_refuses_what_a_device_refuses),
		TEST(connecting_to_a_closed_port_is_rejected),
		TEST(a_rejection_carries_private_data),
		TEST(an_empty_non_blocking_channel_says_eagain),
		TEST(events_follow_an_id_to_another_channel),
		TEST(a_port_in_use_cannot_be_listened_on),
	};

	return cmocka_run_group_tests_name("softrnic_errors", tests, NULL, NULL);
}
