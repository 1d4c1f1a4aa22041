/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame of nine megabytes, which would overflow the stack of whoever spawns it.
 *
 * gcc -O0:   this frame is larger than BLZ_FRAME_MAX
 * gcc -O2:   this frame is larger than BLZ_FRAME_MAX
 * clang -O0: this frame is larger than BLZ_FRAME_MAX
 * clang -O2: this frame is larger than BLZ_FRAME_MAX
 */
#include "case.h"

struct heavy {
    BLZ_FRAME;
#ifdef BAD
    char bytes[9 << 20];
#else
    char bytes[]; /* BLZ_TAIL says how many */
#endif
};

BLZ_ASYNC(heavy)
{
    BLZ_BEGIN;
    use_number(self->bytes[0]);
    BLZ_END(0);
}

int spawn_it(void);
int spawn_it(void)
{
    return BLZ_SPAWN(heavy, BLZ_TAIL(9 << 20));
}
