/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stray `break` in a function that has not awaited anything yet.
 *
 * plain:   aborts: a `break` left the body of `leave` \(.*_first_await\.c, before its first await\)
 * debug:   aborts: a `break` left the body of `leave` \(.*_first_await\.c, before its first await\)
 * checker: a `break` outside of a loop
 */
#include "hand.h"

struct leave {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(leave)
{
    BLZ_BEGIN;
#ifdef BAD
    if (same_number(1))
        break;
#endif
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    BLZ_END(self->rc);
}

int main(void)
{
    return RUN_IT(leave) != 0;
}
