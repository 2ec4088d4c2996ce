// SPDX-License-Identifier: BSD-3-Clause
/*
 * A peer that is a plain TCP socket and sends what it likes.  Whatever it sends, it is told off as
 * the RFCs say, memory that was not granted stays as it is, and the next peer is served.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softrnic_pair.h"

struct peer {
	struct pair pair; /* only its server side and listener are used */
	int fd;
	uint8_t reply_flags;
};

static int raw_connect(struct pair *pair)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(pair_port(pair))};
	struct timeval limit = {.tv_sec = 15};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void raw_send(int fd, const void *buf, size_t len)
{
	assert_int_equal(send(fd, buf, len, MSG_NOSIGNAL), len);
}

static void raw_recv(int fd, void *buf, size_t len)
{
	assert_int_equal(recv(fd, buf, len, MSG_WAITALL), len);
}

static void assert_closed(int fd)
{
	uint8_t byte;

	assert_true(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
}

static void send_request(int fd, uint8_t flags)
{
	struct mpa_frame frame = {.flags = flags, .revision = 1};
	uint8_t buf[MPA_HDR_LEN];

	mpa_encode(buf, &frame);
	raw_send(fd, buf, sizeof(buf));
}

/* A connection of MPA revision 1, with an 8-deep responder. */
static void peer_open(struct peer *peer, uint8_t flags)
{
	struct pair_setup setup = {.raw = true};
	struct rdma_conn_param param = {
		.responder_resources = 2, .initiator_depth = 2, .rnr_retry_count = 7};
	struct mpa_frame frame;
	uint8_t buf[MPA_HDR_LEN];

	pair_open(&peer->pair, &setup);
	peer->fd = raw_connect(&peer->pair);
	send_request(peer->fd, flags);
	peer->pair.server.id = expect_request(&peer->pair.server, NULL);
	side_open(&peer->pair.server, NULL);
	assert_int_equal(rdma_accept(peer->pair.server.id, &param), 0);
	expect_event(&peer->pair.server, RDMA_CM_EVENT_ESTABLISHED);
	raw_recv(peer->fd, buf, sizeof(buf));
	assert_true(mpa_decode(buf, true, &frame));
	assert_int_equal(frame.flags & MPA_FLAG_REJECT, 0);
	peer->reply_flags = frame.flags;
}

/* Nothing of what the peer sent has reached memory. */
static void peer_close(struct peer *peer)
{
	static const uint8_t zeros[4096];
	unsigned int i;

	for (i = 0; i < PAIR_BUF; i += sizeof(zeros))
		assert_memory_equal(peer->pair.server.buf + i, zeros, sizeof(zeros));
	pair_close(&peer->pair);
}

static void send_fpdu(int fd, const struct ddp_header *header, const void *payload, uint16_t len)
{
	uint8_t buf[1024] = {0};
	unsigned int n = ddp_encode(buf + 2, header);

	assert_true(len <= 900);
	memcpy(buf + 2 + n, payload, len);
	put16(buf, (uint16_t)(n + len));
	raw_send(fd, buf, 2 + n + len + fpdu_pad(n + len) + 4);
}

static void expect_terminate(struct peer *peer, uint8_t layer, uint8_t etype, uint8_t code)
{
	struct ddp_header header;
	struct rdmap_term term;
	uint8_t buf[256];
	unsigned int len;

	raw_recv(peer->fd, buf, 2);
	len = get16(buf);
	assert_true(len >= DDP_UNTAGGED_LEN && len < 200);
	raw_recv(peer->fd, buf + 2, len + fpdu_pad(len) + 4);
	ddp_decode(buf + 2, &header);
	assert_int_equal(header.opcode, RDMAP_TERMINATE);
	assert_int_equal(header.queue, DDP_QUEUE_TERMINATE);
	assert_int_equal(header.msn, 1);
	assert_true(
		rdmap_decode_terminate(buf + 2 + DDP_UNTAGGED_LEN, len - DDP_UNTAGGED_LEN, &term));
	assert_int_equal(term.layer, layer);
	assert_int_equal(term.etype, etype);
	assert_int_equal(term.code, code);
	assert_closed(peer->fd);
	expect_event(&peer->pair.server, RDMA_CM_EVENT_DISCONNECTED);
}

/* One frame, and how it is answered. */
static void refuse(const struct ddp_header *header, const void *payload, uint16_t len,
		   uint8_t layer, uint8_t etype, uint8_t code)
{
	struct peer peer;

	peer_open(&peer, 0);
	send_fpdu(peer.fd, header, payload, len);
	expect_terminate(&peer, layer, etype, code);
	peer_close(&peer);
}

static void a_write_to_an_unknown_stag(void **state)
{
	struct ddp_header h = {.tagged = true, .last = true, .stag = 0x12345};

	(void)state;
	refuse(&h, "evil", 4, TERM_DDP, TERM_DDP_TAGGED, TERM_TAGGED_STAG);
}

static void writes_out_of_bounds(void **state)
{
	struct peer peer;
	struct ddp_header h = {.tagged = true, .last = true};
	uint64_t base, places[5];
	unsigned int i;

	(void)state;
	for (i = 0; i < 5; i++) {
		peer_open(&peer, 0);
		base = (uintptr_t)peer.pair.server.buf;
		places[0] = base - 1;
		places[1] = base + PAIR_BUF - 3;
		places[2] = base + PAIR_BUF;
		places[3] = 0;
		places[4] = UINT64_MAX - 2;
		h.stag = peer.pair.server.mr->rkey;
		h.to = places[i];
		send_fpdu(peer.fd, &h, "evil", 4);
		expect_terminate(&peer, TERM_DDP, TERM_DDP_TAGGED,
				 i == 4 ? TERM_TAGGED_WRAP : TERM_TAGGED_BOUNDS);
		peer_close(&peer);
	}
}

static void a_send_with_a_wrong_sequence_number(void **state)
{
	struct ddp_header h = {.last = true, .opcode = RDMAP_SEND, .msn = 2};

	(void)state;
	refuse(&h, "evil", 4, TERM_DDP, TERM_DDP_UNTAGGED, TERM_UNTAGGED_MSN);
}

static void a_send_with_an_offset_in_its_first_segment(void **state)
{
	struct ddp_header h = {.last = true, .opcode = RDMAP_SEND, .msn = 1, .mo = 4};

	(void)state;
	refuse(&h, "evil", 4, TERM_DDP, TERM_DDP_UNTAGGED, TERM_UNTAGGED_MO);
}

static void a_queue_that_does_not_exist(void **state)
{
	struct ddp_header h = {.last = true, .opcode = RDMAP_SEND, .msn = 1, .queue = 4};

	(void)state;
	refuse(&h, "evil", 4, TERM_DDP, TERM_DDP_UNTAGGED, TERM_UNTAGGED_QUEUE);
}

static void opcodes_on_the_wrong_queue_or_kind_of_buffer(void **state)
{
	struct ddp_header send = {.last = true, .opcode = RDMAP_SEND, .msn = 1, .queue = 1};
	struct ddp_header tagged = {.tagged = true, .last = true, .opcode = RDMAP_SEND};
	struct ddp_header write = {.last = true, .opcode = RDMAP_WRITE, .msn = 1};

	(void)state;
	refuse(&send, "evil", 4, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_BAD_OPCODE);
	refuse(&tagged, "evil", 4, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_BAD_OPCODE);
	refuse(&write, "evil", 4, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_BAD_OPCODE);
}

static void extensions_nobody_agreed_on(void **state)
{
	struct ddp_header h = {.last = true, .opcode = RDMAP_FLUSH_REQUEST, .msn = 1, .queue = 1};
	struct ddp_header imm = {.last = true, .opcode = RDMAP_SEND_IMM, .msn = 1};
	uint8_t flush[RDMAP_FLUSH_REQUEST_LEN] = {0};

	(void)state;
	refuse(&h, flush, sizeof(flush), TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_BAD_OPCODE);
	refuse(&imm, "evil", 4, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_BAD_OPCODE);
}

static void responses_nobody_asked_for(void **state)
{
	struct ddp_header read = {.tagged = true, .last = true, .opcode = RDMAP_READ_RESPONSE};
	struct ddp_header atomic = {
		.last = true, .opcode = RDMAP_ATOMIC_RESPONSE, .msn = 1, .queue = 3};

	(void)state;
	refuse(&read, "evil", 4, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_BAD_OPCODE);
	refuse(&atomic, "evil evil ev", 12, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_BAD_OPCODE);
}

static void an_invalidation_of_a_plain_region(void **state)
{
	struct ddp_header h = {.last = true, .opcode = RDMAP_SEND_INV, .msn = 1, .stag = 0x100};

	(void)state;
	refuse(&h, "evil", 4, TERM_RDMAP, TERM_RDMAP_PROTECTION, TERM_NOT_INVALIDATED);
}

static void a_read_request_of_the_wrong_length(void **state)
{
	struct ddp_header h = {.last = true, .opcode = RDMAP_READ_REQUEST, .msn = 1, .queue = 1};
	uint8_t payload[40] = {0};

	(void)state;
	refuse(&h, payload, 27, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_UNSPECIFIED);
	refuse(&h, payload, 40, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_UNSPECIFIED);
}

static void a_read_of_memory_that_was_not_granted(void **state)
{
	struct ddp_header h = {.last = true, .opcode = RDMAP_READ_REQUEST, .msn = 1, .queue = 1};
	struct rdmap_read_request request = {.size = 1u << 31};
	uint8_t payload[RDMAP_READ_REQUEST_LEN];
	struct peer peer;

	(void)state;
	peer_open(&peer, 0);
	request.source_stag = peer.pair.server.mr->rkey;
	request.source_to = (uintptr_t)peer.pair.server.buf;
	rdmap_encode_read_request(payload, &request);
	send_fpdu(peer.fd, &h, payload, sizeof(payload));
	expect_terminate(&peer, TERM_RDMAP, TERM_RDMAP_PROTECTION, TERM_BOUNDS);
	peer_close(&peer);
}

static void more_reads_at_once_than_agreed(void **state)
{
	struct ddp_header h = {.last = true, .opcode = RDMAP_READ_REQUEST, .queue = 1};
	struct rdmap_read_request request = {.size = PAIR_BUF};
	uint8_t buf[512], payload[RDMAP_READ_REQUEST_LEN];
	uint8_t *to = buf;
	struct peer peer;

	/* Three in one piece where two were agreed on; none can have been answered in between. */
	(void)state;
	peer_open(&peer, 0);
	request.source_stag = peer.pair.server.mr->rkey;
	request.source_to = (uintptr_t)peer.pair.server.buf;
	rdmap_encode_read_request(payload, &request);
	for (h.msn = 1; h.msn <= 3; h.msn++) {
		put16(to, DDP_UNTAGGED_LEN + sizeof(payload));
		ddp_encode(to + 2, &h);
		memcpy(to + 2 + DDP_UNTAGGED_LEN, payload, sizeof(payload));
		memset(to + 48, 0, 4);
		to += 52;
	}
	raw_send(peer.fd, buf, (size_t)(to - buf));
	expect_event(&peer.pair.server, RDMA_CM_EVENT_DISCONNECTED);
	close(peer.fd);
	peer_close(&peer);
}

static void versions_this_side_does_not_speak(void **state)
{
	struct peer peer;
	uint8_t write[24] = {0, 18, 0xc0, 0x40}, rdmap[24] = {0, 18, 0xc1, 0x80};

	(void)state;
	peer_open(&peer, 0);
	raw_send(peer.fd, write, sizeof(write));
	expect_terminate(&peer, TERM_DDP, TERM_DDP_TAGGED, TERM_TAGGED_VERSION);
	peer_close(&peer);
	peer_open(&peer, 0);
	raw_send(peer.fd, rdmap, sizeof(rdmap));
	expect_terminate(&peer, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_RDMAP_BAD_VERSION);
	peer_close(&peer);
}

static void a_frame_shorter_than_its_header(void **state)
{
	struct peer peer;
	uint8_t tiny[8] = {0, 2, 0xc1, 0x40};

	(void)state;
	peer_open(&peer, 0);
	raw_send(peer.fd, tiny, sizeof(tiny));
	expect_terminate(&peer, TERM_LLP, 0, TERM_LLP_LENGTH);
	peer_close(&peer);
}

static void a_frame_with_a_wrong_crc_is_not_placed(void **state)
{
	struct ddp_header h = {.tagged = true, .last = true};
	struct peer peer;

	(void)state;
	peer_open(&peer, MPA_FLAG_CRC);
	assert_true(peer.reply_flags & MPA_FLAG_CRC);
	h.stag = peer.pair.server.mr->rkey;
	h.to = (uintptr_t)peer.pair.server.buf;
	send_fpdu(peer.fd, &h, "evil", 4); /* its CRC is zero */
	expect_terminate(&peer, TERM_LLP, 0, TERM_LLP_CRC);
	peer_close(&peer);
}

static void a_peer_that_dies_in_the_middle_of_a_frame(void **state)
{
	struct ddp_header h = {.last = true, .opcode = RDMAP_SEND, .msn = 1};
	struct linger reset = {.l_onoff = 1};
	uint8_t buf[20] = {0xff, 0xff};
	struct peer peer;
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		peer_open(&peer, 0);
		post_recv(&peer.pair.server, 5, 0, PAIR_BUF);
		ddp_encode(buf + 2, &h);
		raw_send(peer.fd, buf, sizeof(buf));
		if (i)
			setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(peer.fd);
		assert_int_equal(expect_wc(peer.pair.server.cq).status, IBV_WC_WR_FLUSH_ERR);
		expect_event(&peer.pair.server, RDMA_CM_EVENT_DISCONNECTED);
		peer_close(&peer);
	}
}

static void noise_after_the_set_up(void **state)
{
	struct peer peer;
	uint8_t noise[4096];
	int round;
	size_t i;

	(void)state;
	srand(4711);
	for (round = 0; round < 50; round++) {
		for (i = 0; i < sizeof(noise); i++)
			noise[i] = (uint8_t)rand();
		peer_open(&peer, round & 1 ? MPA_FLAG_CRC : 0);
		if (round % 3 == 0)
			noise[0] = 0; /* a short frame, so that it is looked at */
		if (send(peer.fd, noise, sizeof(noise), MSG_NOSIGNAL) < 0)
			errno = 0;
		close(peer.fd);
		expect_event(&peer.pair.server, RDMA_CM_EVENT_DISCONNECTED);
		peer_close(&peer);
	}
}

static void bad_set_up_frames_are_closed_or_rejected(void **state)
{
	struct pair_setup setup = {.raw = true};
	struct mpa_frame frame = {.revision = 1}, got;
	struct pair pair;
	uint8_t buf[MPA_HDR_LEN];
	int fd;

	(void)state;
	pair_open(&pair, &setup);
	fd = raw_connect(&pair);
	raw_send(fd, "GET / HTTP/1.0\r\n\r\n\r\n", 20);
	assert_closed(fd);
	frame.priv_len = 513;
	mpa_encode(buf, &frame);
	fd = raw_connect(&pair);
	raw_send(fd, buf, sizeof(buf));
	assert_closed(fd);
	frame.priv_len = 0;
	frame.revision = 9;
	mpa_encode(buf, &frame);
	fd = raw_connect(&pair);
	raw_send(fd, buf, sizeof(buf));
	assert_closed(fd);
	frame.revision = 2;
	frame.flags = MPA_FLAG_ENHANCED; /* ... without the words */
	mpa_encode(buf, &frame);
	fd = raw_connect(&pair);
	raw_send(fd, buf, sizeof(buf));
	assert_closed(fd);
	fd = raw_connect(&pair);
	send_request(fd, MPA_FLAG_MARKERS);
	raw_recv(fd, buf, sizeof(buf));
	assert_true(mpa_decode(buf, true, &got));
	assert_true(got.flags & MPA_FLAG_REJECT);
	assert_closed(fd);
	pair_close(&pair);
}

static void a_flood_of_silent_connections_leaves_room_for_a_real_one(void **state)
{
	enum { FLOOD = 300 };
	struct peer peer;
	struct pair_setup setup = {.raw = true};
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	uint8_t buf[MPA_HDR_LEN];
	int fds[FLOOD], i;

	(void)state;
	pair_open(&peer.pair, &setup);
	for (i = 0; i < FLOOD; i++) {
		fds[i] = raw_connect(&peer.pair);
		raw_send(fds[i], "MPA ID", i % 7);
	}
	peer.fd = raw_connect(&peer.pair);
	send_request(peer.fd, 0);
	peer.pair.server.id = expect_request(&peer.pair.server, NULL);
	side_open(&peer.pair.server, NULL);
	assert_int_equal(rdma_accept(peer.pair.server.id, &param), 0);
	expect_event(&peer.pair.server, RDMA_CM_EVENT_ESTABLISHED);
	raw_recv(peer.fd, buf, sizeof(buf));
	/* the oldest ones were dropped */
	assert_closed(fds[0]);
	for (i = 1; i < FLOOD; i++)
		close(fds[i]);
	close(peer.fd);
	expect_event(&peer.pair.server, RDMA_CM_EVENT_DISCONNECTED);
	peer_close(&peer);
}

static void a_listener_may_go_while_peers_are_half_way(void **state)
{
	struct pair_setup setup = {.raw = true};
	struct pair pair;
	int silent, asked;
	struct pollfd pfd;

	(void)state;
	pair_open(&pair, &setup);
	silent = raw_connect(&pair);
	asked = raw_connect(&pair);
	send_request(asked, 0);
	pfd = (struct pollfd){.fd = pair.server.channel->fd, .events = POLLIN};
	assert_int_equal(poll(&pfd, 1, 5000), 1); /* the request is queued, not taken */
	pair_close(&pair);
	assert_closed(silent);
	assert_closed(asked);
}

static void a_request_that_needs_the_extension_is_refused_without_it(void **state)
{
	struct ddp_header first = {.tagged = true, .last = true};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_IMM}, *bad;
	struct peer peer;

	(void)state;
	peer_open(&peer, 0);
	assert_int_equal(peer.reply_flags & MPA_FLAG_EXTENDED, 0);
	send_fpdu(peer.fd, &first, "", 0);
	assert_int_equal(ibv_post_send(peer.pair.server.id->qp, &wr, &bad), EOPNOTSUPP);
	wr.opcode = IBV_WR_SEND;
	assert_int_equal(ibv_post_send(peer.pair.server.id->qp, &wr, &bad), 0);
	close(peer.fd);
	expect_event(&peer.pair.server, RDMA_CM_EVENT_DISCONNECTED);
	peer_close(&peer);
	peer_open(&peer, MPA_FLAG_EXTENDED);
	assert_true(peer.reply_flags & MPA_FLAG_EXTENDED);
	close(peer.fd);
	expect_event(&peer.pair.server, RDMA_CM_EVENT_DISCONNECTED);
	peer_close(&peer);
}

#define TEST(f) cmocka_unit_test_setup(f, with_time_limit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_write_to_an_unknown_stag),
		TEST(writes_out_of_bounds),
		TEST(a_send_with_a_wrong_sequence_number),
		TEST(a_send_with_an_offset_in_its_first_segment),
		TEST(a_queue_that_does_not_exist),
		TEST(opcodes_on_the_wrong_queue_or_kind_of_buffer),
		TEST(extensions_nobody_agreed_on),
		TEST(responses_nobody_asked_for),
		TEST(an_invalidation_of_a_plain_region),
		TEST(a_read_request_of_the_wrong_length),
		TEST(a_read_of_memory_that_was_not_granted),
		TEST(more_reads_at_once_than_agreed),
		TEST(versions_this_side_does_not_speak),
		TEST(a_frame_shorter_than_its_header),
		TEST(a_frame_with_a_wrong_crc_is_not_placed),
		TEST(a_peer_that_dies_in_the_middle_of_a_frame),
		TEST(noise_after_the_set_up),
		TEST(bad_set_up_frames_are_closed_or_rejected),
		TEST(a_flood_of_silent_connections_leaves_room_for_a_real_one),
		TEST(a_listener_may_go_while_peers_are_half_way),
		TEST(a_request_that_needs_the_extension_is_refused_without_it),
	};

	return cmocka_run_group_tests_name("softrnic_hostile", tests, NULL, NULL);
}
