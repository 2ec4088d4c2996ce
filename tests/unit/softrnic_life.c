// SPDX-License-Identifier: BSD-3-Clause
/* What happens to queue pairs, identifiers and requests that live long, move, or go too early. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softrnic_pair.h"

#define LIMIT_NS 20000000000ull

void __wrap_srn_src_remove(struct srn_src *src);
void __real_srn_src_remove(struct srn_src *src);

/* Waits for what other threads do; ends the test if it does not come. */
#define UNTIL(condition)                                           \
	do {                                                       \
		uint64_t until_ = __real_srn_now_ns() + LIMIT_NS;  \
		while (!(condition)) {                             \
			assert_true(__real_srn_now_ns() < until_); \
			sched_yield();                             \
		}                                                  \
	} while (0)

/* Where the engine stands still, so that a test can act between two steps of it. */
static struct {
	atomic_bool wanted, there, go;
} halt;

void __wrap_srn_src_remove(struct srn_src *src)
{
	uint64_t until = __real_srn_now_ns() + LIMIT_NS;

	if (srn_on_engine() && atomic_exchange(&halt.wanted, false)) {
		atomic_store(&halt.there, true);
		while (!atomic_load(&halt.go) && __real_srn_now_ns() < until)
			sched_yield();
	}
	__real_srn_src_remove(src);
}

/* A client of the pair's listener that has a route, but no queue pair yet. */
static void client_open(struct side *side, struct pair *pair)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(pair_port(pair))};

	memset(side, 0, sizeof(*side));
	side->channel = rdma_create_event_channel();
	assert_non_null(side->channel);
	assert_int_equal(rdma_create_id(side->channel, &side->id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(side->id, NULL, (struct sockaddr *)&to, 1000), 0);
	expect_event(side, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(side->id, 1000), 0);
	expect_event(side, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* With a queue pair that side_open() made, or without. */
static void client_close(struct side *side)
{
	if (side->id->qp)
		rdma_destroy_qp(side->id);
	if (side->mr) {
		assert_int_equal(ibv_dereg_mr(side->mr), 0);
		assert_int_equal(ibv_destroy_cq(side->cq), 0);
		assert_int_equal(ibv_destroy_comp_channel(side->comp), 0);
		free(side->buf);
	}
	assert_int_equal(rdma_destroy_id(side->id), 0);
	rdma_destroy_event_channel(side->channel);
}

static bool event_comes(struct rdma_event_channel *channel)
{
	struct pollfd pfd = {.fd = channel->fd, .events = POLLIN};

	return poll(&pfd, 1, (int)(LIMIT_NS / 1000000)) == 1;
}

/* A queue pair no identifier knows. */
static struct ibv_qp *own_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	assert_non_null(qp);
	assert_int_equal(ibv_modify_qp(qp, &init, IBV_QP_STATE), 0);
	return qp;
}

static void a_queue_pair_may_go_while_it_is_being_connected(void **state)
{
	struct pair_setup setup = {.raw = true};
	struct rdma_conn_param param = {.responder_resources = 4, .initiator_depth = 4};
	struct side client;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct pair pair;

	(void)state;
	pair_open(&pair, &setup);
	client_open(&client, &pair);
	cq = ibv_create_cq(client.id->verbs, 8, NULL, NULL, 0);
	assert_non_null(cq);
	qp = own_qp(client.id->pd, cq);
	param.qp_num = qp->qp_num;
	assert_int_equal(rdma_connect(client.id, &param), 0);
	pair.server.id = expect_request(&pair.server, NULL);
	side_open(&pair.server, NULL);
	atomic_store(&halt.wanted, true);
	assert_int_equal(rdma_accept(pair.server.id, &param), 0);
	/* The engine has the reply and is about to give the connection to the queue pair. */
	UNTIL(atomic_load(&halt.there));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	atomic_store(&halt.go, true);
	expect_event(&client, RDMA_CM_EVENT_CONNECT_ERROR);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	client_close(&client);
	pair_close(&pair);
}

/* A request waits while its listening identifier moves to another channel and the old one goes. */
static void a_request_follows_its_listening_identifier(void **state)
{
	struct pair_setup setup = {.raw = true};
	struct rdma_conn_param param = {.responder_resources = 4, .initiator_depth = 4};
	struct rdma_event_channel *old;
	struct side client;
	struct pair pair;

	(void)state;
	pair_open(&pair, &setup);
	client_open(&client, &pair);
	side_open(&client, NULL);
	assert_int_equal(rdma_connect(client.id, &param), 0);
	assert_true(event_comes(pair.server.channel));
	old = pair.server.channel;
	pair.server.channel = rdma_create_event_channel();
	assert_non_null(pair.server.channel);
	assert_int_equal(rdma_migrate_id(pair.listen, pair.server.channel), 0);
	rdma_destroy_event_channel(old);
	pair.server.id = expect_request(&pair.server, NULL);
	assert_ptr_equal(pair.server.id->channel, pair.server.channel);
	side_open(&pair.server, NULL);
	assert_int_equal(rdma_accept(pair.server.id, &param), 0);
	expect_event(&pair.server, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(&client, RDMA_CM_EVENT_ESTABLISHED);
	client_close(&client);
	pair_close(&pair);
}

/* A synchronous listening identifier becomes another, or another one synchronous, meanwhile. */
static void a_request_is_synchronous_if_its_listening_identifier_is(void **state)
{
	struct pair_setup setup = {.raw = true};
	struct rdma_conn_param param = {.responder_resources = 4, .initiator_depth = 4};
	struct rdma_cm_id *id;
	struct side client;
	struct pair pair;
	int sync;

	(void)state;
	for (sync = 0; sync < 2; sync++) {
		pair_open(&pair, &setup);
		if (!sync)
			assert_int_equal(rdma_migrate_id(pair.listen, NULL), 0);
		client_open(&client, &pair);
		side_open(&client, NULL);
		assert_int_equal(rdma_connect(client.id, &param), 0);
		assert_true(event_comes(pair.listen->channel));
		assert_int_equal(rdma_migrate_id(pair.listen, sync ? NULL : pair.server.channel),
				 0);
		if (sync)
			assert_int_equal(rdma_get_request(pair.listen, &id), 0);
		else
			id = expect_request(&pair.server, NULL);
		assert_int_equal(srn_id(id)->sync, sync);
		pair.server.id = id;
		side_open(&pair.server, NULL);
		assert_int_equal(rdma_accept(id, &param), 0);
		if (!sync)
			expect_event(&pair.server, RDMA_CM_EVENT_ESTABLISHED);
		expect_event(&client, RDMA_CM_EVENT_ESTABLISHED);
		client_close(&client);
		pair_close(&pair);
	}
}

/* Or the grace it has then is over already: the machine stood still. */
static bool hung_up(struct side *side)
{
	struct srn_qp *qp = srn_qp(side->id->qp);
	bool is;

	pthread_mutex_lock(&qp->lock);
	is = qp->rx.hangup || qp->fd < 0;
	pthread_mutex_unlock(&qp->lock);
	return is;
}

/* The peer sent two messages and went; the program has a receive for the first. */
static void a_peer_that_went_is_noticed_behind_a_message_nobody_receives(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;
	int i;

	(void)state;
	pair_open(&pair, NULL);
	for (i = 0; i < 2; i++) {
		sge = sge_of(&pair.client, 0, 10);
		wr = request(IBV_WR_SEND, &pair, &sge, 0);
		assert_int_equal(post(&pair.client, &wr), 0);
	}
	assert_int_equal(rdma_disconnect(pair.client.id), 0);
	UNTIL(hung_up(&pair.server));
	post_recv(&pair.server, 1, 0, 100);
	expect_wc(pair.server.cq);
	/* the second has its second, then that is it */
	assert_true(event_comes(pair.server.channel));
	expect_event(&pair.server, RDMA_CM_EVENT_DISCONNECTED);
	pair_close(&pair);
}

/* Also with a shared receive queue: what it receives completes somewhere. */
static void a_queue_pair_needs_both_completion_queues(void **state)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	struct ibv_context *context = srn_cm_context();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_qp *qp;
	struct ibv_cq *cq;

	(void)state;
	assert_non_null(pd);
	cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	assert_non_null(cq);
	attr.srq = ibv_create_srq(pd, &srq);
	assert_non_null(attr.srq);
	attr.send_cq = cq;
	assert_null(ibv_create_qp(pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.recv_cq = cq;
	attr.send_cq = NULL;
	assert_null(ibv_create_qp(pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.send_cq = cq;
	qp = ibv_create_qp(pd, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(attr.srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* One more client of the pair's listener, with a send queue of depth, on the pair's CQs. */
static void connect_more(struct pair *pair, uint32_t depth, struct side *client,
			 struct rdma_cm_id **server)
{
	struct rdma_conn_param param = {.responder_resources = 4, .initiator_depth = 4};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {depth, 4, 1, 1, 0}};

	client_open(client, pair);
	attr.send_cq = attr.recv_cq = pair->client.cq;
	assert_int_equal(rdma_create_qp(client->id, pair->client.id->pd, &attr), 0);
	assert_int_equal(rdma_connect(client->id, &param), 0);
	*server = expect_request(&pair->server, NULL);
	attr.send_cq = attr.recv_cq = pair->server.cq;
	assert_int_equal(rdma_create_qp(*server, pair->server.id->pd, &attr), 0);
	assert_int_equal(rdma_accept(*server, &param), 0);
	expect_event(&pair->server, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(client, RDMA_CM_EVENT_ESTABLISHED);
}

/* As after so many requests; none is outstanding. */
static void set_indices(struct ibv_qp *base, uint32_t index)
{
	struct srn_qp *qp = srn_qp(base);

	pthread_mutex_lock(&qp->lock);
	assert_int_equal(qp->sq_head, qp->sq_tail);
	qp->sq_head = qp->sq_tx = qp->sq_tail = qp->sq_seen = index;
	qp->response_head = qp->response_tx = index;
	pthread_mutex_unlock(&qp->lock);
}

/* The depth does not divide 2^32, and just as many requests fit all the same. */
static void a_queue_pair_may_do_more_than_2_to_32_requests(void **state)
{
	enum { DEPTH = 10, ROUNDS = 8 };
	struct ibv_send_wr wr[DEPTH + 1], *bad;
	struct ibv_sge sge[DEPTH + 1];
	struct rdma_cm_id *server;
	struct side client;
	struct pair pair;
	struct ibv_wc wc;
	int i, round;

	(void)state;
	pair_open(&pair, NULL);
	connect_more(&pair, DEPTH, &client, &server);
	fill(pair.server.buf, 1000, 3);
	set_indices(client.id->qp, UINT32_MAX - 2 * DEPTH);
	set_indices(server->qp, UINT32_MAX - 2 * DEPTH);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i <= DEPTH; i++) {
			sge[i] = sge_of(&pair.client, (uint32_t)i * 1000, 1000);
			wr[i] = request(IBV_WR_RDMA_READ, &pair, &sge[i], 0);
			wr[i].wr_id = (uint64_t)(round * DEPTH + i);
			wr[i].next = i < DEPTH ? &wr[i + 1] : NULL;
		}
		assert_int_equal(ibv_post_send(client.id->qp, wr, &bad), ENOMEM);
		assert_ptr_equal(bad, &wr[DEPTH]);
		for (i = 0; i < DEPTH; i++) {
			wc = expect_success(pair.client.cq, IBV_WC_RDMA_READ);
			assert_int_equal(wc.wr_id, round * DEPTH + i);
			assert_memory_equal(pair.client.buf + i * 1000, pair.server.buf, 1000);
		}
		memset(pair.client.buf, 0, DEPTH * 1000);
	}
	client_close(&client);
	rdma_destroy_qp(server);
	assert_int_equal(rdma_destroy_id(server), 0);
	pair_close(&pair);
}

static bool blocked(struct side *side)
{
	struct srn_qp *qp = srn_qp(side->id->qp);
	bool is;

	pthread_mutex_lock(&qp->lock);
	is = qp->tx.blocked;
	pthread_mutex_unlock(&qp->lock);
	return is;
}

/* The client waits with a message nobody receives, and the sockets in between hold little. */
static void obstruct(struct pair *pair)
{
	struct ibv_sge sge = sge_of(&pair->server, 0, 8);
	struct ibv_send_wr wr = request(IBV_WR_SEND, pair, &sge, 0);
	int size = 65536;

	assert_int_equal(setsockopt(srn_qp(pair->server.id->qp)->fd, SOL_SOCKET, SO_SNDBUF, &size,
				    sizeof(size)),
			 0);
	assert_int_equal(setsockopt(srn_qp(pair->client.id->qp)->fd, SOL_SOCKET, SO_RCVBUF, &size,
				    sizeof(size)),
			 0);
	assert_int_equal(post(&pair->server, &wr), 0);
	expect_success(pair->server.cq, IBV_WC_SEND);
}

static void a_response_whose_memory_goes_is_no_requests_fault(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;
	int i;

	(void)state;
	pair_open(&pair, NULL);
	obstruct(&pair);
	for (i = 0; i < 4; i++) {
		sge = sge_of(&pair.client, 0, PAIR_BUF);
		wr = request(IBV_WR_RDMA_READ, &pair, &sge, 0);
		assert_int_equal(post(&pair.client, &wr), 0);
	}
	UNTIL(blocked(&pair.server));
	wr = request(IBV_WR_SEND, &pair, NULL, 0);
	assert_int_equal(post(&pair.server, &wr), 0);
	assert_int_equal(ibv_dereg_mr(pair.server.mr), 0);
	pair.server.mr = NULL;
	post_recv(&pair.client, 1, 0, 100);
	assert_int_equal(expect_wc(pair.server.cq).status, IBV_WC_WR_FLUSH_ERR);
	expect_event(&pair.server, RDMA_CM_EVENT_DISCONNECTED);
	expect_event(&pair.client, RDMA_CM_EVENT_DISCONNECTED);
	pair_close(&pair);
}

static void a_request_whose_memory_goes_is_to_blame_itself(void **state)
{
	enum { LENGTH = 32768, EVERY = 16, COUNT = 32 };
	struct ibv_send_wr wr[COUNT];
	struct ibv_sge sge[COUNT];
	struct ibv_mr *other;
	struct pair pair;
	struct ibv_wc wc;
	uint64_t i;

	(void)state;
	pair_open(&pair, NULL);
	other = ibv_reg_mr(pair.server.id->pd, pair.server.buf, LENGTH, PAIR_ACCESS);
	assert_non_null(other);
	obstruct(&pair);
	for (i = 0; i < COUNT; i++) {
		sge[i] = sge_of(&pair.server, 0, LENGTH);
		if (i % EVERY == EVERY - 1)
			sge[i].lkey = other->lkey;
		wr[i] = request(IBV_WR_RDMA_WRITE, &pair, &sge[i], 0);
		wr[i].wr_id = i;
		wr[i].wr.rdma.remote_addr = (uintptr_t)pair.client.buf;
		wr[i].wr.rdma.rkey = pair.client.mr->rkey;
		wr[i].next = i + 1 < COUNT ? &wr[i + 1] : NULL;
	}
	/* at once, so that they are frames when the socket is full */
	assert_int_equal(post(&pair.server, wr), 0);
	UNTIL(blocked(&pair.server));
	assert_int_equal(ibv_dereg_mr(other), 0);
	post_recv(&pair.client, 1, 0, 100);
	for (i = 0; i < COUNT; i++) {
		wc = expect_wc(pair.server.cq);
		assert_int_equal(wc.wr_id, i);
		if (wc.status == IBV_WC_LOC_PROT_ERR)
			assert_int_equal(i % EVERY, EVERY - 1);
		else if (wc.status == IBV_WC_SUCCESS)
			continue;
		else
			assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	}
	expect_event(&pair.server, RDMA_CM_EVENT_DISCONNECTED);
	expect_event(&pair.client, RDMA_CM_EVENT_DISCONNECTED);
	pair_close(&pair);
}

static void no_two_queue_pairs_have_one_number(void **state)
{
	struct ibv_qp *qp, *old;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	old = own_qp(pair.client.id->pd, pair.client.cq);
	/* as if the numbers had gone round since it was made */
	old->qp_num++;
	qp = own_qp(pair.client.id->pd, pair.client.cq);
	assert_int_not_equal(qp->qp_num, old->qp_num);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(old), 0);
	pair_close(&pair);
}

static void poll_some(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 1000; i++)
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

/* Without a pause: what counts is how many polls there are in a millisecond. */
static void poll_until_polled(struct srn_cq *cq)
{
	uint64_t until = __real_srn_now_ns() + LIMIT_NS;

	while (!atomic_load(&cq->polled)) {
		assert_int_equal(srn_poll_cq((struct ibv_cq *)&cq->ex, 1, &(struct ibv_wc){0}), 0);
		assert_true(__real_srn_now_ns() < until);
	}
}

/* The builder holds the queue pair's lock: its polls must not wait for that. */
static void requests_may_be_built_around_polls(void **state)
{
	enum { MORE = 4 }; /* with them the CQ uses epoll, and requests wait on its list */
	struct rdma_cm_id *servers[MORE];
	struct side clients[MORE];
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;
	struct srn_cq *cq;
	int i;

	(void)state;
	pair_open(&pair, NULL);
	cq = srn_cq(pair.client.cq);
	ibv_wr_start(pair.client.qpx);
	poll_some(pair.client.cq); /* enough to become polled */
	ibv_wr_abort(pair.client.qpx);
	poll_until_polled(cq);
	for (i = 0; i < MORE; i++)
		connect_more(&pair, 4, &clients[i], &servers[i]);
	assert_true(cq->epfd >= 0);
	poll_until_polled(cq);
	sge = sge_of(&pair.client, 0, 8);
	wr = request(IBV_WR_RDMA_WRITE, &pair, &sge, 0);
	wr.send_flags = 0; /* it waits for the next poll */
	assert_int_equal(post(&pair.client, &wr), 0);
	ibv_wr_start(pair.client.qpx);
	atomic_store(&cq->adopt_wanted, true);
	poll_some(pair.client.cq);
	assert_int_equal(ibv_req_notify_cq(pair.client.cq, 0), 0);
	pair.client.qpx->wr_id = 7;
	pair.client.qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_read(pair.client.qpx, pair.server.mr->rkey, (uintptr_t)pair.server.buf);
	ibv_wr_set_sge(pair.client.qpx, pair.client.mr->lkey, (uintptr_t)pair.client.buf, 8);
	assert_int_equal(ibv_wr_complete(pair.client.qpx), 0);
	assert_int_equal(expect_success(pair.client.cq, IBV_WC_RDMA_READ).wr_id, 7);
	for (i = 0; i < MORE; i++) {
		client_close(&clients[i]);
		rdma_destroy_qp(servers[i]);
		assert_int_equal(rdma_destroy_id(servers[i]), 0);
	}
	pair_close(&pair);
}

#define TEST(f) cmocka_unit_test_setup(f, with_time_limit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_queue_pair_may_go_while_it_is_being_connected),
		TEST(a_request_follows_its_listening_identifier),
		TEST(a_request_is_synchronous_if_its_listening_identifier_is),
		TEST(a_peer_that_went_is_noticed_behind_a_message_nobody_receives),
		TEST(a_queue_pair_needs_both_completion_queues),
		TEST(a_queue_pair_may_do_more_than_2_to_32_requests),
		TEST(a_response_whose_memory_goes_is_no_requests_fault),
		TEST(a_request_whose_memory_goes_is_to_blame_itself),
		TEST(no_two_queue_pairs_have_one_number),
		TEST(requests_may_be_built_around_polls),
	};

	return cmocka_run_group_tests_name("softrnic_life", tests, NULL, NULL);
}
