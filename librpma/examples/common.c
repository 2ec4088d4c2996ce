// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define PAGE_SIZE 4096

bool failed(const char *what, int ret)
{
	if (ret)
		fprintf(stderr, "cannot %s: %s\n", what, rpma_err_2str(ret));
	return ret != 0;
}

int peer_open(const char *addr, enum rpma_util_ibv_context_type type, struct rpma_peer **peer_ptr)
{
	struct ibv_context *device = NULL;

	/* have the causes of errors on stderr, too */
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_WARNING);

	if (failed("find the device", rpma_utils_get_ibv_context(addr, type, &device)) ||
	    failed("open the device", rpma_peer_new(device, peer_ptr)))
		return -1;
	return 0;
}

void *buffer_new(size_t size)
{
	size = (size + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;

	void *buffer = aligned_alloc(PAGE_SIZE, size);

	if (buffer)
		memset(buffer, 0, size);
	else
		fprintf(stderr, "no memory for %zu bytes\n", size);
	return buffer;
}

int server_listen(struct rpma_peer *peer, const char *addr, const char *port,
		  struct rpma_ep **ep_ptr)
{
	if (failed("listen", rpma_ep_listen(peer, addr, port, ep_ptr)))
		return -1;
	puts("ready");
	fflush(stdout);
	return 0;
}

int server_accept(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
		  const struct rpma_conn_private_data *pdata, struct rpma_conn **conn_ptr)
{
	struct rpma_conn_req *req = NULL;

	if (failed("get a request", rpma_ep_next_conn_req(ep, cfg, &req)) ||
	    failed("accept", rpma_conn_req_connect(&req, pdata, conn_ptr)))
		return -1;
	return 0;
}

int server_wait_closed(struct rpma_conn **conn_ptr)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	int ret;

	/* a client that is done at once may have left before it is known to have come */
	do {
		ret = failed("get an event", rpma_conn_next_event(*conn_ptr, &event)) ? -1 : 0;
	} while (ret == 0 && event == RPMA_CONN_ESTABLISHED);
	if (ret == 0 && event != RPMA_CONN_CLOSED) {
		fprintf(stderr, "the client has gone: %s\n", rpma_utils_conn_event_2str(event));
		ret = -1;
	}
	if (failed("disconnect", rpma_conn_disconnect(*conn_ptr)))
		ret = -1;
	if (failed("delete the connection", rpma_conn_delete(conn_ptr)))
		ret = -1;
	return ret;
}

int client_connect(struct rpma_peer *peer, const char *addr, const char *port,
		   const struct rpma_conn_cfg *cfg, struct rpma_conn **conn_ptr)
{
	struct rpma_conn_req *req = NULL;

	if (failed("reach the server", rpma_conn_req_new(peer, addr, port, cfg, &req)) ||
	    failed("connect", rpma_conn_req_connect(&req, NULL, conn_ptr)))
		return -1;
	return conn_wait_for(*conn_ptr, RPMA_CONN_ESTABLISHED);
}

int client_disconnect(struct rpma_conn **conn_ptr)
{
	int ret = -1;

	if (!failed("disconnect", rpma_conn_disconnect(*conn_ptr)))
		ret = conn_wait_for(*conn_ptr, RPMA_CONN_CLOSED);
	if (failed("delete the connection", rpma_conn_delete(conn_ptr)))
		ret = -1;
	return ret;
}

int conn_wait_for(struct rpma_conn *conn, enum rpma_conn_event wanted)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	if (failed("get an event", rpma_conn_next_event(conn, &event)))
		return -1;
	if (event != wanted) {
		fprintf(stderr, "expected \"%s\", got \"%s\"\n", rpma_utils_conn_event_2str(wanted),
			rpma_utils_conn_event_2str(event));
		return -1;
	}
	return 0;
}

int wc_check(const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_SUCCESS)
		return 0;
	fprintf(stderr, "an operation failed: %s\n", ibv_wc_status_str(wc->status));
	return -1;
}

int cq_wait_one(struct rpma_cq *cq, struct ibv_wc *wc)
{
	int ret;

	/* an event may be that of a completion collected before: then there is none yet */
	while ((ret = rpma_cq_get_wc(cq, 1, wc, NULL)) == RPMA_E_NO_COMPLETION)
		if (failed("wait for a completion", rpma_cq_wait(cq)))
			return -1;
	if (failed("get a completion", ret))
		return -1;
	return wc_check(wc);
}

int offer_make(const struct rpma_mr_local *mr, bool direct_write_to_pmem, struct offer *offer)
{
	struct rpma_peer_cfg *pcfg = NULL;
	size_t mr_size = 0, pcfg_size = 0;
	int ret = -1;

	if (failed("make a peer configuration", rpma_peer_cfg_new(&pcfg)) ||
	    failed("set it", rpma_peer_cfg_set_direct_write_to_pmem(pcfg, direct_write_to_pmem)) ||
	    failed("get a size", rpma_peer_cfg_get_descriptor_size(pcfg, &pcfg_size)) ||
	    failed("get a size", rpma_mr_get_descriptor_size(mr, &mr_size)))
		goto out;
	if (mr_size != sizeof(offer->mr) || pcfg_size != sizeof(offer->pcfg)) {
		fprintf(stderr, "descriptors of %zu and %zu bytes are not known here\n", mr_size,
			pcfg_size);
		goto out;
	}
	if (failed("describe the platform", rpma_peer_cfg_get_descriptor(pcfg, offer->pcfg)) ||
	    failed("describe the memory", rpma_mr_get_descriptor(mr, offer->mr)))
		goto out;
	ret = 0;
out:
	rpma_peer_cfg_delete(&pcfg);
	return ret;
}

int offer_take(struct rpma_conn *conn, size_t size, struct rpma_mr_remote **mr_ptr)
{
	struct rpma_conn_private_data pdata = {0};
	struct rpma_peer_cfg *pcfg = NULL;
	struct offer offer;
	size_t offered = 0;
	int ret = -1;

	if (failed("get the private data", rpma_conn_get_private_data(conn, &pdata)))
		return -1;
	if (pdata.len < sizeof(offer)) {
		fprintf(stderr, "the server sent %u bytes, its offer has %zu\n", pdata.len,
			sizeof(offer));
		return -1;
	}
	memcpy(&offer, pdata.ptr, sizeof(offer));

	if (failed("understand the memory offered",
		   rpma_mr_remote_from_descriptor(offer.mr, sizeof(offer.mr), mr_ptr)) ||
	    failed("get its size", rpma_mr_remote_get_size(*mr_ptr, &offered)) ||
	    failed("understand the server's platform",
		   rpma_peer_cfg_from_descriptor(offer.pcfg, sizeof(offer.pcfg), &pcfg)) ||
	    failed("apply it", rpma_conn_apply_remote_peer_cfg(conn, pcfg)))
		goto out;
	if (offered < size) {
		fprintf(stderr, "the server offers %zu bytes, needed are %zu\n", offered, size);
		goto out;
	}
	ret = 0;
out:
	rpma_peer_cfg_delete(&pcfg);
	return ret;
}
