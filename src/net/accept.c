/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepting a connection, for every kind of listener.
 *
 * Errors of a single connection (it was gone before we got to it, the network is in trouble) are
 * passed over: the next one may be fine. When descriptors or memory have run out, trying again at
 * once would only burn CPU, since the connection stays in the queue and the listener readable; so
 * the accept pauses, 10 ms at first and each time twice as long, up to a second, and tries again.
 *
 *   what             event                    what happens
 *   ----------------------------------------------------------------------------------------
 *   accepting        a connection             ready; if cancelled, into the backlog
 *   accepting        passing trouble          begins anew
 *   accepting        out of something         pauses
 *   pausing          the timer has fired      begins anew
 *   pausing          cancelled                -ECANCELED
 *
 * A connection that comes with a cancellation goes into the backlog of the listener (io/backlog.c).
 */
#include "net/socket.h"

#include "base/assert.h"
#include "system/socket.h"
#include "time/time.h"

#include <blitz/wait_info.h>
#include <blitz/error.h>

enum { FIRST_PAUSE_MS = 10, LONGEST_PAUSE_MS = 1000 };

static bool is_pausing(const blz_future *self)
{
    return ((const struct io_pause *)self)->kind == IO_ACCEPT_PAUSE;
}

/* ---- sockets beside a listener ---- */

/* Accepts what the system has for it already. */
static void accept_waiting(int fd, const blz__fd_ref *heir)
{
    blz_rt *rt = blz_rt_current();
    int mode = blz__io_mode(rt);
    int64_t conn;

    while ((conn = blz__socket_accept(fd, mode & FD_NONBLOCK)) >= 0) {
        blz__fd_ref ref;
        if (blz__net_adopt(&ref, rt, (int)conn, FD_STREAM) == 0)
            blz__backlog_push(heir, ref);
    }
}

void blz__listener_retire(blz__fd_ref *clone, const blz__fd_ref *heir)
{
    blz__fd_ref conn;
    int fd = blz__fd_acquire(clone);

    if (fd < 0)
        return;
    while ((conn = blz__backlog_pop(clone)).entry)
        blz__backlog_push(heir, conn);
    accept_waiting(fd, heir);
    blz__fd_release(clone);
    net_close(clone);
}

/* ---- accepting ---- */

static const blz_future_ops tcp_accept_ops, unix_accept_ops;

static blz__fd_ref listener_of(const struct io *io)
{
    return (blz__fd_ref){io->fd, io->generation};
}

static bool is_passing_trouble(int64_t rc)
{
    switch (-rc) {
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return true;
    default:
        return false;
    }
}

static bool is_out_of_something(int64_t rc)
{
    return rc == -EMFILE || rc == -ENFILE || rc == -ENOBUFS || rc == -ENOMEM;
}

static void accept_prepare(blz_future *self, const blz_future_ops *ops, blz__fd_ref listener,
                           blz__fd_ref *conn, uint32_t pause_ms)
{
    struct io *io = blz__io_prepare((blz_io *)self, ops, IO_ACCEPT, &listener);

    io->accept.conn = conn;
    io->accept.pause_ms = pause_ms;
}

/* Begins again: the future may be a cancel scope, and keeps its flags. */
static void begin_anew(blz_future *self, blz__fd_ref listener, blz__fd_ref *conn, uint32_t pause_ms)
{
    uint32_t flags = self->flags;

    accept_prepare(self, self->ops, listener, conn, pause_ms);
    self->flags = flags;
}

static blz_poll begin_pause(blz_future *self, blz_cx *cx)
{
    struct io *io = (struct io *)self;
    struct io_pause *pause = (struct io_pause *)self;
    blz__fd_ref listener = listener_of(io);
    blz__fd_ref *conn = io->accept.conn;
    uint32_t ms = io->accept.pause_ms;

    BLZ_ASSERT(!is_pausing(self));
    pause->kind = IO_ACCEPT_PAUSE;
    pause->timer = (blz_timer){0};
    pause->listener = listener;
    pause->conn = conn;
    pause->pause_ms = ms;
    pause->cancelled = false;
    self->line = BLZ_LINE_BEGUN;
    blz_timer_wake_at(&pause->timer,
                      blz_time_add(blz__rt_now(blz_cx_rt(cx)), blz_time_of(ms, BLZ_MSEC)), cx);
    return BLZ_PENDING;
}

/* True: the pause is over, and the operation is an accept again. */
static bool end_pause(blz_future *self)
{
    struct io_pause *pause = (struct io_pause *)self;
    uint32_t next_ms = pause->pause_ms * 2;

    BLZ_ASSERT(is_pausing(self));
    if (blz_timer_is_armed(&pause->timer))
        return false;
    self->line = 0;
    begin_anew(self, pause->listener, pause->conn,
               next_ms < LONGEST_PAUSE_MS ? next_ms : LONGEST_PAUSE_MS);
    return true;
}

static blz_poll got_connection(blz_future *self, blz_cx *cx)
{
    struct io *io = (struct io *)self;
    blz__fd_ref *conn = io->accept.conn, listener = listener_of(io), ref;
    int rc = blz__net_adopt(&ref, blz_cx_rt(cx), (int)self->result,
                            self->ops == &unix_accept_ops ? 0 : FD_STREAM);

    if (rc == 0 && io_was_cancelled((const blz_io *)self)) {
        blz__backlog_push(&listener, ref);
        rc = -ECANCELED;
    } else if (rc == 0) {
        *conn = ref;
    } else if (rc == -ENOMEM && !io_was_cancelled((const blz_io *)self)) {
        return begin_pause(self, cx); /* that one is lost, but not the listener */
    }
    return blz_future_done(self, rc);
}

/* Takes a connection from the backlog; only before this accept has begun. */
static bool accept_from_backlog(blz_future *self)
{
    const struct io *io = (const struct io *)self;
    blz__fd_ref *conn = io->accept.conn, listener = listener_of(io);

    if ((io->flags & (IO_STARTED | IO_CANCELLED)) || !io->fd || backlog_is_empty(io->fd))
        return false;
    *conn = blz__backlog_pop(&listener);
    return conn->entry != NULL;
}

static blz_poll accept_poll(blz_future *self, blz_cx *cx)
{
    if (is_pausing(self)) {
        if (((struct io_pause *)self)->cancelled)
            return blz_future_done(self, -ECANCELED);
        if (!end_pause(self))
            return BLZ_PENDING;
    }
    for (;;) {
        struct io *io = (struct io *)self;
        if (accept_from_backlog(self))
            return blz_future_done(self, 0);
        if (blz_is_pending(blz__io_poll(self, cx)))
            return BLZ_PENDING;
        if (self->result >= 0)
            return got_connection(self, cx);
        if (!is_passing_trouble(self->result) && !is_out_of_something(self->result))
            return BLZ_READY;
        if (io_was_cancelled((blz_io *)self))
            return blz_future_done(self, -ECANCELED);
        if (is_out_of_something(self->result))
            return begin_pause(self, cx);
        begin_anew(self, listener_of(io), io->accept.conn, io->accept.pause_ms);
    }
}

static void accept_cancel(blz_future *self, blz_cx *cx)
{
    struct io_pause *pause = (struct io_pause *)self;

    if (!is_pausing(self)) {
        blz__io_cancel(self, cx);
        return;
    }
    pause->cancelled = true;
    blz_timer_cancel(&pause->timer);
}

static void accept_describe(const blz_future *self, blz_wait_info *info)
{
    if (!is_pausing(self))
        blz__io_describe(self, info);
}

static const blz_future_ops tcp_accept_ops = {.name = "tcp_accept",
                                              .poll = accept_poll,
                                              .cancel = accept_cancel,
                                              .describe_wait = accept_describe};
static const blz_future_ops unix_accept_ops = {.name = "unix_accept",
                                               .poll = accept_poll,
                                               .cancel = accept_cancel,
                                               .describe_wait = accept_describe};

blz_future *blz__accept_init(blz_io *io, const blz__fd_ref *listener, void *conn, bool is_tcp)
{
    blz__fd_ref *out = conn;

    *out = (blz__fd_ref){NULL, 0};
    accept_prepare(&io->future, is_tcp ? &tcp_accept_ops : &unix_accept_ops, *listener, out,
                   FIRST_PAUSE_MS);
    return &io->future;
}
