/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One RDMA connection, made with rdma_cm and verbs alone: an independent other side for the
 * engines, free to say what they never would.
 */
#ifndef PEERS_LINK_H
#define PEERS_LINK_H

#include <stddef.h>
#include <stdint.h>
#include <rdma/rdma_cma.h>

enum {
	LINK_SLOTS = 64,       /* receives posted ahead */
	LINK_SLOT_SIZE = 512,  /* bytes of a message slot */
	LINK_REGION = 1 << 20, /* bytes of memory a listening peer offers */
	LINK_LIMIT_MS = 30000, /* no wait is longer */
};

struct link {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *arrivals;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_mr *mr; /* slots, then a message to send, then the region */
	uint8_t *memory;
	uint8_t private_data[256]; /* what the other side sent with its request or its answer */
	size_t private_size;
	int ended; /* the other side is gone */
};

void link_open(struct link *l);
void link_close(struct link *l);

/* Each returns 0, or the rdma_cm event that came instead (see rdma_event_str). */
int link_connect(struct link *l, const char *host, const char *port, const void *data, size_t size);
void link_listen(struct link *l, const char *host, const char *port);
void link_get_request(struct link *l);
int link_accept(struct link *l, const void *data, size_t size);
void link_reject(struct link *l, const void *data, size_t size);

/* Posts a SEND, or an RDMA write or read of remote memory; returns its completion status. */
enum ibv_wc_status link_send(struct link *l, const void *data, size_t size);
enum ibv_wc_status link_rdma(struct link *l, enum ibv_wr_opcode opcode, uint64_t address,
			     uint32_t rkey, size_t size);

/* Waits for a message; returns its length, or -1 when the connection ended instead. */
int link_recv(struct link *l, void *data);
void link_wait_end(struct link *l);

/* The memory a listening peer offers. */
uint8_t *link_region(struct link *l);

void die(const char *what, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
