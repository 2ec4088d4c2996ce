/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The software RNIC.
 *
 * A program preloads this library and finds the verbs and rdma_cm calls of libibverbs and librdmacm
 * here, with one device, softrnic0.  A connected queue pair is one TCP connection speaking iWARP.
 *
 *	program   ibv_* (device, pd, mr, cq, srq, qp, wr_api)      rdma_* (cm_*)
 *	             |  post.c: requests into rings                    |  ids, events
 *	             v                                                 v
 *	   frame.c, tx.c: requests and responses -> FPDUs         mpa_conn.c: connection set-up
 *	   rx.c, rx_message.c, rx_request.c: FPDUs -> memory           |
 *	             \___________________  stream.c: a QP's socket ____/
 *
 * Who moves the bytes: whoever polls a CQ, for all queue pairs of that CQ (progress.c).  One engine
 * thread per process (engine.c), born with the first connection, does the set-up of connections and
 * takes over queue pairs whose CQs nobody polls, unless a thread that polls another CQ can.  A
 *queue pair's bytes are moved under its lock, so the two never mix; while a CQ is polled its
 *sockets are not in the engine's epoll set at all.
 *
 * Lock order, outermost first:
 *	cm id -> cq.attach_lock -> list of polled CQs -> list of queue pairs -> qp.lock
 *	-> srq.lock -> mr table -> cq.lock -> event queue -> engine.lock
 * srn_src_remove() waits for a running handler, so it is called with none of these held.
 */
#ifndef SOFTRNIC_H
#define SOFTRNIC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "wire.h"

/* The headers turn some exported names into macros; here they are functions. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_query_port
#undef ibv_get_device_list

#define SRN_EXPORT                      __attribute__((visibility("default")))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Limits the device reports and keeps. */
#define SRN_MAX_QP_WR   16384
#define SRN_MAX_SGE     32
#define SRN_MIN_INLINE  64 /* what a queue pair has without asking */
#define SRN_MAX_INLINE  1024
#define SRN_MAX_CQE     4194303
#define SRN_MAX_SRQ_WR  32768
#define SRN_MAX_RD_ATOM 32
#define SRN_MAX_MSG     0x40000000u /* 1 GiB */
#define SRN_MAX_MR      (1 << 20)

/* Verbs of newer rdma-core headers; the values are ABI. */
#define SRN_WR_FLUSH                14
#define SRN_WC_FLUSH                8
#define SRN_QP_EX_WITH_FLUSH        (1 << 11)
#define SRN_ACCESS_FLUSH_GLOBAL     (1 << 8)
#define SRN_ACCESS_FLUSH_PERSISTENT (1 << 9)
#define SRN_FLUSH_GLOBAL            1
#define SRN_FLUSH_PERSISTENT        2
#define SRN_FLUSH_RANGE             0
#define SRN_FLUSH_MR                1
#define SRN_DEVICE_FLUSH_GLOBAL     (1ULL << 38)
#define SRN_DEVICE_FLUSH_PERSISTENT (1ULL << 39)
#define SRN_DEVICE_ATOMIC_WRITE     (1ULL << 40)

/*
 * System calls that are no cancellation points.  Polling and posting are none on a device; and a
 * thread that ended with one of the locks below held would leave it locked for ever.  Those made
 * all the time go past the C library, which costs nothing; sanitizers want to see them, however.
 */
#define SRN_NO_CANCEL(call)                                                     \
	({                                                                      \
		int no_cancel_old;                                              \
		__typeof__(call) no_cancel_ret;                                 \
                                                                                \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &no_cancel_old); \
		no_cancel_ret = (call);                                         \
		pthread_setcancelstate(no_cancel_old, NULL);                    \
		no_cancel_ret;                                                  \
	})
#ifdef SANITIZED
#define SRN_SYSCALL(name, ...) SRN_NO_CANCEL(name(__VA_ARGS__))
#else
#define SRN_SYSCALL(name, ...) syscall(SYS_##name, __VA_ARGS__)
#endif

/* monotonic, in nanoseconds (clock.c) */
uint64_t srn_now_ns(void);

/* ---- event queues: a counting eventfd that polls readable while something is queued (evq.c) */

struct srn_event_node {
	TAILQ_ENTRY(srn_event_node) link;
	unsigned int times; /* it is queued: so many events, one like the other */
};
TAILQ_HEAD(srn_event_list, srn_event_node);

struct srn_evq {
	int fd;
	pthread_mutex_t lock;
	struct srn_event_list list;
	unsigned int surplus; /* tokens that readers have or will get of events cancelled */
};

int srn_evq_init(struct srn_evq *evq);
void srn_evq_destroy(struct srn_evq *evq);
void srn_evq_push(struct srn_evq *evq, struct srn_event_node *node);
/*
 * Blocks as the descriptor's O_NONBLOCK says; NULL with errno set if there is nothing.  taken, if
 * not NULL, is called with the queue locked: who finds a node queued no more finds it taken.
 */
struct srn_event_node *srn_evq_pop(struct srn_evq *evq, void (*taken)(struct srn_event_node *));
/* Takes a node out, with all its events that nobody has popped; false if there are none. */
bool srn_evq_cancel(struct srn_evq *evq, struct srn_event_node *node);
/* Takes out the first node that matches what; NULL if there is none. */
struct srn_event_node *srn_evq_cancel_match(struct srn_evq *evq,
					    bool (*matches)(struct srn_event_node *, void *what),
					    void *what);

/* ---- the engine (engine.c) */

struct srn_src {
	int fd;
	/* Both run on the engine thread.  handle returns how much it moved (0 = nothing). */
	int (*handle)(struct srn_src *src, uint32_t events);
	void (*expire)(struct srn_src *src);
	uint64_t deadline;
	uint32_t wanted;   /* interest, as its owner has it */
	uint32_t interest; /* what the epoll set has */
	uint32_t slot, generation;
	atomic_bool registered;
	bool timed, kicked, unwatched;
	TAILQ_ENTRY(srn_src) timer, kick, unwatch;
};

/* Starts the thread of this process if there is none.  Returns an errno value. */
int srn_engine_start(void);
int srn_src_add(struct srn_src *src);
void srn_src_interest(struct srn_src *src, uint32_t events);
void srn_src_deadline(struct srn_src *src, uint64_t deadline_ns); /* 0 = none */
void srn_src_remove(struct srn_src *src);
/* Has the engine call handle(src, 0) soon. */
void srn_src_kick(struct srn_src *src);
bool srn_on_engine(void);
void srn_engine_wake(void);
/* Reads fd to its end (at most a second), then closes it: what was sent reaches the peer. */
void srn_linger(int fd);

/* What a forked child does about its parent's threads and connections (engine.c calls them). */
struct srn_cq;
void srn_polled_after_fork(void);
void srn_cq_after_fork(struct srn_cq *cq);
void srn_qps_after_fork(void);
void srn_mr_after_fork(void);
void srn_device_after_fork(void);
void srn_events_after_fork(void);
void srn_requests_after_fork(void);

/* ---- verbs objects */

struct srn_context {
	struct verbs_context v; /* first; ends with the public ibv_context */
	struct srn_evq async;
};

struct srn_async {
	struct srn_event_node node;
	struct ibv_async_event event;
};

static inline struct srn_context *srn_context(struct ibv_context *context)
{
	return container_of(verbs_get_ctx(context), struct srn_context, v);
}

struct ibv_context *srn_cm_context(void); /* the device as rdma_cm opens it: once a process */
struct ibv_pd *srn_cm_pd(void);
void srn_async_event(struct ibv_context *context, enum ibv_event_type type, void *element);
void srn_async_forget(struct ibv_context *context, void *element, pthread_mutex_t *mutex,
		      pthread_cond_t *cond, const uint32_t *given, const uint32_t *acked);

struct srn_pd {
	struct ibv_pd pd;
	atomic_int users;
};

struct srn_mr {
	struct ibv_mr mr;
	uint64_t iova;
	unsigned int access;
};

/*
 * Memory regions are looked up and used between these two, so that none goes away in use.
 * srn_mr_at() returns the local address of [addr, addr + len) if stag names a region of pd that
 * holds all of it and grants access; else NULL and *why, a TERM_ code of RDMAP.
 */
void srn_mr_lock(void);
void srn_mr_unlock(void);
void *srn_mr_at(struct ibv_pd *pd, uint32_t stag, uint64_t addr, uint64_t len, unsigned int access,
		uint8_t *why);
/* The whole region stag names, for flushes of selectivity level MR. */
bool srn_mr_whole(struct ibv_pd *pd, uint32_t stag, uint64_t *addr, uint64_t *len);

struct srn_qp;

struct srn_comp_channel {
	struct ibv_comp_channel channel;
	struct srn_evq evq;
};

struct srn_cq {
	struct ibv_cq_ex ex; /* first; its head is a struct ibv_cq */
	pthread_mutex_t lock;
	struct ibv_wc *ring;
	struct srn_qp **senders; /* whose send queue has room once that entry is polled */
	uint32_t size, head, count;
	int armed; /* 0, or the kind of event asked for */
	bool overrun;
	struct srn_event_node event;        /* in the completion channel */
	uint32_t events_given, async_given; /* counted under the event queues' locks */
	struct ibv_wc current;              /* of the extended polling calls */
	uint64_t wc_flags;

	/* Progress: the queue pairs whose bytes a poll of this CQ moves. */
	pthread_mutex_t attach_lock;
	struct srn_qp **qps;
	unsigned int qp_count, qp_room;
	unsigned int own_count;        /* the rest is adopted */
	int epfd;                      /* all their sockets, once they are many; else -1 */
	TAILQ_HEAD(, srn_qp) deferred; /* with epoll: those that have requests to send (lock) */
	atomic_bool polled;
	atomic_bool stand_aside;  /* somebody waits for attach_lock */
	atomic_bool incomplete;   /* epoll does not have them all */
	atomic_bool adopt_wanted; /* from the engine: look for queue pairs nobody polls */
	atomic_ulong polls, posts;
	atomic_ulong posts_polled; /* posts at the last poll */
	unsigned long polls_seen, posts_seen;
	unsigned int empty, streak, need;
	uint64_t empty_since, polled_since;
	TAILQ_ENTRY(srn_cq) polled_link;
};

enum { SRN_ARM_NONE, SRN_ARM_SOLICITED, SRN_ARM_ANY };

static inline struct srn_cq *srn_cq(struct ibv_cq *cq)
{
	return (struct srn_cq *)cq;
}

void srn_cq_push(struct ibv_cq *cq, const struct ibv_wc *wc, bool solicited);
/* A completion of the send queue: its request's place is free when the program has polled it. */
void srn_cq_push_send(struct srn_qp *qp, const struct ibv_wc *wc);
void srn_cq_forget_sender(struct srn_qp *qp);
int srn_cq_pop(struct srn_cq *cq, int num, struct ibv_wc *wc);
int srn_cq_attach(struct srn_cq *cq, struct srn_qp *qp);
void srn_cq_detach(struct srn_cq *cq, struct srn_qp *qp);
/* Moves bytes of the CQ's queue pairs (progress.c). */
void srn_cq_progress(struct srn_cq *cq);
void srn_cq_found(struct srn_cq *cq);    /* after a poll that found completions */
void srn_cq_posted(struct srn_cq *cq);   /* after a post, with no lock held */
void srn_cq_unpolled(struct srn_cq *cq); /* hands its queue pairs to the engine */
/* What the epoll sets of a queue pair's CQs should watch its socket for. */
void srn_cq_watch(struct srn_qp *qp, uint32_t events);
bool srn_qp_polled(struct srn_qp *qp);
void srn_unstall(struct srn_qp *qp);
/* Has the next poll of the queue pair's send CQ send what it has. */
void srn_cq_defer(struct srn_qp *qp);
void srn_cq_undefer(struct srn_qp *qp);
void srn_cq_adopt(struct srn_cq *cq, struct srn_qp *qp);
void srn_adopt_orphans(struct srn_cq *cq); /* adopts what nobody polls */
void srn_qp_leave_adopter(struct srn_qp *qp);
/* Looks which polled CQs are polled no more; returns when to look again, 0 = never. */
uint64_t srn_polled_check(uint64_t now);

int srn_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);
int srn_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *srn_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
void srn_cq_ex_init(struct srn_cq *cq, uint64_t wc_flags);

/* A posted receive. */
struct srn_rwqe {
	uint64_t wr_id;
	uint32_t num_sge;
	struct ibv_sge *sge;
};

struct srn_rq {
	struct srn_rwqe *ring;
	struct ibv_sge *sges;
	uint32_t size, max_sge, head, count;
};

int srn_rq_init(struct srn_rq *rq, uint32_t size, uint32_t max_sge);
void srn_rq_free(struct srn_rq *rq);
int srn_rq_post(struct srn_rq *rq, const struct ibv_recv_wr *wr);
/* Copies the oldest receive out; sge must hold rq->max_sge. */
bool srn_rq_take(struct srn_rq *rq, struct srn_rwqe *rwqe, struct ibv_sge *sge);

struct srn_srq {
	struct ibv_srq srq;
	pthread_mutex_t lock;
	struct srn_rq rq;
	uint32_t limit;
	atomic_int users;
	uint32_t async_given;
	TAILQ_HEAD(, srn_qp) stalled;
};

int srn_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
struct ibv_srq *srn_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int srn_get_srq_num(struct ibv_srq *srq, uint32_t *num);
bool srn_srq_take(struct srn_srq *srq, struct srn_rwqe *rwqe, struct ibv_sge *sge);

/* A posted send-queue request. */
struct srn_wqe {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint64_t compare_add, swap; /* atomics; a flush keeps its length in compare_add */
	uint32_t rkey;
	uint32_t imm; /* as on the wire, or the rkey to invalidate */
	uint32_t length;
	uint32_t framed; /* payload bytes put into frames */
	uint32_t placed; /* payload bytes of the response received */
	uint32_t msn;
	uint32_t num_sge;
	struct ibv_sge *sge;
	uint8_t *inline_data; /* NULL if the payload is in sge */
	uint8_t opcode, flags;
	uint8_t flush_type, flush_level;
	bool framed_all, done;
};

/* One FPDU on its way out.  What is not payload lives here until the socket has taken it. */
#define SRN_FRAME_HEAD    (FPDU_LEN_SIZE + DDP_UNTAGGED_LEN + 56)
#define SRN_FRAMES        32
#define SRN_FRAME_PAYLOAD 32768
enum srn_frame_kind { SRN_FRAME_CONTROL, SRN_FRAME_WQE, SRN_FRAME_RESPONSE };
struct srn_frame {
	enum srn_frame_kind kind;
	bool ends; /* the last frame of its request or response */
	uint8_t head_len, tail_len;
	uint8_t head[SRN_FRAME_HEAD];
	uint8_t tail[8];
	uint32_t index;          /* of the request or response in its ring */
	uint32_t offset, length; /* which part of the payload */
	uint8_t *copy;           /* the payload, if a CRC was computed over it */
};

enum srn_response_kind { SRN_RESPONSE_READ, SRN_RESPONSE_ATOMIC, SRN_RESPONSE_FLUSH };
struct srn_response {
	enum srn_response_kind kind;
	struct rdmap_read_request read;
	uint32_t id;
	uint64_t original;
	uint32_t framed;
	bool framed_all;
};

struct srn_tx {
	struct srn_frame frames[SRN_FRAMES];
	uint32_t head, count;
	uint32_t head_sent; /* bytes of the oldest frame the socket has taken */
	uint8_t *copies;    /* SRN_FRAMES payloads, if CRCs are in use */
	uint32_t msn[DDP_QUEUES];
	bool blocked;                                                     /* the socket is full */
	enum { SRN_TX_BETWEEN, SRN_TX_REQUEST, SRN_TX_RESPONSE } message; /* under way */
	bool request_turn;
};

/* While no CRC is in use the buffer takes headers and small frames, several at once. */
#define SRN_RX_BUF     16384
#define SRN_RX_BUF_CRC (2 * (FPDU_LEN_SIZE + FPDU_ULPDU_MAX + 3 + FPDU_CRC_SIZE))
enum srn_rx_phase { SRN_RX_HEADER, SRN_RX_PAYLOAD, SRN_RX_TRAILER };
struct srn_rx {
	uint8_t *buf;
	uint32_t size, start, end;
	enum srn_rx_phase phase;
	struct ddp_header header;
	uint8_t raw[DDP_UNTAGGED_LEN + RDMAP_READ_REQUEST_LEN]; /* the headers, for Terminate */
	uint16_t raw_len;
	uint16_t ulpdu_len;
	uint8_t tail_len;
	uint32_t payload_len, payload_done;
	uint32_t direct; /* bytes of payload the last srn_rx_space() offered room for */
	uint32_t msn[DDP_QUEUES];
	bool receiving; /* a SEND is under way into recv */
	uint32_t received;
	struct srn_rwqe recv;
	struct ibv_sge *recv_sge;
	bool write_open;  /* an RDMA write's last segment is still to come */
	uint32_t written; /* bytes of the last RDMA write, for its immediate data */
	bool stalled;     /* a SEND waits for a receive */
	bool hangup;      /* ... and the peer is gone meanwhile */
};

struct srn_qp {
	struct {
		struct ibv_qp_ex ex; /* first; its head is a struct ibv_qp */
#if !SRN_HAVE_FLUSH
		/* Newer headers have this member here. */
		void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
				 size_t len, uint8_t type, uint8_t level);
#endif
	} v;
	pthread_mutex_t lock;
	struct ibv_qp_cap cap;
	bool sig_all;
	uint64_t send_ops;
	unsigned int access;
	uint32_t async_given;

	struct srn_wqe *sq;
	struct ibv_sge *sq_sge;
	uint8_t *sq_inline;
	uint32_t sq_size;                 /* a power of two, since the indices run on and wrap */
	uint32_t sq_head, sq_tx, sq_tail; /* oldest, next to frame, next free */
	uint32_t sq_seen;     /* the requests before it are in held_bytes, or were sent */
	uint64_t held_bytes;  /* posted since bytes were last sent */
	uint32_t wr_built;    /* requests between ibv_wr_start and ibv_wr_complete */
	atomic_uint unpolled; /* completions of the send queue the program has not polled */
	int wr_error;

	struct srn_rq rq;

	/* Requests that wait for a response, oldest first; at most ord of them. */
	uint32_t *waiting;
	uint32_t waiting_head, waiting_count;
	uint32_t ord, ird;
	struct srn_response *responses;
	uint32_t response_head, response_tx, response_count;

	/* The stream. */
	struct srn_src src;
	int fd; /* -1: none */
	bool connected, crc, extended;
	bool may_send; /* the responder waits for the first frame */
	bool send_rtr;
	uint64_t rnr_timeout;    /* ns a SEND waits for a receive; UINT64_MAX = for ever */
	bool in_engine;          /* the engine watches the socket */
	uint32_t cq_interest[3]; /* what the epoll sets of its CQs and of the adopter have */
	_Atomic(struct srn_cq *)
		adopter;   /* a polled CQ that moves its bytes though it is not one of its own */
	atomic_uint quiet; /* the adopter's polls since it moved something */
	struct srn_tx tx;
	struct srn_rx rx;
	struct srn_id *id;
	TAILQ_ENTRY(srn_qp) stalled_link;
	TAILQ_ENTRY(srn_qp) deferred_link;
	atomic_bool deferred; /* on its send CQ's list (that CQ's lock) */
	bool on_stalled;
	LIST_ENTRY(srn_qp) all;
};

static inline struct srn_qp *srn_qp(struct ibv_qp *qp)
{
	return (struct srn_qp *)qp;
}

struct ibv_qp *srn_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
bool srn_qp_known(uint32_t qp_num);
/* With its lock taken, which keeps it from being destroyed; NULL if there is none. */
struct srn_qp *srn_qp_find(uint32_t qp_num);
/* Ends (or, for an id that is to go, only detaches from it) the stream of the id's queue pair. */
void srn_qp_disconnect(struct srn_id *id);
void srn_qp_forget_id(struct srn_id *id);
void srn_wr_api_init(struct srn_qp *qp);
/*
 * Of how many queue pairs this thread holds the lock between ibv_wr_start() and its end.  Then its
 * polls and posts must wait for no queue pair's lock.
 */
extern _Thread_local unsigned int srn_building __attribute__((tls_model("initial-exec")));
bool srn_sq_full(struct srn_qp *qp, uint32_t more); /* with more of its requests not yet posted */
int srn_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int srn_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
/* Checks and fills one request; the payload's place is set by the caller (0 or an errno value). */
int srn_wqe_check(struct srn_qp *qp, const struct srn_wqe *wqe);

/* stream.c: a queue pair's connection. All with qp->lock held. */
struct srn_stream_setup {
	int fd;
	bool crc, extended, initiator, send_rtr;
	uint32_t ord, ird;
	uint64_t rnr_timeout;
};
int srn_stream_open(struct srn_qp *qp, const struct srn_stream_setup *setup, struct srn_id *id);
int srn_stream_run(struct srn_qp *qp, bool receive); /* returns the bytes received */
void srn_stream_posted(struct srn_qp *qp);
void srn_stream_watch(struct srn_qp *qp);
int srn_stream_handle(struct srn_src *src, uint32_t events);
void srn_stream_expire(struct srn_src *src);
/*
 * Ends the stream: sends term if given, closes, flushes what is outstanding.  The request that is
 * to blame completes with status; with IBV_WC_SUCCESS none is, since any number may be a request's.
 */
#define SRN_NO_WQE UINT32_MAX
void srn_qp_fail(struct srn_qp *qp, const struct rdmap_term *term, uint32_t guilty,
		 enum ibv_wc_status status);
void srn_qp_flush(struct srn_qp *qp, uint32_t guilty, enum ibv_wc_status status);

/* frame.c */
enum srn_build { SRN_BUILD_OK, SRN_BUILD_BAD_REQUEST, SRN_BUILD_BAD_RESPONSE };
enum srn_build srn_frames_build(struct srn_qp *qp); /* until the ring is full or nothing waits */
struct srn_frame *srn_frame_new(struct srn_qp *qp, enum srn_frame_kind kind, uint32_t index);
uint8_t *srn_frame_control(struct srn_qp *qp, struct srn_frame *frame, uint8_t opcode,
			   uint32_t queue, unsigned int len);
int srn_frame_seal(struct srn_qp *qp, struct srn_frame *frame);
int srn_frame_payload(struct srn_qp *qp, const struct srn_frame *frame, struct iovec *iov);
unsigned int srn_sge_part(const struct ibv_sge *sge, uint32_t num_sge, uint32_t offset,
			  uint32_t len, struct ibv_sge *part);

/* tx.c */
void srn_tx_run(struct srn_qp *qp);
void srn_tx_terminate(struct srn_qp *qp, const struct rdmap_term *term);
void srn_sq_complete(struct srn_qp *qp); /* reports what is done, in order */
static inline struct srn_wqe *srn_wqe(struct srn_qp *qp, uint32_t index)
{
	return &qp->sq[index & (qp->sq_size - 1)];
}

/* rx.c: the state machine.  Where the next bytes go, and that n of them arrived. */
int srn_rx_space(struct srn_qp *qp, struct iovec *iov, unsigned int *count, size_t *room);
void srn_rx_input(struct srn_qp *qp, size_t n);
int srn_rx_run(struct srn_qp *qp);
void srn_rx_resume(struct srn_qp *qp); /* a receive was posted */
/* rx_message.c.  They return false once the stream has failed or, with rx.stalled, must wait. */
bool srn_rx_begin(struct srn_qp *qp);
bool srn_rx_message(struct srn_qp *qp, const uint8_t *payload);
bool srn_rx_finish(struct srn_qp *qp);
unsigned int srn_rx_target(struct srn_qp *qp, struct iovec *iov, unsigned int max);
bool srn_rx_whole(uint8_t opcode); /* handled in one piece, from the buffer */
void srn_rx_refuse(struct srn_qp *qp, uint8_t layer, uint8_t etype, uint8_t code);
struct srn_wqe *srn_oldest_waiting(struct srn_qp *qp);
void srn_request_answered(struct srn_qp *qp); /* the oldest that waits has its response */
/* rx_request.c */
bool srn_rx_read_request(struct srn_qp *qp, const uint8_t *payload);
bool srn_rx_atomic_request(struct srn_qp *qp, const uint8_t *payload);
bool srn_rx_flush_request(struct srn_qp *qp, const uint8_t *payload);
bool srn_rx_response(struct srn_qp *qp, const uint8_t *payload, bool atomic);

#include "cm.h"

#endif
