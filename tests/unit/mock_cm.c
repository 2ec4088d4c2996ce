/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection manager whose events are those a test puts there. */

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mock.h"

/* what RDMA_PS_TCP leaves a user of InfiniBand and RoCE, see rdma_connect(3) and rdma_accept(3) */
enum { ACTIVE_DATA_MAX = 56, PASSIVE_DATA_MAX = 196, MAX_EVENTS = 8 };

struct fake_event {
	struct rdma_cm_event event; /* first */
	struct fake_id *counted_on; /* its destruction waits for this event */
	uint8_t private_data[MOCK_PRIVATE_DATA_MAX];
};

struct fake_channel {
	struct rdma_event_channel channel; /* first */
	struct fake_event *event[MAX_EVENTS];
	unsigned events;
};

struct fake_id {
	struct rdma_cm_id id; /* first */
	bool synchronous;
	unsigned unacked;
};

static void event_signal(struct fake_channel *channel)
{
	eventfd_t waiting;

	/* readable as long as something waits */
	eventfd_write(channel->channel.fd, 1);
	if (!channel->events)
		eventfd_read(channel->channel.fd, &waiting);
}

static void channel_free(void *ptr)
{
	struct fake_channel *channel = ptr;

	for (unsigned i = 0; i < channel->events; i++)
		mock_free(channel->event[i]);
	close(channel->channel.fd);
	mock_free(channel);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct fake_channel *channel;

	if (mock_fails(MOCK_rdma_create_event_channel))
		return NULL;
	channel = mock_alloc(sizeof(*channel));
	channel->channel.fd = eventfd(0, EFD_CLOEXEC);
	mock_born(MOCK_EVENT_CHANNEL, channel, channel_free);
	return &channel->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	mock_dies(MOCK_EVENT_CHANNEL, channel, MOCK_NO_CALL);
	channel_free(channel);
}

static struct fake_id *id_new(struct rdma_event_channel *channel, void *context,
			      enum rdma_port_space ps)
{
	struct fake_id *id = mock_alloc(sizeof(*id));

	id->synchronous = channel == NULL;
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = ps;
	mock_born(MOCK_ID, id, mock_free);
	mock_hangs_on(id, channel);
	return id;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	if (mock_fails(MOCK_rdma_create_id))
		return -1;
	*id = &id_new(channel, context, ps)->id;
	return 0;
}

/* What was not fetched yet goes with its id. */
static void purge(struct fake_channel *channel, const struct fake_id *id)
{
	unsigned kept = 0;

	for (unsigned i = 0; channel && i < channel->events; i++) {
		if (channel->event[i]->counted_on == id)
			mock_free(channel->event[i]);
		else
			channel->event[kept++] = channel->event[i];
	}
	if (channel) {
		channel->events = kept;
		event_signal(channel);
	}
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct fake_id *fake = (struct fake_id *)id;
	int error;

	if (!mock_is_alive(MOCK_ID, id)) {
		mock_dies(MOCK_ID, id, MOCK_NO_CALL);
		return 0;
	}
	if (fake->unacked)
		mock_wrong("rdma_destroy_id() waits for %u events to be acknowledged",
			   fake->unacked);
	error = mock_dies(MOCK_ID, id, MOCK_rdma_destroy_id);
	if (error) {
		errno = error;
		return -1;
	}
	purge((struct fake_channel *)id->channel, fake);
	/* an event that comes later still counts on it; the test has failed anyway */
	if (!fake->unacked)
		mock_free(fake);
	return 0;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	if (mock_fails(MOCK_rdma_migrate_id))
		return -1;
	if (((struct fake_id *)id)->unacked)
		mock_wrong("rdma_migrate_id() waits for events to be acknowledged");
	mock_moves(id, id->channel, channel);
	id->channel = channel;
	((struct fake_id *)id)->synchronous = channel == NULL;
	return 0;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	static struct sockaddr_in address = {.sin_family = AF_INET};
	struct mock_seen *seen = mock_seen();
	struct rdma_addrinfo *info;

	snprintf(seen->addrinfo.node, sizeof(seen->addrinfo.node), "%s", node ? node : "");
	snprintf(seen->addrinfo.service, sizeof(seen->addrinfo.service), "%s",
		 service ? service : "");
	seen->addrinfo.flags = hints ? hints->ai_flags : 0;
	seen->addrinfo.port_space = hints ? hints->ai_port_space : 0;
	if (mock_fails(MOCK_rdma_getaddrinfo))
		return -1;
	info = mock_alloc(sizeof(*info));
	info->ai_family = AF_INET;
	info->ai_port_space = RDMA_PS_TCP;
	if (seen->addrinfo.flags & RAI_PASSIVE) {
		info->ai_src_addr = (struct sockaddr *)&address;
		info->ai_src_len = sizeof(address);
	} else {
		info->ai_dst_addr = (struct sockaddr *)&address;
		info->ai_dst_len = sizeof(address);
	}
	mock_born(MOCK_ADDRINFO, info, mock_free);
	*res = info;
	return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	mock_dies(MOCK_ADDRINFO, res, MOCK_NO_CALL);
	mock_free(res);
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	if (mock_fails(MOCK_rdma_bind_addr))
		return -1;
	if (!addr)
		mock_wrong("rdma_bind_addr() without an address");
	id->verbs = mock_device()->missing ? NULL : mock_context();
	id->port_num = 1;
	return 0;
}

/* A synchronous id has its answer when the call returns, another finds it on its channel. */
static int answer(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	if (!((struct fake_id *)id)->synchronous)
		mock_cm_event(id, type, NULL, 0, 0);
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
		      int timeout_ms)
{
	(void)src_addr;
	mock_seen()->resolve_timeout_ms[0] = timeout_ms;
	if (mock_fails(MOCK_rdma_resolve_addr))
		return -1;
	if (!dst_addr)
		mock_wrong("rdma_resolve_addr() without a destination");
	id->verbs = mock_device()->missing ? NULL : mock_context();
	id->port_num = 1;
	return answer(id, RDMA_CM_EVENT_ADDR_RESOLVED);
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	mock_seen()->resolve_timeout_ms[1] = timeout_ms;
	if (mock_fails(MOCK_rdma_resolve_route))
		return -1;
	return answer(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* as a provider does, which refuses what it does not know */
static bool device_can(const struct ibv_qp_init_attr_ex *attr)
{
	const uint64_t flush = 1 << 11, atomic_write = 1 << 12; /* IBV_QP_EX_WITH_* */
	const struct mock_device *device = mock_device();

	if (attr->cap.max_inline_data > device->max_inline) {
		errno = EINVAL;
		return false;
	}
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return true;
	if (!device->legacy && (device->native_flush || !(attr->send_ops_flags & flush)) &&
	    (device->native_atomic_write || !(attr->send_ops_flags & atomic_write)))
		return true;
	errno = EOPNOTSUPP;
	return false;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;

	mock_seen()->qp_attr = *attr;
	if (mock_fails(MOCK_rdma_create_qp) || !device_can(attr))
		return -1;
	if (!id->verbs)
		mock_wrong("a QP is created on an id that has no device yet");
	qp = mock_qp_new(id->verbs, attr);
	mock_born(MOCK_QP, qp, mock_free);
	mock_hangs_on(qp, attr->pd);
	mock_hangs_on(qp, attr->send_cq);
	if (attr->recv_cq != attr->send_cq)
		mock_hangs_on(qp, attr->recv_cq);
	mock_hangs_on(qp, attr->srq);
	mock_hangs_on(qp, id);
	id->qp = qp;
	id->pd = attr->pd;
	attr->cap.max_send_wr += mock_device()->qp_extra.max_send_wr;
	attr->cap.max_recv_wr += mock_device()->qp_extra.max_recv_wr;
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {.qp_context = attr->qp_context,
					 .send_cq = attr->send_cq,
					 .recv_cq = attr->recv_cq,
					 .srq = attr->srq,
					 .cap = attr->cap,
					 .qp_type = attr->qp_type,
					 .sq_sig_all = attr->sq_sig_all,
					 .comp_mask = IBV_QP_INIT_ATTR_PD,
					 .pd = pd};

	int ret = rdma_create_qp_ex(id, &ex);

	attr->cap = ex.cap;
	return ret;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct ibv_qp *qp = id->qp;

	mock_dies(MOCK_QP, qp, MOCK_NO_CALL);
	mock_qp_free(qp);
	id->qp = NULL;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	(void)id;
	mock_seen()->backlog = backlog;
	return mock_fails(MOCK_rdma_listen) ? -1 : 0;
}

static int take_param(const struct rdma_conn_param *param, uint8_t max)
{
	struct mock_seen *seen = mock_seen();

	seen->conn.given = param != NULL;
	if (!param)
		return 0;
	seen->conn.param = *param;
	if (param->private_data_len)
		memcpy(seen->conn.private_data, param->private_data, param->private_data_len);
	if (param->private_data_len <= max || mock_device()->transport == IBV_TRANSPORT_IWARP)
		return 0;
	errno = EINVAL;
	return -1;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	if (mock_fails(MOCK_rdma_connect))
		return -1;
	if (((struct fake_id *)id)->synchronous)
		mock_wrong("rdma_connect() waits for the peer");
	return take_param(param, ACTIVE_DATA_MAX);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	(void)id;
	if (mock_fails(MOCK_rdma_accept))
		return -1;
	return take_param(param, PASSIVE_DATA_MAX);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t len)
{
	(void)id;
	(void)private_data;
	(void)len;
	return mock_fails(MOCK_rdma_reject) ? -1 : 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	(void)id;
	return mock_fails(MOCK_rdma_disconnect) ? -1 : 0;
}

static struct fake_event *event_new(const struct rdma_cm_id *id, enum rdma_cm_event_type type,
				    const void *pdata, uint8_t len, int status)
{
	struct fake_channel *channel = (struct fake_channel *)id->channel;
	struct fake_event *event = mock_alloc(sizeof(*event));

	event->event.id = (struct rdma_cm_id *)id;
	event->event.event = type;
	event->event.status = status;
	if (len) {
		memcpy(event->private_data, pdata, len);
		event->event.param.conn.private_data = event->private_data;
		event->event.param.conn.private_data_len = len;
	}
	event->counted_on = (struct fake_id *)id;
	channel->event[channel->events++] = event;
	event_signal(channel);
	return event;
}

void mock_cm_event(const struct rdma_cm_id *id, enum rdma_cm_event_type type, const void *pdata,
		   uint8_t len, int status)
{
	event_new(id, type, pdata, len, status);
}

void mock_conn_request(const struct rdma_cm_id *listen_id, const void *pdata, uint8_t len)
{
	struct fake_event *event =
		event_new(listen_id, RDMA_CM_EVENT_CONNECT_REQUEST, pdata, len, 0);

	event->event.listen_id = (struct rdma_cm_id *)listen_id;
	event->event.id = NULL; /* made when the event is fetched */
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event_ptr)
{
	struct fake_channel *fake = (struct fake_channel *)channel;
	struct fake_event *event;

	if (mock_fails(MOCK_rdma_get_cm_event))
		return -1;
	if (!fake->events && mock_would_block(channel->fd, "rdma_get_cm_event()"))
		return -1;
	event = fake->event[0];
	memmove(fake->event, fake->event + 1, --fake->events * sizeof(fake->event[0]));
	event_signal(fake);
	if (!event->event.id) {
		struct fake_id *id = id_new(channel, event->event.listen_id->context, RDMA_PS_TCP);

		id->id.verbs = mock_context();
		id->id.port_num = 1;
		event->event.id = &id->id;
	}
	event->counted_on->unacked++;
	mock_born(MOCK_CM_EVENT, event, mock_free);
	*event_ptr = &event->event;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct fake_event *fake = (struct fake_event *)event;
	struct fake_id *counted_on;
	int error;

	if (!mock_is_alive(MOCK_CM_EVENT, event)) {
		mock_dies(MOCK_CM_EVENT, event, MOCK_NO_CALL);
		return 0;
	}
	counted_on = fake->counted_on;
	error = mock_dies(MOCK_CM_EVENT, event, MOCK_rdma_ack_cm_event);
	/* also when it is refused: the library can do no more about it */
	counted_on->unacked--;
	if (error) {
		errno = error;
		return -1;
	}
	mock_free(event);
	return 0;
}

struct rdma_cm_id *mock_id(unsigned nth)
{
	return mock_nth_of(MOCK_ID, nth);
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return event == RDMA_CM_EVENT_ESTABLISHED ? "RDMA_CM_EVENT_ESTABLISHED" : "another event";
}
