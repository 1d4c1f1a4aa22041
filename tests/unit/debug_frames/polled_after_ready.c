/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second poll after the function was ready.
 *
 * plain: aborts: `once` was polled again after it was ready \(.*polled_after_ready\.c\)
 * debug: aborts: `once` was polled again after it was ready \(.*polled_after_ready\.c\)
 */
#include "hand.h"

struct once {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(once)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    BLZ_END(self->rc);
}

int main(void)
{
    struct once once = {.blz_frame.ops = &once_ops};
    int64_t rc = hand_run(&once.blz_frame);

#ifdef BAD
    rc = hand_run(&once.blz_frame);
#endif
    return rc != 0;
}
