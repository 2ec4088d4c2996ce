// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "cq.h"
#include "log.h"

int rpma_cq_new(struct ibv_context *ctx, uint32_t size, struct ibv_comp_channel *shared_channel,
		struct rpma_cq **cq_ptr)
{
	int cqe = size > INT_MAX ? INT_MAX : (int)size;
	int ret = RPMA_E_PROVIDER;
	struct rpma_cq *cq = malloc(sizeof(*cq));

	if (cq == NULL)
		return RPMA_E_NOMEM;

	cq->shared_channel = shared_channel != NULL;
	cq->channel = shared_channel ? shared_channel : ibv_create_comp_channel(ctx);
	if (cq->channel == NULL) {
		RPMA_LOG_CALL("ibv_create_comp_channel()", errno);
		goto err_free;
	}

	cq->cq = ibv_create_cq(ctx, cqe, NULL, cq->channel, 0);
	if (cq->cq == NULL) {
		RPMA_LOG_ERROR("ibv_create_cq(cqe=%d) failed: %s", cqe, rpma_log_strerror(errno));
		goto err_destroy_channel;
	}

	int err = ibv_req_notify_cq(cq->cq, 0);

	if (err) {
		RPMA_LOG_CALL("ibv_req_notify_cq()", err);
		goto err_destroy_cq;
	}

	*cq_ptr = cq;

	return 0;

err_destroy_cq:
	(void)ibv_destroy_cq(cq->cq);
err_destroy_channel:
	if (!cq->shared_channel)
		(void)ibv_destroy_comp_channel(cq->channel);
err_free:
	free(cq);
	return ret;
}

int rpma_cq_delete(struct rpma_cq **cq_ptr)
{
	struct rpma_cq *cq = *cq_ptr;
	int ret = 0;

	if (cq == NULL)
		return 0;

	int err = ibv_destroy_cq(cq->cq);

	if (err) {
		RPMA_LOG_CALL("ibv_destroy_cq()", err);
		ret = RPMA_E_PROVIDER;
	}

	if (!cq->shared_channel) {
		err = ibv_destroy_comp_channel(cq->channel);
		if (err) {
			RPMA_LOG_CALL("ibv_destroy_comp_channel()", err);
			ret = RPMA_E_PROVIDER;
		}
	}

	free(cq);
	*cq_ptr = NULL;

	return ret;
}

int rpma_cq_take_event(struct ibv_comp_channel *channel, struct ibv_cq **cq)
{
	void *context;

	/* An empty non-blocking channel is no fault, so this is not logged. */
	if (ibv_get_cq_event(channel, cq, &context))
		return RPMA_E_NO_COMPLETION;

	ibv_ack_cq_events(*cq, 1);

	int err = ibv_req_notify_cq(*cq, 0);

	if (err) {
		RPMA_LOG_CALL("ibv_req_notify_cq()", err);
		return RPMA_E_PROVIDER;
	}

	return 0;
}

int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd)
{
	if (cq == NULL || fd == NULL)
		return RPMA_E_INVAL;

	*fd = cq->channel->fd;

	return 0;
}

int rpma_cq_wait(struct rpma_cq *cq)
{
	struct ibv_cq *ready;

	if (cq == NULL)
		return RPMA_E_INVAL;
	if (cq->shared_channel)
		return RPMA_E_SHARED_CHANNEL;

	return rpma_cq_take_event(cq->channel, &ready);
}

RPMA_COLD static int poll_failed(int got, int num_entries)
{
	if (got < 0) {
		RPMA_LOG_ERROR("ibv_poll_cq() failed");
		return RPMA_E_PROVIDER;
	}
	RPMA_LOG_ERROR("ibv_poll_cq() gave %d completions, %d were asked for", got, num_entries);
	return RPMA_E_UNKNOWN;
}

int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc, int *num_entries_got)
{
	if (unlikely(cq == NULL || num_entries < 1 || wc == NULL))
		return RPMA_E_INVAL;
	if (unlikely(num_entries_got == NULL && num_entries > 1))
		return RPMA_E_INVAL;

	int got = ibv_poll_cq(cq->cq, num_entries, wc);

	/* One comparison finds what is below 1 or above num_entries. */
	if ((unsigned int)got - 1 >= (unsigned int)num_entries)
		return got == 0 ? RPMA_E_NO_COMPLETION : poll_failed(got, num_entries);
	if (num_entries_got)
		*num_entries_got = got;

	return 0;
}
