// SPDX-License-Identifier: BSD-3-Clause
/*
 * The engine: one thread a process that sleeps in epoll and moves what nobody polls.
 *
 * Sources are named by slot and generation in epoll's data, so an event of a source that is gone
 * finds nothing.  After something moved, the thread goes on looking at the sources that were active
 * for a short while before it sleeps again: a wake-up costs several times a round trip.  Where
 * looking does not pay (the peer's thread wants this very core), it stops looking for a while.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softrnic.h"

#define MAX_EVENTS     64
#define MAX_HOT        64
#define SPIN_NS        50000 /* how long to look after the last activity */
#define SPIN_MISSES    4     /* looked for nothing so often: stop looking ... */
#define SPIN_COOLDOWN  256   /* ... for so many wake-ups */
#define SPIN_PER_EPOLL 16
#define SPIN_DUE_NS    1000000
#define SPIN_DIRECT    4 /* more sources than this are cheaper to ask by epoll */
#define LINGER_NS      1000000000ull
#define REWATCH_NS     100000000
#define WAKE_SLOT      UINT32_MAX

struct handle {
	uint32_t slot, generation;
};

struct slot {
	struct srn_src *src;
	uint32_t generation;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t idle;     /* no handler is running */
	struct srn_src *handled; /* whose handler is running */
	pthread_t thread;
	bool running;
	int epfd, wakefd;
	struct slot *slots;
	uint32_t slot_count;
	TAILQ_HEAD(, srn_src) timed;
	TAILQ_HEAD(, srn_src) kicked;
	TAILQ_HEAD(, srn_src) unwatched; /* the system had no room for them in the epoll set */
	uint64_t spin_ns;
} engine = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER,
	.epfd = -1,
	.wakefd = -1,
};

static _Thread_local bool on_engine;

bool srn_on_engine(void)
{
	return on_engine;
}

static void wake(void)
{
	uint64_t one = 1;

	if (SRN_NO_CANCEL(write(engine.wakefd, &one, sizeof(one))) < 0)
		return; /* the counter is full: it is awake */
}

void srn_engine_wake(void)
{
	if (!on_engine)
		wake();
}

/* With the lock held. */
static void handler_done(void)
{
	engine.handled = NULL;
	pthread_cond_broadcast(&engine.idle);
}

/* Runs one handler; -1 if the source is gone.  Nobody frees it meanwhile (srn_src_remove()). */
static int run_handler(struct handle h, uint32_t events)
{
	struct srn_src *src = NULL;
	int moved;

	pthread_mutex_lock(&engine.lock);
	if (h.slot < engine.slot_count && engine.slots[h.slot].generation == h.generation)
		src = engine.slots[h.slot].src;
	engine.handled = src;
	pthread_mutex_unlock(&engine.lock);
	if (!src)
		return -1;
	moved = src->handle(src, events);
	pthread_mutex_lock(&engine.lock);
	handler_done();
	pthread_mutex_unlock(&engine.lock);
	return moved;
}

/* Runs what is overdue; returns the earliest deadline left, 0 if there is none. */
static uint64_t run_timers(uint64_t now)
{
	struct srn_src *src;
	uint64_t next = 0;

	pthread_mutex_lock(&engine.lock);
again:
	next = 0;
	TAILQ_FOREACH(src, &engine.timed, timer)
	{
		if (src->deadline <= now) {
			TAILQ_REMOVE(&engine.timed, src, timer);
			src->timed = false;
			engine.handled = src;
			pthread_mutex_unlock(&engine.lock);
			src->expire(src);
			pthread_mutex_lock(&engine.lock);
			handler_done();
			goto again;
		}
		if (!next || src->deadline < next)
			next = src->deadline;
	}
	pthread_mutex_unlock(&engine.lock);
	return next;
}

/* With the lock held.  In a forked child the slots are not the parent's. */
static bool in_slot(const struct srn_src *src)
{
	return src->slot < engine.slot_count && engine.slots[src->slot].src == src;
}

/* With the lock held: has the epoll set watch for what the source wants, or will try again. */
static void watch(struct srn_src *src)
{
	struct epoll_event ev = {.events = src->wanted};
	int op;

	if (src->unwatched)
		TAILQ_REMOVE(&engine.unwatched, src, unwatch);
	src->unwatched = false;
	if (src->wanted == src->interest)
		return;
	ev.data.u64 = (uint64_t)src->generation << 32 | src->slot;
	op = !src->interest ? EPOLL_CTL_ADD : src->wanted ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;
	if (!epoll_ctl(engine.epfd, op, src->fd, &ev)) {
		src->interest = src->wanted;
	} else if ((errno == ENOMEM || errno == ENOSPC) && in_slot(src)) {
		TAILQ_INSERT_TAIL(&engine.unwatched, src, unwatch);
		src->unwatched = true;
	}
}

/* Tries again; returns when to do so the next time, 0 = never. */
static uint64_t rewatch(uint64_t now)
{
	static uint64_t next;
	struct srn_src *src;
	bool left;

	pthread_mutex_lock(&engine.lock);
	while (now >= next && (src = TAILQ_FIRST(&engine.unwatched))) {
		watch(src);
		if (src->unwatched)
			next = now + REWATCH_NS;
	}
	left = !TAILQ_EMPTY(&engine.unwatched);
	pthread_mutex_unlock(&engine.lock);
	return left ? next : 0;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* Timers and the like; returns when there is something to do again, 0 = never. */
static uint64_t run_due(uint64_t now)
{
	return earlier(run_timers(now), earlier(srn_polled_check(now), rewatch(now)));
}

/* With the lock held. */
static void unkick(struct srn_src *src)
{
	if (src->kicked)
		TAILQ_REMOVE(&engine.kicked, src, kick);
	src->kicked = false;
}

static bool take_kick(struct handle *h)
{
	struct srn_src *src;

	pthread_mutex_lock(&engine.lock);
	src = TAILQ_FIRST(&engine.kicked);
	if (src) {
		*h = (struct handle){src->slot, src->generation};
		unkick(src);
	}
	pthread_mutex_unlock(&engine.lock);
	return src;
}

struct hot {
	struct handle handles[MAX_HOT];
	unsigned int count;
};

static void hot_add(struct hot *hot, struct handle h)
{
	unsigned int i;

	for (i = 0; i < hot->count; i++)
		if (hot->handles[i].slot == h.slot && hot->handles[i].generation == h.generation)
			return;
	if (hot->count < MAX_HOT)
		hot->handles[hot->count++] = h;
}

/* One look at epoll; returns whether a source moved something. */
static bool look(struct hot *hot, int timeout_ms)
{
	struct epoll_event events[MAX_EVENTS];
	struct handle h;
	uint64_t token;
	bool moved = false;
	int n, i;

	n = epoll_wait(engine.epfd, events, MAX_EVENTS, timeout_ms);
	for (i = 0; i < n; i++) {
		h.slot = (uint32_t)events[i].data.u64;
		h.generation = (uint32_t)(events[i].data.u64 >> 32);
		if (h.slot == WAKE_SLOT) {
			if (read(engine.wakefd, &token, sizeof(token)) < 0)
				continue;
			continue;
		}
		if (run_handler(h, events[i].events) > 0) {
			hot_add(hot, h);
			moved = true;
		}
	}
	while (take_kick(&h))
		if (run_handler(h, 0) > 0) {
			hot_add(hot, h);
			moved = true;
		}
	return moved;
}

/* Looks at the hot sources until none moved for spin_ns; returns whether that ever paid. */
static bool spin(struct hot *hot)
{
	uint64_t now = srn_now_ns(), until = now + engine.spin_ns, due = now + SPIN_DUE_NS;
	unsigned int i, round = 0;
	bool paid = false;

	while (hot->count) {
		bool moved = false;

		for (i = 0; i < hot->count && hot->count <= SPIN_DIRECT;) {
			int got = run_handler(hot->handles[i], 0);

			if (got < 0) {
				hot->handles[i] = hot->handles[--hot->count];
				continue;
			}
			moved |= got > 0;
			i++;
		}
		if (hot->count > SPIN_DIRECT || ++round % SPIN_PER_EPOLL == 0)
			moved |= look(hot, 0);
		now = srn_now_ns();
		if (moved) {
			paid = true;
			until = now + engine.spin_ns;
		} else if (now >= until) {
			break;
		}
		/* It may go on for ever. */
		if (now >= due) {
			run_due(now);
			due = now + SPIN_DUE_NS;
		}
	}
	hot->count = 0;
	return paid;
}

static int timeout_until(uint64_t deadline, uint64_t now)
{
	uint64_t ms;

	if (!deadline)
		return -1;
	if (deadline <= now)
		return 0;
	ms = (deadline - now + 999999) / 1000000;
	return ms > 60000 ? 60000 : (int)ms;
}

static void *engine_main(void *arg)
{
	unsigned int misses = 0, cooldown = 0;
	struct hot hot = {.count = 0};

	(void)arg;
	on_engine = true;
	pthread_setname_np(pthread_self(), "softrnic");
	for (;;) {
		uint64_t now = srn_now_ns();
		uint64_t next = run_due(now);

		if (!look(&hot, timeout_until(next, now)) || !engine.spin_ns) {
			hot.count = 0;
			continue;
		}
		if (cooldown) {
			cooldown--;
			hot.count = 0;
			continue;
		}
		if (spin(&hot)) {
			misses = 0;
		} else if (++misses >= SPIN_MISSES) {
			misses = 0;
			cooldown = SPIN_COOLDOWN;
		}
	}
	return NULL;
}

static uint64_t spin_setting(void)
{
	const char *text = getenv("SOFTRNIC_SPIN_US");
	char *end;
	unsigned long us;

	if (!text)
		return SPIN_NS;
	us = strtoul(text, &end, 10);
	if (end == text || *end || us > 1000)
		return SPIN_NS;
	return us * 1000;
}

static int start_locked(void)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = WAKE_SLOT};
	sigset_t all, old;
	int ret;

	engine.epfd = epoll_create1(EPOLL_CLOEXEC);
	if (engine.epfd < 0)
		return errno;
	engine.wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (engine.wakefd < 0 || epoll_ctl(engine.epfd, EPOLL_CTL_ADD, engine.wakefd, &ev)) {
		ret = errno;
		goto err_fds;
	}
	TAILQ_INIT(&engine.timed);
	TAILQ_INIT(&engine.kicked);
	TAILQ_INIT(&engine.unwatched);
	engine.spin_ns = spin_setting();
	/* The program's signals are the program's threads' business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&engine.thread, NULL, engine_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		goto err_fds;
	pthread_detach(engine.thread);
	engine.running = true;
	return 0;

err_fds:
	if (engine.wakefd >= 0)
		close(engine.wakefd);
	close(engine.epfd);
	engine.epfd = engine.wakefd = -1;
	return ret;
}

int srn_engine_start(void)
{
	int ret = 0;

	pthread_mutex_lock(&engine.lock);
	if (!engine.running)
		ret = start_locked();
	pthread_mutex_unlock(&engine.lock);
	return ret;
}

int srn_src_add(struct srn_src *src)
{
	uint32_t i;
	int ret = srn_engine_start();

	if (ret)
		return ret;
	pthread_mutex_lock(&engine.lock);
	for (i = 0; i < engine.slot_count && engine.slots[i].src; i++)
		;
	if (i == engine.slot_count) {
		uint32_t room = engine.slot_count ? engine.slot_count * 2 : 64;
		struct slot *slots = calloc(room, sizeof(*slots)), *old = engine.slots;

		if (!slots) {
			ret = ENOMEM;
			goto out;
		}
		if (old)
			memcpy(slots, old, engine.slot_count * sizeof(*slots));
		/* Should another thread fork now, a child finds the one or the other. */
		engine.slots = slots;
		engine.slot_count = room;
		free(old);
	}
	src->slot = i;
	src->generation = ++engine.slots[i].generation;
	src->wanted = src->interest = 0;
	src->timed = src->kicked = src->unwatched = false;
	src->registered = true;
	engine.slots[i].src = src;
out:
	pthread_mutex_unlock(&engine.lock);
	return ret;
}

void srn_src_interest(struct srn_src *src, uint32_t events)
{
	bool unwatched;

	if (src->wanted == events || !src->registered || src->fd < 0)
		return;
	pthread_mutex_lock(&engine.lock);
	src->wanted = events;
	watch(src);
	unwatched = src->unwatched;
	pthread_mutex_unlock(&engine.lock);
	if (unwatched)
		srn_engine_wake();
}

/* With the lock held. */
static void set_deadline(struct srn_src *src, uint64_t deadline_ns)
{
	if (src->timed)
		TAILQ_REMOVE(&engine.timed, src, timer);
	src->deadline = deadline_ns;
	src->timed = src->registered && deadline_ns;
	if (src->timed)
		TAILQ_INSERT_TAIL(&engine.timed, src, timer);
}

void srn_src_deadline(struct srn_src *src, uint64_t deadline_ns)
{
	pthread_mutex_lock(&engine.lock);
	set_deadline(src, deadline_ns);
	pthread_mutex_unlock(&engine.lock);
	if (deadline_ns)
		srn_engine_wake();
}

/*
 * First no handler can start any more, then the one that runs ends; a handler may well have removed
 * its own source.  On the engine itself only that one handler can be running.
 */
void srn_src_remove(struct srn_src *src)
{
	struct epoll_event ev = {0};

	pthread_mutex_lock(&engine.lock);
	/* From here on a handler that still runs sets no deadline and no interest. */
	atomic_store(&src->registered, false);
	if (src->timed)
		TAILQ_REMOVE(&engine.timed, src, timer);
	src->timed = false;
	if (in_slot(src)) {
		if (src->unwatched)
			TAILQ_REMOVE(&engine.unwatched, src, unwatch);
		unkick(src);
		engine.slots[src->slot].src = NULL;
	}
	while (engine.handled == src && !on_engine)
		pthread_cond_wait(&engine.idle, &engine.lock);
	if (src->interest && src->fd >= 0)
		epoll_ctl(engine.epfd, EPOLL_CTL_DEL, src->fd, &ev);
	src->wanted = src->interest = 0;
	src->unwatched = false;
	pthread_mutex_unlock(&engine.lock);
}

void srn_src_kick(struct srn_src *src)
{
	pthread_mutex_lock(&engine.lock);
	if (in_slot(src) && !src->kicked) {
		TAILQ_INSERT_TAIL(&engine.kicked, src, kick);
		src->kicked = true;
	}
	pthread_mutex_unlock(&engine.lock);
	wake(); /* the engine, too: it may go to sleep before it looks for kicks */
}

/* ---- closing sockets without losing what is still on its way */

static void linger_end(struct srn_src *src)
{
	int fd = src->fd;

	srn_src_remove(src);
	close(fd);
	free(src);
}

static int linger_handle(struct srn_src *src, uint32_t events)
{
	uint8_t waste[4096];
	ssize_t n;
	int rounds = 64; /* a peer that never stops sending gets no more than its second */

	(void)events;
	do
		n = recv(src->fd, waste, sizeof(waste), MSG_DONTWAIT);
	while (n > 0 && --rounds);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		linger_end(src);
	return 0;
}

void srn_linger(int fd)
{
	struct srn_src *src = calloc(1, sizeof(*src));

	shutdown(fd, SHUT_WR);
	if (!src)
		goto close;
	src->fd = fd;
	src->handle = linger_handle;
	src->expire = linger_end;
	if (srn_src_add(src))
		goto free;
	/* As soon as the lock is free the engine may handle it and free it. */
	pthread_mutex_lock(&engine.lock);
	set_deadline(src, srn_now_ns() + LINGER_NS);
	src->wanted = EPOLLIN;
	watch(src);
	pthread_mutex_unlock(&engine.lock);
	srn_engine_wake();
	return;

free:
	free(src);
close:
	SRN_NO_CANCEL(close(fd));
}

/* ---- fork */

/*
 * A child has neither the engine's thread nor its parent's connections: sockets and epoll sets are
 * shared with the parent, so it closes its copies.  Whatever lock another thread held is free.
 * Nothing is done before a fork: most children exec at once, and no parent shall wait for that.
 */
static void after_fork(void)
{
	struct srn_src *src;
	uint32_t i;

	pthread_mutex_init(&engine.lock, NULL);
	pthread_cond_init(&engine.idle, NULL);
	for (i = 0; i < engine.slot_count; i++) {
		src = engine.slots[i].src;
		if (!src)
			continue;
		if (src->fd >= 0)
			close(src->fd);
		src->fd = -1;
		src->wanted = src->interest = 0;
		src->registered = src->timed = src->kicked = src->unwatched = false;
		if (src->handle == linger_handle)
			free(src);
	}
	if (engine.epfd >= 0)
		close(engine.epfd);
	if (engine.wakefd >= 0)
		close(engine.wakefd);
	engine.epfd = -1;
	engine.wakefd = -1;
	engine.running = false;
	engine.handled = NULL;
	free(engine.slots);
	engine.slots = NULL;
	engine.slot_count = 0;
	TAILQ_INIT(&engine.kicked);
	TAILQ_INIT(&engine.unwatched);
	srn_polled_after_fork();
	srn_qps_after_fork();
	srn_mr_after_fork();
	srn_device_after_fork();
	srn_events_after_fork();
	srn_requests_after_fork();
}

__attribute__((constructor)) static void mind_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}
