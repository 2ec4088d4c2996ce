// SPDX-License-Identifier: BSD-3-Clause
/* Every operation between two connected queue pairs. */
#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <stdlib.h>

#include "softrnic_pair.h"

static void a_write_places_the_bytes_and_completes(void **state)
{
	const uint32_t sizes[] = {1, 3, 8, 4093, 4096, 65536, 65537, 700001};
	struct ibv_send_wr wr, read;
	struct ibv_sge sge, back;
	struct pair pair;
	unsigned int i;

	(void)state;
	pair_open(&pair, NULL);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		fill(pair.client.buf, sizes[i], i);
		sge = sge_of(&pair.client, 0, sizes[i]);
		back = sge_of(&pair.client, PAIR_BUF - 8, 8);
		wr = request(IBV_WR_RDMA_WRITE, &pair, &sge, 5);
		/* A read's response shows that the write was placed. */
		read = request(IBV_WR_RDMA_READ, &pair, &back, PAIR_BUF - 8);
		wr.next = &read;
		assert_int_equal(post(&pair.client, &wr), 0);
		expect_success(pair.client.cq, IBV_WC_RDMA_WRITE);
		expect_success(pair.client.cq, IBV_WC_RDMA_READ);
		assert_memory_equal(pair.server.buf + 5, pair.client.buf, sizes[i]);
		assert_int_equal(pair.server.buf[5 + sizes[i]],
				 i ? pair.server.buf[5 + sizes[i]] : 0);
	}
	pair_close(&pair);
}

static void a_read_brings_the_bytes_into_several_places(void **state)
{
	struct ibv_sge sges[3];
	struct ibv_send_wr wr;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	fill(pair.server.buf, 300000, 3);
	sges[0] = sge_of(&pair.client, 0, 100001);
	sges[1] = sge_of(&pair.client, 200000, 7);
	sges[2] = sge_of(&pair.client, 400000, 150000);
	wr = request(IBV_WR_RDMA_READ, &pair, sges, 17);
	wr.num_sge = 3;
	assert_int_equal(post(&pair.client, &wr), 0);
	assert_int_equal(expect_success(pair.client.cq, IBV_WC_RDMA_READ).byte_len, 250008);
	assert_memory_equal(pair.client.buf, pair.server.buf + 17, 100001);
	assert_memory_equal(pair.client.buf + 200000, pair.server.buf + 17 + 100001, 7);
	assert_memory_equal(pair.client.buf + 400000, pair.server.buf + 17 + 100008, 150000);
	pair_close(&pair);
}

static void a_read_of_nothing_completes(void **state)
{
	struct ibv_send_wr wr;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	wr = request(IBV_WR_RDMA_READ, &pair, NULL, 0);
	wr.wr.rdma.rkey = 0;
	assert_int_equal(post(&pair.client, &wr), 0);
	expect_success(pair.client.cq, IBV_WC_RDMA_READ);
	pair_close(&pair);
}

static void more_reads_than_the_depth_all_complete_in_order(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;
	unsigned int i;

	(void)state;
	pair_open(&pair, NULL);
	fill(pair.server.buf, PAIR_DEPTH * 100, 9);
	for (i = 0; i < PAIR_DEPTH; i++) {
		sge = sge_of(&pair.client, i * 100, 100);
		wr = request(IBV_WR_RDMA_READ, &pair, &sge, i * 100);
		wr.wr_id = i;
		assert_int_equal(post(&pair.client, &wr), 0);
	}
	for (i = 0; i < PAIR_DEPTH; i++)
		assert_int_equal(expect_success(pair.client.cq, IBV_WC_RDMA_READ).wr_id, i);
	assert_memory_equal(pair.client.buf, pair.server.buf, PAIR_DEPTH * 100);
	pair_close(&pair);
}

static void sends_arrive_in_the_receives_posted(void **state)
{
	struct ibv_sge sges[2];
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	fill(pair.client.buf, 100000, 1);
	post_recv(&pair.server, 7, 0, 200000);
	post_recv(&pair.server, 8, 300000, 10);
	sges[0] = sge_of(&pair.client, 0, 60000);
	sges[1] = sge_of(&pair.client, 60000, 40000);
	wr = request(IBV_WR_SEND, &pair, sges, 0);
	wr.num_sge = 2;
	assert_int_equal(post(&pair.client, &wr), 0);
	wr.num_sge = 0;
	assert_int_equal(post(&pair.client, &wr), 0);
	wc = expect_success(pair.server.cq, IBV_WC_RECV);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.byte_len, 100000);
	assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, 0);
	wc = expect_success(pair.server.cq, IBV_WC_RECV);
	assert_int_equal(wc.wr_id, 8);
	assert_int_equal(wc.byte_len, 0);
	assert_memory_equal(pair.server.buf, pair.client.buf, 100000);
	expect_success(pair.client.cq, IBV_WC_SEND);
	expect_success(pair.client.cq, IBV_WC_SEND);
	pair_close(&pair);
}

static void the_responder_may_send_first(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	post_recv(&pair.client, 1, 0, 64);
	sge = sge_of(&pair.server, 0, 64);
	wr = request(IBV_WR_SEND, &pair, &sge, 0);
	assert_int_equal(post(&pair.server, &wr), 0);
	expect_success(pair.server.cq, IBV_WC_SEND);
	expect_success(pair.client.cq, IBV_WC_RECV);
	pair_close(&pair);
}

static void immediate_data_reaches_the_receive(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	post_recv(&pair.server, 1, 0, 64);
	post_recv(&pair.server, 2, 0, 64);
	sge = sge_of(&pair.client, 0, 64);
	wr = request(IBV_WR_SEND_WITH_IMM, &pair, &sge, 0);
	wr.imm_data = htobe32(0xcafe0001);
	assert_int_equal(post(&pair.client, &wr), 0);
	sge.length = 40000;
	wr = request(IBV_WR_RDMA_WRITE_WITH_IMM, &pair, &sge, 4096);
	wr.imm_data = htobe32(0xcafe0002);
	assert_int_equal(post(&pair.client, &wr), 0);
	wc = expect_success(pair.server.cq, IBV_WC_RECV);
	assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(be32toh(wc.imm_data), 0xcafe0001);
	wc = expect_success(pair.server.cq, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(be32toh(wc.imm_data), 0xcafe0002);
	assert_int_equal(wc.byte_len, 40000);
	assert_int_equal(wc.wr_id, 2);
	pair_close(&pair);
}

static void atomics_change_the_remote_word_and_return_the_old(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	uint64_t *remote, *local;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	remote = (uint64_t *)(void *)(pair.server.buf + 64);
	local = (uint64_t *)(void *)pair.client.buf;
	*remote = 0xffffffff;
	sge = sge_of(&pair.client, 0, 8);
	wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, &pair, &sge, 64);
	wr.wr.atomic.compare_add = 1;
	assert_int_equal(post(&pair.client, &wr), 0);
	expect_success(pair.client.cq, IBV_WC_FETCH_ADD);
	assert_true(*local == 0xffffffff && *remote == 0x100000000);
	wr = request(IBV_WR_ATOMIC_CMP_AND_SWP, &pair, &sge, 64);
	wr.wr.atomic.compare_add = 5;
	wr.wr.atomic.swap = 6;
	assert_int_equal(post(&pair.client, &wr), 0);
	expect_success(pair.client.cq, IBV_WC_COMP_SWAP);
	assert_true(*local == 0x100000000 && *remote == 0x100000000);
	wr.wr.atomic.compare_add = 0x100000000;
	assert_int_equal(post(&pair.client, &wr), 0);
	expect_success(pair.client.cq, IBV_WC_COMP_SWAP);
	assert_true(*local == 0x100000000 && *remote == 6);
	pair_close(&pair);
}

static void an_atomic_write_stores_eight_bytes(void **state)
{
	struct pair pair;
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	(void)state;
	pair_open(&pair, NULL);
	ibv_wr_start(pair.client.qpx);
	pair.client.qpx->wr_id = 5;
	pair.client.qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(pair.client.qpx, pair.server.mr->rkey, (uintptr_t)pair.server.buf + 8,
			    "persists");
	assert_int_equal(ibv_wr_complete(pair.client.qpx), 0);
	assert_int_equal(expect_success(pair.client.cq, IBV_WC_ATOMIC_WRITE).wr_id, 5);
	assert_memory_equal(pair.server.buf, "\0\0\0\0\0\0\0\0persists\0", 17);
	/* and by ibv_post_send, from memory and inline */
	memcpy(pair.client.buf, "by memory inlined", 16);
	sge = sge_of(&pair.client, 0, 8);
	wr = request(IBV_WR_ATOMIC_WRITE, &pair, &sge, 16);
	assert_int_equal(post(&pair.client, &wr), 0);
	expect_success(pair.client.cq, IBV_WC_ATOMIC_WRITE);
	sge = sge_of(&pair.client, 8, 8);
	wr = request(IBV_WR_ATOMIC_WRITE, &pair, &sge, 24);
	wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(post(&pair.client, &wr), 0);
	expect_success(pair.client.cq, IBV_WC_ATOMIC_WRITE);
	assert_memory_equal(pair.server.buf + 16, "by memory inline", 16);
	pair_close(&pair);
}

static void flush(struct side *side, uint32_t rkey, void *addr, size_t len, uint8_t type,
		  uint8_t level)
{
#if SRN_HAVE_FLUSH
	side->qpx->wr_flush(side->qpx, rkey, (uintptr_t)addr, len, type, level);
#else
	((struct srn_qp *)(void *)side->qpx)
		->v.wr_flush(side->qpx, rkey, (uintptr_t)addr, len, type, level);
#endif
}

static void a_native_flush_completes_after_the_writes_before_it(void **state)
{
	struct pair pair;
	uint8_t type;

	(void)state;
	pair_open(&pair, NULL);
	fill(pair.client.buf, 65536, 4);
	for (type = SRN_FLUSH_GLOBAL; type <= SRN_FLUSH_PERSISTENT; type++) {
		ibv_wr_start(pair.client.qpx);
		pair.client.qpx->wr_flags = 0;
		ibv_wr_rdma_write(pair.client.qpx, pair.server.mr->rkey,
				  (uintptr_t)pair.server.buf);
		ibv_wr_set_sge(pair.client.qpx, pair.client.mr->lkey, (uintptr_t)pair.client.buf,
			       65536);
		pair.client.qpx->wr_flags = IBV_SEND_SIGNALED;
		flush(&pair.client, pair.server.mr->rkey, pair.server.buf, 65536, type,
		      SRN_FLUSH_RANGE);
		assert_int_equal(ibv_wr_complete(pair.client.qpx), 0);
		expect_success(pair.client.cq, (enum ibv_wc_opcode)SRN_WC_FLUSH);
		assert_memory_equal(pair.server.buf, pair.client.buf, 65536);
	}
	ibv_wr_start(pair.client.qpx);
	flush(&pair.client, pair.server.mr->rkey, NULL, 0, SRN_FLUSH_PERSISTENT, SRN_FLUSH_MR);
	assert_int_equal(ibv_wr_complete(pair.client.qpx), 0);
	expect_success(pair.client.cq, (enum ibv_wc_opcode)SRN_WC_FLUSH);
	pair_close(&pair);
}

static void inline_data_may_be_reused_at_once(void **state)
{
	char word[16] = "inline payload!";
	struct ibv_sge sge = {(uintptr_t)word, sizeof(word), 0};
	struct ibv_send_wr wr;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	post_recv(&pair.server, 1, 0, 64);
	wr = request(IBV_WR_SEND, &pair, &sge, 0);
	wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(post(&pair.client, &wr), 0);
	memset(word, 'x', sizeof(word));
	expect_success(pair.server.cq, IBV_WC_RECV);
	assert_string_equal((char *)pair.server.buf, "inline payload!");
	pair_close(&pair);
}

static void unsignalled_requests_do_not_complete(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct pair pair;
	int i;

	(void)state;
	pair_open(&pair, NULL);
	sge = sge_of(&pair.client, 0, 8);
	for (i = 0; i < 3 * PAIR_DEPTH; i++) {
		wr = request(IBV_WR_RDMA_WRITE, &pair, &sge, 0);
		wr.send_flags = i % PAIR_DEPTH == PAIR_DEPTH - 1 ? IBV_SEND_SIGNALED : 0;
		wr.wr_id = (uint64_t)i;
		assert_int_equal(post(&pair.client, &wr), 0);
		if (wr.send_flags)
			assert_int_equal(expect_success(pair.client.cq, IBV_WC_RDMA_WRITE).wr_id,
					 i);
	}
	assert_int_equal(ibv_poll_cq(pair.client.cq, 1, &wc), 0);
	pair_close(&pair);
}

static void a_send_queue_is_full_until_its_completions_are_polled(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;
	int i;

	(void)state;
	pair_open(&pair, NULL);
	sge = sge_of(&pair.client, 0, 8);
	wr = request(IBV_WR_RDMA_WRITE, &pair, &sge, 0);
	for (i = 0; i < PAIR_DEPTH; i++)
		assert_int_equal(post(&pair.client, &wr), 0);
	assert_int_equal(post(&pair.client, &wr), ENOMEM);
	expect_success(pair.client.cq, IBV_WC_RDMA_WRITE);
	assert_int_equal(post(&pair.client, &wr), 0);
	assert_int_equal(post(&pair.client, &wr), ENOMEM);
	pair_close(&pair);
}

static void a_fenced_request_waits_for_the_reads_before_it(void **state)
{
	struct ibv_send_wr read, write;
	struct ibv_sge sge;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	memset(pair.server.buf, 'n', 8);
	/* reads the word, then writes what was read somewhere else */
	sge = sge_of(&pair.client, 0, 8);
	read = request(IBV_WR_RDMA_READ, &pair, &sge, 0);
	write = request(IBV_WR_RDMA_WRITE, &pair, &sge, 100);
	write.send_flags |= IBV_SEND_FENCE;
	read.next = &write;
	assert_int_equal(post(&pair.client, &read), 0);
	expect_success(pair.client.cq, IBV_WC_RDMA_READ);
	expect_success(pair.client.cq, IBV_WC_RDMA_WRITE);
	sge = sge_of(&pair.client, 64, 8);
	read = request(IBV_WR_RDMA_READ, &pair, &sge, 100);
	assert_int_equal(post(&pair.client, &read), 0);
	expect_success(pair.client.cq, IBV_WC_RDMA_READ);
	assert_memory_equal(pair.client.buf + 64, "nnnnnnnn", 8);
	pair_close(&pair);
}

static void a_shared_receive_queue_feeds_the_queue_pair(void **state)
{
	struct pair_setup setup = {.use_srq = true};
	struct ibv_send_wr wr;
	struct ibv_recv_wr recv = {.wr_id = 77, .num_sge = 1}, *bad;
	struct ibv_sge sge, to;
	struct pair pair;

	(void)state;
	pair_open(&pair, &setup);
	to = sge_of(&pair.server, 0, 64);
	recv.sg_list = &to;
	assert_int_equal(ibv_post_recv(pair.server.id->qp, &recv, &bad), EINVAL);
	sge = sge_of(&pair.client, 0, 64);
	fill(pair.client.buf, 64, 2);
	wr = request(IBV_WR_SEND, &pair, &sge, 0);
	/* the first one comes before there is a receive: it waits */
	assert_int_equal(post(&pair.client, &wr), 0);
	expect_success(pair.client.cq, IBV_WC_SEND);
	assert_int_equal(ibv_post_srq_recv(pair.srq, &recv, &bad), 0);
	assert_int_equal(expect_success(pair.server.cq, IBV_WC_RECV).wr_id, 77);
	assert_memory_equal(pair.server.buf, pair.client.buf, 64);
	pair_close(&pair);
}

static void a_send_waits_until_a_receive_is_posted(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct pair pair;
	int i;

	(void)state;
	pair_open(&pair, NULL);
	sge = sge_of(&pair.client, 0, 8192);
	wr = request(IBV_WR_SEND, &pair, &sge, 0);
	for (i = 0; i < 10; i++) {
		assert_int_equal(post(&pair.client, &wr), 0);
		expect_success(pair.client.cq, IBV_WC_SEND);
	}
	assert_int_equal(ibv_poll_cq(pair.server.cq, 1, &wc), 0);
	for (i = 0; i < 10; i++) {
		post_recv(&pair.server, (uint64_t)i, 0, 8192);
		assert_int_equal(expect_success(pair.server.cq, IBV_WC_RECV).wr_id, i);
	}
	pair_close(&pair);
}

static void an_armed_channel_tells_of_a_completion_nobody_polls_for(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_cq *cq;
	struct pair pair;
	struct pollfd pfd;
	void *context;
	int i;

	(void)state;
	pair_open(&pair, NULL);
	sge = sge_of(&pair.client, 0, 8);
	pfd = (struct pollfd){.fd = pair.server.comp->fd, .events = POLLIN};
	for (i = 0; i < 3; i++) {
		post_recv(&pair.server, 1, 0, 64);
		assert_int_equal(ibv_req_notify_cq(pair.server.cq, 0), 0);
		assert_int_equal(poll(&pfd, 1, 0), 0);
		wr = request(IBV_WR_SEND, &pair, &sge, 0);
		assert_int_equal(post(&pair.client, &wr), 0);
		assert_int_equal(poll(&pfd, 1, 5000), 1);
		assert_int_equal(ibv_get_cq_event(pair.server.comp, &cq, &context), 0);
		assert_ptr_equal(cq, pair.server.cq);
		assert_ptr_equal(context, &pair.server);
		ibv_ack_cq_events(cq, 1);
		expect_success(pair.server.cq, IBV_WC_RECV);
		expect_success(pair.client.cq, IBV_WC_SEND);
	}
	/* solicited only: the plain SEND does not tell, the solicited one does */
	post_recv(&pair.server, 1, 0, 64);
	post_recv(&pair.server, 2, 0, 64);
	assert_int_equal(ibv_req_notify_cq(pair.server.cq, 1), 0);
	wr = request(IBV_WR_SEND, &pair, &sge, 0);
	assert_int_equal(post(&pair.client, &wr), 0);
	assert_int_equal(expect_success(pair.server.cq, IBV_WC_RECV).wr_id, 1);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	wr.send_flags |= IBV_SEND_SOLICITED;
	assert_int_equal(post(&pair.client, &wr), 0);
	assert_int_equal(poll(&pfd, 1, 5000), 1);
	assert_int_equal(ibv_get_cq_event(pair.server.comp, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	pair_close(&pair);
}

static void the_extended_cq_calls_return_what_poll_returns(void **state)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_poll_cq_attr poll_attr = {0};
	struct ibv_cq_ex *ex;
	struct ibv_wc wc = {.wr_id = 9, .opcode = IBV_WC_SEND, .byte_len = 77, .qp_num = 3};

	(void)state;
	ex = ibv_create_cq_ex(srn_cm_context(), &attr);
	assert_non_null(ex);
	assert_int_equal(ibv_start_poll(ex, &poll_attr), ENOENT);
	srn_cq_push(ibv_cq_ex_to_cq(ex), &wc, false);
	wc.wr_id = 10;
	wc.status = IBV_WC_WR_FLUSH_ERR;
	srn_cq_push(ibv_cq_ex_to_cq(ex), &wc, false);
	assert_int_equal(ibv_start_poll(ex, &poll_attr), 0);
	assert_int_equal(ex->wr_id, 9);
	assert_int_equal(ibv_wc_read_byte_len(ex), 77);
	assert_int_equal(ibv_wc_read_qp_num(ex), 3);
	assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_SEND);
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(ex->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_next_poll(ex), ENOENT);
	ibv_end_poll(ex);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}

static void everything_also_works_with_crcs(void **state)
{
	setenv("SOFTRNIC_CRC", "1", 1);
	a_write_places_the_bytes_and_completes(state);
	a_read_brings_the_bytes_into_several_places(state);
	sends_arrive_in_the_receives_posted(state);
	immediate_data_reaches_the_receive(state);
	atomics_change_the_remote_word_and_return_the_old(state);
	a_send_waits_until_a_receive_is_posted(state);
	unsetenv("SOFTRNIC_CRC");
}

static void many_queue_pairs_share_a_cq(void **state)
{
	struct pair pairs[3];
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	int i, round;

	/* three pairs each with a CQ of its own, progress in any order */
	(void)state;
	for (i = 0; i < 3; i++)
		pair_open(&pairs[i], NULL);
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 3; i++) {
			sge = sge_of(&pairs[i].client, 0, 100);
			wr = request(IBV_WR_RDMA_READ, &pairs[i], &sge, 0);
			assert_int_equal(post(&pairs[i].client, &wr), 0);
		}
		for (i = 2; i >= 0; i--)
			expect_success(pairs[i].client.cq, IBV_WC_RDMA_READ);
	}
	for (i = 0; i < 3; i++)
		pair_close(&pairs[i]);
}

#define TEST(f) cmocka_unit_test_setup(f, with_time_limit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_write_places_the_bytes_and_completes),
		TEST(a_read_brings_the_bytes_into_several_places),
		TEST(a_read_of_nothing_completes),
		TEST(more_reads_than_the_depth_all_complete_in_order),
		TEST(sends_arrive_in_the_receives_posted),
		TEST(the_responder_may_send_first),
		TEST(immediate_data_reaches_the_receive),
		TEST(atomics_change_the_remote_word_and_return_the_old),
		TEST(an_atomic_write_stores_eight_bytes),
		TEST(a_native_flush_completes_after_the_writes_before_it),
		TEST(inline_data_may_be_reused_at_once),
		TEST(unsignalled_requests_do_not_complete),
		TEST(a_send_queue_is_full_until_its_completions_are_polled),
		TEST(a_fenced_request_waits_for_the_reads_before_it),
		TEST(a_shared_receive_queue_feeds_the_queue_pair),
		TEST(a_send_waits_until_a_receive_is_posted),
		TEST(an_armed_channel_tells_of_a_completion_nobody_polls_for),
		TEST(the_extended_cq_calls_return_what_poll_returns),
		TEST(everything_also_works_with_crcs),
		TEST(many_queue_pairs_share_a_cq),
	};

	return cmocka_run_group_tests_name("softrnic_ops", tests, NULL, NULL);
}
