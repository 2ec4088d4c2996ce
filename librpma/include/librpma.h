/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librpma: remote persistent memory access over RDMA.
 *
 * Every function that returns int gives 0 on success and a negative RPMA_E_* value on failure.
 * Sizes and offsets are in bytes.  A result argument (*xxx_ptr and the like) is written on success
 * only, unless its function says otherwise.
 *
 * Threads.  Functions on different objects may run at the same time, always.  On one object:
 *  - configuration objects (peer_cfg, conn_cfg, srq_cfg): any number of getters, or one setter;
 *  - posting (rpma_read ... rpma_recv, rpma_srq_recv), polling (rpma_cq_get_wc) and getters may
 *    run from several threads at once on one connection, CQ or SRQ;
 *  - everything else that waits on or changes an object (rpma_*_wait, rpma_conn_next_event,
 *    rpma_ep_next_conn_req, rpma_conn_apply_remote_peer_cfg, connecting, disconnecting) is for one
 *    thread at a time per object, but may run beside posting and polling;
 *  - deleting is for one thread, when no other uses the object or anything made from it.
 * A peer may be used from any number of threads.  Logging functions may be called at any time.
 *
 * What comes from the other side (private data, descriptors) can be forged: rdma_cm carries it in
 * the clear.  Exchange descriptors over TLS where the network is not trusted.
 */
#ifndef LIBRPMA_H
#define LIBRPMA_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* accepted by rpma_conn_wait() as flags; it always waits */
#define RPMA_W_WAIT_FOR_COMPLETION (1)

/* errors */
#define RPMA_E_UNKNOWN         (-100000) /* no cause is known */
#define RPMA_E_NOSUPP          (-100001) /* not supported by a device, a region or the system */
#define RPMA_E_PROVIDER        (-100002) /* verbs or rdma_cm failed; the log has errno */
#define RPMA_E_NOMEM           (-100003) /* out of memory */
#define RPMA_E_INVAL           (-100004) /* an argument is wrong */
#define RPMA_E_NO_COMPLETION   (-100005) /* no completion is waiting */
#define RPMA_E_NO_EVENT        (-100006) /* no event is waiting */
#define RPMA_E_AGAIN           (-100007) /* try again later */
#define RPMA_E_SHARED_CHANNEL  (-100008) /* the completion channel is shared */
#define RPMA_E_NOT_SHARED_CHNL (-100009) /* the completion channel is not shared */

const char *rpma_err_2str(int ret);

/* devices */

#define RPMA_DEFAULT_TIMEOUT_MS 1000

enum rpma_util_ibv_context_type {
	RPMA_UTIL_IBV_CONTEXT_LOCAL, /* the device that owns addr */
	RPMA_UTIL_IBV_CONTEXT_REMOTE /* the device that reaches addr */
};

/* addr: IPv4 or IPv6 address or host name.  The context belongs to librdmacm: never close it. */
int rpma_utils_get_ibv_context(const char *addr, enum rpma_util_ibv_context_type type,
			       struct ibv_context **ibv_ctx_ptr);

int rpma_utils_ibv_context_is_odp_capable(struct ibv_context *ibv_ctx, int *is_odp_capable);

/* peer configuration: what one side tells the other about its platform */

struct rpma_peer_cfg;

int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr);
int rpma_peer_cfg_delete(struct rpma_peer_cfg **pcfg_ptr);

/* true: what the NIC has written to PMem is persistent once it has left the NIC (no DDIO) */
int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg *pcfg, bool supported);
int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg *pcfg, bool *supported);

/* a descriptor is what travels: 1 byte */
int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg *pcfg, void *desc);
int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg *pcfg, size_t *desc_size);
int rpma_peer_cfg_from_descriptor(const void *desc, size_t desc_size,
				  struct rpma_peer_cfg **pcfg_ptr);

/* peer: a device and a protection domain on it; everything else is made from one */

struct rpma_peer;

int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr);
int rpma_peer_delete(struct rpma_peer **peer_ptr);

/* memory regions */

struct rpma_mr_local;
struct rpma_mr_remote;

/* usage of a region, or'ed together */
#define RPMA_MR_USAGE_READ_SRC              (1 << 0) /* the peer reads from it */
#define RPMA_MR_USAGE_READ_DST              (1 << 1) /* rpma_read() stores into it */
#define RPMA_MR_USAGE_WRITE_SRC             (1 << 2) /* rpma_write() takes from it */
#define RPMA_MR_USAGE_WRITE_DST             (1 << 3) /* the peer writes to it */
#define RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY (1 << 4) /* the peer flushes it: visible */
#define RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT (1 << 5) /* the peer flushes it: persistent */
#define RPMA_MR_USAGE_SEND                  (1 << 6) /* messages are sent from it */
#define RPMA_MR_USAGE_RECV                  (1 << 7) /* messages are received into it */

/*
 * size: at least 1.  A device with native flush refuses FLUSH_TYPE_PERSISTENT for memory that is
 * not persistent (RPMA_E_PROVIDER, the log says so): ask for FLUSH_TYPE_VISIBILITY there.  Memory
 * that cannot be pinned (fsdax) is registered with on-demand paging where the device has it.
 */
int rpma_mr_reg(struct rpma_peer *peer, void *ptr, size_t size, int usage,
		struct rpma_mr_local **mr_ptr);
int rpma_mr_dereg(struct rpma_mr_local **mr_ptr);

int rpma_mr_get_ptr(const struct rpma_mr_local *mr, void **ptr);
int rpma_mr_get_size(const struct rpma_mr_local *mr, size_t *size);

/* a descriptor is what travels: 21 bytes */
int rpma_mr_get_descriptor(const struct rpma_mr_local *mr, void *desc);
int rpma_mr_get_descriptor_size(const struct rpma_mr_local *mr, size_t *desc_size);

/* refuses (RPMA_E_INVAL) what is too short, has no usage, no length, or passes 2^64 */
int rpma_mr_remote_from_descriptor(const void *desc, size_t desc_size,
				   struct rpma_mr_remote **mr_ptr);
int rpma_mr_remote_get_size(const struct rpma_mr_remote *mr, size_t *size);
/* *flush_type: RPMA_MR_USAGE_FLUSH_TYPE_* bits */
int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote *mr, int *flush_type);
int rpma_mr_remote_delete(struct rpma_mr_remote **mr_ptr);

/* advice and flags: as in ibv_advise_mr(3) */
int rpma_mr_advise(struct rpma_mr_local *mr, size_t offset, size_t len, int advice, uint32_t flags);

/* connection configuration; sizes are numbers of work requests or completions */

struct rpma_conn_cfg;
struct rpma_srq;

/* timeout 1000 ms, CQ, SQ and RQ 10, no receive CQ, channel not shared, no SRQ */
int rpma_conn_cfg_new(struct rpma_conn_cfg **cfg_ptr);
int rpma_conn_cfg_delete(struct rpma_conn_cfg **cfg_ptr);

/* how long resolving the address, and then the route, may take; milliseconds */
int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg *cfg, int timeout_ms);
int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms);
int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg *cfg, uint32_t cq_size);
int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg *cfg, uint32_t *cq_size);
/* 0: receives complete on the main CQ */
int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg *cfg, uint32_t rcq_size);
int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg *cfg, uint32_t *rcq_size);
int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg *cfg, uint32_t sq_size);
int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg *cfg, uint32_t *sq_size);
int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg *cfg, uint32_t rq_size);
int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg *cfg, uint32_t *rq_size);
/* true: CQ and receive CQ share one completion channel, see rpma_conn_wait() */
int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg *cfg, bool shared);
int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg *cfg, bool *shared);
/* NULL: the connection has a receive queue of its own */
int rpma_conn_cfg_set_srq(struct rpma_conn_cfg *cfg, struct rpma_srq *srq);
int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg *cfg, struct rpma_srq **srq_ptr);

/* connection */

struct rpma_conn;
struct rpma_cq;

enum rpma_conn_event {
	RPMA_CONN_UNDEFINED = -1, /* none of the others */
	RPMA_CONN_ESTABLISHED,    /* ready for work */
	RPMA_CONN_CLOSED,         /* either side has disconnected */
	RPMA_CONN_LOST,           /* broken, or the device is gone */
	RPMA_CONN_REJECTED,       /* the other side has refused */
	RPMA_CONN_UNREACHABLE     /* the other side does not answer */
};

const char *rpma_utils_conn_event_2str(enum rpma_conn_event conn_event);

struct rpma_conn_private_data {
	void *ptr;
	uint8_t len; /* bytes */
};

int rpma_conn_get_event_fd(const struct rpma_conn *conn, int *fd);
/* blocks, unless the event fd is O_NONBLOCK: then RPMA_E_NO_EVENT */
int rpma_conn_next_event(struct rpma_conn *conn, enum rpma_conn_event *event);
/*
 * Lives as long as the connection; ptr NULL and len 0 where nothing came.  InfiniBand and RoCE
 * always carry all of their 56 or 196 bytes, filled up with zeros.
 */
int rpma_conn_get_private_data(const struct rpma_conn *conn, struct rpma_conn_private_data *pdata);
int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn, const struct rpma_peer_cfg *pcfg);
int rpma_conn_get_qp_num(const struct rpma_conn *conn, uint32_t *qp_num);
int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq_ptr);
/* *rcq_ptr is NULL where the connection has no receive CQ of its own */
int rpma_conn_get_rcq(const struct rpma_conn *conn, struct rpma_cq **rcq_ptr);
int rpma_conn_get_compl_fd(const struct rpma_conn *conn, int *fd);
/* *cq: the CQ that had the event; collect all its completions before the next wait */
int rpma_conn_wait(struct rpma_conn *conn, int flags, struct rpma_cq **cq, bool *is_rcq);
int rpma_conn_disconnect(struct rpma_conn *conn);
/* *conn_ptr becomes NULL on success and on failure */
int rpma_conn_delete(struct rpma_conn **conn_ptr);

/* connection request: outgoing from rpma_conn_req_new(), incoming from rpma_ep_next_conn_req() */

struct rpma_conn_req;

int rpma_conn_req_new(struct rpma_peer *peer, const char *addr, const char *port,
		      const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr);
/* *req_ptr becomes NULL on success and on failure; an incoming request is rejected */
int rpma_conn_req_delete(struct rpma_conn_req **req_ptr);
/*
 * *req_ptr becomes NULL on success and on failure.  rpma_conn_next_event() tells how it ended.
 * pdata may be NULL.  InfiniBand and RoCE carry at most 56 bytes from the connecting and 196 from
 * the accepting side; more is RPMA_E_INVAL.
 */
int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
			  const struct rpma_conn_private_data *pdata, struct rpma_conn **conn_ptr);
/* rpma_recv() before the connection is there */
int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst, size_t offset,
		       size_t len, const void *op_context);
int rpma_conn_req_get_private_data(const struct rpma_conn_req *req,
				   struct rpma_conn_private_data *pdata);

/* endpoint: listens */

struct rpma_ep;

int rpma_ep_listen(struct rpma_peer *peer, const char *addr, const char *port,
		   struct rpma_ep **ep_ptr);
int rpma_ep_shutdown(struct rpma_ep **ep_ptr);
int rpma_ep_get_fd(const struct rpma_ep *ep, int *fd);
/* blocks, unless the fd is O_NONBLOCK: then RPMA_E_NO_EVENT */
int rpma_ep_next_conn_req(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
			  struct rpma_conn_req **req_ptr);

/* shared receive queue */

struct rpma_srq_cfg;

/* RQ 100, receive CQ 100 */
int rpma_srq_cfg_new(struct rpma_srq_cfg **cfg_ptr);
int rpma_srq_cfg_delete(struct rpma_srq_cfg **cfg_ptr);
int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg *cfg, uint32_t rq_size);
int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg *cfg, uint32_t *rq_size);
/* 0: the SRQ has no receive CQ, each connection uses its own */
int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg *cfg, uint32_t rcq_size);
int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg *cfg, uint32_t *rcq_size);

int rpma_srq_new(struct rpma_peer *peer, struct rpma_srq_cfg *cfg, struct rpma_srq **srq_ptr);
/* *srq_ptr becomes NULL on success and on failure */
int rpma_srq_delete(struct rpma_srq **srq_ptr);
int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst, size_t offset, size_t len,
		  const void *op_context);
int rpma_srq_get_rcq(const struct rpma_srq *srq, struct rpma_cq **rcq_ptr);

/*
 * Operations.  Each posts one work request and returns; op_context comes back as the wr_id of its
 * completion.  Offsets and lengths are checked against both regions (RPMA_E_INVAL).  A transfer of
 * 0 bytes has NULL for both regions and 0 for offsets and length.
 */

#define RPMA_F_COMPLETION_ON_ERROR (1 << 0) /* a completion if it fails */
#define RPMA_F_COMPLETION_ALWAYS   (1 << 1 | RPMA_F_COMPLETION_ON_ERROR) /* a completion, always */

int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t dst_offset,
	      const struct rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
	      const void *op_context);
int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
	       const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
	       const void *op_context);
/* imm: in host byte order; the receiver finds htonl(imm) in imm_data */
int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
			const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
			uint32_t imm, const void *op_context);

#define RPMA_ATOMIC_WRITE_ALIGNMENT 8

/* dst_offset: a multiple of RPMA_ATOMIC_WRITE_ALIGNMENT; src may be reused at once */
int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
		      const char src[8], int flags, const void *op_context);

enum rpma_flush_type {
	RPMA_FLUSH_TYPE_PERSISTENT, /* down to the persistence domain */
	RPMA_FLUSH_TYPE_VISIBILITY, /* visible to the remote host */
};

int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset, size_t len,
	       enum rpma_flush_type type, int flags, const void *op_context);

int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset, size_t len,
	      int flags, const void *op_context);
int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
		       size_t len, int flags, uint32_t imm, const void *op_context);
int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset, size_t len,
	      const void *op_context);

/* completions */

int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd);
/* collect all completions before the next wait */
int rpma_cq_wait(struct rpma_cq *cq);
/* up to num_entries; num_entries_got may be NULL where num_entries is 1 */
int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc, int *num_entries_got);

/* logging */

enum rpma_log_level {
	RPMA_LOG_DISABLED = -1,
	RPMA_LOG_LEVEL_FATAL,
	RPMA_LOG_LEVEL_ERROR,
	RPMA_LOG_LEVEL_WARNING,
	RPMA_LOG_LEVEL_NOTICE, /* connections and the like */
	RPMA_LOG_LEVEL_INFO,
	RPMA_LOG_LEVEL_DEBUG,
};

enum rpma_log_threshold {
	RPMA_LOG_THRESHOLD,     /* nothing above it reaches the log function; default WARNING */
	RPMA_LOG_THRESHOLD_AUX, /* for the log function; default DISABLED */
	RPMA_LOG_THRESHOLD_MAX
};

int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level);
int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level *level);

/* must be thread-safe; file_name may be NULL, then line_no and function_name mean nothing */
typedef void rpma_log_function(enum rpma_log_level level, const char *file_name, const int line_no,
			       const char *function_name, const char *message_format, ...);

/* writes to syslog(3), and to stderr what is within RPMA_LOG_THRESHOLD_AUX */
#define RPMA_LOG_USE_DEFAULT_FUNCTION (NULL)

int rpma_log_set_function(rpma_log_function *log_function);

#ifdef __cplusplus
}
#endif

#endif /* LIBRPMA_H */
