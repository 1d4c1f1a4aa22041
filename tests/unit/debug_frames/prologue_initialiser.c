/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local that is initialised before BLZ_BEGIN and changed in the body: the initialiser runs again
 * at each resume. If the awaited future is ready at once nobody notices.
 *
 * plain:   kept
 * debug:   lost
 * checker: `count` is used here, but it is set before BLZ_BEGIN
 */
#include "hand.h"

struct counter {
    BLZ_FRAME;
    int count;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(counter)
{
#ifdef BAD
    int count = 0;

    BLZ_BEGIN;
    count += same_number(5);
    BLZ_AWAIT(self->rc, blz_ready(&self->op, 0));
    self->count = count;
#else
    BLZ_BEGIN;
    self->count += same_number(5);
    BLZ_AWAIT(self->rc, blz_ready(&self->op, 0));
#endif
    BLZ_END(self->count);
}

int main(void)
{
    return RUN_IT(counter) != 5;
}
