/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP/1.1 server for the load generators of the comparisons: every request is answered with
 * "Hello, World!".
 *
 *     blitz-http PORT [THREADS] [--backend io_uring|epoll|poll]
 *
 * The parser is the demo's. A request that comes as a whole, as nearly all do, is parsed where it
 * was read, and a connection that waits for the next one holds no buffer. Requests that came
 * together are answered together: one read and one write.
 */
#include <blitz.h>

#include "http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- what is said ---- */

#define REPLY_HEAD        \
    "HTTP/1.1 200 OK\r\n" \
    "Content-Type: text/plain\r\nContent-Length: 13\r\nDate: "
#define REPLY REPLY_HEAD "Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\nHello, World!"

enum { REPLY_LEN = sizeof REPLY - 1, MAX_REPLIES = 16 };

/* The date of this thread's replies is written once a second. */
static void put_reply(char *out)
{
    static _Thread_local char reply[REPLY_LEN + 1] = REPLY;
    static _Thread_local time_t written;
    time_t now = time(NULL);

    if (now != written) {
        struct tm tm;
        char date[30];
        gmtime_r(&now, &tm);
        strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        memcpy(reply + sizeof REPLY_HEAD - 1, date, sizeof date - 1);
        written = now;
    }
    memcpy(out, reply, REPLY_LEN);
}

/* ---- a connection ---- */

struct client {
    BLZ_FRAME;
    blz_tcp conn;
    blz_io io;
    blz_buf buf;
    int64_t rc;
    struct http_request request;
    bool last;      /* the client has asked for no more */
    char *part;     /* of a request that did not come as a whole; or NULL */
    const char *at; /* what has not been parsed yet, there or in `buf` */
    size_t len;
    size_t part_len;
    char out[MAX_REPLIES * REPLY_LEN];
};

/* Makes what has come follow what was there. False: no memory. */
static bool join_parts(struct client *c)
{
    if (!c->part) {
        c->at = c->buf.data;
        c->len = c->buf.len;
        return true;
    }
    char *part = realloc(c->part, c->part_len + c->buf.len);
    if (!part)
        return false;
    memcpy(part + c->part_len, c->buf.data, c->buf.len);
    c->part = part;
    c->at = part;
    c->len = c->part_len + c->buf.len;
    return true;
}

/* Answers requests: as many as are complete and have room. Their number, or a negative status. */
static int answer(struct client *c)
{
    int nr_replies = 0;

    while (c->len > 0 && nr_replies < MAX_REPLIES) {
        int n = http_parse(&c->request, c->at, c->len);
        if (n < 0 || c->request.content_length > 0 || c->request.chunked)
            return n < 0 ? n : -501; /* nothing here takes a body */
        if (n == 0)
            break;
        put_reply(c->out + (size_t)nr_replies++ * REPLY_LEN);
        c->at += n;
        c->len -= (size_t)n;
        c->last = !c->request.keep_alive;
        c->request = (struct http_request){0};
        if (c->last)
            c->len = 0;
    }
    return nr_replies;
}

/* Keeps the beginning of a request until the rest comes. False: no memory. */
static bool keep_part(struct client *c)
{
    char *part = NULL;

    if (c->len > 0) {
        part = malloc(c->len);
        if (!part)
            return false;
        memcpy(part, c->at, c->len);
    }
    free(c->part);
    c->part = part;
    c->part_len = c->len;
    return true;
}

BLZ_ASYNC(client)
{
    BLZ_BEGIN;
    for (;;) {
        BLZ_AWAIT(self->rc, blz_tcp_read_lease(&self->io, &self->conn, &self->buf));
        if (self->rc <= 0 || !join_parts(self))
            break;
        while ((self->rc = answer(self)) > 0) {
            BLZ_AWAIT(self->rc, blz_tcp_write_all(&self->io, &self->conn, self->out,
                                                  (size_t)self->rc * REPLY_LEN));
            if (self->rc < 0)
                break;
        }
        if (self->rc < 0 || self->last || !keep_part(self))
            break;
        blz_buf_release(&self->buf);
    }
    blz_buf_release(&self->buf);
    free(self->part);
    blz_tcp_close(&self->conn);
    BLZ_END(self->rc);
}

/* ---- the server ---- */

/* Requests are all alike here, and short: a connection stays with the worker that accepted it. */
static int on_conn(blz_tcp conn, void *arg)
{
    (void)arg;
    return BLZ_SPAWN_PINNED(NULL, client, .conn = conn);
}

struct serve {
    BLZ_FRAME;
    int port;
    blz_tcp_listener ln;
    blz_serve_op op;
    int64_t rc;
};

BLZ_ASYNC(serve)
{
    blz_addr addr;

    BLZ_BEGIN;
    addr = blz_addr_loopback(BLZ_ADDR_V4, (uint16_t)self->port);
    self->rc = blz_tcp_listen_with(&self->ln, &addr, &(blz_tcp_listen_options){.spread = true});
    if (self->rc < 0)
        goto out;
    BLZ_AWAIT(self->rc, blz_tcp_serve(&self->op, &self->ln, on_conn, NULL));
    blz_tcp_listener_close(&self->ln);
out:
    BLZ_END(self->rc);
}

int main(int argc, char **argv)
{
    blz_options options = {.workers = 1};
    int port = 8080, place = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc)
            options.backend = argv[++i];
        else if (place++ == 0)
            port = atoi(argv[i]);
        else
            options.workers = (unsigned)atoi(argv[i]);
    }
    int64_t rc = BLZ_RUN_WITH(&options, serve, .port = port);
    if (rc < 0)
        fprintf(stderr, "blitz-http: %s\n", blz_strerror(rc));
    return rc < 0;
}
