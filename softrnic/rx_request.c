// SPDX-License-Identifier: BSD-3-Clause
/*
 * Requests of the peer that want a response (reads, atomics, flushes), and the responses to this
 * side's own.  The same care as in rx_message.c.
 */
#include <endian.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softrnic.h"

#define PROTECTION TERM_RDMAP, TERM_RDMAP_PROTECTION

static struct srn_response *response_new(struct srn_qp *qp, enum srn_response_kind kind)
{
	struct srn_response *response;

	if (qp->response_count >= qp->ird) {
		/* More at once than was agreed on at connection set-up. */
		srn_rx_refuse(qp, TERM_DDP, TERM_DDP_UNTAGGED, TERM_UNTAGGED_NO_BUFFER);
		return NULL;
	}
	response = &qp->responses[(qp->response_head + qp->response_count) % SRN_MAX_RD_ATOM];
	memset(response, 0, sizeof(*response));
	response->kind = kind;
	return response;
}

bool srn_rx_read_request(struct srn_qp *qp, const uint8_t *payload)
{
	struct srn_response *response;
	struct rdmap_read_request request;
	uint8_t why;
	void *at;

	rdmap_decode_read_request(payload, &request);
	if (request.size) {
		srn_mr_lock();
		at = srn_mr_at(qp->v.ex.qp_base.pd, request.source_stag, request.source_to,
			       request.size, IBV_ACCESS_REMOTE_READ, &why);
		srn_mr_unlock();
		if (!at) {
			srn_rx_refuse(qp, PROTECTION, why);
			return false;
		}
	}
	response = response_new(qp, SRN_RESPONSE_READ);
	if (!response)
		return false;
	response->read = request;
	qp->response_count++;
	return true;
}

/* RFC 7306 section 5.1.1: set mask bits are where a field ends, no carry leaves it. */
static uint64_t masked_add(uint64_t value, uint64_t add, uint64_t mask)
{
	uint64_t sum = 0;
	unsigned int bit, carry = 0;

	if (!mask)
		return value + add;
	for (bit = 0; bit < 64; bit++) {
		unsigned int digit = (value >> bit & 1) + (add >> bit & 1) + carry;

		sum |= (uint64_t)(digit & 1) << bit;
		carry = mask >> bit & 1 ? 0 : digit >> 1;
	}
	return sum;
}

static uint64_t execute_atomic(uint64_t *at, const struct rdmap_atomic_request *request)
{
	uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED), new;

	do {
		switch (request->opcode) {
		case RDMAP_FETCH_ADD:
			new = masked_add(old, request->data, request->mask);
			break;
		case RDMAP_CMP_SWAP:
			if ((old ^ request->compare) & request->compare_mask)
				return old;
			new = (old & ~request->mask) | (request->data & request->mask);
			break;
		default:
			__atomic_store_n(at, htobe64(request->data), __ATOMIC_SEQ_CST);
			return 0;
		}
	} while (!__atomic_compare_exchange_n(at, &old, new, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	return old;
}

bool srn_rx_atomic_request(struct srn_qp *qp, const uint8_t *payload)
{
	struct rdmap_atomic_request request;
	struct srn_response *response;
	unsigned int access;
	uint64_t original = 0;
	uint8_t why;
	void *at;

	rdmap_decode_atomic_request(payload, &request);
	if (request.opcode != RDMAP_FETCH_ADD && request.opcode != RDMAP_CMP_SWAP &&
	    !(request.opcode == RDMAP_ATOMIC_WRITE && qp->extended)) {
		srn_rx_refuse(qp, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_BAD_OPCODE);
		return false;
	}
	response = response_new(qp, SRN_RESPONSE_ATOMIC);
	if (!response)
		return false;
	access = request.opcode == RDMAP_ATOMIC_WRITE ? IBV_ACCESS_REMOTE_WRITE
						      : IBV_ACCESS_REMOTE_ATOMIC;
	srn_mr_lock();
	at = srn_mr_at(qp->v.ex.qp_base.pd, request.stag, request.to, sizeof(uint64_t), access,
		       &why);
	if (at && !((uintptr_t)at % sizeof(uint64_t)))
		original = execute_atomic(at, &request);
	srn_mr_unlock();
	if (!at) {
		srn_rx_refuse(qp, PROTECTION, why);
		return false;
	}
	if ((uintptr_t)at % sizeof(uint64_t)) {
		srn_rx_refuse(qp, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_UNSPECIFIED);
		return false;
	}
	response->id = request.id;
	response->original = original;
	qp->response_count++;
	return true;
}

/*
 * Placement is by the processor, and the response leaves by a system call after it: what came
 * before is visible already.  For persistence the kernel brings the range to its medium; for memory
 * that has none there is nothing to do.
 */
static bool persist(void *at, uint64_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = (uintptr_t)at & ~(page - 1);

	return !len || !SRN_NO_CANCEL(msync((void *)begin, (uintptr_t)at + len - begin, MS_SYNC));
}

bool srn_rx_flush_request(struct srn_qp *qp, const uint8_t *payload)
{
	struct rdmap_flush_request request;
	struct srn_response *response;
	struct ibv_pd *pd = qp->v.ex.qp_base.pd;
	unsigned int access = 0;
	uint8_t why = TERM_INVALID_STAG;
	bool durable = true;
	void *at = NULL;

	rdmap_decode_flush_request(payload, &request);
	if (!request.type || (request.type & ~(SRN_FLUSH_GLOBAL | SRN_FLUSH_PERSISTENT)) ||
	    request.level > SRN_FLUSH_MR) {
		srn_rx_refuse(qp, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_UNSPECIFIED);
		return false;
	}
	if (request.type & SRN_FLUSH_GLOBAL)
		access |= SRN_ACCESS_FLUSH_GLOBAL;
	if (request.type & SRN_FLUSH_PERSISTENT)
		access |= SRN_ACCESS_FLUSH_PERSISTENT;
	response = response_new(qp, SRN_RESPONSE_FLUSH);
	if (!response)
		return false;
	srn_mr_lock();
	if (request.level == SRN_FLUSH_RANGE ||
	    srn_mr_whole(pd, request.stag, &request.to, &request.size))
		at = srn_mr_at(pd, request.stag, request.to, request.size, access, &why);
	if (at && (request.type & SRN_FLUSH_PERSISTENT))
		durable = persist(at, request.size);
	srn_mr_unlock();
	if (!at) {
		srn_rx_refuse(qp, PROTECTION, why);
		return false;
	}
	if (!durable) {
		srn_rx_refuse(qp, TERM_RDMAP, TERM_RDMAP_LOCAL, 0);
		return false;
	}
	response->id = request.id;
	qp->response_count++;
	return true;
}

bool srn_rx_response(struct srn_qp *qp, const uint8_t *payload, bool atomic)
{
	struct srn_wqe *wqe = srn_oldest_waiting(qp);
	bool is_flush = wqe && wqe->opcode == SRN_WR_FLUSH;
	uint8_t value[sizeof(uint64_t)];
	struct ibv_sge part[SRN_MAX_SGE];
	uint64_t original;
	unsigned int i, n;
	uint32_t id, done = 0;
	uint8_t why;
	void *at = NULL;

	if (!wqe || wqe->opcode == IBV_WR_RDMA_READ || atomic == is_flush ||
	    get32(payload) != wqe->msn) {
		srn_rx_refuse(qp, TERM_RDMAP, TERM_RDMAP_OPERATION, TERM_BAD_OPCODE);
		return false;
	}
	if (atomic && wqe->opcode != IBV_WR_ATOMIC_WRITE) {
		rdmap_decode_atomic_response(payload, &id, &original);
		memcpy(value, &original, sizeof(value));
		n = srn_sge_part(wqe->sge, wqe->num_sge, 0, sizeof(value), part);
		srn_mr_lock();
		for (i = 0; i < n; i++) {
			at = srn_mr_at(qp->v.ex.qp_base.pd, part[i].lkey, part[i].addr,
				       part[i].length, IBV_ACCESS_LOCAL_WRITE, &why);
			if (!at)
				break;
			memcpy(at, value + done, part[i].length);
			done += part[i].length;
		}
		srn_mr_unlock();
		if (!at) {
			srn_qp_fail(qp, NULL, qp->waiting[qp->waiting_head], IBV_WC_LOC_PROT_ERR);
			return false;
		}
	}
	srn_request_answered(qp);
	return true;
}
