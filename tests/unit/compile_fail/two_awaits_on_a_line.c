/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two awaits on one line: both would resume at the same place.
 *
 * gcc -O0:   duplicate case value
 * gcc -O2:   duplicate case value
 * clang -O0: duplicate case value
 * clang -O2: duplicate case value
 */
#include "case.h"

struct twice {
    BLZ_FRAME;
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(twice)
{
    BLZ_BEGIN;
#ifdef BAD
    /* clang-format off */
    BLZ_AWAIT(self->rc, blz_yield(&self->pause)); BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    /* clang-format on */
#else
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
#endif
    BLZ_END(self->rc);
}
SPAWN_IT(twice)
