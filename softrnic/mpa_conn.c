// SPDX-License-Identifier: BSD-3-Clause
/*
 * Connection set-up: MPA's request and reply frames (RFC 5044 section 7.1) with the enhanced depths
 * and the ready-to-receive message of RFC 6581.  A connection lives here until its queue pair has
 * it.  Everything runs on the engine, but the start of an active one and the answers.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softrnic.h"

#define CONNECT_NS   20000000000ull /* for TCP's handshake */
#define REPLY_NS     60000000000ull /* for the peer's program to accept */
#define HANDSHAKE_NS 10000000000ull /* for the request of a peer that connected */
#define RNR_NS       655360000ull   /* IBTA's longest RNR timer, the default of rdma_cm */
#define RNR_FOR_EVER 7

static bool want_crc(void)
{
	const char *text = getenv("SOFTRNIC_CRC");

	return text && !strcmp(text, "1");
}

/*
 * How long a SEND may wait for a receive.  Requests complete when the socket has them, so a sender
 * can be ahead of the receiver in good faith: even no retry waits once.
 */
static uint64_t rnr_timeout(const struct rdma_conn_param *param)
{
	if (param->rnr_retry_count >= RNR_FOR_EVER)
		return UINT64_MAX;
	return (param->rnr_retry_count + 1u) * RNR_NS;
}

void srn_conn_free(struct srn_conn *conn)
{
	srn_src_remove(&conn->src);
	if (conn->src.fd >= 0)
		close(conn->src.fd);
	if (conn->id && conn->id->conn == conn)
		conn->id->conn = NULL;
	free(conn);
}

/* ---- the active side's end, with or without success */

static void active_failed(struct srn_conn *conn, int err)
{
	struct srn_id *id = conn->id;
	enum rdma_cm_event_type type = RDMA_CM_EVENT_CONNECT_ERROR;

	if (err == ECONNREFUSED || err == ECONNRESET)
		type = RDMA_CM_EVENT_REJECTED;
	else if (err == ETIMEDOUT)
		type = RDMA_CM_EVENT_UNREACHABLE;
	srn_src_remove(&conn->src);
	close(conn->src.fd);
	conn->src.fd = -1;
	conn->stage = SRN_CONN_IDLE;
	id->state = SRN_ID_ROUTE;
	srn_cm_event(id, NULL, type, -err, NULL);
}

static void active_rejected(struct srn_conn *conn, const struct rdma_conn_param *param)
{
	srn_src_remove(&conn->src);
	srn_linger(conn->src.fd);
	conn->src.fd = -1;
	conn->stage = SRN_CONN_IDLE;
	conn->id->state = SRN_ID_ROUTE;
	srn_cm_event(conn->id, NULL, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, param);
}

/* The program learns of it with the queue pair still locked: it may post at once. */
static int open_stream(struct srn_id *id, struct srn_conn *conn, struct srn_stream_setup *setup,
		       const struct rdma_conn_param *param)
{
	struct srn_qp *qp;
	int err;

	srn_src_remove(&conn->src);
	qp = srn_qp_find(id->id.qp ? id->id.qp->qp_num : conn->qp_num);
	if (!qp)
		return EINVAL;
	setup->fd = conn->src.fd;
	err = srn_stream_open(qp, setup, id);
	if (!err) {
		conn->src.fd = -1;
		id->state = SRN_ID_CONNECTED;
		err = srn_cm_event(id, NULL, RDMA_CM_EVENT_ESTABLISHED, 0, param);
		if (err)
			srn_qp_fail(qp, NULL, SRN_NO_WQE, IBV_WC_SUCCESS);
		else
			srn_stream_run(qp, false);
	}
	pthread_mutex_unlock(&qp->lock);
	return err;
}

static void active_established(struct srn_conn *conn, struct rdma_conn_param *param, bool rtr)
{
	struct srn_id *id = conn->id;
	struct srn_stream_setup setup = {
		.crc = want_crc() || (conn->peer.flags & MPA_FLAG_CRC),
		.extended = conn->peer.flags & MPA_FLAG_EXTENDED,
		.initiator = true,
		.send_rtr = rtr,
		.ord = conn->ord,
		.ird = conn->ird,
		.rnr_timeout = conn->rnr_timeout,
	};
	int err;

	pthread_mutex_lock(&id->lock);
	err = open_stream(id, conn, &setup, param);
	pthread_mutex_unlock(&id->lock);
	if (err && conn->src.fd >= 0)
		active_failed(conn, err);
}

/* The reply is whole. */
static void active_reply(struct srn_conn *conn)
{
	const uint8_t *data = conn->buf + MPA_HDR_LEN;
	uint32_t len = conn->peer.priv_len;
	struct rdma_conn_param param = {
		.responder_resources = (uint8_t)conn->ird,
		.initiator_depth = (uint8_t)conn->ord,
	};
	bool rtr = false;

	if (conn->peer.flags & MPA_FLAG_ENHANCED) {
		if (len < MPA_ENHANCED_LEN) {
			active_failed(conn, EPROTO);
			return;
		}
		mpa_decode_enhanced(data, &conn->depths);
		data += MPA_ENHANCED_LEN;
		len -= MPA_ENHANCED_LEN;
		if (conn->ord > (conn->depths.ird & MPA_DEPTH_MASK))
			conn->ord = conn->depths.ird & MPA_DEPTH_MASK;
		rtr = conn->depths.ird & MPA_IRD_PEER_TO_PEER;
		param.responder_resources = (uint8_t)conn->ird;
		param.initiator_depth = (uint8_t)conn->ord;
	}
	param.private_data = data;
	param.private_data_len = (uint8_t)(len > UINT8_MAX ? UINT8_MAX : len);
	if (conn->peer.flags & MPA_FLAG_REJECT) {
		active_rejected(conn, &param);
		return;
	}
	/* Markers cannot be sent; and only the RTR that was offered can. */
	if ((conn->peer.flags & MPA_FLAG_MARKERS) ||
	    (rtr && !(conn->depths.ord & MPA_ORD_RTR_WRITE))) {
		active_failed(conn, EPROTO);
		return;
	}
	active_established(conn, &param, rtr);
}

/* ---- frames in and out */

static bool frame_acceptable(const struct mpa_frame *frame)
{
	if (frame->priv_len > MPA_PRIV_MAX || frame->revision < 1 || frame->revision > 2)
		return false;
	return !(frame->flags & MPA_FLAG_ENHANCED) ||
	       (frame->revision == 2 && frame->priv_len >= MPA_ENHANCED_LEN);
}

/* Reads towards conn->want; 1 = there, 0 = not yet, else -errno. */
static int fill(struct srn_conn *conn)
{
	ssize_t n;

	while (conn->have < conn->want) {
		n = recv(conn->src.fd, conn->buf + conn->have, conn->want - conn->have,
			 MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ECONNRESET;
		conn->have += (uint32_t)n;
	}
	return 1;
}

/* Reads a frame: first its header, then as much as that says.  Result as of fill(). */
static int read_frame(struct srn_conn *conn)
{
	int ret = fill(conn);

	if (ret <= 0 || conn->stage == SRN_CONN_PRIVATE)
		return ret;
	if (!mpa_decode(conn->buf, conn->active, &conn->peer) || !frame_acceptable(&conn->peer))
		return -EPROTO;
	conn->stage = SRN_CONN_PRIVATE;
	conn->want += conn->peer.priv_len;
	return fill(conn);
}

static int send_rest(struct srn_conn *conn)
{
	ssize_t n = send(conn->src.fd, conn->buf + conn->have, conn->want - conn->have,
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	conn->have += (uint32_t)n;
	return conn->have == conn->want;
}

static int active_step(struct srn_conn *conn)
{
	int err = 0, ret;
	socklen_t len = sizeof(err);

	if (conn->stage == SRN_CONN_TCP) {
		if (getsockopt(conn->src.fd, SOL_SOCKET, SO_ERROR, &err, &len) || err)
			return -(err ? err : errno);
		len = sizeof(struct sockaddr_storage);
		getsockname(conn->src.fd, &conn->id->id.route.addr.src_addr, &len);
		srn_tcp_established(conn->src.fd);
		srn_src_deadline(&conn->src, srn_now_ns() + REPLY_NS);
		conn->stage = SRN_CONN_SEND;
	}
	if (conn->stage == SRN_CONN_SEND) {
		ret = send_rest(conn);
		if (ret <= 0)
			return ret;
		conn->stage = SRN_CONN_HEADER;
		conn->have = 0;
		conn->want = MPA_HDR_LEN;
		srn_src_interest(&conn->src, EPOLLIN);
	}
	return read_frame(conn);
}

static int active_handle(struct srn_src *src, uint32_t events)
{
	struct srn_conn *conn = container_of(src, struct srn_conn, src);
	int ret;

	(void)events;
	if (conn->stage == SRN_CONN_IDLE)
		return 0;
	ret = active_step(conn);
	if (ret < 0)
		active_failed(conn, -ret);
	else if (ret > 0)
		active_reply(conn);
	return 0;
}

static void active_expire(struct srn_src *src)
{
	active_failed(container_of(src, struct srn_conn, src), ETIMEDOUT);
}

/* The request frame; its private data is led by the enhanced words. */
static void build_request(struct srn_conn *conn, const struct rdma_conn_param *param)
{
	struct mpa_frame frame = {
		.flags = MPA_FLAG_ENHANCED | MPA_FLAG_EXTENDED | (want_crc() ? MPA_FLAG_CRC : 0),
		.revision = 2,
		.priv_len = (uint16_t)(MPA_ENHANCED_LEN + param->private_data_len),
	};
	struct mpa_enhanced depths = {
		.ird = (uint16_t)(conn->ird | MPA_IRD_PEER_TO_PEER),
		.ord = (uint16_t)(conn->ord | MPA_ORD_RTR_WRITE),
	};

	mpa_encode(conn->buf, &frame);
	mpa_encode_enhanced(conn->buf + MPA_HDR_LEN, &depths);
	if (param->private_data_len)
		memcpy(conn->buf + MPA_HDR_LEN + MPA_ENHANCED_LEN, param->private_data,
		       param->private_data_len);
	conn->have = 0;
	conn->want = MPA_HDR_LEN + frame.priv_len;
}

int srn_conn_connect(struct srn_id *id, const struct rdma_conn_param *param)
{
	const struct sockaddr *dst = &id->id.route.addr.dst_addr;
	struct srn_conn *conn = id->conn ? id->conn : calloc(1, sizeof(*conn));
	int err = ENOMEM;

	if (!conn)
		return err;
	conn->id = id;
	conn->active = true;
	conn->stage = SRN_CONN_TCP;
	conn->ord = param->initiator_depth;
	conn->ird = param->responder_resources;
	conn->qp_num = param->qp_num;
	conn->rnr_timeout = rnr_timeout(param);
	conn->src.handle = active_handle;
	conn->src.expire = active_expire;
	build_request(conn, param);
	conn->src.fd = srn_socket(id, dst->sa_family);
	if (conn->src.fd < 0) {
		err = errno;
		goto err_free;
	}
	err = srn_src_add(&conn->src);
	if (err)
		goto err_close;
	id->conn = conn;
	if (connect(conn->src.fd, dst, srn_addr_len(dst)) && errno != EINPROGRESS) {
		/* Told as any other way to fail: by an event. */
		active_failed(conn, errno);
		return 0;
	}
	srn_src_deadline(&conn->src, srn_now_ns() + CONNECT_NS);
	srn_src_interest(&conn->src, EPOLLOUT);
	return 0;

err_close:
	close(conn->src.fd);
err_free:
	id->conn = NULL;
	free(conn);
	return err;
}

/* ---- the passive side */

/* Ends before there is an id, unless the listener's end frees it already. */
static void passive_end(struct srn_conn *conn)
{
	struct srn_listener *listener = conn->listener;
	bool mine;

	pthread_mutex_lock(&listener->lock);
	mine = srn_listener_forget(listener, conn);
	pthread_mutex_unlock(&listener->lock);
	if (mine)
		srn_conn_free(conn);
}

/* RFC 5044 section 7.1: a request that cannot be met gets a reply with the reject bit. */
static void passive_refuse(struct srn_conn *conn)
{
	uint8_t buf[MPA_HDR_LEN];
	struct mpa_frame frame = {.reply = true, .flags = MPA_FLAG_REJECT, .revision = 1};

	mpa_encode(buf, &frame);
	if (send(conn->src.fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		errno = 0; /* closing says it too */
	passive_end(conn);
}

static int passive_handle(struct srn_src *src, uint32_t events)
{
	struct srn_conn *conn = container_of(src, struct srn_conn, src);
	const uint8_t *data = conn->buf + MPA_HDR_LEN;
	uint32_t len;
	int ret;

	(void)events;
	if (conn->stage == SRN_CONN_IDLE)
		return 0;
	ret = read_frame(conn);
	if (ret == 0)
		return 0;
	if (ret < 0) {
		passive_end(conn);
		return 0;
	}
	if (conn->peer.flags & (MPA_FLAG_MARKERS | MPA_FLAG_REJECT)) {
		passive_refuse(conn);
		return 0;
	}
	len = conn->peer.priv_len;
	conn->depths.ird = conn->depths.ord = SRN_MAX_RD_ATOM;
	if (conn->peer.flags & MPA_FLAG_ENHANCED) {
		mpa_decode_enhanced(data, &conn->depths);
		data += MPA_ENHANCED_LEN;
		len -= MPA_ENHANCED_LEN;
	}
	conn->stage = SRN_CONN_IDLE;
	srn_src_interest(src, 0);
	srn_src_deadline(src, 0);
	if (srn_listener_request(conn, data, len))
		passive_refuse(conn);
	return 0;
}

static void passive_expire(struct srn_src *src)
{
	passive_end(container_of(src, struct srn_conn, src));
}

int srn_conn_passive(struct srn_listener *listener, int fd)
{
	struct srn_conn *conn = calloc(1, sizeof(*conn));
	int err;

	if (!conn)
		return ENOMEM;
	srn_tcp_established(fd);
	conn->listener = listener;
	conn->stage = SRN_CONN_HEADER;
	conn->want = MPA_HDR_LEN;
	conn->src.fd = fd;
	conn->src.handle = passive_handle;
	conn->src.expire = passive_expire;
	err = srn_src_add(&conn->src);
	if (err) {
		free(conn);
		return err;
	}
	pthread_mutex_lock(&listener->lock);
	TAILQ_INSERT_TAIL(&listener->handshakes, conn, link);
	listener->handshake_count++;
	conn->listed = true;
	pthread_mutex_unlock(&listener->lock);
	srn_src_deadline(&conn->src, srn_now_ns() + HANDSHAKE_NS);
	srn_src_interest(&conn->src, EPOLLIN);
	return 0;
}

static int send_reply(struct srn_conn *conn, uint8_t flags, const void *data, uint8_t len)
{
	bool enhanced = conn->peer.flags & MPA_FLAG_ENHANCED;
	struct mpa_frame frame = {
		.reply = true,
		.flags = flags | (conn->peer.flags & (MPA_FLAG_ENHANCED | MPA_FLAG_EXTENDED)),
		.revision = conn->peer.revision,
		.priv_len = (uint16_t)(len + (enhanced ? MPA_ENHANCED_LEN : 0)),
	};
	struct mpa_enhanced depths = {.ird = (uint16_t)conn->ird, .ord = (uint16_t)conn->ord};
	uint8_t *to = conn->buf + MPA_HDR_LEN;
	ssize_t n;

	mpa_encode(conn->buf, &frame);
	if (enhanced) {
		if (conn->depths.ird & MPA_IRD_PEER_TO_PEER) {
			uint16_t rtr = conn->depths.ord & (MPA_ORD_RTR_WRITE | MPA_ORD_RTR_READ);

			if (rtr)
				depths.ird |= MPA_IRD_PEER_TO_PEER;
			depths.ord |= rtr & MPA_ORD_RTR_WRITE ? MPA_ORD_RTR_WRITE : rtr;
		}
		mpa_encode_enhanced(to, &depths);
		to += MPA_ENHANCED_LEN;
	}
	if (len)
		memcpy(to, data, len);
	to += len;
	/* The first bytes on a new connection: its buffer holds them. */
	n = send(conn->src.fd, conn->buf, (size_t)(to - conn->buf), MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno;
	return n == to - conn->buf ? 0 : EIO;
}

int srn_conn_accept(struct srn_id *id, const struct rdma_conn_param *param)
{
	struct srn_conn *conn = id->conn;
	bool crc = want_crc() || (conn->peer.flags & MPA_FLAG_CRC);
	struct srn_stream_setup setup = {
		.crc = crc,
		.extended = conn->peer.flags & MPA_FLAG_EXTENDED,
		.rnr_timeout = rnr_timeout(param),
	};
	uint32_t peer_ird = conn->depths.ird & MPA_DEPTH_MASK;
	int err;

	conn->qp_num = param->qp_num;
	if (!id->id.qp && !srn_qp_known(param->qp_num))
		return EINVAL;
	conn->ird = setup.ird = param->responder_resources;
	conn->ord = setup.ord =
		param->initiator_depth < peer_ird ? param->initiator_depth : peer_ird;
	err = send_reply(conn, crc ? MPA_FLAG_CRC : 0, param->private_data,
			 param->private_data_len);
	if (err)
		return err;
	return open_stream(id, conn, &setup, NULL);
}

int srn_conn_reject(struct srn_id *id, const void *data, uint8_t len)
{
	struct srn_conn *conn = id->conn;
	int err = send_reply(conn, MPA_FLAG_REJECT, data, len);

	srn_src_remove(&conn->src);
	srn_linger(conn->src.fd);
	conn->src.fd = -1;
	return err;
}
