/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A struct that is initialised before an await and read after it. gcc rejects it, clang does not
 * follow structs.
 *
 * only:    clang
 * plain:   kept
 * debug:   lost
 * checker: `pair` is used here, but its value is lost at the await
 */
#include "hand.h"

struct walk {
    BLZ_FRAME;
    struct pair pair;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(walk)
{
    BLZ_BEGIN;
#ifdef BAD
    struct pair pair = {same_number(1), same_number(2)};
    BLZ_AWAIT(self->rc, blz_ready(&self->op, 0));
    self->pair.second = second_of(&pair);
#else
    self->pair = (struct pair){same_number(1), same_number(2)};
    BLZ_AWAIT(self->rc, blz_ready(&self->op, 0));
#endif
    BLZ_END(self->pair.second);
}

int main(void)
{
    return RUN_IT(walk) != 2;
}
