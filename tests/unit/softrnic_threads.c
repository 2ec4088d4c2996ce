// SPDX-License-Identifier: BSD-3-Clause
/* Several threads at once, and things that go while they are in use. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "softrnic_pair.h"

#define THREADS 3
#define ROUNDS  200
#define QPS     8 /* enough for the CQ to use epoll */
#define PEERS   6 /* fewer than a listener of a pair admits */

static void *own_pair(void *arg)
{
	struct ibv_send_wr write, read;
	struct ibv_sge sge, back;
	struct pair pair;
	int i;

	(void)arg;
	pair_open(&pair, NULL);
	for (i = 0; i < ROUNDS; i++) {
		fill(pair.client.buf, 5000, (unsigned int)i);
		sge = sge_of(&pair.client, 0, 5000);
		back = sge_of(&pair.client, 8192, 5000);
		write = request(IBV_WR_RDMA_WRITE, &pair, &sge, 0);
		read = request(IBV_WR_RDMA_READ, &pair, &back, 0);
		write.next = &read;
		write.send_flags = 0;
		assert_int_equal(post(&pair.client, &write), 0);
		expect_success(pair.client.cq, IBV_WC_RDMA_READ);
		assert_memory_equal(pair.client.buf, pair.client.buf + 8192, 5000);
	}
	pair_close(&pair);
	return NULL;
}

static void threads_with_their_own_queue_pairs(void **state)
{
	pthread_t threads[THREADS];
	int i;

	(void)state;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, own_pair, NULL), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

struct shared {
	struct pair pair;
	atomic_int completed;
};

static void *poller(void *arg)
{
	struct shared *shared = arg;
	struct ibv_wc wc;
	int n;

	while (atomic_load(&shared->completed) < THREADS * ROUNDS) {
		n = ibv_poll_cq(shared->pair.client.cq, 1, &wc);
		assert_true(n >= 0);
		if (n)
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
		atomic_fetch_add(&shared->completed, n);
		if (!n)
			sched_yield();
	}
	return NULL;
}

static void *poster(void *arg)
{
	struct shared *shared = arg;
	struct ibv_sge sge = sge_of(&shared->pair.client, 0, 64);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, &shared->pair, &sge, 4096);
	int i;

	for (i = 0; i < ROUNDS; i++)
		while (post(&shared->pair.client, &wr) == ENOMEM)
			sched_yield();
	return NULL;
}

static void threads_that_post_to_one_queue_pair_and_poll_one_cq(void **state)
{
	pthread_t posters[THREADS], pollers[2];
	struct shared shared = {.completed = 0};
	int i;

	(void)state;
	pair_open(&shared.pair, NULL);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&pollers[i], NULL, poller, &shared), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&posters[i], NULL, poster, &shared), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(posters[i], NULL);
	for (i = 0; i < 2; i++)
		pthread_join(pollers[i], NULL);
	pair_close(&shared.pair);
}

/* Connects one more queue pair to the pair's listener, both ends on the pair's CQs. */
static void connect_more(struct pair *pair, struct rdma_cm_id **client, struct rdma_cm_id **server)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(pair_port(pair))};
	struct rdma_conn_param param = {.responder_resources = 4, .initiator_depth = 4};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};

	assert_int_equal(rdma_create_id(pair->client.channel, client, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(*client, NULL, (struct sockaddr *)&to, 1000), 0);
	expect_event(&pair->client, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(*client, 1000), 0);
	expect_event(&pair->client, RDMA_CM_EVENT_ROUTE_RESOLVED);
	attr.send_cq = attr.recv_cq = pair->client.cq;
	assert_int_equal(rdma_create_qp(*client, pair->client.id->pd, &attr), 0);
	assert_int_equal(rdma_connect(*client, &param), 0);
	*server = expect_request(&pair->server, NULL);
	attr.send_cq = attr.recv_cq = pair->server.cq;
	assert_int_equal(rdma_create_qp(*server, pair->server.id->pd, &attr), 0);
	assert_int_equal(rdma_accept(*server, &param), 0);
	expect_event(&pair->server, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(&pair->client, RDMA_CM_EVENT_ESTABLISHED);
}

/*
 * An unsignalled write goes out while the program only polls.  The test looks at memory the engine
 * writes, which TSan cannot follow.
 */
static void send_unsignalled(struct pair *pair, struct rdma_cm_id *id)
{
#ifndef __SANITIZE_THREAD__
	uint64_t until = srn_now_ns() + 5000000000ull;
	struct ibv_sge sge = sge_of(&pair->client, 0, 1);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, pair, &sge, 0), *bad;
	struct ibv_wc wc;

	while (!atomic_load(&srn_cq(pair->client.cq)->polled) && srn_now_ns() < until)
		assert_int_equal(ibv_poll_cq(pair->client.cq, 1, &wc), 0);
	pair->client.buf[0] = (uint8_t)~pair->server.buf[0];
	wr.send_flags = 0;
	assert_int_equal(ibv_post_send(id->qp, &wr, &bad), 0);
	while (__atomic_load_n(pair->server.buf, __ATOMIC_ACQUIRE) != pair->client.buf[0] &&
	       srn_now_ns() < until)
		assert_int_equal(ibv_poll_cq(pair->client.cq, 1, &wc), 0);
	assert_int_equal(pair->server.buf[0], pair->client.buf[0]);
#else
	(void)pair;
	(void)id;
#endif
}

static void many_queue_pairs_on_one_cq_all_progress(void **state)
{
	struct rdma_cm_id *clients[QPS], *servers[QPS];
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct pair pair;
	int i, round;

	(void)state;
	pair_open(&pair, NULL);
	fill(pair.server.buf, 100000, 1);
	for (i = 0; i < QPS; i++)
		connect_more(&pair, &clients[i], &servers[i]);
	assert_true(srn_cq(pair.client.cq)->epfd >= 0);
	for (round = 0; round < 30; round++) {
		for (i = 0; i < QPS; i++) {
			sge = sge_of(&pair.client, (uint32_t)i * 100000, 100000);
			wr = request(IBV_WR_RDMA_READ, &pair, &sge, 0);
			assert_int_equal(ibv_post_send(clients[i]->qp, &wr, &bad), 0);
		}
		for (i = 0; i < QPS; i++)
			expect_success(pair.client.cq, IBV_WC_RDMA_READ);
	}
	for (i = 0; i < QPS; i++)
		assert_memory_equal(pair.client.buf + i * 100000, pair.server.buf, 100000);
	send_unsignalled(&pair, clients[3]);
	for (i = 0; i < QPS; i++) {
		rdma_destroy_qp(clients[i]);
		rdma_destroy_id(clients[i]);
		rdma_destroy_qp(servers[i]);
		rdma_destroy_id(servers[i]);
	}
	pair_close(&pair);
}

static void queue_pairs_may_be_destroyed_in_the_middle_of_traffic(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;
	int round, i;

	(void)state;
	for (round = 0; round < 40; round++) {
		pair_open(&pair, NULL);
		for (i = 0; i < 8; i++) {
			sge = sge_of(&pair.client, 0, 200000);
			wr = request(i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &pair, &sge, 0);
			assert_int_equal(post(&pair.client, &wr), 0);
		}
		if (round & 1)
			rdma_destroy_qp(pair.server.id);
		pair_close(&pair);
	}
}

static void a_region_may_go_in_the_middle_of_traffic(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;
	struct ibv_wc wc;
	int round, i;

	(void)state;
	for (round = 0; round < 20; round++) {
		pair_open(&pair, NULL);
		for (i = 0; i < 16; i++) {
			sge = sge_of(&pair.client, 0, 300000);
			wr = request(IBV_WR_RDMA_WRITE, &pair, &sge, 0);
			assert_int_equal(post(&pair.client, &wr), 0);
		}
		assert_int_equal(ibv_dereg_mr(pair.server.mr), 0);
		memset(pair.server.buf, 0xee, PAIR_BUF);
		for (i = 0; i < 16; i++) {
			wc = expect_wc(pair.client.cq);
			assert_true(wc.status == IBV_WC_SUCCESS ||
				    wc.status == IBV_WC_WR_FLUSH_ERR ||
				    wc.status == IBV_WC_REM_ACCESS_ERR);
		}
		assert_int_equal(pair.server.buf[299999], 0xee);
		pair.server.mr = NULL;
		pair_close(&pair);
	}
}

static void connections_may_be_given_up_at_any_point(void **state)
{
	struct pair_setup setup = {.raw = true};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct side side;
	struct pair pair;
	int round, i;

	/* nobody accepts: the id goes while the request is on its way or waits */
	(void)state;
	pair_open(&pair, &setup);
	to.sin_port = htons(pair_port(&pair));
	for (round = 0; round < 60; round++) {
		memset(&side, 0, sizeof(side));
		side.channel = rdma_create_event_channel();
		assert_int_equal(rdma_create_id(side.channel, &side.id, NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_resolve_addr(side.id, NULL, (struct sockaddr *)&to, 1000), 0);
		expect_event(&side, RDMA_CM_EVENT_ADDR_RESOLVED);
		assert_int_equal(rdma_resolve_route(side.id, 1000), 0);
		expect_event(&side, RDMA_CM_EVENT_ROUTE_RESOLVED);
		side_open(&side, NULL);
		assert_int_equal(rdma_connect(side.id, &param), 0);
		for (i = 0; i < round % 7; i++)
			sched_yield();
		rdma_destroy_qp(side.id);
		assert_int_equal(rdma_destroy_id(side.id), 0);
		assert_int_equal(ibv_dereg_mr(side.mr), 0);
		assert_int_equal(ibv_destroy_cq(side.cq), 0);
		assert_int_equal(ibv_destroy_comp_channel(side.comp), 0);
		rdma_destroy_event_channel(side.channel);
		free(side.buf);
	}
	pair_close(&pair);
}

static void a_listener_may_go_while_requests_arrive(void **state)
{
	struct pair_setup setup = {.raw = true};
	int fds[PEERS], round, i;
	struct pair pair;

	(void)state;
	for (round = 0; round < 100; round++) {
		pair_open(&pair, &setup);
		for (i = 0; i < PEERS; i++)
			fds[i] = pair_request(&pair);
		for (i = 0; i < round % 16; i++)
			sched_yield();
		pair_close(&pair);
		for (i = 0; i < PEERS; i++)
			close(fds[i]);
	}
}

#define TEST(f) cmocka_unit_test_setup(f, with_time_limit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(threads_with_their_own_queue_pairs),
		TEST(threads_that_post_to_one_queue_pair_and_poll_one_cq),
		TEST(many_queue_pairs_on_one_cq_all_progress),
		TEST(queue_pairs_may_be_destroyed_in_the_middle_of_traffic),
		TEST(a_region_may_go_in_the_middle_of_traffic),
		TEST(connections_may_be_given_up_at_any_point),
		TEST(a_listener_may_go_while_requests_arrive),
	};

	return cmocka_run_group_tests_name("softrnic_threads", tests, NULL, NULL);
}
