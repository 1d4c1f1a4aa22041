/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call whose frame is too large; the caller is spawned from memory of its own.
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
    char bytes[BLZ_FRAME_MAX];
#else
    char bytes[BLZ_FRAME_MAX - sizeof(blz_future)];
#endif
};

BLZ_ASYNC(heavy)
{
    BLZ_BEGIN;
    use_number(self->bytes[0]);
    BLZ_END(0);
}

struct caller {
    BLZ_FRAME;
    int64_t rc;
    struct heavy heavy;
};

BLZ_ASYNC(caller)
{
    BLZ_BEGIN;
    BLZ_CALL(self->rc, self->heavy, heavy);
    BLZ_END(self->rc);
}

int spawn_it(struct caller *frame);
int spawn_it(struct caller *frame)
{
    frame->blz_frame.ops = &caller_ops;
    return blz_spawn(frame, sizeof *frame, &(blz_spawn_args){.name = "caller"});
}
