/* SPDX-License-Identifier: Apache-2.0 */
/* The async functions of frames.h. */
#include "harness.h"

BLZ_ASYNC_EXTERN(give)
{
    BLZ_BEGIN;
    BLZ_END(self->value);
}

BLZ_ASYNC_EXTERN(yields)
{
    BLZ_BEGIN;
    while (self->times-- > 0) {
        if (self->count)
            __atomic_fetch_add(self->count, 1, __ATOMIC_RELAXED);
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
        if (self->rc < 0)
            goto out;
    }
    self->rc = self->value;
out:
    BLZ_END(self->rc);
}

BLZ_ASYNC_EXTERN(enters)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, gate_enter(&self->op, self->gate));
    if (self->done)
        event_post(self->done);
    BLZ_END(self->rc);
}

BLZ_ASYNC_EXTERN(sleeps)
{
    BLZ_BEGIN;
    if (self->started)
        event_post(self->started);
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    BLZ_END(self->rc);
}

BLZ_ASYNC_EXTERN(calls)
{
    BLZ_BEGIN;
    BLZ_END(self->fn(self->arg));
}
