/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epoll backend: the readiness protocol of ready.c over an edge-triggered epoll set a worker.
 * The set reports the level that it finds when it is asked, of descriptors that have had an edge;
 * an end that comes after the data may thus be reported with the data, and once.
 *
 * An epoll set knows a descriptor once. Where a program has attached a foreign one a second time
 * (blitz/fd.h), the second entry registers a duplicate of it.
 */
#include "base/alloc.h"
#include "io/ready.h"
#include "io/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { DEFAULT_EVENTS = 256 };

struct epoll_driver {
    ready_driver ready;
    const blz_allocator *allocator;
    int epfd;
    int wake_fd;
    bool embedded; /* somebody waits for epfd */
    uint32_t max_events;
    struct epoll_event events[];
};

static struct epoll_driver *driver_of(blz__driver *driver)
{
    return (struct epoll_driver *)driver;
}

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

static int epoll_watch(ready_driver *ready, blz__fd *entry, uint64_t token)
{
    int epfd = driver_of(&ready->base)->epfd;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET,
                                .data = {.u64 = token}};

    if (epoll_ctl(epfd, EPOLL_CTL_ADD, entry->fd, &event) == 0)
        return 0;
    if (errno == EEXIST && (entry->flags & FD_FOREIGN))
        return watch_duplicate(epfd, entry, &event);
    return -errno;
}

static void epoll_unwatch(ready_driver *ready, blz__fd *entry)
{
    bool copied = entry->state & FD_COPIED;
    int fd = copied ? (int)entry->copy : entry->fd;

    epoll_ctl(driver_of(&ready->base)->epfd, EPOLL_CTL_DEL, fd, NULL);
    if (copied) {
        close(fd);
        entry->state &= (uint8_t)~FD_COPIED;
        entry->copy = 0;
    }
}

static const ready_kernel epoll_kernel = {epoll_watch, epoll_unwatch};

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
    d->ready =
        (ready_driver){.base = {.ops = &blz__epoll_driver, .leases = blz__leases_new(allocator)},
                       .kernel = &epoll_kernel};
    d->embedded = options->embedded;
    d->allocator = allocator;
    d->max_events = max;
    rc = d->ready.base.leases ? epoll_open_fds(d) : -ENOMEM;
    if (rc < 0) {
        blz__leases_close(d->ready.base.leases);
        blz__free(allocator, d, size_of(max), _Alignof(struct epoll_driver));
        return rc;
    }
    *driver = &d->ready.base;
    return 0;
}

static void epoll_close(blz__driver *driver)
{
    struct epoll_driver *d = driver_of(driver);

    blz__leases_close(d->ready.base.leases);
    close(d->wake_fd);
    close(d->epfd);
    blz__free(d->allocator, d, size_of(d->max_events), _Alignof(struct epoll_driver));
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

static int wait_for_events(struct epoll_driver *d, int64_t deadline_ns)
{
    struct timespec left = blz__time_left(deadline_ns);
    int n;

    stat_entry(&d->ready.base);
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

    if (driver->later && blz__later_run(driver))
        deadline_ns = 0;
    /* Embedded, a wake-up has to be fetched, or epfd stays readable. */
    if (deadline_ns == 0 && !blz__ready_busy(driver) && !d->embedded)
        return;
    int n = wait_for_events(d, deadline_ns);
    for (int i = 0; i < n; i++)
        if (d->events[i].data.u64 != 0) /* not woken */
            blz__ready_edge(&d->ready, d->events[i].data.u64, meaning_of(d->events[i].events));
}

static void epoll_wake(blz__driver *driver)
{
    blz__wake_send(driver_of(driver)->wake_fd);
}

static int epoll_fd(blz__driver *driver)
{
    return driver_of(driver)->epfd;
}

const blz__driver_ops blz__epoll_driver = {
    .name = "epoll",
    .open = epoll_open,
    .close = epoll_close,
    .submit = blz__ready_submit,
    .cancel = blz__ready_cancel,
    .poll = epoll_poll,
    .wake = epoll_wake,
    .fd = epoll_fd,
    .busy = blz__ready_busy,
    .forget = blz__ready_forget,
    .attempts = (1u << IO_KINDS) - 1,
    .nonblocking = true,
};
