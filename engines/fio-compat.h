/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fio's headers, and all that differs between the fio versions an engine can be built for (3.33 and
 * later).  Nothing else in this folder looks at a version.
 */
#ifndef FIO_RPMA_FIO_COMPAT_H
#define FIO_RPMA_FIO_COMPAT_H

#include "fio.h"
#include "optgroup.h"

#if FIO_IOOPS_VERSION < 31
#error "these engines need fio 3.33 or later (FIO_IOOPS_VERSION 31)"
#endif

/*
 * LD_PRELOAD puts the plugin into programs that are not fio as well: there, what it needs of fio at
 * load time is not to be had.  (Functions that are merely called are looked up when they are.)
 */
#pragma weak register_ioengine
#pragma weak unregister_ioengine
#pragma weak fio_version_string
#pragma weak fio_debug
#pragma weak log_err

/* 3.38 dropped the option group of the engines that fio had itself */
#if FIO_IOOPS_VERSION <= 33
#define COMPAT_OPT_GROUP FIO_OPT_G_LIBRPMA
#else
#define COMPAT_OPT_GROUP FIO_OPT_G_INVALID
#endif

#endif /* FIO_RPMA_FIO_COMPAT_H */
