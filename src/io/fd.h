/* SPDX-License-Identifier: Apache-2.0 */
/* How operations enter and leave the entry of their descriptor; for src/io alone. See fd.c. */
#ifndef BLZ_IO_FD_H
#define BLZ_IO_FD_H

#include "base/assert.h"
#include "io/io.h"

/* Whether a handle of this generation has been closed. Under the entry's lock. */
static inline bool fd_is_stale(const blz__fd *entry, uint32_t generation)
{
    BLZ_ASSERT(blz__lock_is_held(&entry->lock));
    return entry->generation != generation ||
           (entry->state & (FD_IN_USE | FD_CLOSING)) != FD_IN_USE;
}

/* Begins the operation. 0, -EBADF (stale), -EBUSY (one is in flight in that direction). [task] */
int blz__fd_enter(struct io *io, blz_cx *cx);

/* Begins the next step of an operation that has entered. 0, or -ECANCELED: closed. [task] */
int blz__fd_reenter(struct io *io, blz_cx *cx);

/* The operation is over. May close the descriptor. [task] */
void blz__fd_leave(struct io *io);

/*
 * The part of an operation that its task does by itself: finds out whether a system call that does
 * not wait settles it. True: op.value is set. False: it must be handed over. [task]
 */
bool blz__io_try_first(struct io *io);

/* ---- backlog.c ---- */

/*
 * What a listener has that is being closed, or NULL: under its lock. And closes that, without a
 * lock. [any thread]
 */
blz__fd *blz__backlog_detach(blz__fd *entry);
void blz__backlog_close(blz__fd *backlog);

/* ---- send_batch.c ---- */

/* Whether an operation that has begun had better go out with others, at the next look. [task] */
static inline bool send_batch_wants(const struct io *io, const blz_cx *cx)
{
    enum { SENDS = 1u << IO_WRITE | 1u << IO_WRITEV | 1u << IO_SENDMSG };

    return (1u << io->op.kind & SENDS) && (io->fd->flags & FD_SOCKET) &&
           (blz__load(&io->fd->ready[FD_OUT], RELAXED) & FD_READY) &&
           blz__worker_has_more(cx->worker);
}

void blz__send_batch_add(struct io *io, blz_cx *cx);

/* Whether what the operation began with has been closed since. [any thread] */
bool blz__fd_is_gone(const struct io *io);

#endif
