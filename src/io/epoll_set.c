/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An epoll set a worker, for ready.c. The set reports the level that it finds when it is asked, of
 * descriptors that have had an edge; an end that comes after the data may thus be reported with the
 * data, and once.
 *
 * An epoll set knows a descriptor once. Where a program has attached a foreign one a second time
 * (blitz/fd.h), the second entry registers a duplicate of it.
 */
#include "io/epoll_set.h"

#include "base/alloc.h"
#include "base/panic.h"
#include "system/clock.h"
#include "io/wake.h"

#include <blitz/error.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { DEFAULT_EVENTS = 256, AHEAD = 2 };

/* ---- registrations ---- */

static int watch_duplicate(int epfd, blz__fd *entry, struct epoll_event *event)
{
    int fd = fcntl(entry->fd, F_DUPFD_CLOEXEC, 0), rc;

    if (fd < 0)
        return -errno;
    if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, event) == 0) {
        entry->copy = (uintptr_t)fd;
        entry->state |= FD_COPIED;
        return 0;
    }
    rc = -errno;
    close(fd);
    return rc;
}

static int watch(ready_driver *ready, blz__fd *entry, uint64_t token)
{
    int epfd = epoll_set_of(&ready->base)->epfd;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET,
                                .data = {.u64 = token}};

    if (epoll_ctl(epfd, EPOLL_CTL_ADD, entry->fd, &event) == 0)
        return 0;
    if (errno == EEXIST && (entry->flags & FD_FOREIGN))
        return watch_duplicate(epfd, entry, &event);
    return -errno;
}

static void unwatch(ready_driver *ready, blz__fd *entry)
{
    bool copied = entry->state & FD_COPIED;
    int fd = copied ? (int)entry->copy : entry->fd;

    epoll_ctl(epoll_set_of(&ready->base)->epfd, EPOLL_CTL_DEL, fd, NULL);
    if (copied) {
        close(fd);
        entry->state &= (uint8_t)~FD_COPIED;
        entry->copy = 0;
    }
}

static const ready_kernel kernel = {.watch = watch, .unwatch = unwatch};

/* ---- life ---- */

static int open_epoll(epoll_set *set)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data = {.u64 = 0}};
    int rc;

    set->epfd = epoll_create1(EPOLL_CLOEXEC);
    if (set->epfd < 0)
        return -errno;
    set->wake_fd = blz__wake_open();
    rc = set->wake_fd;
    if (rc >= 0 && epoll_ctl(set->epfd, EPOLL_CTL_ADD, set->wake_fd, &event) < 0) {
        rc = -errno;
        close(set->wake_fd);
    }
    if (rc < 0)
        close(set->epfd);
    return rc < 0 ? rc : 0;
}

static void close_fds(epoll_set *set)
{
    if (set->end_wait_fd >= 0)
        close(set->end_wait_fd);
    close(set->wake_fd);
    close(set->epfd);
}

static int open_fds(epoll_set *set, bool with_end_wait)
{
    int rc = open_epoll(set);

    set->end_wait_fd = -1;
    if (rc < 0 || !with_end_wait)
        return rc;
    rc = blz__wake_open();
    if (rc < 0)
        close_fds(set);
    else
        set->end_wait_fd = rc;
    return rc < 0 ? rc : 0;
}

static void free_memory(epoll_set *set)
{
    blz__leases_close(set->ready.base.leases);
    if (set->events)
        blz__free(set->allocator, set->events, set->max_events * sizeof *set->events,
                  _Alignof(struct epoll_event));
}

int blz__epoll_set_open(epoll_set *set, const blz__driver_ops *ops, const blz_options *options,
                        const blz_allocator *allocator)
{
    uint32_t max = options->max_io_completions ? options->max_io_completions : DEFAULT_EVENTS;
    int rc;

    *set = (epoll_set){.ready = {.base = {.ops = ops, .leases = blz__leases_new(allocator)},
                                 .kernel = &kernel},
                       .allocator = allocator,
                       .embedded = options->embedded,
                       .max_events = max};
    set->events = blz__alloc(allocator, max * sizeof *set->events, _Alignof(struct epoll_event));
    rc = set->events && set->ready.base.leases ? open_fds(set, options->on_ready) : -ENOMEM;
    if (rc < 0)
        free_memory(set);
    return rc;
}

void blz__epoll_set_close(epoll_set *set)
{
    close_fds(set);
    free_memory(set);
}

/* ---- waiting ---- */

/* Ways to wait, the most precise first. */
enum { WAIT_PWAIT2, WAIT_PWAIT, WAIT_PLAIN };

static int wait_by(const epoll_set *set, int way, int max, int64_t deadline_ns)
{
    struct timespec left = blz__time_left(deadline_ns);

    switch (way) {
    case WAIT_PWAIT2:
        return epoll_pwait2(set->epfd, set->events, max, deadline_ns == INT64_MAX ? NULL : &left,
                            NULL);
    case WAIT_PWAIT:
        return epoll_pwait(set->epfd, set->events, max, blz__time_left_ms(deadline_ns, &left),
                           NULL);
    default:
        return epoll_wait(set->epfd, set->events, max, blz__time_left_ms(deadline_ns, &left));
    }
}

/*
 * Kernels before 5.11 do not have epoll_pwait2, and system call filters refuse it, or another way,
 * with an error of their choice. So any error moves on to the next way, for good.
 */
int blz__epoll_set_wait(epoll_set *set, int max, int64_t deadline_ns)
{
    for (;;) {
        int n = wait_by(set, set->wait_way, max, deadline_ns);
        if (blz_likely(n >= 0))
            return n;
        if (errno == EINTR)
            return 0;
        if (set->wait_way == WAIT_PLAIN)
            return -errno;
        set->wait_way++;
    }
}

/*
 * A wait may be interrupted, so there may have to be several. A thread that was stopped until after
 * the deadline looks twice: the first look takes it into the kernel, which may have something to
 * do for a ring on the way out.
 */
int blz__epoll_set_try_wake(epoll_set *set)
{
    int64_t deadline_ns = blz__clock_ns() + 200 * BLZ_MSEC;
    int n = 0;

    for (int late = 0; n == 0 && late < 2; late += blz__clock_ns() >= deadline_ns)
        n = blz__epoll_set_wait(set, 1, deadline_ns);
    return n < 0 ? n : n == 0 ? -ETIME : 0;
}

int blz__epoll_set_probe(epoll_set *set)
{
    blz__wake_send(set->wake_fd);
    return blz__epoll_set_try_wake(set);
}

/* ---- edges ---- */

/* Urgent data counts as an end: a read stops where it is, short of what is behind it. */
static unsigned meaning_of(uint32_t events)
{
    unsigned what = 0;

    if (events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        what |= READY_IN;
    if (events & (EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        what |= READY_IN_ENDED;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        what |= READY_OUT;
    if (events & (EPOLLHUP | EPOLLERR))
        what |= READY_OUT_ENDED;
    return what;
}

/*
 * No more than the worker's queue has room for: they wait in the kernel at no cost, and in turn,
 * while a queue that overflows has its tasks overtaken by others.
 */
static int max_now(const epoll_set *set)
{
    uint32_t room = blz__worker_room();

    return (int)(room < set->max_events ? room : set->max_events);
}

void blz__epoll_set_look(epoll_set *set, int64_t deadline_ns)
{
    int max = max_now(set), n;

    if (blz_unlikely(max == 0))
        return; /* there is more than enough to do */
    stat_entry(&set->ready.base);
    n = blz__epoll_set_wait(set, max, deadline_ns);
    if (blz_unlikely(n < 0))
        blz__panic("the kernel refuses to wait for events (epoll_wait: %s); a system call filter "
                   "that is installed after the runtime has started must allow it",
                   blz_strerror(n));
    for (int i = 0; i < n; i++) {
        if (i + AHEAD < n)
            blz__ready_prefetch(set->events[i + AHEAD].data.u64);
        if (set->events[i].data.u64 != 0) /* not woken */
            blz__ready_edge(&set->ready, set->events[i].data.u64,
                            meaning_of(set->events[i].events));
    }
}

void blz__epoll_set_wake(blz__driver *driver)
{
    blz__wake_send(epoll_set_of(driver)->wake_fd);
}

int blz__epoll_set_fd(blz__driver *driver)
{
    return epoll_set_of(driver)->epfd;
}

/* ---- another thread that waits ---- */

/* As poll(2), until a deadline. Filters may refuse ppoll. */
static int poll_until(struct pollfd *fds, nfds_t count, int64_t deadline_ns)
{
    struct timespec left = blz__time_left(deadline_ns);
    int n = ppoll(fds, count, deadline_ns == INT64_MAX ? NULL : &left, NULL);

    if (blz_unlikely(n < 0) && errno != EINTR)
        n = poll(fds, count, blz__time_left_ms(deadline_ns, &left));
    return n;
}

/* The set is readable as long as it has something to report. */
bool blz__epoll_set_wait_ready(blz__driver *driver, int64_t deadline_ns)
{
    epoll_set *set = epoll_set_of(driver);
    struct pollfd fds[] = {{.fd = set->epfd, .events = POLLIN},
                           {.fd = set->end_wait_fd, .events = POLLIN}};
    int n = poll_until(fds, 2, deadline_ns);

    if (n <= 0)
        return n == 0; /* it is time; or it was interrupted */
    if (fds[1].revents)
        blz__wake_drain(set->end_wait_fd);
    return fds[0].revents;
}

void blz__epoll_set_end_wait(blz__driver *driver)
{
    blz__wake_send(epoll_set_of(driver)->end_wait_fd);
}
