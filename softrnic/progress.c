// SPDX-License-Identifier: BSD-3-Clause
/*
 * Who moves the bytes of a CQ's queue pairs.
 *
 * A program that polls an empty CQ over and over becomes its mover: the sockets leave the engine's
 * epoll set, so no packet wakes a third thread.  While that lasts the engine looks every other
 * millisecond whether the polling goes on; if not, or when the program arms the CQ's channel, the
 * sockets return to it.  A CQ that turned out to be polled by fits must show more the next time.
 * With a deep queue most polls find completions: they count, too, and some of them move bytes.
 * A program with many deep queues polls rarely: a long run of posts between two polls says as much.
 *
 * A polled CQ also adopts the process's queue pairs nobody polls: where a thread is awake anyway,
 * the engine would only compete with it for a core.  Adopted ones that are quiet are looked at now
 * and then only.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "softrnic.h"

#define EPOLL_FROM  5 /* queue pairs: below, asking every socket is cheaper than epoll */
#define CQ_EVENTS   64
#define EMPTY_BATCH 32      /* empty polls ... */
#define BATCH_NS    1000000 /* ... within this make a batch */
#define NEED_MAX    64      /* batches it takes at most */
#define CHECK_NS    2000000
#define CHECK_POLLS 8   /* fewer polls between two checks ... */
#define CHECK_POSTS 256 /* ... and fewer posts, which fill the queues soon: polled no more */
#define POSTS_BATCH 64  /* posts between two polls: a batch, too */
#define FOUND_EVERY 4   /* of the polls that find completions, so many move bytes, too */
#define QUIET_POLLS 256 /* an adopted queue pair that long idle ... */
#define QUIET_EVERY 16  /* ... is looked at so often */
#define LONG_NS     100000000

static pthread_mutex_t polled_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, srn_cq) polled = TAILQ_HEAD_INITIALIZER(polled);

bool srn_qp_polled(struct srn_qp *qp)
{
	struct ibv_qp *base = &qp->v.ex.qp_base;

	return qp->adopter || atomic_load(&srn_cq(base->send_cq)->polled) ||
	       (base->recv_cq && atomic_load(&srn_cq(base->recv_cq)->polled));
}

void srn_cq_watch(struct srn_qp *qp, uint32_t events)
{
	struct ibv_qp *base = &qp->v.ex.qp_base;
	struct srn_cq *cqs[3] = {srn_cq(base->send_cq),
				 base->recv_cq == base->send_cq ? NULL : srn_cq(base->recv_cq),
				 qp->adopter};
	struct epoll_event ev = {.events = events, .data.ptr = qp};
	int i, epfd, op;

	for (i = 0; i < 3; i++) {
		epfd = cqs[i] ? __atomic_load_n(&cqs[i]->epfd, __ATOMIC_ACQUIRE) : -1;
		if (epfd < 0 || qp->cq_interest[i] == events || qp->src.fd < 0)
			continue;
		op = !qp->cq_interest[i] ? EPOLL_CTL_ADD : events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;
		if (!epoll_ctl(epfd, op, qp->src.fd, &ev))
			qp->cq_interest[i] = events;
		else if (events)
			atomic_store(&cqs[i]->incomplete, true);
	}
}

/* With attach_lock held. */
static void watch_all(struct srn_cq *cq)
{
	unsigned int i;

	for (i = 0; i < cq->qp_count; i++) {
		pthread_mutex_lock(&cq->qps[i]->lock);
		if (cq->qps[i]->fd >= 0)
			srn_stream_run(cq->qps[i], false);
		pthread_mutex_unlock(&cq->qps[i]->lock);
	}
}

/* With attach_lock held. */
static int attach(struct srn_cq *cq, struct srn_qp *qp)
{
	if (cq->qp_count == cq->qp_room) {
		unsigned int room = cq->qp_room ? cq->qp_room * 2 : 4;
		struct srn_qp **qps = calloc(room, sizeof(*qps)), **old = cq->qps;

		if (!qps)
			return ENOMEM;
		if (old)
			memcpy(qps, old, cq->qp_count * sizeof(*qps));
		/* Should another thread fork now, a child finds the one or the other. */
		cq->qps = qps;
		cq->qp_room = room;
		free(old);
	}
	cq->qps[cq->qp_count++] = qp;
	return 0;
}

static void detach(struct srn_cq *cq, struct srn_qp *qp)
{
	unsigned int i;

	for (i = 0; i < cq->qp_count; i++)
		if (cq->qps[i] == qp)
			cq->qps[i--] = cq->qps[--cq->qp_count];
}

/* Once there are many queue pairs, epoll says which have something. */
static void use_epoll(struct srn_cq *cq)
{
	if (cq->qp_count < EPOLL_FROM || cq->epfd >= 0)
		return;
	__atomic_store_n(&cq->epfd, epoll_create1(EPOLL_CLOEXEC), __ATOMIC_RELEASE);
	watch_all(cq);
}

int srn_cq_attach(struct srn_cq *cq, struct srn_qp *qp)
{
	int ret;

	pthread_mutex_lock(&cq->attach_lock);
	ret = attach(cq, qp);
	if (!ret)
		cq->own_count++;
	use_epoll(cq);
	pthread_mutex_unlock(&cq->attach_lock);
	return ret;
}

void srn_cq_detach(struct srn_cq *cq, struct srn_qp *qp)
{
	pthread_mutex_lock(&cq->attach_lock);
	detach(cq, qp);
	cq->own_count--;
	pthread_mutex_unlock(&cq->attach_lock);
}

/* With the CQ's attach_lock and the queue pair's lock held. */
void srn_cq_adopt(struct srn_cq *cq, struct srn_qp *qp)
{
	if (qp->fd < 0 || srn_qp_polled(qp) || attach(cq, qp))
		return;
	qp->adopter = cq;
	qp->quiet = 0;
	srn_stream_watch(qp);
}

/* With attach_lock held: gives the adopted ones back to the engine. */
static void release_adopted(struct srn_cq *cq)
{
	unsigned int i;

	for (i = 0; i < cq->qp_count;) {
		struct srn_qp *qp = cq->qps[i];

		if (qp->adopter != cq) {
			i++;
			continue;
		}
		pthread_mutex_lock(&qp->lock);
		srn_cq_watch(qp, 0);
		qp->adopter = NULL;
		cq->qps[i] = cq->qps[--cq->qp_count];
		if (qp->fd >= 0)
			srn_stream_run(qp, false);
		pthread_mutex_unlock(&qp->lock);
	}
}

/* With polled_lock held, which is the inner one elsewhere: only if the poller stands aside. */
static bool leave(struct srn_cq *cq, struct srn_qp *qp)
{
	if (pthread_mutex_trylock(&cq->attach_lock)) {
		atomic_store_explicit(&cq->stand_aside, true, memory_order_relaxed);
		return false;
	}
	detach(cq, qp);
	qp->adopter = NULL;
	pthread_mutex_unlock(&cq->attach_lock);
	return true;
}

/*
 * Before a queue pair is destroyed.  Its adopter may be on its way out, too: it is touched only
 * while it is on the list of the polled ones, and if it is not it releases the queue pair itself.
 */
void srn_qp_leave_adopter(struct srn_qp *qp)
{
	struct srn_cq *cq, *adopter;
	bool left;

	for (;;) {
		pthread_mutex_lock(&polled_lock);
		pthread_mutex_lock(&qp->lock);
		adopter = qp->adopter;
		pthread_mutex_unlock(&qp->lock);
		TAILQ_FOREACH(cq, &polled, polled_link)
		if (cq == adopter)
			break;
		left = !adopter || (cq && leave(cq, qp));
		pthread_mutex_unlock(&polled_lock);
		if (left)
			return;
		sched_yield();
	}
}

static void progress_one(struct srn_qp *qp)
{
	if (pthread_mutex_trylock(&qp->lock))
		return; /* somebody else is at it */
	if (qp->fd >= 0 && srn_stream_run(qp, true))
		qp->quiet = 0;
	pthread_mutex_unlock(&qp->lock);
}

void srn_cq_defer(struct srn_qp *qp)
{
	struct srn_cq *cq = srn_cq(qp->v.ex.qp_base.send_cq);

	/* Who takes it from the list needs qp->lock, held here, before it looks for requests. */
	if (atomic_load_explicit(&qp->deferred, memory_order_relaxed))
		return;
	pthread_mutex_lock(&cq->lock);
	if (!qp->deferred)
		TAILQ_INSERT_TAIL(&cq->deferred, qp, deferred_link);
	qp->deferred = true;
	pthread_mutex_unlock(&cq->lock);
}

void srn_cq_undefer(struct srn_qp *qp)
{
	struct srn_cq *cq = srn_cq(qp->v.ex.qp_base.send_cq);

	pthread_mutex_lock(&cq->lock);
	if (qp->deferred)
		TAILQ_REMOVE(&cq->deferred, qp, deferred_link);
	qp->deferred = false;
	pthread_mutex_unlock(&cq->lock);
}

/* With attach_lock held, which keeps what is taken from the list alive. */
static void send_deferred(struct srn_cq *cq)
{
	struct srn_qp *qp;

	do {
		pthread_mutex_lock(&cq->lock);
		qp = srn_building ? NULL : TAILQ_FIRST(&cq->deferred);
		if (qp) {
			TAILQ_REMOVE(&cq->deferred, qp, deferred_link);
			qp->deferred = false;
		}
		pthread_mutex_unlock(&cq->lock);
		if (!qp)
			break;
		pthread_mutex_lock(&qp->lock);
		if (qp->fd >= 0)
			srn_stream_run(qp, false);
		pthread_mutex_unlock(&qp->lock);
	} while (qp);
}

/* Whether an adopted queue pair may be passed over this time. */
static bool quiet(struct srn_cq *cq, struct srn_qp *qp, unsigned long polls)
{
	if (atomic_load_explicit(&qp->adopter, memory_order_relaxed) != cq)
		return false;
	return atomic_fetch_add_explicit(&qp->quiet, 1, memory_order_relaxed) > QUIET_POLLS &&
	       polls % QUIET_EVERY;
}

static void become_polled(struct srn_cq *cq, uint64_t now)
{
	cq->streak = 0;
	cq->polled_since = now;
	pthread_mutex_lock(&polled_lock);
	cq->polls_seen = atomic_load_explicit(&cq->polls, memory_order_relaxed);
	cq->posts_seen = atomic_load_explicit(&cq->posts, memory_order_relaxed);
	TAILQ_INSERT_TAIL(&polled, cq, polled_link);
	atomic_store(&cq->polled, true);
	pthread_mutex_unlock(&polled_lock);
	watch_all(cq);
	srn_adopt_orphans(cq);
	use_epoll(cq);
	srn_engine_wake();
}

static void count_empty(struct srn_cq *cq)
{
	uint64_t now;

	if (++cq->empty < EMPTY_BATCH)
		return;
	cq->empty = 0;
	now = srn_now_ns();
	if (now - cq->empty_since > BATCH_NS)
		cq->streak = 0;
	else if (++cq->streak >= cq->need && !srn_building)
		become_polled(cq, now);
	cq->empty_since = now;
}

static void remember_posts(struct srn_cq *cq)
{
	atomic_store_explicit(&cq->posts_polled,
			      atomic_load_explicit(&cq->posts, memory_order_relaxed),
			      memory_order_relaxed);
}

/* With attach_lock held. */
static void adopt_if_wanted(struct srn_cq *cq)
{
	if (!atomic_load_explicit(&cq->adopt_wanted, memory_order_relaxed) || srn_building)
		return;
	atomic_store_explicit(&cq->adopt_wanted, false, memory_order_relaxed);
	if (atomic_load_explicit(&cq->polled, memory_order_relaxed)) {
		srn_adopt_orphans(cq);
		use_epoll(cq);
	}
}

static int look(int epfd, struct epoll_event *events)
{
#ifdef SANITIZED
	return SRN_NO_CANCEL(epoll_wait(epfd, events, CQ_EVENTS, 0));
#else
	/* Unlike epoll_wait, a system call everywhere. */
	return (int)syscall(SYS_epoll_pwait, epfd, events, CQ_EVENTS, 0, NULL, 0);
#endif
}

void srn_cq_progress(struct srn_cq *cq)
{
	struct epoll_event events[CQ_EVENTS];
	unsigned long polls;
	int i, n;

	polls = atomic_fetch_add_explicit(&cq->polls, 1, memory_order_relaxed);
	remember_posts(cq);
	if (atomic_load_explicit(&cq->stand_aside, memory_order_relaxed)) {
		atomic_store_explicit(&cq->stand_aside, false, memory_order_relaxed);
		sched_yield();
		return;
	}
	if (pthread_mutex_trylock(&cq->attach_lock))
		return;
	adopt_if_wanted(cq);
	if (cq->epfd >= 0)
		send_deferred(cq);
	if (cq->epfd >= 0 && !atomic_load_explicit(&cq->incomplete, memory_order_relaxed)) {
		n = look(cq->epfd, events);
		for (i = 0; i < n; i++)
			progress_one(events[i].data.ptr);
	} else {
		for (i = 0; i < (int)cq->qp_count; i++)
			if (!quiet(cq, cq->qps[i], polls))
				progress_one(cq->qps[i]);
	}
	if (cq->qp_count && !atomic_load_explicit(&cq->polled, memory_order_relaxed) &&
	    !__atomic_load_n(&cq->count, __ATOMIC_RELAXED))
		count_empty(cq);
	pthread_mutex_unlock(&cq->attach_lock);
}

void srn_cq_found(struct srn_cq *cq)
{
	if (!atomic_load_explicit(&cq->polled, memory_order_relaxed)) {
		remember_posts(cq);
		return;
	}
	if (atomic_fetch_add_explicit(&cq->polls, 1, memory_order_relaxed) % FOUND_EVERY == 0)
		srn_cq_progress(cq);
}

static bool is_armed(struct srn_cq *cq)
{
	bool armed;

	pthread_mutex_lock(&cq->lock);
	armed = cq->armed;
	pthread_mutex_unlock(&cq->lock);
	return armed;
}

void srn_cq_posted(struct srn_cq *cq)
{
	unsigned long posts = atomic_fetch_add_explicit(&cq->posts, 1, memory_order_relaxed) + 1;
	unsigned long since = posts - atomic_load_explicit(&cq->posts_polled, memory_order_relaxed);

	if (since % POSTS_BATCH || atomic_load_explicit(&cq->polled, memory_order_relaxed) ||
	    srn_building)
		return;
	if (pthread_mutex_trylock(&cq->attach_lock))
		return;
	if (cq->qp_count && !atomic_load(&cq->polled) && !is_armed(cq) && ++cq->streak >= cq->need)
		become_polled(cq, srn_now_ns());
	pthread_mutex_unlock(&cq->attach_lock);
}

/* With attach_lock and polled_lock held. */
static void unpoll_locked(struct srn_cq *cq)
{
	TAILQ_REMOVE(&polled, cq, polled_link);
	atomic_store(&cq->polled, false);
}

void srn_cq_unpolled(struct srn_cq *cq)
{
	bool was;

	if (!atomic_load(&cq->polled))
		return;
	pthread_mutex_lock(&cq->attach_lock);
	pthread_mutex_lock(&polled_lock);
	was = atomic_load(&cq->polled);
	if (was)
		unpoll_locked(cq);
	pthread_mutex_unlock(&polled_lock);
	if (was) {
		release_adopted(cq);
		watch_all(cq);
	}
	pthread_mutex_unlock(&cq->attach_lock);
}

/* Gives the queue pairs of a CQ that is polled no more to the engine; else asks it to adopt. */
static void check_one(struct srn_cq *cq, uint64_t now)
{
	unsigned long polls = atomic_load_explicit(&cq->polls, memory_order_relaxed);
	unsigned long posts = atomic_load_explicit(&cq->posts, memory_order_relaxed);
	bool busy = polls - cq->polls_seen >= CHECK_POLLS;

	/* A program with an armed CQ may sleep, whoever posts meanwhile. */
	if (posts - cq->posts_seen >= CHECK_POSTS && !is_armed(cq))
		busy = true;
	cq->polls_seen = polls;
	cq->posts_seen = posts;
	if (busy) {
		/* The poller does it: it holds attach_lock nearly always. */
		atomic_store_explicit(&cq->adopt_wanted, true, memory_order_relaxed);
		return;
	}
	/* The lock is the inner one here; who holds it is polling. */
	if (pthread_mutex_trylock(&cq->attach_lock))
		return;
	unpoll_locked(cq);
	if (now - cq->polled_since > LONG_NS)
		cq->need = 1;
	else if (cq->need < NEED_MAX)
		cq->need *= 2;
	release_adopted(cq);
	watch_all(cq);
	pthread_mutex_unlock(&cq->attach_lock);
}

uint64_t srn_polled_check(uint64_t now)
{
	static uint64_t next;
	struct srn_cq *cq, *following;
	uint64_t when = 0;

	pthread_mutex_lock(&polled_lock);
	if (TAILQ_EMPTY(&polled))
		goto out;
	if (now >= next) {
		next = now + CHECK_NS;
		for (cq = TAILQ_FIRST(&polled); cq; cq = following) {
			following = TAILQ_NEXT(cq, polled_link);
			check_one(cq, now);
		}
	}
	when = TAILQ_EMPTY(&polled) ? 0 : next;
out:
	pthread_mutex_unlock(&polled_lock);
	return when;
}

/* While the queue pairs still say who adopted them; twice is no harm. */
void srn_cq_after_fork(struct srn_cq *cq)
{
	unsigned int i;

	pthread_mutex_init(&cq->lock, NULL);
	pthread_mutex_init(&cq->attach_lock, NULL);
	for (i = 0; i < cq->qp_count; i++)
		if (cq->qps[i]->adopter == cq)
			cq->qps[i--] = cq->qps[--cq->qp_count];
	if (cq->epfd >= 0)
		close(cq->epfd);
	cq->epfd = -1;
	TAILQ_INIT(&cq->deferred);
	atomic_store(&cq->polled, false);
	cq->armed = SRN_ARM_NONE;
}

void srn_polled_after_fork(void)
{
	struct srn_cq *cq;

	pthread_mutex_init(&polled_lock, NULL);
	TAILQ_FOREACH(cq, &polled, polled_link)
	srn_cq_after_fork(cq);
	TAILQ_INIT(&polled);
}
