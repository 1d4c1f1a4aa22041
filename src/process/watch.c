/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching any process: a handle of our own, which is readable once it has ended. Nothing is taken
 * from its parent, which may be us.
 */
#include "process/process.h"

#include <blitz/wait_info.h>

enum { WATCH_BEGIN, WATCH_READABLE, WATCH_STOPPED };

static blz_poll end_watch(blz_process_watch_op *op, int64_t result)
{
    op->future.child = NULL;
    return blz_future_done(&op->future, result);
}

static blz__process process_of(const blz_process_watch_op *op)
{
    return (blz__process){op->pid, op->handle_};
}

static void close_process(blz_process_watch_op *op)
{
    blz__process process = process_of(op);

    blz__process_close(&process);
    op->handle_ = BLZ_NO_SYSFD;
}

static int begin_watch(blz_process_watch_op *op)
{
    blz__process process;
    int rc = blz__process_open(&process, op->pid);

    if (rc < 0)
        return rc;
    op->handle_ = process.handle;
    rc = blz_fd_attach(&op->fd, blz__process_ends_handle(&process));
    if (rc < 0) {
        close_process(op);
        return rc;
    }
    op->future.line = WATCH_READABLE;
    op->future.child = blz_fd_readable(&op->io, &op->fd);
    return 0;
}

static blz_poll watch_poll(blz_future *self, blz_cx *cx)
{
    blz_process_watch_op *op = (blz_process_watch_op *)self;
    blz__process process;
    int64_t result;

    if (self->line == WATCH_STOPPED)
        return end_watch(op, -ECANCELED);
    if (self->line == WATCH_BEGIN) {
        int rc = begin_watch(op);
        if (rc < 0)
            return end_watch(op, rc);
    }
    process = process_of(op);
    for (;;) {
        if (blz_is_pending(self->child->ops->poll(self->child, cx)))
            return BLZ_PENDING;
        result = self->child->result;
        if (result < 0 || blz__process_has_ended(&process))
            break;
        self->child = blz_fd_readable(&op->io, &op->fd);
    }
    blz_fd_detach(&op->fd);
    close_process(op);
    return end_watch(op, result < 0 ? result : 0);
}

static void watch_cancel(blz_future *self, blz_cx *cx)
{
    if (self->child)
        blz_future_cancel(self->child, cx);
    else
        self->line = WATCH_STOPPED;
}

static void watch_describe(const blz_future *self, blz_wait_info *info)
{
    const blz_process_watch_op *op = (const blz_process_watch_op *)self;

    if (self->line != WATCH_READABLE)
        return;
    info->kind = "process";
    info->object = (const void *)(uintptr_t)op->pid;
    info->fd = op->handle_;
}

blz_future *blz_process_watch(blz_process_watch_op *op, int64_t pid)
{
    static const blz_future_ops ops = {.name = "process_watch",
                                       .poll = watch_poll,
                                       .cancel = watch_cancel,
                                       .describe_wait = watch_describe};

    blz_op_check(&op->future, &ops);
    op->future = (blz_future){.ops = &ops};
    op->pid = pid;
    return &op->future;
}
