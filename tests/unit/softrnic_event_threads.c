// SPDX-License-Identifier: BSD-3-Clause
/* Events of completion channels and of the device, and CQs that go meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include "softrnic_pair.h"

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
	uint64_t until = test_limit();
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

void *__wrap_malloc(size_t size)
{
	return atomic_load(&no_memory) ? NULL : __real_malloc(size);
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
	uint64_t until = test_limit();
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

/* ---- a CQ that the engine has in hand when it goes */

/* A polled CQ without a queue pair of its own that has adopted qp; that comes back locked. */
static struct ibv_cq *adopting_cq(struct srn_qp *qp)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_cq *cq = ibv_create_cq(srn_cm_context(), 4, NULL, NULL, 0);
	uint64_t until = test_limit();
	struct ibv_qp *own;

	assert_non_null(cq);
	attr.send_cq = attr.recv_cq = cq;
	/* again if the engine took over meanwhile */
	do {
		own = ibv_create_qp(srn_cm_pd(), &attr);
		assert_non_null(own);
		make_polled(cq);
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
	};

	return cmocka_run_group_tests_name("softrnic_event_threads", tests, NULL, NULL);
}
