/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections: one task each. Every wait for a client has one deadline, however many reads or
 * writes it takes, so a client that sends a byte now and then does not keep its connection:
 *
 *   IDLE_NS    for the first byte of a request
 *   HEAD_NS    for the rest of it, from that byte on
 *   WRITE_NS   for the client to take the answer
 *   LINGER_NS  for the client to stop sending after the last answer
 *
 * There are at most MAX_CONNECTIONS. The limits are for clients that misbehave by accident: a
 * process that can connect could as well send the program a signal.
 */
#include "console/console.h"

#include <blitz/runtime.h>
#include <blitz/stream.h>
#include <blitz/task.h>
#include <blitz/time.h>
#include <blitz/error.h>
#include <string.h>

#define HEAD_NS  (10 * BLZ_SEC)
#define IDLE_NS  (60 * BLZ_SEC)
#define WRITE_NS (30 * BLZ_SEC)

#define LINGER_NS (1 * BLZ_SEC)

enum { MAX_REST = 1 << 20 }; /* bytes that are read of a client that does not stop */

struct console_connection {
    BLZ_FRAME;
    blz_console *console;
    blz_stream stream;
    size_t len, seen, head_len;
    int64_t rc, n;
    int64_t until_ns; /* deadline of what the client must send */
    int status;
    const char *type;
    struct request request;
    struct text body, head;
    blz_iovec iov[2];
    union {
        blz_io io;
        blz_stream_op op;
        struct blz__console_answer answer;
    };
    blz_timeout limit;
    char in[REQUEST_MAX];
};

/* ---- answers ---- */

static const char fixed_headers[] =
    "Cache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n";

static void write_head(struct console_connection *c)
{
    if (c->status != 200) {
        text_clear(&c->body);
        c->type = "text/plain; charset=utf-8";
        blz__text_print(&c->body, "%d %s\n", c->status, blz__status_text(c->status));
    }
    text_clear(&c->head);
    blz__text_print(&c->head, "HTTP/1.1 %d %s\r\n", c->status, blz__status_text(c->status));
    blz__text_print(&c->head, "Content-Type: %s\r\nContent-Length: %zu\r\n", c->type, c->body.len);
    if (c->status == 405)
        blz__text_print(&c->head, "Allow: GET\r\n");
    if (!c->request.keep_alive)
        blz__text_print(&c->head, "Connection: close\r\n");
    blz__text_add(&c->head, fixed_headers, sizeof fixed_headers - 1);
    blz__text_add(&c->head, "\r\n", 2);
    c->iov[0] = (blz_iovec){c->head.data, c->head.len};
    c->iov[1] = (blz_iovec){c->body.data, c->body.len};
}

static void drop_request(struct console_connection *c)
{
    c->len -= c->head_len;
    memmove(c->in, c->in + c->head_len, c->len);
    c->head_len = c->seen = 0;
}

/* ---- requests ---- */

/* Sets the deadline of the request that the client has begun, or has to begin. */
static void set_deadline(struct console_connection *c)
{
    c->until_ns = blz_deadline(c->len > 0 ? HEAD_NS : IDLE_NS);
}

/* More of the request has come. */
static void take_input(struct console_connection *c, size_t len)
{
    bool begins = c->len == 0;

    c->len += len;
    if (begins)
        set_deadline(c);
}

/* Whether a whole head is there; else whether there is room for one. */
static bool has_head(struct console_connection *c)
{
    c->head_len = blz__request_head_len(c->in, c->len, c->seen);
    c->seen = c->len;
    if (c->head_len == 0 && c->len == sizeof c->in)
        c->status = 431;
    return c->head_len > 0;
}

BLZ_ASYNC(console_connection)
{
    BLZ_BEGIN;
    self->body.allocator = self->head.allocator = &self->console->allocator;
    do {
        self->status = 0;
        self->request = (struct request){NULL, NULL, false};
        set_deadline(self);
        while (!has_head(self) && self->status == 0) {
            BLZ_AWAIT(self->n, blz_with_deadline(&self->limit, self->until_ns,
                                                 blz_stream_read(&self->io, &self->stream,
                                                                 self->in + self->len,
                                                                 sizeof self->in - self->len)));
            if (self->n == -ETIMEDOUT && self->len > 0)
                self->status = 408;
            else if (self->n <= 0)
                goto out;
            else
                take_input(self, (size_t)self->n);
        }
        if (self->status == 0)
            self->status = blz__request_parse(&self->request, self->in, self->head_len);
        if (self->status != 0) {
            self->request.keep_alive = false;
        } else {
            self->console->nr_requests++;
            text_clear(&self->body);
            BLZ_CALL(self->rc, self->answer, blz__console_answer, .console = self->console,
                     .request = self->request, .body = &self->body, .type = &self->type);
            if (self->rc < 0)
                goto out;
            self->status = self->body.failed ? 503 : (int)self->rc;
        }
        write_head(self);
        if (self->head.failed || self->body.failed)
            goto out;
        memset(&self->op, 0, sizeof self->op);
        BLZ_AWAIT(self->n,
                  blz_with_timeout(&self->limit, WRITE_NS,
                                   blz_stream_writev_all(&self->op, &self->stream, self->iov, 2)));
        memset(&self->io, 0, sizeof self->io);
        drop_request(self);
    } while (self->n >= 0 && self->request.keep_alive);
    /* What the client still sends is read, or it might not get to see the answer. */
    BLZ_AWAIT(self->rc, blz_stream_shutdown(&self->io, &self->stream));
    self->until_ns = blz_deadline(LINGER_NS);
    for (self->len = 0; self->rc >= 0 && self->len < MAX_REST; self->len += (size_t)self->n) {
        BLZ_AWAIT(self->n, blz_with_deadline(&self->limit, self->until_ns,
                                             blz_stream_read(&self->io, &self->stream, self->in,
                                                             sizeof self->in)));
        if (self->n <= 0)
            break;
    }
out:
    blz_stream_close(&self->stream);
    blz__text_free(&self->body);
    blz__text_free(&self->head);
    self->console->nr_connections--;
    BLZ_END(0);
}

/* ---- accepting ---- */

static bool is_welcome(const struct blz__console_serve *serve)
{
    blz_unix_cred who;

    if (serve->console->nr_connections >= MAX_CONNECTIONS)
        return false;
    if (!serve->console->is_unix)
        return true;
    return blz_unix_peer_cred(&serve->unix_, &who) == 0 && blz__socket_user_is_trusted(who.uid);
}

static void take_connection(struct blz__console_serve *serve)
{
    blz_stream stream =
        serve->console->is_unix ? blz_unix_stream(&serve->unix_) : blz_tcp_stream(&serve->tcp);

    if (is_welcome(serve) &&
        BLZ_SPAWN(console_connection, .console = serve->console, .stream = stream) == 0)
        serve->console->nr_connections++;
    else
        blz_stream_close(&stream);
}

static blz_future *accept_next(struct blz__console_serve *serve)
{
    return serve->console->is_unix
               ? blz_unix_accept(&serve->io, &serve->console->unix_, &serve->unix_)
               : blz_tcp_accept(&serve->io, &serve->console->tcp, &serve->tcp);
}

BLZ_ASYNC_EXTERN(blz__console_serve)
{
    BLZ_BEGIN;
    do {
        BLZ_AWAIT(self->rc, accept_next(self));
        if (self->rc == 0)
            take_connection(self);
    } while (self->rc == 0);
    BLZ_END(self->rc);
}
