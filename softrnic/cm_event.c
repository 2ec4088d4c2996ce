// SPDX-License-Identifier: BSD-3-Clause
/* Event channels, and the events of identifiers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic.h"

/* Guards every id's list of events; taken before a channel's own lock. */
static pthread_mutex_t events_lock = PTHREAD_MUTEX_INITIALIZER;

void srn_events_after_fork(void)
{
	pthread_mutex_init(&events_lock, NULL);
}

int srn_seterr(int err)
{
	if (!err)
		return 0;
	errno = err;
	return -1;
}

static struct srn_evq *queue_of(struct srn_id *id)
{
	return &((struct srn_channel *)id->id.channel)->evq;
}

SRN_EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct srn_channel *channel = calloc(1, sizeof(*channel));
	int err = channel ? srn_evq_init(&channel->evq) : ENOMEM;

	if (err) {
		free(channel);
		errno = err;
		return NULL;
	}
	channel->channel.fd = channel->evq.fd;
	return &channel->channel;
}

SRN_EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	srn_evq_destroy(&((struct srn_channel *)channel)->evq);
	free(channel);
}

int srn_cm_event(struct srn_id *id, struct srn_id *listen, enum rdma_cm_event_type type, int status,
		 const struct rdma_conn_param *param)
{
	struct srn_cm_event *event = calloc(1, sizeof(*event));

	if (!event)
		return ENOMEM;
	event->id = listen ? listen : id;
	event->event.id = &id->id;
	event->event.listen_id = listen ? &listen->id : NULL;
	event->event.event = type;
	event->event.status = status;
	if (param) {
		event->event.param.conn = *param;
		if (param->private_data_len)
			memcpy(event->private_data, param->private_data, param->private_data_len);
		event->event.param.conn.private_data =
			param->private_data_len ? event->private_data : NULL;
	}
	pthread_mutex_lock(&events_lock);
	TAILQ_INSERT_TAIL(&event->id->events, event, of_id);
	srn_evq_push(queue_of(event->id), &event->node);
	pthread_mutex_unlock(&events_lock);
	return 0;
}

void srn_id_disconnected(struct srn_id *id)
{
	id->state = SRN_ID_DISCONNECTED;
	if (!atomic_exchange(&id->disconnect_told, true))
		srn_cm_event(id, NULL, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
}

/*
 * The program gets the event.  A new identifier goes where its listening one is now: on the same
 * channel, or, if that one is synchronous, on one of its own.  False: there was none to be had, the
 * request is refused and the event gone.
 */
static bool deliver(struct srn_cm_event *event)
{
	bool request = event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST;
	struct rdma_cm_id *id = event->event.id;
	bool sync;

	pthread_mutex_lock(&events_lock);
	event->delivered = true;
	if (request) {
		id->channel = event->id->id.channel;
		id->context = event->id->id.context;
	}
	sync = event->id->sync;
	pthread_mutex_unlock(&events_lock);
	if (!request || !sync || !rdma_migrate_id(id, NULL))
		return true;
	rdma_destroy_id(id);
	rdma_ack_cm_event(&event->event);
	return false;
}

SRN_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct srn_event_node *node;
	struct srn_cm_event *got;

	if (!event)
		return srn_seterr(EINVAL);
	do {
		node = srn_evq_pop(&((struct srn_channel *)channel)->evq, NULL);
		if (!node)
			return -1;
		got = container_of(node, struct srn_cm_event, node);
	} while (!deliver(got));
	*event = &got->event;
	return 0;
}

SRN_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct srn_cm_event *acked;
	struct srn_id *id;

	if (!event)
		return srn_seterr(EINVAL);
	acked = container_of(event, struct srn_cm_event, event);
	id = acked->id;
	pthread_mutex_lock(&events_lock);
	TAILQ_REMOVE(&id->events, acked, of_id);
	pthread_cond_broadcast(&id->acked);
	pthread_mutex_unlock(&events_lock);
	free(acked);
	return 0;
}

/* Takes back what the program has not seen, and waits until it has acked the rest. */
void srn_id_drain(struct srn_id *id)
{
	struct srn_cm_event *event;
	struct srn_id *orphan;

	pthread_mutex_lock(&events_lock);
again:
	TAILQ_FOREACH(event, &id->events, of_id)
	{
		if (event->delivered || !srn_evq_cancel(queue_of(id), &event->node))
			continue;
		TAILQ_REMOVE(&id->events, event, of_id);
		orphan = event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST
				 ? srn_id(event->event.id)
				 : NULL;
		pthread_mutex_unlock(&events_lock);
		if (orphan)
			rdma_destroy_id(&orphan->id);
		free(event);
		pthread_mutex_lock(&events_lock);
		goto again;
	}
	if (!TAILQ_EMPTY(&id->events)) {
		pthread_cond_wait(&id->acked, &events_lock);
		goto again;
	}
	pthread_mutex_unlock(&events_lock);
}

SRN_EXPORT int rdma_migrate_id(struct rdma_cm_id *rid, struct rdma_event_channel *channel)
{
	struct srn_id *id = srn_id(rid);
	struct rdma_event_channel *old = rid->channel;
	bool was_sync = id->sync, sync = !channel;
	struct srn_cm_event *event;

	if (id->sync && rid->event) {
		rdma_ack_cm_event(rid->event);
		rid->event = NULL;
	}
	if (sync) {
		channel = rdma_create_event_channel();
		if (!channel)
			return -1;
	}
	pthread_mutex_lock(&events_lock);
	rid->channel = channel;
	id->sync = sync;
	TAILQ_FOREACH(event, &id->events, of_id)
	if (!event->delivered && srn_evq_cancel(&((struct srn_channel *)old)->evq, &event->node))
		srn_evq_push(queue_of(id), &event->node);
	pthread_mutex_unlock(&events_lock);
	if (was_sync)
		rdma_destroy_event_channel(old);
	return 0;
}

int srn_sync_complete(struct srn_id *id)
{
	struct rdma_cm_event *event;

	if (!id->sync)
		return 0;
	if (id->id.event) {
		rdma_ack_cm_event(id->id.event);
		id->id.event = NULL;
	}
	if (rdma_get_cm_event(id->id.channel, &id->id.event))
		return -1;
	event = id->id.event;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return srn_seterr(ECONNREFUSED);
	return srn_seterr(event->status < 0 ? -event->status : event->status);
}
