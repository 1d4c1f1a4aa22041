/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random bytes from the system, for keys, tokens and seeds. A program that takes them from here,
 * and the time from blz_now and blz_wall_now, depends on nothing that a simulator could not repeat.
 *
 *     unsigned char key[32];
 *     int rc = blz_random_bytes(key, sizeof key);
 */
#ifndef BLITZ_RANDOM_H
#define BLITZ_RANDOM_H

#include <blitz/base.h>

BLZ_BEGIN_DECLS

/*
 * Fills the buffer with bytes that nobody can predict. Does not wait. 0; -EAGAIN: the system has
 * not gathered enough yet, which happens only early at its start; or another negative error. After
 * an error the bytes are undefined. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_random_bytes(void *buf, size_t len);

BLZ_END_DECLS
#endif
