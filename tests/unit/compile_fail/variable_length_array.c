/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A variable length array over an await.
 *
 * gcc -O0:   switch jumps into scope of identifier with variably modified type
 * gcc -O2:   switch jumps into scope of identifier with variably modified type
 * clang -O0: cannot jump from switch statement to this case label
 * clang -O2: cannot jump from switch statement to this case label
 * checker:   `numbers` is used .* value is lost at the await
 */
#include "case.h"

struct list {
    BLZ_FRAME;
    int n;
    int numbers[4];
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(list)
{
    BLZ_BEGIN;
#ifdef BAD
    int numbers[self->n];
    numbers[0] = next_number();
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(numbers[0]);
#else
    self->numbers[0] = next_number();
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(self->numbers[0]);
#endif
    BLZ_END(self->rc);
}
SPAWN_IT(list)
