// SPDX-License-Identifier: BSD-3-Clause
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"

#define USAGE_ALL       0xff
#define FIRST_PORT      21000
#define PORTS           100
#define DESCRIPTOR_SIZE 64
#define NSEC_IN_MSEC    1000000L
#define MSEC_IN_SEC     1000L

static _Thread_local char last_message[1024];

const char *test_address(void)
{
	const char *address = getenv("RPMA_TEST_ADDR");

	return address ? address : "127.0.0.1";
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);

	return ts.tv_sec * MSEC_IN_SEC + ts.tv_nsec / NSEC_IN_MSEC;
}

struct rpma_peer *new_peer(void)
{
	struct ibv_context *ctx;
	struct rpma_peer *peer;

	assert_ok(rpma_utils_get_ibv_context(test_address(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	assert_ok(rpma_peer_new(ctx, &peer));

	return peer;
}

uint32_t features(void)
{
	struct rpma_peer *peer = new_peer();
	uint32_t has;

	assert_ok(rpma_peer_get_features(peer, &has));
	assert_ok(rpma_peer_delete(&peer));

	return has;
}

void wait_readable(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&pollfd, 1, LIMIT_MS), 1);
}

static void end_open(struct end *end, char *memory, size_t size, int usage)
{
	end->peer = new_peer();
	end->own_memory = memory == NULL;
	end->size = memory ? size : MEMORY_SIZE;
	end->memory = memory;
	if (end->own_memory) {
		end->memory = mmap(NULL, end->size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(end->memory, MAP_FAILED);
	}
	assert_ok(rpma_mr_reg(end->peer, end->memory, end->size, usage, &end->mr));
}

static void end_close(struct end *end)
{
	assert_ok(rpma_conn_delete(&end->conn));
	assert_ok(rpma_mr_remote_delete(&end->remote));
	assert_ok(rpma_mr_dereg(&end->mr));
	assert_ok(rpma_peer_delete(&end->peer));
	if (end->own_memory)
		munmap(end->memory, end->size);
}

void pair_listen(struct pair *pair, const struct options *options)
{
	static const struct options none;
	int usage = USAGE_ALL & ~RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	int ret = -1;

	if (options == NULL)
		options = &none;
	memset(pair, 0, sizeof(*pair));
	end_open(&pair->client, NULL, 0, usage);
	end_open(&pair->server, options->memory, options->size, usage | options->usage);

	for (int i = 0; i < PORTS && ret; i++) {
		snprintf(pair->port, sizeof(pair->port), "%d",
			 FIRST_PORT + (int)(getpid() + i) % PORTS);
		ret = rpma_ep_listen(pair->server.peer, test_address(), pair->port, &pair->ep);
	}
	assert_ok(ret);
}

static void exchange(struct end *from, struct end *to)
{
	char descriptor[DESCRIPTOR_SIZE];
	size_t size;

	assert_ok(rpma_mr_get_descriptor_size(from->mr, &size));
	assert_true(size <= sizeof(descriptor));
	assert_ok(rpma_mr_get_descriptor(from->mr, descriptor));
	assert_ok(rpma_mr_remote_from_descriptor(descriptor, size, &to->remote));
}

void pair_connect(struct pair *pair, const struct options *options)
{
	static const struct options none;
	struct rpma_conn_req *active, *passive;
	int fd;

	if (options == NULL)
		options = &none;

	assert_ok(rpma_conn_req_new(pair->client.peer, test_address(), pair->port,
				    options->client_cfg, &active));
	assert_ok(rpma_conn_req_connect(&active, options->client_data, &pair->client.conn));
	assert_null(active);

	assert_ok(rpma_ep_get_fd(pair->ep, &fd));
	wait_readable(fd);
	assert_ok(rpma_ep_next_conn_req(pair->ep, options->server_cfg, &passive));
	assert_ok(rpma_conn_req_connect(&passive, options->server_data, &pair->server.conn));
	assert_null(passive);

	assert_int_equal(next_event(pair->client.conn), RPMA_CONN_ESTABLISHED);
	assert_int_equal(next_event(pair->server.conn), RPMA_CONN_ESTABLISHED);

	assert_ok(rpma_conn_get_cq(pair->client.conn, &pair->client.cq));
	assert_ok(rpma_conn_get_cq(pair->server.conn, &pair->server.cq));
	exchange(&pair->server, &pair->client);
	exchange(&pair->client, &pair->server);
}

void pair_open(struct pair *pair, const struct options *options)
{
	pair_listen(pair, options);
	pair_connect(pair, options);
}

void pair_disconnect(struct pair *pair)
{
	assert_ok(rpma_conn_disconnect(pair->client.conn));
	assert_int_equal(next_event(pair->server.conn), RPMA_CONN_CLOSED);
	/* only now does InfiniBand's connection manager answer the client */
	assert_ok(rpma_conn_disconnect(pair->server.conn));
	assert_int_equal(next_event(pair->client.conn), RPMA_CONN_CLOSED);
	assert_ok(rpma_conn_delete(&pair->client.conn));
	assert_ok(rpma_conn_delete(&pair->server.conn));
}

void pair_close(struct pair *pair)
{
	if (pair->client.conn)
		pair_disconnect(pair);
	end_close(&pair->client);
	assert_ok(rpma_ep_shutdown(&pair->ep));
	end_close(&pair->server);
}

enum rpma_conn_event next_event(struct rpma_conn *conn)
{
	enum rpma_conn_event event;
	int fd;

	assert_ok(rpma_conn_get_event_fd(conn, &fd));
	wait_readable(fd);
	assert_ok(rpma_conn_next_event(conn, &event));

	return event;
}

void next_wc(struct rpma_cq *cq, struct ibv_wc *wc)
{
	long end = now_ms() + LIMIT_MS;
	int ret;

	do {
		ret = rpma_cq_get_wc(cq, 1, wc, NULL);
	} while (ret == RPMA_E_NO_COMPLETION && now_ms() < end);
	assert_ok(ret);
}

void expect_wc(struct rpma_cq *cq, const void *op_context)
{
	struct ibv_wc wc;

	next_wc(cq, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, (uintptr_t)op_context);
}

void expect_no_wc(struct rpma_cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(rpma_cq_get_wc(cq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
}

__attribute__((format(printf, 5, 6))) static void keep(enum rpma_log_level level, const char *file,
						       const int line, const char *function,
						       const char *format, ...)
{
	va_list args;

	(void)level, (void)file, (void)line, (void)function;
	va_start(args, format);
	vsnprintf(last_message, sizeof(last_message), format, args);
	va_end(args);
}

void log_capture(void)
{
	last_message[0] = '\0';
	assert_ok(rpma_log_set_function(keep));
}

const char *log_last(void)
{
	return last_message;
}
