/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock that leans to one thread, its owner. While nobody else comes, the owner enters and leaves
 * by plain stores, without a read-modify-write. Another thread that comes makes it an ordinary
 * lock for both; when the owner has been alone for a while it leans again.
 *
 *   inside    the owner is in, and has not taken the lock
 *   shared    the owner takes the lock, like everybody; set and cleared under the lock
 *
 *     owner, leaning                     another thread
 *     inside = 1                         lock
 *     light fence                        shared = 1, if it is not
 *     shared? then out, and lock         heavy fence
 *     ...                                inside? then wait until it is 0
 *     inside = 0                         ...
 *     light fence                        unlock
 *     shared? then wake who waits
 *
 * The heavy fence interrupts the owner's CPU (some microseconds). After it, either the owner is
 * seen inside, or the owner sees `shared` when it enters; and an owner that leaves after it sees
 * that somebody waits. Where there is no such fence the lock never leans.
 */
#ifndef BLZ_BASE_LEAN_H
#define BLZ_BASE_LEAN_H

#include "base/fence.h"
#include "base/lock.h"
#include "system/futex.h"

#include <blitz/base.h>

typedef struct blz__lean {
    uint32_t inside; /* also a futex */
    uint32_t shared;
    blz__lock lock;
    uint32_t alone; /* times that the owner came since another thread did; under the lock */
    bool leans;     /* there is a heavy fence */
} blz__lean;

void blz__lean_init(blz__lean *lean, bool asymmetric_fences);

/* [any thread but the owner] */
void blz__lean_enter_other(blz__lean *lean);
void blz__lean_leave_other(blz__lean *lean);

void blz__lean_retreat(blz__lean *lean);
void blz__lean_enter_shared(blz__lean *lean);

/* Gives what leave wants back: whether the real lock is held. [owner] */
static inline bool blz__lean_enter(blz__lean *lean)
{
    if (blz_likely(!blz__load(&lean->shared, RELAXED))) {
        blz__store(&lean->inside, 1u, RELAXED);
        blz__fence_light(); /* pairs with blz__fence_heavy in blz__lean_enter_other */
        if (blz_likely(!blz__load(&lean->shared, RELAXED)))
            return false;
        blz__lean_retreat(lean);
    }
    blz__lean_enter_shared(lean);
    return true;
}

/* [owner] */
static inline void blz__lean_leave(blz__lean *lean, bool locked)
{
    if (blz_unlikely(locked)) {
        blz__lock_release(&lean->lock);
        return;
    }
    blz__store(&lean->inside, 0u, RELEASE); /* pairs with the acquire in blz__lean_enter_other */
    blz__fence_light();                     /* pairs with blz__fence_heavy there */
    if (blz_unlikely(blz__load(&lean->shared, RELAXED)))
        blz__futex_wake(&lean->inside, 1);
}

#endif
