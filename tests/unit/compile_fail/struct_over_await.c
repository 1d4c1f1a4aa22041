/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A struct that is initialised before an await and read after it. clang follows scalars only.
 *
 * gcc -O0: switch jumps over variable initialization
 * gcc -O2: switch jumps over variable initialization
 * checker: `p` is used .* value is lost at the await
 */
#include "case.h"

struct point {
    int x, y;
};

struct walk {
    BLZ_FRAME;
    struct point p;
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(walk)
{
    BLZ_BEGIN;
#ifdef BAD
    struct point p = {next_number(), next_number()};
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(p.x + p.y);
#else
    self->p = (struct point){next_number(), next_number()};
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(self->p.x + self->p.y);
#endif
    BLZ_END(self->rc);
}
SPAWN_IT(walk)
