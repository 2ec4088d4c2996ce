/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What clients and server agree on: a message is up to MESSAGE_SIZE bytes of text, an empty one is
 * the client's last.  The server has buffers for MESSAGES_MAX messages of each client.
 */
#define MESSAGE_SIZE 64
#define MESSAGES_MAX 8
