/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of others: waiting until they are ready. For libraries that do their own system calls
 * and hand out the descriptor to wait for (libpq, hiredis, libcurl), and for kinds of descriptors
 * that Blitz has no functions for: timerfd, eventfd, devices.
 *
 *     struct reply { BLZ_FRAME; PGconn *pg; blz_fd fd; blz_io io; int64_t rc; };
 *     ...
 *     self->rc = blz_fd_attach(&self->fd, PQsocket(self->pg));
 *     while (self->rc >= 0 && PQisBusy(self->pg)) {
 *         BLZ_AWAIT(self->rc, blz_fd_readable(&self->io, &self->fd));
 *         if (self->rc >= 0 && !PQconsumeInput(self->pg))
 *             self->rc = -EIO;
 *     }
 *     blz_fd_detach(&self->fd);           // before PQfinish closes it
 *
 * A library that has many descriptors, or other ones every moment, gets a set: blz_fdset, below.
 *
 * Such a library is not thread-safe, as a rule. One task owns it and makes all calls into it;
 * others send it what they want to have done. The task may move between threads from one await to
 * the next: a library that keeps things in thread-local variables needs a pinned task
 * (blz_spawn_args.pinned).
 */
#ifndef BLITZ_FD_H
#define BLITZ_FD_H

#include <blitz/io.h>
#include <blitz/time.h>

BLZ_BEGIN_DECLS

/* Events to wait for, and to be reported. The last two are reported to every wait. */
enum {
    BLZ_FD_READ = 0x1,
    BLZ_FD_PRI = 0x2, /* something out of band */
    BLZ_FD_WRITE = 0x4,
    BLZ_FD_ERR = 0x8,
    BLZ_FD_HUP = 0x10
};

/* ---- One descriptor ---- */

/* A handle that may be copied. All zero: none. */
typedef struct blz_fd {
    void *entry_;
    uint64_t generation_;
} blz_fd;

/*
 * Borrows an open descriptor: its mode is not changed, and it is never closed. It may be anything
 * that poll(2) takes; regular files are always ready. It may be attached several times, also to
 * several runtimes. 0; -EBADF: is not open; -ENXIO: no runtime on this thread; -ENOMEM. [worker;
 * with a runtime any thread]
 */
BLZ_API BLZ_NODISCARD int blz_fd_attach(blz_fd *handle, blz_sysfd fd);
BLZ_API BLZ_NODISCARD int blz_fd_attach_to(blz_fd *handle, blz_sysfd fd, blz_rt *rt);

/*
 * Ends the loan, before the owner closes the descriptor; *handle is none afterwards, and copies of
 * it are stale. -EBADF: was detached. [any thread]
 *
 * When this returns, nothing of Blitz will act upon what the number may mean from then on. Waits
 * that are pending end with -EBADF. They have no hold on the open file any more, so closing it
 * takes effect (the other side of a connection sees its end). With the backend "poll", a wait that
 * was begun on another worker may hold it until that worker has looked at its requests, as it does
 * after 255 polls of tasks, or 200 microseconds, or the end of a poll that takes longer.
 */
BLZ_API int blz_fd_detach(blz_fd *handle);

/*
 * Wait until it is ready: those of `events` that are true, and BLZ_FD_ERR and BLZ_FD_HUP. Readiness
 * is a level, and a hint: try the call, and wait again if it would block. Any number of waits, by
 * any number of tasks, may be in flight; one that is ready wakes all of them. -EBADF: stale,
 * detached meanwhile, or closed behind our back. Interruptible. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fd_ready(blz_io *io, const blz_fd *handle, unsigned events);
BLZ_API BLZ_NODISCARD blz_future *blz_fd_readable(blz_io *io, const blz_fd *handle);
BLZ_API BLZ_NODISCARD blz_future *blz_fd_writable(blz_io *io, const blz_fd *handle);

/* A call that is repeated until it does not block. */
typedef struct blz_fd_op {
    blz_future future;
    blz_io io;
    blz_fd handle;
    int64_t (*fn)(void *arg);
    void *arg;
    unsigned direction;
    uint64_t reserved;
} blz_fd_op;

/*
 * Calls fn(arg), and calls it again each time that the descriptor is ready (BLZ_FD_READ or
 * BLZ_FD_WRITE), until it returns something else than -EAGAIN: that is the result. fn must make a
 * call that does not wait, on a descriptor in non-blocking mode, and return -EAGAIN only if that
 * call would have blocked; otherwise it is called for ever. Interruptible: fn is not called once
 * this is cancelled, or detached. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fd_io(blz_fd_op *op, const blz_fd *handle, unsigned direction,
                                            int64_t (*fn)(void *arg), void *arg);

/* ---- Sets ---- */

/*
 * Many descriptors and one task that waits, for libraries that say in callbacks what to wait for:
 *
 *     static int on_socket(CURL *easy, curl_socket_t fd, int what, void *set, void *cookie)
 *     {
 *         if (what == CURL_POLL_REMOVE)
 *             return blz_fdset_remove(set, fd), 0;
 *         return blz_fdset_set(set, fd, (what & CURL_POLL_IN ? BLZ_FD_READ : 0) |
 *                                       (what & CURL_POLL_OUT ? BLZ_FD_WRITE : 0), cookie);
 *     }
 *     ...
 *     BLZ_AWAIT(self->rc, blz_fdset_ready(&self->wait, &self->set, self->deadline_ns));
 *     while (blz_fdset_next(&self->set, &event))
 *         curl_multi_socket_action(self->multi, event.fd, to_curl(event.events), &running);
 *     ...
 *     BLZ_AWAIT(self->rc, blz_fdset_close(&self->wait, &self->set));
 *
 * A set belongs to one task; only that one calls these functions. All zero: an empty set.
 */
typedef struct blz_fdset {
    uint64_t private_[16];
} blz_fdset;

/* What is reported. */
typedef struct blz_fdset_event {
    blz_sysfd fd;
    unsigned events; /* BLZ_FD_READ and so on */
    void *cookie;    /* as last set */
    int error;       /* with BLZ_FD_ERR: why it cannot be waited for, -EBADF for one; else 0 */
    uint64_t reserved[2];
} blz_fdset_event;

/*
 * Adds a descriptor, or changes what is waited for: BLZ_FD_READ, BLZ_FD_WRITE, both, or 0 to have
 * it rest. Makes no system call; what was set last counts, from the next wait on. 0; -EINVAL:
 * another bit, or a negative number; -ENOMEM; -ENXIO: no runtime on this thread. [task]
 */
BLZ_API BLZ_NODISCARD int blz_fdset_set(blz_fdset *set, blz_sysfd fd, unsigned events,
                                        void *cookie);

/*
 * Takes a descriptor out, before it is closed: as blz_fd_detach. What has been found out about it
 * is not reported any more. Its number may be closed, reused and set at once. -ENOENT: is not in
 * the set. [task]
 */
BLZ_API int blz_fdset_remove(blz_fdset *set, blz_sysfd fd);

/* The number of descriptors in it. [task] */
BLZ_API size_t blz_fdset_count(const blz_fdset *set);

/* The future of blz_fdset_ready. */
typedef struct blz_fdset_ready_op {
    blz_future future;
    blz_fdset *set;
    blz_timer timer;
    int64_t deadline_ns;
    uint64_t reserved[2];
} blz_fdset_ready_op;

/*
 * Waits until some of them are ready, or until an instant (BLZ_NEVER: without limit; in the past:
 * tells what is ready now): 1, ask blz_fdset_next for them; 0: the instant has passed. -ENOMEM: a
 * descriptor that is new cannot be waited for; the next wait tries again. Interruptible; nothing is
 * lost by that. One wait at a time. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fdset_ready(blz_fdset_ready_op *op, blz_fdset *set,
                                                  int64_t deadline_ns);

/*
 * The next one that is ready, or false. Does not wait. Readiness is a level: what has been reported
 * and is still true is reported again, after the next wait. Those that were taken out meanwhile are
 * never reported. [task]
 */
BLZ_API bool blz_fdset_next(blz_fdset *set, blz_fdset_event *event);

/*
 * Takes all descriptors out and frees the memory: 0, and the set is empty. It cannot fail. Must be
 * awaited before the set's memory is freed, and while the descriptors are still open; it also works
 * in a cancelled task. It waits until the kernel has let go of everything, which takes no time.
 * [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_fdset_close(blz_fdset_ready_op *op, blz_fdset *set);

BLZ_END_DECLS
#endif
