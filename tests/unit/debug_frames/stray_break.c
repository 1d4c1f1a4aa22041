/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A `break` that is not in a loop leaves the body.
 *
 * plain:   aborts: a `break` left the body of `leave` \(after .*stray_break\.c:@here@\)
 * debug:   aborts: a `break` left the body of `leave` \(after .*stray_break\.c:@here@\)
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
    BLZ_AWAIT(self->rc, blz_yield(&self->op)); /* here */
    if (self->rc == 0)
#ifdef BAD
        break;
#else
        goto out;
#endif
    self->rc = 1;
#ifndef BAD
out:
#endif
    BLZ_END(self->rc);
}

int main(void)
{
    return RUN_IT(leave) != 0;
}
