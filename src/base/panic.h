/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the road for broken invariants: a misuse that no error code could report, because
 * whoever made it does not look at one. Exhausted resources never come here.
 */
#ifndef BLZ_BASE_PANIC_H
#define BLZ_BASE_PANIC_H

#include <blitz/base.h>

/* Writes "blitz: ", the sentence and a newline to stderr, and aborts. [any thread] */
BLZ_NORETURN BLZ_COLD void blz__panic(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Writes "blitz: ", the sentence and a newline to stderr, in one piece. [any thread] */
BLZ_COLD void blz__warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
