/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of librpma share: objects in the state a test begins with, and the checks. */
#ifndef TESTS_UNIT_FIXTURE_H
#define TESTS_UNIT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <librpma.h>
#include <librpma_ext.h>

#include "mock.h"

/*
 * A test of librpma: begins with a fresh mock, and fails if anything is left behind or was used
 * wrongly, whatever it checked itself.
 */
#define RPMA_TEST(name) cmocka_unit_test_setup_teardown(name, unit_setup, unit_teardown)

int unit_setup(void **state);
int unit_teardown(void **state);

/* A pointer that no function may have written; and what makes one of any type. */
#define UNTOUCHED                ((void *)(uintptr_t)0x5ca1ab1e)
#define assert_untouched(ptr)    assert_ptr_equal(ptr, UNTOUCHED)
#define assert_ok(call)          assert_int_equal(call, 0)
#define assert_error(call, code) assert_int_equal(call, code)

/* a reason to see in a debugger, not a number that could be one by chance */
#define CONTEXT ((const void *)(uintptr_t)0xc0ffee)

enum { REGION = 4096, REMOTE_ADDR = 0x10000000, REMOTE_RKEY = 0x77777777 };
extern char region[REGION];

enum {
	USAGE_ALL = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
		    RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
		    RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV,
};

struct rpma_peer *peer_new(void);
void peer_delete(struct rpma_peer *peer);

struct rpma_mr_local *mr_new(struct rpma_peer *peer, int usage);
void mr_delete(struct rpma_mr_local *mr);
struct rpma_mr_remote *remote_new(uint64_t addr, uint64_t len, int usage);
void remote_delete(struct rpma_mr_remote *mr);
/* the 21 bytes that travel */
void descriptor(uint8_t desc[21], uint64_t addr, uint64_t len, uint32_t rkey, uint8_t usage);

struct rpma_conn_cfg *cfg_new(void);
void cfg_delete(struct rpma_conn_cfg *cfg);
struct rpma_conn_req *outgoing_new(struct rpma_peer *peer, const struct rpma_conn_cfg *cfg);
struct rpma_ep *ep_new(struct rpma_peer *peer);
struct rdma_cm_id *ep_id(void);
struct rpma_conn_req *incoming_new(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
				   const void *pdata, uint8_t len);
/* An established active connection; its id is the newest. */
struct rpma_conn *conn_new(struct rpma_peer *peer, const struct rpma_conn_cfg *cfg);
void conn_delete(struct rpma_conn *conn);
/* Tells that the other side persists what is written directly to its memory. */
void conn_apply_direct_write(struct rpma_conn *conn);

/* All that an operation needs. */
struct link {
	struct rpma_peer *peer;
	struct rpma_conn *conn;
	struct rpma_mr_local *local;
	struct rpma_mr_remote *remote;
};

void link_up(struct link *link);
void link_up_with(struct link *link, const struct rpma_conn_cfg *cfg);
void link_down(struct link *link);

/* The one work request posted since the mock's last reset or forget. */
const struct mock_wr *the_wr(void);
void forget_wr(void);

#endif
