/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting a stream socket. The socket is made at the first poll, because a future that is never
 * polled must not own one, and closed again if it comes to nothing.
 */
#include "net/socket.h"

#include <blitz/error.h>

static int open_socket(struct io *io, blz_cx *cx)
{
    const struct connect_ops *ops = (const struct connect_ops *)io->op.future.ops;
    blz__fd_ref ref;
    int rc;

    if (io->connect.addr->len == 0)
        return -EAFNOSUPPORT;
    if (!cx->worker)
        return -ENXIO; /* blz_wait: nothing would drive it */
    rc = ops->open(&ref, blz_cx_rt(cx), io->connect.addr, io->connect.options);
    if (rc < 0)
        return rc;
    io->fd = ref.entry;
    io->generation = (uint32_t)ref.generation;
    return 0;
}

blz_poll blz__connect_poll(blz_future *self, blz_cx *cx)
{
    struct io *io = (struct io *)self;
    blz__fd_ref *conn = io->connect.conn;
    int rc;

    if (!io->fd) {
        rc = io_was_cancelled((blz_io *)io) ? -ECANCELED : open_socket(io, cx);
        if (rc < 0)
            return blz_future_done(self, rc);
    }
    if (blz_is_pending(blz__io_poll(self, cx)))
        return BLZ_PENDING;
    blz__fd_ref ref = {io->fd, io->generation};
    if (self->result >= 0)
        *conn = ref;
    else
        blz__fd_close(&ref);
    return BLZ_READY;
}

blz_future *blz__connect_init(blz_io *public, const struct connect_ops *ops, void *conn,
                              const blz_addr *addr, const void *options)
{
    struct io *io;
    blz__fd_ref *ref = conn;

    *ref = (blz__fd_ref){NULL, 0};
    io = blz__io_prepare(public, &ops->future, IO_CONNECT, ref);
    io->connect.addr = addr;
    io->connect.conn = ref;
    io->connect.options = options;
    return &public->future;
}
