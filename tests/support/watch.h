/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that notices when a test hangs. For harness.c. */
#ifndef BLZ_TESTS_WATCH_H
#define BLZ_TESTS_WATCH_H

/* Starts the thread, once. */
void watch_begin(void);

/* The current test, and how long it may take. NULL: none. */
void watch_test(const char *name, int seconds);

#endif
