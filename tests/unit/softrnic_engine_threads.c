// SPDX-License-Identifier: BSD-3-Clause
/* The engine: what it must not forget however busy it is, whoever posts, whatever there is none of.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softrnic_pair.h"

/*
 * A program arms its CQ, looks at it for so long that this counts as polling, and sleeps; another
 * of its threads goes on posting to the CQ's queue pair.
 */
static void posts_do_not_keep_an_armed_cq_from_the_engine(void **state)
{
	struct ibv_sge sge, small;
	struct ibv_send_wr wr, write, *bad;
	struct srn_cq *cq;
	struct pair pair;
	struct pollfd pfd;
	uint64_t until = test_limit();
	int i, checks = 0;

	(void)state;
	pair_open(&pair, NULL);
	cq = srn_cq(pair.server.cq);
	post_recv(&pair.server, 7, 0, 64);
	assert_int_equal(ibv_req_notify_cq(pair.server.cq, 0), 0);
	make_polled(pair.server.cq);
	small = sge_of(&pair.server, 0, 8);
	write = request(IBV_WR_RDMA_WRITE, &pair, &small, 0);
	write.send_flags = 0;
	write.wr.rdma.remote_addr = (uintptr_t)pair.client.buf;
	write.wr.rdma.rkey = pair.client.mr->rkey;
	/* The engine's checks that find the CQ busy; the first may have seen the polls. */
	while (atomic_load(&cq->polled) && checks < 10 && in_time(until)) {
		for (i = 0; i < 300; i++)
			ibv_post_send(pair.server.id->qp, &write, &bad);
		checks += atomic_exchange(&cq->adopt_wanted, false);
	}
	assert_true(checks < 10);
	assert_false(atomic_load(&cq->polled));
	sge = sge_of(&pair.client, 4096, 10);
	wr = request(IBV_WR_SEND, &pair, &sge, 0);
	assert_int_equal(post(&pair.client, &wr), 0);
	pfd = (struct pollfd){.fd = pair.server.comp->fd, .events = POLLIN};
	assert_int_equal(poll(&pfd, 1, 10000), 1);
	pair_close(&pair);
}

/* ---- the engine while one of its sources never rests */

static atomic_uint handled;

static int handle_busy(struct srn_src *src, uint32_t events)
{
	(void)src;
	(void)events;
	atomic_fetch_add(&handled, 1);
	return 1;
}

static void expire_never(struct srn_src *src)
{
	(void)src;
}

static int handle_never(struct srn_src *src, uint32_t events)
{
	(void)src;
	(void)events;
	return 0;
}

static void expire_once(struct srn_src *src)
{
	const uint64_t one = 1;

	assert_int_equal(write(src->fd, &one, sizeof(one)), sizeof(one));
}

static void timers_and_checks_go_on_while_a_source_never_rests(void **state)
{
	struct srn_src busy = {.handle = handle_busy, .expire = expire_never};
	struct srn_src timed = {.handle = handle_never, .expire = expire_once};
	struct pollfd expired = {.events = POLLIN};
	uint64_t until = test_limit();
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	make_polled(pair.client.cq);
	busy.fd = eventfd(1, EFD_CLOEXEC);
	timed.fd = expired.fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(srn_src_add(&busy), 0);
	assert_int_equal(srn_src_add(&timed), 0);
	srn_src_interest(&busy, EPOLLIN);
	/* long enough for the engine to look at nothing else */
	while (atomic_load(&handled) < 1000 && in_time(until))
		;
	assert_true(atomic_load(&handled) >= 1000);
	srn_src_deadline(&timed, srn_now_ns() + 1000000);
	assert_int_equal(poll(&expired, 1, 5000), 1);
	expect_not_polled(pair.client.cq);
	srn_src_remove(&busy);
	srn_src_remove(&timed);
	close(busy.fd);
	close(timed.fd);
	pair_close(&pair);
}

/* ---- a timer that fires as its queue pair goes on and waits again */

/* Returns with a queue pair that waits for a receive and shall do so for a while. */
static void open_stalled(struct pair *pair, uint8_t rnr_retry_count, bool use_srq)
{
	struct pair_setup setup = {.param = {.responder_resources = 4,
					     .initiator_depth = 4,
					     .rnr_retry_count = rnr_retry_count},
				   .use_srq = use_srq};
	uint64_t until = test_limit();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct srn_qp *qp;
	bool stalled;

	pair_open(pair, &setup);
	qp = srn_qp(pair->server.id->qp);
	sge = sge_of(&pair->client, 0, 8);
	wr = request(IBV_WR_SEND, pair, &sge, 0);
	assert_int_equal(post(&pair->client, &wr), 0);
	do {
		pthread_mutex_lock(&qp->lock);
		stalled = qp->rx.stalled;
		pthread_mutex_unlock(&qp->lock);
	} while (!stalled && in_time(until));
	assert_true(stalled);
}

static void a_timer_of_an_earlier_wait_refuses_nothing(void **state)
{
	static const uint8_t retries[] = {6, 7}; /* waits for seconds, and for ever */
	struct srn_qp *qp;
	struct pair pair;
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		open_stalled(&pair, retries[i], false);
		qp = srn_qp(pair.server.id->qp);
		srn_stream_expire(&qp->src);
		post_recv(&pair.server, 1, 0, 8);
		expect_success(pair.server.cq, IBV_WC_RECV);
		pair_close(&pair);
	}
}

static uint64_t deadline_of(struct srn_qp *qp)
{
	uint64_t deadline;

	pthread_mutex_lock(&qp->lock);
	deadline = qp->src.deadline;
	pthread_mutex_unlock(&qp->lock);
	return deadline;
}

static void a_look_without_a_receive_to_be_had_prolongs_no_wait(void **state)
{
	struct srn_qp *qp;
	struct pair pair;
	uint64_t deadline;
	int srq;

	(void)state;
	for (srq = 0; srq < 2; srq++) {
		open_stalled(&pair, 6, srq);
		qp = srn_qp(pair.server.id->qp);
		deadline = deadline_of(qp);
		assert_true(deadline > 0);
		assert_int_equal(srn_stream_handle(&qp->src, 0), 0);
		assert_true(deadline_of(qp) == deadline);
		pair_close(&pair);
	}
}

static atomic_bool no_memory;

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_realloc(void *old, size_t size)
{
	return atomic_load(&no_memory) ? NULL : __real_realloc(old, size);
}

static void a_shared_receive_reaches_who_waits_for_it_without_memory(void **state)
{
	struct ibv_recv_wr wr = {.wr_id = 3, .num_sge = 1}, *bad;
	struct ibv_sge sge;
	struct pair pair;

	(void)state;
	open_stalled(&pair, 7, true);
	sge = sge_of(&pair.server, 0, 8);
	wr.sg_list = &sge;
	atomic_store(&no_memory, true);
	assert_int_equal(ibv_post_srq_recv(pair.srq, &wr, &bad), 0);
	atomic_store(&no_memory, false);
	assert_int_equal(expect_success(pair.server.cq, IBV_WC_RECV).wr_id, 3);
	pair_close(&pair);
}

/* ---- a listener without descriptors for who wants in */

static atomic_int accept_error;
static atomic_uint refused;

int __real_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);

int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int error = atomic_load(&accept_error);

	if (!error)
		return __real_accept4(fd, addr, len, flags);
	atomic_fetch_add(&refused, 1);
	errno = error;
	return -1;
}

static void a_listener_without_descriptors_waits_a_while(void **state)
{
	struct pair_setup setup = {.raw = true};
	uint64_t until = test_limit();
	struct rdma_cm_id *id;
	struct pair pair;
	int fd;

	(void)state;
	pair_open(&pair, &setup);
	atomic_store(&accept_error, EMFILE);
	fd = pair_request(&pair);
	while (!atomic_load(&refused) && in_time(until))
		;
	poll(NULL, 0, 50);
	assert_in_range(atomic_load(&refused), 1, 5);
	atomic_store(&accept_error, 0);
	id = expect_request(&pair.server, NULL);
	assert_int_equal(rdma_destroy_id(id), 0);
	close(fd);
	pair_close(&pair);
}

/* ---- a system without room for what epoll shall watch */

static atomic_int epoll_error;

int __real_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int error = op == EPOLL_CTL_ADD ? atomic_load(&epoll_error) : 0;

	if (!error)
		return __real_epoll_ctl(epfd, op, fd, event);
	errno = error;
	return -1;
}

static void a_socket_is_watched_once_there_is_room(void **state)
{
	struct pair_setup setup = {.raw = true};
	struct pollfd request = {.events = POLLIN};
	struct rdma_cm_id *id;
	struct pair pair;
	int fd;

	(void)state;
	atomic_store(&epoll_error, ENOSPC);
	pair_open(&pair, &setup);
	fd = pair_request(&pair);
	request.fd = pair.server.channel->fd;
	assert_int_equal(poll(&request, 1, 50), 0);
	atomic_store(&epoll_error, 0);
	assert_int_equal(poll(&request, 1, 5000), 1);
	id = expect_request(&pair.server, NULL);
	assert_int_equal(rdma_destroy_id(id), 0);
	close(fd);
	pair_close(&pair);
}

static void a_cq_without_room_in_its_epoll_set_looks_at_every_socket(void **state)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_qp *more[4];
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;
	int i;

	(void)state;
	pair_open(&pair, NULL);
	attr.send_cq = attr.recv_cq = pair.client.cq;
	atomic_store(&epoll_error, ENOSPC);
	for (i = 0; i < 4; i++) {
		more[i] = ibv_create_qp(pair.client.id->pd, &attr);
		assert_non_null(more[i]);
	}
	assert_true(srn_cq(pair.client.cq)->epfd >= 0);
	make_polled(pair.client.cq);
	sge = sge_of(&pair.client, 0, 8);
	wr = request(IBV_WR_RDMA_READ, &pair, &sge, 0);
	assert_int_equal(post(&pair.client, &wr), 0);
	expect_success(pair.client.cq, IBV_WC_RDMA_READ);
	atomic_store(&epoll_error, 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(ibv_destroy_qp(more[i]), 0);
	pair_close(&pair);
}

/* ---- a thread that is cancelled while it polls and posts */

struct doomed {
	struct pair pair;
	bool survived;
};

static void poll_for(struct ibv_cq *cq, struct ibv_wc *wc)
{
	uint64_t until = test_limit();

	while (!ibv_poll_cq(cq, 1, wc) && __real_srn_now_ns() < until)
		;
}

static void *poll_and_post(void *arg)
{
	struct doomed *doomed = arg;
	struct pair *pair = &doomed->pair;
	struct ibv_sge sge = sge_of(&pair->client, 0, 100000);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, pair, &sge, 0);
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
	int i;

	/* At the next cancellation point, which poll and post are none of. */
	pthread_cancel(pthread_self());
	for (i = 0; i < 5000; i++)
		ibv_poll_cq(pair->client.cq, 1, &wc);
	post_recv(&pair->client, 1, 0, 8);
	ibv_req_notify_cq(pair->client.cq, 0);
	if (!post(&pair->client, &wr))
		poll_for(pair->client.cq, &wc);
	doomed->survived = wc.status == IBV_WC_SUCCESS;
	pthread_testcancel();
	return NULL;
}

static void polls_and_posts_are_no_cancellation_points(void **state)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_qp *more[4];
	struct doomed doomed;
	unsigned int i, round;
	pthread_t thread;
	void *end;

	(void)state;
	pair_open(&doomed.pair, NULL);
	attr.send_cq = attr.recv_cq = doomed.pair.client.cq;
	/* first with a look at every socket, then with epoll */
	for (round = 0; round < 2; round++) {
		doomed.survived = false;
		assert_int_equal(pthread_create(&thread, NULL, poll_and_post, &doomed), 0);
		assert_int_equal(pthread_join(thread, &end), 0);
		assert_true(doomed.survived);
		assert_ptr_equal(end, PTHREAD_CANCELED);
		for (i = 0; i < 4 && !round; i++) {
			more[i] = ibv_create_qp(doomed.pair.client.id->pd, &attr);
			assert_non_null(more[i]);
		}
	}
	assert_true(srn_cq(doomed.pair.client.cq)->epfd >= 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(ibv_destroy_qp(more[i]), 0);
	pair_close(&doomed.pair);
}

#define TEST(f) cmocka_unit_test_setup(f, with_time_limit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(posts_do_not_keep_an_armed_cq_from_the_engine),
		TEST(timers_and_checks_go_on_while_a_source_never_rests),
		TEST(a_timer_of_an_earlier_wait_refuses_nothing),
		TEST(a_look_without_a_receive_to_be_had_prolongs_no_wait),
		TEST(a_shared_receive_reaches_who_waits_for_it_without_memory),
		TEST(a_listener_without_descriptors_waits_a_while),
		TEST(a_socket_is_watched_once_there_is_room),
		TEST(a_cq_without_room_in_its_epoll_set_looks_at_every_socket),
		TEST(polls_and_posts_are_no_cancellation_points),
	};

	return cmocka_run_group_tests_name("softrnic_engine_threads", tests, NULL, NULL);
}
