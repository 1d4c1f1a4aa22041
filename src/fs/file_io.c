/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The future that every operation on a file is. A file is always ready, and may make its reader
 * wait all the same; so each piece of an operation goes the first of these ways that is open:
 *
 *   at once        a call that does not wait (file_call.c): what is in the system's memory
 *   the ring       if the driver takes files, and the kind is one that it knows
 *   the pool       a thread of the lane for files makes the call, and reports the operation's one
 *                  event itself; for what the ring sends back (-EAGAIN), too
 *
 * The operation holds a reference to the descriptor's entry, so that closing takes effect after it;
 * it is not linked there, because closing has nothing to tell it: a transfer cannot be interrupted.
 * So nobody but its task ever asks for its end, and while the pool has it that means taking the job
 * back out of the queue.
 */
#include "fs/file.h"

#include "blocking/blocking.h"

#include <blitz/error.h>

/* More `flags` of struct io. */
enum { FILE_IN_RING = 0x40, FILE_IN_POOL = 0x80 };

struct io *blz__file_prepare(blz_io *io, const blz_future_ops *ops, enum io_kind kind,
                             const blz_file *file)
{
    static const blz__fd_ref none;

    return blz__io_prepare(io, ops, kind, file ? file_ref(file) : &none);
}

static blz_sysfd fd_of(const struct io *io)
{
    return io->fd ? io->fd->fd : FILE_CURRENT_DIR;
}

/* ---- the pool ---- */

/* On a thread of the pool. */
static void call_in_pool(blz__job *job, int error)
{
    struct io *io = blz_container_of(job, struct io, pooled.job);

    io->op.value = error == 0 ? blz__file_call(io, fd_of(io)) : error;
    blz__op_event_done(&io->op);
}

/* It is the task's again, and nobody else knows of it. */
static void take_back(struct io *io, int64_t value)
{
    blz_waker_drop(&io->op.waker);
    blz__store(&io->op.events, 0u, RELAXED);
    io->op.value = value;
}

/* False: it could not be handed over, and has that error for a value. */
static bool give_to_pool(struct io *io, blz_cx *cx)
{
    int rc;

    blz__op_begin(&io->op, cx);
    blz__op_await(&io->op, cx);
    io->flags |= FILE_IN_POOL;
    io->pooled.job = (blz__job){.call = call_in_pool, .lane = BLZ__LANE_FILES};
    rc = blz__blocking_submit(blz_cx_rt(cx), BLZ__LANE_FILES, &io->pooled.job);
    if (rc == 0)
        return true;
    take_back(io, rc);
    return false;
}

/* ---- one piece ---- */

static bool suits_ring(const struct io *io)
{
    return io->op.kind <= IO_FILE_SYNC && blz__driver_need() == 0 &&
           blz__driver_current()->ops->files;
}

/* True: it has a value already. */
static bool start(struct io *io, blz_cx *cx)
{
    io->flags &= (uint8_t) ~(FILE_IN_RING | FILE_IN_POOL);
    io->op.value = blz__file_try(io, fd_of(io));
    if (io->op.value != -EAGAIN)
        return true;
    blz_coop_give_back(cx);
    if (!suits_ring(io))
        return !give_to_pool(io, cx);
    io->flags |= FILE_IN_RING;
    blz__op_begin_and_submit(&io->op, cx);
    return false;
}

/* The ring has answered. False: a thread has to do it. */
static bool is_settled(struct io *io, blz_cx *cx)
{
    if (!(io->flags & FILE_IN_RING) || io->op.value != -EAGAIN)
        return true;
    io->flags &= (uint8_t)~FILE_IN_RING;
    if (!(io->flags & IO_CANCELLED))
        return !give_to_pool(io, cx);
    io->op.value = -ECANCELED;
    return true;
}

/* ---- the whole of it ---- */

/* Takes note of a piece. True: there is more to do. */
static bool advance(struct io *io)
{
    int64_t value = io->op.value;

    if (value <= 0 || io->op.kind >= IO_FILE_SYNC)
        return false;
    io->op.done += (uint64_t)value;
    if (!(io->flags & IO_ALL) || (size_t)value >= io->file.len)
        return false;
    io->file.buf = (char *)io->file.buf + value;
    io->file.len -= (size_t)value;
    if (io->file.offset != FILE_POSITION)
        io->file.offset += (uint64_t)value;
    return true;
}

static int64_t result_of(const struct io *io)
{
    if (!(io->flags & IO_ALL) || io->op.value < 0)
        return io->op.value;
    if (io->op.value == 0 && io->file.len > 0)
        return -ENODATA;
    return (int64_t)io->op.done;
}

static blz_poll finish(struct io *io, int64_t result)
{
    if (io->fd)
        blz__fd_release(&(blz__fd_ref){io->fd, io->generation});
    return blz_future_done(&io->op.future, result);
}

/* After a value: goes on until there is nothing to go on with. */
static blz_poll go_on(struct io *io, blz_cx *cx)
{
    while ((io->flags & IO_PAUSED) || advance(io)) {
        io->flags &= (uint8_t)~IO_PAUSED;
        if (io->flags & IO_CANCELLED)
            return finish(io, -ECANCELED);
        if (!blz_coop_take(cx)) {
            io->flags |= IO_PAUSED;
            return BLZ_PENDING;
        }
        if (!start(io, cx))
            return BLZ_PENDING;
    }
    return finish(io, result_of(io));
}

static bool moves_nothing(const struct io *io)
{
    switch (io->op.kind) {
    case IO_FILE_READ:
    case IO_FILE_WRITE:
        return io->file.len == 0;
    case IO_FILE_READV:
    case IO_FILE_WRITEV:
        return io->file_pieces.count == 0;
    default:
        return false;
    }
}

static blz_poll first_poll(struct io *io, blz_cx *cx)
{
    blz__fd_ref ref = {io->fd, io->generation};
    int fd = 0;

    if (io->flags & IO_CANCELLED)
        return blz_future_done(&io->op.future, -ECANCELED);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    if (blz_unlikely(!blz__io_length_is_valid(io)))
        return blz_future_done(&io->op.future, -EINVAL);
    if (io->fd || io->op.kind != IO_FILE_OPEN || io->generation)
        fd = blz__fd_acquire(&ref);
    if (fd < 0)
        return blz_future_done(&io->op.future, fd);
    io->flags |= IO_STARTED;
    if (moves_nothing(io))
        return finish(io, 0);
    return start(io, cx) ? go_on(io, cx) : BLZ_PENDING;
}

blz_poll blz__file_poll(blz_future *self, blz_cx *cx)
{
    struct io *io = (struct io *)self;

    if (!(io->flags & IO_STARTED))
        return first_poll(io, cx);
    if (!blz__op_is_done(&io->op) || !is_settled(io, cx))
        return BLZ_PENDING;
    return go_on(io, cx);
}

void blz__file_cancel(blz_future *self, blz_cx *cx)
{
    struct io *io = (struct io *)self;

    io->flags |= IO_CANCELLED;
    if (io->flags & FILE_IN_RING)
        blz__op_cancel(&io->op, cx);
    else if ((io->flags & FILE_IN_POOL) && blz__blocking_withdraw(blz_cx_rt(cx), &io->pooled.job))
        take_back(io, -ECANCELED);
}

/* One that is being opened is known by nothing yet but the operation. */
void blz__file_describe(const blz_future *self, blz_wait_info *info)
{
    const struct io *io = (const struct io *)self;

    if (!(io->flags & IO_STARTED))
        return;
    info->kind = "file";
    info->object = io;
    if (io->op.kind != IO_FILE_OPEN) { /* its entry stays until it has ended */
        info->object = io->fd;
        info->fd = io->fd->fd;
    }
}
