/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Front door of src/io: operations on descriptors, for the modules above (net, fs, process) and for
 * the backends beside this file.
 *
 *   blz__fd        an open descriptor: what blz_tcp and its kin point to             fd.c
 *   backlog        a listener's connections that nothing has claimed yet             backlog.c
 *   struct io      an operation on one, a future                            io.c, layout.h
 *   try_now        carrying one out with a system call that does not wait            try_now.c
 *   ready          descriptors whose readiness is told as edges                      ready.c
 *   foreign        descriptors of others: waiting until they are ready               foreign.c
 *   fdset          many of them, for one task                                        fdset.c
 *   lease          buffers on loan                                                   lease.c
 *   driver         waiting for those that cannot be carried out at once              uring.c
 *                                                                          epoll.c, poll.c
 */
#ifndef BLZ_IO_IO_H
#define BLZ_IO_IO_H

#include "base/lock.h"
#include "io/layout.h"

#include <blitz/fd.h>

typedef struct blz__io blz__io; /* all descriptors of a runtime */

/* ---- Descriptors ---- */

enum { FD_IN, FD_OUT }; /* directions */

/* What a descriptor is; does not change while it is open. */
enum {
    FD_SOCKET = 0x1,    /* recv and send work on it */
    FD_SHARED = 0x2,    /* any number of operations may wait in each direction */
    FD_FOREIGN = 0x4,   /* not ours: is never closed by us, but by its owner as soon as we let go */
    FD_NONBLOCK = 0x8,  /* system calls on it do not wait */
    FD_STREAM = 0x10,   /* plain bytes: a read that gives less than it could has taken all;
                          a listener's connections have it too */
    FD_LISTENER = 0x40, /* has a backlog */
    FD_SPREAD = 0x20,   /* a listener that may have more sockets at its address; src/net's */
};

/* What has become of it. */
enum {
    FD_IN_USE = 0x1,
    FD_CLOSING = 0x2,     /* closed by the program: no new operations */
    FD_COPIED = 0x4,      /* epoll: a foreign one, registered by a duplicate; see epoll_set.c */
    FD_REQUESTED = 0x8,   /* one-shot readiness: the next edge has been asked for; see ready.c */
    FD_REMOTE_WAIT = 0x10 /* epoll: counts waits of other workers than the home, to 15 */
};

/*
 * The handles that programs copy around are {entry, generation}: the entry's memory stays while the
 * runtime lives, and its generation goes up when it is closed, so a stale handle is noticed. All
 * is under the lock, which is held for a few instructions, but `flags`, `fd` and `ready`.
 *
 * The descriptor is closed when the program has closed it and the last operation on it has ended,
 * so its number cannot come to mean something else under an operation.
 *
 * `ready` is a guess at whether a call in that direction would find something: cleared when one did
 * not, or took all there was. Only the epoll backend learns when that changes; it counts events in
 * the upper bits, so that nobody clears what he has not seen.
 */
struct blz__fd {
    _Alignas(64) blz__lock lock; /* a cache line of its own; and ready.h has a use for the bits */
    uint32_t generation;
    int fd;
    uint16_t refs;         /* operations that have begun and not ended */
    uint8_t flags;         /* FD_SOCKET and on */
    uint8_t state;         /* FD_IN_USE and on */
    uint32_t ready[2];     /* FD_READY, FD_ENDED, and above: events so far */
    struct io *waiting[2]; /* in flight, oldest first */
    blz__driver *home;     /* epoll: the driver that it is registered with, or NULL */
    blz__io *owner;
    union {
        blz__fd *next_free;       /* not in use */
        blz__fd *backlog;         /* FD_LISTENER: its backlog, or NULL; see backlog.c */
        blz__fd *next_in_backlog; /* a connection in a backlog */
        uintptr_t halves;         /* a connection: which halves are closed; net/halves.c */
        uintptr_t copy;           /* with FD_COPIED: a duplicate of our own */
    };
};

#define FD_READY 1u /* a call may find something */
#define FD_ENDED 2u /* there is more than bytes (the end, an error): a short read says nothing */
#define FD_EVENT 4u /* one event */

/* Adopts an open descriptor. 0, or -ENOMEM (it is still the caller's). -ENXIO: no runtime. */
int blz__fd_adopt(blz__fd_ref *ref, blz_rt *rt, int fd, unsigned flags);

/*
 * Closes: stale from now on, what is in flight is cancelled, and what is in the backlog of a
 * listener is closed. -EBADF: was closed already. [any thread]
 */
int blz__fd_close(blz__fd_ref *ref);

/*
 * Takes the descriptor out: stale from now on, and the caller's. What is in the backlog of a
 * listener is closed. -EBADF; -EBUSY: operations are in flight. [any thread]
 */
int blz__fd_take(blz__fd_ref *ref);

/* Cancels what is in flight in one direction. -EBADF. [any thread] */
int blz__fd_cancel(const blz__fd_ref *ref, int direction);

/*
 * The descriptor, for a system call that does not wait, with a reference so that it stays open; or
 * -EBADF. [any thread]
 */
int blz__fd_acquire(const blz__fd_ref *ref);
void blz__fd_release(const blz__fd_ref *ref);

/* ---- Backlogs (backlog.c) ---- */

/* Appends a connection to the backlog of a listener; closes it if the listener is. [any thread] */
void blz__backlog_push(const blz__fd_ref *listener, blz__fd_ref conn);

/* Takes the oldest connection; {NULL, 0} if there is none. [any thread] */
blz__fd_ref blz__backlog_pop(const blz__fd_ref *listener);

/* Whether it has none; a guess. [any thread] */
static inline bool backlog_is_empty(const blz__fd *listener)
{
    return !blz__load(&listener->backlog, RELAXED);
}

/* ---- Operations ---- */

/* How an operation goes on after its first completion. */
enum {
    IO_ALL = 0x1,     /* until all of `len` is moved: write_all, read_exact */
    IO_STARTED = 0x2, /* its first poll has been */
    IO_CANCELLED = 0x4,
    IO_PAUSED = 0x8, /* between two steps, because the budget is used up */
};

/* How far an attempt or a driver has come with it. */
enum {
    IO_CONNECTING = 0x1,    /* connect has been called, and goes on by itself */
    IO_CANCEL_QUEUED = 0x2, /* io_uring: the request to end it waits for room */
};

_Static_assert(sizeof(blz__fd) == 64, "an entry is a cache line");

/*
 * Whether a length can be one. Above INT64_MAX it is a negative result that was used as a length:
 * whatever reads or writes says -EINVAL then, before anything has happened.
 */
static inline bool length_is_valid(size_t len)
{
    return len <= INT64_MAX;
}

/* Whether pieces have valid lengths, each of them and all together. */
bool blz__pieces_are_valid(const blz_iovec *iov, size_t count);

/* What one call moves at most: the kernel takes no more, and some of its fields have 32 bits. */
static inline size_t io_clamp(size_t len)
{
    const size_t max = (size_t)1 << 30;
    return len < max ? len : max;
}

/* Pieces, as the system takes them: laid out like its struct iovec, and only read. */
static inline void *io_iovec(const blz_iovec *iov)
{
    return (void *)(uintptr_t)iov;
}

static inline int io_direction(const struct io *io)
{
    switch (io->op.kind) {
    case IO_WRITE:
    case IO_WRITEV:
    case IO_SENDMSG:
    case IO_CONNECT:
    case IO_SENDFILE:
        return FD_OUT;
    case IO_POLL:
        return (io->readiness.events & BLZ_FD_WRITE) ? FD_OUT : FD_IN;
    case IO_CALL:
        return (io->call.events & BLZ_FD_WRITE) ? FD_OUT : FD_IN;
    default:
        return FD_IN;
    }
}

/*
 * Aborts if it is in flight: in the hands of the driver (`events`), or in another layout polled and
 * not ready (`line`).
 */
static inline void io_check(const blz_io *public, const blz_future_ops *ops)
{
    const struct io *io = (const struct io *)public;
    uint32_t events = blz__load(&io->op.events, RELAXED) & ~OP_CANCEL;

    if (blz_unlikely(events | (io->op.future.line - 1 < BLZ_LINE_DONE - 1)))
        blz_op_in_flight_(&io->op.future, ops);
}

/*
 * Makes an operation, all but its arguments: `ops` has a name, blz__io_poll and blz__io_cancel, or
 * functions that wrap them. Aborts if it is still in flight. [task]
 */
struct io *blz__io_prepare(blz_io *io, const blz_future_ops *ops, enum io_kind kind,
                           const blz__fd_ref *ref);

/*
 * Makes operations on bytes, on pieces, and one that waits for readiness (BLZ_FD_READ and so on).
 */
blz_future *blz__io_init(blz_io *io, const blz_future_ops *ops, enum io_kind kind,
                         const blz__fd_ref *ref, void *buf, size_t len);
blz_future *blz__io_init_pieces(blz_io *io, const blz_future_ops *ops, enum io_kind kind,
                                const blz__fd_ref *ref, const blz_iovec *iov, size_t count);
blz_future *blz__io_init_wait(blz_io *io, const blz_future_ops *ops, const blz__fd_ref *ref,
                              unsigned events);
blz_poll blz__io_poll(blz_future *self, blz_cx *cx);
void blz__io_cancel(blz_future *self, blz_cx *cx);
void blz__io_describe(const blz_future *self,
                      struct blz_wait_info *info); /* while it is in flight */

/* Whether it may begin: of one that moves bytes, whether its length is valid. */
bool blz__io_length_is_valid(const struct io *io);

/* Whether it was cancelled by its task, so that a late result is nobody's. */
static inline bool io_was_cancelled(const blz_io *io)
{
    return ((const struct io *)io)->flags & IO_CANCELLED;
}

/* ---- For backends ---- */

static inline void stat_entry(blz__driver *driver)
{
    blz__store(&driver->entries, driver->entries + 1, RELAXED);
}

static inline void stat_registration(blz__driver *driver)
{
    blz__store(&driver->registrations, driver->registrations + 1, RELAXED);
}

static inline bool io_is_of_file(const struct io *io)
{
    return io->op.kind >= IO_FILE_READ;
}

/* Carries it out without waiting: the result, or -EAGAIN. [its home worker, or the task] */
int64_t blz__io_try_now(struct io *io);

/* The system's close. */
void blz__io_close(int fd);

/* Completes it: the value is the result of the last attempt. [home worker] */
void blz__io_complete(blz__driver *driver, struct io *io, int64_t value);

/* What is known of the readiness of both directions, before a call is made. */
static inline uint64_t fd_seen(const blz__fd *fd)
{
    /* acquire: pairs with the event's release */
    return blz__load(&fd->ready[FD_IN], ACQUIRE) | (uint64_t)blz__load(&fd->ready[FD_OUT], ACQUIRE)
                                                       << 32;
}

/* Learns from a result whether there is more. `seen` is from before the call. See ready.c. */
void blz__fd_note(struct io *io, uint64_t seen, int64_t value);

/*
 * Operations that wait for the next look at the driver (send_batch.c): carries them out, before the
 * driver looks at anything else; false: there were none. And cancels one; false: it is none of
 * them. [the driver's worker]
 */
bool blz__send_batch_run(blz__driver *driver);
bool blz__send_batch_cancel(blz__driver *driver, blz__op *op);

/* ---- Leases ---- */

enum { LEASE_SIZE = 4096 };

/*
 * The buffers of one driver: those that are not lent are kept here, or with the allocator. The pool
 * outlives its driver while a buffer is on loan. See lease.c for who may touch what.
 */
typedef struct lease_pool {
    struct lease *free; /* the worker's */
    uint32_t nr_free;
    uint32_t nr_lent; /* with the program, as far as the worker knows */
    blz__lock lock;
    uint32_t nr_returned;   /* by other threads, and not yet known to the worker */
    struct lease *returned; /* these, unless they were too many; atomic: is looked at first */
    bool closed;            /* there is no driver any more, and `nr_lent` is under the lock */
    blz_allocator allocator;
} lease_pool;

struct lease {
    lease_pool *pool;
    struct lease *next;
    char data[LEASE_SIZE];
};

lease_pool *blz__leases_new(const blz_allocator *allocator); /* NULL: no memory */
void blz__leases_close(lease_pool *pool);                    /* or NULL */
struct lease *blz__lease_take(lease_pool *pool);             /* NULL: no memory. [its worker] */
void blz__lease_give(struct lease *lease);                   /* [any thread] */

/* Fills in what the program gets. */
static inline void lease_hand_out(blz_buf *buf, struct lease *lease, size_t len)
{
    *buf = (blz_buf){lease->data, len, lease};
}

/* ---- Backends ---- */

extern const blz__driver_ops blz__uring_driver, blz__epoll_driver, blz__poll_driver;

/* Those of this system, the best one first, then NULL: backends_linux.c and its like. */
extern const blz__driver_ops *const blz__backends[];

/* The mode that descriptors of this runtime are to be in: FD_NONBLOCK or 0; or a negative errno. */
int blz__io_mode(blz_rt *rt);

#endif
