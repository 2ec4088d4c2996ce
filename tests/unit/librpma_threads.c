/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What librpma.h promises to several threads.  To be run under helgrind and with TSan as well.
 *
 * The mock keeps its state for each thread and takes no lock, so whatever orders two threads here
 * is librpma's own.  An assertion that fails in a thread ends the program, and so the test.
 */

#include <pthread.h>
#include <stdlib.h>

#include "conn.h" /* librpma's own, for a member that helgrind has to be told about */
#include "log.h"
#include "walk.h"

#if __has_include(<valgrind/helgrind.h>)
#include <valgrind/helgrind.h>
#else
#define VALGRIND_HG_DISABLE_CHECKING(addr, size) ((void)(addr), (void)(size))
#endif

enum { THREADS = 4, ROUNDS = 200, ALWAYS = RPMA_F_COMPLETION_ALWAYS };

static struct link l;
static pthread_barrier_t start;

struct job {
	void (*run)(unsigned nth);
	unsigned nth;
	pthread_t thread;
};

static void *run_job(void *arg)
{
	struct job *job = arg;
	const char *verdict;

	mock_reset();
	pthread_barrier_wait(&start);
	job->run(job->nth);
	verdict = mock_verdict();
	if (verdict) {
		print_error("thread %u: %s\n", job->nth, verdict);
		exit(EXIT_FAILURE);
	}
	return NULL;
}

/* The first job is for one thread, the other one for all others. */
static void run_threads(void (*first)(unsigned), void (*others)(unsigned))
{
	struct job job[THREADS];

	assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		job[i] = (struct job){.run = i ? others : first, .nth = i};
		assert_int_equal(pthread_create(&job[i].thread, NULL, run_job, &job[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(job[i].thread, NULL), 0);
	pthread_barrier_destroy(&start);
}

/* Everything an initiator does, on objects of its own but for the peer. */
static void a_connection_of_its_own(unsigned nth)
{
	struct rpma_mr_local *local = mr_new(l.peer, USAGE_ALL);
	struct rpma_mr_remote *remote = remote_new(REMOTE_ADDR, REGION, USAGE_ALL);
	struct rpma_conn *conn = conn_new(l.peer, NULL);
	struct rpma_conn_private_data pdata;
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc;

	(void)nth;
	conn_apply_direct_write(conn);
	assert_ok(rpma_conn_get_cq(conn, &cq));
	forget_wr();
	for (unsigned i = 0; i < ROUNDS; i++) {
		assert_ok(rpma_write(conn, remote, 0, local, 0, 8, ALWAYS, CONTEXT));
		assert_ok(rpma_flush(conn, remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS, NULL));
		mock_device()->wc_ready = 1;
		mock_cq_event(mock_cq(0));
		assert_ok(rpma_cq_wait(cq));
		assert_ok(rpma_cq_get_wc(cq, 1, &wc, NULL));
	}
	assert_int_equal(mock_seen()->doorbells, 2 * ROUNDS);
	assert_ok(rpma_conn_get_private_data(conn, &pdata));
	assert_ok(rpma_conn_disconnect(conn));
	conn_delete(conn);
	remote_delete(remote);
	mr_delete(local);
}

static void rpma_peer_new__a_peer_serves_several_threads(void **state)
{
	(void)state;
	l.peer = peer_new();
	run_threads(a_connection_of_its_own, a_connection_of_its_own);
	peer_delete(l.peer);
}

/* Accepts on an endpoint of its own. */
static void an_endpoint_of_its_own(unsigned nth)
{
	struct rpma_ep *ep = ep_new(l.peer);

	(void)nth;
	for (unsigned i = 0; i < ROUNDS / 10; i++) {
		struct rpma_conn_req *req = incoming_new(ep, NULL, "hello", 5);
		struct rpma_conn *conn = NULL;

		assert_ok(rpma_conn_req_connect(&req, NULL, &conn));
		conn_delete(conn);
	}
	assert_ok(rpma_ep_shutdown(&ep));
}

static void rpma_ep_listen__endpoints_of_one_peer_in_several_threads(void **state)
{
	(void)state;
	l.peer = peer_new();
	run_threads(an_endpoint_of_its_own, a_connection_of_its_own);
	peer_delete(l.peer);
}

static void post(unsigned nth)
{
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc;
	uint32_t qp_num;

	(void)nth;
	for (unsigned i = 0; i < ROUNDS; i++) {
		assert_ok(rpma_write(l.conn, l.remote, 0, l.local, 0, 8, ALWAYS, NULL));
		assert_ok(rpma_read(l.conn, l.local, 0, l.remote, 0, 8, ALWAYS, NULL));
		assert_ok(rpma_write_with_imm(l.conn, l.remote, 0, l.local, 0, 8, ALWAYS, 1, NULL));
		assert_ok(rpma_atomic_write(l.conn, l.remote, 0, "8 bytes", ALWAYS, NULL));
		assert_ok(rpma_flush(l.conn, l.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS,
				     NULL));
		assert_ok(rpma_send(l.conn, l.local, 0, 8, ALWAYS, NULL));
		assert_ok(rpma_send_with_imm(l.conn, l.local, 0, 8, ALWAYS, 1, NULL));
		assert_ok(rpma_recv(l.conn, l.local, 0, 8, NULL));
		assert_ok(rpma_conn_get_cq(l.conn, &cq));
		assert_ok(rpma_conn_get_qp_num(l.conn, &qp_num));
		mock_device()->wc_ready = 1;
		assert_ok(rpma_cq_get_wc(cq, 1, &wc, NULL));
	}
	assert_int_equal(mock_seen()->doorbells, 8 * ROUNDS);
}

static void rpma_write__several_threads_post_to_and_poll_one_connection(void **state)
{
	(void)state;
	link_up(&l);
	run_threads(post, post);
	link_down(&l);
}

static void apply_peer_cfg(unsigned nth)
{
	struct rpma_peer_cfg *pcfg = NULL;

	(void)nth;
	assert_ok(rpma_peer_cfg_new(&pcfg));
	for (unsigned i = 0; i < ROUNDS; i++) {
		assert_ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, i % 2));
		assert_ok(rpma_conn_apply_remote_peer_cfg(l.conn, pcfg));
	}
	assert_ok(rpma_peer_cfg_delete(&pcfg));
}

static void rpma_conn_apply_remote_peer_cfg__runs_beside_posting(void **state)
{
	(void)state;
	link_up(&l);
	/* read and written atomically, which helgrind cannot see */
	VALGRIND_HG_DISABLE_CHECKING(&l.conn->flush_usage, sizeof(l.conn->flush_usage));
	run_threads(apply_peer_cfg, post);
	link_down(&l);
}

static struct rdma_cm_id *the_id;
static struct ibv_cq *the_cq;

static void take_events(unsigned nth)
{
	enum rpma_conn_event event;
	struct rpma_cq *cq = NULL;

	(void)nth;
	assert_ok(rpma_conn_get_cq(l.conn, &cq));
	for (unsigned i = 0; i < ROUNDS; i++) {
		mock_cm_event(the_id, RDMA_CM_EVENT_ESTABLISHED, NULL, 0, 0);
		assert_ok(rpma_conn_next_event(l.conn, &event));
		mock_cq_event(the_cq);
		assert_ok(rpma_cq_wait(cq));
	}
	assert_ok(rpma_conn_disconnect(l.conn));
}

static void rpma_conn_next_event__and_waiting_run_beside_posting(void **state)
{
	(void)state;
	link_up(&l);
	the_id = mock_id(0);
	the_cq = mock_cq(0);
	run_threads(take_events, post);
	link_down(&l);
}

static void fill_a_batch(unsigned nth)
{
	struct rpma_batch *batch = NULL;

	(void)nth;
	assert_ok(rpma_batch_new(l.conn, 4, &batch));
	for (unsigned i = 0; i < ROUNDS; i++) {
		assert_ok(rpma_batch_write(batch, l.remote, 0, l.local, 0, 8, ALWAYS, NULL));
		assert_ok(rpma_batch_flush(batch, l.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY,
					   ALWAYS, NULL));
		assert_ok(rpma_batch_submit(batch, 0, NULL));
	}
	assert_int_equal(mock_seen()->doorbells, ROUNDS);
	assert_ok(rpma_batch_delete(&batch));
}

static void rpma_batch_submit__batches_of_one_connection_in_several_threads(void **state)
{
	(void)state;
	link_up(&l);
	run_threads(post, fill_a_batch);
	link_down(&l);
}

static struct rpma_srq *srq;

static void receive_on_srq(unsigned nth)
{
	struct rpma_cq *rcq = NULL;

	(void)nth;
	for (unsigned i = 0; i < ROUNDS; i++) {
		assert_ok(rpma_srq_recv(srq, l.local, 0, 8, NULL));
		assert_ok(rpma_srq_get_rcq(srq, &rcq));
	}
	assert_int_equal(mock_seen()->doorbells, ROUNDS);
}

static void rpma_srq_recv__several_threads_post_to_one_queue(void **state)
{
	(void)state;
	link_up(&l);
	assert_ok(rpma_srq_new(l.peer, NULL, &srq));
	run_threads(receive_on_srq, receive_on_srq);
	assert_ok(rpma_srq_delete(&srq));
	link_down(&l);
}

static struct rpma_conn_cfg *cfg;

static void read_cfg(unsigned nth)
{
	uint32_t size = 0;
	bool shared;
	int timeout_ms;

	(void)nth;
	for (unsigned i = 0; i < ROUNDS; i++) {
		assert_ok(rpma_conn_cfg_get_cq_size(cfg, &size));
		assert_ok(rpma_conn_cfg_get_sq_size(cfg, &size));
		assert_ok(rpma_conn_cfg_get_timeout(cfg, &timeout_ms));
		assert_ok(rpma_conn_cfg_get_compl_channel(cfg, &shared));
	}
}

static void use_cfg(unsigned nth)
{
	(void)nth;
	for (unsigned i = 0; i < ROUNDS / 10; i++)
		conn_delete(conn_new(l.peer, cfg));
}

static void rpma_conn_cfg_get_cq_size__several_threads_read_and_use_one(void **state)
{
	(void)state;
	l.peer = peer_new();
	cfg = cfg_new();
	run_threads(read_cfg, use_cfg);
	cfg_delete(cfg);
	peer_delete(l.peer);
}

static void find_devices(unsigned nth)
{
	struct ibv_context *context;

	for (unsigned i = 0; i < ROUNDS / 10; i++)
		assert_ok(rpma_utils_get_ibv_context("192.0.2.1",
						     nth % 2 ? RPMA_UTIL_IBV_CONTEXT_LOCAL
							     : RPMA_UTIL_IBV_CONTEXT_REMOTE,
						     &context));
}

static void rpma_utils_get_ibv_context__in_several_threads(void **state)
{
	(void)state;
	run_threads(find_devices, find_devices);
}

static _Thread_local unsigned logged;

static void count_a(enum rpma_log_level level, const char *file_name, const int line_no,
		    const char *function_name, const char *format, ...)
{
	(void)level, (void)file_name, (void)line_no, (void)function_name, (void)format;
	logged++;
}

static void count_b(enum rpma_log_level level, const char *file_name, const int line_no,
		    const char *function_name, const char *format, ...)
{
	(void)level, (void)file_name, (void)line_no, (void)function_name, (void)format;
	logged++;
}

static void set_up_the_log(unsigned nth)
{
	enum rpma_log_level level;

	(void)nth;
	for (unsigned i = 0; i < ROUNDS; i++) {
		assert_ok(rpma_log_set_function(i % 2 ? count_a : count_b));
		assert_ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, i % 2 ? RPMA_LOG_LEVEL_ERROR
									   : RPMA_LOG_LEVEL_DEBUG));
		assert_ok(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level));
		assert_true(level == RPMA_LOG_LEVEL_ERROR || level == RPMA_LOG_LEVEL_DEBUG);
	}
}

static void log_errors(unsigned nth)
{
	struct rpma_mr_remote *mr;

	(void)nth;
	logged = 0;
	for (unsigned i = 0; i < ROUNDS; i++)
		assert_error(rpma_mr_remote_from_descriptor("", 0, &mr), RPMA_E_INVAL);
	/* every one reached one function or the other */
	assert_int_equal(logged, ROUNDS);
}

static void rpma_log_set_function__and_thresholds_change_while_others_log(void **state)
{
	(void)state;
	/* read and written atomically, which helgrind cannot see */
	VALGRIND_HG_DISABLE_CHECKING(rpma_log_thresholds, sizeof(rpma_log_thresholds));
	assert_ok(rpma_log_set_function(count_a));
	assert_ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR));
	run_threads(set_up_the_log, log_errors);
	assert_ok(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_peer_new__a_peer_serves_several_threads),
		RPMA_TEST(rpma_ep_listen__endpoints_of_one_peer_in_several_threads),
		RPMA_TEST(rpma_write__several_threads_post_to_and_poll_one_connection),
		RPMA_TEST(rpma_conn_apply_remote_peer_cfg__runs_beside_posting),
		RPMA_TEST(rpma_conn_next_event__and_waiting_run_beside_posting),
		RPMA_TEST(rpma_batch_submit__batches_of_one_connection_in_several_threads),
		RPMA_TEST(rpma_srq_recv__several_threads_post_to_one_queue),
		RPMA_TEST(rpma_conn_cfg_get_cq_size__several_threads_read_and_use_one),
		RPMA_TEST(rpma_utils_get_ibv_context__in_several_threads),
		RPMA_TEST(rpma_log_set_function__and_thresholds_change_while_others_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
