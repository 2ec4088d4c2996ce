// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "private_data.h"

/* InfiniBand and RoCE with RDMA_PS_TCP, bytes: rdma_connect(3), rdma_accept(3) */
#define ACTIVE_MAX  56
#define PASSIVE_MAX 196

int rpma_private_data_store(const struct rdma_cm_event *event, struct rpma_conn_private_data *pdata)
{
	const void *data = event->param.conn.private_data;
	uint8_t len = event->param.conn.private_data_len;

	if (data == NULL || len == 0)
		return 0;

	void *copy = malloc(len);

	if (copy == NULL)
		return RPMA_E_NOMEM;

	memcpy(copy, data, len);
	pdata->ptr = copy;
	pdata->len = len;

	return 0;
}

void rpma_private_data_delete(struct rpma_conn_private_data *pdata)
{
	free(pdata->ptr);
	pdata->ptr = NULL;
	pdata->len = 0;
}

int rpma_private_data_check(const struct rpma_conn_private_data *pdata, const struct rdma_cm_id *id,
			    bool passive)
{
	uint8_t max = passive ? PASSIVE_MAX : ACTIVE_MAX;

	if (pdata->ptr == NULL || pdata->len == 0) {
		RPMA_LOG_ERROR("the private data is empty; give none at all (NULL) instead");
		return RPMA_E_INVAL;
	}
	if (id->verbs->device->transport_type == IBV_TRANSPORT_IB && pdata->len > max) {
		RPMA_LOG_ERROR("the private data is too long: %u bytes, this device carries at "
			       "most %u from the %s side",
			       pdata->len, max, passive ? "accepting" : "connecting");
		return RPMA_E_INVAL;
	}

	return 0;
}
