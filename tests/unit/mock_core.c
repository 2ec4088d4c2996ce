/* SPDX-License-Identifier: BSD-3-Clause */
/* Which call fails, and what is alive. */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mock.h"

enum { MAX_OBJECTS = 512, MAX_PARENTS = 6 };

struct object {
	void *ptr;
	const void *parent[MAX_PARENTS];
	void (*release)(void *);
	enum mock_kind kind;
	bool refused; /* its destruction was asked for, and failed as it was told to */
};

struct core {
	struct object object[MAX_OBJECTS];
	unsigned objects;
	unsigned calls[MOCK_NO_CALL];
	unsigned calls_of_any;
	/* what is to fail */
	enum mock_call fail_call;
	unsigned fail_at;
	int fail_errno;
	unsigned fail_any_at;
	bool fail_cleanup;
	enum mock_call failed;
	char fault[256];
	struct mock_seen seen;
	struct mock_device device;
};

static _Thread_local struct core core;

struct call_info {
	const char *name;
	int error;
	bool gives_up;
};

#define MOCK_INFO(call, error, gives_up) {#call, error, gives_up},
static const struct call_info call_info[] = {MOCK_CALLS(MOCK_INFO)};

static const char *const kind_name[MOCK_KINDS] = {
	[MOCK_MEMORY] = "memory",
	[MOCK_MAPPING] = "mapping",
	[MOCK_PD] = "PD",
	[MOCK_MR] = "MR",
	[MOCK_COMP_CHANNEL] = "completion channel",
	[MOCK_CQ] = "CQ",
	[MOCK_SRQ] = "SRQ",
	[MOCK_QP] = "QP",
	[MOCK_EVENT_CHANNEL] = "event channel",
	[MOCK_ID] = "rdma_cm_id",
	[MOCK_CM_EVENT] = "unacknowledged event",
	[MOCK_ADDRINFO] = "rdma_addrinfo",
};

void mock_reset(void)
{
	while (core.objects) {
		struct object *object = &core.object[--core.objects];

		if (object->release)
			object->release(object->ptr);
	}
	memset(&core, 0, sizeof(core));
	mock_fail_none();
	core.device.transport = IBV_TRANSPORT_IB;
	core.device.attr = (struct ibv_device_attr){.max_qp_wr = 1000,
						    .max_cqe = 2000,
						    .max_srq_wr = 3000,
						    .max_mr_size = UINT64_MAX,
						    .phys_port_cnt = 2};
	core.device.max_inline = 256;
	core.device.port[0] = (struct ibv_port_attr){.max_msg_sz = 1 << 30};
	core.device.port[1] = (struct ibv_port_attr){.max_msg_sz = 1u << 31};
}

struct mock_seen *mock_seen(void)
{
	return &core.seen;
}

struct mock_device *mock_device(void)
{
	return &core.device;
}

const char *mock_name(enum mock_call call)
{
	return call == MOCK_NO_CALL ? "nothing" : call_info[call].name;
}

bool mock_gives_up(enum mock_call call)
{
	return call_info[call].gives_up;
}

int mock_default_errno(enum mock_call call)
{
	return call_info[call].error;
}

void mock_fail_none(void)
{
	core.fail_call = MOCK_NO_CALL;
	core.fail_any_at = 0;
	core.fail_cleanup = false;
	core.failed = MOCK_NO_CALL;
}

void mock_fail(enum mock_call call, unsigned nth, int error)
{
	mock_fail_none();
	core.fail_call = call;
	core.fail_at = core.calls[call] + nth;
	core.fail_errno = error;
}

void mock_fail_any(unsigned nth, bool cleanup_too)
{
	mock_fail_none();
	core.fail_any_at = core.calls_of_any + nth;
	core.fail_cleanup = cleanup_too;
}

enum mock_call mock_failed(void)
{
	return core.failed;
}

unsigned mock_calls(enum mock_call call)
{
	return core.calls[call];
}

int mock_enter(enum mock_call call)
{
	core.calls[call]++;
	core.calls_of_any++;
	if (core.failed != MOCK_NO_CALL)
		return core.fail_cleanup && call_info[call].gives_up ? call_info[call].error : 0;
	if (core.fail_call == call && core.calls[call] == core.fail_at) {
		core.failed = call;
		return core.fail_errno;
	}
	if (core.fail_any_at && core.calls_of_any == core.fail_any_at) {
		core.failed = call;
		return call_info[call].error;
	}
	return 0;
}

bool mock_fails(enum mock_call call)
{
	int error = mock_enter(call);

	if (error)
		errno = error == MOCK_WITHOUT_ERRNO ? 0 : error;
	return error != 0;
}

void mock_wrong(const char *format, ...)
{
	va_list args;

	/* the first fault explains those that follow from it */
	if (core.fault[0])
		return;
	va_start(args, format);
	vsnprintf(core.fault, sizeof(core.fault), format, args);
	va_end(args);
}

static struct object *find(enum mock_kind kind, const void *ptr)
{
	/* the newest first: that is what is asked for most */
	for (unsigned i = core.objects; i-- > 0;)
		if (core.object[i].ptr == ptr && core.object[i].kind == kind)
			return &core.object[i];
	return NULL;
}

void mock_born(enum mock_kind kind, void *ptr, void (*release)(void *))
{
	if (core.objects == MAX_OBJECTS) {
		mock_wrong("more than %d objects are alive", MAX_OBJECTS);
		return;
	}
	core.object[core.objects++] = (struct object){.ptr = ptr, .kind = kind, .release = release};
}

void mock_moves(const void *ptr, const void *from, const void *to)
{
	for (unsigned i = 0; i < core.objects; i++) {
		struct object *object = &core.object[i];

		for (unsigned p = 0; object->ptr == ptr && p < MAX_PARENTS; p++) {
			if (object->parent[p] == from) {
				object->parent[p] = to;
				return;
			}
		}
	}
}

void mock_hangs_on(const void *ptr, const void *parent)
{
	if (parent)
		mock_moves(ptr, NULL, parent);
}

static const struct object *child_of(const void *parent)
{
	for (unsigned i = 0; i < core.objects; i++) {
		const struct object *object = &core.object[i];

		for (unsigned p = 0; p < MAX_PARENTS && !object->refused; p++)
			if (object->parent[p] == parent)
				return object;
	}
	return NULL;
}

int mock_dies(enum mock_kind kind, void *ptr, enum mock_call call)
{
	struct object *object = find(kind, ptr);
	const struct object *child;
	int refusal = call == MOCK_NO_CALL ? 0 : mock_enter(call);

	if (!object) {
		mock_wrong("%s %p is given up, but is not alive", kind_name[kind], ptr);
		return 0;
	}
	child = kind == MOCK_MEMORY || kind == MOCK_MAPPING ? NULL : child_of(ptr);
	if (child)
		mock_wrong("a %s is given up before the %s on it", kind_name[kind],
			   kind_name[child->kind]);
	if (refusal) {
		object->refused = true;
		return refusal;
	}
	*object = core.object[--core.objects];
	return 0;
}

bool mock_is_alive(enum mock_kind kind, const void *ptr)
{
	return find(kind, ptr) != NULL;
}

void *mock_nth_of(enum mock_kind kind, unsigned nth)
{
	for (unsigned i = 0; i < core.objects; i++)
		if (core.object[i].kind == kind && nth-- == 0)
			return core.object[i].ptr;
	return NULL;
}

unsigned mock_alive_of(enum mock_kind kind)
{
	unsigned alive = 0;

	for (unsigned i = 0; i < core.objects; i++)
		alive += core.object[i].kind == kind && !core.object[i].refused;
	return alive;
}

unsigned mock_alive(void)
{
	unsigned alive = 0;

	for (unsigned kind = 0; kind < MOCK_KINDS; kind++)
		alive += mock_alive_of(kind);
	return alive;
}

const char *mock_fault(void)
{
	return core.fault[0] ? core.fault : NULL;
}

const char *mock_verdict(void)
{
	for (unsigned kind = 0; kind < MOCK_KINDS; kind++) {
		unsigned alive = mock_alive_of(kind);

		if (alive)
			mock_wrong("%u %s left behind", alive, kind_name[kind]);
	}
	return mock_fault();
}

void mock_record_wr(const struct mock_wr *wr)
{
	if (core.seen.wr_count < MOCK_MAX_WR)
		core.seen.wr[core.seen.wr_count] = *wr;
	core.seen.wr_count++;
}

bool mock_would_block(int fd, const char *call)
{
	if (!(fcntl(fd, F_GETFL) & O_NONBLOCK))
		mock_wrong("%s waits for what never comes", call);
	errno = EAGAIN;
	return true;
}
