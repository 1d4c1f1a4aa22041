/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection: requests are read, answered in the order in which they came, and the replies sent
 * when nothing is left to answer; so requests that came together are answered in one write.
 *
 * When the server stops, its connections are cancelled (blz_guard_run). That shall end those that
 * wait for a request, and none that is in the middle of one. So everything but the wait for a
 * request is shielded. It does not last for ever: the last phase of a shutdown overrides shields.
 *
 * The functions here have results like those of the parser: a negative status (-400 and below) to
 * refuse the request with, or a negative errno if the connection is of no more use.
 */
#include "demo.h"

#include <string.h>

enum { MAX_OUT = 64 << 10, MAX_WAIT_MS = 10000 };

struct receive_body {
    BLZ_FRAME;
    struct connection *c;
    int64_t rc, deadline_ns;
    struct http_chunks chunks;
    union {
        struct stream_read read;
        struct stream_flush flush;
    };
};

struct answer {
    BLZ_FRAME;
    struct connection *c;
    int64_t rc;
    union {
        struct receive_body body;
        struct stream_flush flush;
        union page_wait wait;
    };
};

struct connection {
    BLZ_FRAME;
    struct server *server;
    struct stream stream;
    struct exchange x; /* the request that we are at */
    size_t used;       /* of stream.in: what has been understood of it */
    int64_t rc;
    union {
        struct stream_head head;
        struct answer answer;
        struct stream_flush flush;
        struct stream_end end;
    };
};

/* ---- the body ---- */

static bool has_body(const struct http_request *r)
{
    return r->chunked || r->content_length > 0;
}

/* Takes what has come of the body: 1: all; 0: more is to come. */
static int take_body(struct connection *c, struct http_chunks *chunks)
{
    struct bytes *in = &c->stream.in;
    size_t body = c->x.head_len + c->x.body_len, len = in->len - c->used, used;
    int rc;

    if (!c->x.request.chunked) {
        c->x.body_len = (size_t)c->x.request.content_length;
        c->used = c->x.head_len + c->x.body_len;
        return in->len >= c->used;
    }
    /* What is decoded takes the place of what was not. */
    rc = http_chunks_decode(chunks, in->data + body, in->data + c->used, &len, &used);
    c->x.body_len += len;
    c->used += used;
    if (rc == 0)
        c->used = in->len = body + len;
    return c->x.body_len > HTTP_BODY_MAX ? -413 : rc;
}

static void offer_to_continue(struct connection *c)
{
    if (c->x.request.expects_continue && c->stream.in.len == c->used)
        bytes_print(&c->stream.out, "HTTP/1.1 100 Continue\r\n\r\n");
}

/* 1: it is there. */
BLZ_ASYNC(receive_body)
{
    BLZ_BEGIN;
    offer_to_continue(self->c);
    self->deadline_ns = blz_deadline(self->c->stream.limits->body_ns);
    while ((self->rc = take_body(self->c, &self->chunks)) == 0) {
        BLZ_CALL(self->rc, self->flush, stream_flush, .stream = &self->c->stream);
        if (self->rc < 0)
            break;
        BLZ_CALL(self->rc, self->read, stream_read, .stream = &self->c->stream,
                 .deadline_ns = self->deadline_ns);
        if (self->rc <= 0)
            break;
        self->deadline_ns += self->rc * self->c->stream.limits->byte_ns;
    }
    if (self->rc == -ETIMEDOUT)
        self->rc = -408;
    BLZ_END(self->rc != 0 ? self->rc : -ECONNRESET); /* 0: it went in the middle of it */
}

/* ---- the answer ---- */

static bool allows(const struct page *page, enum http_method method)
{
    return method != HTTP_OTHER && strstr(page->methods, method == HTTP_POST ? "POST" : "GET");
}

static int status_of(struct exchange *x, const char *in)
{
    const struct http_request *r = &x->request;

    x->page = page_find(in + r->path.at, r->path.len);
    if (!x->page)
        return 404;
    if (!allows(x->page, (enum http_method)r->method))
        return 405;
    if (x->page->wait &&
        !http_query_number(in + r->query.at, r->query.len, "ms", MAX_WAIT_MS, &x->ms))
        return 400;
    return 200;
}

/* What can be said before the body has come. A body that is not wanted shall not be sent. */
static int64_t judge(struct connection *c)
{
    struct exchange *x = &c->x;

    x->status = status_of(x, c->stream.in.data);
    x->close |= !x->request.keep_alive;
    if (x->request.content_length > HTTP_BODY_MAX)
        return -413;
    return x->status != 200 && x->request.expects_continue ? -x->status : 0;
}

static void write_reply(struct connection *c)
{
    struct bytes body = {0};

    c->x.in = c->stream.in.data;
    if (c->x.status == 200)
        c->x.page->write(&body, &c->x);
    reply(&c->stream.out, &c->x, &body);
    bytes_free(&body);
    bytes_drop(&c->stream.in, c->used);
    atomic_fetch_add_explicit(&c->server->nr_requests, 1, memory_order_relaxed);
}

/* 1: on to the next request; 0: that was the last. */
BLZ_ASYNC(answer)
{
    BLZ_BEGIN;
    self->rc = judge(self->c);
    if (self->rc == 0 && has_body(&self->c->x.request))
        BLZ_CALL(self->rc, self->body, receive_body, .c = self->c);
    if (self->rc < 0)
        goto out;
    if (self->c->x.status == 200 && self->c->x.page->wait) {
        /* Earlier replies need not wait for this one. */
        BLZ_CALL(self->rc, self->flush, stream_flush, .stream = &self->c->stream);
        if (self->rc < 0)
            goto out;
        BLZ_AWAIT(self->rc, self->c->x.page->wait(&self->wait, &self->c->x));
        if (self->rc < 0) { /* no thread to block, for one */
            self->rc = -503;
            goto out;
        }
    }
    write_reply(self->c);
    self->rc = !self->c->x.close;
    if (self->c->stream.out.len >= MAX_OUT) {
        BLZ_CALL(self->rc, self->flush, stream_flush, .stream = &self->c->stream);
        self->rc = self->rc < 0 ? self->rc : !self->c->x.close;
    }
out:
    BLZ_END(self->rc);
}

/* ---- all of it ---- */

static void refuse(struct connection *c, int status)
{
    c->x.status = status;
    c->x.close = true;
    reply(&c->stream.out, &c->x, NULL);
}

BLZ_ASYNC(connection)
{
    BLZ_BEGIN;
    self->stream.limits = &self->server->limits;
    do {
        self->x = (struct exchange){.server = self->server};
        BLZ_CALL(self->rc, self->head, stream_head, .stream = &self->stream,
                 .request = &self->x.request);
        if (self->rc <= 0)
            break;
        self->x.head_len = self->used = (size_t)self->rc;
        self->x.close = blz_cancelled(cx); /* the server stops: this one is the last */
        BLZ_AWAIT_SHIELDED(self->rc, BLZ_FUTURE(self->answer, answer, .c = self));
    } while (self->rc > 0);
    if (self->rc <= -400)
        refuse(self, (int)-self->rc);
    if (self->stream.out.len > 0) {
        BLZ_AWAIT_SHIELDED(self->rc,
                           BLZ_FUTURE(self->flush, stream_flush, .stream = &self->stream));
        if (self->rc == 0)
            BLZ_CALL(self->rc, self->end, stream_end, .stream = &self->stream);
    }
    stream_close(&self->stream);
    BLZ_END(self->rc);
}

/* ---- its task ---- */

struct serve_connection {
    BLZ_FRAME;
    struct server *server;
    blz_tcp conn;
    blz_guard guard; /* it is at work */
    int64_t rc;
    blz_guard_op op;
    struct connection connection;
};

BLZ_ASYNC(serve_connection)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc,
              blz_guard_run(&self->op, &self->guard,
                            BLZ_FUTURE(self->connection, connection, .server = self->server,
                                       .stream.conn = self->conn)));
    (void)blz_tcp_close(&self->conn); /* if the server has stopped before it began */
    BLZ_END(self->rc);
}

int connection_spawn(struct server *server, blz_tcp conn)
{
    blz_guard guard;
    int rc = blz_guard_work(&guard, server->shutdown);

    if (rc < 0)
        return rc;
    atomic_fetch_add_explicit(&server->nr_connections, 1, memory_order_relaxed);
    rc = BLZ_SPAWN(serve_connection, .server = server, .conn = conn, .guard = guard);
    if (rc < 0)
        blz_guard_leave(&guard);
    return rc;
}
