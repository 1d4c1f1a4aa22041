/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection: requests are read, answered in the order in which they came, and the replies sent
 * when nothing is left to answer, or when they are many.
 *
 * When the server stops, its connections are cancelled. That ends those that wait for a request,
 * and none that is in the middle of one: everything but that wait is shielded, until the runtime's
 * patience ends.
 *
 * The functions here have results like those of the parser: a negative status (-300 and below) that
 * the client gets, or a negative errno if the connection is of no more use.
 */
#include "files.h"

enum { MAX_OUT = 64 << 10 };

struct answer {
    BLZ_FRAME;
    struct connection *c;
    int64_t rc;
    struct bytes page;
    size_t mark; /* in stream.out: where this reply begins */
    union {
        struct resource_open open;
        struct list_directory list;
        struct send_file send;
        struct stream_flush flush;
    };
};

struct connection {
    BLZ_FRAME;
    struct server *server;
    struct stream stream;
    struct http_request request;
    size_t head_len;
    struct reply reply;
    struct resource resource;
    int64_t rc;
    union {
        struct stream_head head;
        struct answer answer;
        struct stream_flush flush;
        struct stream_end end;
    };
};

/* ---- the answer ---- */

static const char *path_of(const struct connection *c)
{
    return c->stream.in.data + c->request.path.at;
}

/* The same target with a slash, and never one that begins with two: that is another host. */
static void put_location(struct bytes *where, const struct connection *c)
{
    const struct http_request *r = &c->request;
    const char *path = path_of(c);
    size_t skip = 0;

    while (skip + 1 < r->path.len && path[skip] == '/' && path[skip + 1] == '/')
        skip++;
    bytes_add(where, path + skip, r->path.len - skip);
    bytes_add(where, "/", 1);
    if (r->query.len > 0) {
        bytes_add(where, "?", 1);
        bytes_add(where, c->stream.in.data + r->query.at, r->query.len);
    }
}

static void put_status(struct connection *c, int64_t status)
{
    struct bytes where = {0};

    c->reply.status = (int)-status;
    if (c->reply.status == 301)
        put_location(&where, c);
    reply_status(&c->stream.out, &c->reply, &c->request, &where);
    c->stream.out.failed |= where.failed;
    bytes_free(&where);
}

/* Before anything is opened. A body is not wanted: it is not read, so this reply is the last. */
static int64_t judge(struct connection *c)
{
    const struct http_request *r = &c->request;

    c->reply.close |= !r->keep_alive || r->chunked || r->content_length > 0;
    if (r->method != HTTP_GET && r->method != HTTP_HEAD)
        return -405;
    return path_of(c)[0] == '/' ? 0 : -400;
}

/* The head of a reply about a file: 1 if its bytes follow, 0 if they do not. */
static int64_t put_file_head(struct connection *c)
{
    struct reply *reply = &c->reply;

    reply->of = &c->resource;
    reply_decide(reply, c->stream.in.data, c->head_len);
    if (reply->status >= 300) {
        put_status(c, -reply->status);
        return 0;
    }
    reply_head(&c->stream.out, reply, &c->request, c->resource.type, reply->count);
    bytes_add(&c->stream.out, "\r\n", 2);
    return c->request.method == HTTP_GET;
}

static void put_listing(struct connection *c, struct bytes *page)
{
    c->reply.status = 200;
    reply_head(&c->stream.out, &c->reply, &c->request, "text/html; charset=utf-8", page->len);
    bytes_add(&c->stream.out, "\r\n", 2);
    if (c->request.method == HTTP_GET)
        bytes_add(&c->stream.out, page->data, page->len);
}

/* A file that was not what it seemed: the reply can be taken back as long as nothing has left. */
static int64_t take_back(struct answer *self)
{
    struct bytes *out = &self->c->stream.out;

    if (out->failed || out->len <= self->mark)
        return self->rc;
    out->len = self->mark;
    self->c->reply.of = NULL;
    return -500;
}

/* 1: on to the next request; 0: that was the last. */
BLZ_ASYNC(answer)
{
    BLZ_BEGIN;
    self->mark = self->c->stream.out.len;
    self->rc = judge(self->c);
    if (self->rc == 0)
        BLZ_CALL(self->rc, self->open, resource_open, .server = self->c->server,
                 .path = path_of(self->c), .path_len = self->c->request.path.len,
                 .out = &self->c->resource);
    if (self->rc == 0 && self->c->resource.meta.type == BLZ_FILE_DIRECTORY) {
        BLZ_CALL(self->rc, self->list, list_directory, .server = self->c->server,
                 .directory = &self->c->resource.file, .path = path_of(self->c),
                 .path_len = self->c->request.path.len, .out = &self->page);
        if (self->rc == 0)
            put_listing(self->c, &self->page);
        bytes_free(&self->page);
        self->rc = self->rc < 0 ? -503 : 0;
    } else if (self->rc == 0 && put_file_head(self->c)) {
        BLZ_CALL(self->rc, self->send, send_file, .stream = &self->c->stream,
                 .file = &self->c->resource.file, .at = self->c->reply.at,
                 .count = self->c->reply.count);
        if (self->rc < 0)
            self->rc = take_back(self);
    }
    if (self->rc <= -300) {
        put_status(self->c, self->rc);
        self->rc = 0;
    }
    blz_file_close(&self->c->resource.file);
    bytes_drop(&self->c->stream.in, self->c->head_len);
    atomic_fetch_add_explicit(&self->c->server->nr_requests, 1, memory_order_relaxed);
    if (self->rc == 0 && self->c->stream.out.len >= MAX_OUT)
        BLZ_CALL(self->rc, self->flush, stream_flush, .stream = &self->c->stream);
    BLZ_END(self->rc < 0 ? self->rc : !self->c->reply.close);
}

/* ---- all of it ---- */

BLZ_ASYNC(connection)
{
    BLZ_BEGIN;
    self->stream.limits = &self->server->limits;
    do {
        self->request = (struct http_request){0};
        self->reply = (struct reply){0};
        BLZ_CALL(self->rc, self->head, stream_head, .stream = &self->stream,
                 .request = &self->request);
        if (self->rc <= 0)
            break;
        self->head_len = (size_t)self->rc;
        self->reply.close = blz_cancelled(cx); /* the server stops: this one is the last */
        BLZ_AWAIT_SHIELDED(self->rc, BLZ_FUTURE(self->answer, answer, .c = self));
    } while (self->rc > 0);
    if (self->rc <= -400) { /* nobody knows where the next request begins */
        self->reply = (struct reply){.close = true};
        put_status(self, self->rc);
        self->rc = 0;
    }
    if (self->rc == 0 && self->stream.out.len > 0) {
        BLZ_AWAIT_SHIELDED(self->rc,
                           BLZ_FUTURE(self->flush, stream_flush, .stream = &self->stream));
        if (self->rc == 0)
            BLZ_CALL(self->rc, self->end, stream_end, .stream = &self->stream);
    }
    stream_close(&self->stream);
    blz_ignore(blz_semaphore_release(&self->server->slots, 1));
    BLZ_END(self->rc);
}

int connection_spawn(struct server *server, blz_tcp conn)
{
    atomic_fetch_add_explicit(&server->nr_connections, 1, memory_order_relaxed);
    return BLZ_SPAWN(connection, .server = server, .stream.conn = conn);
}
