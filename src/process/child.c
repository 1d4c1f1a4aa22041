/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children: the handle's side. A child's end makes its handle readable (blz__process_ends_handle),
 * on every backend, and for every task that waits; the first to look then takes the status, under
 * the lock, and keeps it for the others. Readiness is a hint: a task that finds that the child
 * still runs waits again.
 *
 * A number is given back to the system when the child is reaped, and not before; so under the lock,
 * and with the child not reaped, a signal cannot meet another process or group. A child that leads
 * a group is reaped last of all, when it is freed: until then what is left of its group can be
 * found by its number, though the child itself has ended.
 */
#include "process/process.h"

#include "base/alloc.h"
#include "system/signal.h"

#include <blitz/wait_info.h>

/* ---- status ---- */

int64_t blz__child_reap(struct blz__child *child)
{
    int64_t status;

    blz__lock_acquire(&child->lock);
    if (!child->ended) {
        child->status = child->leads_group ? blz__process_status(&child->process)
                                           : blz__process_reap(&child->process);
        child->ended = child->status != -EAGAIN;
    }
    status = child->status;
    blz__lock_release(&child->lock);
    return status;
}

int64_t blz_child_try_await(blz_child *child)
{
    return child->child_ ? blz__child_reap(child->child_) : -EBADF;
}

int64_t blz_child_pid(const blz_child *child)
{
    return child->child_ ? child->child_->process.id : -EBADF;
}

/* ---- waiting ---- */

/*
 *   line      event              next      what happens
 *   ---------------------------------------------------------------------------------------
 *   BEGIN     poll               WAIT      if the status is not known: waits for its end
 *   WAIT      it is readable     -         ready, with the status; waits again if there is none
 *   BEGIN     cancelled          STOPPED   -ECANCELED
 *   WAIT      cancelled          WAIT      the wait is; if it was readable first, that counts
 */
enum { WAIT_BEGIN, WAIT_READABLE, WAIT_STOPPED };

static bool is_known(struct blz__child *child, int64_t *status)
{
    bool known;

    blz__lock_acquire(&child->lock);
    known = child->ended;
    *status = child->status;
    blz__lock_release(&child->lock);
    return known;
}

static void begin_wait(blz_child_await_op *op)
{
    op->future.line = WAIT_READABLE;
    op->future.child = blz_fd_readable(&op->io, &op->child->fd);
}

static blz_poll end_wait(blz_child_await_op *op, int64_t result)
{
    op->future.child = NULL;
    return blz_future_done(&op->future, result);
}

static blz_poll wait_poll(blz_future *self, blz_cx *cx)
{
    blz_child_await_op *op = (blz_child_await_op *)self;
    int64_t status;

    if (self->line == WAIT_STOPPED)
        return end_wait(op, -ECANCELED);
    if (self->line == WAIT_BEGIN) {
        if (!op->child)
            return end_wait(op, -EBADF);
        if (is_known(op->child, &status))
            return end_wait(op, status);
        begin_wait(op);
    }
    for (;;) {
        if (blz_is_pending(self->child->ops->poll(self->child, cx)))
            return BLZ_PENDING;
        if (self->child->result < 0)
            return end_wait(op, self->child->result);
        status = blz__child_reap(op->child);
        if (status != -EAGAIN)
            return end_wait(op, status);
        begin_wait(op);
    }
}

static void wait_cancel(blz_future *self, blz_cx *cx)
{
    if (self->child)
        blz_future_cancel(self->child, cx);
    else
        self->line = WAIT_STOPPED;
}

/* Which one is told by its number, as blz_process_watch does. It is there while somebody waits. */
static void wait_describe(const blz_future *self, blz_wait_info *info)
{
    const struct blz__child *child = ((const blz_child_await_op *)self)->child;

    if (self->line != WAIT_READABLE)
        return;
    info->kind = "process";
    info->object = (const void *)(uintptr_t)child->process.id;
    info->fd = blz__process_ends_handle(&child->process);
}

blz_future *blz_child_await(blz_child_await_op *op, blz_child *child)
{
    static const blz_future_ops ops = {.name = "child_await",
                                       .poll = wait_poll,
                                       .cancel = wait_cancel,
                                       .describe_wait = wait_describe};

    blz_op_check(&op->future, &ops);
    op->future = (blz_future){.ops = &ops};
    op->child = child->child_;
    return &op->future;
}

/* ---- signals ---- */

static int signal_one_locked(struct blz__child *child, int signal)
{
    return child->ended ? -ESRCH : blz__process_signal(&child->process, signal);
}

static int signal_one(blz_child *handle, int signal)
{
    struct blz__child *child = handle->child_;
    int rc;

    if (!child)
        return -EBADF;
    blz__lock_acquire(&child->lock);
    rc = signal_one_locked(child, signal);
    blz__lock_release(&child->lock);
    return rc;
}

/*
 * The second SIGKILL does no harm, and meets a child that has left its group. Another signal is
 * sent once, because a handler may count.
 */
int blz__child_signal_all(struct blz__child *child, int signal)
{
    int rc = -ESRCH;

    blz__lock_acquire(&child->lock);
    if (child->leads_group)
        rc = blz__process_signal_group(&child->process, signal);
    rc = signal_one_locked(child, rc < 0 || signal == SIGKILL ? signal : 0);
    blz__lock_release(&child->lock);
    return rc;
}

int blz_child_signal(blz_child *child, int signal)
{
    return signal_one(child, signal);
}

int blz_child_signal_group(blz_child *handle, int signal)
{
    struct blz__child *child = handle->child_;

    if (!child)
        return -EBADF;
    if (!child->leads_group)
        return -EINVAL;
    return blz__process_signal_group(&child->process, signal);
}

int blz_child_kill(blz_child *child)
{
    return signal_one(child, SIGKILL);
}

bool blz__child_kill(blz_child *child)
{
    int rc = blz__child_signal_all(child->child_, SIGKILL);

    return rc == 0 || rc == -ESRCH;
}

/* ---- dropping ---- */

void blz__child_free(struct blz__child *child)
{
    blz_allocator allocator = child->allocator;

    if (child->leads_group)
        blz__process_reap(&child->process);
    blz__process_close(&child->process);
    blz__free(&allocator, child, sizeof *child, _Alignof(struct blz__child));
}

static void close_pipes(blz_child *child)
{
    blz_pipe_close(&child->in);
    blz_pipe_close(&child->out);
    blz_pipe_close(&child->err);
}

void blz_child_drop(blz_child *handle)
{
    struct blz__child *child = handle->child_;
    bool ended;
    int rc;

    if (!child)
        return;
    blz__orphans_sweep();
    close_pipes(handle);
    *handle = (blz_child){.child_ = NULL};
    rc = blz_fd_detach(&child->fd);
    if (rc == -EOWNERDEAD)
        return; /* a forked process has a copy of the memory, but not the child */
    ended = blz__child_reap(child) != -EAGAIN;
    if (child->kill_on_drop)
        (void)blz__child_signal_all(child, SIGKILL); /* or what is left of its group */
    if (ended)
        blz__child_free(child);
    else
        blz__orphan_add(child);
}
