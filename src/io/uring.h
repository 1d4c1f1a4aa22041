/* SPDX-License-Identifier: Apache-2.0 */
/* The io_uring backend's own struct, and what its files have for each other. */
#ifndef BLZ_IO_URING_H
#define BLZ_IO_URING_H

#include "io/epoll_set.h"

#include <liburing.h>

struct uring_driver {
    epoll_set set; /* first: for what is waited for, and where the worker sleeps */
    struct io_uring ring;
    uint64_t thread;             /* that uses the ring; 0: none so far */
    uint64_t in_flight;          /* completions to come, cancel requests included */
    struct io *sq_overflow_list; /* found the submission queue full, oldest first */
    struct io *sq_overflow_last;
};

enum {
    URING_CANCEL = 1
}; /* in user_data: the answer to a cancel request; operations are aligned */

static inline struct uring_driver *uring_of(blz__driver *driver)
{
    return (struct uring_driver *)driver;
}

static inline blz__driver *uring_base(struct uring_driver *d)
{
    return &d->set.ready.base;
}

/* ---- uring.c [owner] ---- */

/* By the owner's thread, before it uses the ring. */
void blz__uring_bind(struct uring_driver *d);

/* ---- uring_submit.c [owner] ---- */

/* These are the driver's submit and cancel. */
void blz__uring_submit(blz__driver *driver, blz__op *op);
void blz__uring_cancel(blz__driver *driver, blz__op *op);

/* Its request has ended: nothing more is to be asked for. */
void blz__uring_has_ended(struct uring_driver *d, struct io *io);

/* Submits the overflow list, as far as there is room. */
void blz__uring_submit_overflow(struct uring_driver *d);

/* ---- uring_reap.c [owner] ---- */

/* Reports the completions that are there; false: there were none. */
bool blz__uring_reap(struct uring_driver *d);

/* ---- uring_file.c [owner] ---- */

void blz__uring_prep_file(struct io_uring_sqe *sqe, const struct io *io);

#endif
