// SPDX-License-Identifier: BSD-3-Clause
/*
 * Queues of events behind a descriptor the program may poll: an eventfd counts what is queued.  The
 * tokens in it and in readers' hands are as many as the events queued and the surplus.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "softrnic.h"

int srn_evq_init(struct srn_evq *evq)
{
	evq->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (evq->fd < 0)
		return errno;
	pthread_mutex_init(&evq->lock, NULL);
	TAILQ_INIT(&evq->list);
	evq->surplus = 0;
	return 0;
}

void srn_evq_destroy(struct srn_evq *evq)
{
	close(evq->fd);
	pthread_mutex_destroy(&evq->lock);
}

void srn_evq_push(struct srn_evq *evq, struct srn_event_node *node)
{
	uint64_t one = 1;

	pthread_mutex_lock(&evq->lock);
	/* Cannot fail: the counter would have to reach 2^64 - 1. */
	if (SRN_NO_CANCEL(write(evq->fd, &one, sizeof(one))) == sizeof(one) && !node->times++)
		TAILQ_INSERT_TAIL(&evq->list, node, link);
	pthread_mutex_unlock(&evq->lock);
}

struct srn_event_node *srn_evq_pop(struct srn_evq *evq, void (*taken)(struct srn_event_node *))
{
	struct srn_event_node *node = NULL;
	uint64_t token;

	do {
		if (read(evq->fd, &token, sizeof(token)) != sizeof(token))
			return NULL;
		pthread_mutex_lock(&evq->lock);
		if (evq->surplus) {
			/* An event was cancelled after the token was taken. */
			evq->surplus--;
		} else {
			node = TAILQ_FIRST(&evq->list); /* none: a forked child shares tokens */
			if (node)
				TAILQ_REMOVE(&evq->list, node, link);
			if (node && --node->times)
				TAILQ_INSERT_TAIL(&evq->list, node, link);
			if (node && taken)
				taken(node);
		}
		pthread_mutex_unlock(&evq->lock);
	} while (!node);
	return node;
}

/* With the lock held. */
static void cancel(struct srn_evq *evq, struct srn_event_node *node)
{
	uint64_t token;
	struct iovec iov = {&token, sizeof(token)};

	TAILQ_REMOVE(&evq->list, node, link);
	/* Never waits: if a reader has the token already, it shall do without. */
	for (; node->times; node->times--)
		if (SRN_NO_CANCEL(preadv2(evq->fd, &iov, 1, -1, RWF_NOWAIT)) < 0)
			evq->surplus++;
}

bool srn_evq_cancel(struct srn_evq *evq, struct srn_event_node *node)
{
	bool queued;

	pthread_mutex_lock(&evq->lock);
	queued = node->times;
	if (queued)
		cancel(evq, node);
	pthread_mutex_unlock(&evq->lock);
	return queued;
}

struct srn_event_node *srn_evq_cancel_match(struct srn_evq *evq,
					    bool (*matches)(struct srn_event_node *, void *what),
					    void *what)
{
	struct srn_event_node *node;

	pthread_mutex_lock(&evq->lock);
	TAILQ_FOREACH(node, &evq->list, link)
	if (matches(node, what))
		break;
	if (node)
		cancel(evq, node);
	pthread_mutex_unlock(&evq->lock);
	return node;
}
