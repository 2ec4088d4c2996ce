/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What client and server agree on: a message is up to MESSAGE_SIZE bytes of text.  The server
 * answers each, with its number as immediate data.  An empty message is the last one and gets no
 * answer.  Each side has one region: the first half for what it receives, the second for what it
 * sends.
 */
#define MESSAGE_SIZE  128
#define RECV_AT       0
#define SEND_AT       MESSAGE_SIZE
#define MESSAGES_SIZE (2 * MESSAGE_SIZE)
