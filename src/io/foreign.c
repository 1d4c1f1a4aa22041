/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of others (blz_fd): entries that are shared and foreign, and operations on them that
 * wait for readiness and do nothing else. So an operation that reaches the kernel late, when the
 * number already means another file, does no harm; all that has to be made sure is that its answer
 * is not taken for one, which is done here.
 *
 * What detaching means to each backend:
 *
 *   io_uring, epoll   the registration is removed before detaching returns, and there will be no
 *                     other
 *   poll              the number stays in the array of the worker that waits until that worker has
 *                     read its mail; the worker may ask about the number once more
 */
#include <blitz/fd.h>

#include "io/fd.h"

#include "system/handle.h"

#include <blitz/error.h>

_Static_assert(sizeof(blz_fd) == sizeof(blz__fd_ref), "a handle is a reference");

static blz__fd_ref ref_of(const blz_fd *handle)
{
    return (blz__fd_ref){handle->entry_, handle->generation_};
}

/* ---- attaching ---- */

int blz_fd_attach_to(blz_fd *handle, blz_sysfd fd, blz_rt *rt)
{
    blz__fd_ref ref;
    int rc;

    *handle = (blz_fd){NULL, 0};
    if (blz__handle_is_inherited(fd) < 0)
        return -EBADF;
    rc = blz__fd_adopt(&ref, rt, fd, FD_FOREIGN | FD_SHARED);
    if (rc == 0)
        *handle = (blz_fd){ref.entry, ref.generation};
    return rc;
}

int blz_fd_attach(blz_fd *handle, blz_sysfd fd)
{
    return blz_fd_attach_to(handle, fd, blz_rt_current());
}

int blz_fd_detach(blz_fd *handle)
{
    blz__fd_ref ref = ref_of(handle);

    *handle = (blz_fd){NULL, 0};
    return blz__fd_close(&ref);
}

/* ---- waiting ---- */

static int64_t result_of(const struct io *io)
{
    int64_t result = io->op.future.result;

    if (!(io->flags & IO_STARTED))
        return result;
    if (blz__fd_is_gone(io)) /* whatever it says is of the past, or of another file */
        return io->flags & IO_CANCELLED ? -ECANCELED : -EBADF;
    return result < 0 ? result : result & (int64_t)(io->readiness.events | BLZ_FD_ERR | BLZ_FD_HUP);
}

static blz_poll wait_poll(blz_future *self, blz_cx *cx)
{
    if (blz_is_pending(blz__io_poll(self, cx)))
        return BLZ_PENDING;
    self->result = result_of((struct io *)self);
    return BLZ_READY;
}

/* clang-format off */
#define WAIT_OPS(what) \
    {.name = (what), .poll = wait_poll, .cancel = blz__io_cancel, .describe_wait = blz__io_describe}
/* clang-format on */

static blz_future *make_wait(blz_io *io, const blz_future_ops *ops, const blz_fd *handle,
                             unsigned events)
{
    blz__fd_ref ref = ref_of(handle);

    events &= BLZ_FD_READ | BLZ_FD_PRI | BLZ_FD_WRITE;
    return blz__io_init_wait(io, ops, &ref, events);
}

blz_future *blz_fd_ready(blz_io *io, const blz_fd *handle, unsigned events)
{
    static const blz_future_ops ops = WAIT_OPS("fd_ready");
    return make_wait(io, &ops, handle, events);
}

blz_future *blz_fd_readable(blz_io *io, const blz_fd *handle)
{
    static const blz_future_ops ops = WAIT_OPS("fd_readable");
    return make_wait(io, &ops, handle, BLZ_FD_READ);
}

blz_future *blz_fd_writable(blz_io *io, const blz_fd *handle)
{
    static const blz_future_ops ops = WAIT_OPS("fd_writable");
    return make_wait(io, &ops, handle, BLZ_FD_WRITE);
}

/* ---- calling until it does not block ---- */

/*
 *   line      event               next      what happens
 *   --------------------------------------------------------------------------------------------
 *   CALL      poll                -         calls; ready, unless it would block
 *                                 WAIT      it would block: waits for the descriptor
 *   WAIT      ready               CALL
 *   any       cancelled           STOPPED   the wait, if there is one, is ended; then -ECANCELED
 */
enum { CALL_FIRST, CALL_AGAIN, CALL_WAIT, CALL_STOPPED };

static bool is_attached(const blz_fd *handle)
{
    blz__fd_ref ref = ref_of(handle);

    if (blz__fd_acquire(&ref) < 0)
        return false;
    blz__fd_release(&ref);
    return true;
}

/* BLZ_PENDING: the budget is used up, or it would block; then the wait has been made. */
static blz_poll call(blz_fd_op *op, blz_cx *cx)
{
    int64_t value;

    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    if (op->future.line == CALL_FIRST && !is_attached(&op->handle))
        return blz_future_done(&op->future, -EBADF);
    value = op->fn(op->arg);
    if (value != -EAGAIN)
        return blz_future_done(&op->future, value);
    op->future.line = CALL_WAIT;
    op->future.child = blz_fd_ready(&op->io, &op->handle, op->direction);
    return BLZ_PENDING;
}

static blz_poll end_wait(blz_fd_op *op, blz_cx *cx)
{
    if (blz_is_pending(wait_poll(&op->io.future, cx)))
        return BLZ_PENDING;
    op->future.child = NULL;
    if (op->future.line == CALL_STOPPED)
        return blz_future_done(&op->future, -ECANCELED);
    if (op->io.future.result < 0)
        return blz_future_done(&op->future, op->io.future.result);
    op->future.line = CALL_AGAIN;
    return BLZ_PENDING;
}

static blz_poll call_poll(blz_future *self, blz_cx *cx)
{
    blz_fd_op *op = (blz_fd_op *)self;

    for (;;) {
        if (self->line == CALL_STOPPED && !self->child)
            return blz_future_done(self, -ECANCELED);
        if (self->line <= CALL_AGAIN && blz_is_ready(call(op, cx)))
            return BLZ_READY;
        if (self->line <= CALL_AGAIN)
            return BLZ_PENDING; /* the budget is used up */
        if (blz_is_ready(end_wait(op, cx)))
            return BLZ_READY;
        if (self->line != CALL_AGAIN)
            return BLZ_PENDING;
    }
}

static void call_cancel(blz_future *self, blz_cx *cx)
{
    self->line = CALL_STOPPED;
    if (self->child)
        blz__io_cancel(self->child, cx);
}

blz_future *blz_fd_io(blz_fd_op *op, const blz_fd *handle, unsigned direction,
                      int64_t (*fn)(void *arg), void *arg)
{
    static const blz_future_ops ops = {.name = "fd_io", .poll = call_poll, .cancel = call_cancel};

    blz_op_check(&op->future, &ops);
    op->future = (blz_future){.ops = &ops};
    op->handle = *handle;
    op->direction = direction;
    op->fn = fn;
    op->arg = arg;
    return &op->future;
}
