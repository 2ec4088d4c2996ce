/* SPDX-License-Identifier: BSD-3-Clause */

#include <endian.h>
#include <string.h>

#include "fixture.h"

char region[REGION];

int unit_setup(void **state)
{
	(void)state;
	mock_reset();
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	return 0;
}

int unit_teardown(void **state)
{
	const char *verdict = mock_verdict();

	(void)state;
	if (verdict)
		print_error("%s\n", verdict);
	mock_reset();
	return verdict ? -1 : 0;
}

struct rpma_peer *peer_new(void)
{
	struct rpma_peer *peer = NULL;

	assert_ok(rpma_peer_new(mock_context(), &peer));
	assert_non_null(peer);
	return peer;
}

void peer_delete(struct rpma_peer *peer)
{
	assert_ok(rpma_peer_delete(&peer));
	assert_null(peer);
}

struct rpma_mr_local *mr_new(struct rpma_peer *peer, int usage)
{
	struct rpma_mr_local *mr = NULL;

	assert_ok(rpma_mr_reg(peer, region, sizeof(region), usage, &mr));
	assert_non_null(mr);
	return mr;
}

void mr_delete(struct rpma_mr_local *mr)
{
	assert_ok(rpma_mr_dereg(&mr));
	assert_null(mr);
}

void descriptor(uint8_t desc[21], uint64_t addr, uint64_t len, uint32_t rkey, uint8_t usage)
{
	addr = htole64(addr);
	len = htole64(len);
	rkey = htole32(rkey);
	memcpy(desc, &addr, 8);
	memcpy(desc + 8, &len, 8);
	memcpy(desc + 16, &rkey, 4);
	desc[20] = usage;
}

struct rpma_mr_remote *remote_new(uint64_t addr, uint64_t len, int usage)
{
	struct rpma_mr_remote *mr = NULL;
	uint8_t desc[21];

	descriptor(desc, addr, len, REMOTE_RKEY, usage);
	assert_ok(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &mr));
	assert_non_null(mr);
	return mr;
}

void remote_delete(struct rpma_mr_remote *mr)
{
	assert_ok(rpma_mr_remote_delete(&mr));
	assert_null(mr);
}

struct rpma_conn_cfg *cfg_new(void)
{
	struct rpma_conn_cfg *cfg = NULL;

	assert_ok(rpma_conn_cfg_new(&cfg));
	assert_non_null(cfg);
	return cfg;
}

void cfg_delete(struct rpma_conn_cfg *cfg)
{
	assert_ok(rpma_conn_cfg_delete(&cfg));
	assert_null(cfg);
}

struct rpma_conn_req *outgoing_new(struct rpma_peer *peer, const struct rpma_conn_cfg *cfg)
{
	struct rpma_conn_req *req = NULL;

	assert_ok(rpma_conn_req_new(peer, "192.0.2.1", "7204", cfg, &req));
	assert_non_null(req);
	return req;
}

struct rpma_ep *ep_new(struct rpma_peer *peer)
{
	struct rpma_ep *ep = NULL;

	assert_ok(rpma_ep_listen(peer, "192.0.2.1", "7204", &ep));
	assert_non_null(ep);
	return ep;
}

struct rdma_cm_id *ep_id(void)
{
	return mock_id(0);
}

struct rpma_conn_req *incoming_new(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
				   const void *pdata, uint8_t len)
{
	struct rpma_conn_req *req = NULL;

	mock_conn_request(ep_id(), pdata, len);
	assert_ok(rpma_ep_next_conn_req(ep, cfg, &req));
	assert_non_null(req);
	return req;
}

struct rpma_conn *conn_new(struct rpma_peer *peer, const struct rpma_conn_cfg *cfg)
{
	struct rpma_conn_req *req = outgoing_new(peer, cfg);
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_conn *conn = NULL;

	assert_ok(rpma_conn_req_connect(&req, NULL, &conn));
	assert_null(req);
	assert_non_null(conn);
	mock_cm_event(mock_id(mock_alive_of(MOCK_ID) - 1), RDMA_CM_EVENT_ESTABLISHED, NULL, 0, 0);
	assert_ok(rpma_conn_next_event(conn, &event));
	assert_int_equal(event, RPMA_CONN_ESTABLISHED);
	return conn;
}

void conn_delete(struct rpma_conn *conn)
{
	assert_ok(rpma_conn_delete(&conn));
	assert_null(conn);
}

void conn_apply_direct_write(struct rpma_conn *conn)
{
	struct rpma_peer_cfg *pcfg = NULL;

	assert_ok(rpma_peer_cfg_new(&pcfg));
	assert_ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	assert_ok(rpma_conn_apply_remote_peer_cfg(conn, pcfg));
	assert_ok(rpma_peer_cfg_delete(&pcfg));
}

void link_up_with(struct link *link, const struct rpma_conn_cfg *cfg)
{
	link->peer = peer_new();
	link->conn = conn_new(link->peer, cfg);
	link->local = mr_new(link->peer, USAGE_ALL);
	link->remote = remote_new(REMOTE_ADDR, REGION, USAGE_ALL);
	forget_wr();
}

void link_up(struct link *link)
{
	link_up_with(link, NULL);
}

void link_down(struct link *link)
{
	remote_delete(link->remote);
	mr_delete(link->local);
	conn_delete(link->conn);
	peer_delete(link->peer);
}

const struct mock_wr *the_wr(void)
{
	assert_int_equal(mock_seen()->wr_count, 1);
	assert_int_equal(mock_seen()->doorbells, 1);
	return &mock_seen()->wr[0];
}

void forget_wr(void)
{
	mock_seen()->wr_count = 0;
	mock_seen()->doorbells = 0;
}
