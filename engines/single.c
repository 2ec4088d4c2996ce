/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One engine of the plugin as a file of its own.  fio's `ioengine=external:FILE` asks a file for
 * its engine without saying which.
 */
struct ioengine_ops;

extern struct ioengine_ops ENGINE;

__attribute__((visibility("default"))) void get_ioengine(struct ioengine_ops **ops);

void get_ioengine(struct ioengine_ops **ops)
{
	*ops = &ENGINE;
}
