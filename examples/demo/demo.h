/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo: an HTTP/1.1 server.
 *
 *   demo.c        the program: options, listening, stopping
 *   connection.c  a connection: requests in, replies out, in order
 *   pages.c       what there is to see
 *   reply.c       replies
 *   ../http       requests: parsing, reading and writing with limits; bytes that grow
 */
#ifndef DEMO_DEMO_H
#define DEMO_DEMO_H

#include "bytes.h"
#include "http.h"
#include "stream.h"

#include <blitz.h>
#include <stdatomic.h>

struct server {
    struct limits limits;
    blz_shutdown *shutdown;
    int64_t started_ns;
    atomic_ullong nr_connections, nr_requests;
};

/* A request, and what becomes of it. */
struct exchange {
    struct server *server;
    struct http_request request; /* its spans are offsets into `in` */
    const char *in;              /* head, then body; valid when the page is written */
    size_t head_len, body_len;
    const struct page *page; /* NULL: there is none */
    int status;
    bool close;  /* the connection ends after this one */
    uint64_t ms; /* that a page waits before it is written */
};

/* ---- pages.c ---- */

union page_wait {
    blz_sleep_op sleep;
    blz_blocking_op block;
};

struct page {
    const char *path, *methods;                                   /* "GET, HEAD" */
    const char *type;                                             /* of its content */
    blz_future *(*wait)(union page_wait *op, struct exchange *x); /* NULL: is written at once */
    void (*write)(struct bytes *body, const struct exchange *x);
};

/* The page with a path, or NULL. */
const struct page *page_find(const char *path, size_t len);

/* ---- reply.c ---- */

/* Writes a whole reply. A status other than 200 has its name for a body. */
void reply(struct bytes *out, const struct exchange *x, const struct bytes *body);

/* ---- connection.c ---- */

/* Serves a connection in a task of its own, which is at work. 0 or a negative errno. [worker] */
int connection_spawn(struct server *server, blz_tcp conn);

#endif
