// SPDX-License-Identifier: BSD-3-Clause
/* The receive path under arbitrary input; no network, the responses go into a socket pair. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softrnic.h"
#include "softrnic_rx.h"

#define REGION     4096
#define IOVA       0x10000
#define STAG_KEY   0x55
#define STREAM_MAX (1 << 20)
#define ALL_ACCESS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | SRN_ACCESS_FLUSH_GLOBAL | SRN_ACCESS_FLUSH_PERSISTENT)

/* One frame of a structured input. */
struct record {
	uint8_t opcode;
	uint8_t control; /* bit 0 last, bit 1 flips tagged, bit 2 any queue, bits 3-5 MSN and MO off
			  */
	uint8_t stag;    /* 0 the region's, 1 zero, else something */
	uint8_t offset;
	uint8_t length;
	uint8_t extra;
};

struct rig {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;
};

static void must(int ok)
{
	if (!ok)
		abort();
}

static void rig_open(struct rig *rig)
{
	struct ibv_context *context = srn_cm_context();

	rig->pd = ibv_alloc_pd(context);
	rig->cq = ibv_create_cq(context, 1024, NULL, NULL, 0);
	rig->memory = calloc(1, REGION);
	rig->mr = ibv_reg_mr_iova2(rig->pd, rig->memory, REGION, IOVA, ALL_ACCESS);
	must(rig->pd && rig->cq && rig->memory && rig->mr);
	/* a key the input can know */
	rig->mr->rkey = rig->mr->lkey = (rig->mr->handle << 8) | STAG_KEY;
}

static struct srn_qp *qp_open(struct rig *rig, uint8_t mode, int *far)
{
	struct ibv_qp_init_attr attr = {.send_cq = rig->cq,
					.recv_cq = rig->cq,
					.cap = {16, 16, 2, 2, 0},
					.qp_type = IBV_QPT_RC};
	struct srn_stream_setup setup = {.crc = mode & 1,
					 .extended = mode & 2,
					 .initiator = true,
					 .ord = 8,
					 .ird = 4,
					 .rnr_timeout = 0};
	struct srn_qp *qp;
	int fds[2];

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	qp = srn_qp(ibv_create_qp(rig->pd, &attr));
	must(qp != NULL);
	setup.fd = fds[0];
	*far = fds[1];
	qp->src.registered = true; /* the engine is left out of it */
	qp->v.ex.qp_base.state = IBV_QPS_INIT;
	must(srn_stream_open(qp, &setup, NULL) == 0);
	return qp;
}

/* Something for responses and SENDs to find. */
static void post_work(struct rig *rig, struct srn_qp *qp)
{
	struct ibv_sge sge[2] = {{IOVA + 100, 300, rig->mr->lkey},
				 {IOVA + 2000, 700, rig->mr->lkey}};
	struct ibv_recv_wr recv = {.sg_list = sge, .num_sge = 2}, *bad_recv;
	struct ibv_send_wr wr = {.sg_list = sge,
				 .num_sge = 2,
				 .opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	int i;

	for (i = 0; i < 4; i++)
		ibv_post_recv(&qp->v.ex.qp_base, &recv, &bad_recv);
	ibv_post_send(&qp->v.ex.qp_base, &wr, &bad);
	sge[0].length = 8;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	ibv_post_send(&qp->v.ex.qp_base, &wr, &bad);
	wr.opcode = IBV_WR_RDMA_READ;
	ibv_post_send(&qp->v.ex.qp_base, &wr, &bad);
}

static uint32_t stag_of(const struct rig *rig, uint8_t pick)
{
	return pick == 0 ? rig->mr->rkey : pick == 1 ? 0 : rig->mr->rkey + pick;
}

static uint64_t place_of(uint8_t pick)
{
	static const uint64_t edges[] = {IOVA,     IOVA + REGION, IOVA + REGION - 1,
					 IOVA - 1, UINT64_MAX,    0,
					 IOVA + 8, IOVA + 100};

	return pick < 8 ? edges[pick] : IOVA + pick * 16u;
}

static uint32_t build_payload(const struct rig *rig, const struct record *r, uint8_t *to)
{
	uint32_t any = r->length < 8 ? r->length : r->length * 13u;

	memset(to, r->extra, any);
	switch (r->opcode & 15) {
	case RDMAP_READ_REQUEST: {
		struct rdmap_read_request request = {1, 2, any, stag_of(rig, r->stag),
						     place_of(r->offset)};

		rdmap_encode_read_request(to, &request);
		return r->extra & 1 ? any : RDMAP_READ_REQUEST_LEN;
	}
	case RDMAP_ATOMIC_REQUEST: {
		struct rdmap_atomic_request request = {.opcode = r->length & 15,
						       .id = r->extra,
						       .stag = stag_of(rig, r->stag),
						       .to = place_of(r->offset),
						       .mask = (uint64_t)r->extra << 7};

		rdmap_encode_atomic_request(to, &request);
		return r->extra & 1 ? any : RDMAP_ATOMIC_REQUEST_LEN;
	}
	case RDMAP_FLUSH_REQUEST: {
		struct rdmap_flush_request request = {
			r->extra, stag_of(rig, r->stag), place_of(r->offset),
			any,      r->length & 3,         r->extra >> 1 & 1};

		rdmap_encode_flush_request(to, &request);
		return r->extra & 1 ? any : RDMAP_FLUSH_REQUEST_LEN;
	}
	case RDMAP_ATOMIC_RESPONSE:
		rdmap_encode_atomic_response(to, r->length, r->extra);
		return RDMAP_ATOMIC_RESPONSE_LEN;
	default:
		return any;
	}
}

static uint32_t queue_for(uint8_t opcode)
{
	switch (opcode) {
	case RDMAP_READ_REQUEST:
	case RDMAP_ATOMIC_REQUEST:
	case RDMAP_FLUSH_REQUEST:
		return DDP_QUEUE_READ;
	case RDMAP_TERMINATE:
		return DDP_QUEUE_TERMINATE;
	case RDMAP_ATOMIC_RESPONSE:
	case RDMAP_FLUSH_RESPONSE:
		return DDP_QUEUE_RESPONSE;
	default:
		return DDP_QUEUE_SEND;
	}
}

/* Builds the frames the records describe, with good lengths, numbers and CRCs unless told not to.
 */
static size_t build_stream(const struct rig *rig, const uint8_t *data, size_t size, uint8_t *to)
{
	uint32_t msn[DDP_QUEUES] = {1, 1, 1, 1}, mo = 0;
	uint8_t *start = to;
	struct record r;

	for (; size >= sizeof(r); data += sizeof(r), size -= sizeof(r)) {
		struct ddp_header h = {.last = true};
		uint8_t *frame = to;
		uint32_t len, n;

		if (to - start > STREAM_MAX - 8192)
			break;
		memcpy(&r, data, sizeof(r));
		h.opcode = r.opcode & 15;
		h.tagged = (h.opcode == RDMAP_WRITE || h.opcode == RDMAP_READ_RESPONSE) !=
			   !!(r.control & 2);
		h.last = r.control & 1;
		h.stag = stag_of(rig, r.stag);
		h.to = place_of(r.offset);
		h.queue = r.control & 4 ? r.extra : queue_for(h.opcode);
		h.msn = msn[h.queue & 3] + (r.control >> 3 & 1);
		h.mo = (h.queue == 0 ? mo : 0) + (r.control >> 4 & 1);
		n = ddp_encode(frame + 2, &h);
		len = n + build_payload(rig, &r, frame + 2 + n);
		if (h.queue == 0 && !h.tagged) {
			mo = h.last ? 0 : mo + len - n;
			msn[0] += h.last;
		} else if (!h.tagged) {
			msn[h.queue & 3]++;
		}
		put16(frame, (uint16_t)(len + (r.control >> 5 & 1)));
		to += 2 + len;
		memset(to, 0, fpdu_pad(len));
		to += fpdu_pad(len);
		crc32c_end(crc32c_add(crc32c_begin(), frame, (size_t)(to - frame)), to);
		to += 4;
	}
	return (size_t)(to - start);
}

static void feed(struct srn_qp *qp, const uint8_t *data, size_t size)
{
	struct iovec iov[SRN_MAX_SGE + 2];
	unsigned int count, i;
	size_t room, piece, step = 1;

	while (size && qp->fd >= 0 && !qp->rx.stalled) {
		srn_mr_lock();
		if (srn_rx_space(qp, iov, &count, &room)) {
			srn_mr_unlock();
			return;
		}
		must(room > 0);
		piece = step < size ? step : size;
		piece = piece < room ? piece : room;
		step = step * 3 % 4099 + 1;
		room = piece;
		for (i = 0; room; i++) {
			size_t take = iov[i].iov_len < room ? iov[i].iov_len : room;

			must(i < count);
			memcpy(iov[i].iov_base, data, take);
			data += take;
			size -= take;
			room -= take;
		}
		srn_mr_unlock();
		srn_rx_input(qp, piece);
		srn_tx_run(qp);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct srn_qp *qp;
	struct rig rig;
	struct ibv_wc wc;
	uint8_t *stream;
	int far;

	if (!size)
		return 0;
	rig_open(&rig);
	qp = qp_open(&rig, data[0], &far);
	post_work(&rig, qp);
	pthread_mutex_lock(&qp->lock);
	if (data[0] & 4) {
		stream = malloc(STREAM_MAX);
		must(stream != NULL);
		feed(qp, stream, build_stream(&rig, data + 1, size - 1, stream));
		free(stream);
	} else {
		feed(qp, data + 1, size - 1);
	}
	pthread_mutex_unlock(&qp->lock);
	ibv_destroy_qp(&qp->v.ex.qp_base);
	close(far);
	while (srn_cq_pop(srn_cq(rig.cq), 1, &wc) > 0)
		;
	must(ibv_dereg_mr(rig.mr) == 0);
	must(ibv_destroy_cq(rig.cq) == 0);
	must(ibv_dealloc_pd(rig.pd) == 0);
	free(rig.memory);
	return 0;
}
