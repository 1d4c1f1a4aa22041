/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's half of asymmetric fences: base/fence.h has the other half, and the reasons.
 *
 * A heavy fence in one thread and a light fence in another order the two threads like a pair of
 * seq_cst fences. The light one costs nothing where the system can interrupt the other threads
 * (membarrier on Linux and FreeBSD, FlushProcessWriteBuffers on Windows). Where it cannot,
 * blz__fence_asymmetric_init returns false and the light fence must be a real one: callers keep the
 * answer and pass it in.
 */
#ifndef BLZ_SYSTEM_FENCE_H
#define BLZ_SYSTEM_FENCE_H

#include <stdbool.h>

/* Whether heavy fences work in this process. [any thread] */
bool blz__fence_asymmetric_init(void);

/*
 * The heavy fence; only after blz__fence_asymmetric_init returned true. Panics if it fails: then a
 * system call filter was installed later, and two threads could be inside of one lock. [any thread]
 */
void blz__fence_heavy(void);

#endif
