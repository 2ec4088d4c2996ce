// SPDX-License-Identifier: BSD-3-Clause
/*
 * What a call costs in librpma alone: each operation CALLS times, on a device that does nothing.
 * librpma_cost.py runs this under callgrind with our library and with Debian's, and counts the
 * instructions inside the library while each cost_*() runs.
 *
 * usage: librpma_cost CALLS read|native
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <librpma.h>
#include <librpma_ext.h>

#include "librpma_cost.h"

#define REGION_SIZE 4096
#define BLOCK_SIZE  512
#define BATCH_SIZE  8 /* the CQ and SQ of a connection have 10 places by default */

struct setup {
	struct rpma_peer *peer;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct rpma_mr_local *local;
	struct rpma_mr_remote *remote;
};

static char memory[REGION_SIZE];

static void must(const char *what, int ret)
{
	if (ret == 0)
		return;
	fprintf(stderr, "librpma_cost: %s: %s\n", what, rpma_err_2str(ret));
	exit(1);
}

static void set_up(struct setup *s, bool native)
{
	struct rpma_conn_req *req;
	struct rpma_peer_cfg *pcfg;
	char descriptor[64];
	size_t size;

	must("rpma_peer_new", rpma_peer_new(mock_device(native), &s->peer));
	must("rpma_mr_reg", rpma_mr_reg(s->peer, memory, sizeof(memory), 0xff, &s->local));
	must("rpma_mr_get_descriptor_size", rpma_mr_get_descriptor_size(s->local, &size));
	must("rpma_mr_get_descriptor", rpma_mr_get_descriptor(s->local, descriptor));
	must("rpma_mr_remote_from_descriptor",
	     rpma_mr_remote_from_descriptor(descriptor, size, &s->remote));
	must("rpma_conn_req_new", rpma_conn_req_new(s->peer, "127.0.0.1", "7204", NULL, &req));
	must("rpma_conn_req_connect", rpma_conn_req_connect(&req, NULL, &s->conn));
	must("rpma_peer_cfg_new", rpma_peer_cfg_new(&pcfg));
	must("rpma_peer_cfg_set", rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	must("rpma_conn_apply_remote_peer_cfg", rpma_conn_apply_remote_peer_cfg(s->conn, pcfg));
	must("rpma_peer_cfg_delete", rpma_peer_cfg_delete(&pcfg));
	must("rpma_conn_get_cq", rpma_conn_get_cq(s->conn, &s->cq));
}

static void tear_down(struct setup *s)
{
	must("rpma_conn_delete", rpma_conn_delete(&s->conn));
	must("rpma_mr_remote_delete", rpma_mr_remote_delete(&s->remote));
	must("rpma_mr_dereg", rpma_mr_dereg(&s->local));
	must("rpma_peer_delete", rpma_peer_delete(&s->peer));
}

/* a function callgrind can name; it is called once */
#define COST(name, call)                                                         \
	__attribute__((noinline)) void cost_##name(struct setup *s, long calls); \
	void cost_##name(struct setup *s, long calls)                            \
	{                                                                        \
		for (long i = 0; i < calls; i++)                                 \
			must(#name, call);                                       \
	}

COST(write, rpma_write(s->conn, s->remote, BLOCK_SIZE, s->local, 0, BLOCK_SIZE,
		       RPMA_F_COMPLETION_ALWAYS, s))
COST(read, rpma_read(s->conn, s->local, 0, s->remote, BLOCK_SIZE, BLOCK_SIZE,
		     RPMA_F_COMPLETION_ALWAYS, s))
COST(flush, rpma_flush(s->conn, s->remote, BLOCK_SIZE, BLOCK_SIZE, RPMA_FLUSH_TYPE_PERSISTENT,
		       RPMA_F_COMPLETION_ALWAYS, s))
COST(atomic_write,
     rpma_atomic_write(s->conn, s->remote, BLOCK_SIZE, memory, RPMA_F_COMPLETION_ALWAYS, s))
COST(send, rpma_send(s->conn, s->local, 0, BLOCK_SIZE, RPMA_F_COMPLETION_ALWAYS, s))
COST(recv, rpma_recv(s->conn, s->local, 0, BLOCK_SIZE, s))

__attribute__((noinline)) void cost_get_wc(struct setup *s, long calls);
void cost_get_wc(struct setup *s, long calls)
{
	struct ibv_wc wc[BATCH_SIZE];
	int got;

	mock_completions(BATCH_SIZE);
	for (long i = 0; i < calls; i++)
		must("get_wc", rpma_cq_get_wc(s->cq, BATCH_SIZE, wc, &got));
}

__attribute__((noinline)) void cost_get_wc_of_empty_cq(struct setup *s, long calls);
void cost_get_wc_of_empty_cq(struct setup *s, long calls)
{
	struct ibv_wc wc;

	mock_completions(0);
	for (long i = 0; i < calls; i++)
		if (rpma_cq_get_wc(s->cq, 1, &wc, NULL) != RPMA_E_NO_COMPLETION)
			must("get_wc_of_empty_cq", RPMA_E_UNKNOWN);
}

/* ours only, so by name: BATCH_SIZE writes and a doorbell, counted as BATCH_SIZE calls */
__attribute__((noinline)) void cost_batched_write(struct setup *s, long calls);
void cost_batched_write(struct setup *s, long calls)
{
	__typeof__(&rpma_batch_new) new = dlsym(RTLD_DEFAULT, "rpma_batch_new");
	__typeof__(&rpma_batch_write) write = dlsym(RTLD_DEFAULT, "rpma_batch_write");
	__typeof__(&rpma_batch_submit) submit = dlsym(RTLD_DEFAULT, "rpma_batch_submit");
	__typeof__(&rpma_batch_delete) delete = dlsym(RTLD_DEFAULT, "rpma_batch_delete");
	struct rpma_batch *batch;

	if (!new || !write || !submit || !delete)
		return;

	must("batch_new", new (s->conn, BATCH_SIZE, &batch));
	for (long i = 0; i < calls; i += BATCH_SIZE) {
		for (int j = 0; j < BATCH_SIZE; j++)
			must("batch_write", write(batch, s->remote, 0, s->local, 0, BLOCK_SIZE,
						  RPMA_F_COMPLETION_ON_ERROR, s));
		must("batch_submit", submit(batch, RPMA_F_COMPLETION_ALWAYS, NULL));
	}
	must("batch_delete", delete (&batch));
}

int main(int argc, char **argv)
{
	struct setup s;
	long calls = argc == 3 ? strtol(argv[1], NULL, 10) : 0;

	if (calls < 1 || (strcmp(argv[2], "read") != 0 && strcmp(argv[2], "native") != 0)) {
		fprintf(stderr, "usage: librpma_cost CALLS read|native\n");
		return 2;
	}

	set_up(&s, strcmp(argv[2], "native") == 0);
	/* The first call of each also binds its symbol. */
	cost_write(&s, 1);
	cost_read(&s, 1);
	cost_flush(&s, 1);
	cost_atomic_write(&s, 1);
	cost_send(&s, 1);
	cost_recv(&s, 1);
	cost_get_wc(&s, 1);
	cost_get_wc_of_empty_cq(&s, 1);
	cost_batched_write(&s, 1);

	cost_write(&s, calls);
	cost_read(&s, calls);
	cost_flush(&s, calls);
	cost_atomic_write(&s, calls);
	cost_send(&s, calls);
	cost_recv(&s, calls);
	cost_get_wc(&s, calls);
	cost_get_wc_of_empty_cq(&s, calls);
	cost_batched_write(&s, calls);
	tear_down(&s);

	return 0;
}
