// SPDX-License-Identifier: BSD-3-Clause
/* Who moves the bytes, and what it costs when there are none. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "softrnic_pair.h"

#define IDLE_MS     1500
#define IDLE_CPU_NS (IDLE_MS * 1000000ull / 100) /* one percent */

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void idle(struct pair *pair)
{
	struct pollfd pfd = {.fd = pair->server.channel->fd, .events = POLLIN};
	uint64_t before;

	before = cpu_ns();
	assert_int_equal(poll(&pfd, 1, IDLE_MS), 0);
	assert_true(cpu_ns() - before < IDLE_CPU_NS);
}

static void poll_empty(struct ibv_cq *cq, uint64_t ns)
{
	uint64_t until = srn_now_ns() + ns;
	struct ibv_wc wc;

	while (srn_now_ns() < until)
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

static void write_and_read(struct pair *pair)
{
	struct ibv_sge sge = sge_of(&pair->client, 0, 4096);
	struct ibv_send_wr write = request(IBV_WR_RDMA_WRITE, pair, &sge, 0);
	struct ibv_send_wr read = request(IBV_WR_RDMA_READ, pair, &sge, 0);

	write.next = &read;
	assert_int_equal(post(&pair->client, &write), 0);
	expect_success(pair->client.cq, IBV_WC_RDMA_WRITE);
	expect_success(pair->client.cq, IBV_WC_RDMA_READ);
}

static bool in_engine(struct side *side)
{
	struct srn_qp *qp = srn_qp(side->id->qp);
	bool is;

	pthread_mutex_lock(&qp->lock);
	is = qp->in_engine;
	pthread_mutex_unlock(&qp->lock);
	return is;
}

/* A test that looks at memory a peer writes, or forks with threads: nothing TSan can follow. */
static void unless_tsan(void)
{
#ifdef __SANITIZE_THREAD__
	skip();
#endif
}

static void an_idle_connection_costs_no_processor_time(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	write_and_read(&pair);
	idle(&pair);
	pair_close(&pair);
}

static void a_cq_polled_over_and_over_takes_its_sockets_and_gives_them_back(void **state)
{
	struct pair pair;
	uint64_t until;

	(void)state;
	pair_open(&pair, NULL);
	until = srn_now_ns() + 5000000000ull;
	while (!atomic_load(&srn_cq(pair.client.cq)->polled) && srn_now_ns() < until)
		poll_empty(pair.client.cq, 1000000);
	assert_true(atomic_load(&srn_cq(pair.client.cq)->polled));
	assert_false(in_engine(&pair.client));
	write_and_read(&pair);
	/* nobody polls any more: the engine takes over, and costs nothing either */
	idle(&pair);
	assert_false(atomic_load(&srn_cq(pair.client.cq)->polled));
	assert_true(in_engine(&pair.client));
	write_and_read(&pair);
	pair_close(&pair);
}

static void arming_the_channel_gives_the_sockets_back_at_once(void **state)
{
	struct pair pair;
	struct pollfd pfd;
	uint64_t until;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	(void)state;
	pair_open(&pair, NULL);
	post_recv(&pair.server, 1, 0, 64);
	until = srn_now_ns() + 5000000000ull;
	while (!atomic_load(&srn_cq(pair.server.cq)->polled) && srn_now_ns() < until)
		poll_empty(pair.server.cq, 1000000);
	assert_int_equal(ibv_req_notify_cq(pair.server.cq, 0), 0);
	assert_false(atomic_load(&srn_cq(pair.server.cq)->polled));
	sge = sge_of(&pair.client, 0, 8);
	wr = request(IBV_WR_SEND, &pair, &sge, 0);
	assert_int_equal(post(&pair.client, &wr), 0);
	pfd = (struct pollfd){.fd = pair.server.comp->fd, .events = POLLIN};
	assert_int_equal(poll(&pfd, 1, 5000), 1);
	pair_close(&pair);
}

static void poll_until_polled(struct side *side)
{
	uint64_t until = srn_now_ns() + 5000000000ull;

	while (!atomic_load(&srn_cq(side->cq)->polled) && srn_now_ns() < until)
		poll_empty(side->cq, 1000000);
	assert_true(atomic_load(&srn_cq(side->cq)->polled));
}

static void polls_that_find_completions_count_as_polls(void **state)
{
	const struct ibv_wc one = {.status = IBV_WC_SUCCESS, .wr_id = 1};
	unsigned long before, polls = 0;
	bool polled = false;
	struct ibv_wc wc;
	struct pair pair;
	struct srn_cq *cq;
	uint64_t until;
	int i;

	(void)state;
	pair_open(&pair, NULL);
	cq = srn_cq(pair.client.cq);
	until = srn_now_ns() + 5000000000ull;
	/* again if this thread did not run for so long that the engine took over meanwhile */
	while (!polled && srn_now_ns() < until) {
		poll_until_polled(&pair.client);
		before = atomic_load(&cq->polls);
		for (i = 0; i < 100; i++) {
			srn_cq_push(pair.client.cq, &one, false);
			assert_int_equal(ibv_poll_cq(pair.client.cq, 1, &wc), 1);
		}
		polls = atomic_load(&cq->polls) - before;
		polled = atomic_load(&cq->polled);
	}
	assert_true(polls >= 100);
	pair_close(&pair);
}

static bool all_sent(struct side *side)
{
	struct srn_qp *qp = srn_qp(side->id->qp);
	bool all;

	pthread_mutex_lock(&qp->lock);
	all = qp->sq_tx == qp->sq_tail;
	pthread_mutex_unlock(&qp->lock);
	return all;
}

static void a_poll_that_finds_completions_moves_bytes_now_and_then(void **state)
{
	const struct ibv_wc one = {.status = IBV_WC_SUCCESS, .wr_id = 1};
	bool moved = false, engine = true;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct pair pair;
	uint64_t until;
	int i;

	(void)state;
	pair_open(&pair, NULL);
	until = srn_now_ns() + 5000000000ull;
	/* again if the engine took over meanwhile */
	while (engine && srn_now_ns() < until) {
		poll_until_polled(&pair.client);
		/* deferred: goes out with a poll */
		sge = sge_of(&pair.client, 0, 1);
		wr = request(IBV_WR_RDMA_WRITE, &pair, &sge, 5);
		wr.send_flags = 0;
		assert_int_equal(post(&pair.client, &wr), 0);
		for (i = 0; i < 100; i++) {
			srn_cq_push(pair.client.cq, &one, false);
			assert_int_equal(ibv_poll_cq(pair.client.cq, 1, &wc), 1);
		}
		moved = all_sent(&pair.client);
		engine = !atomic_load(&srn_cq(pair.client.cq)->polled);
	}
	assert_true(moved);
	pair_close(&pair);
}

static void expect_byte(const uint8_t *at, uint8_t value)
{
	uint64_t until = srn_now_ns() + 5000000000ull;

	while (__atomic_load_n(at, __ATOMIC_ACQUIRE) != value && srn_now_ns() < until)
		poll(NULL, 0, 1);
	assert_int_equal(*at, value);
}

/* What is posted after that is deferred, and goes out with others or when the engine takes over. */
static void many_posts_between_two_polls_count_as_polling(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;
	bool polled;
	int i;

	(void)state;
	unless_tsan();
	pair_open(&pair, NULL);
	sge = sge_of(&pair.client, 0, 1);
	wr = request(IBV_WR_RDMA_WRITE, &pair, &sge, 5);
	wr.send_flags = 0;
	pair.client.buf[0] = 79;
	for (i = 0; i < PAIR_DEPTH - 1; i++)
		assert_int_equal(post(&pair.client, &wr), 0);
	assert_false(atomic_load(&srn_cq(pair.client.cq)->polled));
	assert_int_equal(post(&pair.client, &wr), 0);
	/* the engine may have ended it already, and then wants to see more the next time */
	polled = atomic_load(&srn_cq(pair.client.cq)->polled);
	assert_true(polled || srn_cq(pair.client.cq)->need > 1);
	expect_byte(pair.server.buf + 5, 79);
	pair_close(&pair);
}

static void an_unsignalled_write_goes_out_though_nobody_polls_any_more(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;

	(void)state;
	unless_tsan();
	pair_open(&pair, NULL);
	poll_until_polled(&pair.client);
	pair.client.buf[0] = 77;
	sge = sge_of(&pair.client, 0, 1);
	wr = request(IBV_WR_RDMA_WRITE, &pair, &sge, 5);
	wr.send_flags = 0;
	assert_int_equal(post(&pair.client, &wr), 0);
	expect_byte(pair.server.buf + 5, 77);
	pair_close(&pair);
}

static uint32_t held(struct side *side)
{
	struct srn_qp *qp = srn_qp(side->id->qp);
	uint32_t n;

	pthread_mutex_lock(&qp->lock);
	n = qp->sq_tail - qp->sq_tx;
	pthread_mutex_unlock(&qp->lock);
	return n;
}

/* A polled client that has posted eight reads, the last four of which may wait for the next poll.
 */
static void open_with_reads(struct pair *pair)
{
	struct pair_setup setup = {.param = {.responder_resources = 16, .initiator_depth = 16}};
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	int i;

	pair_open(pair, &setup);
	poll_until_polled(&pair->client);
	sge = sge_of(&pair->client, 0, 8);
	wr = request(IBV_WR_RDMA_READ, pair, &sge, 0);
	/* no response is seen before a poll */
	for (i = 0; i < 4; i++)
		assert_int_equal(post(&pair->client, &wr), 0);
	assert_int_equal(held(&pair->client), 0);
	for (; i < 8; i++)
		assert_int_equal(post(&pair->client, &wr), 0);
}

static void requests_behind_awaited_responses_leave_together_with_the_next_poll(void **state)
{
	struct pair pair;
	int i;

	(void)state;
	open_with_reads(&pair);
	/* on a slow machine the engine may have taken over meanwhile, and sent them */
	assert_true(held(&pair.client) == 4 || !atomic_load(&srn_cq(pair.client.cq)->polled));
	for (i = 0; i < 8; i++)
		expect_success(pair.client.cq, IBV_WC_RDMA_READ);
	pair_close(&pair);
}

static void requests_held_back_leave_though_nobody_polls_any_more(void **state)
{
	uint64_t until = srn_now_ns() + 5000000000ull;
	struct pair pair;
	int i;

	(void)state;
	open_with_reads(&pair);
	while (held(&pair.client) && srn_now_ns() < until)
		poll(NULL, 0, 1);
	assert_int_equal(held(&pair.client), 0);
	for (i = 0; i < 8; i++)
		expect_success(pair.client.cq, IBV_WC_RDMA_READ);
	pair_close(&pair);
}

static void an_unsignalled_write_goes_out_before_a_disconnect(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;

	(void)state;
	unless_tsan();
	pair_open(&pair, NULL);
	poll_until_polled(&pair.client);
	pair.client.buf[0] = 78;
	sge = sge_of(&pair.client, 0, 1);
	wr = request(IBV_WR_RDMA_WRITE, &pair, &sge, 5);
	wr.send_flags = 0;
	assert_int_equal(post(&pair.client, &wr), 0);
	assert_int_equal(rdma_disconnect(pair.client.id), 0);
	expect_event(&pair.server, RDMA_CM_EVENT_DISCONNECTED);
	expect_byte(pair.server.buf + 5, 78);
	pair_close(&pair);
}

static void a_target_that_never_polls_is_served(void **state)
{
	struct pair pair;
	int i;

	/* the server's CQ is never polled here */
	(void)state;
	pair_open(&pair, NULL);
	for (i = 0; i < 200; i++)
		write_and_read(&pair);
	pair_close(&pair);
}

static void expect_in_engine(struct side *side, bool wanted, struct ibv_cq *polled)
{
	uint64_t until = srn_now_ns() + 5000000000ull;

	while (in_engine(side) != wanted && srn_now_ns() < until) {
		if (polled)
			poll_empty(polled, 1000000);
		else
			poll(NULL, 0, 1);
	}
	assert_int_equal(in_engine(side), wanted);
}

static void a_polled_cq_adopts_what_nobody_polls_and_lets_it_go(void **state)
{
	struct pair one, two;

	(void)state;
	pair_open(&one, NULL);
	poll_until_polled(&one.client);
	expect_in_engine(&one.server, false, one.client.cq);
	/* one that is connected later as well */
	pair_open(&two, NULL);
	expect_in_engine(&two.server, false, one.client.cq);
	write_and_read(&two);
	poll_until_polled(&one.client);
	expect_in_engine(&two.server, false, one.client.cq);
	/* it may go while it is adopted */
	pair_close(&two);
	/* and back to the engine when the polling ends */
	expect_in_engine(&one.server, true, NULL);
	write_and_read(&one);
	pair_close(&one);
}

struct poller {
	struct ibv_cq *cq;
	atomic_bool end;
};

static void *poll_to_the_end(void *arg)
{
	struct poller *poller = arg;
	struct ibv_wc wc;

	while (!atomic_load(&poller->end))
		if (ibv_poll_cq(poller->cq, 1, &wc))
			return poller;
	return NULL;
}

static void an_adopted_queue_pair_may_go_while_its_adopter_is_polled(void **state)
{
	struct poller poller = {.end = false};
	struct pair one, two;
	pthread_t thread;
	uint64_t before;
	void *found;
	int i;

	(void)state;
	pair_open(&one, NULL);
	poller.cq = one.client.cq;
	assert_int_equal(pthread_create(&thread, NULL, poll_to_the_end, &poller), 0);
	for (i = 0; i < 5; i++) {
		pair_open(&two, NULL);
		expect_in_engine(&two.server, false, NULL);
		before = __real_srn_now_ns(); /* valgrind shall not make it slower */
		pair_close(&two);
		assert_true(__real_srn_now_ns() - before < 1000000000);
	}
	atomic_store(&poller.end, true);
	assert_int_equal(pthread_join(thread, &found), 0);
	assert_null(found);
	pair_close(&one);
}

static void congestion_control(int fd, char name[16])
{
	socklen_t len = 16;

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
}

static void expect_window_based(int fd)
{
	char name[16];

	congestion_control(fd, name);
	assert_true(!strcmp(name, "cubic") || !strcmp(name, "reno"));
}

/* Both ends of a TCP connection set up as the software RNIC does it. */
static void tcp_pair(int fds[2], const char *from)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(from)};
	socklen_t len = sizeof(any);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	srn_tcp_new(fd);
	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &len), 0);
	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	srn_tcp_new(fds[0]);
	assert_int_equal(bind(fds[0], (struct sockaddr *)&source, sizeof(source)), 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&any, sizeof(any)), 0);
	fds[1] = accept(fd, NULL, NULL);
	assert_true(fds[1] >= 0);
	/* before the first byte: a socket paced once is paced for ever */
	expect_window_based(fds[0]);
	expect_window_based(fds[1]);
	srn_tcp_established(fds[0]);
	srn_tcp_established(fds[1]);
	assert_int_equal(close(fd), 0);
}

static void a_connection_within_the_host_is_never_paced(void **state)
{
	struct pair pair;
	int fds[2], i;

	(void)state;
	tcp_pair(fds, "127.0.0.1");
	for (i = 0; i < 2; i++) {
		expect_window_based(fds[i]);
		close(fds[i]);
	}
	pair_open(&pair, NULL);
	expect_window_based(srn_id(pair.listen)->listener->src.fd);
	expect_window_based(srn_qp(pair.client.id->qp)->fd);
	expect_window_based(srn_qp(pair.server.id->qp)->fd);
	pair_close(&pair);
}

static void a_connection_to_another_host_has_the_systems_congestion_control(void **state)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), fds[2], i;
	char wanted[16], name[16];

	(void)state;
	congestion_control(fd, wanted);
	close(fd);
	/* two addresses are two hosts */
	tcp_pair(fds, "127.0.0.2");
	for (i = 0; i < 2; i++) {
		congestion_control(fds[i], name);
		assert_string_equal(name, wanted);
		close(fds[i]);
	}
}

static void a_forked_child_may_use_the_device(void **state)
{
	struct pair pair, again;
	pid_t child;
	int status;

	(void)state;
	unless_tsan();
	pair_open(&pair, NULL);
	write_and_read(&pair);
	child = fork();
	if (!child) {
		alarm(20);
		pair_open(&again, NULL);
		write_and_read(&again);
		pair_close(&again);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	/* and the parent's connection is as it was */
	write_and_read(&pair);
	pair_close(&pair);
}

#define TEST(f) cmocka_unit_test_setup(f, with_time_limit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_idle_connection_costs_no_processor_time),
		TEST(a_cq_polled_over_and_over_takes_its_sockets_and_gives_them_back),
		TEST(arming_the_channel_gives_the_sockets_back_at_once),
		TEST(polls_that_find_completions_count_as_polls),
		TEST(a_poll_that_finds_completions_moves_bytes_now_and_then),
		TEST(many_posts_between_two_polls_count_as_polling),
		TEST(an_unsignalled_write_goes_out_though_nobody_polls_any_more),
		TEST(requests_behind_awaited_responses_leave_together_with_the_next_poll),
		TEST(requests_held_back_leave_though_nobody_polls_any_more),
		TEST(an_unsignalled_write_goes_out_before_a_disconnect),
		TEST(a_target_that_never_polls_is_served),
		TEST(a_polled_cq_adopts_what_nobody_polls_and_lets_it_go),
		TEST(an_adopted_queue_pair_may_go_while_its_adopter_is_polled),
		TEST(a_connection_within_the_host_is_never_paced),
		TEST(a_connection_to_another_host_has_the_systems_congestion_control),
		TEST(a_forked_child_may_use_the_device),
	};

	return cmocka_run_group_tests_name("softrnic_progress", tests, NULL, NULL);
}
