/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files on their way to the client. A small one is read to where its headers are, and leaves
 * together with them, and perhaps with the replies to other requests. A large one is never here:
 * the system moves it from its memory to the socket. In pieces, so that a client that takes them
 * too slowly is noticed.
 */
#include "files.h"

#include <unistd.h>

enum { SMALL = 64 << 10, PIECE = 256 << 10 };

static size_t next_piece(const struct send_file *self)
{
    return self->count < PIECE ? (size_t)self->count : PIECE;
}

static void sent(struct send_file *self)
{
    self->at += self->io.done;
    self->count -= self->io.done;
    self->deadline_ns += (int64_t)self->io.done * self->stream->limits->byte_ns;
}

BLZ_ASYNC_EXTERN(send_file)
{
    BLZ_BEGIN;
    if (self->count <= SMALL) {
        self->room = bytes_room(&self->stream->out, (size_t)self->count);
        if (!self->room) {
            self->n = -ENOMEM;
            goto out;
        }
        BLZ_AWAIT(self->n, blz_file_read_exact_at(&self->io, self->file, self->room,
                                                  (size_t)self->count, (int64_t)self->at));
        self->stream->out.len += self->io.done;
        goto out;
    }
    BLZ_CALL(self->n, self->flush, stream_flush, .stream = self->stream);
    if (self->n < 0)
        goto out;
    self->io = (blz_io){.done = 0};
    self->fd = blz_file_into_fd(self->file);
    self->n = self->fd;
    self->deadline_ns = blz_deadline(self->stream->limits->body_ns);
    while (self->n >= 0 && self->count > 0) {
        BLZ_AWAIT(self->n,
                  blz_with_deadline(&self->limit, self->deadline_ns,
                                    blz_tcp_sendfile(&self->io, &self->stream->conn, self->fd,
                                                     (int64_t)self->at, next_piece(self))));
        sent(self);
        if (self->n == 0)
            self->n = -ENODATA;
    }
    if (self->fd >= 0)
        close(self->fd);
out:
    BLZ_END(self->n < 0 ? self->n : 0);
}
