/* SPDX-License-Identifier: Apache-2.0 */
/* Randomness. */
#ifndef BLZ_SYSTEM_RANDOM_H
#define BLZ_SYSTEM_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/*
 * Fills the buffer with bytes that nobody can predict. 0 or a negative error; then the bytes are
 * undefined. -EAGAIN: the system has not gathered enough yet, early at its start. [any thread]
 */
int blz__random_bytes(void *buf, size_t len);

/*
 * 64 bits that differ from call to call. Not for secrets: where the system has no random bytes,
 * they come from the clock. [any thread]
 */
uint64_t blz__random_seed(void);

#endif
