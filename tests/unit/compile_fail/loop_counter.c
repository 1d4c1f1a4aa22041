/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop counter in a local.
 *
 * gcc -O0:   switch jumps over variable initialization
 * gcc -O2:   switch jumps over variable initialization
 * clang -O0: variable 'i' (is|may be) (used )?uninitialized
 * clang -O2: variable 'i' (is|may be) (used )?uninitialized
 * checker:   `i` is used .* value is lost at the await
 */
#include "case.h"

struct count {
    BLZ_FRAME;
    int i;
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(count)
{
    BLZ_BEGIN;
#ifdef BAD
    for (int i = 0; i < 3; i++)
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
#else
    for (self->i = 0; self->i < 3; self->i++)
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
#endif
    BLZ_END(self->rc);
}
SPAWN_IT(count)
