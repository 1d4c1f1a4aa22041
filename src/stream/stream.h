/* SPDX-License-Identifier: Apache-2.0 */
/* Front door of src/stream: what modules need that have streams, and those that use them. */
#ifndef BLZ_STREAM_STREAM_H
#define BLZ_STREAM_STREAM_H

#include "io/io.h"

#include <blitz/stream.h>

/*
 * What is below a stream that is a handle of a descriptor: `object` and `word` are the entry and
 * its generation, as in every handle.
 */
enum { STREAM_OTHER, STREAM_SOCKET, STREAM_PIPE, STREAM_FILE };

static inline blz__fd_ref stream_ref(const blz_stream *stream)
{
    return (blz__fd_ref){stream->object, stream->word};
}

static inline unsigned stream_kind(const blz_stream *stream)
{
    return stream->ops ? stream->ops->kind_ : STREAM_OTHER;
}

/*
 * Defines blz_NAME_stream and blz_NAME_writev_all for handles of `type`, with the functions
 * blz_NAME_read, _write, _writev and _close, and `shutdown_fn`, an int64_t (*)(const blz_stream *)
 * or NULL.
 */
#define STREAM_OF_HANDLE(noun, type, kind, shutdown_fn)                                            \
    static blz_future *noun##_stream_read(blz_io *io, const blz_stream *s, void *buf, size_t len)  \
    {                                                                                              \
        return blz_##noun##_read(io, &(type){s->object, s->word}, buf, len);                       \
    }                                                                                              \
    static blz_future *noun##_stream_write(blz_io *io, const blz_stream *s, const void *buf,       \
                                           size_t len)                                             \
    {                                                                                              \
        return blz_##noun##_write(io, &(type){s->object, s->word}, buf, len);                      \
    }                                                                                              \
    static blz_future *noun##_stream_writev(blz_io *io, const blz_stream *s, const blz_iovec *iov, \
                                            size_t count)                                          \
    {                                                                                              \
        return blz_##noun##_writev(io, &(type){s->object, s->word}, iov, count);                   \
    }                                                                                              \
    blz_future *blz_##noun##_writev_all(blz_stream_op *op, const type *handle,                     \
                                        const blz_iovec *iov, size_t count)                        \
    {                                                                                              \
        blz_stream stream = blz_##noun##_stream(handle);                                           \
        return blz_stream_writev_all(op, &stream, iov, count);                                     \
    }                                                                                              \
    static blz_future *noun##_stream_shutdown(blz_io *io, const blz_stream *s)                     \
    {                                                                                              \
        return blz_stream_call(io, s, shutdown_fn);                                                \
    }                                                                                              \
    static int noun##_stream_close(const blz_stream *s)                                            \
    {                                                                                              \
        return blz_##noun##_close(&(type){s->object, s->word});                                    \
    }                                                                                              \
    blz_stream blz_##noun##_stream(const type *handle)                                             \
    {                                                                                              \
        static const blz_stream_ops ops = {                                                        \
            .name = #noun,                                                                         \
            .read = noun##_stream_read,                                                            \
            .write = noun##_stream_write,                                                          \
            .writev = noun##_stream_writev,                                                        \
            .shutdown = noun##_stream_shutdown,                                                    \
            .close = noun##_stream_close,                                                          \
            .kind_ = (kind),                                                                       \
        };                                                                                         \
        return (blz_stream){&ops, handle->entry_, handle->generation_};                            \
    }                                                                                              \
    _Static_assert(sizeof(type) == sizeof(blz__fd_ref), "a handle is a reference")

#endif
