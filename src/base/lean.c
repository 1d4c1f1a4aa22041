/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rare half of the leaning lock (lean.h). Only the owner makes it lean, and only while it holds
 * the real lock: so nobody else can be inside then, and whoever comes next finds `shared` cleared
 * and goes through the fence.
 */
#include "base/lean.h"

#include "system/futex.h"

/* Entries of an undisturbed owner before it leans again: they pay for the fence. */
#ifdef BLZ_MODEL
enum { LEAN_AFTER = 2 };
#else
enum { LEAN_AFTER = 2048 };
#endif

void blz__lean_init(blz__lean *lean, bool asymmetric_fences)
{
    *lean = (blz__lean){.shared = !asymmetric_fences, .leans = asymmetric_fences};
}

/* The owner has looked in, and somebody else is there, or waits for it to go. */
void blz__lean_retreat(blz__lean *lean)
{
    blz__store(&lean->inside, 0u, RELEASE); /* pairs with the acquire in blz__lean_enter_other */
    blz__futex_wake(&lean->inside, 1);
}

void blz__lean_enter_shared(blz__lean *lean)
{
    blz__lock_acquire(&lean->lock);
    if (!lean->leans)
        return;
    blz__plain_write(&lean->alone);
    if (++lean->alone < LEAN_AFTER)
        return;
    lean->alone = 0;
    blz__store(&lean->shared, 0u, RELAXED);
}

void blz__lean_enter_other(blz__lean *lean)
{
    blz__lock_acquire(&lean->lock);
    blz__plain_write(&lean->alone);
    lean->alone = 0;
    if (blz__load(&lean->shared, RELAXED))
        return;
    blz__store(&lean->shared, 1u, RELAXED);
    blz__fence_heavy();                       /* pairs with the light fences of the owner */
    while (blz__load(&lean->inside, ACQUIRE)) /* pairs with the release when the owner leaves */
        blz__futex_wait(&lean->inside, 1);
}

void blz__lean_leave_other(blz__lean *lean)
{
    blz__lock_release(&lean->lock);
}
