/* SPDX-License-Identifier: BSD-3-Clause */
/* what client and server agree on: so much memory, with a string in it */
#define TEXT_SIZE 64
