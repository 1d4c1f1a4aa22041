/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scalar that is assigned before an await and used after it. gcc sees it only when it optimises,
 * and then rejects it; without optimisation the program can be built, and fails.
 *
 * only:    gcc -O0
 * plain:   kept
 * debug:   lost
 * checker: `number` is used here, but its value is lost at the await
 */
#include "hand.h"

struct sum {
    BLZ_FRAME;
    int number;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(sum)
{
#ifdef BAD
    int number;

    BLZ_BEGIN;
    number = same_number(7);
    BLZ_AWAIT(self->rc, blz_ready(&self->op, 0));
    self->number = same_number(number);
#else
    BLZ_BEGIN;
    self->number = same_number(7);
    BLZ_AWAIT(self->rc, blz_ready(&self->op, 0));
#endif
    BLZ_END(self->number);
}

int main(void)
{
    return RUN_IT(sum) != 7;
}
