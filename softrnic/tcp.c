// SPDX-License-Identifier: BSD-3-Clause
/*
 * How TCP is set up for a connection: no delay, and which congestion control.
 *
 * Within a host there is no bandwidth to probe for, and pacing, which some systems' default
 * congestion control does (bbr), only costs timers: the window-based ones are several times as fast
 * there.  A socket that was paced once stays so whatever it is set to later (sk_pacing_status), so
 * each starts without, and gets the system's default when its peer turns out to be another host.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softrnic.h"

#define NAME_LEN 16 /* TCP_CA_NAME_MAX of the kernel */

static bool same_host(int fd)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_storage storage;
	} here, there;
	socklen_t len = sizeof(here), peer_len = sizeof(there);

	if (getsockname(fd, &here.sa, &len) || getpeername(fd, &there.sa, &peer_len) ||
	    here.sa.sa_family != there.sa.sa_family)
		return false;
	if (here.sa.sa_family == AF_INET)
		return here.in.sin_addr.s_addr == there.in.sin_addr.s_addr;
	return !memcmp(&here.in6.sin6_addr, &there.in6.sin6_addr, sizeof(here.in6.sin6_addr));
}

void srn_tcp_new(int fd)
{
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", strlen("cubic")))
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
}

/* What a new socket has is the default. */
static void use_default(int fd)
{
	char name[NAME_LEN];
	socklen_t len = sizeof(name);
	int fresh = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fresh < 0)
		return;
	if (!getsockopt(fresh, IPPROTO_TCP, TCP_CONGESTION, name, &len))
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strnlen(name, len));
	close(fresh);
}

void srn_tcp_established(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (!same_host(fd))
		use_default(fd);
}
