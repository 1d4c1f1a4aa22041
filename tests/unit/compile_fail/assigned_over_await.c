/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local without an initialiser, assigned before an await and used after it. gcc looks at the flow
 * of values only when it optimises.
 *
 * gcc -O2:   .n. may be used uninitialized
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
#ifdef BAD
    int n;

    BLZ_BEGIN;
    n = next_number();
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(n);
#else
    BLZ_BEGIN;
    self->n = next_number();
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    use_number(self->n);
#endif
    BLZ_END(self->rc);
}
SPAWN_IT(sum)
