/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local with the `cleanup` attribute over an await: its cleanup would run at each suspension.
 *
 * gcc -O0:   switch jumps over variable initialization
 * gcc -O2:   switch jumps over variable initialization
 * clang -O0: cannot jump from switch statement to this case label
 * clang -O2: cannot jump from switch statement to this case label
 */
#include "case.h"

static inline void drop_number(int *number)
{
    use_number(*number);
}

struct guard {
    BLZ_FRAME;
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(guard)
{
    BLZ_BEGIN;
    {
        __attribute__((cleanup(drop_number))) int number = next_number();
#ifdef BAD
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
#endif
        use_number(number);
    }
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    BLZ_END(self->rc);
}
SPAWN_IT(guard)
