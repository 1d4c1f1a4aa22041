/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The poll backend, for systems that have nothing better. The operations that wait are in two
 * parallel arrays, one of them as poll(2) wants it. It reports levels, not edges, so nothing can be
 * missed, and each operation waits with the driver of the worker that started it. A round costs
 * time in proportion to what waits.
 */
#include "base/alloc.h"
#include "base/panic.h"
#include "system/clock.h"
#include "io/io.h"
#include "io/poll_bits.h"
#include "io/wake.h"

#include <blitz/error.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_CAPACITY = 64 };

struct poll_driver {
    blz__driver base;
    const blz_allocator *allocator;
    int wake_fd;
    uint32_t count, capacity; /* slot 0 is the wake-up */
    bool no_ppoll;            /* the kernel refuses it */
    struct pollfd *fds;
    struct io **ops;
};

static struct poll_driver *driver_of(blz__driver *driver)
{
    return (struct poll_driver *)driver;
}

/* ---- the arrays ---- */

static void free_arrays(struct poll_driver *d)
{
    if (d->fds)
        blz__free(d->allocator, d->fds, d->capacity * sizeof *d->fds, _Alignof(struct pollfd));
    if (d->ops)
        blz__free(d->allocator, d->ops, d->capacity * sizeof(struct io *), _Alignof(struct io *));
}

static int grow(struct poll_driver *d, uint32_t capacity)
{
    struct pollfd *fds = blz__alloc(d->allocator, capacity * sizeof *fds, _Alignof(struct pollfd));
    struct io **ops =
        blz__alloc(d->allocator, capacity * sizeof(struct io *), _Alignof(struct io *));

    if (!fds || !ops) {
        if (fds)
            blz__free(d->allocator, fds, capacity * sizeof *fds, _Alignof(struct pollfd));
        if (ops)
            blz__free(d->allocator, ops, capacity * sizeof(struct io *), _Alignof(struct io *));
        return -ENOMEM;
    }
    if (d->count) {
        memcpy(fds, d->fds, d->count * sizeof *fds);
        memcpy(ops, d->ops, d->count * sizeof(struct io *));
    }
    free_arrays(d);
    d->fds = fds;
    d->ops = ops;
    d->capacity = capacity;
    return 0;
}

static short events_of(const struct io *io)
{
    if (io->op.kind == IO_POLL)
        return (short)poll_bits(io->readiness.events);
    return io_direction(io) == FD_IN ? POLLIN : POLLOUT;
}

static void remove_at(struct poll_driver *d, uint32_t slot)
{
    uint32_t last = --d->count;

    d->fds[slot] = d->fds[last];
    d->ops[slot] = d->ops[last];
    if (slot != last)
        d->ops[slot]->poll_slot = slot;
}

/* ---- the contract ---- */

static int poll_open(blz__driver **driver, const blz_options *options,
                     const blz_allocator *allocator)
{
    struct poll_driver *d = blz__alloc(allocator, sizeof *d, _Alignof(struct poll_driver));
    int rc;

    (void)options;
    if (!d)
        return -ENOMEM;
    *d = (struct poll_driver){.base = {.ops = &blz__poll_driver}, .allocator = allocator};
    d->base.leases = blz__leases_new(allocator);
    rc = d->base.leases ? grow(d, FIRST_CAPACITY) : -ENOMEM;
    if (rc == 0) {
        rc = d->wake_fd = blz__wake_open();
        if (rc < 0)
            free_arrays(d);
    }
    if (rc < 0) {
        blz__leases_close(d->base.leases);
        blz__free(allocator, d, sizeof *d, _Alignof(struct poll_driver));
        return rc;
    }
    d->fds[0] = (struct pollfd){.fd = d->wake_fd, .events = POLLIN};
    d->ops[0] = NULL;
    d->count = 1;
    *driver = &d->base;
    return 0;
}

static void poll_close(blz__driver *driver)
{
    struct poll_driver *d = driver_of(driver);

    blz__leases_close(d->base.leases);
    close(d->wake_fd);
    free_arrays(d);
    blz__free(d->allocator, d, sizeof *d, _Alignof(struct poll_driver));
}

static void poll_submit(blz__driver *driver, blz__op *op)
{
    struct poll_driver *d = driver_of(driver);
    struct io *io = (struct io *)op;

    if (d->count == d->capacity && grow(d, d->capacity * 2) < 0) {
        blz__io_complete(driver, io, -ENOMEM);
        return;
    }
    io->poll_slot = d->count;
    op->armed = true;
    d->fds[d->count] = (struct pollfd){.fd = io->fd->fd, .events = events_of(io)};
    d->ops[d->count++] = io;
    stat_registration(driver);
}

static void take_out(struct poll_driver *d, struct io *io)
{
    io->op.armed = false;
    remove_at(d, io->poll_slot);
}

static void poll_cancel(blz__driver *driver, blz__op *op)
{
    struct io *io = (struct io *)op;

    if (driver->send_batch && blz__send_batch_cancel(driver, op))
        return;
    if (!op->armed)
        return; /* has its result */
    take_out(driver_of(driver), io);
    blz__io_complete(driver, io, -ECANCELED);
}

/* Something is up with it; true if that was all it waited for. */
static bool try_again(struct poll_driver *d, struct io *io)
{
    uint64_t seen = fd_seen(io->fd);
    int64_t value = blz__io_try_now(io);

    if (value == -EAGAIN)
        return false;
    blz__fd_note(io, seen, value);
    take_out(d, io);
    blz__io_complete(&d->base, io, value);
    return true;
}

/* ---- waiting ---- */

/* The system takes at least so many descriptors at a time. */
enum { PIECE = 16 };

/* Whether the call failed because of how many descriptors there are. */
static bool is_too_many(uint32_t count)
{
    return (errno == EINVAL || errno == ENOMEM) && count > PIECE;
}

/*
 * ppoll, or poll where a system call filter refuses it with whatever error. The number of events, 0
 * after an interruption, -E2BIG if there are too many descriptors for one call, or the errno of a
 * kernel that refuses both.
 */
static int poll_some(struct poll_driver *d, struct pollfd *fds, uint32_t count, int64_t deadline_ns)
{
    struct timespec left = blz__time_left(deadline_ns);
    int n = -1;

    if (!d->no_ppoll) {
        n = ppoll(fds, count, deadline_ns == INT64_MAX ? NULL : &left, NULL);
        d->no_ppoll = n < 0 && errno != EINTR && !is_too_many(count);
    }
    if (d->no_ppoll)
        n = poll(fds, count, blz__time_left_ms(deadline_ns, &left));
    if (n >= 0 || errno == EINTR)
        return n < 0 ? 0 : n;
    return is_too_many(count) ? -E2BIG : -errno;
}

/*
 * The system takes no more entries at a time than the process may have descriptors, and there are
 * two for a descriptor that is read and written. Then they are looked at in pieces, once in a
 * millisecond if nothing is up.
 */
static BLZ_COLD int poll_in_pieces(struct poll_driver *d, int64_t deadline_ns)
{
    int all = 0, n;

    for (uint32_t from = 0; from < d->count; from += PIECE) {
        uint32_t len = d->count - from < PIECE ? d->count - from : PIECE;
        n = poll_some(d, d->fds + from, len, 0);
        if (n < 0)
            return n;
        if (n == 0)
            for (uint32_t slot = from; slot < from + len; slot++)
                d->fds[slot].revents = 0;
        all += n;
    }
    if (all == 0 && deadline_ns != 0)
        all = poll_some(d, d->fds, 1, blz__clock_ns() + BLZ_MSEC);
    return all;
}

static int wait_for_events(struct poll_driver *d, int64_t deadline_ns)
{
    int n = poll_some(d, d->fds, d->count, deadline_ns);

    return n == -E2BIG ? poll_in_pieces(d, deadline_ns) : n;
}

static int poll_probe(blz__driver *driver)
{
    struct poll_driver *d = driver_of(driver);
    int64_t deadline_ns = blz__clock_ns() + 200 * BLZ_MSEC;
    int n = 0;

    blz__wake_send(d->wake_fd);
    for (int late = 0; n == 0 && late < 2; late += blz__clock_ns() >= deadline_ns)
        n = wait_for_events(d, deadline_ns); /* again after an interruption */
    return n < 0 ? n : n == 0 ? -ETIME : 0;
}

static void poll_poll(blz__driver *driver, int64_t deadline_ns)
{
    struct poll_driver *d = driver_of(driver);
    int n;

    if (driver->send_batch && blz__send_batch_run(driver))
        deadline_ns = 0;
    if (deadline_ns == 0 && d->count == 1)
        return;
    stat_entry(driver);
    n = wait_for_events(d, deadline_ns);
    if (blz_unlikely(n < 0))
        blz__panic("the kernel refuses to wait for events (poll: %s); a system call filter that is "
                   "installed after the runtime has started must allow it",
                   blz_strerror(n));
    if (n == 0)
        return;
    if (d->fds[0].revents)
        blz__wake_drain(d->wake_fd);
    /* Backwards: what takes the place of one that is taken out has been looked at already. */
    for (uint32_t slot = d->count - 1; slot > 0; slot--)
        if (d->fds[slot].revents)
            try_again(d, d->ops[slot]);
}

static void poll_wake(blz__driver *driver)
{
    blz__wake_send(driver_of(driver)->wake_fd);
}

/* There is no descriptor that becomes readable when one of the others does. */
static int poll_fd(blz__driver *driver)
{
    (void)driver;
    return -ENOTSUP;
}

static bool poll_has_pending(const blz__driver *driver)
{
    return ((const struct poll_driver *)driver)->count > 1;
}

const blz__driver_ops blz__poll_driver = {
    .name = "poll",
    .open = poll_open,
    .probe = poll_probe,
    .close = poll_close,
    .submit = poll_submit,
    .cancel = poll_cancel,
    .poll = poll_poll,
    .wake = poll_wake,
    .fd = poll_fd,
    .has_pending = poll_has_pending,
    .try_first = (1u << IO_KINDS) - 1,
    .nonblocking = true,
};
