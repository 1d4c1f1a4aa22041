/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection with bytes on both sides of it: what has come and is not understood yet, and what is
 * to be sent. Both are there only while there are some, so a connection that is silent holds none.
 */
#ifndef HTTP_STREAM_H
#define HTTP_STREAM_H

#include "bytes.h"
#include "http.h"

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
 * Reads until `in` begins with the head of a request: its length, and *request, which must be all
 * zero; 0: the client has ended, or has nothing more to ask; or a negative status to refuse it with
 * (-400 and below), or a negative errno if the connection is of no more use. Before it waits it
 * sends what is in `out`. Cancelled: -ECANCELED, but what is in `out` is sent all the same.
 */
struct stream_head {
    BLZ_FRAME;
    struct stream *stream;
    struct http_request *request;
    int64_t rc, deadline_ns;
    union {
        struct stream_read read;
        struct stream_flush flush;
    };
};
BLZ_DECLARE_EXTERN(stream_head);

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
