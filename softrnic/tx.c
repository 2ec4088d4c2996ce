// SPDX-License-Identifier: BSD-3-Clause
/* FPDUs go out, several to a system call, the payload straight from registered memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "softrnic.h"

#define IOVS 128

static void complete(struct srn_qp *qp, const struct srn_wqe *wqe)
{
	static const uint8_t opcodes[] = {
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
		[SRN_WR_FLUSH] = SRN_WC_FLUSH,
		[IBV_WR_ATOMIC_WRITE] = IBV_WC_ATOMIC_WRITE,
	};
	struct ibv_wc wc = {
		.wr_id = wqe->wr_id,
		.status = IBV_WC_SUCCESS,
		.opcode = opcodes[wqe->opcode],
		.byte_len = wqe->length,
		.qp_num = qp->v.ex.qp_base.qp_num,
	};

	srn_cq_push_send(qp, &wc);
}

void srn_sq_complete(struct srn_qp *qp)
{
	while (qp->sq_head != qp->sq_tx && srn_wqe(qp, qp->sq_head)->done) {
		struct srn_wqe *wqe = srn_wqe(qp, qp->sq_head);

		if (qp->sig_all || (wqe->flags & IBV_SEND_SIGNALED))
			complete(qp, wqe);
		qp->sq_head++;
	}
}

/* The frames' bytes not yet sent, as far as the vector holds them; -1: bad's memory went away. */
static int gather(struct srn_qp *qp, struct iovec *iov, size_t *total, struct srn_frame **bad)
{
	uint32_t i, skip = qp->tx.head_sent;
	int n = 0;

	*total = 0;
	for (i = 0; i < qp->tx.count && n + SRN_MAX_SGE + 2 <= IOVS; i++) {
		struct srn_frame *frame = &qp->tx.frames[(qp->tx.head + i) % SRN_FRAMES];
		struct iovec *piece = iov + n;
		int payload, pieces, j;

		piece[0].iov_base = frame->head;
		piece[0].iov_len = frame->head_len;
		payload = srn_frame_payload(qp, frame, piece + 1);
		if (payload < 0) {
			*bad = frame;
			return -1;
		}
		pieces = payload + 2;
		piece[pieces - 1].iov_base = frame->tail;
		piece[pieces - 1].iov_len = frame->tail_len;
		for (j = 0; j < pieces; j++) {
			size_t off = skip < piece[j].iov_len ? skip : piece[j].iov_len;

			skip -= (uint32_t)off;
			iov[n].iov_base = (char *)piece[j].iov_base + off;
			iov[n].iov_len = piece[j].iov_len - off;
			*total += iov[n].iov_len;
			n += iov[n].iov_len != 0;
		}
	}
	return n;
}

static void frame_sent(struct srn_qp *qp, const struct srn_frame *frame)
{
	if (!frame->ends)
		return;
	if (frame->kind == SRN_FRAME_WQE) {
		srn_wqe(qp, frame->index)->done = true;
	} else if (frame->kind == SRN_FRAME_RESPONSE) {
		qp->response_head++;
		qp->response_count--;
	}
}

static void advance(struct srn_qp *qp, size_t n)
{
	n += qp->tx.head_sent;
	while (qp->tx.count) {
		struct srn_frame *frame = &qp->tx.frames[qp->tx.head];
		size_t len = (size_t)frame->head_len + frame->length + frame->tail_len;

		if (n < len)
			break;
		n -= len;
		frame_sent(qp, frame);
		qp->tx.head = (qp->tx.head + 1) % SRN_FRAMES;
		qp->tx.count--;
	}
	qp->tx.head_sent = (uint32_t)n;
	srn_sq_complete(qp);
}

/* Sends one batch; returns whether to go on. */
static bool send_batch(struct srn_qp *qp)
{
	static const struct rdmap_term access = {
		TERM_RDMAP, TERM_RDMAP_PROTECTION, TERM_ACCESS, NULL, 0, 0};
	static const struct rdmap_term local = {TERM_RDMAP, TERM_RDMAP_LOCAL, 0, NULL, 0, 0};
	struct iovec iov[IOVS];
	struct msghdr msg = {.msg_iov = iov};
	struct srn_frame *bad = NULL;
	enum srn_build built;
	size_t total = 0;
	ssize_t sent = 0;
	int n, err = 0;

	srn_mr_lock();
	built = srn_frames_build(qp);
	n = gather(qp, iov, &total, &bad);
	if (n > 0) {
		msg.msg_iovlen = (size_t)n;
		do
			sent = SRN_SYSCALL(sendmsg, qp->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
		while (sent < 0 && errno == EINTR);
		err = sent < 0 ? errno : 0;
	}
	srn_mr_unlock();
	if (n < 0) {
		/* Half a frame cannot be taken back. */
		if (bad->kind == SRN_FRAME_WQE)
			srn_qp_fail(qp, NULL, bad->index, IBV_WC_LOC_PROT_ERR);
		else
			srn_qp_fail(qp, NULL, SRN_NO_WQE, IBV_WC_SUCCESS);
		return false;
	}
	if (sent > 0)
		advance(qp, (size_t)sent);
	if (built == SRN_BUILD_BAD_REQUEST) {
		srn_qp_fail(qp, &local, qp->sq_tx, IBV_WC_LOC_PROT_ERR);
		return false;
	}
	if (built == SRN_BUILD_BAD_RESPONSE) {
		srn_qp_fail(qp, &access, SRN_NO_WQE, IBV_WC_SUCCESS);
		return false;
	}
	if (err && err != EAGAIN && err != ENOBUFS) {
		srn_qp_fail(qp, NULL, SRN_NO_WQE, IBV_WC_SUCCESS);
		return false;
	}
	qp->tx.blocked = (size_t)(sent > 0 ? sent : 0) < total;
	return n > 0 && !qp->tx.blocked;
}

/*
 * A full socket is asked before it is tried again: it says yes only when a good part of it is free,
 * so what goes out next is large, and asking takes no lock the peer's acknowledgements wait for.
 */
static bool writable(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};

	return SRN_NO_CANCEL(poll(&pfd, 1, 0)) != 0;
}

void srn_tx_run(struct srn_qp *qp)
{
	qp->held_bytes = 0;
	if (!qp->may_send || qp->fd < 0 || (qp->tx.blocked && !writable(qp->fd)))
		return;
	while (qp->tx.count || qp->send_rtr || qp->sq_tx != qp->sq_tail ||
	       qp->response_tx != qp->response_head + qp->response_count)
		if (!send_batch(qp))
			break;
}

void srn_tx_terminate(struct srn_qp *qp, const struct rdmap_term *term)
{
	uint8_t buf[RDMAP_TERMINATE_MAX];
	struct srn_frame *frame;
	unsigned int len;
	struct iovec iov[2];
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	/* Nothing may follow half a frame but its other half. */
	if (qp->tx.head_sent || !qp->may_send)
		return;
	len = rdmap_encode_terminate(buf, term);
	qp->tx.count = 0;
	frame = srn_frame_new(qp, SRN_FRAME_CONTROL, 0);
	memcpy(srn_frame_control(qp, frame, RDMAP_TERMINATE, DDP_QUEUE_TERMINATE, len), buf, len);
	srn_frame_seal(qp, frame);
	iov[0].iov_base = frame->head;
	iov[0].iov_len = frame->head_len;
	iov[1].iov_base = frame->tail;
	iov[1].iov_len = frame->tail_len;
	/* If the socket is full, closing it has to say it. */
	if (SRN_NO_CANCEL(sendmsg(qp->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0)
		errno = 0;
}
