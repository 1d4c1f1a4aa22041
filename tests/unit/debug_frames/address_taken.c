/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scalar that is set through its address before an await and read after it. clang rejects it, gcc
 * does not follow it.
 *
 * only:    gcc
 * plain:   kept
 * debug:   lost
 * checker: `number` is used here, but its value is lost at the await
 */
#include "hand.h"

struct parse {
    BLZ_FRAME;
    int number;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(parse)
{
#ifdef BAD
    int number;

    BLZ_BEGIN;
    get_number(&number);
    BLZ_AWAIT(self->rc, blz_ready(&self->op, 0));
    self->number = same_number(number);
#else
    BLZ_BEGIN;
    get_number(&self->number);
    BLZ_AWAIT(self->rc, blz_ready(&self->op, 0));
#endif
    BLZ_END(self->number);
}

int main(void)
{
    return RUN_IT(parse) != 12345;
}
