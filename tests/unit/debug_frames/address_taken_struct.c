/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A struct that is set through its address before an await and read after it: no compiler follows
 * it.
 *
 * plain:   kept
 * debug:   lost
 * checker: `pair` is used here, but its value is lost at the await
 */
#include "hand.h"

struct parse {
    BLZ_FRAME;
    struct pair pair;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(parse)
{
#ifdef BAD
    struct pair pair;

    BLZ_BEGIN;
    get_pair(&pair);
    BLZ_AWAIT(self->rc, blz_ready(&self->op, 0));
    self->pair.second = same_number(pair.second);
#else
    BLZ_BEGIN;
    get_pair(&self->pair);
    BLZ_AWAIT(self->rc, blz_ready(&self->op, 0));
#endif
    BLZ_END(self->pair.second);
}

int main(void)
{
    return RUN_IT(parse) != 12345;
}
