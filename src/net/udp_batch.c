/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of datagrams, which no driver moves by itself: the system is called when the socket is
 * ready.
 */
#include <blitz/fd.h>
#include <blitz/udp.h>

#include "net/msg.h"

static int64_t recv_batch(struct io *io, int fd)
{
    const struct msg *m = (const struct msg *)(void *)io;

    return blz__message_recv_batch(fd, m->datagrams, m->nr_datagrams);
}

static int64_t send_batch(struct io *io, int fd)
{
    const struct msg *m = (const struct msg *)(void *)io;

    return blz__message_send_batch(fd, m->datagrams, m->nr_datagrams);
}

/* ---- the operations ---- */

/* Without any there is nothing to wait for. */
static blz_poll batch_poll(blz_future *self, blz_cx *cx)
{
    if (((struct msg *)self)->nr_datagrams == 0)
        return blz_future_done(self, 0);
    return blz__io_poll(self, cx);
}

static bool is_valid(const struct msg *m)
{
    if (!length_is_valid(m->nr_datagrams))
        return false;
    for (unsigned i = 0; i < m->nr_datagrams && i < BLZ__MESSAGE_BATCH; i++)
        if (!length_is_valid(m->datagrams[i].len))
            return false;
    return true;
}

static blz_future *init(blz_msg *msg, const blz_future_ops *ops, const blz__fd_ref *ref,
                        const struct io_call *call, unsigned events, blz_datagram *datagrams,
                        size_t count)
{
    struct msg *m = msg_of(msg);
    struct io *io = blz__io_prepare(&msg->io, ops, IO_CALL, ref);

    io->call.by = call;
    io->call.events = events;
    m->flags = m->segment = m->nr_fds = 0;
    m->datagrams = datagrams;
    m->nr_datagrams = count;
    if (!is_valid(m))
        blz__msg_refuse(msg);
    return &msg->io.future;
}

blz_future *blz_udp_recv_batch(blz_msg *msg, const blz_udp *udp, blz_datagram *datagrams,
                               size_t count)
{
    static const blz_future_ops ops = {.name = "udp_recv_batch",
                                       .poll = batch_poll,
                                       .cancel = blz__io_cancel,
                                       .describe_wait = blz__io_describe};
    static const struct io_call call = {recv_batch};

    return init(msg, &ops, net_ref(udp), &call, BLZ_FD_READ, datagrams, count);
}

blz_future *blz_udp_send_batch(blz_msg *msg, const blz_udp *udp, blz_datagram *datagrams,
                               size_t count)
{
    static const blz_future_ops ops = {.name = "udp_send_batch",
                                       .poll = batch_poll,
                                       .cancel = blz__io_cancel,
                                       .describe_wait = blz__io_describe};
    static const struct io_call call = {send_batch};

    return init(msg, &ops, net_ref(udp), &call, BLZ_FD_WRITE, datagrams, count);
}
