/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An engine as fio sees it (the operations come first, so the symbol serves as both) and the method
 * behind it.
 */
#ifndef FIO_RPMA_ENGINE_H
#define FIO_RPMA_ENGINE_H

#include "fio-compat.h"
#include "method.h"

struct engine {
	struct ioengine_ops ops;
	const struct method *method;
};

#define ENGINE_EXPORT __attribute__((visibility("default")))

/* fio looks these up by name */
extern struct engine librpma_apm_client;
extern struct engine librpma_apm_server;
extern struct engine librpma_gpspm_client;
extern struct engine librpma_gpspm_server;

const struct method *engine_method(const struct thread_data *td);

/*
 * Does the running fio lay out its structures as the headers say that this was built with?  To be
 * called before anything else in post_init.  Returns 0, or EINVAL after saying that it does not.
 */
int engine_check(struct thread_data *td);

#endif /* FIO_RPMA_ENGINE_H */
