/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory, verbs and rdma_cm calls that librpma makes, faked inside the test program.
 *
 * Every call can be told to fail, and every object made is followed until it is gone.  What went
 * wrong on the way (an object destroyed twice, destroyed before what hangs on it, a wait that
 * would never end, ...) is kept until mock_verdict() is asked for.
 *
 * The whole state belongs to one thread: threads share no lock of the mock's, so that a race in
 * the library stays visible.  A thread checks what it made itself.
 */
#ifndef TESTS_UNIT_MOCK_H
#define TESTS_UNIT_MOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

/*
 * X(call, errno it fails with by default, whether it gives something up)
 *
 * A call that gives something up may fail while the library cleans up after another failure.
 */
#define MOCK_CALLS(X)                               \
	X(malloc, ENOMEM, false)                    \
	X(calloc, ENOMEM, false)                    \
	X(realloc, ENOMEM, false)                   \
	X(posix_memalign, ENOMEM, false)            \
	X(aligned_alloc, ENOMEM, false)             \
	X(strdup, ENOMEM, false)                    \
	X(mmap, ENOMEM, false)                      \
	X(munmap, EINVAL, true)                     \
	X(ibv_alloc_pd, EMFILE, false)              \
	X(ibv_dealloc_pd, EBUSY, true)              \
	X(ibv_reg_mr, EFAULT, false)                \
	X(ibv_dereg_mr, EBUSY, true)                \
	X(ibv_advise_mr, EIO, false)                \
	X(ibv_query_device, EIO, false)             \
	X(ibv_query_device_ex, EIO, false)          \
	X(ibv_query_port, EIO, false)               \
	X(ibv_create_comp_channel, EMFILE, false)   \
	X(ibv_destroy_comp_channel, EBUSY, true)    \
	X(ibv_create_cq, EMFILE, false)             \
	X(ibv_destroy_cq, EBUSY, true)              \
	X(ibv_req_notify_cq, EIO, false)            \
	X(ibv_get_cq_event, EIO, false)             \
	X(ibv_poll_cq, EIO, false)                  \
	X(ibv_create_srq, EMFILE, false)            \
	X(ibv_destroy_srq, EBUSY, true)             \
	X(ibv_qp_to_qp_ex, EOPNOTSUPP, false)       \
	X(ibv_post_send, EIO, false)                \
	X(ibv_post_recv, EIO, false)                \
	X(ibv_post_srq_recv, EIO, false)            \
	X(ibv_wr_complete, EIO, false)              \
	X(rdma_create_event_channel, EMFILE, false) \
	X(rdma_create_id, ENODEV, false)            \
	X(rdma_destroy_id, EIO, true)               \
	X(rdma_migrate_id, EIO, false)              \
	X(rdma_getaddrinfo, EADDRNOTAVAIL, false)   \
	X(rdma_bind_addr, EADDRINUSE, false)        \
	X(rdma_resolve_addr, EHOSTUNREACH, false)   \
	X(rdma_resolve_route, ETIMEDOUT, false)     \
	X(rdma_create_qp, EMFILE, false)            \
	X(rdma_listen, EADDRINUSE, false)           \
	X(rdma_connect, ECONNREFUSED, false)        \
	X(rdma_accept, EIO, false)                  \
	X(rdma_reject, EIO, true)                   \
	X(rdma_disconnect, EIO, true)               \
	X(rdma_get_cm_event, EIO, false)            \
	X(rdma_ack_cm_event, EIO, true)

#define MOCK_ENUM(call, error, gives_up) MOCK_##call,
enum mock_call {
	MOCK_CALLS(MOCK_ENUM) MOCK_NO_CALL,
};

enum mock_kind {
	MOCK_MEMORY,
	MOCK_MAPPING,
	MOCK_PD,
	MOCK_MR,
	MOCK_COMP_CHANNEL,
	MOCK_CQ,
	MOCK_SRQ,
	MOCK_QP,
	MOCK_EVENT_CHANNEL,
	MOCK_ID,
	MOCK_CM_EVENT,
	MOCK_ADDRINFO,
	MOCK_KINDS,
};

enum { MOCK_MAX_WR = 8, MOCK_MAX_WC = 8, MOCK_PRIVATE_DATA_MAX = 255 };

/* A work request as it was posted, by ibv_post_send() or by the ibv_wr_*() calls. */
struct mock_wr {
	const struct ibv_qp *qp;
	const struct ibv_srq *srq;
	uint64_t wr_id;
	int opcode; /* enum ibv_wr_opcode */
	unsigned send_flags;
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t imm_data; /* network byte order */
	int num_sge;
	struct ibv_sge sge;
	uint8_t inlined[32];
	uint64_t flush_len;
	int flush_type;
	int flush_level;
	bool native; /* posted by the ibv_wr_*() calls */
};

/* What the library asked for last; a test looks at it. */
struct mock_seen {
	unsigned wr_count; /* send, receive and SRQ receive together */
	struct mock_wr wr[MOCK_MAX_WR];
	unsigned doorbells; /* posting calls */
	struct {
		void *addr;
		size_t length;
		int access[4]; /* of each attempt */
		unsigned attempts;
	} reg_mr;
	struct {
		int advice;
		uint32_t flags;
		struct ibv_sge sge;
	} advise;
	struct ibv_qp_init_attr_ex qp_attr;
	struct ibv_srq_init_attr srq_attr;
	struct {
		int cqe;
		const struct ibv_comp_channel *channel;
	} cq[4];
	unsigned cq_count;
	struct {
		struct rdma_conn_param param;
		uint8_t private_data[MOCK_PRIVATE_DATA_MAX];
		bool given; /* a conn_param */
	} conn;
	struct {
		char node[64];
		char service[16];
		int flags;
		int port_space;
	} addrinfo;
	int resolve_timeout_ms[2]; /* address, route */
	int backlog;
};

enum { MOCK_LKEY = 0x1111, MOCK_RKEY = 0x2222, MOCK_QP_NUM = 0x333 };

/* What the fake device is and answers; a test sets it. */
struct mock_device {
	int transport; /* enum ibv_transport_type */
	bool legacy;   /* has none of the extended operations */
	bool missing;  /* the address belongs to no device */
	bool odp;
	uint32_t odp_missing; /* IBV_ODP_SUPPORT_* it lacks for RC */
	bool native_flush;
	bool native_atomic_write;
	struct ibv_device_attr attr;
	struct ibv_port_attr port[2];
	uint32_t max_inline;          /* bytes; a QP that is to take more is refused */
	struct ibv_qp_cap qp_extra;   /* given beyond what was asked for */
	int reg_mr_errno_without_odp; /* as fsdax memory would answer */
	int advise_errno;             /* what ibv_advise_mr() answers */
	bool sq_is_full;              /* once sq_room more work requests are posted */
	unsigned sq_room;
	int poll_result;   /* what ibv_poll_cq() answers when not 0 */
	unsigned wc_ready; /* completions waiting in any CQ polled by this thread */
	struct ibv_wc wc[MOCK_MAX_WC];
	bool get_cq_event_gives_stranger; /* an event of a CQ nobody knows */
};

void mock_reset(void);
struct mock_seen *mock_seen(void);
struct mock_device *mock_device(void);
struct ibv_context *mock_context(void);

/* The nth call (from 1, from now on) of this one fails with error. */
enum { MOCK_WITHOUT_ERRNO = -1 }; /* for calls that set errno: leave it 0 */
void mock_fail(enum mock_call call, unsigned nth, int error);
/* The nth call of whatever fails with its default errno; cleanup: and every giving up after it. */
void mock_fail_any(unsigned nth, bool cleanup_too);
/* Nothing fails any more. */
void mock_fail_none(void);
/* What has failed by mock_fail() or mock_fail_any() since, first of all. */
enum mock_call mock_failed(void);
unsigned mock_calls(enum mock_call call);
const char *mock_name(enum mock_call call);
bool mock_gives_up(enum mock_call call);
int mock_default_errno(enum mock_call call);

/* Objects alive; one whose destruction was refused counts no more. */
unsigned mock_alive(void);
unsigned mock_alive_of(enum mock_kind kind);
/* NULL if nothing went wrong and nothing is alive (or only refused to go), else what. */
const char *mock_verdict(void);
/* NULL if nothing went wrong so far, whatever is alive. */
const char *mock_fault(void);

/* Events for the library to find. */
void mock_cm_event(const struct rdma_cm_id *id, enum rdma_cm_event_type type, const void *pdata,
		   uint8_t len, int status);
void mock_conn_request(const struct rdma_cm_id *listen_id, const void *pdata, uint8_t len);
void mock_cq_event(struct ibv_cq *cq);
/* The ids that are alive, in the order they were made. */
struct rdma_cm_id *mock_id(unsigned nth);
struct ibv_cq *mock_cq(unsigned nth);

/*
 * For the mock itself
 */

/* The errno with which this call is to fail, or 0. */
int mock_enter(enum mock_call call);
/* The same for calls that set errno: true if it is to fail. */
bool mock_fails(enum mock_call call);
/* release() is what frees a fake that was left behind. */
void mock_born(enum mock_kind kind, void *object, void (*release)(void *));
void mock_hangs_on(const void *object, const void *parent);
void mock_moves(const void *object, const void *from, const void *to);
/* 0, or the errno with which the destruction is refused. */
int mock_dies(enum mock_kind kind, void *object, enum mock_call call);
void *mock_nth_of(enum mock_kind kind, unsigned nth);
bool mock_is_alive(enum mock_kind kind, const void *object);
void mock_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
void mock_record_wr(const struct mock_wr *wr);
void *mock_alloc(size_t size);
void mock_free(void *ptr);
struct ibv_qp *mock_qp_new(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr);
void mock_qp_free(struct ibv_qp *qp);
/* Tells a wait on fd that would never end; errno is EAGAIN then. */
bool mock_would_block(int fd, const char *call);

#endif
