/* SPDX-License-Identifier: Apache-2.0 */
/* Processors. */
#ifndef BLZ_SYSTEM_CPU_H
#define BLZ_SYSTEM_CPU_H

/*
 * How many CPUs this process may use: the mask of its threads and the quota of its container,
 * rounded up; at least 1. May change while the program runs. [any thread]
 */
unsigned blz__cpu_count(void);

#endif
