/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest driver: it does no I/O, but sleeps on an eventfd and is woken through it. It gives
 * embedded runtimes the descriptor that the caller's loop waits for.
 */
#include "base/alloc.h"
#include "sched/sched.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct wakefd {
    blz__driver driver;
    const blz_allocator *allocator;
    int fd;
};

static int wakefd_open(blz__driver **driver, const blz_allocator *allocator)
{
    struct wakefd *d = blz__alloc(allocator, sizeof *d, _Alignof(struct wakefd));

    if (!d)
        return -ENOMEM;
    *d = (struct wakefd){{&blz__wakefd_driver}, allocator, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (d->fd < 0) {
        int rc = -errno;
        blz__free(allocator, d, sizeof *d, _Alignof(struct wakefd));
        return rc;
    }
    *driver = &d->driver;
    return 0;
}

static void wakefd_close(blz__driver *driver)
{
    struct wakefd *d = (struct wakefd *)driver;

    close(d->fd);
    blz__free(d->allocator, d, sizeof *d, _Alignof(struct wakefd));
}

/* There is nothing to start: whatever it is, it cannot be done here. */
static void wakefd_submit(blz__driver *driver, blz__op *op)
{
    (void)driver;
    op->value = -ENOTSUP;
    blz__op_event(op);
}

static void wakefd_cancel(blz__driver *driver, blz__op *op)
{
    (void)driver;
    (void)op;
}

static void wait_readable(int fd, int64_t deadline_ns)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    struct timespec left = {0};

    if (deadline_ns != INT64_MAX) {
        int64_t ns = deadline_ns - blz__clock_ns();
        if (ns > 0)
            left = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    }
    ppoll(&pfd, 1, deadline_ns == INT64_MAX ? NULL : &left, NULL);
}

static void wakefd_poll(blz__driver *driver, int64_t deadline_ns)
{
    struct wakefd *d = (struct wakefd *)driver;
    uint64_t count;

    if (deadline_ns != 0)
        wait_readable(d->fd, deadline_ns);
    (void)!read(d->fd, &count, sizeof count); /* takes the token, if there is one */
}

static void wakefd_wake(blz__driver *driver)
{
    (void)!write(((struct wakefd *)driver)->fd, &(uint64_t){1}, sizeof(uint64_t));
}

static int wakefd_fd(blz__driver *driver)
{
    return ((struct wakefd *)driver)->fd;
}

static bool wakefd_busy(const blz__driver *driver)
{
    (void)driver;
    return false;
}

const blz__driver_ops blz__wakefd_driver = {
    .name = "wakefd",
    .open = wakefd_open,
    .close = wakefd_close,
    .submit = wakefd_submit,
    .cancel = wakefd_cancel,
    .poll = wakefd_poll,
    .wake = wakefd_wake,
    .fd = wakefd_fd,
    .busy = wakefd_busy,
};
