/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local that is initialised before an await and used after it.
 *
 * gcc -O0:   switch jumps over variable initialization
 * gcc -O2:   switch jumps over variable initialization
 * clang -O0: variable 'n' (is|may be) (used )?uninitialized
 * clang -O2: variable 'n' (is|may be) (used )?uninitialized
 * checker:   `n` is used .* value is lost at the await
 */
#include "case.h"

struct sum {
    BLZ_FRAME;
    int n;
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(sum)
{
    BLZ_BEGIN;
#ifdef BAD
    int n = next_number();
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(n);
#else
    self->n = next_number();
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(self->n);
#endif
    BLZ_END(self->rc);
}
SPAWN_IT(sum)
