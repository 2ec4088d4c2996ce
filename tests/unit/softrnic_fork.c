// SPDX-License-Identifier: BSD-3-Clause
/* What a forked child has of its parent's: no connections, and no locks anybody holds. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softrnic_pair.h"

#define LIMIT_NS      20000000000ull
#define CHILD_LIMIT_S 60
#define CHILDREN      10

/* Threads and a fork are nothing TSan can follow. */
static void unless_tsan(void)
{
#ifdef __SANITIZE_THREAD__
	skip();
#endif
}

static void read_some(struct pair *pair)
{
	struct ibv_sge sge = sge_of(&pair->client, 0, 5000);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, pair, &sge, 0);

	assert_int_equal(post(&pair->client, &wr), 0);
	expect_success(pair->client.cq, IBV_WC_RDMA_READ);
}

static void poll_until_polled(struct ibv_cq *cq)
{
	uint64_t until = __real_srn_now_ns() + LIMIT_NS;
	struct ibv_wc wc;

	while (!atomic_load(&srn_cq(cq)->polled)) {
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
		assert_true(__real_srn_now_ns() < until);
	}
}

static bool readable(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

static void assert_succeeds(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void a_forked_child_leaves_its_parents_connections_alone(void **state)
{
	struct pair pair, again;
	struct srn_qp *qps[2];
	int fds[2], i;
	pid_t child;

	(void)state;
	unless_tsan();
	pair_open(&pair, NULL);
	/* polled, so that there is something to be confused about */
	poll_until_polled(pair.client.cq);
	qps[0] = srn_qp(pair.client.id->qp);
	qps[1] = srn_qp(pair.server.id->qp);
	for (i = 0; i < 2; i++)
		fds[i] = qps[i]->fd;
	child = fork();
	if (!child) {
		alarm(CHILD_LIMIT_S);
		for (i = 0; i < 2; i++)
			if (fcntl(fds[i], F_GETFD) >= 0)
				_exit(1);
		pair_open(&again, NULL);
		poll_until_polled(again.client.cq);
		read_some(&again);
		for (i = 0; i < 2; i++)
			if (qps[i]->adopter)
				_exit(2);
		rdma_destroy_qp(pair.client.id);
		rdma_destroy_qp(pair.server.id);
		/* its asynchronous events are its own, too: what is shared shares this flag */
		if (fcntl(again.client.id->verbs->async_fd, F_SETFL, O_NONBLOCK))
			_exit(3);
		pair_close(&again);
		_exit(0);
	}
	assert_succeeds(child);
	read_some(&pair);
	assert_false(readable(pair.client.channel->fd));
	assert_false(readable(pair.server.channel->fd));
	assert_false(fcntl(pair.client.id->verbs->async_fd, F_GETFL) & O_NONBLOCK);
	pair_close(&pair);
}

/* Locks that other threads hold at the moment of the fork. */
static void a_forked_child_does_not_wait_for_its_parents_threads(void **state)
{
	struct pair pair, again;
	struct srn_qp *qp;
	pid_t child;

	(void)state;
	unless_tsan();
	pair_open(&pair, NULL);
	qp = srn_qp(pair.server.id->qp);
	pthread_mutex_lock(&qp->lock);
	srn_mr_lock();
	child = fork();
	if (!child) {
		alarm(CHILD_LIMIT_S);
		pair_open(&again, NULL);
		poll_until_polled(again.client.cq);
		read_some(&again);
		pair_close(&again);
		rdma_destroy_qp(pair.server.id);
		_exit(0);
	}
	srn_mr_unlock();
	pthread_mutex_unlock(&qp->lock);
	assert_succeeds(child);
	pair_close(&pair);
}

static atomic_bool stop;

static void *busy(void *arg)
{
	struct pair *pair = arg;

	while (!atomic_load(&stop))
		read_some(pair);
	return NULL;
}

static void children_of_a_busy_parent_use_the_device(void **state)
{
	struct pair pair, again;
	pthread_t thread;
	pid_t child;
	int i;

	(void)state;
	unless_tsan();
	pair_open(&pair, NULL);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, busy, &pair), 0);
	for (i = 0; i < CHILDREN; i++) {
		child = fork();
		if (!child) {
			alarm(CHILD_LIMIT_S);
			pair_open(&again, NULL);
			read_some(&again);
			pair_close(&again);
			_exit(0);
		}
		assert_succeeds(child);
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pair_close(&pair);
}

#define TEST(f) cmocka_unit_test_setup(f, with_time_limit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_forked_child_leaves_its_parents_connections_alone),
		TEST(a_forked_child_does_not_wait_for_its_parents_threads),
		TEST(children_of_a_busy_parent_use_the_device),
	};

	return cmocka_run_group_tests_name("softrnic_fork", tests, NULL, NULL);
}
