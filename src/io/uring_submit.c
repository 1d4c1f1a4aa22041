/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the ring: making them, keeping those that find the queue full, asking for their end.
 * Entries are prepared when operations are submitted, and go to the kernel in one batch when the
 * worker next looks at its driver.
 *
 * `user_data` is the operation, which owns its memory until the completion without F_MORE has been
 * seen. The lowest bit marks the completion of a cancel request, which is counted as an event of
 * its own: as long as it is outstanding the operation is not ready, so it cannot be reused under
 * it.
 *
 * Kinds that the ring does not know, or knows in a way that we cannot use (anything written to a
 * pipe would raise SIGPIPE), wait for readiness in the ring and are then attempted.
 */
#include "io/uring.h"

#include "system/address.h"

#include <errno.h>

/* ---- entries ---- */

struct io_uring_sqe *blz__uring_sqe(struct uring_driver *d)
{
    struct io_uring_sqe *sqe;

    if (blz_unlikely(!d->thread))
        blz__uring_bind(d);
    sqe = io_uring_get_sqe(&d->ring);
    if (blz_unlikely(!sqe)) {
        stat_entry(uring_base(d));
        io_uring_submit(&d->ring);
        sqe = io_uring_get_sqe(&d->ring);
    }
    return sqe;
}

static void prep_connect(struct io_uring_sqe *sqe, int fd, const blz_addr *addr)
{
    io_uring_prep_connect(sqe, fd, blz__address_to_system(addr), addr->len);
}

static void prep(struct io_uring_sqe *sqe, struct io *io)
{
    int fd = io->fd->fd;

    switch (io->op.kind) {
    case IO_READ:
        io_uring_prep_read(sqe, fd, io->bytes.buf, (unsigned)io_clamp(io->bytes.len), (uint64_t)-1);
        break;
    case IO_READV:
        io_uring_prep_readv(sqe, fd, io_iovec(io->pieces.iov), (unsigned)io->pieces.count,
                            (uint64_t)-1);
        break;
    case IO_CONNECT:
        prep_connect(sqe, fd, io->connect.addr);
        break;
    case IO_FILE_READ:
    case IO_FILE_WRITE:
    case IO_FILE_READV:
    case IO_FILE_WRITEV:
    case IO_FILE_SYNC:
        blz__uring_prep_file(sqe, io);
        break;
    default:
        blz__uring_prep_poll(sqe, io);
        break;
    }
}

/* ---- submitting ---- */

/* What the set is for. The answer does not change while the operation is in flight. */
static bool waits_in_set(const struct io *io)
{
    enum { IN_RING = 1u << IO_CONNECT | 1u << IO_POLL };

    return (io->fd->flags & FD_SOCKET) && !(1u << io->op.kind & IN_RING);
}

static void overflow_add(struct uring_driver *d, struct io *io)
{
    io->next_queued = NULL;
    if (d->sq_overflow_list)
        d->sq_overflow_last->next_queued = io;
    else
        d->sq_overflow_list = io;
    d->sq_overflow_last = io;
}

/* False: it is not in there. */
static bool overflow_remove(struct uring_driver *d, struct io *io)
{
    for (struct io *i = d->sq_overflow_list, *last = NULL; i; last = i, i = i->next_queued) {
        if (i != io)
            continue;
        if (last)
            last->next_queued = i->next_queued;
        else
            d->sq_overflow_list = i->next_queued;
        if (d->sq_overflow_last == i)
            d->sq_overflow_last = last;
        return true;
    }
    return false;
}

static bool submit_now(struct uring_driver *d, struct io *io)
{
    struct io_uring_sqe *sqe = blz__uring_sqe(d);

    if (blz_unlikely(!sqe))
        return false;
    if (io->progress & IO_POLLED)
        blz__uring_prep_poll(sqe, io);
    else
        prep(sqe, io);
    io_uring_sqe_set_data(sqe, io);
    d->in_flight++;
    return true;
}

void blz__uring_submit_again(struct uring_driver *d, struct io *io)
{
    if (!submit_now(d, io))
        overflow_add(d, io);
}

void blz__uring_submit_poll(struct uring_driver *d, struct io *io)
{
    io->progress |= IO_POLLED;
    blz__uring_submit_again(d, io);
}

void blz__uring_submit(blz__driver *driver, blz__op *op)
{
    struct uring_driver *d = uring_of(driver);
    struct io *io = (struct io *)op;

    if (blz_likely(waits_in_set(io))) {
        blz__ready_submit(driver, op);
        return;
    }
    io->progress &= (uint8_t) ~(IO_POLLED | IO_EDGE | IO_RESULT_SAVED | IO_CANCEL_QUEUED);
    blz__uring_submit_again(d, io);
}

/* ---- cancelling ---- */

static bool cancel_now(struct uring_driver *d, struct io *io)
{
    struct io_uring_sqe *sqe = blz__uring_sqe(d);

    if (blz_unlikely(!sqe))
        return false;
    blz__op_event_add(&io->op);
    io_uring_prep_cancel(sqe, io, 0);
    io_uring_sqe_set_data64(sqe, (uint64_t)(uintptr_t)io | URING_CANCEL);
    d->in_flight++;
    return true;
}

void blz__uring_queue_cancel(struct uring_driver *d, struct io *io)
{
    if (cancel_now(d, io))
        return;
    io->progress |= IO_CANCEL_QUEUED;
    overflow_add(d, io);
}

void blz__uring_save_result(struct uring_driver *d, struct io *io)
{
    io->progress |= IO_RESULT_SAVED;
    blz__uring_queue_cancel(d, io);
}

void blz__uring_has_ended(struct uring_driver *d, struct io *io)
{
    if (blz_likely(!(io->progress & IO_CANCEL_QUEUED)))
        return;
    overflow_remove(d, io); /* it has ended before it could be asked to */
    io->progress &= (uint8_t)~IO_CANCEL_QUEUED;
}

void blz__uring_cancel(blz__driver *driver, blz__op *op)
{
    struct uring_driver *d = uring_of(driver);
    struct io *io = (struct io *)op;

    if (waits_in_set(io))
        blz__ready_cancel(driver, op);
    else if (io->progress & IO_RESULT_SAVED)
        return; /* has its value, and is ending */
    else if (blz_unlikely(d->sq_overflow_list != NULL) && overflow_remove(d, io))
        blz__io_complete(driver, io, -ECANCELED);
    else
        blz__uring_queue_cancel(d, io);
}

void blz__uring_flush_cancels(blz__driver *driver)
{
    struct uring_driver *d = uring_of(driver);

    if (io_uring_sq_ready(&d->ring) == 0)
        return;
    stat_entry(driver);
    io_uring_submit_and_get_events(&d->ring);
}

/* ---- what found the queue full ---- */

static bool try_again(struct uring_driver *d, struct io *io)
{
    bool done = io->progress & IO_CANCEL_QUEUED ? cancel_now(d, io) : submit_now(d, io);

    if (done)
        io->progress &= (uint8_t)~IO_CANCEL_QUEUED;
    return done;
}

void blz__uring_submit_overflow(struct uring_driver *d)
{
    while (d->sq_overflow_list) {
        struct io *io = d->sq_overflow_list, *next = io->next_queued;
        if (!try_again(d, io))
            return;
        d->sq_overflow_list = next;
        if (!next)
            d->sq_overflow_last = NULL;
    }
}
