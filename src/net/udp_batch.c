/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of datagrams: recvmmsg and sendmmsg, which the kernel does not do by itself, so they are
 * called when the socket is ready. What they want is put together on the stack, for up to 32 at a
 * time, and taken apart again.
 */
#include <blitz/udp.h>

#include "net/msg.h"

#include "system/linux/refused.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>

enum { BATCH = 32 };

struct batch {
    struct mmsghdr headers[BATCH];
    struct iovec iov[BATCH];
    _Alignas(struct cmsghdr) char control[BATCH][CMSG_SPACE(sizeof(int))];
};

static unsigned batch_size(const struct msg *m)
{
    return m->max < BATCH ? (unsigned)m->max : BATCH;
}

/* ---- receiving ---- */

static void prepare_recv(struct batch *b, blz_datagram *datagrams, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        blz_datagram *d = &datagrams[i];
        b->iov[i] = (struct iovec){d->data, d->len};
        b->headers[i].msg_hdr = (struct msghdr){.msg_iov = &b->iov[i],
                                                .msg_iovlen = 1,
                                                .msg_name = d->addr.storage,
                                                .msg_namelen = sizeof d->addr.storage,
                                                .msg_control = b->control[i],
                                                .msg_controllen = sizeof b->control[i]};
    }
}

static uint32_t segment_of(struct msghdr *header)
{
    const struct cmsghdr *c = CMSG_FIRSTHDR(header);
    int size;

    if (!c || c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_GRO)
        return 0;
    memcpy(&size, CMSG_DATA(c), sizeof size);
    return (uint32_t)size;
}

static void finish_recv(struct batch *b, blz_datagram *datagrams, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct msghdr *header = &b->headers[i].msg_hdr;
        blz_datagram *d = &datagrams[i];
        blz__msg_fix_addr(&d->addr, header->msg_namelen);
        d->received = b->headers[i].msg_len;
        d->flags = header->msg_flags & MSG_TRUNC ? BLZ_MSG_TRUNCATED : 0;
        d->segment = segment_of(header);
    }
}

/* Where a filter refuses recvmmsg: one at a time. */
static BLZ_COLD int receive_one(struct batch *b, int fd)
{
    ssize_t n = recvmsg(fd, &b->headers[0].msg_hdr, MSG_DONTWAIT);

    b->headers[0].msg_len = (unsigned)n;
    return n < 0 ? -1 : 1;
}

static int64_t call_recvmmsg(struct io *io, int fd)
{
    const struct msg *m = (const struct msg *)(void *)io;
    struct batch batch;
    int n;

    prepare_recv(&batch, m->items, batch_size(m));
    do {
        n = recvmmsg(fd, batch.headers, batch_size(m), MSG_DONTWAIT, NULL);
        if (blz_unlikely(n < 0 && sys_is_refused(errno)))
            n = receive_one(&batch, fd);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    finish_recv(&batch, m->items, (unsigned)n);
    return n;
}

/* ---- sending ---- */

static void prepare_send(struct batch *b, const blz_datagram *datagrams, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const blz_datagram *d = &datagrams[i];
        uint32_t len;
        const struct sockaddr *to = blz_addr_sockaddr(&d->addr, &len);
        b->iov[i] = (struct iovec){d->data, d->len};
        b->headers[i].msg_hdr = (struct msghdr){.msg_iov = &b->iov[i],
                                                .msg_iovlen = 1,
                                                .msg_name = len ? net_bytes(to) : NULL,
                                                .msg_namelen = len};
    }
}

/* Where a filter refuses sendmmsg: one at a time. */
static BLZ_COLD int send_one(const struct batch *b, int fd)
{
    return sendmsg(fd, &b->headers[0].msg_hdr, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 1;
}

static int64_t call_sendmmsg(struct io *io, int fd)
{
    const struct msg *m = (const struct msg *)(void *)io;
    struct batch batch;
    int n;

    prepare_send(&batch, m->items, batch_size(m));
    do {
        n = sendmmsg(fd, batch.headers, batch_size(m), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (blz_unlikely(n < 0 && sys_is_refused(errno)))
            n = send_one(&batch, fd);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* ---- the operations ---- */

/* Without any there is nothing to wait for. */
static blz_poll batch_poll(blz_future *self, blz_cx *cx)
{
    if (((struct msg *)self)->max == 0)
        return blz_future_done(self, 0);
    return blz__io_poll(self, cx);
}

static bool is_valid(const struct msg *m)
{
    const blz_datagram *datagrams = m->items;

    if (!length_is_valid(m->max))
        return false;
    for (unsigned i = 0; i < batch_size(m); i++)
        if (!length_is_valid(datagrams[i].len))
            return false;
    return true;
}

static blz_future *init(blz_msg *msg, const blz_future_ops *ops, const blz__fd_ref *ref,
                        const struct io_call *call, short events, blz_datagram *datagrams,
                        size_t count)
{
    struct msg *m = msg_of(msg);

    blz__io_init(&msg->io, ops, IO_CALL, ref, net_bytes(call), (size_t)events);
    m->flags = m->segment = m->nr_fds = 0;
    m->items = datagrams;
    m->max = count;
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
                                       .look = blz__io_look};
    static const struct io_call call = {call_recvmmsg};

    return init(msg, &ops, net_ref(udp), &call, POLLIN, datagrams, count);
}

blz_future *blz_udp_send_batch(blz_msg *msg, const blz_udp *udp, blz_datagram *datagrams,
                               size_t count)
{
    static const blz_future_ops ops = {.name = "udp_send_batch",
                                       .poll = batch_poll,
                                       .cancel = blz__io_cancel,
                                       .look = blz__io_look};
    static const struct io_call call = {call_sendmmsg};

    return init(msg, &ops, net_ref(udp), &call, POLLOUT, datagrams, count);
}
