/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this librpma has beyond librpma 1.3.0: batches of work requests, the choice of how to
 * flush, and what a device and a connection can do.  Symbols are in the node LIBRPMA_EXT_1.0.
 */
#ifndef LIBRPMA_EXT_H
#define LIBRPMA_EXT_H 1

#include <librpma.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How rpma_flush() and rpma_batch_flush() work on a connection.
 *
 * Native: the flush operation of IBTA 1.5 (ibv_wr_flush).  Both devices must have it, and the
 * remote region must have been registered with flush rights (librpma does so on such a device).
 * Read: an 8-byte RDMA read from the flushed region, which cannot pass earlier writes.
 */
enum rpma_flush_mode {
	RPMA_FLUSH_MODE_AUTO, /* native where this side's build and device have it, else read */
	RPMA_FLUSH_MODE_NATIVE,
	RPMA_FLUSH_MODE_READ,
};

/*
 * For flushes posted from now on.  A new connection is in mode AUTO.  Not while another thread
 * flushes on this connection.
 *  RPMA_E_INVAL     conn is NULL, mode is unknown
 *  RPMA_E_NOSUPP    NATIVE, and this build or device has no native flush; nothing changed
 *  RPMA_E_NOMEM, RPMA_E_PROVIDER  READ, and its private buffer cannot be had; nothing changed
 */
int rpma_conn_set_flush_mode(struct rpma_conn *conn, enum rpma_flush_mode mode);

/* what is in use: RPMA_FLUSH_MODE_NATIVE or RPMA_FLUSH_MODE_READ, never AUTO */
int rpma_conn_get_flush_mode(const struct rpma_conn *conn, enum rpma_flush_mode *mode);

/* what the build and the peer's device have; RPMA_E_INVAL: an argument is NULL */
#define RPMA_FEATURE_NATIVE_FLUSH        (1 << 0)
#define RPMA_FEATURE_NATIVE_ATOMIC_WRITE (1 << 1)
#define RPMA_FEATURE_ODP                 (1 << 2) /* on-demand paging for RC writes and reads */

int rpma_peer_get_features(const struct rpma_peer *peer, uint32_t *features);

struct rpma_limits {
	uint32_t sq_size;  /* work requests in the send queue */
	uint32_t rq_size;  /* work requests in the receive queue; 0: a shared one is used */
	uint32_t cq_size;  /* completions in the main CQ */
	uint32_t srq_size; /* work requests in a shared receive queue */
	uint64_t msg_size; /* bytes in one read, write or message */
};

/*
 * rpma_peer_get_limits(): the most the device can give (msg_size: of its weakest port).
 * rpma_conn_get_limits(): what this connection was given, which may be more than asked for.
 *  RPMA_E_INVAL     an argument is NULL
 *  RPMA_E_PROVIDER  the device cannot be asked
 */
int rpma_peer_get_limits(const struct rpma_peer *peer, struct rpma_limits *limits);
int rpma_conn_get_limits(const struct rpma_conn *conn, struct rpma_limits *limits);

/*
 * A batch collects work requests for one connection and posts them in order with one doorbell.
 * All memory is taken by rpma_batch_new(); appending costs the same however many are waiting.
 *
 * Completions: a request appended with RPMA_F_COMPLETION_ALWAYS completes with its op_context in
 * wr_id.  The requests of one connection complete in the order they were posted, batched or not, so
 * a successful completion says that every request posted before it has succeeded as well, and its
 * place in the send queue is free.  A request that fails completes with its own op_context whatever
 * its flags; every later one then completes with IBV_WC_WR_FLUSH_ERR.  So make the CQ as large as
 * the SQ, and let at least one request in every sq_size be signalled.
 *
 * A batch is for one thread; batches of one connection, and rpma_write() and its kin beside them,
 * may be used from different threads.  Delete a batch before its connection.
 */
struct rpma_batch;

/*
 * capacity: the most requests that can wait, at most the connection's limit sq_size.
 *  RPMA_E_INVAL  conn or batch_ptr is NULL, capacity is 0 or above the limit
 *  RPMA_E_NOMEM  out of memory
 */
int rpma_batch_new(struct rpma_conn *conn, uint32_t capacity, struct rpma_batch **batch_ptr);

/*
 * Requests that were never submitted are dropped.  *batch_ptr becomes NULL.
 *  RPMA_E_INVAL  batch_ptr is NULL
 */
int rpma_batch_delete(struct rpma_batch **batch_ptr);

/*
 * Append one request.  Arguments and errors are those of the function without _batch, except that
 * nothing is posted yet, and
 *  RPMA_E_AGAIN  the batch is full: submit first
 * On failure the batch is as before.  rpma_batch_atomic_write() copies src.
 */
int rpma_batch_read(struct rpma_batch *batch, struct rpma_mr_local *dst, size_t dst_offset,
		    const struct rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
		    const void *op_context);
int rpma_batch_write(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
		     const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
		     const void *op_context);
int rpma_batch_write_with_imm(struct rpma_batch *batch, struct rpma_mr_remote *dst,
			      size_t dst_offset, const struct rpma_mr_local *src, size_t src_offset,
			      size_t len, int flags, uint32_t imm, const void *op_context);
int rpma_batch_atomic_write(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
			    const char src[8], int flags, const void *op_context);
int rpma_batch_flush(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
		     size_t len, enum rpma_flush_type type, int flags, const void *op_context);
int rpma_batch_send(struct rpma_batch *batch, const struct rpma_mr_local *src, size_t offset,
		    size_t len, int flags, const void *op_context);
int rpma_batch_send_with_imm(struct rpma_batch *batch, const struct rpma_mr_local *src,
			     size_t offset, size_t len, int flags, uint32_t imm,
			     const void *op_context);

/*
 * Post all that waits.  flags: 0, or RPMA_F_COMPLETION_ALWAYS to have the last request signalled
 * whatever it was appended with.  On success the batch is empty; submitting an empty one succeeds.
 * *submitted (may be NULL) is the number of requests posted, set on success and on failure; the
 * others are still in the batch, in order, and can be submitted again.
 *  RPMA_E_INVAL     batch is NULL, flags is neither
 *  RPMA_E_AGAIN     the send queue is full: collect completions, then submit again
 *  RPMA_E_PROVIDER  the device refused a request; with all posted one by one (no native flush or
 *                   atomic write among them) it is the first that is left
 */
int rpma_batch_submit(struct rpma_batch *batch, int flags, uint32_t *submitted);

/* how many wait; RPMA_E_INVAL: an argument is NULL */
int rpma_batch_get_count(const struct rpma_batch *batch, uint32_t *count);

/* drop what waits; RPMA_E_INVAL: batch is NULL */
int rpma_batch_clear(struct rpma_batch *batch);

#ifdef __cplusplus
}
#endif

#endif /* LIBRPMA_EXT_H */
