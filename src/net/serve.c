/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serving: an acceptor on every worker, each with a socket of its own at the listener's address,
 * so that the system spreads connections over workers and no accept is ever done for another
 * worker. The acceptors are pinned tasks, children of a scope in the operation; whichever ends
 * first ends them all, and the operation ends when they have.
 *
 * The worker that begins uses the listener's own socket. The others are opened before the first
 * acceptor runs. One that cannot be opened (too many descriptors) is done without. Unix sockets
 * cannot share an address: theirs has one acceptor.
 */
#include <blitz/async.h>
#include <blitz/runtime.h>
#include <blitz/tcp.h>
#include <blitz/unix.h>

#include "net/socket.h"

#include <blitz/error.h>

/* What is to be called: one of the functions, the other is NULL. */
struct taker {
    int (*on_tcp)(blz_tcp conn, void *arg);
    int (*on_unix)(blz_unix conn, void *arg);
    void *arg;
};

static int give_to(const struct taker *taker, blz__fd_ref conn)
{
    if (taker->on_tcp)
        return taker->on_tcp((blz_tcp){conn.entry, conn.generation}, taker->arg);
    return taker->on_unix((blz_unix){conn.entry, conn.generation}, taker->arg);
}

struct serve {
    blz_future future;
    blz__fd_ref listener;
    struct taker taker;
    blz_scope scope;
    blz_scope_op wait;
    int rc; /* of beginning */
};

_Static_assert(sizeof(struct serve) <= sizeof(blz_serve_op), "a serve_op has room");

/* ---- one acceptor ---- */

struct acceptor {
    BLZ_FRAME;
    blz__fd_ref socket;   /* accepts from it */
    blz__fd_ref listener; /* gets what is left over; is the same, or not */
    struct taker taker;
    blz__fd_ref conn;
    int64_t rc;
    blz_io io;
};

BLZ_ASYNC(acceptor)
{
    BLZ_BEGIN;
    for (;;) {
        BLZ_AWAIT(self->rc, blz__accept_init(&self->io, &self->socket, &self->conn,
                                             self->taker.on_tcp != NULL));
        if (self->rc < 0)
            break;
        if (give_to(&self->taker, self->conn) < 0)
            blz__fd_close(&self->conn);
    }
    if (self->socket.entry != self->listener.entry)
        blz__listener_retire(&self->socket, &self->listener);
    BLZ_END(self->rc);
}

static int spawn_acceptor(struct serve *s, blz__fd_ref socket, unsigned worker)
{
    struct acceptor frame = {.blz_frame.ops = &acceptor_ops,
                             .socket = socket,
                             .listener = s->listener,
                             .taker = s->taker};
    blz_spawn_args args = {.scope = &s->scope, .pinned = true, .site = "acceptor of blz_tcp_serve"};

    return blz__spawn_pinned(&args, &frame, sizeof frame, worker);
}

/* ---- all of them ---- */

/* 1 or 0; or -EBADF. */
static int is_spread(const blz__fd_ref *listener)
{
    int fd = blz__fd_acquire(listener), spread;

    if (fd < 0)
        return fd;
    spread = (listener->entry->flags & FD_SPREAD) != 0;
    blz__fd_release(listener);
    return spread;
}

/* Sockets for the workers 0 to n - 1 but `self`. Those that cannot be opened are none. */
static void open_sockets(const struct serve *s, blz_rt *rt, blz__fd_ref *sockets, unsigned n,
                         unsigned self)
{
    for (unsigned i = 0; i < n; i++) {
        sockets[i] = (blz__fd_ref){NULL, 0};
        if (i != self && blz__listener_clone(&sockets[i], rt, &s->listener) < 0)
            sockets[i] = (blz__fd_ref){NULL, 0};
    }
}

static int spawn_others(struct serve *s, blz_rt *rt, unsigned self)
{
    unsigned n = blz_rt_workers(rt);
    size_t size = n * sizeof(blz__fd_ref);
    blz__fd_ref *sockets = blz__rt_alloc(rt, size, _Alignof(blz__fd_ref));
    int rc = 0;

    if (!sockets)
        return -ENOMEM;
    open_sockets(s, rt, sockets, n, self);
    for (unsigned i = 0; i < n; i++) {
        if (!sockets[i].entry)
            continue;
        if (rc == 0)
            rc = spawn_acceptor(s, sockets[i], i);
        if (rc < 0)
            blz__listener_retire(&sockets[i], &s->listener);
    }
    blz__rt_free(rt, sockets, size, _Alignof(blz__fd_ref));
    return rc;
}

static void begin(struct serve *s, blz_cx *cx)
{
    unsigned self = blz__worker_index();

    blz_scope_init(&s->scope, BLZ_SCOPE_FAIL_FAST | BLZ_SCOPE_DISCARD);
    s->rc = is_spread(&s->listener);
    if (s->rc > 0)
        s->rc = spawn_others(s, blz_cx_rt(cx), self);
    if (s->rc == 0)
        s->rc = spawn_acceptor(s, s->listener, self);
    if (s->rc < 0)
        blz_scope_cancel(&s->scope);
    s->future.child = blz_scope_join(&s->wait, &s->scope);
}

static blz_poll serve_poll(blz_future *self, blz_cx *cx)
{
    struct serve *s = (struct serve *)self;

    if (!self->child) {
        if (blz_cancelled(cx))
            return blz_future_done(self, -ECANCELED);
        if (!cx->worker)
            return blz_future_done(self, -ENXIO); /* blz_wait: tasks have to be spawned */
        begin(s, cx);
        self->line = BLZ_LINE_BEGUN;
    }
    if (blz_is_pending(self->child->ops->poll(self->child, cx)))
        return BLZ_PENDING;
    int64_t result = s->rc < 0 ? s->rc : self->child->result;
    self->child = NULL;
    return blz_future_done(self, result);
}

static blz_future *init(blz_serve_op *op, const blz_future_ops *ops, const blz__fd_ref *listener,
                        struct taker taker)
{
    struct serve *s = (struct serve *)op;

    blz_op_check(&s->future, ops);
    *s = (struct serve){.future = {.ops = ops}, .listener = *listener, .taker = taker};
    return &s->future;
}

blz_future *blz_tcp_serve(blz_serve_op *op, const blz_tcp_listener *listener,
                          int (*on_conn)(blz_tcp conn, void *arg), void *arg)
{
    static const blz_future_ops ops = {.name = "tcp_serve", .poll = serve_poll};

    return init(op, &ops, net_ref(listener), (struct taker){.on_tcp = on_conn, .arg = arg});
}

blz_future *blz_unix_serve(blz_serve_op *op, const blz_unix_listener *listener,
                           int (*on_conn)(blz_unix conn, void *arg), void *arg)
{
    static const blz_future_ops ops = {.name = "unix_serve", .poll = serve_poll};

    return init(op, &ops, net_ref(listener), (struct taker){.on_unix = on_conn, .arg = arg});
}
