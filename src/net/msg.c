/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages: a blz_msg has room for the description of a message (system/message.h), so that nothing
 * is allocated.
 *
 * An address is received straight into the caller's blz_addr, descriptors into the caller's array;
 * those that the caller has no room for are closed. As every operation here is either carried out
 * or not, a cancellation cannot lose any: an operation that received some has a result.
 */
#include "net/msg.h"

#include <blitz/error.h>
#include <string.h>

/* ---- receiving ---- */

blz_poll blz__msg_recv_poll(blz_future *self, blz_cx *cx)
{
    struct msg *m = (struct msg *)self;

    if (blz_is_pending(blz__io_poll(self, cx)))
        return BLZ_PENDING;
    if (self->result < 0)
        return BLZ_READY;
    m->flags = m->message.flags;
    m->segment = m->message.segment;
    m->nr_fds = m->message.nr_fds;
    return BLZ_READY;
}

/* ---- beginning ---- */

static blz_poll invalid_poll(blz_future *self, blz_cx *cx)
{
    (void)cx;
    return blz_future_done(self, -EINVAL);
}

void blz__msg_refuse(blz_msg *msg)
{
    static const blz_future_ops ops = {.name = "invalid_message", .poll = invalid_poll};

    msg->io.future.ops = &ops;
}

static struct msg *init(blz_msg *msg, const blz_future_ops *ops, enum io_kind kind,
                        const blz__fd_ref *ref, void *buf, size_t len)
{
    struct msg *m = msg_of(msg);

    /* first: checks that it is not in use */
    blz__io_prepare(&msg->io, ops, kind, ref)->message.message = &m->message;
    m->flags = m->segment = m->nr_fds = 0;
    m->piece = (blz_iovec){buf, len};
    m->message = (blz__socket_message){.pieces = &m->piece, .nr_pieces = 1};
    if (!length_is_valid(len))
        blz__msg_refuse(msg);
    return m;
}

blz_future *blz__msg_recv(blz_msg *msg, const blz_future_ops *ops, const blz__fd_ref *ref,
                          void *buf, size_t len, const struct msg_extras *extras)
{
    struct msg *m = init(msg, ops, IO_RECVMSG, ref, buf, len);

    if (!length_is_valid(extras->nr_fds))
        blz__msg_refuse(msg);
    m->message.addr = extras->from;
    m->message.fds = extras->fds;
    m->message.max_fds = extras->nr_fds < UINT32_MAX ? (uint32_t)extras->nr_fds : UINT32_MAX;
    m->message.peeks = extras->peeks;
    m->message.wants_extras = extras->wants_control;
    return &msg->io.future;
}

blz_future *blz__msg_send(blz_msg *msg, const blz_future_ops *ops, const blz__fd_ref *ref,
                          const void *buf, size_t len, const struct msg_extras *extras)
{
    struct msg *m = init(msg, ops, IO_SENDMSG, ref, net_bytes(buf), len);

    m->message.addr = net_bytes(extras->to);
    m->message.segment = extras->segment;
    if (extras->nr_fds > BLZ_MSG_FDS) {
        blz__msg_refuse(msg);
    } else if (extras->nr_fds > 0) {
        memcpy(m->fds, extras->sent_fds, extras->nr_fds * sizeof *m->fds);
        m->message.fds = m->fds;
        m->message.nr_fds = (uint32_t)extras->nr_fds;
    }
    return &msg->io.future;
}
