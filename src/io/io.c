/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The future that every I/O operation is. At its first poll it enters its descriptor's entry and,
 * where the backend thinks that this pays, tries the system call; what would have to wait is handed
 * to the driver. When the driver has reported its last event it is polled again, goes on if it is
 * to move all of its bytes and has not, and leaves the entry.
 *
 * A cancellation is passed to the driver and remembered: it ends an operation between two steps,
 * and tells the modules above that a late result (an accepted connection) has no taker.
 */
#include "io/fd.h"

#include <blitz/wait_info.h>
#include <blitz/error.h>

struct io *blz__io_prepare(blz_io *public, const blz_future_ops *ops, enum io_kind kind,
                           const blz__fd_ref *ref)
{
    struct io *io = (struct io *)public;

    io_check(public, ops);
    io->op = (blz__op){.future = {.ops = ops}, .kind = kind};
    io->fd = ref->entry;
    io->generation = (uint32_t)ref->generation;
    io->flags = 0;
    io->progress = 0;
    return io;
}

blz_future *blz__io_init(blz_io *public, const blz_future_ops *ops, enum io_kind kind,
                         const blz__fd_ref *ref, void *buf, size_t len)
{
    struct io *io = blz__io_prepare(public, ops, kind, ref);

    io->bytes.buf = buf;
    io->bytes.len = len;
    return &io->op.future;
}

blz_future *blz__io_init_pieces(blz_io *public, const blz_future_ops *ops, enum io_kind kind,
                                const blz__fd_ref *ref, const blz_iovec *iov, size_t count)
{
    struct io *io = blz__io_prepare(public, ops, kind, ref);

    io->pieces.iov = iov;
    io->pieces.count = count;
    return &io->op.future;
}

blz_future *blz__io_init_wait(blz_io *public, const blz_future_ops *ops, const blz__fd_ref *ref,
                              unsigned events)
{
    struct io *io = blz__io_prepare(public, ops, IO_POLL, ref);

    io->readiness.events = events;
    return &io->op.future;
}

/* ---- lengths ---- */

bool blz__pieces_are_valid(const blz_iovec *iov, size_t count)
{
    size_t all = 0;

    if (!length_is_valid(count))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (iov[i].len > INT64_MAX - all)
            return false;
        all += iov[i].len;
    }
    return true;
}

bool blz__io_length_is_valid(const struct io *io)
{
    switch (io->op.kind) {
    case IO_READ:
    case IO_WRITE:
    case IO_PEEK:
        return length_is_valid(io->bytes.len);
    case IO_READV:
    case IO_WRITEV:
        return blz__pieces_are_valid(io->pieces.iov, io->pieces.count);
    case IO_SENDFILE:
        return length_is_valid(io->sendfile.len);
    case IO_FILE_READ:
    case IO_FILE_WRITE:
        return length_is_valid(io->file.len);
    case IO_FILE_READV:
    case IO_FILE_WRITEV:
        return blz__pieces_are_valid(io->file_pieces.iov, io->file_pieces.count);
    default:
        return true;
    }
}

/* What is left of an operation that moves bytes; of pieces, their number. */
static size_t rest_of(const struct io *io)
{
    switch (io->op.kind) {
    case IO_READV:
    case IO_WRITEV:
        return io->pieces.count;
    case IO_SENDFILE:
        return io->sendfile.len;
    default:
        return io->bytes.len;
    }
}

static void take_from_rest(struct io *io, size_t n)
{
    if (io->op.kind == IO_SENDFILE) {
        io->sendfile.offset += n;
        io->sendfile.len -= n;
    } else {
        io->bytes.buf = (char *)io->bytes.buf + n;
        io->bytes.len -= n;
    }
}

/* ---- one step ---- */

/* The worker has a driver, if need be a new one. */
static inline int need_driver(const blz_cx *cx)
{
    if (blz_likely(cx->worker && worker_driver(cx->worker)))
        return 0;
    return blz__driver_need();
}

static bool worth_a_try(const struct io *io, const blz__driver *driver, uint64_t seen)
{
    if (!(driver->ops->try_first & (1u << io->op.kind)))
        return false;
    if (io->op.kind == IO_POLL)
        return true; /* asking for readiness never waits, and nothing is known of it */
    return seen >> (32 * io_direction(io)) & FD_READY;
}

bool blz__io_try_first(struct io *io)
{
    uint64_t seen = fd_seen(io->fd);

    if (worth_a_try(io, blz__driver_current(), seen)) {
        int64_t value = blz__io_try_now(io);
        blz__fd_note(io, seen, value);
        if (value != -EAGAIN) {
            io->op.value = value;
            return true;
        }
    }
    io->seen = seen;
    return false;
}

/* True: it has a value already. */
static bool start(struct io *io, blz_cx *cx)
{
    bool batch = send_batch_wants(io, cx);

    if (!batch && blz__io_try_first(io))
        return blz__op_end(&io->op, cx);
    blz_coop_give_back(cx);
    if (batch)
        blz__send_batch_add(io, cx);
    else
        blz__op_hand_over(&io->op, cx);
    return false;
}

static bool moves_bytes(const struct io *io)
{
    return io->op.kind != IO_ACCEPT && io->op.kind != IO_CONNECT && io->op.kind != IO_POLL &&
           io->op.kind != IO_CALL;
}

/* Takes note of a step's value. True: another step is needed. */
static bool advance(struct io *io)
{
    int64_t value = io->op.value;

    if (value <= 0 || !moves_bytes(io))
        return false;
    io->op.done += (uint64_t)value;
    if (!(io->flags & IO_ALL) || (size_t)value >= rest_of(io))
        return false;
    take_from_rest(io, (size_t)value);
    return true;
}

static int64_t result_of(const struct io *io)
{
    if (!(io->flags & IO_ALL) || io->op.value < 0)
        return io->op.value;
    if (io->op.value == 0 && rest_of(io) > 0)
        return -ENODATA; /* the other side has ended before all of it came */
    return (int64_t)io->op.done;
}

/* An operation that was ended, but not by its task, was ended by the close of its descriptor. */
static blz_poll finish(struct io *io, int64_t result)
{
    if (blz_unlikely(result == -ECANCELED) && !(io->flags & IO_CANCELLED))
        result = -EBADF;
    blz__fd_leave(io);
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
        int rc = need_driver(cx);
        if (rc == 0)
            rc = blz__fd_reenter(io, cx);
        if (rc < 0)
            return finish(io, rc);
        if (!start(io, cx))
            return BLZ_PENDING;
    }
    return finish(io, result_of(io));
}

/* Not the end of the stream, whatever it looks like. */
static bool moves_nothing(const struct io *io)
{
    enum {
        MOVE = 1u << IO_READ | 1u << IO_WRITE | 1u << IO_READV | 1u << IO_WRITEV | 1u << IO_PEEK |
               1u << IO_SENDFILE
    };

    return (1u << io->op.kind & MOVE) && rest_of(io) == 0;
}

static blz_poll first_poll(struct io *io, blz_cx *cx)
{
    int rc;

    if (io->flags & IO_CANCELLED)
        return blz_future_done(&io->op.future, -ECANCELED);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    if (blz_unlikely(!blz__io_length_is_valid(io)))
        return blz_future_done(&io->op.future, -EINVAL);
    rc = need_driver(cx); /* before anyone can send the driver a request to end it */
    if (rc == 0)
        rc = blz__fd_enter(io, cx);
    if (rc < 0)
        return blz_future_done(&io->op.future, rc);
    io->flags |= IO_STARTED;
    if (blz_unlikely(moves_nothing(io))) {
        io->op.value = 0;
        return blz__op_end(&io->op, cx) ? finish(io, 0) : BLZ_PENDING;
    }
    return start(io, cx) ? go_on(io, cx) : BLZ_PENDING;
}

blz_poll blz__io_poll(blz_future *self, blz_cx *cx)
{
    struct io *io = (struct io *)self;

    if (!(io->flags & IO_STARTED))
        return first_poll(io, cx);
    return blz__op_is_done(&io->op) ? go_on(io, cx) : BLZ_PENDING;
}

void blz__io_cancel(blz_future *self, blz_cx *cx)
{
    struct io *io = (struct io *)self;

    io->flags |= IO_CANCELLED;
    if (io->flags & IO_STARTED)
        blz__op_cancel(&io->op, cx);
}

static const char *kind_of(const blz__fd *fd)
{
    if (fd->flags & FD_SOCKET)
        return "socket";
    return fd->flags & FD_FOREIGN ? "descriptor" : "pipe";
}

/* The entry stays what it is while an operation is in flight, so that it may be read. */
void blz__io_describe(const blz_future *self, blz_wait_info *info)
{
    const struct io *io = (const struct io *)self;

    if (!(io->flags & IO_STARTED) || !io->fd)
        return;
    info->kind = kind_of(io->fd);
    info->object = io->fd;
    info->fd = io->fd->fd;
}

void blz__io_complete(blz__driver *driver, struct io *io, int64_t value)
{
    io->op.value = value;
    blz__store(&driver->completions, driver->completions + 1, RELAXED); /* statistics read it */
    blz__op_event_done(&io->op);
}
