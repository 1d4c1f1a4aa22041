/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readiness protocol of ready.c over an edge-triggered epoll set: what the epoll backend is,
 * and what the io_uring backend has beside its ring, for sockets.
 */
#ifndef BLZ_IO_EPOLL_SET_H
#define BLZ_IO_EPOLL_SET_H

#include "io/ready.h"

struct epoll_event;

typedef struct epoll_set {
    ready_driver ready; /* first: a driver is one of these */
    const blz_allocator *allocator;
    int epfd;
    int wake_fd;
    int end_wait_fd;  /* an eventfd that ends wait_ready, or -1: options.on_ready is not set */
    bool embedded;    /* the program waits for epfd */
    uint8_t wait_way; /* how this kernel lets us wait; see blz__epoll_set_wait */
    uint32_t max_events;
    struct epoll_event *events;
} epoll_set;

static inline epoll_set *epoll_set_of(blz__driver *driver)
{
    return (epoll_set *)driver;
}

/* Also makes the buffers on loan. 0 or a negative errno. [any thread] */
int blz__epoll_set_open(epoll_set *set, const blz__driver_ops *ops, const blz_options *options,
                        const blz_allocator *allocator);
void blz__epoll_set_close(epoll_set *set);

/* Whether the set reports the wake-up that is sent: 0, -ETIME: not within 200 ms, or another
 * negative errno. The second function leaves the sending to the caller. [any thread, before it is
 * used] */
int blz__epoll_set_probe(epoll_set *set);
int blz__epoll_set_try_wake(epoll_set *set);

/*
 * Waits up to the deadline for at most `max` events, and leaves them in set->events. The number of
 * events, 0 also after an interruption; or a negative errno if the kernel refuses every way to
 * wait. [its worker, or the thread that probes it]
 */
int blz__epoll_set_wait(epoll_set *set, int max, int64_t deadline_ns);

/* Waits up to the deadline for edges, or the wake-up, and reports them. [its worker] */
void blz__epoll_set_look(epoll_set *set, int64_t deadline_ns);

/* Whether a look that does not wait can find anything. [its worker] */
static inline bool epoll_set_is_worth_a_look(const epoll_set *set)
{
    /* Embedded, a wake-up has to be fetched, or epfd stays readable. */
    return blz__ready_has_pending(&set->ready.base) || set->embedded;
}

/* These are the driver's wake, fd, wait_ready and end_wait. */
void blz__epoll_set_wake(blz__driver *driver);
int blz__epoll_set_fd(blz__driver *driver);
bool blz__epoll_set_wait_ready(blz__driver *driver, int64_t deadline_ns);
void blz__epoll_set_end_wait(blz__driver *driver);

#endif
