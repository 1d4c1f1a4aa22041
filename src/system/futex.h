/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Futexes: threads that sleep on a 32-bit word of this process.
 *
 * A wake may be issued by a signal handler. It may also come after the word's memory has been
 * freed, and is harmless then: the caller of a wake owns nothing any more.
 */
#ifndef BLZ_SYSTEM_FUTEX_H
#define BLZ_SYSTEM_FUTEX_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Waits while *word == expected, without a time limit. Comparing and falling asleep are one step.
 * May return early for no reason: the caller reads the word again. [any thread]
 */
void blz__futex_wait(uint32_t *word, uint32_t expected);

/*
 * Waits while *word == expected, until the monotonic clock reaches deadline_ns: false then. Never
 * returns false early. If the word has another value it returns true, whatever the deadline. May
 * return true early for no reason. [any thread]
 */
bool blz__futex_wait_until(uint32_t *word, uint32_t expected, int64_t deadline_ns);

/* Wakes up to `count` threads that sleep on the word. [any thread, signal handlers] */
void blz__futex_wake(uint32_t *word, int count);

#endif
