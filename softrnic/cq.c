// SPDX-License-Identifier: BSD-3-Clause
/* Completion queues and completion channels. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softrnic.h"

SRN_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct srn_comp_channel *ch = calloc(1, sizeof(*ch));
	int err = ch ? srn_evq_init(&ch->evq) : ENOMEM;

	if (err) {
		free(ch);
		errno = err;
		return NULL;
	}
	ch->channel.context = context;
	ch->channel.fd = ch->evq.fd;
	return &ch->channel;
}

SRN_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct srn_comp_channel *ch = (struct srn_comp_channel *)channel;
	int busy;

	pthread_mutex_lock(&channel->context->mutex);
	busy = channel->refcnt;
	pthread_mutex_unlock(&channel->context->mutex);
	if (busy)
		return EBUSY;
	srn_evq_destroy(&ch->evq);
	free(ch);
	return 0;
}

struct ibv_cq_ex *srn_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct srn_cq *cq;

	if (!attr->cqe || attr->cqe > SRN_MAX_CQE ||
	    attr->comp_vector >= (uint32_t)context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	if (attr->wc_flags & ~(uint64_t)IBV_WC_STANDARD_FLAGS ||
	    attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		goto err_nomem;
	cq->ring = calloc(attr->cqe, sizeof(*cq->ring));
	cq->senders = calloc(attr->cqe, sizeof(*cq->senders));
	if (!cq->ring || !cq->senders)
		goto err_nomem;
	cq->size = attr->cqe;
	cq->epfd = -1;
	cq->need = 1;
	TAILQ_INIT(&cq->deferred);
	cq->ex.context = context;
	cq->ex.channel = attr->channel;
	cq->ex.cq_context = attr->cq_context;
	cq->ex.cqe = (int)attr->cqe;
	pthread_mutex_init(&cq->ex.mutex, NULL);
	pthread_cond_init(&cq->ex.cond, NULL);
	pthread_mutex_init(&cq->lock, NULL);
	pthread_mutex_init(&cq->attach_lock, NULL);
	srn_cq_ex_init(cq, attr->wc_flags);
	if (attr->channel) {
		pthread_mutex_lock(&context->mutex);
		attr->channel->refcnt++;
		pthread_mutex_unlock(&context->mutex);
	}
	return &cq->ex;

err_nomem:
	if (cq) {
		free(cq->ring);
		free(cq->senders);
	}
	free(cq);
	errno = ENOMEM;
	return NULL;
}

SRN_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
					struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = (uint32_t)cqe,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
	};

	if (cqe < 1 || comp_vector < 0) {
		errno = EINVAL;
		return NULL;
	}
	return (struct ibv_cq *)srn_create_cq_ex(context, &attr);
}

SRN_EXPORT int ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct srn_cq *cq = srn_cq(ibcq);
	struct srn_qp **senders;
	struct ibv_wc *ring;
	uint32_t i;
	int ret = 0;

	if (cqe < 1 || cqe > SRN_MAX_CQE)
		return EINVAL;
	ring = calloc((size_t)cqe, sizeof(*ring));
	senders = calloc((size_t)cqe, sizeof(*senders));
	if (!ring || !senders) {
		free(ring);
		free(senders);
		return ENOMEM;
	}
	pthread_mutex_lock(&cq->lock);
	if ((uint32_t)cqe < cq->count) {
		ret = EINVAL;
		free(ring);
		free(senders);
	} else {
		for (i = 0; i < cq->count; i++) {
			ring[i] = cq->ring[(cq->head + i) % cq->size];
			senders[i] = cq->senders[(cq->head + i) % cq->size];
		}
		free(cq->ring);
		free(cq->senders);
		cq->ring = ring;
		cq->senders = senders;
		cq->head = 0;
		cq->size = (uint32_t)cqe;
		ibcq->cqe = cqe;
	}
	pthread_mutex_unlock(&cq->lock);
	return ret;
}

SRN_EXPORT int ibv_destroy_cq(struct ibv_cq *ibcq)
{
	struct srn_cq *cq = srn_cq(ibcq);
	unsigned int users;

	pthread_mutex_lock(&cq->attach_lock);
	users = cq->own_count;
	pthread_mutex_unlock(&cq->attach_lock);
	if (users)
		return EBUSY;
	srn_cq_unpolled(cq);
	/* If the engine was faster, it may be at it still. */
	pthread_mutex_lock(&cq->attach_lock);
	pthread_mutex_unlock(&cq->attach_lock);
	if (cq->ex.channel) {
		srn_evq_cancel(&((struct srn_comp_channel *)cq->ex.channel)->evq, &cq->event);
		pthread_mutex_lock(&cq->ex.mutex);
		while (cq->events_given != cq->ex.comp_events_completed)
			pthread_cond_wait(&cq->ex.cond, &cq->ex.mutex);
		pthread_mutex_unlock(&cq->ex.mutex);
		pthread_mutex_lock(&cq->ex.context->mutex);
		cq->ex.channel->refcnt--;
		pthread_mutex_unlock(&cq->ex.context->mutex);
	}
	srn_async_forget(cq->ex.context, cq, &cq->ex.mutex, &cq->ex.cond, &cq->async_given,
			 &cq->ex.async_events_completed);
	if (cq->epfd >= 0)
		close(cq->epfd);
	pthread_mutex_destroy(&cq->lock);
	pthread_mutex_destroy(&cq->attach_lock);
	pthread_mutex_destroy(&cq->ex.mutex);
	pthread_cond_destroy(&cq->ex.cond);
	free(cq->qps);
	free(cq->ring);
	free(cq->senders);
	free(cq);
	return 0;
}

static void notify(struct srn_cq *cq)
{
	struct srn_comp_channel *ch = (struct srn_comp_channel *)cq->ex.channel;

	if (ch)
		srn_evq_push(&ch->evq, &cq->event);
}

static void push(struct srn_cq *cq, const struct ibv_wc *wc, struct srn_qp *sender, bool solicited)
{
	bool tell = false, overrun = false;

	pthread_mutex_lock(&cq->lock);
	if (cq->count < cq->size) {
		cq->ring[(cq->head + cq->count) % cq->size] = *wc;
		cq->senders[(cq->head + cq->count) % cq->size] = sender;
		if (sender)
			atomic_fetch_add(&sender->unpolled, 1);
		__atomic_store_n(&cq->count, cq->count + 1, __ATOMIC_RELEASE);
		if (cq->armed == SRN_ARM_ANY ||
		    (cq->armed == SRN_ARM_SOLICITED && (solicited || wc->status))) {
			cq->armed = SRN_ARM_NONE;
			tell = true;
		}
	} else if (!cq->overrun) {
		cq->overrun = overrun = true;
	}
	pthread_mutex_unlock(&cq->lock);
	if (tell)
		notify(cq);
	if (overrun)
		srn_async_event(cq->ex.context, IBV_EVENT_CQ_ERR, cq);
}

void srn_cq_push(struct ibv_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	push(srn_cq(cq), wc, NULL, solicited);
}

void srn_cq_push_send(struct srn_qp *qp, const struct ibv_wc *wc)
{
	push(srn_cq(qp->v.ex.qp_base.send_cq), wc, qp, false);
}

void srn_cq_forget_sender(struct srn_qp *qp)
{
	struct srn_cq *cq = srn_cq(qp->v.ex.qp_base.send_cq);
	uint32_t i;

	pthread_mutex_lock(&cq->lock);
	for (i = 0; i < cq->count; i++)
		if (cq->senders[(cq->head + i) % cq->size] == qp)
			cq->senders[(cq->head + i) % cq->size] = NULL;
	atomic_store(&qp->unpolled, 0);
	pthread_mutex_unlock(&cq->lock);
}

int srn_cq_pop(struct srn_cq *cq, int num, struct ibv_wc *wc)
{
	int n = 0;

	if (!__atomic_load_n(&cq->count, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&cq->lock);
	while (n < num && cq->count) {
		wc[n++] = cq->ring[cq->head];
		if (cq->senders[cq->head])
			atomic_fetch_sub(&cq->senders[cq->head]->unpolled, 1);
		cq->head = (cq->head + 1) % cq->size;
		__atomic_store_n(&cq->count, cq->count - 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&cq->lock);
	return n;
}

int srn_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	struct srn_cq *cq = srn_cq(ibcq);
	int n = srn_cq_pop(cq, num, wc);

	if (n)
		srn_cq_found(cq);
	if (n || num < 1)
		return n;
	if (cq->overrun)
		return -1;
	srn_cq_progress(cq);
	return srn_cq_pop(cq, num, wc);
}

int srn_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct srn_cq *cq = srn_cq(ibcq);
	int kind = solicited_only ? SRN_ARM_SOLICITED : SRN_ARM_ANY;

	pthread_mutex_lock(&cq->lock);
	if (cq->armed < kind)
		cq->armed = kind;
	pthread_mutex_unlock(&cq->lock);
	/* The program is about to sleep; if not now, the engine sees it soon. */
	if (!srn_building)
		srn_cq_unpolled(cq);
	return 0;
}

static void event_taken(struct srn_event_node *node)
{
	container_of(node, struct srn_cq, event)->events_given++;
}

/* The CQ stays, once its event is taken, until that is acked. */
SRN_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
				void **cq_context)
{
	struct srn_comp_channel *ch = (struct srn_comp_channel *)channel;
	struct srn_event_node *node = srn_evq_pop(&ch->evq, event_taken);
	struct srn_cq *scq;

	if (!node)
		return -1;
	scq = container_of(node, struct srn_cq, event);
	*cq = (struct ibv_cq *)&scq->ex;
	*cq_context = scq->ex.cq_context;
	return 0;
}

SRN_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
