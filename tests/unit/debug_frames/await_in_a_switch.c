/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An await in a `switch` of the user: its resume point belongs to the wrong one.
 *
 * plain:   aborts: `pick` cannot resume at .*switch.*\.c:@here@: an await must not be inside
 * debug:   aborts: `pick` cannot resume at .*switch.*\.c:@here@: an await must not be inside
 * checker: an await inside a `switch` cannot be resumed
 */
#include "hand.h"

struct pick {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(pick)
{
    BLZ_BEGIN;
#ifdef BAD
    switch (same_number(1)) {
    case 1:
        BLZ_AWAIT(self->rc, blz_yield(&self->op)); /* here */
        break;
    default:
        break;
    }
#else
    if (same_number(1) == 1)
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
#endif
    BLZ_END(self->rc);
}

int main(void)
{
    return RUN_IT(pick) != 0;
}
