/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame that does not begin with BLZ_FRAME.
 *
 * gcc -O0:   BLZ_FRAME must come first
 * gcc -O2:   BLZ_FRAME must come first
 * clang -O0: BLZ_FRAME must come first
 * clang -O2: BLZ_FRAME must come first
 */
#include "case.h"

struct late {
#ifdef BAD
    int size;
    BLZ_FRAME;
#else
    BLZ_FRAME;
    int size;
#endif
};

BLZ_ASYNC(late)
{
    BLZ_BEGIN;
    BLZ_END(self->size);
}
SPAWN_IT(late)
