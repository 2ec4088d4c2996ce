/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What clients and server agree on: a client has STATE_SIZE bytes in the server's memory, where it
 * writes its state, a text.  Each write tells the server by immediate data how many there were. The
 * server has UPDATES_MAX receives prepared, which is the most a client may write.
 */
#define STATE_SIZE  64
#define UPDATES_MAX 8
