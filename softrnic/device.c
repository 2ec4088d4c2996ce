// SPDX-License-Identifier: BSD-3-Clause
/* The one device, softrnic0, and what it says about itself. */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softrnic.h"

#define VERSION       "1.0"
#define VENDOR_ID     0x626d74 /* as siw: no vendor's */
#define GID_TABLE_LEN 8
#define SPEED_25G     32
#define WIDTH_1X      1

/* Exported by libibverbs to rdma-core's own programs; no public header declares them. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       unsigned int *type);
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

static struct ibv_device device = {
	.node_type = IBV_NODE_RNIC,
	.transport_type = IBV_TRANSPORT_IWARP,
	.name = "softrnic0",
	.dev_name = "softrnic0",
};

/* The GUID is made from the first Ethernet address, so that two hosts differ. */
static __be64 node_guid(void)
{
	struct ifaddrs *list, *ifa;
	uint64_t guid = 0x02736f66746e6963ull;
	uint32_t addr;

	if (getifaddrs(&list))
		return htobe64(guid);
	for (ifa = list; ifa; ifa = ifa->ifa_next) {
		if (!ifa->ifa_addr || ifa->ifa_addr->sa_family != AF_INET ||
		    (ifa->ifa_flags & IFF_LOOPBACK))
			continue;
		addr = ntohl(((struct sockaddr_in *)(void *)ifa->ifa_addr)->sin_addr.s_addr);
		guid = 0x02736f6600000000ull | addr;
		break;
	}
	freeifaddrs(list);
	return htobe64(guid);
}

SRN_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = calloc(2, sizeof(*list));

	if (list)
		list[0] = &device;
	if (num_devices)
		*num_devices = list ? 1 : 0;
	return list;
}

SRN_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

SRN_EXPORT const char *ibv_get_device_name(struct ibv_device *dev)
{
	return dev->name;
}

SRN_EXPORT int ibv_get_device_index(struct ibv_device *dev)
{
	(void)dev;
	return 0;
}

SRN_EXPORT __be64 ibv_get_device_guid(struct ibv_device *dev)
{
	(void)dev;
	return node_guid();
}

SRN_EXPORT const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

SRN_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	(void)dir;
	(void)file;
	(void)buf;
	(void)size;
	return -1; /* the device has no entry in sysfs */
}

static void device_attr(struct ibv_device_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), VERSION);
	attr->node_guid = node_guid();
	attr->sys_image_guid = attr->node_guid;
	attr->max_mr_size = UINT64_MAX;
	attr->page_size_cap = (uint64_t)sysconf(_SC_PAGESIZE);
	attr->vendor_id = VENDOR_ID;
	attr->hw_ver = 1;
	attr->max_qp = 65536;
	attr->max_qp_wr = SRN_MAX_QP_WR;
	attr->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE;
	attr->max_sge = SRN_MAX_SGE;
	attr->max_sge_rd = SRN_MAX_SGE;
	attr->max_cq = 65536;
	attr->max_cqe = SRN_MAX_CQE;
	attr->max_mr = SRN_MAX_MR;
	attr->max_pd = 65536;
	attr->max_qp_rd_atom = SRN_MAX_RD_ATOM;
	attr->max_res_rd_atom = SRN_MAX_RD_ATOM * 65536;
	attr->max_qp_init_rd_atom = SRN_MAX_RD_ATOM;
	attr->atomic_cap = IBV_ATOMIC_GLOB;
	attr->max_srq = 65536;
	attr->max_srq_wr = SRN_MAX_SRQ_WR;
	attr->max_srq_sge = SRN_MAX_SGE;
	attr->max_pkeys = 1;
	attr->phys_port_cnt = 1;
}

SRN_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	device_attr(attr);
	return 0;
}

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *in,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex full;

	(void)context;
	if (in && in->comp_mask)
		return EINVAL;
	if (size < sizeof(full.orig_attr))
		return EINVAL;
	memset(&full, 0, sizeof(full));
	device_attr(&full.orig_attr);
	full.device_cap_flags_ex = full.orig_attr.device_cap_flags | SRN_DEVICE_FLUSH_GLOBAL |
				   SRN_DEVICE_FLUSH_PERSISTENT | SRN_DEVICE_ATOMIC_WRITE;
	full.phys_port_cnt_ex = 1;
	memset(attr, 0, size);
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

static int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		      size_t len)
{
	struct ibv_port_attr full;

	(void)context;
	if (port_num != 1)
		return EINVAL;
	memset(&full, 0, sizeof(full));
	full.state = IBV_PORT_ACTIVE;
	full.max_mtu = IBV_MTU_4096;
	full.active_mtu = IBV_MTU_4096;
	full.gid_tbl_len = GID_TABLE_LEN;
	full.port_cap_flags = IBV_PORT_CM_SUP;
	full.max_msg_sz = SRN_MAX_MSG;
	full.pkey_tbl_len = 1;
	full.active_width = WIDTH_1X;
	full.active_speed = SPEED_25G;
	full.phys_state = 5; /* LinkUp */
	full.link_layer = IBV_LINK_LAYER_ETHERNET;
	memset(attr, 0, len);
	memcpy(attr, &full, len < sizeof(full) ? len : sizeof(full));
	return 0;
}

SRN_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
			      struct _compat_ibv_port_attr *attr)
{
	/* The old structure ends where port_cap_flags2 begins. */
	return query_port(context, port_num, (struct ibv_port_attr *)attr,
			  offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* The GID table: the GUID first (as iWARP devices have it), then the host's addresses. */
static bool gid_at(uint32_t index, union ibv_gid *gid)
{
	struct ifaddrs *list, *ifa;
	bool found = false;
	uint32_t i = 1;

	memset(gid, 0, sizeof(*gid));
	if (index == 0) {
		gid->global.subnet_prefix = node_guid();
		return true;
	}
	if (getifaddrs(&list))
		return false;
	for (ifa = list; ifa && !found; ifa = ifa->ifa_next) {
		if (!ifa->ifa_addr)
			continue;
		if (ifa->ifa_addr->sa_family == AF_INET) {
			found = i++ == index;
			if (!found)
				continue;
			gid->raw[10] = gid->raw[11] = 0xff;
			memcpy(gid->raw + 12,
			       &((struct sockaddr_in *)(void *)ifa->ifa_addr)->sin_addr, 4);
		} else if (ifa->ifa_addr->sa_family == AF_INET6) {
			found = i++ == index;
			if (found)
				memcpy(gid->raw,
				       &((struct sockaddr_in6 *)(void *)ifa->ifa_addr)->sin6_addr,
				       16);
		}
	}
	freeifaddrs(list);
	return found;
}

SRN_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
			     union ibv_gid *gid)
{
	(void)context;
	if (port_num != 1 || index < 0 || index >= GID_TABLE_LEN) {
		errno = EINVAL;
		return -1;
	}
	gid_at((uint32_t)index, gid); /* an empty entry is all zero */
	return 0;
}

SRN_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
				  unsigned int *type)
{
	(void)context;
	if (port_num != 1 || index >= GID_TABLE_LEN) {
		errno = EINVAL;
		return -1;
	}
	*type = IBV_GID_TYPE_IB;
	return 0;
}

SRN_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
				 struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	(void)context;
	if (port_num != 1 || gid_index >= GID_TABLE_LEN || flags || entry_size < sizeof(*entry))
		return EINVAL;
	memset(entry, 0, entry_size);
	if (!gid_at(gid_index, &entry->gid))
		return ENODATA;
	entry->gid_index = gid_index;
	entry->port_num = port_num;
	entry->gid_type = IBV_GID_TYPE_IB;
	return 0;
}

SRN_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
					size_t max_entries, uint32_t flags, size_t entry_size)
{
	size_t n = 0;
	uint32_t i;

	if (flags || entry_size < sizeof(*entries))
		return -EINVAL;
	for (i = 0; i < GID_TABLE_LEN && n < max_entries; i++)
		if (!_ibv_query_gid_ex(context, 1, i,
				       (struct ibv_gid_entry *)((char *)entries + n * entry_size),
				       0, entry_size))
			n++;
	return (ssize_t)n;
}

SRN_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index,
			      __be16 *pkey)
{
	(void)context;
	if (port_num != 1 || index != 0) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(0xffff);
	return 0;
}

SRN_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	(void)context;
	return port_num == 1 && pkey == htobe16(0xffff) ? 0 : -1;
}

SRN_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *dev)
{
	struct srn_context *ctx;
	struct ibv_context *context;
	int err;

	ctx = calloc(1, sizeof(*ctx));
	if (!ctx) {
		errno = ENOMEM;
		return NULL;
	}
	err = srn_evq_init(&ctx->async);
	if (err) {
		free(ctx);
		errno = err;
		return NULL;
	}
	ctx->v.sz = sizeof(ctx->v);
	ctx->v.query_port = query_port;
	ctx->v.query_device_ex = query_device_ex;
	ctx->v.create_cq_ex = srn_create_cq_ex;
	ctx->v.create_qp_ex = srn_create_qp_ex;
	ctx->v.create_srq_ex = srn_create_srq_ex;
	ctx->v.get_srq_num = srn_get_srq_num;
	context = &ctx->v.context;
	context->device = dev;
	context->cmd_fd = -1;
	context->async_fd = ctx->async.fd;
	context->num_comp_vectors = 1;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&context->mutex, NULL);
	context->ops.poll_cq = srn_poll_cq;
	context->ops.req_notify_cq = srn_req_notify_cq;
	context->ops.post_send = srn_post_send;
	context->ops.post_recv = srn_post_recv;
	context->ops.post_srq_recv = srn_post_srq_recv;
	return context;
}

SRN_EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct srn_context *ctx = srn_context(context);

	srn_evq_destroy(&ctx->async);
	pthread_mutex_destroy(&context->mutex);
	free(ctx);
	return 0;
}

/* ---- the device as rdma_cm has it */

static struct {
	pthread_mutex_t lock;
	struct ibv_context *context;
	struct ibv_pd *pd;
} cm = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct ibv_context *srn_cm_context(void)
{
	pthread_mutex_lock(&cm.lock);
	if (!cm.context)
		cm.context = ibv_open_device(&device);
	if (cm.context && !cm.pd)
		cm.pd = ibv_alloc_pd(cm.context);
	pthread_mutex_unlock(&cm.lock);
	return cm.context;
}

struct ibv_pd *srn_cm_pd(void)
{
	return srn_cm_context() ? cm.pd : NULL;
}

/* It stays, but what it tells is not the parent's any more. */
void srn_device_after_fork(void)
{
	struct srn_context *ctx;

	pthread_mutex_init(&cm.lock, NULL);
	if (!cm.context)
		return;
	ctx = srn_context(cm.context);
	pthread_mutex_init(&cm.context->mutex, NULL);
	close(ctx->async.fd);
	if (srn_evq_init(&ctx->async))
		ctx->async.fd = -1;
	cm.context->async_fd = ctx->async.fd;
}

SRN_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = NULL;
	struct ibv_context *context = srn_cm_context();

	if (context)
		list = calloc(2, sizeof(*list));
	if (list)
		list[0] = context;
	if (num_devices)
		*num_devices = list ? 1 : 0;
	return list;
}

SRN_EXPORT void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}

/* ---- asynchronous events */

void srn_async_event(struct ibv_context *context, enum ibv_event_type type, void *element)
{
	struct srn_async *async = calloc(1, sizeof(*async));

	if (!async)
		return;
	async->event.event_type = type;
	async->event.element.qp = element;
	srn_evq_push(&srn_context(context)->async, &async->node);
}

static uint32_t *acked_counter(struct ibv_async_event *event, pthread_mutex_t **mutex,
			       pthread_cond_t **cond)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		*mutex = &event->element.cq->mutex;
		*cond = &event->element.cq->cond;
		return &event->element.cq->async_events_completed;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		*mutex = &event->element.qp->mutex;
		*cond = &event->element.qp->cond;
		return &event->element.qp->events_completed;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		*mutex = &event->element.srq->mutex;
		*cond = &event->element.srq->cond;
		return &event->element.srq->events_completed;
	default:
		return NULL;
	}
}

/* How often an object's events were taken; guarded by the queue's lock. */
static uint32_t *given_counter(struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return &srn_cq(event->element.cq)->async_given;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return &((struct srn_srq *)event->element.srq)->async_given;
	default:
		return &srn_qp(event->element.qp)->async_given;
	}
}

static void async_taken(struct srn_event_node *node)
{
	struct ibv_async_event *event = &container_of(node, struct srn_async, node)->event;
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;

	if (acked_counter(event, &mutex, &cond))
		++*given_counter(event);
}

/* The object stays, once its event is taken, until that is acked. */
SRN_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct srn_event_node *node = srn_evq_pop(&srn_context(context)->async, async_taken);
	struct srn_async *async;

	if (!node)
		return -1;
	async = container_of(node, struct srn_async, node);
	*event = async->event;
	free(async);
	return 0;
}

SRN_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
	uint32_t *acked = acked_counter(event, &mutex, &cond);

	if (!acked)
		return;
	pthread_mutex_lock(mutex);
	++*acked;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mutex);
}

static bool is_of(struct srn_event_node *node, void *element)
{
	return container_of(node, struct srn_async, node)->event.element.qp == element;
}

/* Drops the events of an object that is to go and waits for the acks of those handed out. */
void srn_async_forget(struct ibv_context *context, void *element, pthread_mutex_t *mutex,
		      pthread_cond_t *cond, const uint32_t *given, const uint32_t *acked)
{
	struct srn_evq *evq = &srn_context(context)->async;
	struct srn_event_node *node;

	while ((node = srn_evq_cancel_match(evq, is_of, element)))
		free(container_of(node, struct srn_async, node));
	pthread_mutex_lock(mutex);
	while (*given != *acked)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}
