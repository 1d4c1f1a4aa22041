/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An unshield too many.
 *
 * plain: aborts: blz_unshield in `guard`, which has no shield
 * debug: aborts: blz_unshield in `guard`, which has no shield
 */
#include "hand.h"

struct guard {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(guard)
{
    BLZ_BEGIN;
    self->rc = blz_shield(cx);
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    blz_unshield(cx);
#ifdef BAD
    blz_unshield(cx);
#endif
    BLZ_END(self->rc);
}

int main(void)
{
    return RUN_IT(guard) != 0;
}
