/* SPDX-License-Identifier: Apache-2.0 */
/* The parker of park.h. */
#include "sched/park.h"

#include "base/assert.h"
#include "system/futex.h"

/* EMPTY -> how. False: there was a token; it is consumed. */
static bool begin(parker *p, uint32_t how)
{
    uint32_t state = PARK_EMPTY;

    BLZ_ASSERT(how == PARK_FUTEX || how == PARK_DRIVER);
    BLZ_ASSERT(blz__peek(&p->state) == PARK_EMPTY || blz__peek(&p->state) == PARK_NOTIFIED);
    /* acquire: pairs with the release in unpark; release: our queues are as others find them */
    if (blz__cas(&p->state, &state, how, ACQ_REL, ACQUIRE))
        return true;
    blz__swap(&p->state, (uint32_t)PARK_EMPTY, ACQUIRE); /* pairs with unpark, any number of them */
    return false;
}

void blz__parker_wait(parker *p, int64_t deadline_ns)
{
    if (!begin(p, PARK_FUTEX))
        return;
    while (blz__load(&p->state, RELAXED) == PARK_FUTEX) {
        if (deadline_ns == INT64_MAX)
            blz__futex_wait(&p->state, PARK_FUTEX);
        else if (!blz__futex_wait_until(&p->state, PARK_FUTEX, deadline_ns))
            break;
    }
    blz__swap(&p->state, (uint32_t)PARK_EMPTY, ACQUIRE); /* pairs with unpark */
}

bool blz__parker_begin_driver(parker *p)
{
    return begin(p, PARK_DRIVER);
}

void blz__parker_end_driver(parker *p)
{
    BLZ_ASSERT(blz__peek(&p->state) == PARK_DRIVER || blz__peek(&p->state) == PARK_NOTIFIED);
    blz__swap(&p->state, (uint32_t)PARK_EMPTY, ACQUIRE); /* pairs with unpark */
}

void blz__parker_unpark(parker *p)
{
    /* release: the work that we point to; pairs with the acquires above */
    switch (blz__swap(&p->state, (uint32_t)PARK_NOTIFIED, ACQ_REL)) {
    case PARK_FUTEX:
        blz__futex_wake(&p->state, 1);
        break;
    case PARK_DRIVER:
        p->driver->ops->wake(p->driver);
        break;
    default:
        break; /* awake, or about to be */
    }
}
