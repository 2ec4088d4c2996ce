/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client and a server of librpma in one process, on the RDMA device of $RPMA_TEST_ADDR: what the
 * tests of this folder start from.  Nothing waits for ever; whatever does not come within LIMIT_MS
 * fails the test.
 */
#ifndef DEVICE_PAIR_H
#define DEVICE_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <librpma.h>
#include <librpma_ext.h>

#define LIMIT_MS        10000
#define MEMORY_SIZE     65536

#define assert_ok(call) assert_int_equal(call, 0)

/* one side */
struct end {
	struct rpma_peer *peer;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	char *memory;
	size_t size;
	bool own_memory;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote; /* the other side's memory */
};

struct pair {
	struct rpma_ep *ep;
	char port[8];
	struct end client;
	struct end server;
};

struct options {
	const struct rpma_conn_cfg *client_cfg;
	const struct rpma_conn_cfg *server_cfg;
	const struct rpma_conn_private_data *client_data;
	const struct rpma_conn_private_data *server_data;
	/* of the server; NULL: MEMORY_SIZE of DRAM */
	char *memory;
	size_t size;
	/* beyond all usages but FLUSH_TYPE_PERSISTENT, for the server's memory */
	int usage;
};

const char *test_address(void);

/* the peer of the device under test */
struct rpma_peer *new_peer(void);

/* what the device has: RPMA_FEATURE_* */
uint32_t features(void);

/* listens on a free port; pair_connect() makes the connection and exchanges the memory */
void pair_listen(struct pair *pair, const struct options *options);
void pair_connect(struct pair *pair, const struct options *options);

/* both, with options or NULL */
void pair_open(struct pair *pair, const struct options *options);

/* the end of the connection, and of all else */
void pair_disconnect(struct pair *pair);
void pair_close(struct pair *pair);

/* the next event of the connection, within LIMIT_MS */
enum rpma_conn_event next_event(struct rpma_conn *conn);

/* the next completion of the CQ, within LIMIT_MS; expect_wc() wants success and this op_context */
void next_wc(struct rpma_cq *cq, struct ibv_wc *wc);
void expect_wc(struct rpma_cq *cq, const void *op_context);
void expect_no_wc(struct rpma_cq *cq);

/* fd becomes readable within LIMIT_MS */
void wait_readable(int fd);

/* from here on log messages are kept and not written; the newest one */
void log_capture(void);
const char *log_last(void);

#endif /* DEVICE_PAIR_H */
