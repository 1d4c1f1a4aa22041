/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epoll backend. A descriptor is registered once, edge-triggered for both directions, with the
 * driver of the first worker that had to wait for it: its home. Operations that have to wait are
 * armed in the descriptor's entry; an event makes the home try them again, and those that have a
 * result are complete. A task that moved to another worker keeps using the old home, until that has
 * happened a number of times; then the descriptor moves too.
 *
 * No edge is lost. An event sets `ready` and counts, under the entry's lock, and takes all armed
 * operations. An operation is armed under the same lock, and only if `ready` is not set; and `ready`
 * is cleared only by one who saw a call find nothing, or take everything, after the last event
 * (blz__fd_note). The end of the stream is not an edge that comes after the data: it may come with
 * the data's event. So once it has been seen, or an urgent mark at which reads stop, only a call that
 * finds nothing clears `ready`.
 *
 * An event carries the entry and 16 bits of its generation. Closing a descriptor removes it from
 * the epoll set first, so what may come late are events that the home had already fetched; they find
 * another generation, or another home, and are dropped.
 */
#include "base/alloc.h"
#include "io/io.h"
#include "io/wake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { DEFAULT_EVENTS = 256 };

struct epoll_driver {
    blz__driver base;
    lease_pool leases;
    const blz_allocator *allocator;
    int epfd;
    int wake_fd;
    uint32_t registered; /* descriptors whose home this is; any thread takes them away */
    uint32_t max_events;
    struct epoll_event events[];
};

static struct epoll_driver *driver_of(blz__driver *driver)
{
    return (struct epoll_driver *)driver;
}

/* ---- life ---- */

static size_t size_of(uint32_t max_events)
{
    return sizeof(struct epoll_driver) + max_events * sizeof(struct epoll_event);
}

static int epoll_open_fds(struct epoll_driver *d)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data = {.u64 = 0}};
    int rc;

    d->epfd = epoll_create1(EPOLL_CLOEXEC);
    if (d->epfd < 0)
        return -errno;
    d->wake_fd = blz__wake_open();
    rc = d->wake_fd;
    if (rc >= 0 && epoll_ctl(d->epfd, EPOLL_CTL_ADD, d->wake_fd, &event) < 0) {
        rc = -errno;
        close(d->wake_fd);
    }
    if (rc < 0)
        close(d->epfd);
    return rc < 0 ? rc : 0;
}

static int epoll_open(blz__driver **driver, const blz_options *options,
                      const blz_allocator *allocator)
{
    uint32_t max = options->max_io_completions ? options->max_io_completions : DEFAULT_EVENTS;
    struct epoll_driver *d = blz__alloc(allocator, size_of(max), _Alignof(struct epoll_driver));
    int rc;

    if (!d)
        return -ENOMEM;
    memset(d, 0, sizeof *d);
    d->base = (blz__driver){.ops = &blz__epoll_driver, .leases = &d->leases};
    d->allocator = allocator;
    d->max_events = max;
    blz__leases_init(&d->leases, allocator);
    rc = epoll_open_fds(d);
    if (rc < 0) {
        blz__free(allocator, d, size_of(max), _Alignof(struct epoll_driver));
        return rc;
    }
    *driver = &d->base;
    return 0;
}

static void epoll_close(blz__driver *driver)
{
    struct epoll_driver *d = driver_of(driver);

    blz__leases_destroy(&d->leases);
    close(d->wake_fd);
    close(d->epfd);
    blz__free(d->allocator, d, size_of(d->max_events), _Alignof(struct epoll_driver));
}

/* ---- registrations ---- */

#define GENERATION_SHIFT 48

static uint64_t token_of(const blz__fd *entry)
{
    return (uint64_t)(uintptr_t)entry | (uint64_t)entry->generation << GENERATION_SHIFT;
}

static blz__fd *entry_of(uint64_t token)
{
    return (blz__fd *)(uintptr_t)(token & (((uint64_t)1 << GENERATION_SHIFT) - 1));
}

static bool is_current(const blz__fd *entry, uint64_t token)
{
    return (entry->state & FD_IN_USE) && (uint16_t)entry->generation == token >> GENERATION_SHIFT;
}

/* Under the entry's lock. */
static int register_with(struct epoll_driver *d, blz__fd *entry)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET,
                                .data = {.u64 = token_of(entry)}};

    if (epoll_ctl(d->epfd, EPOLL_CTL_ADD, entry->fd, &event) < 0)
        return -errno;
    entry->home = &d->base;
    blz__fetch_add(&d->registered, 1u, RELAXED);
    blz__store(&d->base.registrations, d->base.registrations + 1, RELAXED); /* statistics */
    return 0;
}

static void epoll_forget(blz__driver *driver, int fd)
{
    struct epoll_driver *d = driver_of(driver);

    epoll_ctl(d->epfd, EPOLL_CTL_DEL, fd, NULL);
    blz__fetch_sub(&d->registered, 1u, RELAXED);
}

static bool somebody_is_armed(const blz__fd *entry)
{
    for (int direction = FD_IN; direction <= FD_OUT; direction++)
        for (const struct io *io = entry->waiting[direction]; io; io = io->next)
            if (io->progress & IO_ARMED)
                return true;
    return false;
}

/* The home is another worker's driver, again: the descriptor moves to us if nobody waits there. */
static int count_remote_wait(struct epoll_driver *d, blz__fd *entry)
{
    enum { LIMIT = 15 * FD_REMOTE_WAIT };

    if (entry->state < LIMIT) {
        entry->state += FD_REMOTE_WAIT;
        return 0;
    }
    if (somebody_is_armed(entry))
        return 0;
    epoll_forget(entry->home, entry->fd);
    entry->home = NULL;
    entry->state &= FD_REMOTE_WAIT - 1;
    return register_with(d, entry);
}

static int find_home(struct epoll_driver *d, blz__fd *entry)
{
    if (!entry->home)
        return register_with(d, entry);
    return entry->home == &d->base ? 0 : count_remote_wait(d, entry);
}

/* ---- waiting ---- */

/* Under the entry's lock: whether something may have happened since the operation was tried. */
static bool has_news(const struct io *io)
{
    uint64_t now = fd_seen(io->fd), ticks = ~(((uint64_t)(FD_EVENT - 1) << 32) | (FD_EVENT - 1));

    if (io->op.kind == IO_POLL)
        return (now ^ io->driver) & ticks;
    return now >> (32 * io_direction(io)) & FD_READY;
}

enum { ARM_READY = 1 };

/*
 * Waits for the next event. ARM_READY: there has been one since; try again. Negative: it cannot be
 * registered. The operation's home becomes the worker that will report it.
 *
 * The request to cancel it may go to the home that it had before, and come there while it is being
 * tried here: it finds nothing armed, and must be noticed by us, under the lock that it had taken.
 */
static int arm(struct epoll_driver *d, struct io *io)
{
    blz__fd *entry = io->fd;
    int rc;

    blz__lock_acquire(&entry->lock);
    rc = find_home(d, entry);
    if (blz__load(&io->op.events, RELAXED) & OP_CANCEL)
        rc = -ECANCELED;
    if (rc == 0 && has_news(io))
        rc = ARM_READY;
    if (rc == 0) {
        io->progress |= IO_ARMED;
        blz__store(&io->op.home, entry->home->worker, RELAXED);
    }
    blz__lock_release(&entry->lock);
    return rc;
}

/* Tries until it has a result, or waits. */
static void try_or_arm(struct epoll_driver *d, struct io *io)
{
    int64_t value;
    int rc = arm(d, io);

    while (rc == ARM_READY) {
        io->driver = fd_seen(io->fd);
        value = blz__io_attempt(io);
        blz__fd_note(io, io->driver, value);
        if (value != -EAGAIN) {
            blz__io_complete(&d->base, io, value);
            return;
        }
        rc = arm(d, io);
    }
    if (rc < 0)
        blz__io_complete(&d->base, io, rc);
}

static void epoll_submit(blz__driver *driver, blz__op *op)
{
    try_or_arm(driver_of(driver), (struct io *)op);
}

static void epoll_cancel(blz__driver *driver, blz__op *op)
{
    struct io *io = (struct io *)op;
    bool armed;

    blz__lock_acquire(&io->fd->lock);
    armed = io->progress & IO_ARMED;
    io->progress &= (uint8_t)~IO_ARMED;
    blz__lock_release(&io->fd->lock);
    if (armed)
        blz__io_complete(driver, io, -ECANCELED);
}

/* ---- events ---- */

static void add_event(blz__fd *entry, int direction, uint32_t ended)
{
    uint32_t ready = blz__load(&entry->ready[direction], RELAXED);

    /* release: pairs with the acquire in fd_seen */
    while (!blz__cas_weak(&entry->ready[direction], &ready, (ready | FD_READY | ended) + FD_EVENT,
                          RELEASE, RELAXED))
        ;
}

/* Disarms those that wait for this direction, or for events of any kind; adds them to the chain. */
static struct io *take_armed(blz__fd *entry, int direction, bool all, struct io *chain)
{
    for (struct io *io = entry->waiting[direction]; io; io = io->next) {
        if (!(io->progress & IO_ARMED) || !(all || io->op.kind == IO_POLL))
            continue;
        io->progress &= (uint8_t)~IO_ARMED;
        io->driver = (uint64_t)(uintptr_t)chain;
        chain = io;
    }
    return chain;
}

/* Those to be tried again. */
static struct io *note_event(struct epoll_driver *d, uint64_t token, uint32_t events)
{
    blz__fd *entry = entry_of(token);
    uint32_t in_mask = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR;
    bool in = events & in_mask;
    bool out = events & (EPOLLOUT | EPOLLHUP | EPOLLERR);
    struct io *chain = NULL;

    blz__lock_acquire(&entry->lock);
    if (is_current(entry, token) && entry->home == &d->base) {
        if (in)
            add_event(entry, FD_IN, events & (in_mask & ~(uint32_t)EPOLLIN) ? FD_ENDED : 0);
        if (out)
            add_event(entry, FD_OUT, events & (EPOLLHUP | EPOLLERR) ? FD_ENDED : 0);
        chain = take_armed(entry, FD_IN, in, chain);
        chain = take_armed(entry, FD_OUT, out, chain);
    }
    blz__lock_release(&entry->lock);
    return chain;
}

static void try_again(struct epoll_driver *d, struct io *io)
{
    io->driver = fd_seen(io->fd);
    int64_t value = blz__io_attempt(io);

    blz__fd_note(io, io->driver, value);
    if (value == -EAGAIN)
        try_or_arm(d, io);
    else
        blz__io_complete(&d->base, io, value);
}

static int wait_for_events(struct epoll_driver *d, int64_t deadline_ns)
{
    struct timespec left = blz__time_left(deadline_ns);
    int n;

    blz__store(&d->base.entries, d->base.entries + 1, RELAXED); /* statistics */
    n = epoll_pwait2(d->epfd, d->events, (int)d->max_events,
                     deadline_ns == INT64_MAX ? NULL : &left, NULL);
    if (n < 0 && errno == ENOSYS)
        n = epoll_wait(d->epfd, d->events, (int)d->max_events,
                       blz__time_left_ms(deadline_ns, &left));
    return n;
}

static void epoll_poll(blz__driver *driver, int64_t deadline_ns)
{
    struct epoll_driver *d = driver_of(driver);

    if (deadline_ns == 0 && blz__load(&d->registered, RELAXED) == 0)
        return;
    int n = wait_for_events(d, deadline_ns);
    for (int i = 0; i < n; i++) {
        if (d->events[i].data.u64 == 0)
            continue; /* woken */
        struct io *chain = note_event(d, d->events[i].data.u64, d->events[i].events);
        while (chain) {
            struct io *io = chain;
            chain = (struct io *)(uintptr_t)io->driver;
            try_again(d, io);
        }
    }
}

static void epoll_wake(blz__driver *driver)
{
    blz__wake_send(driver_of(driver)->wake_fd);
}

static int epoll_fd(blz__driver *driver)
{
    return driver_of(driver)->epfd;
}

/*
 * Also while nothing is armed: another worker may arm an operation on a descriptor that is at home
 * here at any time, without telling us.
 */
static bool epoll_busy(const blz__driver *driver)
{
    return blz__load(&((const struct epoll_driver *)driver)->registered, RELAXED) > 0;
}

const blz__driver_ops blz__epoll_driver = {
    .name = "epoll",
    .open = epoll_open,
    .close = epoll_close,
    .submit = epoll_submit,
    .cancel = epoll_cancel,
    .poll = epoll_poll,
    .wake = epoll_wake,
    .fd = epoll_fd,
    .busy = epoll_busy,
    .forget = epoll_forget,
    .attempts = (1u << IO_KINDS) - 1,
    .nonblocking = true,
};
