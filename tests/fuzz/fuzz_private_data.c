/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Private data of any length and content, from either side: with a request, with the answer, and
 * with any event in any order.  What is given to the user is what came, and nothing leaks.
 */

#include "fuzz.h"

static struct rpma_peer *peer;
static struct rpma_ep *ep;
static struct rdma_cm_id *listen_id;

static void passive(const uint8_t *data, uint8_t len, bool accept)
{
	struct rpma_conn_private_data pdata = {UNTOUCHED, 77};
	struct rpma_conn_private_data answer = {(void *)data, len};
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;

	mock_conn_request(listen_id, data, len);
	MUST(rpma_ep_next_conn_req(ep, NULL, &req) == 0);
	MUST(rpma_conn_req_get_private_data(req, &pdata) == 0);
	MUST(pdata.len == len && (len ? !memcmp(pdata.ptr, data, len) : !pdata.ptr));
	if (!accept) {
		MUST(rpma_conn_req_delete(&req) == 0);
		return;
	}
	/* back it goes: as much as fits, and an error for all else */
	if (rpma_conn_req_connect(&req, &answer, &conn)) {
		MUST((len == 0 || len > 196) && !req && !conn);
		return;
	}
	MUST(len > 0 && len <= 196);
	MUST(!memcmp(mock_seen()->conn.private_data, data, len));
	MUST(rpma_conn_get_private_data(conn, &pdata) == 0 && pdata.len == len);
	MUST(rpma_conn_delete(&conn) == 0);
}

static void active(const uint8_t *data, size_t size)
{
	struct rpma_conn_private_data pdata = {UNTOUCHED, 77};
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	uint8_t first[MOCK_PRIVATE_DATA_MAX], first_len = 0;

	MUST(rpma_conn_req_new(peer, "192.0.2.1", "7204", NULL, &req) == 0);
	MUST(rpma_conn_req_connect(&req, NULL, &conn) == 0);
	for (unsigned i = 0; i < 4 && size; i++) {
		enum rpma_conn_event event;
		uint8_t type, len, sent[MOCK_PRIVATE_DATA_MAX];
		int ret;

		take(&data, &size, &type, 1);
		take(&data, &size, &len, 1);
		take(&data, &size, sent, len);
		type %= RDMA_CM_EVENT_TIMEWAIT_EXIT + 2;
		mock_cm_event(mock_id(mock_alive_of(MOCK_ID) - 1), type, sent, len, -1);
		ret = rpma_conn_next_event(conn, &event);
		MUST(ret == 0 || ret == RPMA_E_UNKNOWN);
		if (type == RDMA_CM_EVENT_ESTABLISHED && !first_len) {
			first_len = len;
			memcpy(first, sent, len);
		}
		MUST(rpma_conn_get_private_data(conn, &pdata) == 0);
		MUST(pdata.len == first_len);
		MUST(!first_len || !memcmp(pdata.ptr, first, first_len));
	}
	MUST(rpma_conn_delete(&conn) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned alive;
	uint8_t kind;

	if (!peer) {
		mock_reset();
		rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
		peer = peer_new();
		ep = ep_new(peer);
		listen_id = ep_id();
	}
	alive = mock_alive();
	take(&data, &size, &kind, 1);
	if (kind % 3 == 2)
		active(data, size);
	else
		passive(data, size < 255 ? size : 255, kind % 3);
	must_be_clean(alive);
	return 0;
}
