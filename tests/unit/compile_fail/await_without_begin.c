/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BLZ_BEGIN and BLZ_END are missing.
 *
 * gcc -O0:   case label not within a switch statement
 * gcc -O2:   case label not within a switch statement
 * clang -O0: 'case' statement not in switch statement
 * clang -O2: 'case' statement not in switch statement
 * checker:   has no BLZ_BEGIN
 */
#include "case.h"

struct bare {
    BLZ_FRAME;
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(bare)
{
#ifdef BAD
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    return BLZ_READY;
#else
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    BLZ_END(self->rc);
#endif
}
SPAWN_IT(bare)
