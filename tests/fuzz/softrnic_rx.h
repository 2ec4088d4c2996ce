/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOFTRNIC_RX_FUZZ_H
#define SOFTRNIC_RX_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/*
 * Feeds one input to the receive path of a connected queue pair, in pieces of changing size.
 * The first byte says how: bit 0 with CRCs, bit 1 with the extensions, bit 2 the input is no byte
 * stream but a list of frames to build (see struct record), so that deep states are reached.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
