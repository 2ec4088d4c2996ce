// SPDX-License-Identifier: BSD-3-Clause
/* Events: of completion channels, of the device, of the engine's sources; and what goes meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softrnic_pair.h"

#define LIMIT_NS 20000000000ull /* for what must come */

static uint64_t limit(void)
{
	return __real_srn_now_ns() + LIMIT_NS;
}

static bool in_time(uint64_t until)
{
	sched_yield();
	return __real_srn_now_ns() < until;
}

/* ---- holding a thread up: the first time it unlocks a mutex, something else comes first */

static _Thread_local struct {
	pthread_mutex_t *mutex;
	void (*first)(void *arg);
	void *arg;
} held_up;

int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	int ret = __real_pthread_mutex_unlock(mutex);

	if (mutex == held_up.mutex) {
		held_up.mutex = NULL;
		held_up.first(held_up.arg);
	}
	return ret;
}

static void once_unlocked(pthread_mutex_t *mutex, void (*first)(void *arg), void *arg)
{
	held_up.mutex = mutex;
	held_up.first = first;
	held_up.arg = arg;
}

/* ---- an event that is taken, and its object that goes */

/* A CQ of one entry with the completions of two receives: a completion event and an overrun. */
static struct ibv_cq *cq_with_events(struct ibv_comp_channel *channel)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {1, 2, 1, 1, 0}};
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT};
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
	struct ibv_cq *cq = ibv_create_cq(srn_cm_context(), 1, NULL, channel, 0);
	struct ibv_qp *qp;
	int i;

	assert_non_null(cq);
	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp(srn_cm_pd(), &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_modify_qp(qp, &to, IBV_QP_STATE), 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	if (channel)
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	to.qp_state = IBV_QPS_ERR;
	assert_int_equal(ibv_modify_qp(qp, &to, IBV_QP_STATE), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	return cq;
}

static void *take_cq_event(void *channel)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
	return cq;
}

static void *take_async_event(void *context)
{
	struct ibv_async_event event;

	assert_int_equal(ibv_get_async_event(context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
	return event.element.cq;
}

/*
 * Who destroys the object looks at the queue and at this count: once the event is out of the one it
 * is in the other, even if the thread that takes it gets no further.
 */
static void expect_counted(struct srn_evq *evq, const uint32_t *given)
{
	uint64_t until = limit();
	bool taken;

	do {
		pthread_mutex_lock(&evq->lock);
		taken = TAILQ_EMPTY(&evq->list);
		if (taken)
			assert_int_equal(*given, 1);
		pthread_mutex_unlock(&evq->lock);
	} while (!taken && in_time(until));
	assert_true(taken);
}

static void a_completion_event_counts_as_given_once_it_is_taken(void **state)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(srn_cm_context());
	struct ibv_cq *cq = cq_with_events(channel);
	pthread_t thread;
	void *got;

	(void)state;
	pthread_mutex_lock(&cq->mutex);
	assert_int_equal(pthread_create(&thread, NULL, take_cq_event, channel), 0);
	expect_counted(&((struct srn_comp_channel *)channel)->evq, &srn_cq(cq)->events_given);
	pthread_mutex_unlock(&cq->mutex);
	assert_int_equal(pthread_join(thread, &got), 0);
	assert_ptr_equal(got, cq);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static void an_asynchronous_event_counts_as_given_once_it_is_taken(void **state)
{
	struct ibv_context *context = srn_cm_context();
	struct ibv_async_event event = {.event_type = IBV_EVENT_CQ_ERR};
	struct ibv_cq *cq = cq_with_events(NULL);
	pthread_t thread;
	void *got;

	(void)state;
	pthread_mutex_lock(&cq->mutex);
	assert_int_equal(pthread_create(&thread, NULL, take_async_event, context), 0);
	expect_counted(&srn_context(context)->async, &srn_cq(cq)->async_given);
	pthread_mutex_unlock(&cq->mutex);
	assert_int_equal(pthread_join(thread, &got), 0);
	assert_ptr_equal(got, cq);
	event.element.cq = cq;
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void *take_and_ack(void *channel)
{
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(channel, &cq, &context)) {
		context = cq->cq_context;
		ibv_ack_cq_events(cq, 1);
		if (context)
			break;
	}
	return NULL;
}

static void *take_and_ack_async(void *context)
{
	struct ibv_async_event event;

	while (!ibv_get_async_event(context, &event) && event.event_type == IBV_EVENT_CQ_ERR)
		ibv_ack_async_event(&event);
	return NULL;
}

static void objects_may_go_while_their_events_are_taken(void **state)
{
	struct ibv_context *context = srn_cm_context();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	pthread_t taker, async_taker;
	struct ibv_cq *cq;
	int i;

	(void)state;
	assert_int_equal(pthread_create(&taker, NULL, take_and_ack, channel), 0);
	assert_int_equal(pthread_create(&async_taker, NULL, take_and_ack_async, context), 0);
	for (i = 0; i < 300; i++) {
		cq = cq_with_events(channel);
		if (i & 1)
			sched_yield();
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
	cq = ibv_create_cq(context, 1, channel, channel, 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	srn_cq_push(cq, &(struct ibv_wc){.wr_id = 1}, false);
	srn_async_event(context, IBV_EVENT_DEVICE_FATAL, NULL);
	assert_int_equal(pthread_join(taker, NULL), 0);
	assert_int_equal(pthread_join(async_taker, NULL), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* Another thread takes the event of one CQ, and the other CQ's comes. */
static void exchange_events(void *arg)
{
	struct ibv_cq **cqs = arg, *got;
	void *context;

	if (!ibv_get_cq_event(cqs[0]->channel, &got, &context))
		ibv_ack_cq_events(got, 1);
	srn_cq_push(cqs[1], &(struct ibv_wc){.wr_id = 2}, false);
}

static void the_end_of_a_cq_takes_no_other_cqs_event(void **state)
{
	struct ibv_context *context = srn_cm_context();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct srn_evq *evq = &((struct srn_comp_channel *)channel)->evq;
	struct ibv_cq *cqs[2], *got;
	void *cq_context;
	int i;

	(void)state;
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	for (i = 0; i < 2; i++) {
		cqs[i] = ibv_create_cq(context, 1, NULL, channel, 0);
		assert_non_null(cqs[i]);
		assert_int_equal(ibv_req_notify_cq(cqs[i], 0), 0);
	}
	srn_cq_push(cqs[0], &(struct ibv_wc){.wr_id = 1}, false);
	once_unlocked(&evq->lock, exchange_events, cqs);
	assert_int_equal(ibv_destroy_cq(cqs[0]), 0);
	assert_int_equal(ibv_get_cq_event(channel, &got, &cq_context), 0);
	assert_ptr_equal(got, cqs[1]);
	ibv_ack_cq_events(got, 1);
	assert_int_equal(ibv_destroy_cq(cqs[1]), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* ---- events without memory for them */

static atomic_bool no_memory;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	return atomic_load(&no_memory) ? NULL : __real_malloc(size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return atomic_load(&no_memory) ? NULL : __real_realloc(old, size);
}

static void a_completion_event_needs_no_memory(void **state)
{
	struct ibv_context *context = srn_cm_context();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, channel, 0), *got;
	void *cq_context;
	int i;

	(void)state;
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	/* one for each time it was armed, as ever */
	for (i = 0; i < 3; i++) {
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		atomic_store(&no_memory, true);
		srn_cq_push(cq, &(struct ibv_wc){.wr_id = 1}, false);
		atomic_store(&no_memory, false);
	}
	for (i = 0; i < 2; i++) {
		assert_int_equal(ibv_get_cq_event(channel, &got, &cq_context), 0);
		assert_ptr_equal(got, cq);
	}
	ibv_ack_cq_events(cq, 2);
	/* the third goes with it */
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_get_cq_event(channel, &got, &cq_context), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* ---- the descriptor of an event queue tells what is in it */

static bool readable(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

static void *pop(void *evq)
{
	return srn_evq_pop(evq, NULL);
}

static void a_queue_is_not_readable_for_an_event_cancelled_under_a_readers_hands(void **state)
{
	struct srn_event_node cancelled = {.times = 0}, queued = {.times = 0};
	uint64_t until = limit();
	pthread_mutexattr_t attr;
	struct srn_evq evq;
	pthread_t reader;
	void *got;

	(void)state;
	assert_int_equal(srn_evq_init(&evq), 0);
	/* The test holds the reader up with the queue's lock, and goes on itself. */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_destroy(&evq.lock);
	pthread_mutex_init(&evq.lock, &attr);
	srn_evq_push(&evq, &cancelled);
	pthread_mutex_lock(&evq.lock);
	assert_int_equal(pthread_create(&reader, NULL, pop, &evq), 0);
	while (readable(evq.fd) && in_time(until))
		;
	assert_false(readable(evq.fd));
	assert_true(srn_evq_cancel(&evq, &cancelled));
	srn_evq_push(&evq, &queued);
	pthread_mutex_unlock(&evq.lock);
	assert_int_equal(pthread_join(reader, &got), 0);
	assert_ptr_equal(got, &queued);
	assert_false(readable(evq.fd));
	srn_evq_destroy(&evq);
	pthread_mutexattr_destroy(&attr);
}

/* ---- a polled CQ, and the engine that looks whether it is polled still */

/* The engine may have ended it again when this returns. */
static void poll_until_polled(struct ibv_cq *cq)
{
	uint64_t until = limit();
	bool polled = false;
	struct ibv_wc wc;

	while (!polled && __real_srn_now_ns() < until) {
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
		polled = atomic_load(&srn_cq(cq)->polled);
	}
	assert_true(polled);
}

static void expect_not_polled(struct ibv_cq *cq)
{
	uint64_t until = limit();

	while (atomic_load(&srn_cq(cq)->polled) && in_time(until))
		;
	assert_false(atomic_load(&srn_cq(cq)->polled));
}

/* A polled CQ without a queue pair of its own that has adopted qp; that comes back locked. */
static struct ibv_cq *adopting_cq(struct srn_qp *qp)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_cq *cq = ibv_create_cq(srn_cm_context(), 4, NULL, NULL, 0);
	uint64_t until = limit();
	struct ibv_qp *own;

	assert_non_null(cq);
	attr.send_cq = attr.recv_cq = cq;
	/* again if the engine took over meanwhile */
	do {
		own = ibv_create_qp(srn_cm_pd(), &attr);
		assert_non_null(own);
		poll_until_polled(cq);
		assert_int_equal(ibv_destroy_qp(own), 0);
		pthread_mutex_lock(&qp->lock);
		if (qp->adopter == srn_cq(cq))
			return cq;
		pthread_mutex_unlock(&qp->lock);
	} while (in_time(until));
	fail();
	return NULL;
}

struct destroyer {
	struct ibv_cq *cq;
	atomic_bool done;
};

static void wait_for_the_engine(void *cq)
{
	expect_not_polled(cq);
}

static void *destroy(void *arg)
{
	struct destroyer *destroyer = arg;

	/* It has counted the queue pairs, and the engine is faster with what follows. */
	once_unlocked(&srn_cq(destroyer->cq)->attach_lock, wait_for_the_engine, destroyer->cq);
	assert_int_equal(ibv_destroy_cq(destroyer->cq), 0);
	atomic_store(&destroyer->done, true);
	return NULL;
}

static void a_cq_stays_until_the_engine_has_given_its_queue_pairs_back(void **state)
{
	struct destroyer destroyer = {.done = false};
	struct srn_qp *qp;
	pthread_t thread;
	struct pair pair;
	int i;

	(void)state;
	pair_open(&pair, NULL);
	qp = srn_qp(pair.server.id->qp);
	destroyer.cq = adopting_cq(qp);
	/* The engine wants to give qp back, for which it must wait. */
	assert_int_equal(pthread_create(&thread, NULL, destroy, &destroyer), 0);
	/* It has time to be wrong. */
	for (i = 0; i < 50 && !atomic_load(&destroyer.done); i++)
		poll(NULL, 0, 1);
	assert_false(atomic_load(&destroyer.done));
	pthread_mutex_unlock(&qp->lock);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_null(qp->adopter);
	pair_close(&pair);
}

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
	uint64_t until = limit();
	int i, checks = 0;

	(void)state;
	pair_open(&pair, NULL);
	cq = srn_cq(pair.server.cq);
	post_recv(&pair.server, 7, 0, 64);
	assert_int_equal(ibv_req_notify_cq(pair.server.cq, 0), 0);
	poll_until_polled(pair.server.cq);
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
	uint64_t until = limit();
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	poll_until_polled(pair.client.cq);
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
	uint64_t until = limit();
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
	uint64_t until = limit();
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
	poll_until_polled(pair.client.cq);
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
	uint64_t until = limit();

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
		TEST(a_completion_event_counts_as_given_once_it_is_taken),
		TEST(an_asynchronous_event_counts_as_given_once_it_is_taken),
		TEST(objects_may_go_while_their_events_are_taken),
		TEST(the_end_of_a_cq_takes_no_other_cqs_event),
		TEST(a_completion_event_needs_no_memory),
		TEST(a_queue_is_not_readable_for_an_event_cancelled_under_a_readers_hands),
		TEST(a_cq_stays_until_the_engine_has_given_its_queue_pairs_back),
		TEST(posts_do_not_keep_an_armed_cq_from_the_engine),
		TEST(timers_and_checks_go_on_while_a_source_never_rests),
		TEST(a_timer_of_an_earlier_wait_refuses_nothing),
		TEST(a_shared_receive_reaches_who_waits_for_it_without_memory),
		TEST(a_listener_without_descriptors_waits_a_while),
		TEST(a_socket_is_watched_once_there_is_room),
		TEST(a_cq_without_room_in_its_epoll_set_looks_at_every_socket),
		TEST(polls_and_posts_are_no_cancellation_points),
	};

	return cmocka_run_group_tests_name("softrnic_event_threads", tests, NULL, NULL);
}
