/* SPDX-License-Identifier: Apache-2.0 */
/* The io_uring backend's own struct, and its buffers on loan (uring_lease.c). */
#ifndef BLZ_IO_URING_H
#define BLZ_IO_URING_H

#include "io/io.h"

#include <liburing.h>

/*
 * Buffers that the kernel hands out. The ring of them grows when it has run dry: a few are enough
 * for thousands of connections that are mostly silent, and each one that is in the ring is written
 * to in turn, so that a large ring would cost memory and cache.
 */
struct uring_leases {
    struct io_uring_buf_ring *ring; /* NULL: the kernel does not do it */
    struct lease **leases;          /* by number */
    uint32_t count;                 /* of them */
};

struct uring_driver {
    blz__driver base;
    struct io_uring ring;
    struct uring_leases lent;
    const blz_allocator *allocator;
    int wake_fd;
    int embed_fd;       /* an epoll set of the ring and the wake-up; or -ENOTSUP */
    bool enabled;       /* its thread has taken it over */
    uint64_t thread;    /* that one */
    bool wake_lost;     /* the wake-up has to be armed again */
    uint64_t in_flight; /* completions to come, cancel requests included */
    struct io *put_off; /* for lack of room in the submission queue */
    struct io *put_off_last;
    struct acceptor *acceptors;
    bool starved; /* an acceptor found no room in the submission queue */
};

static inline struct uring_driver *uring_of(blz__driver *driver)
{
    return (struct uring_driver *)driver;
}

static inline struct io *next_put_off(const struct io *io)
{
    return (struct io *)(uintptr_t)io->driver;
}

void blz__uring_reap(struct uring_driver *d);

/* NULL: the queue is full, and the kernel takes no more until completions have been reaped. */
struct io_uring_sqe *blz__uring_sqe(struct uring_driver *d);

/* Asks the kernel to end a request; the answer is an event of the operation. */
void blz__uring_ask_to_end(struct uring_driver *d, struct io *io);

/* Has a request to poll made; if there is no room, later. */
void blz__uring_submit_poll(struct uring_driver *d, struct io *io);

/* It has its value, and is complete when its request has ended, which is asked for. */
void blz__uring_hold(struct uring_driver *d, struct io *io);

/* Takes it out of what has been put off. False: it was not in there. */
bool blz__uring_take_back(struct uring_driver *d, struct io *io);

/* Something could be written: the next one is tried at once again. */
static inline void uring_note_room(const struct io *io, int64_t value)
{
    if (value > 0 && io_direction(io) == FD_OUT && io->op.kind != IO_POLL)
        blz__store(&io->fd->ready[FD_OUT], FD_READY, RELAXED);
}

/* ---- uring_poll.c [owner] ---- */

void blz__uring_prep_poll(struct io_uring_sqe *sqe, struct io *io);

/* The last completion of a request to poll, and one that is not the last. */
void blz__uring_polled(struct uring_driver *d, struct io *io, int res);
void blz__uring_note_change(struct uring_driver *d, struct io *io, int res);

/* ---- uring_accept.c [owner] ---- */

/* Waits in an acceptor, or is complete. False: it cannot; it needs a request of its own. */
bool blz__uring_accept(struct uring_driver *d, struct io *io);
void blz__uring_accept_cancel(struct uring_driver *d, struct io *io);
void blz__uring_acceptor_stop(struct uring_driver *d, struct io *io);
void blz__uring_on_accept(struct uring_driver *d, struct io *io, int res, uint32_t flags);
void blz__uring_accept_retry(struct uring_driver *d);
void blz__uring_accept_destroy(struct uring_driver *d);

/* ---- uring_lease.c ---- */

/* [owner] */
void blz__uring_leases_init(struct uring_driver *d);
void blz__uring_leases_destroy(struct uring_driver *d);

/* False: there are no such buffers; wait for readiness and attempt it. */
bool blz__uring_prep_lease(struct uring_driver *d, struct io_uring_sqe *sqe, const struct io *io);

/* Hands out the buffer of a completion, if it has one; grows the ring if it ran dry. */
void blz__uring_take_lease(struct uring_driver *d, const struct io *io, int res, uint32_t flags);

#endif
