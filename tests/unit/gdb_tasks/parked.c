/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parks tasks in places that run.py knows by their marks, and then ends in abort(), inside a poll:
 * for gdb to look at what is left.
 */
#include <blitz.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int parked; /* tasks that suspend next */

struct inner {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(inner)
{
    BLZ_BEGIN;
    atomic_fetch_add(&parked, 1);
    BLZ_AWAIT(self->rc, blz_pending(&self->op)); /* inner waits */
    BLZ_END(self->rc);
}

struct outer {
    BLZ_FRAME;
    int64_t rc;
    struct inner inner;
};

BLZ_ASYNC(outer)
{
    BLZ_BEGIN;
    BLZ_CALL(self->rc, self->inner, inner); /* outer waits */
    BLZ_END(self->rc);
}

struct sleeper {
    BLZ_FRAME;
    int64_t rc;
    blz_sleep_op op;
};

BLZ_ASYNC(sleeper)
{
    BLZ_BEGIN;
    atomic_fetch_add(&parked, 1);
    BLZ_AWAIT(self->rc, blz_sleep(&self->op, 3600 * BLZ_SEC)); /* sleeper waits */
    BLZ_END(self->rc);
}

#ifndef WITHOUT_COMBINATORS
struct chooser {
    BLZ_FRAME;
    int64_t rc;
    struct inner inner;
    blz_future never, there;
    blz_sleep_op sleep;
    blz_select_op select;
    blz_join_op join;
};

/* The second branch has branches of its own, of which the first has ended. */
static blz_future *choose(struct chooser *self)
{
    return blz_select(&self->select, BLZ_FUTURE(self->inner, inner),
                      blz_join(&self->join, blz_ready(&self->there, 0), blz_pending(&self->never),
                               blz_sleep(&self->sleep, BLZ_DAY)));
}

BLZ_ASYNC(chooser)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, choose(self)); /* chooser waits */
    BLZ_END(self->rc);
}

enum { NR_PARKED = 4 };
#else
enum { NR_PARKED = 3 };
#endif

/* A frame with more memory than the others, in a chunk of its own. */
struct large {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
    char bytes[100000];
};

BLZ_ASYNC(large)
{
    BLZ_BEGIN;
    atomic_fetch_add(&parked, 1);
    BLZ_AWAIT(self->rc, blz_pending(&self->op)); /* large waits */
    BLZ_END(self->rc);
}

struct never_polled {
    BLZ_FRAME;
};

BLZ_ASYNC(never_polled)
{
    BLZ_BEGIN;
    BLZ_END(0);
}

/* The only worker polls this one: the others have suspended, or are queued. */
struct aborter {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(aborter)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN(outer); /* outer spawned */
    if (self->rc == 0)
        self->rc = BLZ_SPAWN_WITH((&(blz_spawn_args){.name = "night shift"}), sleeper);
    if (self->rc == 0)
        self->rc = BLZ_SPAWN(large);
#ifndef WITHOUT_COMBINATORS
    if (self->rc == 0)
        self->rc = BLZ_SPAWN(chooser);
#endif
    while (self->rc == 0 && atomic_load(&parked) < NR_PARKED)
        BLZ_AWAIT(self->rc, blz_yield(&self->op)); /* aborter yields */
    if (self->rc == 0)
        self->rc = BLZ_SPAWN(never_polled);
    if (self->rc == 0)
        abort();
    BLZ_END(self->rc);
}

int main(void)
{
    blz_options options = {.workers = 1, .watchdog_ns = BLZ_NEVER};

    return BLZ_RUN_WITH(&options, aborter) < 0;
}
