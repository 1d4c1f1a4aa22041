/* SPDX-License-Identifier: Apache-2.0 */
/* The epoll backend: an epoll set (epoll_set.c), and nothing else. */
#include "base/alloc.h"
#include "io/epoll_set.h"

#include <blitz/error.h>

static int epoll_open(blz__driver **driver, const blz_options *options,
                      const blz_allocator *allocator)
{
    epoll_set *set = blz__alloc(allocator, sizeof *set, _Alignof(epoll_set));
    int rc;

    if (!set)
        return -ENOMEM;
    rc = blz__epoll_set_open(set, &blz__epoll_driver, options, allocator);
    if (rc < 0) {
        blz__free(allocator, set, sizeof *set, _Alignof(epoll_set));
        return rc;
    }
    *driver = &set->ready.base;
    return 0;
}

static int epoll_probe(blz__driver *driver)
{
    return blz__epoll_set_probe(epoll_set_of(driver));
}

static void epoll_close(blz__driver *driver)
{
    epoll_set *set = epoll_set_of(driver);

    blz__epoll_set_close(set);
    blz__free(set->allocator, set, sizeof *set, _Alignof(epoll_set));
}

static void epoll_poll(blz__driver *driver, int64_t deadline_ns)
{
    epoll_set *set = epoll_set_of(driver);

    if (driver->send_batch && blz__send_batch_run(driver))
        deadline_ns = 0;
    if (deadline_ns != 0 || epoll_set_is_worth_a_look(set))
        blz__epoll_set_look(set, deadline_ns);
}

const blz__driver_ops blz__epoll_driver = {
    .name = "epoll",
    .open = epoll_open,
    .probe = epoll_probe,
    .close = epoll_close,
    .submit = blz__ready_submit,
    .cancel = blz__ready_cancel,
    .poll = epoll_poll,
    .wake = blz__epoll_set_wake,
    .fd = blz__epoll_set_fd,
    .wait_ready = blz__epoll_set_wait_ready,
    .end_wait = blz__epoll_set_end_wait,
    .has_pending = blz__ready_has_pending,
    .unregister_fd = blz__ready_unregister_fd,
    .try_first = (1u << IO_KINDS) - 1,
    .nonblocking = true,
};
