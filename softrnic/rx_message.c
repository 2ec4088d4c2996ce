// SPDX-License-Identifier: BSD-3-Clause
/*
 * What the messages of a peer do.  Everything here came from the wire: it is checked against what
 * this side registered, posted and asked for, and refused as RFC 5040 (section 7), RFC 5041
 * (section 7) and RFC 7306 (section 8) say.
 */
#include <endian.h>

#include "softrnic.h"

#define PROTECTION TERM_RDMAP, TERM_RDMAP_PROTECTION

void srn_rx_refuse(struct srn_qp *qp, uint8_t layer, uint8_t etype, uint8_t code)
{
	struct srn_rx *rx = &qp->rx;
	bool access = (layer == TERM_RDMAP && etype == TERM_RDMAP_PROTECTION) ||
		      (layer == TERM_DDP && etype == TERM_DDP_TAGGED);
	struct rdmap_term term = {
		.layer = layer,
		.etype = etype,
		.code = code,
		.header = rx->raw,
		.header_len = rx->raw_len,
		.segment_len = rx->ulpdu_len,
	};

	if (layer == TERM_LLP)
		term.header = NULL;
	qp->may_send = true; /* the peer has sent something, if no good frame */
	srn_async_event(qp->v.ex.qp_base.context,
			access ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR, qp);
	srn_qp_fail(qp, &term, SRN_NO_WQE, IBV_WC_SUCCESS);
}

/* RDMAP's protection codes as DDP has them for tagged buffers. */
static void refuse_tagged(struct srn_qp *qp, uint8_t why)
{
	switch (why) {
	case TERM_INVALID_STAG:
		srn_rx_refuse(qp, TERM_DDP, TERM_DDP_TAGGED, TERM_TAGGED_STAG);
		break;
	case TERM_BOUNDS:
		srn_rx_refuse(qp, TERM_DDP, TERM_DDP_TAGGED, TERM_TAGGED_BOUNDS);
		break;
	case TERM_STREAM:
		srn_rx_refuse(qp, TERM_DDP, TERM_DDP_TAGGED, TERM_TAGGED_STREAM);
		break;
	case TERM_TO_WRAP:
		srn_rx_refuse(qp, TERM_DDP, TERM_DDP_TAGGED, TERM_TAGGED_WRAP);
		break;
	default:
		srn_rx_refuse(qp, PROTECTION, why);
		break;
	}
}

bool srn_rx_whole(uint8_t opcode)
{
	switch (opcode) {
	case RDMAP_WRITE:
	case RDMAP_READ_RESPONSE:
	case RDMAP_SEND:
	case RDMAP_SEND_INV:
	case RDMAP_SEND_SE:
	case RDMAP_SEND_SE_INV:
	case RDMAP_SEND_IMM:
	case RDMAP_SEND_IMM_SE:
		return false;
	default:
		return true;
	}
}

static bool is_tagged(uint8_t opcode)
{
	return opcode == RDMAP_WRITE || opcode == RDMAP_READ_RESPONSE;
}

static uint32_t queue_of(uint8_t opcode)
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

/* What the control bytes, queue, MSN and offset must be. */
static bool check_header(struct srn_qp *qp)
{
	struct srn_rx *rx = &qp->rx;
	const struct ddp_header *h = &rx->header;
	bool starts;

	if ((h->ddp_control & DDP_VERSION_MASK) != DDP_VERSION) {
		if (h->tagged)
			srn_rx_refuse(qp, TERM_DDP, TERM_DDP_TAGGED, TERM_TAGGED_VERSION);
		else
			srn_rx_refuse(qp, TERM_DDP, TERM_DDP_UNTAGGED, TERM_UNTAGGED_VERSION);
		return false;
	}
	if ((h->rdmap_control & RDMAP_VERSION_MASK) != RDMAP_VERSION) {
		srn_rx_refuse(qp, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_RDMAP_BAD_VERSION);
		return false;
	}
	if ((h->opcode >= RDMAP_FLUSH_REQUEST && !qp->extended) ||
	    h->tagged != is_tagged(h->opcode)) {
		srn_rx_refuse(qp, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_BAD_OPCODE);
		return false;
	}
	if (h->tagged)
		return true;
	if (h->queue >= DDP_QUEUES) {
		srn_rx_refuse(qp, TERM_DDP, TERM_DDP_UNTAGGED, TERM_UNTAGGED_QUEUE);
		return false;
	}
	if (h->queue != queue_of(h->opcode)) {
		srn_rx_refuse(qp, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_BAD_OPCODE);
		return false;
	}
	if (h->msn != rx->msn[h->queue]) {
		srn_rx_refuse(qp, TERM_DDP, TERM_DDP_UNTAGGED, TERM_UNTAGGED_MSN);
		return false;
	}
	starts = h->queue != DDP_QUEUE_SEND || !rx->receiving;
	if (h->mo != (starts ? 0 : rx->received) || (srn_rx_whole(h->opcode) && !h->last) ||
	    (!starts && srn_rx_whole(h->opcode))) {
		srn_rx_refuse(qp, TERM_DDP, TERM_DDP_UNTAGGED, TERM_UNTAGGED_MO);
		return false;
	}
	return true;
}

static void recv_complete(struct srn_qp *qp, enum ibv_wc_status status, enum ibv_wc_opcode opcode,
			  uint32_t byte_len, bool with_imm, __be32 imm, bool solicited)
{
	struct ibv_wc wc = {
		.wr_id = qp->rx.recv.wr_id,
		.status = status,
		.opcode = opcode,
		.byte_len = byte_len,
		.qp_num = qp->v.ex.qp_base.qp_num,
		.wc_flags = with_imm ? IBV_WC_WITH_IMM : 0,
		.imm_data = imm,
	};

	qp->rx.receiving = false;
	srn_cq_push(qp->v.ex.qp_base.recv_cq, &wc, solicited);
}

static void stall(struct srn_qp *qp)
{
	struct srn_srq *srq = (struct srn_srq *)qp->v.ex.qp_base.srq;

	qp->rx.stalled = true;
	if (srq && !qp->on_stalled) {
		pthread_mutex_lock(&srq->lock);
		TAILQ_INSERT_TAIL(&srq->stalled, qp, stalled_link);
		qp->on_stalled = true;
		/* One may have been posted since this one looked; its poster saw nobody waiting. */
		if (srq->rq.count)
			srn_src_kick(&qp->src);
		pthread_mutex_unlock(&srq->lock);
	}
	if (qp->rnr_timeout != UINT64_MAX)
		srn_src_deadline(&qp->src, srn_now_ns() + qp->rnr_timeout);
}

void srn_unstall(struct srn_qp *qp)
{
	struct srn_srq *srq = (struct srn_srq *)qp->v.ex.qp_base.srq;

	if (!qp->rx.stalled)
		return;
	/* If it has to wait again, the peer's end is news once more, and its grace begins anew. */
	qp->rx.stalled = qp->rx.hangup = false;
	srn_src_deadline(&qp->src, 0);
	if (!qp->on_stalled)
		return;
	pthread_mutex_lock(&srq->lock);
	TAILQ_REMOVE(&srq->stalled, qp, stalled_link);
	qp->on_stalled = false;
	pthread_mutex_unlock(&srq->lock);
}

/*
 * Takes a receive for a message that starts.  If there is none, TCP's flow control stands in for
 * the RNR NAK: the stream waits as long as the connection's rnr_retry_count allows.
 */
static bool take_recv(struct srn_qp *qp)
{
	struct srn_srq *srq = (struct srn_srq *)qp->v.ex.qp_base.srq;
	struct srn_rx *rx = &qp->rx;
	bool taken = srq ? srn_srq_take(srq, &rx->recv, rx->recv_sge)
			 : srn_rq_take(&qp->rq, &rx->recv, rx->recv_sge);

	if (taken) {
		rx->receiving = true;
		rx->received = 0;
		return true;
	}
	if (qp->rnr_timeout)
		stall(qp);
	else
		srn_rx_refuse(qp, TERM_DDP, TERM_DDP_UNTAGGED, TERM_UNTAGGED_NO_BUFFER);
	return false;
}

static bool begin_send(struct srn_qp *qp)
{
	struct srn_rx *rx = &qp->rx;
	uint64_t capacity = 0;
	uint32_t i;

	if (rx->header.opcode == RDMAP_SEND_INV || rx->header.opcode == RDMAP_SEND_SE_INV) {
		/* Only memory windows may be invalidated, and there are none. */
		srn_rx_refuse(qp, PROTECTION, TERM_NOT_INVALIDATED);
		return false;
	}
	if (!rx->receiving && !take_recv(qp))
		return false;
	for (i = 0; i < rx->recv.num_sge; i++)
		capacity += rx->recv_sge[i].length;
	/* What was received is counted in 32 bits, as DDP's message offsets are. */
	if (capacity > UINT32_MAX)
		capacity = UINT32_MAX;
	if ((uint64_t)rx->received + rx->payload_len > capacity) {
		recv_complete(qp, IBV_WC_LOC_LEN_ERR, IBV_WC_RECV, 0, false, 0, false);
		srn_rx_refuse(qp, TERM_DDP, TERM_DDP_UNTAGGED, TERM_UNTAGGED_TOO_LONG);
		return false;
	}
	return true;
}

struct srn_wqe *srn_oldest_waiting(struct srn_qp *qp)
{
	return qp->waiting_count ? srn_wqe(qp, qp->waiting[qp->waiting_head]) : NULL;
}

/* The oldest request that waits has its response. */
void srn_request_answered(struct srn_qp *qp)
{
	srn_oldest_waiting(qp)->done = true;
	qp->waiting_head = (qp->waiting_head + 1) % SRN_MAX_RD_ATOM;
	qp->waiting_count--;
	srn_sq_complete(qp);
}

static bool begin_read_response(struct srn_qp *qp)
{
	const struct ddp_header *h = &qp->rx.header;
	struct srn_wqe *wqe = srn_oldest_waiting(qp);
	uint64_t sink;

	if (!wqe || wqe->opcode != IBV_WR_RDMA_READ) {
		srn_rx_refuse(qp, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_BAD_OPCODE);
		return false;
	}
	if (h->stag != (wqe->num_sge ? wqe->sge[0].lkey : 0)) {
		srn_rx_refuse(qp, TERM_DDP, TERM_DDP_TAGGED, TERM_TAGGED_STAG);
		return false;
	}
	sink = wqe->num_sge ? wqe->sge[0].addr : 0;
	if (h->to != sink + wqe->placed || qp->rx.payload_len > wqe->length - wqe->placed ||
	    h->last != (qp->rx.payload_len == wqe->length - wqe->placed)) {
		srn_rx_refuse(qp, TERM_DDP, TERM_DDP_TAGGED, TERM_TAGGED_BOUNDS);
		return false;
	}
	return true;
}

static bool begin_write(struct srn_qp *qp)
{
	struct srn_rx *rx = &qp->rx;
	uint8_t why;
	void *at;

	if (!rx->write_open)
		rx->written = 0;
	rx->write_open = !rx->header.last;
	if (!rx->payload_len)
		return true;
	srn_mr_lock();
	at = srn_mr_at(qp->v.ex.qp_base.pd, rx->header.stag, rx->header.to, rx->payload_len,
		       IBV_ACCESS_REMOTE_WRITE, &why);
	srn_mr_unlock();
	if (!at)
		refuse_tagged(qp, why);
	return at;
}

bool srn_rx_begin(struct srn_qp *qp)
{
	/* RFC 5044 section 7.1.2: the responder may send once it has received. */
	qp->may_send = true;
	if (!check_header(qp))
		return false;
	switch (qp->rx.header.opcode) {
	case RDMAP_WRITE:
		return begin_write(qp);
	case RDMAP_READ_RESPONSE:
		return begin_read_response(qp);
	case RDMAP_IMMEDIATE:
	case RDMAP_IMMEDIATE_SE:
		return take_recv(qp);
	default:
		return srn_rx_whole(qp->rx.header.opcode) || begin_send(qp);
	}
}

unsigned int srn_rx_target(struct srn_qp *qp, struct iovec *iov, unsigned int max)
{
	static const struct rdmap_term local = {TERM_RDMAP, TERM_RDMAP_LOCAL, 0, NULL, 0, 0};
	struct srn_rx *rx = &qp->rx;
	bool own = rx->header.opcode == RDMAP_READ_RESPONSE; /* of a request, not a receive */
	struct ibv_pd *pd = qp->v.ex.qp_base.pd;
	struct ibv_sge part[SRN_MAX_SGE];
	uint32_t left = rx->payload_len - rx->payload_done;
	struct srn_wqe *wqe;
	unsigned int i, n;
	uint8_t why = 0;

	if (rx->header.opcode == RDMAP_WRITE) {
		iov[0].iov_len = left;
		iov[0].iov_base = srn_mr_at(pd, rx->header.stag, rx->header.to + rx->payload_done,
					    left, IBV_ACCESS_REMOTE_WRITE, &why);
		if (!iov[0].iov_base)
			refuse_tagged(qp, why);
		return iov[0].iov_base ? 1 : 0;
	}
	if (own) {
		wqe = srn_oldest_waiting(qp);
		n = srn_sge_part(wqe->sge, wqe->num_sge, wqe->placed + rx->payload_done, left,
				 part);
	} else {
		n = srn_sge_part(rx->recv_sge, rx->recv.num_sge, rx->received + rx->payload_done,
				 left, part);
	}
	for (i = 0; i < n && i < max; i++) {
		iov[i].iov_len = part[i].length;
		iov[i].iov_base = srn_mr_at(pd, part[i].lkey, part[i].addr, part[i].length,
					    IBV_ACCESS_LOCAL_WRITE, &why);
		if (iov[i].iov_base)
			continue;
		/* This side's own fault: its request or receive names memory it may not write. */
		if (!own)
			recv_complete(qp, IBV_WC_LOC_PROT_ERR, IBV_WC_RECV, 0, false, 0, false);
		srn_qp_fail(qp, &local, own ? qp->waiting[qp->waiting_head] : SRN_NO_WQE,
			    own ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
		return 0;
	}
	return n;
}

bool srn_rx_finish(struct srn_qp *qp)
{
	struct srn_rx *rx = &qp->rx;
	const struct ddp_header *h = &rx->header;
	bool imm, se;

	if (!h->tagged && h->last)
		rx->msn[h->queue]++;
	switch (h->opcode) {
	case RDMAP_WRITE:
		rx->written += rx->payload_len;
		break;
	case RDMAP_READ_RESPONSE:
		srn_oldest_waiting(qp)->placed += rx->payload_len;
		if (h->last)
			srn_request_answered(qp);
		break;
	case RDMAP_SEND:
	case RDMAP_SEND_SE:
	case RDMAP_SEND_IMM:
	case RDMAP_SEND_IMM_SE:
		rx->received += rx->payload_len;
		if (!h->last)
			break;
		imm = h->opcode == RDMAP_SEND_IMM || h->opcode == RDMAP_SEND_IMM_SE;
		se = h->opcode == RDMAP_SEND_SE || h->opcode == RDMAP_SEND_IMM_SE;
		recv_complete(qp, IBV_WC_SUCCESS, IBV_WC_RECV, rx->received, imm, htobe32(h->stag),
			      se);
		break;
	default:
		break;
	}
	return qp->fd >= 0;
}

static bool immediate(struct srn_qp *qp, const uint8_t *payload)
{
	__be32 imm;

	memcpy(&imm, payload, sizeof(imm));
	recv_complete(qp, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM, qp->rx.written, true, imm,
		      qp->rx.header.opcode == RDMAP_IMMEDIATE_SE);
	return true;
}

static enum ibv_wc_status status_of(const struct rdmap_term *term)
{
	if (term->layer == TERM_RDMAP && term->etype == TERM_RDMAP_PROTECTION)
		return IBV_WC_REM_ACCESS_ERR;
	if (term->layer == TERM_DDP && term->etype == TERM_DDP_TAGGED)
		return IBV_WC_REM_ACCESS_ERR;
	if (term->layer == TERM_DDP && term->etype == TERM_DDP_UNTAGGED)
		return term->code == TERM_UNTAGGED_NO_BUFFER ? IBV_WC_RNR_RETRY_EXC_ERR
							     : IBV_WC_REM_INV_REQ_ERR;
	if (term->layer == TERM_RDMAP && term->etype == TERM_RDMAP_OPERATION)
		return IBV_WC_REM_INV_REQ_ERR;
	return IBV_WC_REM_OP_ERR;
}

/* Which request the peer complains of: the one whose read request it quotes, else the oldest. */
static uint32_t guilty(struct srn_qp *qp, const struct rdmap_term *term)
{
	struct ddp_header header;
	uint32_t i;

	if (!term->header || term->header_len < DDP_UNTAGGED_LEN || (term->header[0] & DDP_TAGGED))
		return qp->sq_head;
	ddp_decode(term->header, &header);
	if (header.queue != DDP_QUEUE_READ)
		return qp->sq_head;
	for (i = 0; i < qp->waiting_count; i++) {
		uint32_t index = qp->waiting[(qp->waiting_head + i) % SRN_MAX_RD_ATOM];

		if (srn_wqe(qp, index)->msn == header.msn)
			return index;
	}
	return qp->sq_head;
}

static void terminated(struct srn_qp *qp, const uint8_t *payload, uint32_t len)
{
	struct rdmap_term term;

	if (!rdmap_decode_terminate(payload, len, &term)) {
		srn_qp_fail(qp, NULL, SRN_NO_WQE, IBV_WC_SUCCESS);
		return;
	}
	srn_qp_fail(qp, NULL, guilty(qp, &term), status_of(&term));
}

static uint32_t length_of(uint8_t opcode)
{
	switch (opcode) {
	case RDMAP_READ_REQUEST:
		return RDMAP_READ_REQUEST_LEN;
	case RDMAP_ATOMIC_REQUEST:
		return RDMAP_ATOMIC_REQUEST_LEN;
	case RDMAP_ATOMIC_RESPONSE:
		return RDMAP_ATOMIC_RESPONSE_LEN;
	case RDMAP_FLUSH_REQUEST:
		return RDMAP_FLUSH_REQUEST_LEN;
	case RDMAP_FLUSH_RESPONSE:
		return RDMAP_FLUSH_RESPONSE_LEN;
	default:
		return RDMAP_IMMEDIATE_LEN;
	}
}

bool srn_rx_message(struct srn_qp *qp, const uint8_t *payload)
{
	uint8_t opcode = qp->rx.header.opcode;
	uint32_t len = qp->rx.payload_len;

	if (opcode == RDMAP_TERMINATE) {
		terminated(qp, payload, len);
		return false;
	}
	if (len != length_of(opcode)) {
		srn_rx_refuse(qp, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_UNSPECIFIED);
		return false;
	}
	switch (opcode) {
	case RDMAP_READ_REQUEST:
		return srn_rx_read_request(qp, payload);
	case RDMAP_ATOMIC_REQUEST:
		return srn_rx_atomic_request(qp, payload);
	case RDMAP_FLUSH_REQUEST:
		return srn_rx_flush_request(qp, payload);
	case RDMAP_ATOMIC_RESPONSE:
		return srn_rx_response(qp, payload, true);
	case RDMAP_FLUSH_RESPONSE:
		return srn_rx_response(qp, payload, false);
	default:
		return immediate(qp, payload);
	}
}
