/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The io_uring backend: a ring a worker, which only that worker's thread ever enters, and an epoll
 * set beside it.
 *
 * The ring carries out what the set is no help with: operations of files, which are never ready or
 * not, and connects, of which a Unix socket gives no event while the listener's queue is full.
 *
 * All other descriptors are read and written by system calls when they are ready, which the set
 * says, as in the epoll backend. That is what costs least: a request that waits in the ring has to
 * arm a poll for each message, while a descriptor is registered with the set once; and what a
 * worker's tasks send goes out in one batch either way (send_batch.c). docs/performance.md and
 * docs/design/io.md have the figures.
 *
 * The worker sleeps in the set. The ring signals the wake-up's eventfd, which is in the set, when
 * a completion arrives. One mode makes that reliable on every kernel, COOP_TASKRUN: the kernel
 * puts a completion into the queue, and signals the eventfd, as soon as the worker is in the
 * kernel, asleep or not. With DEFER_TASKRUN the completion waits until the worker enters the ring,
 * and some kernels (Linux 6.12.115) do not signal the eventfd before that: the worker would sleep
 * on. The probe checks that a sleep ends. docs/design/io.md lists what was measured on which
 * kernel.
 *
 * With TASKRUN_FLAG a look at one word says whether entering would bring anything.
 */
#include "io/uring.h"

#include "base/alloc.h"
#include "base/panic.h"
#include "base/sanitize.h"
#include "base/shared.h"
#include "system/thread.h"

#include <blitz/error.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SQ_ENTRIES = 256, CQ_ENTRIES = 4096 };

/* ---- life ---- */

/*
 * Where one ring was unmapped another may be mapped, by another thread: the kernel orders them. Any
 * address that all rings share tells ThreadSanitizer so.
 */
static void unmap_ring(struct io_uring *ring)
{
    blz__tsan_release(blz__shared()); /* pairs with the acquire in init_ring */
    io_uring_queue_exit(ring);
}

static uint32_t cq_entries(const blz_options *options)
{
    return options->max_io_completions ? options->max_io_completions : CQ_ENTRIES;
}

static int init_ring(struct uring_driver *d, const blz_options *options)
{
    uint32_t cq = cq_entries(options);
    struct io_uring_params params = {
        .flags = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_CQSIZE |
                 IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL,
        .cq_entries = cq,
    };
    unsigned needed = IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL;
    int rc = io_uring_queue_init_params(cq < SQ_ENTRIES ? cq : SQ_ENTRIES, &d->ring, &params);

    if (rc < 0)
        return rc;
    blz__tsan_acquire(blz__shared());
    rc = (params.features & needed) == needed ? io_uring_register_eventfd(&d->ring, d->set.wake_fd)
                                              : -ENOSYS;
    if (rc < 0) {
        unmap_ring(&d->ring);
        return rc;
    }
    io_uring_ring_dontfork(&d->ring);
    return 0;
}

static uint64_t in_pages(uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

/* What the rings of a runtime lock. */
static uint64_t locked_by_rings(const blz_options *options)
{
    uint64_t cq = cq_entries(options);
    uint64_t heads = 512 + SQ_ENTRIES * sizeof(uint32_t);

    return options->workers * (in_pages(heads + cq * sizeof(struct io_uring_cqe)) +
                               in_pages(SQ_ENTRIES * sizeof(struct io_uring_sqe)));
}

/* Whether the limit on locked memory has room for all of them, if nobody else has locked any. */
static bool limit_has_room(const blz_options *options)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur >= locked_by_rings(options);
}

/*
 * Rings count as locked memory, of which a user who is not root may have little; and the kernel
 * gives back that of a ring some time after it was closed. So whoever closes runtimes and opens
 * others, or starts a program again and again, is out of it for a moment.
 */
static int init_ring_patiently(struct uring_driver *d, const blz_options *options)
{
    int rc = init_ring(d, options);

    for (int ms = 1; rc == -ENOMEM && ms <= 512 && limit_has_room(options); ms *= 2) {
        poll(NULL, 0, ms);
        rc = init_ring(d, options);
    }
    return rc;
}

static int uring_open(blz__driver **driver, const blz_options *options,
                      const blz_allocator *allocator)
{
    struct uring_driver *d = blz__alloc(allocator, sizeof *d, _Alignof(struct uring_driver));
    int rc;

    if (!d)
        return -ENOMEM;
    memset(d, 0, sizeof *d);
    rc = blz__epoll_set_open(&d->set, &blz__uring_driver, options, allocator);
    if (rc < 0)
        goto out_driver;
    rc = init_ring_patiently(d, options);
    if (rc < 0)
        goto out_set;
    *driver = uring_base(d);
    return 0;
out_set:
    blz__epoll_set_close(&d->set);
out_driver:
    blz__free(allocator, d, sizeof *d, _Alignof(struct uring_driver));
    return rc;
}

/*
 * The ring is in a table of its own thread, from which it goes with that thread. Another one that
 * took it out would take a ring of its own, the one that has the same number there.
 */
static void exit_ring(struct uring_driver *d)
{
    if (d->thread != blz__thread_id())
        d->ring.int_flags = 0;
    unmap_ring(&d->ring);
}

static void uring_close(blz__driver *driver)
{
    struct uring_driver *d = uring_of(driver);

    exit_ring(d);
    blz__epoll_set_close(&d->set);
    blz__free(d->set.allocator, d, sizeof *d, _Alignof(struct uring_driver));
}

/* ---- probing ---- */

/* Whether the same entry may succeed later: the kernel lacks memory, or room for completions. */
static bool is_transient(int rc)
{
    return rc == -EINTR || rc == -EAGAIN || rc == -EBUSY || rc == -ENOMEM;
}

enum { PROBE_TRIES = 1000 }; /* of an entry that may succeed later */

/* Enters the ring once: a filter may let a ring be made, and refuse the calls that use it. */
static int try_to_enter(struct uring_driver *d)
{
    int rc, tries = 0;

    io_uring_prep_nop(io_uring_get_sqe(&d->ring));
    do
        rc = io_uring_submit_and_wait(&d->ring, 1);
    while (is_transient(rc) && ++tries < PROBE_TRIES);
    return rc < 0 ? rc : 0;
}

/*
 * Sleeps as a worker does, while a completion of the ring is on its way. Only the eventfd counts: a
 * sleep that is interrupted goes on, since completions that come from the kernel's own threads
 * interrupt nobody.
 */
static int try_to_sleep(struct uring_driver *d)
{
    struct __kernel_timespec soon = {.tv_nsec = BLZ_MSEC / 10};
    int rc, tries = 0;

    while (blz__epoll_set_wait(&d->set, 1, 0) > 0)
        ;                                                       /* wake-ups from before */
    io_uring_cq_advance(&d->ring, io_uring_cq_ready(&d->ring)); /* there may be room for one */
    io_uring_prep_timeout(io_uring_get_sqe(&d->ring), &soon, 0, 0);
    do
        rc = io_uring_submit(&d->ring);
    while (is_transient(rc) && ++tries < PROBE_TRIES);
    return rc < 0 ? rc : blz__epoll_set_try_wake(&d->set);
}

/* Several times: there are kernels on which the first sleep ends, and those after it do not. */
static int uring_probe(blz__driver *driver)
{
    enum { SLEEPS = 3 };
    struct uring_driver *d = uring_of(driver);
    int rc = blz__epoll_set_probe(&d->set);

    if (rc == 0)
        rc = try_to_enter(d);
    for (int i = 0; i < SLEEPS && rc == 0; i++)
        rc = try_to_sleep(d);
    return rc;
}

/* The registration of the ring's descriptor belongs to the thread, and is only an optimisation. */
BLZ_COLD void blz__uring_bind(struct uring_driver *d)
{
    d->thread = blz__thread_id();
    io_uring_register_ring_fd(&d->ring);
}

/* ---- looking ---- */

static bool kernel_has_news(const struct uring_driver *d)
{
    unsigned flags = blz__load(d->ring.sq.kflags, RELAXED);

    return flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

static bool is_worth_entering(const struct uring_driver *d)
{
    return io_uring_sq_ready(&d->ring) > 0 || kernel_has_news(d);
}

/* Submits and reaps. False: the kernel has not taken all that there is to submit. */
static bool enter_ring(struct uring_driver *d)
{
    int rc;

    stat_entry(uring_base(d));
    rc = io_uring_submit_and_get_events(&d->ring);
    if (blz_likely(rc >= 0))
        return io_uring_sq_ready(&d->ring) == 0; /* it stops where it lacks memory */
    if (rc == -EBADR)
        blz__panic("the kernel had no memory for a completion, and lost it: an operation would "
                   "wait for ever");
    if (!is_transient(rc))
        blz__panic("the kernel refuses io_uring_enter (%s); a system call filter that is installed "
                   "after the runtime has started must allow it, or the runtime must not use "
                   "io_uring (BLZ_BACKEND=epoll)",
                   blz_strerror(rc));
    return false;
}

/* Never waits. True: there was something, or the kernel has not taken what there is to submit. */
static bool look_at_ring(struct uring_driver *d)
{
    bool refused = false;

    if (blz_unlikely(d->sq_overflow_list != NULL))
        blz__uring_submit_overflow(d);
    if (is_worth_entering(d))
        refused = !enter_ring(d);
    return blz__uring_reap(d) || refused || d->sq_overflow_list;
}

static void uring_poll(blz__driver *driver, int64_t deadline_ns)
{
    struct uring_driver *d = uring_of(driver);

    if (driver->send_batch && blz__send_batch_run(driver))
        deadline_ns = 0;
    if (look_at_ring(d))
        deadline_ns = 0;
    if (deadline_ns == 0 && !epoll_set_is_worth_a_look(&d->set))
        return;
    blz__epoll_set_look(&d->set, deadline_ns);
    if (deadline_ns != 0)
        look_at_ring(d);
}

static bool uring_has_pending(const blz__driver *driver)
{
    const struct uring_driver *d = (const struct uring_driver *)driver;

    return d->in_flight > 0 || d->sq_overflow_list || blz__ready_has_pending(driver);
}

const blz__driver_ops blz__uring_driver = {
    .name = "io_uring",
    .open = uring_open,
    .probe = uring_probe,
    .close = uring_close,
    .submit = blz__uring_submit,
    .cancel = blz__uring_cancel,
    .poll = uring_poll,
    .wake = blz__epoll_set_wake,
    .fd = blz__epoll_set_fd,
    .wait_ready = blz__epoll_set_wait_ready,
    .end_wait = blz__epoll_set_end_wait,
    .has_pending = uring_has_pending,
    .unregister_fd = blz__ready_unregister_fd,
    .files = true,
    .try_first = ((1u << IO_KINDS) - 1) & ~(1u << IO_CONNECT),
};
