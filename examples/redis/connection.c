/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection: all requests that have come are carried out, and then their replies are sent in one
 * write. That is what makes pipelining fast.
 *
 * Requests are read where they are received: in a buffer on loan, which the connection has only
 * while there is something in it. If they end in the middle of one, the beginning of that is kept
 * (`rest`), and what follows is read behind it.
 *
 * A client that does not read its replies is not read from either: `out` grows no further than a
 * reply beyond OUT_HIGH. One that has subscribed to something is sent to by a task of its own; see
 * pubsub.h. All that is kept here is taken from the budget for clients.
 */
#include "redis.h"

#include <stdlib.h>
#include <string.h>

enum {
    READ_SIZE = 16 << 10, /* at least so much is read at a time, behind the rest */
    OUT_HIGH = 64 << 10,
    FEW_ARGS = 16,    /* requests of up to so many words take no memory of their own */
    KEPT_ARGS = 1024, /* and with more than this many, they give it back */
};
#define LINGER_NS (2 * BLZ_SEC)

/* Awaits the end of the connection, after the last reply: see stop. */
struct linger {
    BLZ_FRAME;
    blz_tcp conn;
    int64_t n, deadline_ns;
    blz_buf buf;
    blz_timeout limit;
    blz_io io;
};

/* Awaits the end of a subscriber's task. */
struct leave {
    BLZ_FRAME;
    struct client *client;
    int64_t rc;
    blz_timeout limit;
    blz_handle_join_op join;
};

struct connection {
    BLZ_FRAME;
    struct client client;
    blz_buf lent;      /* what has come, or else */
    struct bytes rest; /* what is left of earlier, and what has come behind it */
    size_t used;       /* so much of either has been carried out */
    struct resp_request request;
    struct resp_span few[FEW_ARGS];
    int64_t rc;
    bool more; /* what has come waits for room in `out` */
    blz_io io;
    union {
        blz_notify_op wait;
        struct linger linger;
        struct leave leave;
    };
};

/* ---- in ---- */

/* Room behind the rest for what comes next: how much to read. 0: no memory. */
static size_t make_room(struct connection *c)
{
    size_t len = resp_missing(&c->request, c->rest.len);

    /* A long value is read in large pieces, but memory only grows with what has really come. */
    if (len > c->rest.len)
        len = c->rest.len;
    if (len < READ_SIZE)
        len = READ_SIZE;
    return bytes_reserve(&c->rest, len) ? len : 0;
}

static blz_future *receive(struct connection *c)
{
    size_t len;

    if (c->rest.len == 0)
        return blz_tcp_read_lease(&c->io, &c->client.conn, &c->lent);
    len = make_room(c);
    if (len == 0)
        return blz_ready(&c->io.future, -ENOMEM);
    return blz_tcp_read(&c->io, &c->client.conn, c->rest.data + c->rest.len, len);
}

/* Keeps what has not been carried out, and gives the buffer back. */
static void keep_rest(struct connection *c)
{
    if (c->lent.data) {
        bytes_add(&c->rest, c->lent.data + c->used, c->lent.len - c->used);
        blz_buf_release(&c->lent);
    } else if (c->used == c->rest.len) {
        bytes_clear(&c->rest);
    } else if (c->used > 0) {
        c->rest.len -= c->used;
        memmove(c->rest.data, c->rest.data + c->used, c->rest.len);
    }
    c->used = 0;
}

/* ---- requests ---- */

static void free_args(struct connection *c)
{
    const struct resp_request *r = &c->request;

    if (r->args == c->few)
        return;
    free(r->args);
    budget_give(&c->client.server->buffers, r->room * sizeof *r->args);
}

static void begin_request(struct connection *c)
{
    struct resp_request *r = &c->request;

    if (r->room > KEPT_ARGS) {
        free_args(c);
        r->room = 0;
    }
    *r = (struct resp_request){.args = r->room > FEW_ARGS ? r->args : c->few,
                               .room = r->room > FEW_ARGS ? r->room : FEW_ARGS};
}

static bool grow_args(struct connection *c)
{
    struct resp_request *r = &c->request;
    struct resp_span *old = r->args == c->few ? NULL : r->args, *args;
    size_t more = (old ? 1u : 2u) * r->room * sizeof *args;

    if (!budget_take(&c->client.server->buffers, more))
        return false;
    args = realloc(old, 2u * r->room * sizeof *args);
    if (!args) {
        budget_give(&c->client.server->buffers, more);
        return false;
    }
    if (!old)
        memcpy(args, c->few, sizeof c->few);
    r->args = args;
    r->room *= 2;
    return true;
}

/* The next request that is complete: RESP_READY, RESP_MORE, or one that ends the connection. */
static int next_request(struct connection *c, char *buf, size_t len)
{
    int rc;

    while ((rc = resp_parse(&c->request, buf, len)) == RESP_FULL) {
        if (!grow_args(c)) {
            c->client.out.failed = true;
            return RESP_MORE;
        }
    }
    if (rc < 0) {
        reply_error(&c->client.out, "ERR %s", resp_error(rc));
        c->client.quit = true;
    }
    return rc;
}

/* Carries out what has come. True: as much of it as `out` has room for; there is more. */
static bool execute(struct connection *c)
{
    char *buf = c->lent.data ? c->lent.data : c->rest.data;
    size_t len = c->lent.data ? c->lent.len : c->rest.len;
    struct client *client = &c->client;
    unsigned nr = 0;

    while (!client->quit && client->out.len < OUT_HIGH &&
           next_request(c, buf + c->used, len - c->used) == RESP_READY) {
        if (c->request.nr_args > 0)
            command_run(client, buf + c->used, &c->request);
        c->used += c->request.at;
        begin_request(c);
        nr++;
    }
    atomic_fetch_add_explicit(&client->server->nr_commands, nr, memory_order_relaxed);
    return c->used < len && client->out.len >= OUT_HIGH && !client->quit;
}

/* ---- the end ---- */

/*
 * Says that nothing more will be sent, and waits a while for the client to end, too. To close while
 * it still sends would make the system drop what it has not read yet, such as the reply that says
 * what was wrong.
 */
BLZ_ASYNC(linger)
{
    BLZ_BEGIN;
    self->n = blz_tcp_shutdown(&self->conn, BLZ_SHUT_WRITE) == 0;
    self->deadline_ns = blz_deadline(LINGER_NS);
    while (self->n > 0) {
        BLZ_AWAIT(self->n,
                  blz_with_deadline(&self->limit, self->deadline_ns,
                                    blz_tcp_read_lease(&self->io, &self->conn, &self->buf)));
        blz_buf_release(&self->buf);
    }
    BLZ_END(self->n);
}

/* What is in the outbox is still sent, if the client takes it soon. */
BLZ_ASYNC(leave)
{
    BLZ_BEGIN;
    outbox_close(self->client->subscriber);
    BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, LINGER_NS,
                                         blz_handle_join(&self->join, &self->client->deliver)));
    if (self->rc < 0) {
        blz_handle_cancel(&self->client->deliver);
        BLZ_AWAIT_SHIELDED(self->rc, blz_handle_join(&self->join, &self->client->deliver));
    }
    subscriber_free(self->client->subscriber);
    self->client->subscriber = NULL;
    BLZ_END(0);
}

static void finish(struct connection *c)
{
    blz_tcp_close(&c->client.conn);
    blz_buf_release(&c->lent);
    bytes_free(&c->rest);
    bytes_free(&c->client.out);
    free_args(c);
    atomic_fetch_sub_explicit(&c->client.server->nr_clients, 1, memory_order_relaxed);
}

/* ---- all of it ---- */

/* Whether `out` is to be sent by the connection itself; a subscriber's is handed over here. */
static bool has_replies(struct client *client)
{
    if (!client->subscriber)
        return client->out.len > 0;
    if (client->out.len > 0)
        outbox_add(client->subscriber, client->out.data, client->out.len);
    bytes_clear(&client->out);
    return false;
}

BLZ_ASYNC(connection)
{
    BLZ_BEGIN;
    begin_request(self);
    do {
        BLZ_AWAIT(self->rc, receive(self));
        if (self->rc <= 0)
            break;
        if (self->rest.len > 0)
            self->rest.len += (size_t)self->rc;
        do {
            self->more = execute(self);
            keep_rest(self);
            if (self->client.out.failed || self->rest.failed) {
                self->rc = -ENOMEM;
                break;
            }
            if (has_replies(&self->client)) {
                BLZ_AWAIT_SHIELDED(self->rc,
                                   blz_tcp_write_all(&self->io, &self->client.conn,
                                                     self->client.out.data, self->client.out.len));
                bytes_clear(&self->client.out);
            }
            while (self->rc >= 0 && self->client.subscriber &&
                   outbox_is_high(self->client.subscriber))
                BLZ_AWAIT(self->rc,
                          blz_notify_await(&self->wait, &self->client.subscriber->drained));
        } while (self->rc >= 0 && self->more);
    } while (self->rc >= 0 && !self->client.quit);
    if (self->client.subscriber)
        BLZ_AWAIT_SHIELDED(self->rc, BLZ_FUTURE(self->leave, leave, .client = &self->client));
    if (self->client.quit)
        BLZ_CALL(self->rc, self->linger, linger, .conn = self->client.conn);
    finish(self);
    BLZ_END(self->rc);
}

int connection_spawn(struct server *server, blz_tcp conn)
{
    static const char full[] = "-ERR max number of clients reached\r\n";
    uint64_t id = atomic_fetch_add_explicit(&server->nr_connections, 1, memory_order_relaxed) + 1u;
    int rc;

    if (atomic_fetch_add_explicit(&server->nr_clients, 1, memory_order_relaxed) >=
        server->max_clients) {
        atomic_fetch_add_explicit(&server->nr_refused, 1, memory_order_relaxed);
        blz_ignore(blz_tcp_try_write(&conn, full, sizeof full - 1));
        rc = -EMFILE;
    } else {
        rc = BLZ_SPAWN(connection, .client.server = server, .client.conn = conn, .client.id = id,
                       .client.proto = 2, .client.out.budget = &server->buffers,
                       .rest.budget = &server->buffers);
    }
    if (rc < 0)
        atomic_fetch_sub_explicit(&server->nr_clients, 1, memory_order_relaxed);
    return rc;
}
