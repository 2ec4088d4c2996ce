// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include <rdma/rdma_cma.h>

#include "librpma_config.h"
#include "librpma_cost.h"

/* FLUSH_GLOBAL, FLUSH_PERSISTENT, ATOMIC_WRITE of device_cap_flags_ex */
#define NATIVE_CAPS (7ULL << 38)

static struct {
	struct ibv_device device;
	struct verbs_context verbs;
	bool native;
	int completions;
	struct ibv_qp_ex qp;
	struct rdma_cm_id id;
	struct rdma_event_channel events;
} mock;

void mock_completions(int number)
{
	mock.completions = number;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp, (void)wr, (void)bad;
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)qp, (void)wr, (void)bad;
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	(void)cq, (void)wc;
	return entries < mock.completions ? entries : mock.completions;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	(void)cq, (void)solicited_only;
	return 0;
}

static int query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	(void)ctx, (void)input, (void)size;
	attr->orig_attr.max_qp_wr = 1024;
	attr->orig_attr.max_cqe = 1024;
	attr->device_cap_flags_ex = mock.native ? NATIVE_CAPS : 0;
	return 0;
}

static void wr_start(struct ibv_qp_ex *qp)
{
	(void)qp;
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	(void)qp;
	return 0;
}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, const void *value)
{
	(void)qp, (void)rkey, (void)addr, (void)value;
}

#ifdef NATIVE_FLUSH_SUPPORTED
static void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, uint8_t type,
		     uint8_t level)
{
	(void)qp, (void)rkey, (void)addr, (void)len, (void)type, (void)level;
}

static void set_wr_flush(struct ibv_qp_ex *qp)
{
	qp->wr_flush = wr_flush;
}
#else
static void set_wr_flush(struct ibv_qp_ex *qp)
{
	(void)qp;
}
#endif

struct ibv_context *mock_device(bool native)
{
	struct ibv_context *ctx = &mock.verbs.context;

	mock.native = native;
	mock.verbs.sz = sizeof(mock.verbs);
	mock.verbs.query_device_ex = query_device_ex;
	ctx->abi_compat = __VERBS_ABI_IS_EXTENDED;
	ctx->device = &mock.device;
	ctx->ops.post_send = post_send;
	ctx->ops.post_recv = post_recv;
	ctx->ops.poll_cq = poll_cq;
	ctx->ops.req_notify_cq = req_notify_cq;
	mock.device.transport_type = IBV_TRANSPORT_IB;
	mock.qp.qp_base.context = ctx;
	mock.qp.wr_start = wr_start;
	mock.qp.wr_complete = wr_complete;
	mock.qp.wr_atomic_write = wr_atomic_write;
	set_wr_flush(&mock.qp);

	return ctx;
}

/* Below is what librpma finds instead of libibverbs and librdmacm. */
#pragma GCC visibility push(default)

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	if (pd)
		pd->context = ctx;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

static struct ibv_mr *new_mr(struct ibv_pd *pd)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	if (mr)
		mr->pd = pd;
	return mr;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	(void)addr, (void)length, (void)access;
	return new_mr(pd);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	(void)addr, (void)length, (void)iova, (void)access;
	return new_mr(pd);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	(void)ctx;
	return calloc(1, sizeof(struct ibv_comp_channel));
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	free(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq *cq = calloc(1, sizeof(*cq));

	(void)cq_context, (void)comp_vector;
	if (cq) {
		cq->context = ctx;
		cq->channel = channel;
		cq->cqe = cqe;
	}
	return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	free(cq);
	return 0;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return (struct ibv_qp_ex *)qp;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **info)
{
	(void)node, (void)service, (void)hints;
	*info = calloc(1, sizeof(**info));
	return *info ? 0 : -1;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *info)
{
	free(info);
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	(void)channel, (void)context, (void)ps;
	mock.id.verbs = &mock.verbs.context;
	*id = &mock.id;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	(void)id;
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
		      int timeout_ms)
{
	(void)id, (void)src, (void)dst, (void)timeout_ms;
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	(void)id, (void)timeout_ms;
	return 0;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	(void)attr;
	id->qp = &mock.qp.qp_base;
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	id->qp = NULL;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	return &mock.events;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	(void)channel;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	(void)id, (void)channel;
	return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	(void)id, (void)param;
	return 0;
}

#pragma GCC visibility pop
