/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readiness. A descriptor is registered once, for edges of both directions, with the driver of the
 * first worker that had to wait for it: its home. Operations that have to wait are armed in the
 * descriptor's entry; an edge makes the home try them again, and those that have a result are
 * complete. A task that moved to another worker keeps using the old home, until that has happened a
 * number of times; then the descriptor moves too.
 *
 * No edge is lost. An edge sets `ready` and counts, under the entry's lock, and takes all armed
 * operations. An operation is armed under the same lock, and only if `ready` is not set; and
 * `ready` is cleared only by one who saw a call find nothing, or take everything, after the last
 * edge (blz__fd_note). The end of the stream is not an edge that comes after the data: it may come
 * with the data's. So once it has been seen, a short read does not clear `ready` any more; only a
 * call that found nothing does, which says that it was not the end after all (an error that has
 * been fetched, a FIFO with a new writer).
 *
 * A one-shot kernel (rearm) reports one edge for each time that it is asked. FD_REQUESTED says that
 * an edge has been asked for and not been reported. An operation is armed only with that set, and
 * an edge that leaves operations armed, because it was of the other direction, asks for the next
 * one. So whatever is armed has an edge to come. Such a kernel tells the level when it is asked, so
 * nothing is missed in between.
 *
 * No cancellation is lost. One that finds the operation armed ends it. One that does not leaves it
 * to whoever is trying it, on the home or still on the worker that it was begun on: he looks, under
 * the lock, whether he has been asked to end before he arms it (again). So it does not matter which
 * of these workers the request is sent to, and `home` may change under those who read it.
 *
 * A token is the entry and the lowest bits of its generation. Closing a descriptor removes the
 * registration first, so what may come late are edges that the home had already fetched; they find
 * another generation, or another home, and are dropped. A few bits are enough: an entry that
 * is used again is registered by the home's own worker, which runs no task before it has reported
 * the edges that it has fetched. For a new home nothing is lost by that:
 * registering reports what is ready.
 */
#include "io/ready.h"

#include "base/assert.h"

#include <blitz/error.h>

static ready_driver *ready_of(blz__driver *driver)
{
    return (ready_driver *)driver;
}

/* ---- what a result says ---- */

/*
 * Of a read: whether it took all there was. Messages end before the buffer does, and a read of a
 * Unix stream stops where descriptors were sent along.
 */
static bool took_all(const struct io *io, int64_t value)
{
    if (!(io->fd->flags & FD_STREAM))
        return false;
    switch (io->op.kind) {
    case IO_READ:
        return value > 0 && (size_t)value < io->bytes.len;
    case IO_LEASE:
        return value > 0 && value < LEASE_SIZE;
    default:
        return false;
    }
}

void blz__fd_note(struct io *io, uint64_t seen, int64_t value)
{
    int direction = io_direction(io);
    uint32_t before = (uint32_t)(seen >> (32 * direction)), after = before;

    if (io->op.kind == IO_POLL)
        return;
    if (value == -EAGAIN)
        after &= ~(FD_READY | FD_ENDED);
    else if (took_all(io, value) && !(before & FD_ENDED))
        after &= ~FD_READY;
    else if (value > 0 && !(before & FD_READY))
        blz__fetch_or(&io->fd->ready[direction], FD_READY, RELAXED);
    if (after != before)
        /* Fails if an edge came meanwhile: then it may be ready after all. */
        blz__cas(&io->fd->ready[direction], &before, after, RELAXED, RELAXED);
}

/* ---- registrations ---- */

static bool is_current(const blz__fd *entry, uint64_t token)
{
    BLZ_ASSERT(blz__lock_is_held(&entry->lock));
    return (entry->state & FD_IN_USE) && ready_token_is_of(token, entry->generation);
}

/* Under the entry's lock. */
static int register_with(ready_driver *d, blz__fd *entry)
{
    BLZ_ASSERT(blz__lock_is_held(&entry->lock));
    BLZ_ASSERT(!entry->home);
    int rc = d->kernel->watch(d, entry, ready_token(entry, entry->generation));

    if (rc < 0)
        return rc;
    entry->home = &d->base;
    entry->state |= FD_REQUESTED;
    blz__fetch_add(&d->registered, 1u, RELAXED);
    stat_registration(&d->base);
    return 0;
}

void blz__ready_unregister_fd(blz__driver *driver, blz__fd *entry)
{
    ready_driver *d = ready_of(driver);

    BLZ_ASSERT(entry->home == driver);
    BLZ_ASSERT(blz__peek(&d->registered) > 0);
    d->kernel->unwatch(d, entry);
    blz__fetch_sub(&d->registered, 1u, RELAXED);
}

static bool somebody_is_armed(const blz__fd *entry)
{
    BLZ_ASSERT(blz__lock_is_held(&entry->lock));
    for (int direction = FD_IN; direction <= FD_OUT; direction++)
        for (const struct io *io = entry->waiting[direction]; io; io = io->next)
            if (io->op.armed)
                return true;
    return false;
}

/* The home is another worker's driver, again: the descriptor moves to us if nobody waits there. */
static int count_remote_wait(ready_driver *d, blz__fd *entry)
{
    enum { LIMIT = 15 * FD_REMOTE_WAIT };

    BLZ_ASSERT(blz__lock_is_held(&entry->lock));
    BLZ_ASSERT(entry->home != &d->base);
    if (entry->state < LIMIT) {
        entry->state += FD_REMOTE_WAIT;
        return 0;
    }
    if (somebody_is_armed(entry))
        return 0;
    blz__ready_unregister_fd(entry->home, entry);
    entry->home = NULL;
    entry->state &= FD_REMOTE_WAIT - 1;
    return register_with(d, entry);
}

static int find_home(ready_driver *d, blz__fd *entry)
{
    BLZ_ASSERT(blz__lock_is_held(&entry->lock));
    if (!entry->home)
        return register_with(d, entry);
    return entry->home == &d->base ? 0 : count_remote_wait(d, entry);
}

/* Under the entry's lock: there will be an edge, if need be because it is asked for. */
static int request_edge(blz__fd *entry)
{
    ready_driver *home = ready_of(entry->home);
    int rc;

    if (entry->state & FD_REQUESTED)
        return 0;
    rc = home->kernel->rearm(home, entry, ready_token(entry, entry->generation));
    if (rc == 0)
        entry->state |= FD_REQUESTED;
    return rc;
}

/*
 * Also while nothing is armed: another worker may arm an operation on a descriptor that is at home
 * here at any time, without telling us. Only we add to the count.
 */
bool blz__ready_has_pending(const blz__driver *driver)
{
    return blz__load(&((const ready_driver *)driver)->registered, RELAXED) > 0;
}

/* ---- waiting ---- */

/* Under the entry's lock: whether something may have happened since the operation was tried. */
static bool has_news(const struct io *io)
{
    uint64_t now = fd_seen(io->fd), ticks = ~(((uint64_t)(FD_EVENT - 1) << 32) | (FD_EVENT - 1));

    BLZ_ASSERT(blz__lock_is_held(&io->fd->lock));
    if (io->op.kind == IO_POLL)
        return (now ^ io->seen) & ticks;
    return now >> (32 * io_direction(io)) & FD_READY;
}

enum { ARM_READY = 1 };

/*
 * Waits for the next edge. ARM_READY: there has been one since; try again. Negative: it has been
 * asked to end, or cannot be registered. The operation's home becomes the worker that will report
 * it.
 */
static int arm(ready_driver *d, struct io *io)
{
    blz__fd *entry = io->fd;
    int rc;

    blz__lock_acquire(&entry->lock);
    rc = op_cancel_requested(&io->op) ? -ECANCELED : find_home(d, entry);
    if (rc == 0)
        rc = has_news(io) ? ARM_READY : request_edge(entry);
    if (rc == 0) {
        BLZ_ASSERT(!io->op.armed);
        blz__plain_write(&io->op.armed);
        io->op.armed = true;
        blz__store(&io->op.home, entry->home->worker, RELAXED); /* a hint, see above */
    }
    blz__lock_release(&entry->lock);
    return rc;
}

static int64_t try_and_note(struct io *io)
{
    int64_t value;

    io->seen = fd_seen(io->fd);
    value = blz__io_try_now(io);
    blz__fd_note(io, io->seen, value);
    return value;
}

/*
 * The kernel has no edges of this descriptor (a memory device, a regular file), because it is
 * always ready: the result of a try, whatever it is.
 */
static int64_t try_without_edges(struct io *io)
{
    int64_t value = try_and_note(io);

    return value == -EAGAIN ? -EPERM : value;
}

/* Waits, or tries until it has a result. */
static void arm_or_try(ready_driver *d, struct io *io)
{
    int rc = arm(d, io);

    while (rc == ARM_READY) {
        int64_t value = try_and_note(io);
        if (value != -EAGAIN) {
            blz__io_complete(&d->base, io, value);
            return;
        }
        rc = arm(d, io);
    }
    if (rc < 0)
        blz__io_complete(&d->base, io, rc == -EPERM ? try_without_edges(io) : rc);
}

void blz__ready_submit(blz__driver *driver, blz__op *op)
{
    arm_or_try(ready_of(driver), (struct io *)op);
}

void blz__ready_cancel(blz__driver *driver, blz__op *op)
{
    struct io *io = (struct io *)op;
    bool armed;

    if (driver->send_batch && blz__send_batch_cancel(driver, op))
        return;
    blz__lock_acquire(&io->fd->lock);
    blz__plain_write(&op->armed);
    armed = op->armed;
    op->armed = false;
    blz__lock_release(&io->fd->lock);
    if (armed)
        blz__io_complete(driver, io, -ECANCELED);
}

/* ---- edges ---- */

/*
 * Under the entry's lock: whether everybody who has begun waits. Then nobody makes a call right
 * now, and holds what he has seen before it against what is there behind it: edges need not be
 * counted, and `ready` is nobody else's to change.
 */
static bool nobody_is_trying(const blz__fd *entry)
{
    BLZ_ASSERT(blz__lock_is_held(&entry->lock));
    for (int direction = FD_IN; direction <= FD_OUT; direction++)
        for (const struct io *io = entry->waiting[direction]; io; io = io->next)
            if (!io->op.armed)
                return false;
    return true;
}

static void add_edge(blz__fd *entry, int direction, bool ended, bool quiet)
{
    uint32_t ready = blz__load(&entry->ready[direction], RELAXED);
    uint32_t set = FD_READY | (ended ? FD_ENDED : 0);

    BLZ_ASSERT(blz__lock_is_held(&entry->lock));
    if (quiet) {
        if ((ready & set) != set)
            /* release: as below */
            blz__store(&entry->ready[direction], ready | set, RELEASE);
        return;
    }
    /* release: pairs with the acquire in fd_seen */
    while (!blz__cas_weak(&entry->ready[direction], &ready, (ready | set) + FD_EVENT, RELEASE,
                          RELAXED))
        ;
}

/* Operations that have been disarmed, linked by `next_queued`, the oldest first. */
struct chain {
    struct io *first, *last;
};

/* Disarms those that wait for this direction, or for edges of any kind. */
static void take_armed(blz__fd *entry, int direction, bool all, struct chain *chain)
{
    BLZ_ASSERT(blz__lock_is_held(&entry->lock));
    for (struct io *io = entry->waiting[direction]; io; io = io->next) {
        if (!io->op.armed || !(all || io->op.kind == IO_POLL))
            continue;
        blz__plain_write(&io->op.armed);
        io->op.armed = false;
        io->next_queued = NULL;
        if (chain->last)
            chain->last->next_queued = io;
        else
            chain->first = io;
        chain->last = io;
    }
}

/*
 * Under the entry's lock: the edge that was asked for has been reported. Operations that stay armed
 * need another one. If that is refused, all of them are tried, and meet the error when they are
 * armed again.
 */
static void request_next_edge(const ready_driver *d, blz__fd *entry, struct chain *chain)
{
    if (blz_likely(!d->kernel->rearm))
        return;
    entry->state &= (uint8_t)~FD_REQUESTED;
    if (somebody_is_armed(entry) && request_edge(entry) < 0) {
        take_armed(entry, FD_IN, true, chain);
        take_armed(entry, FD_OUT, true, chain);
    }
}

/* Those to be tried again. */
static struct io *note_edge(const ready_driver *d, uint64_t token, unsigned what)
{
    blz__fd *entry = ready_token_entry(token);
    struct chain chain = {NULL, NULL};

    blz__lock_acquire(&entry->lock);
    if (is_current(entry, token) && entry->home == &d->base) {
        bool quiet = nobody_is_trying(entry);
        if (what & READY_IN)
            add_edge(entry, FD_IN, what & READY_IN_ENDED, quiet);
        if (what & READY_OUT)
            add_edge(entry, FD_OUT, what & READY_OUT_ENDED, quiet);
        take_armed(entry, FD_IN, what & READY_IN, &chain);
        take_armed(entry, FD_OUT, what & READY_OUT, &chain);
        request_next_edge(d, entry, &chain);
    }
    blz__lock_release(&entry->lock);
    return chain.first;
}

void blz__ready_prefetch(uint64_t token)
{
    __builtin_prefetch(ready_token_entry(token), 1);
}

void blz__ready_edge(ready_driver *d, uint64_t token, unsigned what)
{
    struct io *io = note_edge(d, token, what), *next;

    for (; io; io = next) {
        next = io->next_queued;
        int64_t value = try_and_note(io);
        if (value == -EAGAIN)
            arm_or_try(d, io);
        else
            blz__io_complete(&d->base, io, value);
    }
}
