/* SPDX-License-Identifier: Apache-2.0 */
/* What the ring reports: completions, and what becomes of the operations. See uring_submit.c. */
#include "io/uring.h"

#include <errno.h>

/*
 * The ring does not wait on our behalf, because the descriptor is in non-blocking mode; or it was
 * interrupted. Then we wait for readiness first, and attempt it.
 */
static bool has_not_happened(int res)
{
    return res == -EAGAIN || res == -EINTR;
}

static void complete(struct uring_driver *d, struct io *io, int res)
{
    if (io->progress & IO_POLLED) {
        blz__uring_polled(d, io, res);
        return;
    }
    if (has_not_happened(res) && !op_cancel_requested(&io->op) && !io_is_of_file(io)) {
        if (io->op.kind == IO_CONNECT)
            io->progress |= IO_CONNECTING; /* goes on by itself: the attempts ask how it went */
        blz__uring_submit_poll(d, io);
        return;
    }
    if (has_not_happened(res)) /* a wait that was cancelled; or a file, which is not waited for */
        res = op_cancel_requested(&io->op) ? -ECANCELED : -EAGAIN;
    blz__io_complete(uring_base(d), io, res);
}

static void on_cqe(struct uring_driver *d, const struct io_uring_cqe *cqe)
{
    struct io *io = (struct io *)(uintptr_t)(cqe->user_data & ~(uint64_t)URING_CANCEL);

    if (cqe->user_data & URING_CANCEL) {
        d->in_flight--;
        blz__op_event_done(&io->op);
        return;
    }
    if (!(cqe->flags & IORING_CQE_F_MORE)) {
        d->in_flight--;
        blz__uring_has_ended(d, io);
    }
    if (cqe->flags & IORING_CQE_F_MORE)
        blz__uring_note_change(d, io, cqe->res);
    else
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
