/* SPDX-License-Identifier: Apache-2.0 */
/* See stream.h. */
#include "stream.h"

BLZ_ASYNC_EXTERN(stream_read)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->n,
              blz_with_deadline(&self->limit, self->deadline_ns,
                                blz_tcp_read_lease(&self->io, &self->stream->conn, &self->buf)));
    if (self->n > 0)
        bytes_add(&self->stream->in, self->buf.data, self->buf.len);
    if (self->stream->in.failed)
        self->n = -ENOMEM;
    blz_buf_release(&self->buf);
    BLZ_END(self->n);
}

BLZ_ASYNC_EXTERN(stream_flush)
{
    BLZ_BEGIN;
    self->n = self->stream->out.failed ? -ENOMEM : 0;
    if (self->stream->out.len > 0)
        self->deadline_ns = blz_deadline(self->stream->limits->body_ns);
    while (self->n >= 0 && self->sent < self->stream->out.len) {
        BLZ_AWAIT(self->n, blz_with_deadline(&self->limit, self->deadline_ns,
                                             blz_tcp_write(&self->io, &self->stream->conn,
                                                           self->stream->out.data + self->sent,
                                                           self->stream->out.len - self->sent)));
        self->sent += self->io.done;
        self->deadline_ns += (int64_t)self->io.done * self->stream->limits->byte_ns;
    }
    bytes_free(&self->stream->out);
    BLZ_END(self->n < 0 ? self->n : 0);
}

/* An idle connection may take its time; a request that has begun has less. */
static int64_t head_deadline(struct stream_head *self)
{
    const struct limits *limits = self->stream->limits;

    if (self->stream->in.len == 0)
        return blz_deadline(limits->idle_ns);
    if (self->deadline_ns == 0)
        self->deadline_ns = blz_deadline(limits->head_ns);
    return self->deadline_ns;
}

static int parse_head(struct stream_head *self)
{
    const struct bytes *in = &self->stream->in;

    return in->len > 0 ? http_parse(self->request, in->data, in->len) : 0;
}

BLZ_ASYNC_EXTERN(stream_head)
{
    BLZ_BEGIN;
    while ((self->rc = parse_head(self)) == 0) {
        BLZ_AWAIT_SHIELDED(self->rc, BLZ_FUTURE(self->flush, stream_flush, .stream = self->stream));
        if (self->rc < 0)
            break;
        BLZ_CALL(self->rc, self->read, stream_read, .stream = self->stream,
                 .deadline_ns = head_deadline(self));
        if (self->rc <= 0)
            break;
    }
    if (self->rc == -ETIMEDOUT && self->stream->in.len > 0)
        self->rc = -408;
    BLZ_END(self->rc);
}

BLZ_ASYNC_EXTERN(stream_end)
{
    BLZ_BEGIN;
    self->n = blz_tcp_shutdown(&self->stream->conn, BLZ_SHUT_WRITE) == 0;
    self->deadline_ns = blz_deadline(self->stream->limits->linger_ns);
    while (self->n > 0) {
        BLZ_AWAIT(self->n, blz_with_deadline(&self->limit, self->deadline_ns,
                                             blz_tcp_read_lease(&self->io, &self->stream->conn,
                                                                &self->buf)));
        blz_buf_release(&self->buf);
    }
    BLZ_END(self->n);
}

void stream_close(struct stream *stream)
{
    bytes_free(&stream->in);
    bytes_free(&stream->out);
    blz_tcp_close(&stream->conn);
}
