// SPDX-License-Identifier: BSD-3-Clause
/* A queue pair's TCP connection: from the end of the set-up to the flush of what was outstanding.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "softrnic.h"

#define DEFER_MAX       32           /* requests ... */
#define DEFER_BYTES     (128u << 10) /* ... or bytes: the peer shall have work meanwhile */
#define HOLD_FROM       4 /* responses awaited: with so many, the next can wait for a poll */
#define HANGUP_GRACE_NS 1000000000ull

int srn_stream_open(struct srn_qp *qp, const struct srn_stream_setup *setup, struct srn_id *id)
{
	struct srn_rx *rx = &qp->rx;
	int i, err;

	if (qp->fd >= 0 || qp->v.ex.qp_base.state == IBV_QPS_ERR)
		return EINVAL;
	rx->size = setup->crc ? SRN_RX_BUF_CRC : SRN_RX_BUF;
	rx->buf = malloc(rx->size);
	if (setup->crc)
		qp->tx.copies = malloc((size_t)SRN_FRAMES * SRN_FRAME_PAYLOAD);
	if (!rx->buf || (setup->crc && !qp->tx.copies))
		goto err_nomem;
	for (i = 0; i < DDP_QUEUES; i++)
		rx->msn[i] = 1;
	qp->src.handle = srn_stream_handle;
	qp->src.expire = srn_stream_expire;
	qp->src.fd = setup->fd;
	err = qp->src.registered ? 0 : srn_src_add(&qp->src);
	if (err)
		goto err_free;
	qp->fd = setup->fd;
	qp->crc = setup->crc;
	qp->extended = setup->extended;
	qp->may_send = setup->initiator;
	qp->send_rtr = setup->send_rtr;
	qp->ord = setup->ord;
	qp->ird = setup->ird;
	qp->rnr_timeout = setup->rnr_timeout;
	qp->id = id;
	qp->connected = true;
	qp->v.ex.qp_base.state = IBV_QPS_RTS;
	return 0;

err_nomem:
	err = ENOMEM;
err_free:
	free(rx->buf);
	free(qp->tx.copies);
	rx->buf = NULL;
	qp->tx.copies = NULL;
	return err;
}

void srn_stream_watch(struct srn_qp *qp)
{
	uint32_t events = 0;
	bool engine;

	if (qp->fd >= 0) {
		if (!qp->rx.stalled)
			events |= EPOLLIN;
		else if (!qp->rx.hangup)
			events |= EPOLLRDHUP;
		if (qp->tx.blocked)
			events |= EPOLLOUT;
	}
	engine = qp->rx.stalled || !srn_qp_polled(qp);
	qp->in_engine = engine;
	srn_src_interest(&qp->src, engine ? events : 0);
	srn_cq_watch(qp, events);
}

int srn_stream_run(struct srn_qp *qp, bool receive)
{
	int moved = 0;

	if (receive && qp->sq_tx != qp->sq_tail)
		srn_tx_run(qp);
	if (receive)
		moved = srn_rx_run(qp);
	srn_tx_run(qp);
	srn_stream_watch(qp);
	return moved;
}

/*
 * Whether the program will hardly miss a request that leaves with the next post or poll: one it
 * wants no completion of, or one behind others whose responses it is polling for anyway.
 */
static bool may_wait(struct srn_qp *qp)
{
	return qp->waiting_count >= HOLD_FROM ||
	       (!qp->sig_all && !(srn_wqe(qp, qp->sq_tail - 1)->flags & IBV_SEND_SIGNALED));
}

/*
 * Sends what was posted, with one exception: while the program polls, some requests wait for the
 * next post or poll, to share a system call and a packet with what follows (a write with its flush,
 * above all).  Should the polling end, the engine sends them.
 */
void srn_stream_posted(struct srn_qp *qp)
{
	struct srn_cq *cq = srn_cq(qp->v.ex.qp_base.send_cq);
	uint32_t waiting = qp->sq_tail - qp->sq_tx;

	for (; qp->sq_seen != qp->sq_tail; qp->sq_seen++)
		qp->held_bytes += srn_wqe(qp, qp->sq_seen)->length;
	if (!waiting || waiting >= DEFER_MAX || qp->held_bytes >= DEFER_BYTES ||
	    !atomic_load(&cq->polled) || !may_wait(qp))
		srn_stream_run(qp, false);
	else if (__atomic_load_n(&cq->epfd, __ATOMIC_RELAXED) >= 0)
		srn_cq_defer(qp); /* its polls look only at sockets that have something */
}

static bool has_receive(struct srn_qp *qp)
{
	struct srn_srq *srq = (struct srn_srq *)qp->v.ex.qp_base.srq;
	bool has;

	if (!srq)
		return qp->rq.count;
	pthread_mutex_lock(&srq->lock);
	has = srq->rq.count;
	pthread_mutex_unlock(&srq->lock);
	return has;
}

int srn_stream_handle(struct srn_src *src, uint32_t events)
{
	struct srn_qp *qp = container_of(src, struct srn_qp, src);
	int moved = 0;

	pthread_mutex_lock(&qp->lock);
	if (qp->fd < 0)
		goto out;
	if (qp->rx.stalled && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))) {
		/* What it sent may still be wanted, but not for ever. */
		qp->rx.hangup = true;
		srn_src_deadline(src, srn_now_ns() + HANGUP_GRACE_NS);
		srn_stream_watch(qp);
	} else if (qp->rx.stalled && !events) {
		/* Without one it would wait anew, and longer than it may. */
		if (has_receive(qp))
			srn_rx_resume(qp);
		moved = !qp->rx.stalled;
	} else if (qp->in_engine) {
		moved = srn_stream_run(qp, true);
	}
out:
	pthread_mutex_unlock(&qp->lock);
	return moved;
}

void srn_stream_expire(struct srn_src *src)
{
	struct srn_qp *qp = container_of(src, struct srn_qp, src);

	pthread_mutex_lock(&qp->lock);
	/* Since the timer fired it may have gone on, and wait again until later or for ever. */
	if (qp->fd >= 0 && qp->rx.stalled && src->deadline && src->deadline <= srn_now_ns())
		srn_rx_refuse(qp, TERM_DDP, TERM_DDP_UNTAGGED, TERM_UNTAGGED_NO_BUFFER);
	pthread_mutex_unlock(&qp->lock);
}

static void flush_recv(struct srn_qp *qp, uint64_t wr_id)
{
	struct ibv_wc wc = {
		.wr_id = wr_id,
		.status = IBV_WC_WR_FLUSH_ERR,
		.opcode = IBV_WC_RECV,
		.qp_num = qp->v.ex.qp_base.qp_num,
	};

	srn_cq_push(qp->v.ex.qp_base.recv_cq, &wc, false);
}

void srn_qp_flush(struct srn_qp *qp, uint32_t guilty, enum ibv_wc_status status)
{
	struct srn_rwqe rwqe;

	for (; qp->sq_head != qp->sq_tail; qp->sq_head++) {
		struct ibv_wc wc = {
			.wr_id = srn_wqe(qp, qp->sq_head)->wr_id,
			.status = IBV_WC_WR_FLUSH_ERR,
			.qp_num = qp->v.ex.qp_base.qp_num,
		};

		if (qp->sq_head == guilty && status != IBV_WC_SUCCESS)
			wc.status = status;
		srn_cq_push_send(qp, &wc);
	}
	qp->sq_tx = qp->sq_tail;
	qp->waiting_count = 0;
	if (qp->rx.receiving)
		flush_recv(qp, qp->rx.recv.wr_id);
	qp->rx.receiving = false;
	while (srn_rq_take(&qp->rq, &rwqe, qp->rx.recv_sge))
		flush_recv(qp, rwqe.wr_id);
}

void srn_qp_fail(struct srn_qp *qp, const struct rdmap_term *term, uint32_t guilty,
		 enum ibv_wc_status status)
{
	struct ibv_qp *base = &qp->v.ex.qp_base;
	bool was_connected = qp->connected;
	int fd = qp->fd;

	base->state = IBV_QPS_ERR;
	srn_unstall(qp);
	if (fd >= 0) {
		if (term)
			srn_tx_terminate(qp, term);
		qp->fd = -1;
		srn_stream_watch(qp);
		qp->src.fd = -1;
		srn_linger(fd);
	}
	qp->connected = false;
	qp->tx.count = 0;
	qp->tx.head_sent = 0;
	qp->tx.blocked = false;
	qp->response_head = qp->response_tx = qp->response_count = 0;
	srn_qp_flush(qp, guilty, status);
	if (!was_connected)
		return;
	if (base->srq)
		srn_async_event(base->context, IBV_EVENT_QP_LAST_WQE_REACHED, qp);
	if (qp->id)
		srn_id_disconnected(qp->id);
}
