/* SPDX-License-Identifier: Apache-2.0 */
/* What the ring reports: completions, and what becomes of the operations. See uring_submit.c. */
#include "io/uring.h"

#include <blitz/error.h>

/* The ring was interrupted, or does not wait because the socket is in non-blocking mode. */
static bool has_not_happened(int res)
{
    return res == -EAGAIN || res == -EINTR;
}

/* A connect goes on by itself: the socket is writable when it has ended. */
static void complete(struct uring_driver *d, struct io *io, int res)
{
    if (blz_unlikely(has_not_happened(res))) {
        bool cancelled = op_cancel_requested(&io->op);
        if (io->op.kind == IO_CONNECT && !cancelled) {
            io->progress |= IO_CONNECTING;
            blz__ready_submit(uring_base(d), &io->op);
            return;
        }
        res = cancelled ? -ECANCELED : -EAGAIN;
    }
    blz__io_complete(uring_base(d), io, res);
}

static void on_cqe(struct uring_driver *d, const struct io_uring_cqe *cqe)
{
    struct io *io = (struct io *)(uintptr_t)(cqe->user_data & ~(uint64_t)URING_CANCEL);

    d->in_flight--;
    if (cqe->user_data & URING_CANCEL) {
        blz__op_event_done(&io->op);
        return;
    }
    blz__uring_has_ended(d, io);
    complete(d, io, cqe->res);
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

bool blz__uring_reap(struct uring_driver *d)
{
    struct io_uring_cqe cqe;
    bool any = false;

    while (next_cqe(d, &cqe)) {
        on_cqe(d, &cqe);
        any = true;
    }
    return any;
}
