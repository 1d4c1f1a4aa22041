/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepting with one request for many connections. Each connection costs a completion, and no trip
 * into the kernel of its own.
 *
 * The request is not the program's operation, which is over with its first connection: it belongs
 * to an acceptor, of which there is one for each listener that this ring accepts on. Operations
 * of programs wait in it, and connections that nobody waits for are kept in it; when there are
 * many of these, the request is withdrawn until some have been taken.
 *
 *   acceptor   event                        becomes
 *   -------------------------------------------------------------------------------------------
 *   quiet      an operation has to wait     armed
 *   armed      a connection                 armed; it goes to the oldest operation, or is kept
 *   armed      too many are kept            withdrawing
 *   armed      the last operation that      withdrawing: the operation ends with the request, so
 *              waits is cancelled           that what the kernel has accepted by then is known
 *   withdraw.  the request ends             quiet; if nobody waits, those that are kept go to the
 *                                           listener's entry, for accepts on other workers
 *   armed      the request ends (error)     quiet; the error goes to the oldest operation; armed
 *                                           again if another one waits
 *   any        the listener is closed       stopping: what waits is cancelled; freed when the
 *                                           request has ended
 *
 * To the listener's entry the acceptor is an operation like any other: closing the listener asks it
 * to end, and the descriptor stays open until it has. It is ready when the request has ended and
 * the answers to all cancel requests have come; then its waker, a callback, frees it.
 *
 * Connections that are kept here can only be accepted on this worker. So this is for tasks that
 * stay on it (IO_STAYS); others have a request for each connection.
 */
#include "base/alloc.h"
#include "io/fd.h"
#include "io/uring.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_ROOM = 64, ENOUGH_KEPT = 64 };

struct acceptor {
    struct io io; /* first: what the ring and the listener know */
    struct uring_driver *driver;
    struct acceptor *next;
    blz_wake_callback ended;
    struct io *waiting, *waiting_last; /* linked by io->driver */
    int *kept;                         /* a queue: [taken, count) */
    uint32_t taken, count, room;
    bool armed, withdrawing, stopping;
};

static struct io *next_waiting(const struct io *io)
{
    return (struct io *)(uintptr_t)io->driver;
}

/* ---- connections that nobody waits for ---- */

static bool make_room(struct acceptor *a)
{
    const blz_allocator *allocator = a->driver->set.allocator;
    uint32_t room = a->room ? a->room * 2 : FIRST_ROOM;
    int *kept = blz__alloc(allocator, room * sizeof *kept, _Alignof(int));

    if (!kept)
        return false;
    if (a->kept) {
        memcpy(kept, a->kept, a->count * sizeof *kept);
        blz__free(allocator, a->kept, a->room * sizeof *kept, _Alignof(int));
    }
    a->kept = kept;
    a->room = room;
    return true;
}

static void keep(struct acceptor *a, int fd)
{
    if (a->taken == a->count || a->count == a->room) {
        a->count -= a->taken;
        if (a->count > 0)
            memmove(a->kept, a->kept + a->taken, a->count * sizeof *a->kept);
        a->taken = 0;
    }
    if (a->count == a->room && !make_room(a)) {
        close(fd); /* as if the listener's queue had been full */
        return;
    }
    a->kept[a->count++] = fd;
}

/* ---- the request ---- */

static void arm(struct acceptor *a)
{
    struct io_uring_sqe *sqe = blz__uring_sqe(a->driver);

    if (!sqe) {
        a->driver->starved = true; /* the next look tries again */
        return;
    }
    io_uring_prep_multishot_accept(sqe, a->io.fd->fd, NULL, NULL, SOCK_CLOEXEC);
    io_uring_sqe_set_data(sqe, &a->io);
    a->driver->in_flight++;
    a->armed = true;
}

static void withdraw(struct acceptor *a)
{
    if (!a->armed || a->withdrawing)
        return;
    a->withdrawing = true;
    blz__uring_ask_to_end(a->driver, &a->io);
}

void blz__uring_accept_retry(struct uring_driver *d)
{
    d->starved = false;
    for (struct acceptor *a = d->acceptors; a; a = a->next)
        if (a->waiting && !a->armed && !a->stopping)
            arm(a);
}

/* ---- life ---- */

static void release(struct acceptor *a)
{
    const blz_allocator *allocator = a->driver->set.allocator;
    struct acceptor **link = &a->driver->acceptors;

    while (*link != a)
        link = &(*link)->next;
    *link = a->next;
    while (a->taken < a->count)
        close(a->kept[a->taken++]);
    if (a->kept)
        blz__free(allocator, a->kept, a->room * sizeof *a->kept, _Alignof(int));
    blz__fd_leave(&a->io);
    blz__free(allocator, a, sizeof *a, _Alignof(struct acceptor));
}

/* Its last event has come. */
static void on_ended(void *arg)
{
    release(arg);
}

static struct acceptor *find(struct uring_driver *d, const blz__fd *fd)
{
    for (struct acceptor *a = d->acceptors; a; a = a->next)
        if (a->io.fd == fd && !a->stopping)
            return a;
    return NULL;
}

/* NULL: no memory, or the listener is being closed. */
static struct acceptor *make(struct uring_driver *d, const struct io *io)
{
    static const blz_future_ops ops = {.name = "acceptor"}; /* for traces: nobody awaits it */
    struct acceptor *a = blz__alloc(d->set.allocator, sizeof *a, _Alignof(struct acceptor));

    if (!a)
        return NULL;
    memset(a, 0, sizeof *a);
    a->driver = d;
    a->ended = (blz_wake_callback){on_ended, a};
    a->io.op.future.ops = &ops;
    a->io.op.kind = IO_ACCEPTOR;
    a->io.op.waker = blz_waker_callback(&a->ended);
    a->io.fd = io->fd;
    a->io.generation = io->generation;
    if (blz__fd_enter_for(&a->io, uring_base(d)->worker) < 0) {
        blz__free(d->set.allocator, a, sizeof *a, _Alignof(struct acceptor));
        return NULL;
    }
    a->next = d->acceptors;
    d->acceptors = a;
    return a;
}

/* The kernel ends the request some time after the ring; it must not go on listening until then. */
void blz__uring_accept_destroy(struct uring_driver *d)
{
    while (d->acceptors) {
        shutdown(d->acceptors->io.fd->fd, SHUT_RDWR);
        release(d->acceptors);
    }
}

/* ---- operations ---- */

bool blz__uring_accept(struct uring_driver *d, struct io *io)
{
    struct acceptor *a = io->flags & IO_STAYS ? find(d, io->fd) : NULL;

    if (!a && (!(io->flags & IO_STAYS) || !(a = make(d, io))))
        return false;
    if (a->taken < a->count) {
        blz__io_complete(uring_base(d), io, a->kept[a->taken++]);
        return true;
    }
    io->driver = 0;
    io->progress |= IO_QUEUED;
    if (a->waiting)
        a->waiting_last->driver = (uint64_t)(uintptr_t)io;
    else
        a->waiting = io;
    a->waiting_last = io;
    if (!a->armed)
        arm(a);
    return true;
}

static void unlink_waiting(struct acceptor *a, struct io *io)
{
    struct io *last = NULL;

    for (struct io *i = a->waiting; i != io; i = next_waiting(i))
        last = i;
    if (last)
        last->driver = io->driver;
    else
        a->waiting = next_waiting(io);
    if (a->waiting_last == io)
        a->waiting_last = last;
    io->progress &= (uint8_t)~IO_QUEUED;
}

void blz__uring_accept_cancel(struct uring_driver *d, struct io *io)
{
    struct acceptor *a = find(d, io->fd);

    if (a->armed && a->waiting == io && a->waiting_last == io) {
        withdraw(a);
        return;
    }
    unlink_waiting(a, io);
    blz__io_complete(uring_base(d), io, -ECANCELED);
}

/* Those whose cancellation was put off until the request had ended. */
static void end_cancelled(struct acceptor *a)
{
    for (struct io *io = a->waiting, *next; io; io = next) {
        next = next_waiting(io);
        if (!(blz__load(&io->op.events, RELAXED) & OP_CANCEL))
            continue;
        unlink_waiting(a, io);
        blz__io_complete(uring_base(a->driver), io, -ECANCELED);
    }
}

/* Nobody waits here: others may. */
static void pass_on_kept(struct acceptor *a)
{
    blz__fd_ref listener = {a->io.fd, a->io.generation};

    while (a->taken < a->count)
        blz__fd_keep_plain(&listener, a->kept[a->taken++]);
}

/* The request has ended, and not because the listener was closed. */
static void go_on(struct acceptor *a)
{
    end_cancelled(a);
    if (a->waiting)
        arm(a);
    else
        pass_on_kept(a);
}

void blz__uring_acceptor_stop(struct uring_driver *d, struct io *io)
{
    struct acceptor *a = (struct acceptor *)io;

    while (a->waiting) {
        struct io *waiting = a->waiting;
        unlink_waiting(a, waiting);
        blz__io_complete(uring_base(d), waiting, -ECANCELED);
    }
    a->stopping = true;
    if (a->armed)
        withdraw(a);
    else
        blz__op_event(&io->op); /* there is nothing to wait for; the caller still counts */
}

/* ---- completions ---- */

static void hand_out(struct acceptor *a, int64_t value)
{
    struct io *io = a->waiting;

    unlink_waiting(a, io);
    blz__io_complete(uring_base(a->driver), io, value);
}

static void on_connection(struct acceptor *a, int fd)
{
    if (a->waiting)
        hand_out(a, fd);
    else
        keep(a, fd);
    if (a->count - a->taken >= ENOUGH_KEPT)
        withdraw(a);
}

void blz__uring_on_accept(struct io *io, int res, uint32_t flags)
{
    struct acceptor *a = (struct acceptor *)io;

    if (res >= 0)
        on_connection(a, res);
    else if (res != -ECANCELED && a->waiting)
        hand_out(a, res);
    if (flags & IORING_CQE_F_MORE)
        return;
    a->armed = a->withdrawing = false;
    if (a->stopping)
        blz__op_event(&io->op); /* may be the last: it is gone then */
    else
        go_on(a);
}
