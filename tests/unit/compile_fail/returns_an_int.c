/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `return 0;` in an async function, which ends nothing: only BLZ_END does.
 *
 * gcc -O0:   incompatible types when returning type .int. but .blz_poll. was expected
 * gcc -O2:   incompatible types when returning type .int. but .blz_poll. was expected
 * clang -O0: returning 'int' from a function with incompatible result type 'blz_poll'
 * clang -O2: returning 'int' from a function with incompatible result type 'blz_poll'
 * checker:   a `return` in an async function
 */
#include "case.h"

struct early {
    BLZ_FRAME;
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(early)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    if (self->rc < 0)
#ifdef BAD
        return 0;
#else
        goto out;
#endif
    use_number(1);
out:
    BLZ_END(self->rc);
}
SPAWN_IT(early)
