// SPDX-License-Identifier: BSD-3-Clause
/* Threads on a real device: a connection each, and one connection posted to and polled by two. */
#include <pthread.h>
#include <string.h>

#include "pair.h"

#define THREADS 8
#define ROUNDS  50
#define QUEUE   64

struct job {
	pthread_t thread;
	struct end *end;
	size_t offset; /* of its own part of the memory, both sides */
	int failures;
};

/* cmocka's assertions are for the main thread; this counts */
static void *write_flush_read(void *arg)
{
	struct job *job = arg;
	struct end *e = job->end;
	struct ibv_wc wc;

	for (int i = 0; i < ROUNDS; i++) {
		size_t at = job->offset;
		int ret, left = 3;

		memset(e->memory + at, i, 512);
		ret = rpma_write(e->conn, e->remote, at, e->mr, at, 512, RPMA_F_COMPLETION_ALWAYS,
				 job);
		ret |= rpma_flush(e->conn, e->remote, at, 512, RPMA_FLUSH_TYPE_VISIBILITY,
				  RPMA_F_COMPLETION_ALWAYS, job);
		ret |= rpma_read(e->conn, e->mr, at + 512, e->remote, at, 512,
				 RPMA_F_COMPLETION_ALWAYS, job);
		while (ret == 0 && left > 0) {
			int poll = rpma_cq_get_wc(e->cq, 1, &wc, NULL);

			if (poll == 0 && wc.status == IBV_WC_SUCCESS && wc.wr_id == (uintptr_t)job)
				left--;
			else if (poll != RPMA_E_NO_COMPLETION)
				ret = -1;
		}
		job->failures += ret || memcmp(e->memory + at, e->memory + at + 512, 512);
	}

	return NULL;
}

static void test_eight_threads_with_a_connection_each(void **state)
{
	static struct pair pairs[THREADS];
	struct job jobs[THREADS] = {0};

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		pair_open(&pairs[i], NULL);
		jobs[i].end = &pairs[i].client;
	}
	for (int i = 0; i < THREADS; i++)
		assert_ok(pthread_create(&jobs[i].thread, NULL, write_flush_read, &jobs[i]));
	for (int i = 0; i < THREADS; i++) {
		assert_ok(pthread_join(jobs[i].thread, NULL));
		assert_int_equal(jobs[i].failures, 0);
		pair_close(&pairs[i]);
	}
}

/* posts; the other thread collects */
static void *post_writes(void *arg)
{
	struct job *job = arg;
	struct end *e = job->end;

	for (int i = 0; i < ROUNDS; i++)
		job->failures += rpma_write(e->conn, e->remote, job->offset, e->mr, job->offset, 64,
					    RPMA_F_COMPLETION_ALWAYS, job) != 0;

	return NULL;
}

static void test_two_threads_post_to_one_connection_while_a_third_polls(void **state)
{
	struct rpma_conn_cfg *cfg;
	struct job jobs[2] = {{.offset = 0}, {.offset = 4096}};
	int completed[2] = {0, 0};
	struct pair pair;

	(void)state;
	assert_ok(rpma_conn_cfg_new(&cfg));
	assert_ok(rpma_conn_cfg_set_sq_size(cfg, 2 * QUEUE));
	assert_ok(rpma_conn_cfg_set_cq_size(cfg, 2 * QUEUE));

	struct options options = {.client_cfg = cfg};

	pair_open(&pair, &options);
	for (int i = 0; i < 2; i++) {
		jobs[i].end = &pair.client;
		assert_ok(pthread_create(&jobs[i].thread, NULL, post_writes, &jobs[i]));
	}
	for (int i = 0; i < 2 * ROUNDS; i++) {
		struct ibv_wc wc;

		next_wc(pair.client.cq, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		completed[wc.wr_id == (uintptr_t)&jobs[1]]++;
	}
	for (int i = 0; i < 2; i++) {
		assert_ok(pthread_join(jobs[i].thread, NULL));
		assert_int_equal(jobs[i].failures, 0);
		assert_int_equal(completed[i], ROUNDS);
	}
	assert_ok(rpma_conn_cfg_delete(&cfg));
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_eight_threads_with_a_connection_each),
		cmocka_unit_test(test_two_threads_post_to_one_connection_while_a_third_polls),
	};

	return cmocka_run_group_tests_name("librpma_threads", tests, NULL, NULL);
}
