// SPDX-License-Identifier: BSD-3-Clause
/*
 * Requests and responses become FPDUs.  Messages are never interleaved; where both wait, requests
 * and responses take turns.
 */
#include <endian.h>
#include <string.h>

#include "softrnic.h"

unsigned int srn_sge_part(const struct ibv_sge *sge, uint32_t num_sge, uint32_t offset,
			  uint32_t len, struct ibv_sge *part)
{
	unsigned int n = 0;
	uint32_t i;

	for (i = 0; i < num_sge && len; i++) {
		uint32_t take = sge[i].length;

		if (offset >= take) {
			offset -= take;
			continue;
		}
		take -= offset;
		if (take > len)
			take = len;
		part[n].addr = sge[i].addr + offset;
		part[n].length = take;
		part[n++].lkey = sge[i].lkey;
		offset = 0;
		len -= take;
	}
	return n;
}

/* The payload of a frame as pieces of local memory; -1 if it may not be read. */
int srn_frame_payload(struct srn_qp *qp, const struct srn_frame *frame, struct iovec *iov)
{
	struct ibv_pd *pd = qp->v.ex.qp_base.pd;
	struct ibv_sge part[SRN_MAX_SGE];
	struct srn_response *response;
	struct srn_wqe *wqe;
	unsigned int i, n;
	uint8_t why;

	if (!frame->length)
		return 0;
	iov[0].iov_len = frame->length;
	if (frame->copy) {
		iov[0].iov_base = frame->copy;
		return 1;
	}
	if (frame->kind == SRN_FRAME_RESPONSE) {
		response = &qp->responses[frame->index % SRN_MAX_RD_ATOM];
		iov[0].iov_base = srn_mr_at(pd, response->read.source_stag,
					    response->read.source_to + frame->offset, frame->length,
					    IBV_ACCESS_REMOTE_READ, &why);
		return iov[0].iov_base ? 1 : -1;
	}
	wqe = srn_wqe(qp, frame->index);
	if (wqe->inline_data) {
		iov[0].iov_base = wqe->inline_data + frame->offset;
		return 1;
	}
	n = srn_sge_part(wqe->sge, wqe->num_sge, frame->offset, frame->length, part);
	for (i = 0; i < n; i++) {
		iov[i].iov_len = part[i].length;
		iov[i].iov_base =
			srn_mr_at(pd, part[i].lkey, part[i].addr, part[i].length, 0, &why);
		if (!iov[i].iov_base)
			return -1;
	}
	return (int)n;
}

/*
 * Completes a frame whose headers (head_len bytes, behind the length field's place) are in place.
 * With CRCs the payload is copied: the sum must be over the very bytes that are sent, and memory
 * that peers may read changes at any time.
 */
int srn_frame_seal(struct srn_qp *qp, struct srn_frame *frame)
{
	unsigned int ulpdu = frame->head_len - FPDU_LEN_SIZE + frame->length;
	unsigned int pad = fpdu_pad(ulpdu);
	struct iovec iov[SRN_MAX_SGE];
	uint32_t crc;
	int i, n;

	put16(frame->head, (uint16_t)ulpdu);
	frame->tail_len = (uint8_t)(pad + FPDU_CRC_SIZE);
	memset(frame->tail, 0, sizeof(frame->tail));
	frame->copy = NULL;
	n = srn_frame_payload(qp, frame, iov);
	if (n < 0 || !qp->crc)
		return n < 0 ? -1 : 0;
	crc = crc32c_add(crc32c_begin(), frame->head, frame->head_len);
	if (n) {
		uint8_t *copy = qp->tx.copies + (size_t)(frame - qp->tx.frames) * SRN_FRAME_PAYLOAD;

		frame->copy = copy;
		for (i = 0; i < n; i++) {
			memcpy(copy, iov[i].iov_base, iov[i].iov_len);
			copy += iov[i].iov_len;
		}
		crc = crc32c_add(crc, frame->copy, frame->length);
	}
	crc = crc32c_add(crc, frame->tail, pad);
	crc32c_end(crc, frame->tail + pad);
	return 0;
}

struct srn_frame *srn_frame_new(struct srn_qp *qp, enum srn_frame_kind kind, uint32_t index)
{
	struct srn_frame *frame = &qp->tx.frames[(qp->tx.head + qp->tx.count) % SRN_FRAMES];

	frame->kind = kind;
	frame->index = index;
	frame->offset = frame->length = 0;
	frame->ends = true;
	return frame;
}

static void frame_header(struct srn_frame *frame, const struct ddp_header *header)
{
	frame->head_len =
		(uint8_t)(FPDU_LEN_SIZE + ddp_encode(frame->head + FPDU_LEN_SIZE, header));
}

uint8_t *srn_frame_control(struct srn_qp *qp, struct srn_frame *frame, uint8_t opcode,
			   uint32_t queue, unsigned int len)
{
	struct ddp_header header = {
		.last = true,
		.opcode = opcode,
		.queue = queue,
		.msn = ++qp->tx.msn[queue],
	};
	uint8_t *payload;

	frame_header(frame, &header);
	payload = frame->head + frame->head_len;
	frame->head_len = (uint8_t)(frame->head_len + len);
	return payload;
}

/* The next piece of an RDMA write or a read response: tagged. */
static void frame_tagged(struct srn_frame *frame, uint8_t opcode, uint32_t stag, uint64_t to,
			 uint32_t framed, uint32_t length, bool ends)
{
	struct ddp_header header = {
		.tagged = true,
		.opcode = opcode,
		.stag = stag,
		.to = to + framed,
	};

	frame->offset = framed;
	frame->length = length - framed < SRN_FRAME_PAYLOAD ? length - framed : SRN_FRAME_PAYLOAD;
	header.last = framed + frame->length == length;
	frame->ends = ends && header.last;
	frame_header(frame, &header);
}

static void frame_send(struct srn_qp *qp, struct srn_frame *frame, struct srn_wqe *wqe)
{
	bool se = wqe->flags & IBV_SEND_SOLICITED;
	struct ddp_header header = {
		.queue = DDP_QUEUE_SEND,
		.mo = wqe->framed,
		.opcode = se ? RDMAP_SEND_SE : RDMAP_SEND,
	};

	if (wqe->opcode == IBV_WR_SEND_WITH_INV) {
		header.opcode = se ? RDMAP_SEND_SE_INV : RDMAP_SEND_INV;
		header.stag = wqe->imm;
	} else if (wqe->opcode == IBV_WR_SEND_WITH_IMM) {
		header.opcode = se ? RDMAP_SEND_IMM_SE : RDMAP_SEND_IMM;
		header.stag = be32toh(wqe->imm);
	}
	frame->offset = wqe->framed;
	frame->length = wqe->length - wqe->framed < SRN_FRAME_PAYLOAD ? wqe->length - wqe->framed
								      : SRN_FRAME_PAYLOAD;
	header.last = frame->ends = wqe->framed + frame->length == wqe->length;
	header.msn = qp->tx.msn[DDP_QUEUE_SEND] + 1;
	if (header.last)
		qp->tx.msn[DDP_QUEUE_SEND]++;
	frame_header(frame, &header);
}

static void frame_read_request(struct srn_qp *qp, struct srn_frame *frame, struct srn_wqe *wqe)
{
	struct rdmap_read_request request = {
		.sink_stag = wqe->num_sge ? wqe->sge[0].lkey : 0,
		.sink_to = wqe->num_sge ? wqe->sge[0].addr : 0,
		.size = wqe->length,
		.source_stag = wqe->rkey,
		.source_to = wqe->remote_addr,
	};

	rdmap_encode_read_request(srn_frame_control(qp, frame, RDMAP_READ_REQUEST, DDP_QUEUE_READ,
						    RDMAP_READ_REQUEST_LEN),
				  &request);
}

static void frame_atomic_request(struct srn_qp *qp, struct srn_frame *frame, struct srn_wqe *wqe)
{
	struct rdmap_atomic_request request = {
		.stag = wqe->rkey,
		.to = wqe->remote_addr,
		.id = qp->tx.msn[DDP_QUEUE_READ] + 1,
	};

	switch (wqe->opcode) {
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		request.opcode = RDMAP_FETCH_ADD;
		request.data = wqe->compare_add;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		request.opcode = RDMAP_CMP_SWAP;
		request.data = wqe->swap;
		request.compare = wqe->compare_add;
		request.mask = request.compare_mask = UINT64_MAX;
		break;
	default:
		/* Stored as the bytes are, whatever the two hosts' byte orders. */
		request.opcode = RDMAP_ATOMIC_WRITE;
		request.data = be64toh(wqe->swap);
		break;
	}
	rdmap_encode_atomic_request(srn_frame_control(qp, frame, RDMAP_ATOMIC_REQUEST,
						      DDP_QUEUE_READ, RDMAP_ATOMIC_REQUEST_LEN),
				    &request);
}

static void frame_flush_request(struct srn_qp *qp, struct srn_frame *frame, struct srn_wqe *wqe)
{
	struct rdmap_flush_request request = {
		.id = qp->tx.msn[DDP_QUEUE_READ] + 1,
		.stag = wqe->rkey,
		.to = wqe->remote_addr,
		.size = wqe->compare_add,
		.type = wqe->flush_type,
		.level = wqe->flush_level,
	};

	rdmap_encode_flush_request(srn_frame_control(qp, frame, RDMAP_FLUSH_REQUEST, DDP_QUEUE_READ,
						     RDMAP_FLUSH_REQUEST_LEN),
				   &request);
}

/* What a request does to local memory is checked before it goes out. */
static bool sink_ok(struct srn_qp *qp, const struct srn_wqe *wqe)
{
	unsigned int access = wqe->opcode == IBV_WR_ATOMIC_WRITE ? 0 : IBV_ACCESS_LOCAL_WRITE;
	uint32_t i;
	uint8_t why;

	for (i = 0; i < wqe->num_sge; i++)
		if (wqe->sge[i].length &&
		    !srn_mr_at(qp->v.ex.qp_base.pd, wqe->sge[i].lkey, wqe->sge[i].addr,
			       wqe->sge[i].length, access, &why))
			return false;
	return true;
}

/* The data of an atomic write posted with ibv_post_send(3). */
static void gather_atomic(struct srn_qp *qp, struct srn_wqe *wqe)
{
	uint8_t *to = (uint8_t *)&wqe->swap;
	uint32_t i;
	uint8_t why;

	if (wqe->inline_data)
		memcpy(to, wqe->inline_data, sizeof(wqe->swap));
	for (i = 0; i < wqe->num_sge && !wqe->inline_data; i++) {
		memcpy(to,
		       srn_mr_at(qp->v.ex.qp_base.pd, wqe->sge[i].lkey, wqe->sge[i].addr,
				 wqe->sge[i].length, 0, &why),
		       wqe->sge[i].length);
		to += wqe->sge[i].length;
	}
}

static void waiting_push(struct srn_qp *qp, uint32_t index)
{
	qp->waiting[(qp->waiting_head + qp->waiting_count++) % SRN_MAX_RD_ATOM] = index;
}

/* One frame of the oldest request not yet framed. 1 = built, 0 = none, -1 = local protection. */
static int frame_request(struct srn_qp *qp)
{
	struct srn_wqe *wqe;
	struct srn_frame *frame;

	if (qp->sq_tx == qp->sq_tail)
		return 0;
	wqe = srn_wqe(qp, qp->sq_tx);
	if (qp->tx.message == SRN_TX_BETWEEN && (wqe->flags & IBV_SEND_FENCE) && qp->waiting_count)
		return 0;
	frame = srn_frame_new(qp, SRN_FRAME_WQE, qp->sq_tx);
	switch (wqe->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		if (wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM && wqe->framed == wqe->length &&
		    qp->tx.message == SRN_TX_REQUEST) {
			uint8_t opcode = wqe->flags & IBV_SEND_SOLICITED ? RDMAP_IMMEDIATE_SE
									 : RDMAP_IMMEDIATE;

			memset(srn_frame_control(qp, frame, opcode, DDP_QUEUE_SEND,
						 RDMAP_IMMEDIATE_LEN),
			       0, RDMAP_IMMEDIATE_LEN);
			memcpy(frame->head + frame->head_len - RDMAP_IMMEDIATE_LEN, &wqe->imm,
			       sizeof(wqe->imm));
			break;
		}
		frame_tagged(frame, RDMAP_WRITE, wqe->rkey, wqe->remote_addr, wqe->framed,
			     wqe->length, wqe->opcode == IBV_WR_RDMA_WRITE);
		break;
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_WRITE:
	case SRN_WR_FLUSH:
		if (qp->waiting_count >= qp->ord)
			return 0;
		if (!sink_ok(qp, wqe))
			return -1;
		if (wqe->opcode == IBV_WR_ATOMIC_WRITE)
			gather_atomic(qp, wqe);
		if (wqe->opcode == IBV_WR_RDMA_READ)
			frame_read_request(qp, frame, wqe);
		else if (wqe->opcode == SRN_WR_FLUSH)
			frame_flush_request(qp, frame, wqe);
		else
			frame_atomic_request(qp, frame, wqe);
		frame->kind = SRN_FRAME_CONTROL;
		wqe->msn = qp->tx.msn[DDP_QUEUE_READ];
		waiting_push(qp, qp->sq_tx);
		break;
	default:
		frame_send(qp, frame, wqe);
		break;
	}
	if (srn_frame_seal(qp, frame))
		return -1;
	wqe->framed += frame->length;
	qp->tx.message = SRN_TX_BETWEEN;
	if (frame->ends)
		qp->sq_tx++;
	else
		qp->tx.message = SRN_TX_REQUEST;
	qp->tx.count++;
	return 1;
}

static int frame_response(struct srn_qp *qp)
{
	struct srn_response *response;
	struct srn_frame *frame;

	if (qp->response_tx == qp->response_head + qp->response_count)
		return 0;
	response = &qp->responses[qp->response_tx % SRN_MAX_RD_ATOM];
	frame = srn_frame_new(qp, SRN_FRAME_RESPONSE, qp->response_tx);
	switch (response->kind) {
	case SRN_RESPONSE_READ:
		frame_tagged(frame, RDMAP_READ_RESPONSE, response->read.sink_stag,
			     response->read.sink_to, response->framed, response->read.size, true);
		break;
	case SRN_RESPONSE_ATOMIC:
		rdmap_encode_atomic_response(srn_frame_control(qp, frame, RDMAP_ATOMIC_RESPONSE,
							       DDP_QUEUE_RESPONSE,
							       RDMAP_ATOMIC_RESPONSE_LEN),
					     response->id, response->original);
		break;
	case SRN_RESPONSE_FLUSH:
		put32(srn_frame_control(qp, frame, RDMAP_FLUSH_RESPONSE, DDP_QUEUE_RESPONSE,
					RDMAP_FLUSH_RESPONSE_LEN),
		      response->id);
		break;
	}
	if (srn_frame_seal(qp, frame))
		return -1;
	response->framed += frame->length;
	qp->tx.message = SRN_TX_BETWEEN;
	if (frame->ends)
		qp->response_tx++;
	else
		qp->tx.message = SRN_TX_RESPONSE;
	qp->tx.count++;
	return 1;
}

/* RFC 6581: the initiator's first frame, an RDMA write of nothing. */
static void frame_rtr(struct srn_qp *qp)
{
	struct srn_frame *frame = srn_frame_new(qp, SRN_FRAME_CONTROL, 0);

	frame_tagged(frame, RDMAP_WRITE, 0, 0, 0, 0, true);
	srn_frame_seal(qp, frame);
	qp->tx.count++;
	qp->send_rtr = false;
}

enum srn_build srn_frames_build(struct srn_qp *qp)
{
	int requests = 1, responses = 1;

	if (qp->send_rtr)
		frame_rtr(qp);
	while (qp->tx.count < SRN_FRAMES && (requests > 0 || responses > 0)) {
		bool request = qp->tx.message == SRN_TX_REQUEST ||
			       (qp->tx.message == SRN_TX_BETWEEN && qp->tx.request_turn);

		if (request) {
			requests = frame_request(qp);
			if (requests < 0)
				return SRN_BUILD_BAD_REQUEST;
		} else {
			responses = frame_response(qp);
			if (responses < 0)
				return SRN_BUILD_BAD_RESPONSE;
		}
		if (qp->tx.message != SRN_TX_BETWEEN)
			continue;
		qp->tx.request_turn = !request;
	}
	return SRN_BUILD_OK;
}
