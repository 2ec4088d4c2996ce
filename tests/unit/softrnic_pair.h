/* SPDX-License-Identifier: BSD-3-Clause */
/* Two connected queue pairs in one process, over loopback, for the software RNIC's tests. */
#ifndef SOFTRNIC_PAIR_H
#define SOFTRNIC_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "softrnic.h"

#define PAIR_BUF   (1u << 20)
#define PAIR_DEPTH 64
#define PAIR_ACCESS                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | SRN_ACCESS_FLUSH_GLOBAL | SRN_ACCESS_FLUSH_PERSISTENT)

struct side {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	struct ibv_qp_ex *qpx;
	struct ibv_mr *mr;
	uint8_t *buf;
};

struct pair {
	struct rdma_cm_id *listen;
	struct side client, server;
	struct ibv_srq *srq; /* the server's, if the test wants one */
};

/* What a test wants changed before the connection; both may be NULL. */
struct pair_setup {
	struct rdma_conn_param param;
	bool use_srq;
	bool raw; /* only listen: the test is the client, by a plain socket */
};

void pair_open(struct pair *pair, const struct pair_setup *setup);
void pair_close(struct pair *pair);
void side_open(struct side *side, struct ibv_srq *srq);
uint16_t pair_port(struct pair *pair);
/* A plain socket, connected to the pair's listener, that has sent a request for a connection. */
int pair_request(struct pair *pair);
/* The next event of the channel; it is of the type expected and acked. */
int expect_event(struct side *side, enum rdma_cm_event_type type);
struct rdma_cm_id *expect_request(struct side *side, struct rdma_conn_param *param);
/* The next completion, within seconds. */
struct ibv_wc expect_wc(struct ibv_cq *cq);
struct ibv_wc expect_success(struct ibv_cq *cq, enum ibv_wc_opcode opcode);
int post(struct side *side, struct ibv_send_wr *wr);
void post_recv(struct side *side, uint64_t wr_id, uint32_t offset, uint32_t length);
struct ibv_sge sge_of(struct side *side, uint32_t offset, uint32_t length);
/* A signalled request from the client's buffer to the server's. */
struct ibv_send_wr request(enum ibv_wr_opcode opcode, struct pair *pair, struct ibv_sge *sge,
			   uint32_t remote_offset);
void fill(uint8_t *buf, size_t len, unsigned int seed);
/* Has the test program end with an error instead of hanging. */
/* The clock as it is, however slow it goes for the software RNIC (softrnic_pair.c). */
uint64_t __real_srn_now_ns(void);

int with_time_limit(void **state);
/* For what must come: while (!it && in_time(until)). */
uint64_t test_limit(void);
bool in_time(uint64_t until);
/* Polls a CQ until that counts; the engine may have ended it again when this returns. */
void make_polled(struct ibv_cq *cq);
void expect_not_polled(struct ibv_cq *cq);

#endif
