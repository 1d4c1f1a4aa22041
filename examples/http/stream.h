/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection with bytes on both sides of it: what has come and is not understood yet, and what is
 * to be sent. Both are there only while there are some, so a connection that is silent holds none.
 */
#ifndef HTTP_STREAM_H
#define HTTP_STREAM_H

#include "bytes.h"

#include <blitz.h>

/* How long clients may take. */
struct limits {
    int64_t idle_ns;   /* between two requests */
    int64_t head_ns;   /* from the first byte of a request to the end of its headers */
    int64_t body_ns;   /* for sending a body, and for taking a reply: this, */
    int64_t byte_ns;   /*     and this for each byte */
    int64_t linger_ns; /* for closing, after we have */
};

struct stream {
    blz_tcp conn;
    const struct limits *limits;
    struct bytes in, out;
};

/* Adds what comes next to `in`: how much; 0: the end; -ETIMEDOUT: nothing until the deadline. */
struct stream_read {
    BLZ_FRAME;
    struct stream *stream;
    int64_t deadline_ns;
    int64_t n;
    blz_buf buf;
    blz_timeout limit;
    blz_io io;
};
BLZ_DECLARE_EXTERN(stream_read);

/* Sends all of `out`, if any: 0. -ETIMEDOUT: the client takes it too slowly. */
struct stream_flush {
    BLZ_FRAME;
    struct stream *stream;
    int64_t deadline_ns, n;
    size_t sent;
    blz_timeout limit;
    blz_io io;
};
BLZ_DECLARE_EXTERN(stream_flush);

/*
 * Says that nothing more will be sent, and waits a while for the other side to end too. To close
 * while it still sends would make the system drop what it has not read yet: the reply, say, that
 * tells it to stop.
 */
struct stream_end {
    BLZ_FRAME;
    struct stream *stream;
    int64_t deadline_ns, n;
    blz_buf buf;
    blz_timeout limit;
    blz_io io;
};
BLZ_DECLARE_EXTERN(stream_end);

/* Closes it and frees what it holds. */
void stream_close(struct stream *stream);

#endif
