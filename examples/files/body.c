/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files on their way to the client. A small one is read to where its headers are, and leaves
 * together with them, and perhaps with the replies to other requests. A large one is never here:
 * the system moves it from its memory to the socket. In pieces, so that a client that takes them
 * too slowly is noticed.
 */
#include "files.h"

#include <stdio.h>

enum { SMALL = 64 << 10, PIECE = 256 << 10 };

static uint64_t next_piece(const struct send_file *self)
{
    return self->count < PIECE ? self->count : PIECE;
}

static void note_sent(struct send_file *self)
{
    self->count -= self->copy.done;
    self->deadline_ns += (int64_t)self->copy.done * self->stream->limits->byte_ns;
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
    self->copy = (blz_copy_op){0}; /* another member of the union was there */
    self->limit = (blz_timeout){0};
    self->n = blz_file_seek(self->file, (int64_t)self->at, SEEK_SET);
    self->deadline_ns = blz_deadline(self->stream->limits->body_ns);
    while (self->n >= 0 && self->count > 0) {
        BLZ_AWAIT(self->n,
                  blz_with_deadline(&self->limit, self->deadline_ns,
                                    blz_copy(&self->copy, blz_file_stream(self->file),
                                             blz_tcp_stream(&self->stream->conn),
                                             &(blz_copy_options){.limit = next_piece(self)})));
        note_sent(self);
        if (self->n == 0)
            self->n = -ENODATA;
    }
out:
    BLZ_END(self->n < 0 ? self->n : 0);
}
