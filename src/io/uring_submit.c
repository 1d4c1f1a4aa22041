/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the ring: making them, keeping those that find the queue full, asking for their end.
 * Entries are prepared when operations are submitted, and go to the kernel in one batch when the
 * worker next looks at its driver.
 *
 * `user_data` is the operation, which owns its memory until its completion has been seen. The
 * lowest bit marks the completion of a cancel request, which is counted as an event of its own: as
 * long as it is outstanding the operation is not ready, so it cannot be reused under it.
 *
 * The ring carries out operations of files, and connects. All other operations wait in the epoll
 * set. A connect that the ring was interrupted in goes on by itself, and waits in the set as well.
 */
#include "io/uring.h"

#include "base/assert.h"
#include "system/address.h"

#include <blitz/error.h>

/* ---- entries ---- */

/* NULL: the queue is full, and the kernel takes no more until completions have been reaped. */
static struct io_uring_sqe *next_sqe(struct uring_driver *d)
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

static void prep(struct io_uring_sqe *sqe, const struct io *io)
{
    if (io->op.kind == IO_CONNECT)
        prep_connect(sqe, io->fd->fd, io->connect.addr);
    else
        blz__uring_prep_file(sqe, io);
}

/* ---- submitting ---- */

/*
 * Whether the operation waits in the set. For all kinds but a connect the answer does not change
 * while the operation is in flight, so any worker may ask. A connect is known to one worker only:
 * its socket is new, and its home is the worker that submitted it.
 */
static bool waits_in_set(const struct io *io)
{
    if (blz_likely(io->op.kind != IO_CONNECT))
        return !io_is_of_file(io);
    return io->progress & IO_CONNECTING;
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
    struct io_uring_sqe *sqe = next_sqe(d);

    if (blz_unlikely(!sqe))
        return false;
    prep(sqe, io);
    io_uring_sqe_set_data(sqe, io);
    d->in_flight++;
    return true;
}

void blz__uring_submit(blz__driver *driver, blz__op *op)
{
    struct uring_driver *d = uring_of(driver);
    struct io *io = (struct io *)op;

    BLZ_ASSERT(!(io->progress & IO_CANCEL_QUEUED));
    if (blz_likely(waits_in_set(io)))
        blz__ready_submit(driver, op);
    else if (!submit_now(d, io))
        overflow_add(d, io);
}

/* ---- cancelling ---- */

static bool cancel_now(struct uring_driver *d, struct io *io)
{
    struct io_uring_sqe *sqe = next_sqe(d);

    if (blz_unlikely(!sqe))
        return false;
    blz__op_event_add(&io->op);
    io_uring_prep_cancel(sqe, io, 0);
    io_uring_sqe_set_data64(sqe, (uint64_t)(uintptr_t)io | URING_CANCEL);
    d->in_flight++;
    return true;
}

/* Asks the kernel to end a request, if need be later; the answer is an event of the operation. */
static void queue_cancel(struct uring_driver *d, struct io *io)
{
    if (cancel_now(d, io))
        return;
    io->progress |= IO_CANCEL_QUEUED;
    overflow_add(d, io);
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
    else if (blz_unlikely(d->sq_overflow_list != NULL) && overflow_remove(d, io))
        blz__io_complete(driver, io, -ECANCELED);
    else
        queue_cancel(d, io);
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
