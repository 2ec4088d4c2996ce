/* SPDX-License-Identifier: BSD-3-Clause */
/* A device that does nothing, and says so. */

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mock.h"

/* verbs.h leads these two through macros of their own */
#undef ibv_reg_mr
#undef ibv_query_port

enum { MAX_EVENTS = 8 };

struct fake_channel {
	struct ibv_comp_channel channel; /* first */
	struct ibv_cq *event[MAX_EVENTS];
	unsigned events;
};

struct fake_cq {
	struct ibv_cq cq; /* first */
	unsigned unacked;
};

static int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
static int req_notify_cq(struct ibv_cq *cq, int solicited_only);
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		     struct ibv_sge *sg_list, uint32_t num_sge);
static int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		      size_t attr_size);
static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t attr_size);
static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

#define OPS                                                                                 \
	{                                                                                   \
		.poll_cq = poll_cq, .req_notify_cq = req_notify_cq, .post_send = post_send, \
		.post_recv = post_recv, .post_srq_recv = post_srq_recv,                     \
	}

static struct ibv_device ib_device = {
	.node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB, .name = "fake_ib"};
static struct ibv_device iwarp_device = {
	.node_type = IBV_NODE_RNIC, .transport_type = IBV_TRANSPORT_IWARP, .name = "fake_iwarp"};

#define EXTENDED(dev)                                                                             \
	{                                                                                         \
		.advise_mr = advise_mr, .query_port = query_port,                                 \
		.query_device_ex = query_device_ex, .create_qp_ex = create_qp_ex,                 \
		.sz = sizeof(struct verbs_context),                                               \
		.context = {.device = &(dev), .ops = OPS, .abi_compat = __VERBS_ABI_IS_EXTENDED}, \
	}

static struct verbs_context ib_context = EXTENDED(ib_device);
static struct verbs_context iwarp_context = EXTENDED(iwarp_device);
static struct ibv_context legacy_context = {.device = &ib_device, .ops = OPS};

struct ibv_context *mock_context(void)
{
	if (mock_device()->legacy)
		return &legacy_context;
	if (mock_device()->transport == IBV_TRANSPORT_IWARP)
		return &iwarp_context.context;
	return &ib_context.context;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int error = mock_enter(MOCK_ibv_query_device);

	(void)context;
	if (!error)
		*attr = mock_device()->attr;
	return error;
}

static int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		      size_t attr_size)
{
	int error = mock_enter(MOCK_ibv_query_port);

	(void)context;
	if (port_num < 1 || port_num > mock_device()->attr.phys_port_cnt)
		return EINVAL;
	if (!error)
		memcpy(attr, &mock_device()->port[port_num - 1], attr_size);
	return error;
}

int ibv_query_port(struct ibv_context *context, uint8_t port_num,
		   struct _compat_ibv_port_attr *attr)
{
	return query_port(context, port_num, (struct ibv_port_attr *)attr,
			  offsetof(struct ibv_port_attr, flags));
}

/* what the kernel's rdma/ib_user_verbs.h calls IB_UVERBS_DEVICE_* */
static const uint64_t flush_caps = 1ULL << 38 | 1ULL << 39;
static const uint64_t atomic_write_caps = 1ULL << 40;

static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t attr_size)
{
	const struct mock_device *device = mock_device();
	int error = mock_enter(MOCK_ibv_query_device_ex);

	(void)context;
	(void)input;
	if (error)
		return error;
	memset(attr, 0, attr_size);
	attr->orig_attr = device->attr;
	if (device->odp) {
		const uint32_t caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
				      IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;

		attr->odp_caps.general_caps = IBV_ODP_SUPPORT;
		attr->odp_caps.per_transport_caps.rc_odp_caps = caps & ~device->odp_missing;
	}
	if (device->native_flush)
		attr->device_cap_flags_ex |= flush_caps;
	if (device->native_atomic_write)
		attr->device_cap_flags_ex |= atomic_write_caps;
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd;

	if (mock_fails(MOCK_ibv_alloc_pd))
		return NULL;
	pd = mock_alloc(sizeof(*pd));
	pd->context = context;
	mock_born(MOCK_PD, pd, mock_free);
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	int error = mock_dies(MOCK_PD, pd, MOCK_ibv_dealloc_pd);

	if (!error)
		mock_free(pd);
	return error;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned access)
{
	struct mock_seen *seen = mock_seen();
	struct ibv_mr *mr;

	(void)iova;
	if (seen->reg_mr.attempts < sizeof(seen->reg_mr.access) / sizeof(seen->reg_mr.access[0]))
		seen->reg_mr.access[seen->reg_mr.attempts] = access;
	seen->reg_mr.attempts++;
	seen->reg_mr.addr = addr;
	seen->reg_mr.length = length;
	if (mock_fails(MOCK_ibv_reg_mr))
		return NULL;
	if (mock_device()->reg_mr_errno_without_odp && !(access & IBV_ACCESS_ON_DEMAND)) {
		errno = mock_device()->reg_mr_errno_without_odp;
		return NULL;
	}
	mr = mock_alloc(sizeof(*mr));
	*mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length};
	mr->lkey = MOCK_LKEY;
	mr->rkey = MOCK_RKEY;
	mock_born(MOCK_MR, mr, mock_free);
	mock_hangs_on(mr, pd);
	return mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int error = mock_dies(MOCK_MR, mr, MOCK_ibv_dereg_mr);

	if (!error)
		mock_free(mr);
	return error;
}

static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		     struct ibv_sge *sg_list, uint32_t num_sge)
{
	struct mock_seen *seen = mock_seen();
	int error = mock_enter(MOCK_ibv_advise_mr);

	(void)pd;
	seen->advise.advice = advice;
	seen->advise.flags = flags;
	if (num_sge == 1)
		seen->advise.sge = *sg_list;
	return error ? error : mock_device()->advise_errno;
}

static void channel_free(void *ptr)
{
	struct fake_channel *channel = ptr;

	close(channel->channel.fd);
	mock_free(channel);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct fake_channel *channel;

	if (mock_fails(MOCK_ibv_create_comp_channel))
		return NULL;
	channel = mock_alloc(sizeof(*channel));
	channel->channel.context = context;
	channel->channel.fd = eventfd(0, EFD_CLOEXEC);
	mock_born(MOCK_COMP_CHANNEL, channel, channel_free);
	return &channel->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	int error = mock_dies(MOCK_COMP_CHANNEL, channel, MOCK_ibv_destroy_comp_channel);

	if (!error)
		channel_free(channel);
	return error;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct mock_seen *seen = mock_seen();
	struct fake_cq *cq;

	(void)comp_vector;
	if (mock_fails(MOCK_ibv_create_cq))
		return NULL;
	if (seen->cq_count < sizeof(seen->cq) / sizeof(seen->cq[0])) {
		seen->cq[seen->cq_count].cqe = cqe;
		seen->cq[seen->cq_count].channel = channel;
	}
	seen->cq_count++;
	cq = mock_alloc(sizeof(*cq));
	cq->cq = (struct ibv_cq){
		.context = context, .channel = channel, .cq_context = cq_context, .cqe = cqe};
	mock_born(MOCK_CQ, cq, mock_free);
	mock_hangs_on(cq, channel);
	return &cq->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct fake_cq *fake = (struct fake_cq *)cq;
	int error;

	if (mock_is_alive(MOCK_CQ, cq) && fake->unacked)
		mock_wrong("ibv_destroy_cq() waits for %u events to be acknowledged",
			   fake->unacked);
	error = mock_dies(MOCK_CQ, cq, MOCK_ibv_destroy_cq);
	if (!error)
		mock_free(cq);
	return error;
}

struct ibv_cq *mock_cq(unsigned nth)
{
	return mock_nth_of(MOCK_CQ, nth);
}

void mock_cq_event(struct ibv_cq *cq)
{
	struct fake_channel *channel = (struct fake_channel *)cq->channel;

	channel->event[channel->events++] = cq;
	eventfd_write(channel->channel.fd, 1);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct fake_channel *fake = (struct fake_channel *)channel;
	eventfd_t waiting;

	if (mock_fails(MOCK_ibv_get_cq_event))
		return -1;
	if (!fake->events && mock_would_block(channel->fd, "ibv_get_cq_event()"))
		return -1;
	*cq = fake->event[0];
	*cq_context = (*cq)->cq_context;
	((struct fake_cq *)*cq)->unacked++;
	memmove(fake->event, fake->event + 1, --fake->events * sizeof(fake->event[0]));
	eventfd_read(channel->fd, &waiting);
	if (fake->events)
		eventfd_write(channel->fd, fake->events);
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned nevents)
{
	struct fake_cq *fake = (struct fake_cq *)cq;

	if (nevents > fake->unacked)
		mock_wrong("%u CQ events are acknowledged, but only %u were got", nevents,
			   fake->unacked);
	fake->unacked -= nevents;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	int error = mock_enter(MOCK_ibv_req_notify_cq);

	if (!cq->channel)
		mock_wrong("notification asked for from a CQ without a channel");
	(void)solicited_only;
	return error;
}

static int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	struct mock_device *device = mock_device();
	int error = mock_enter(MOCK_ibv_poll_cq);
	int got = 0;

	(void)cq;
	if (error)
		return -error;
	if (device->poll_result)
		return device->poll_result;
	while (got < num_entries && device->wc_ready) {
		wc[got++] = device->wc[0];
		memmove(device->wc, device->wc + 1, --device->wc_ready * sizeof(device->wc[0]));
	}
	return got;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq *srq;

	if (mock_fails(MOCK_ibv_create_srq))
		return NULL;
	mock_seen()->srq_attr = *attr;
	srq = mock_alloc(sizeof(*srq));
	srq->context = pd->context;
	srq->pd = pd;
	mock_born(MOCK_SRQ, srq, mock_free);
	mock_hangs_on(srq, pd);
	return srq;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	int error = mock_dies(MOCK_SRQ, srq, MOCK_ibv_destroy_srq);

	if (!error)
		mock_free(srq);
	return error;
}

static void record_recv(const struct ibv_recv_wr *wr, const struct ibv_qp *qp,
			const struct ibv_srq *srq)
{
	for (; wr; wr = wr->next) {
		struct mock_wr seen = {
			.qp = qp, .srq = srq, .wr_id = wr->wr_id, .num_sge = wr->num_sge};

		if (wr->num_sge)
			seen.sge = wr->sg_list[0];
		mock_record_wr(&seen);
	}
	mock_seen()->doorbells++;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int error = mock_enter(MOCK_ibv_post_recv);

	if (error) {
		*bad_wr = wr;
		return error;
	}
	record_recv(wr, qp, NULL);
	return 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int error = mock_enter(MOCK_ibv_post_srq_recv);

	if (error) {
		*bad_wr = wr;
		return error;
	}
	record_recv(wr, NULL, srq);
	return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	int error = mock_enter(MOCK_ibv_post_send);

	if (error) {
		*bad_wr = wr;
		return error;
	}
	for (; wr; wr = wr->next) {
		if (mock_device()->sq_is_full && mock_device()->sq_room-- == 0) {
			mock_device()->sq_room = 0;
			*bad_wr = wr;
			return ENOMEM;
		}
		struct mock_wr seen = {.qp = qp,
				       .wr_id = wr->wr_id,
				       .opcode = wr->opcode,
				       .send_flags = wr->send_flags,
				       .remote_addr = wr->wr.rdma.remote_addr,
				       .rkey = wr->wr.rdma.rkey,
				       .imm_data = wr->imm_data,
				       .num_sge = wr->num_sge};

		if (wr->num_sge)
			seen.sge = wr->sg_list[0];
		if (wr->num_sge && wr->send_flags & IBV_SEND_INLINE &&
		    seen.sge.length <= sizeof(seen.inlined))
			memcpy(seen.inlined, (void *)(uintptr_t)seen.sge.addr, seen.sge.length);
		mock_record_wr(&seen);
	}
	mock_seen()->doorbells++;
	return 0;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	(void)context;
	(void)attr;
	mock_wrong("a QP is created without its rdma_cm_id");
	errno = ENOSYS;
	return NULL;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}
