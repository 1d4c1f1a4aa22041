/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asymmetric fences: a store and a later load on each side, one side hot, the other rare.
 *
 *     hot thread                    rare thread
 *     store A                       store B
 *     light fence                   heavy fence
 *     load B                        load A
 *
 * At least one of the two loads sees the store of the other thread, as with two seq_cst fences. The
 * light fence costs nothing: it only keeps the compiler from moving the load up. The heavy fence
 * (blz__fence_heavy) makes the system interrupt every CPU that runs a thread of this process, which
 * takes some microseconds.
 *
 * Where the system has no such call, blz__fence_asymmetric_init returns false, and both sides need
 * a full fence. Code that must also work there keeps that answer and uses the `_or_full` functions.
 * Code that takes another path there uses the plain ones.
 *
 * A call names its partner in a comment. `blitz/par.h` has a light fence of its own, for the inline
 * code of programs.
 */
#ifndef BLZ_BASE_FENCE_H
#define BLZ_BASE_FENCE_H

#include "base/atomic.h"
#include "system/fence.h"

#include <blitz/base.h>

/* The hot side, where the rare side is known to issue a heavy fence. [any thread] */
static inline void blz__fence_light(void)
{
    __asm__ __volatile__("" ::: "memory");
}

/* The hot side: light, or a full fence where the system has no heavy one. [any thread] */
static inline void blz__fence_light_or_full(bool asymmetric)
{
    blz__fence_light();
    if (blz_unlikely(!asymmetric))
        blz__fence_seq_cst();
}

/* The rare side: heavy, or a full fence where the system has no heavy one. [any thread] */
static inline void blz__fence_heavy_or_full(bool asymmetric)
{
    if (asymmetric)
        blz__fence_heavy();
    else
        blz__fence_seq_cst();
}

#endif
