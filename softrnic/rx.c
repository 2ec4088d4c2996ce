// SPDX-License-Identifier: BSD-3-Clause
/*
 * The receive state machine: a byte stream in, memory and completions out.
 *
 * srn_rx_space() says where the next bytes go: headers and small frames into a buffer, the rest of
 * a payload straight to its place.  srn_rx_input() says that n bytes arrived.  Nothing here reads
 * from a socket but srn_rx_run().  With CRCs a frame is taken whole into the buffer and looked at
 * only after its sum was found right, so that nothing of a damaged frame is placed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "softrnic.h"

#define RUN_BYTES (1u << 20) /* one visit moves no more: others wait */
#define LARGE     8192       /* a payload worth its own system call */
#define AHEAD     512
#define TARGETS   (SRN_MAX_SGE + 1)

int srn_rx_space(struct srn_qp *qp, struct iovec *iov, unsigned int *count, size_t *room)
{
	struct srn_rx *rx = &qp->rx;
	unsigned int i, n = 0;

	*room = 0;
	rx->direct = 0;
	if (rx->start == rx->end) {
		rx->start = rx->end = 0;
	} else if (rx->size - rx->end < rx->size / 2) {
		memmove(rx->buf, rx->buf + rx->start, rx->end - rx->start);
		rx->end -= rx->start;
		rx->start = 0;
	}
	if (rx->phase == SRN_RX_PAYLOAD && !qp->crc && rx->payload_done < rx->payload_len) {
		n = srn_rx_target(qp, iov, TARGETS);
		if (!n)
			return -1;
		for (i = 0; i < n; i++)
			rx->direct += (uint32_t)iov[i].iov_len;
	}
	iov[n].iov_base = rx->buf + rx->end;
	iov[n].iov_len = rx->size - rx->end;
	/* What lands here of a payload is copied: of large ones no more than comes with a header.
	 */
	if (!qp->crc && rx->payload_len >= LARGE && iov[n].iov_len > AHEAD)
		iov[n].iov_len = AHEAD;
	*room = rx->direct + iov[n].iov_len;
	*count = n + 1;
	return 0;
}

static bool check_crc(const uint8_t *frame, uint32_t len)
{
	uint8_t crc[FPDU_CRC_SIZE];

	crc32c_end(crc32c_add(crc32c_begin(), frame, len - FPDU_CRC_SIZE), crc);
	return !memcmp(crc, frame + len - FPDU_CRC_SIZE, FPDU_CRC_SIZE);
}

/* Takes a frame's header; returns whether there is more to do. */
static bool take_header(struct srn_qp *qp)
{
	struct srn_rx *rx = &qp->rx;
	const uint8_t *frame = rx->buf + rx->start;
	uint32_t have = rx->end - rx->start, ulpdu, header, whole;
	uint8_t opcode;

	if (have < FPDU_LEN_SIZE + 2)
		return false;
	ulpdu = get16(frame);
	header = frame[2] & DDP_TAGGED ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
	opcode = frame[3] & RDMAP_OPCODE_MASK;
	whole = FPDU_LEN_SIZE + ulpdu + fpdu_pad(ulpdu) + FPDU_CRC_SIZE;
	if (ulpdu < header) {
		rx->header.opcode = opcode;
		srn_rx_refuse(qp, TERM_LLP, 0, TERM_LLP_LENGTH);
		return false;
	}
	if (srn_rx_whole(opcode) && whole > SRN_RX_BUF / 2) {
		srn_rx_refuse(qp, TERM_DDP, TERM_DDP_UNTAGGED, TERM_UNTAGGED_TOO_LONG);
		return false;
	}
	if (have < (qp->crc || srn_rx_whole(opcode) ? whole : FPDU_LEN_SIZE + header))
		return false;
	ddp_decode(frame + FPDU_LEN_SIZE, &rx->header);
	rx->raw_len = (uint16_t)header;
	if (opcode == RDMAP_READ_REQUEST && ulpdu == header + RDMAP_READ_REQUEST_LEN)
		rx->raw_len = (uint16_t)ulpdu;
	memcpy(rx->raw, frame + FPDU_LEN_SIZE, rx->raw_len);
	rx->ulpdu_len = (uint16_t)ulpdu;
	if (qp->crc && !check_crc(frame, whole)) {
		srn_rx_refuse(qp, TERM_LLP, 0, TERM_LLP_CRC);
		return false;
	}
	rx->payload_len = ulpdu - header;
	rx->payload_done = 0;
	rx->tail_len = (uint8_t)(fpdu_pad(ulpdu) + FPDU_CRC_SIZE);
	if (!srn_rx_begin(qp))
		return false;
	rx->start += FPDU_LEN_SIZE + header;
	if (srn_rx_whole(opcode)) {
		if (!srn_rx_message(qp, rx->buf + rx->start))
			return false;
		rx->start += rx->payload_len;
		rx->payload_done = rx->payload_len;
	}
	rx->phase = SRN_RX_PAYLOAD;
	return true;
}

/* Moves what the buffer has of a payload to its place. */
static bool take_payload(struct srn_qp *qp)
{
	struct srn_rx *rx = &qp->rx;
	struct iovec iov[TARGETS];
	uint32_t have = rx->end - rx->start;
	unsigned int i, n;

	if (rx->payload_done == rx->payload_len) {
		rx->phase = SRN_RX_TRAILER;
		return true;
	}
	if (!have)
		return false;
	srn_mr_lock();
	n = srn_rx_target(qp, iov, TARGETS);
	for (i = 0; i < n && have; i++) {
		uint32_t take = iov[i].iov_len < have ? (uint32_t)iov[i].iov_len : have;

		memcpy(iov[i].iov_base, rx->buf + rx->start, take);
		rx->start += take;
		rx->payload_done += take;
		have -= take;
	}
	srn_mr_unlock();
	return n;
}

static bool take_trailer(struct srn_qp *qp)
{
	struct srn_rx *rx = &qp->rx;

	if (rx->end - rx->start < rx->tail_len)
		return false;
	rx->start += rx->tail_len;
	rx->phase = SRN_RX_HEADER;
	return srn_rx_finish(qp);
}

static void parse(struct srn_qp *qp)
{
	bool more = true;

	while (more && qp->fd >= 0 && !qp->rx.stalled) {
		switch (qp->rx.phase) {
		case SRN_RX_HEADER:
			more = take_header(qp);
			break;
		case SRN_RX_PAYLOAD:
			more = take_payload(qp);
			break;
		case SRN_RX_TRAILER:
			more = take_trailer(qp);
			break;
		}
	}
}

void srn_rx_input(struct srn_qp *qp, size_t n)
{
	struct srn_rx *rx = &qp->rx;
	size_t direct = n < rx->direct ? n : rx->direct;

	rx->payload_done += (uint32_t)direct;
	rx->end += (uint32_t)(n - direct);
	rx->direct = 0;
	parse(qp);
}

/* Returns how many bytes came in. */
int srn_rx_run(struct srn_qp *qp)
{
	struct iovec iov[TARGETS + 1];
	struct msghdr msg = {.msg_iov = iov};
	unsigned int count;
	size_t room, moved = 0;
	ssize_t n;

	while (qp->fd >= 0 && !qp->rx.stalled && moved < RUN_BYTES) {
		srn_mr_lock();
		if (srn_rx_space(qp, iov, &count, &room)) {
			srn_mr_unlock();
			break;
		}
		msg.msg_iovlen = count;
		n = count == 1 ? SRN_SYSCALL(recvfrom, qp->fd, iov[0].iov_base, iov[0].iov_len,
					     MSG_DONTWAIT, NULL, NULL)
			       : SRN_SYSCALL(recvmsg, qp->fd, &msg, MSG_DONTWAIT);
		srn_mr_unlock();
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n < 0 && errno == EFAULT) {
			/* The region's memory is gone: the program unmapped it. */
			srn_rx_refuse(qp, TERM_RDMAP, TERM_RDMAP_LOCAL, 0);
			break;
		}
		if (n <= 0) {
			srn_qp_fail(qp, NULL, SRN_NO_WQE, IBV_WC_SUCCESS);
			break;
		}
		moved += (size_t)n;
		srn_rx_input(qp, (size_t)n);
		/* Less than there was room for: the socket has no more. */
		if ((size_t)n < room)
			break;
	}
	return (int)moved;
}

void srn_rx_resume(struct srn_qp *qp)
{
	srn_unstall(qp);
	parse(qp);
	srn_stream_run(qp, true);
}
