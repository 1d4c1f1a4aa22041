/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of files. Systems can wait for a lock, but a thread that waits cannot be called back, and
 * each would be one less for all other files; there is no other way to wait for a lock. So the
 * lock is asked for again and again, after pauses that double from 1 ms to 32 ms.
 */
#include <blitz/file.h>

#include "fs/file.h"

#include <blitz/error.h>

static blz_future *lock_init(blz_io *io, const blz_file *file, const blz_future_ops *ops, int how)
{
    blz__file_prepare(io, ops, IO_FILE_LOCK, file)->lock.how = how;
    return &io->future;
}

blz_future *blz_file_try_lock(blz_io *io, const blz_file *file)
{
    static const blz_future_ops ops = FILE_OP("file_try_lock");
    return lock_init(io, file, &ops, FILE_LOCK_EXCLUSIVE);
}

blz_future *blz_file_try_lock_shared(blz_io *io, const blz_file *file)
{
    static const blz_future_ops ops = FILE_OP("file_try_lock_shared");
    return lock_init(io, file, &ops, FILE_LOCK_SHARED);
}

blz_future *blz_file_unlock(blz_io *io, const blz_file *file)
{
    static const blz_future_ops ops = FILE_OP("file_unlock");
    return lock_init(io, file, &ops, FILE_UNLOCK);
}

/* ---- waiting ---- */

enum { LOCK_ASKS, LOCK_PAUSES, LOCK_UNDOES }; /* state */

enum { FIRST_PAUSE_NS = 1000000, LONGEST_PAUSE_NS = 32 * FIRST_PAUSE_NS };

static void lock_ask(blz_file_lock_op *op, uint32_t state)
{
    op->state = state;
    op->future.child = state == LOCK_UNDOES ? blz_file_unlock(&op->io, &op->file)
                       : op->how == FILE_LOCK_EXCLUSIVE
                           ? blz_file_try_lock(&op->io, &op->file)
                           : blz_file_try_lock_shared(&op->io, &op->file);
}

static void lock_pause(blz_file_lock_op *op)
{
    op->state = LOCK_PAUSES;
    op->future.child = blz_sleep(&op->pause, op->pause_ns);
    if (op->pause_ns < LONGEST_PAUSE_NS)
        op->pause_ns *= 2;
}

static blz_poll lock_done(blz_file_lock_op *op, int64_t result)
{
    op->future.child = NULL;
    return blz_future_done(&op->future, result);
}

static blz_poll lock_poll(blz_future *self, blz_cx *cx)
{
    blz_file_lock_op *op = (blz_file_lock_op *)self;

    self->line = BLZ_LINE_BEGUN;
    for (;;) {
        int64_t result;
        if (blz_is_pending(self->child->ops->poll(self->child, cx)))
            return BLZ_PENDING;
        result = self->child->result;
        if (op->state == LOCK_UNDOES)
            return lock_done(op, -ECANCELED);
        if (op->state == LOCK_ASKS && result == 0 && io_was_cancelled(&op->io))
            lock_ask(op, LOCK_UNDOES); /* nobody would know that it is locked */
        else if (op->state == LOCK_ASKS && result == -EAGAIN && !io_was_cancelled(&op->io))
            lock_pause(op);
        else if (op->state == LOCK_PAUSES && result == 0)
            lock_ask(op, LOCK_ASKS);
        else
            return lock_done(op, result == -EAGAIN ? -ECANCELED : result);
    }
}

/* What it waits for is told; giving the lock back again is not to be stopped. */
static void lock_cancel(blz_future *self, blz_cx *cx)
{
    const blz_file_lock_op *op = (const blz_file_lock_op *)self;

    if (op->state != LOCK_UNDOES && self->child)
        blz_future_cancel(self->child, cx);
}

static void lock_describe(const blz_future *self, blz_wait_info *info)
{
    const blz_file_lock_op *op = (const blz_file_lock_op *)self;

    info->kind = "file lock";
    info->object = op->file.entry_;
}

static blz_future *lock_wait(blz_file_lock_op *op, const blz_file *file, uint32_t how)
{
    static const blz_future_ops ops = {.name = "file_lock",
                                       .poll = lock_poll,
                                       .cancel = lock_cancel,
                                       .describe_wait = lock_describe};

    blz_op_check(&op->future, &ops);
    op->future = (blz_future){.ops = &ops};
    op->file = *file;
    op->how = how;
    op->pause_ns = FIRST_PAUSE_NS;
    lock_ask(op, LOCK_ASKS);
    return &op->future;
}

blz_future *blz_file_lock(blz_file_lock_op *op, const blz_file *file)
{
    return lock_wait(op, file, FILE_LOCK_EXCLUSIVE);
}

blz_future *blz_file_lock_shared(blz_file_lock_op *op, const blz_file *file)
{
    return lock_wait(op, file, FILE_LOCK_SHARED);
}
