/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for readiness in a ring: of foreign descriptors, and before attempts of what the ring
 * cannot do itself. A request to poll says once what is true, and that is that, but for two things.
 *
 * It ends as well when the other side has ended its stream, whether that was asked for or not, and
 * so does every one that follows: whoever waits to write, on a connection that is half closed,
 * would ask again and again. He waits for changes then (IO_EDGE): a multishot request reports what
 * is true at first, which is known already, and then only what is new.
 *
 *   completion              IO_EDGE   what happens
 *   ------------------------------------------------------------------------------------------
 *   wanted                  no        attempted; complete, or asked again
 *   not wanted              no        asked again, with IO_EDGE
 *   not wanted, more        yes       nothing: waits on
 *   wanted, more            yes       attempted; the value is held, and the request is to end
 *   the last, held          yes       complete with the value
 *   the last, not held      yes       as without IO_EDGE
 *
 * And it is deaf to urgent data alone: the kernel uses that bit for purposes of its own. The band
 * that goes with it wakes it, although not only then, so the answer is verified.
 */
#include "io/poll_bits.h"
#include "io/uring.h"

#include <errno.h>

static bool is_urgent(const struct io *io)
{
    return io->op.kind == IO_POLL && (io->readiness.events & BLZ_FD_PRI);
}

static unsigned poll_mask(const struct io *io)
{
    if (io->op.kind == IO_POLL)
        return poll_bits(io->readiness.events) | (is_urgent(io) ? POLLRDBAND : 0);
    return io_direction(io) == FD_IN ? POLLIN : POLLOUT;
}

void blz__uring_prep_poll(struct io_uring_sqe *sqe, struct io *io)
{
    io->progress |= IO_POLLED;
    if (io->progress & IO_EDGE)
        io_uring_prep_poll_multishot(sqe, io->fd->fd, poll_mask(io));
    else
        io_uring_prep_poll_add(sqe, io->fd->fd, poll_mask(io));
}

static bool is_wanted(const struct io *io, int res)
{
    return (unsigned)res & (poll_mask(io) | POLLERR | POLLHUP | POLLNVAL);
}

/* -EAGAIN: it is not what was waited for. */
static int64_t value_of(struct io *io, int res)
{
    if (res < 0)
        return res;
    if (!is_wanted(io, res))
        return -EAGAIN;
    if (res & POLLNVAL)
        return -EBADF;
    if (io->op.kind == IO_POLL && !is_urgent(io))
        return events_of_poll_bits((unsigned)res);
    return blz__io_try_now(io);
}

static void complete(struct uring_driver *d, struct io *io, int64_t value)
{
    io->progress &= (uint8_t) ~(IO_POLLED | IO_EDGE | IO_RESULT_SAVED);
    blz__io_complete(uring_base(d), io, value);
}

void blz__uring_polled(struct uring_driver *d, struct io *io, int res)
{
    int64_t value;

    if (io->progress & IO_RESULT_SAVED) {
        complete(d, io, io->op.value);
        return;
    }
    value = value_of(io, res);
    if (value != -EAGAIN || op_cancel_requested(&io->op)) {
        complete(d, io, value == -EAGAIN ? -ECANCELED : value);
        return;
    }
    if (!is_wanted(io, res))
        io->progress |= IO_EDGE;
    blz__uring_submit_poll(d, io);
}

void blz__uring_note_change(struct uring_driver *d, struct io *io, int res)
{
    int64_t value = io->progress & IO_RESULT_SAVED ? -EAGAIN : value_of(io, res);

    if (value == -EAGAIN)
        return;
    io->op.value = value;
    blz__uring_save_result(d, io);
}
