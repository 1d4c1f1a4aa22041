/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An argument that the frame does not have.
 *
 * gcc -O0:   .struct callee. has no member named .colour.
 * gcc -O2:   .struct callee. has no member named .colour.
 * clang -O0: field designator 'colour' does not refer to any field in type 'struct callee'
 * clang -O2: field designator 'colour' does not refer to any field in type 'struct callee'
 */
#include "case.h"

struct callee {
    BLZ_FRAME;
    int size;
};

BLZ_ASYNC(callee)
{
    BLZ_BEGIN;
    BLZ_END(self->size);
}

struct caller {
    BLZ_FRAME;
    int64_t rc;
    struct callee callee;
};

BLZ_ASYNC(caller)
{
    BLZ_BEGIN;
#ifdef BAD
    BLZ_CALL(self->rc, self->callee, callee, .colour = 3);
#else
    BLZ_CALL(self->rc, self->callee, callee, .size = 3);
#endif
    BLZ_END(self->rc);
}
SPAWN_IT(caller)
