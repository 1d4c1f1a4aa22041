/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scalar that is set through its address before an await and used after it. gcc does not follow
 * those.
 *
 * clang -O0: variable 'n' (may be|is used) uninitialized
 * clang -O2: variable 'n' (may be|is used) uninitialized
 * checker:   `n` is used .* value is lost at the await
 */
#include "case.h"

void get_number(int *number);

struct parse {
    BLZ_FRAME;
    int n;
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(parse)
{
    BLZ_BEGIN;
#ifdef BAD
    int n;
    get_number(&n);
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(n);
#else
    get_number(&self->n);
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(self->n);
#endif
    BLZ_END(self->rc);
}
SPAWN_IT(parse)
