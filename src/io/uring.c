/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The io_uring backend: a ring a worker, which only that worker's thread ever enters. Entries are
 * prepared when operations are submitted, and go to the kernel in one batch when the worker next
 * looks at its driver, or sleeps in it.
 *
 * `user_data` is the operation, which owns its memory until the completion without F_MORE has been
 * seen. The lowest bit marks the completion of a cancel request, which is counted as an event of
 * its own: as long as it is outstanding the operation is not ready, so it cannot be reused under
 * it.
 *
 * Kinds that the ring does not know, or knows in a way that we cannot use (a vector written to a
 * socket, or anything written to a pipe, would raise SIGPIPE), wait for readiness in the ring and
 * are then attempted, like in the backends that know nothing else.
 *
 * Modes: from Linux 6.1 on SINGLE_ISSUER and DEFER_TASKRUN, so that the kernel never interrupts the
 * worker and completes things when it enters; before that COOP_TASKRUN. With TASKRUN_FLAG a look at
 * one word says whether entering would bring anything.
 */
#include "base/alloc.h"
#include "io/uring.h"
#include "io/wake.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SQ_ENTRIES = 256, CQ_ENTRIES = 4096 };

enum { TAG_WAKE = 0, TAG_CANCEL = 1 }; /* of user_data; operations are aligned */

/* ---- life ---- */

static const unsigned modes[] = {
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
    IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
};

static int init_ring(struct uring_driver *d, unsigned mode, uint32_t cq_entries)
{
    struct io_uring_params params = {
        .flags = mode | IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP |
                 IORING_SETUP_SUBMIT_ALL,
        .cq_entries = cq_entries,
    };
    unsigned needed = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL;
    int rc = io_uring_queue_init_params(cq_entries < SQ_ENTRIES ? cq_entries : SQ_ENTRIES, &d->ring,
                                        &params);

    if (rc < 0)
        return rc;
    if ((params.features & needed) != needed) {
        io_uring_queue_exit(&d->ring);
        return -ENOSYS;
    }
    io_uring_ring_dontfork(&d->ring);
    return 0;
}

static int init_any_ring(struct uring_driver *d, const blz_options *options)
{
    uint32_t cq = options->max_io_completions ? options->max_io_completions : CQ_ENTRIES;
    int rc = -EINVAL;

    for (size_t i = options->uring_coop; i < sizeof modes / sizeof *modes && rc == -EINVAL; i++)
        rc = init_ring(d, modes[i], cq);
    return rc;
}

/*
 * What an embedding loop waits for. The ring's own descriptor is readable when there are
 * completions, but says nothing of a wake-up before its thread has taken it over.
 */
static int open_embed_fd(const struct uring_driver *d)
{
    struct epoll_event readable = {.events = EPOLLIN};
    int fd = epoll_create1(EPOLL_CLOEXEC), rc;

    if (fd < 0)
        return -errno;
    if (epoll_ctl(fd, EPOLL_CTL_ADD, d->ring.ring_fd, &readable) == 0 &&
        epoll_ctl(fd, EPOLL_CTL_ADD, d->wake_fd, &readable) == 0)
        return fd;
    rc = -errno;
    close(fd);
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
    d->base = (blz__driver){.ops = &blz__uring_driver, .leases = blz__leases_new(allocator)};
    d->allocator = allocator;
    d->embed_fd = -ENOTSUP;
    rc = d->base.leases ? init_any_ring(d, options) : -ENOMEM;
    if (rc < 0)
        goto out_driver;
    rc = d->wake_fd = blz__wake_open();
    if (rc < 0)
        goto out_ring;
    if (options->embedded) {
        rc = d->embed_fd = open_embed_fd(d);
        if (rc < 0)
            goto out_wake;
    }
    *driver = &d->base;
    return 0;
out_wake:
    close(d->wake_fd);
out_ring:
    io_uring_queue_exit(&d->ring);
out_driver:
    blz__leases_close(d->base.leases);
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
    io_uring_queue_exit(&d->ring);
}

static void uring_close(blz__driver *driver)
{
    struct uring_driver *d = uring_of(driver);

    exit_ring(d);
    blz__uring_accept_destroy(d);
    close(d->wake_fd);
    if (d->embed_fd >= 0)
        close(d->embed_fd);
    blz__uring_leases_destroy(d);
    blz__leases_close(d->base.leases);
    blz__free(d->allocator, d, sizeof *d, _Alignof(struct uring_driver));
}

/* ---- entries ---- */

struct io_uring_sqe *blz__uring_sqe(struct uring_driver *d)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&d->ring);

    if (blz_unlikely(!sqe)) {
        stat_entry(&d->base);
        io_uring_submit(&d->ring);
        sqe = io_uring_get_sqe(&d->ring);
    }
    return sqe;
}

/* liburing 2.3 declares a function for this and does not export it. */
static int enable_ring(const struct uring_driver *d)
{
    long rc =
        syscall(__NR_io_uring_register, d->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);

    return rc < 0 ? -errno : 0;
}

/* A filter may let a ring be made, and refuse the calls that use it. */
static int uring_probe(blz__driver *driver)
{
    struct uring_driver *d = uring_of(driver);
    int rc = enable_ring(d);

    if (rc < 0)
        return rc;
    io_uring_prep_nop(io_uring_get_sqe(&d->ring));
    do
        rc = io_uring_submit_and_wait(&d->ring, 1);
    while (rc == -EINTR);
    return rc < 0 ? rc : 0;
}

/*
 * By the owner's thread, before anything else. What fails here is only an optimisation; the ring
 * itself cannot fail to be enabled by its owner: that was tried when the backend was chosen.
 */
static BLZ_COLD void enable(struct uring_driver *d)
{
    struct io_uring_sqe *sqe;

    d->enabled = true;
    d->thread = blz__thread_id();
    if (enable_ring(d) < 0)
        blz__panic("an io_uring could not be enabled by the worker it belongs to");
    io_uring_register_ring_fd(&d->ring);
    blz__uring_leases_init(d);
    sqe = io_uring_get_sqe(&d->ring);
    io_uring_prep_poll_multishot(sqe, d->wake_fd, POLLIN);
    io_uring_sqe_set_data64(sqe, TAG_WAKE);
}

static bool is_drained(const struct io *io)
{
    return !(blz__load(&io->fd->ready[FD_IN], RELAXED) & FD_READY);
}

static void prep_read(struct io_uring_sqe *sqe, const struct io *io)
{
    if (!(io->fd->flags & FD_SOCKET)) {
        io_uring_prep_read(sqe, io->fd->fd, io->buf, (unsigned)io_clamp(io->len), (uint64_t)-1);
        return;
    }
    io_uring_prep_recv(sqe, io->fd->fd, io->buf, (unsigned)io_clamp(io->len), 0);
    if (is_drained(io))
        sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
}

static void prep_readv(struct io_uring_sqe *sqe, struct io *io)
{
    if (io->fd->flags & FD_SOCKET)
        blz__uring_prep_poll(sqe, io);
    else
        io_uring_prep_readv(sqe, io->fd->fd, io->buf, (unsigned)io->len, (uint64_t)-1);
}

static void prep_write(struct io_uring_sqe *sqe, struct io *io)
{
    if (!(io->fd->flags & FD_SOCKET)) {
        blz__uring_prep_poll(sqe, io);
        return;
    }
    io_uring_prep_send(sqe, io->fd->fd, io->buf, (unsigned)io_clamp(io->len),
                       MSG_NOSIGNAL | io->msg_flags);
    sqe->ioprio |= IORING_RECVSEND_POLL_FIRST; /* it has just been tried */
}

static void prep(struct uring_driver *d, struct io_uring_sqe *sqe, struct io *io)
{
    int fd = io->fd->fd;

    switch ((enum io_kind)io->op.kind) {
    case IO_READ:
        prep_read(sqe, io);
        break;
    case IO_WRITE:
        prep_write(sqe, io);
        break;
    case IO_LEASE:
        if (blz__uring_prep_lease(d, sqe, io)) {
            if (is_drained(io))
                sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
        } else {
            blz__uring_prep_poll(sqe, io);
        }
        break;
    case IO_ACCEPT:
        io_uring_prep_accept(sqe, fd, NULL, NULL, SOCK_CLOEXEC);
        break;
    case IO_CONNECT:
        io_uring_prep_connect(sqe, fd, io->buf, (socklen_t)io->len);
        break;
    case IO_RECVMSG:
        io_uring_prep_recvmsg(sqe, fd, io->buf, MSG_CMSG_CLOEXEC | io->msg_flags);
        break;
    case IO_SENDMSG:
        io_uring_prep_sendmsg(sqe, fd, io->buf, MSG_NOSIGNAL | io->msg_flags);
        break;
    case IO_READV:
        prep_readv(sqe, io);
        break;
    case IO_PEEK:
    case IO_WRITEV:
    case IO_SENDFILE:
    case IO_POLL:
    case IO_CALL:
    case IO_KINDS:
        blz__uring_prep_poll(sqe, io);
        break;
    }
}

/* ---- submitting and cancelling ---- */

static void put_off(struct uring_driver *d, struct io *io)
{
    io->driver = 0;
    if (d->put_off_last)
        d->put_off_last->driver = (uint64_t)(uintptr_t)io;
    else
        d->put_off = io;
    d->put_off_last = io;
}

static bool submit_now(struct uring_driver *d, struct io *io, bool only_poll)
{
    struct io_uring_sqe *sqe = blz__uring_sqe(d);

    if (blz_unlikely(!sqe))
        return false;
    if (only_poll)
        blz__uring_prep_poll(sqe, io);
    else
        prep(d, sqe, io);
    io_uring_sqe_set_data(sqe, io);
    d->in_flight++;
    return true;
}

static void uring_submit(blz__driver *driver, blz__op *op)
{
    struct uring_driver *d = uring_of(driver);
    struct io *io = (struct io *)op;

    if (blz_unlikely(!d->enabled))
        enable(d);
    io->progress &= (uint8_t) ~(IO_POLLED | IO_EDGE | IO_HELD);
    if (io->op.kind == IO_ACCEPT && blz__uring_accept(d, io))
        return;
    if (!submit_now(d, io, false))
        put_off(d, io);
}

void blz__uring_submit_poll(struct uring_driver *d, struct io *io)
{
    if (!submit_now(d, io, true))
        put_off(d, io);
}

bool blz__uring_take_back(struct uring_driver *d, struct io *io)
{
    for (struct io *i = d->put_off, *last = NULL; i; last = i, i = next_put_off(i)) {
        if (i != io)
            continue;
        if (last)
            last->driver = i->driver;
        else
            d->put_off = next_put_off(i);
        if (d->put_off_last == i)
            d->put_off_last = last;
        return true;
    }
    return false;
}

static void prep_cancel(struct uring_driver *d, struct io_uring_sqe *sqe, struct io *io)
{
    blz__op_expect(&io->op);
    io_uring_prep_cancel(sqe, io, 0);
    io_uring_sqe_set_data64(sqe, (uint64_t)(uintptr_t)io | TAG_CANCEL);
    d->in_flight++;
}

void blz__uring_ask_to_end(struct uring_driver *d, struct io *io)
{
    struct io_uring_sqe *sqe;

    while (!(sqe = blz__uring_sqe(d)))
        blz__uring_reap(d); /* makes room; it may itself complete, and is still counted */
    prep_cancel(d, sqe, io);
}

void blz__uring_hold(struct uring_driver *d, struct io *io)
{
    struct io_uring_sqe *sqe = blz__uring_sqe(d);

    io->progress |= IO_HELD;
    if (sqe)
        prep_cancel(d, sqe, io);
    else
        put_off(d, io);
}

static void uring_cancel(blz__driver *driver, blz__op *op)
{
    struct uring_driver *d = uring_of(driver);
    struct io *io = (struct io *)op;

    if (driver->later && blz__later_cancel(driver, op))
        return;
    if (io->progress & IO_HELD)
        return; /* has its value, and is ending */
    if (io->op.kind == IO_ACCEPTOR) {
        blz__uring_acceptor_stop(d, io);
        return;
    }
    if (io->op.kind == IO_ACCEPT && (io->progress & IO_QUEUED)) {
        blz__uring_accept_cancel(d, io);
        return;
    }
    if (blz_unlikely(d->put_off != NULL) && blz__uring_take_back(d, io)) {
        blz__io_complete(driver, io, -ECANCELED);
        return;
    }
    blz__uring_ask_to_end(d, io);
}

static void uring_let_go(blz__driver *driver)
{
    struct uring_driver *d = uring_of(driver);

    if (!d->enabled || io_uring_sq_ready(&d->ring) == 0)
        return;
    stat_entry(driver);
    io_uring_submit_and_get_events(&d->ring);
}

/* ---- completions ---- */

/*
 * The ring does not wait on our behalf: the descriptor is in non-blocking mode, or there was no
 * buffer. Then we wait for readiness first, and attempt it; unless it is to end.
 */
static bool has_not_happened(const struct io *io, int res)
{
    return res == -EAGAIN || (res == -ENOBUFS && io->op.kind == IO_LEASE);
}

static void note_more(const struct io *io, uint32_t flags, int res)
{
    uint32_t ready = flags & IORING_CQE_F_SOCK_NONEMPTY || res == 0 ? FD_READY : 0;

    blz__store(&io->fd->ready[FD_IN], ready, RELAXED);
}

static void complete(struct uring_driver *d, struct io *io, int res, uint32_t flags)
{
    if (io->progress & IO_POLLED) {
        blz__uring_polled(d, io, res);
        return;
    }
    if (io->op.kind == IO_LEASE)
        blz__uring_take_lease(d, io, res, flags);
    if (has_not_happened(io, res) && !op_is_asked(&io->op)) {
        blz__uring_submit_poll(d, io);
        return;
    }
    if (io->op.kind == IO_READ || io->op.kind == IO_LEASE)
        note_more(io, flags, res);
    uring_note_room(io, res);
    if (has_not_happened(io, res) || res == -EINTR)
        res = -ECANCELED; /* that is what became of a wait that was cancelled */
    blz__io_complete(&d->base, io, res);
}

static void on_cqe(struct uring_driver *d, uint64_t data, int res, uint32_t flags)
{
    if (data == TAG_WAKE) {
        if (!(flags & IORING_CQE_F_MORE))
            d->wake_lost = true;
        return;
    }
    if (!(data & TAG_CANCEL) && ((struct io *)(uintptr_t)data)->op.kind == IO_ACCEPTOR) {
        blz__uring_on_accept(d, (struct io *)(uintptr_t)data, res, flags);
        return;
    }
    if (flags & IORING_CQE_F_MORE) {
        blz__uring_note_change(d, (struct io *)(uintptr_t)data, res);
        return;
    }
    d->in_flight--;
    if (data & TAG_CANCEL)
        blz__op_event((blz__op *)(uintptr_t)(data & ~(uint64_t)TAG_CANCEL));
    else
        complete(d, (struct io *)(uintptr_t)data, res, flags);
}

/* The oldest completion, given back at once: what follows from it may have to reap again. */
static bool next_cqe(struct uring_driver *d, struct io_uring_cqe *out)
{
    struct io_uring_cqe *cqe;
    unsigned head;

    io_uring_for_each_cqe(&d->ring, head, cqe)
    {
        *out = (struct io_uring_cqe){.user_data = cqe->user_data,
                                     .res = cqe->res,
                                     .flags = cqe->flags};
        io_uring_cq_advance(&d->ring, 1);
        return true;
    }
    return false;
}

void blz__uring_reap(struct uring_driver *d)
{
    struct io_uring_cqe cqe;

    while (next_cqe(d, &cqe))
        on_cqe(d, cqe.user_data, cqe.res, cqe.flags);
}

/* The kernel has dropped it, for want of room for its completion. */
static BLZ_COLD void rearm_wake(struct uring_driver *d)
{
    struct io_uring_sqe *sqe = blz__uring_sqe(d);

    if (!sqe)
        return; /* the next look tries again */
    d->wake_lost = false;
    io_uring_prep_poll_multishot(sqe, d->wake_fd, POLLIN);
    io_uring_sqe_set_data64(sqe, TAG_WAKE);
}

static bool submit_again(struct uring_driver *d, struct io *io)
{
    struct io_uring_sqe *sqe;

    if (!(io->progress & IO_HELD))
        return submit_now(d, io, io->progress & IO_POLLED);
    sqe = blz__uring_sqe(d);
    if (sqe)
        prep_cancel(d, sqe, io);
    return sqe;
}

static void submit_put_off(struct uring_driver *d)
{
    while (d->put_off) {
        struct io *io = d->put_off, *next = next_put_off(io);
        if (!submit_again(d, io))
            return;
        d->put_off = next;
        if (!next)
            d->put_off_last = NULL;
    }
}

static bool kernel_has_news(const struct uring_driver *d)
{
    unsigned flags = blz__load(d->ring.sq.kflags, RELAXED);

    return flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

/* Interruptions, time-outs and full queues end the wait; the worker comes back. */
static void enter(struct uring_driver *d, int64_t deadline_ns)
{
    struct io_uring_cqe *cqe;
    struct timespec left = blz__time_left(deadline_ns);
    struct __kernel_timespec ts = {.tv_sec = left.tv_sec, .tv_nsec = left.tv_nsec};

    stat_entry(&d->base);
    if (deadline_ns == 0)
        io_uring_submit_and_get_events(&d->ring);
    else
        io_uring_submit_and_wait_timeout(&d->ring, &cqe, 1, deadline_ns == INT64_MAX ? NULL : &ts,
                                         NULL);
}

static void uring_poll(blz__driver *driver, int64_t deadline_ns)
{
    struct uring_driver *d = uring_of(driver);

    if (blz_unlikely(!d->enabled))
        enable(d);
    if (driver->later && blz__later_run(driver))
        deadline_ns = 0;
    if (blz_unlikely(d->wake_lost)) {
        rearm_wake(d);
        deadline_ns = 0; /* somebody may have called while nothing was armed */
    }
    if (blz_unlikely(d->put_off != NULL))
        submit_put_off(d);
    if (blz_unlikely(d->starved))
        blz__uring_accept_retry(d);
    if (blz_unlikely(leases_were_returned(driver->leases)))
        blz__leases_fetch(driver->leases);
    /* Not before a sleep: that would be a wake-up for it. */
    if (blz_unlikely(d->embed_fd >= 0) && deadline_ns == 0)
        blz__wake_drain(d->wake_fd);
    if (io_uring_cq_ready(&d->ring) > 0)
        deadline_ns = 0;
    if (deadline_ns != 0 || io_uring_sq_ready(&d->ring) > 0 || kernel_has_news(d))
        enter(d, deadline_ns);
    blz__uring_reap(d);
}

static void uring_wake(blz__driver *driver)
{
    blz__wake_send(uring_of(driver)->wake_fd);
}

static int uring_fd(blz__driver *driver)
{
    return uring_of(driver)->embed_fd;
}

static bool uring_busy(const blz__driver *driver)
{
    const struct uring_driver *d = (const struct uring_driver *)driver;

    return d->in_flight > 0 || d->put_off || d->starved;
}

const blz__driver_ops blz__uring_driver = {
    .name = "io_uring",
    .open = uring_open,
    .probe = uring_probe,
    .close = uring_close,
    .submit = uring_submit,
    .cancel = uring_cancel,
    .poll = uring_poll,
    .wake = uring_wake,
    .fd = uring_fd,
    .busy = uring_busy,
    .let_go = uring_let_go,
    .attempts =
        1u << IO_WRITE | 1u << IO_WRITEV | 1u << IO_SENDMSG | 1u << IO_SENDFILE | 1u << IO_CALL,
};
