/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What client and server do alike with a connection.  Nothing here waits without a limit, and
 * every wait ends at once when fio wants the job to end.
 */
#ifndef FIO_RPMA_LINK_H
#define FIO_RPMA_LINK_H

#include <librpma.h>

#include "fio-compat.h"

uint64_t link_now_ms(void);

/* a connection configuration with these queues; the CQ holds all that both can have in flight */
struct link_queues {
	uint32_t sq;
	uint32_t rq;
	int timeout_ms; /* for resolving address and route */
};

int link_config(struct thread_data *td, const struct link_queues *queues,
		struct rpma_conn_cfg **cfg);

/*
 * Waits for a connection event.  Returns 0, ETIMEDOUT, ECANCELED (fio ends the job) or EIO (librpma
 * failed; say_rpma_reason() tells).
 */
int link_wait_event(struct thread_data *td, struct rpma_conn *conn, int timeout_ms,
		    enum rpma_conn_event *event);

/* an event that is there already; RPMA_CONN_UNDEFINED: none */
enum rpma_conn_event link_next_event(struct rpma_conn *conn);

/* how long a peer may take to agree to a disconnect, milliseconds */
#define LINK_DISCONNECT_LIMIT 1000

/* disconnects, gives the peer a moment to agree, and frees; *conn may be NULL */
void link_close(struct thread_data *td, struct rpma_conn **conn);

/* that moment, for one that was disconnected and has so much time left */
void link_wait_end(struct thread_data *td, struct rpma_conn *conn, int limit_ms);

/* fd of the CQ, -1 if it cannot be had */
int link_cq_fd(struct rpma_cq *cq);

#endif /* FIO_RPMA_LINK_H */
