/* SPDX-License-Identifier: Apache-2.0 */
/* What the backends have in common: an eventfd to be woken by, and time limits. */
#ifndef BLZ_IO_WAKE_H
#define BLZ_IO_WAKE_H

#include <stdint.h>
#include <time.h>

/* A descriptor that becomes readable by blz__wake_send. Or a negative errno. */
int blz__wake_open(void);
void blz__wake_send(int fd);

/* Takes what has been sent. */
void blz__wake_drain(int fd);

/* From now to the deadline; nothing if it has passed, or is 0. */
struct timespec blz__time_left(int64_t deadline_ns);

/* The same in milliseconds, rounded up; -1: no deadline. */
int blz__time_left_ms(int64_t deadline_ns, const struct timespec *left);

#endif
