/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How fio finds the engines: by the name of an exported symbol after dlopen(), or in its own list
 * where the plugin was there from the start (LD_PRELOAD).
 */
#include "engine.h"

#include <errno.h>
#include <string.h>

#include "say.h"

#define WRONG_VERSION (-1)

static struct engine *const engines[] = {
	&librpma_apm_client,
	&librpma_apm_server,
	&librpma_gpspm_client,
	&librpma_gpspm_server,
};

#define ENGINES (sizeof(engines) / sizeof(engines[0]))

const struct method *engine_method(const struct thread_data *td)
{
	for (size_t i = 0; i < ENGINES; i++) {
		if (td->io_ops == &engines[i]->ops)
			return engines[i]->method;
	}
	return NULL;
}

/* fio then refuses the engines, by their version, before it calls anything in them */
static void refuse_this_fio(void)
{
	log_err("fio-rpma: this plugin was built for %s and cannot work in %s: build it with that "
		"fio's headers (make FIO_SRC=...)\n",
		FIO_RPMA_BUILT_FOR, fio_version_string);
	for (size_t i = 0; i < ENGINES; i++)
		engines[i]->ops.version = WRONG_VERSION;
}

__attribute__((constructor)) static void plugin_loaded(void)
{
	if (!register_ioengine || !log_err || !fio_version_string)
		return; /* not fio */
	if (strcmp(fio_version_string, FIO_RPMA_BUILT_FOR)) {
		refuse_this_fio();
		return;
	}
	for (size_t i = 0; i < ENGINES; i++)
		register_ioengine(&engines[i]->ops);
}

__attribute__((destructor)) static void plugin_unloaded(void)
{
	if (!unregister_ioengine)
		return;
	for (size_t i = 0; i < ENGINES; i++) {
		if (engines[i]->ops.list.next)
			unregister_ioengine(&engines[i]->ops);
	}
}

/*
 * Members far apart are compared with what they must be.  A fio configured with other features has
 * some of them elsewhere.
 */
int engine_check(struct thread_data *td)
{
	unsigned int i;

	if (!engine_method(td) || !td->eo || td->io_u_all.nr != td->o.iodepth)
		goto other_layout;
	for (i = 0; i < td->io_u_all.nr; i++) {
		if (td->io_u_all.io_us[i]->index != i)
			goto other_layout;
	}
	return 0;
other_layout:
	log_err("fio-rpma: this fio was configured with other features than the headers that the "
		"plugin was built with: build it with this fio's own configured source tree (make "
		"FIO_SRC=...)\n");
	td->error = EINVAL;
	return EINVAL;
}
