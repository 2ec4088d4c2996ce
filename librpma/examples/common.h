/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the examples share, so that each shows one thing.  Example 01 does without most of it and
 * shows how a connection is made and ended.
 *
 * Unless said otherwise the functions return 0, or -1 after a line on stderr.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <librpma.h>

/* is ret an error of librpma?  Then it is told on stderr, with what was tried. */
bool failed(const char *what, int ret);

/* LOCAL: addr is an address of this host; REMOTE: addr is the server's */
int peer_open(const char *addr, enum rpma_util_ibv_context_type type, struct rpma_peer **peer_ptr);

/* size bytes of zeros, page-aligned; NULL if there is no memory; free() gives them back */
void *buffer_new(size_t size);

/* server: listen, and say so by the line "ready" on stdout */
int server_listen(struct rpma_peer *peer, const char *addr, const char *port,
		  struct rpma_ep **ep_ptr);

/* server: wait for a client and accept it, so that it can begin; cfg and pdata may be NULL */
int server_accept(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
		  const struct rpma_conn_private_data *pdata, struct rpma_conn **conn_ptr);

/* server: wait until the client has gone; *conn_ptr is NULL afterwards */
int server_wait_closed(struct rpma_conn **conn_ptr);

/* client: connect; cfg may be NULL */
int client_connect(struct rpma_peer *peer, const char *addr, const char *port,
		   const struct rpma_conn_cfg *cfg, struct rpma_conn **conn_ptr);

/* client: end the connection; *conn_ptr is NULL afterwards */
int client_disconnect(struct rpma_conn **conn_ptr);

/* wait for an event of the connection; any other is an error */
int conn_wait_for(struct rpma_conn *conn, enum rpma_conn_event wanted);

/* wait for one completion, which has to be a success */
int cq_wait_one(struct rpma_cq *cq, struct ibv_wc *wc);

/* the completion has to be a success */
int wc_check(const struct ibv_wc *wc);

/*
 * What a server offers: memory, and whether its platform persists what the device writes.  It
 * travels as private data, which anybody on the way can read and change: good for a trusted
 * network.
 */
#define MR_DESCRIPTOR_SIZE   21
#define PCFG_DESCRIPTOR_SIZE 1

struct offer {
	uint8_t mr[MR_DESCRIPTOR_SIZE];
	uint8_t pcfg[PCFG_DESCRIPTOR_SIZE];
};

/* server */
int offer_make(const struct rpma_mr_local *mr, bool direct_write_to_pmem, struct offer *offer);

/* client: the remote region, of at least size bytes; the peer configuration is applied to conn */
int offer_take(struct rpma_conn *conn, size_t size, struct rpma_mr_remote **mr_ptr);

#endif /* EXAMPLES_COMMON_H */
