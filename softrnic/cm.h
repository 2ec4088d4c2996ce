/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager's half of softrnic.h, which includes it. */
#ifndef SOFTRNIC_CM_H
#define SOFTRNIC_CM_H

enum srn_id_state {
	SRN_ID_IDLE,
	SRN_ID_BOUND,
	SRN_ID_ADDR,
	SRN_ID_ROUTE,
	SRN_ID_CONNECTING,
	SRN_ID_LISTENING,
	SRN_ID_REQUEST, /* passive: MPA request received */
	SRN_ID_CONNECTED,
	SRN_ID_DISCONNECTED,
};

struct srn_channel {
	struct rdma_event_channel channel;
	struct srn_evq evq;
};

struct srn_cm_event {
	struct srn_event_node node;
	struct rdma_cm_event event;
	struct srn_id *id; /* on whose account it is: destroying that waits for the ack */
	bool delivered;
	TAILQ_ENTRY(srn_cm_event) of_id;
	uint8_t private_data[256];
};

struct srn_conn;
struct srn_listener;

struct srn_id {
	struct rdma_cm_id id;
	pthread_mutex_t lock;
	pthread_cond_t acked;
	TAILQ_HEAD(, srn_cm_event) events; /* not yet acked */
	_Atomic enum srn_id_state state;
	atomic_bool disconnect_told;
	bool sync;
	bool reuse, afonly;
	int tos;
	int bound_fd;
	struct srn_conn *conn;
	struct srn_listener *listener;
	struct srn_listener *parent; /* of a request not yet accepted or rejected */
	TAILQ_ENTRY(srn_id) sibling;
	struct ibv_qp_init_attr *qp_attr; /* of rdma_create_ep on a listening id */
	struct rdma_conn_param request;   /* what the peer asked for */
	bool own_send_cq, own_recv_cq;
};

static inline struct srn_id *srn_id(struct rdma_cm_id *id)
{
	return (struct srn_id *)id;
}

struct srn_id *srn_id_new(struct rdma_event_channel *channel, void *context,
			  enum rdma_port_space ps);
void srn_id_bind_device(struct srn_id *id);
/* Queues an event; data may be NULL. Takes no lock but the event queue's and the id's event lock.
 */
int srn_cm_event(struct srn_id *id, struct srn_id *listen, enum rdma_cm_event_type type, int status,
		 const struct rdma_conn_param *param);
int srn_sync_complete(struct srn_id *id);      /* a synchronous id waits for its event here */
int srn_seterr(int err);                       /* errno = err, -1; 0 stays 0 */
int srn_socket(struct srn_id *id, int family); /* the id's bound one, or new; -1 */
/* tcp.c: the options of a new socket, and those that depend on who the peer is. */
void srn_tcp_new(int fd);
void srn_tcp_established(int fd);
socklen_t srn_addr_len(const struct sockaddr *addr);
void srn_answered(struct srn_id *id);        /* a request was accepted, rejected or dropped */
void srn_id_drain(struct srn_id *id);        /* waits until its events are acked */
void srn_id_disconnected(struct srn_id *id); /* tells once */

/* mpa_conn.c: a TCP connection until its queue pair has it. */
struct srn_conn {
	struct srn_src src;
	struct srn_id *id; /* NULL while a listener's */
	/*
	 * The passive side's.  Its lock guards listed: whether the connection is one of its
	 * handshakes still.  A listener that ends waits for the handlers of those that are, so
	 * that a handler may take that lock first and ask then.
	 */
	struct srn_listener *listener;
	bool listed;
	TAILQ_ENTRY(srn_conn) link;
	bool active;
	enum {
		SRN_CONN_TCP,
		SRN_CONN_SEND,
		SRN_CONN_HEADER,
		SRN_CONN_PRIVATE,
		SRN_CONN_IDLE
	} stage;
	uint8_t buf[MPA_HDR_LEN + MPA_PRIV_MAX];
	uint32_t have, want;
	struct mpa_frame peer;
	struct mpa_enhanced depths; /* the peer's */
	uint32_t ord, ird;
	uint32_t qp_num;
	uint64_t rnr_timeout;
};

struct srn_listener {
	struct srn_src src;
	struct srn_id *id;
	pthread_mutex_t lock;
	TAILQ_HEAD(, srn_conn) handshakes;
	unsigned int handshake_count;
	TAILQ_HEAD(, srn_id) requests; /* the program has not answered */
	unsigned int request_count, backlog;
};

int srn_conn_connect(struct srn_id *id, const struct rdma_conn_param *param);
int srn_conn_accept(struct srn_id *id, const struct rdma_conn_param *param);
int srn_conn_reject(struct srn_id *id, const void *data, uint8_t len);
void srn_conn_free(struct srn_conn *conn);
int srn_conn_passive(struct srn_listener *listener, int fd);
int srn_listen(struct srn_id *id, int backlog);
void srn_listener_free(struct srn_listener *listener);
/* With the listener's lock held: conn is none of its handshakes any more; false if it was none. */
bool srn_listener_forget(struct srn_listener *listener, struct srn_conn *conn);
/* A whole request came in: makes the new id and tells the program. */
int srn_listener_request(struct srn_conn *conn, const uint8_t *data, size_t len);

#endif
