/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The future that every operation on a path is: a call in the pool's lane for files, a word that
 * tells the function on the thread that its task has been cancelled, and what is to be done with
 * the result by the task.
 */
#include "fs/path.h"

#include "blocking/blocking.h"

#include <blitz/error.h>

static int64_t run(void *arg)
{
    blz_fs_op *op = arg;

    return op->run(op);
}

static const struct fs_ops *ops_of(const blz_fs_op *op)
{
    return (const struct fs_ops *)(const void *)op->future.ops;
}

static int64_t result_of(blz_fs_op *op, int64_t result)
{
    if (result < 0)
        return result;
    if (ops_of(op)->undo && fs_is_cancelled(op)) {
        ops_of(op)->undo(op, result);
        return -ECANCELED;
    }
    return ops_of(op)->hand_out ? ops_of(op)->hand_out(op, result) : result;
}

blz_poll blz__fs_poll(blz_future *self, blz_cx *cx)
{
    blz_fs_op *op = (blz_fs_op *)self;
    int64_t result;

    if (!self->child) {
        if (fs_is_cancelled(op))
            return blz_future_done(self, -ECANCELED);
        self->line = BLZ_LINE_BEGUN;
        op->rt = blz_cx_rt(cx);
        self->child = blz__blocking_in(&op->call, BLZ__LANE_FILES, run, op);
    }
    if (blz_is_pending(self->child->ops->poll(self->child, cx)))
        return BLZ_PENDING;
    result = self->child->result;
    self->child = NULL;
    return blz_future_done(self, result_of(op, result));
}

void blz__fs_cancel(blz_future *self, blz_cx *cx)
{
    blz_fs_op *op = (blz_fs_op *)self;

    blz__store(&op->cancelled, 1u, RELAXED); /* a hint to the thread; the result orders the rest */
    if (self->child)
        blz_future_cancel(self->child, cx);
}

blz_future *blz__fs_init(blz_fs_op *op, const struct fs_ops *ops, const char *path)
{
    blz_op_check(&op->future, &ops->future);
    *op = (blz_fs_op){.future = {.ops = &ops->future}, .run = ops->run, .path = path};
    return &op->future;
}
