/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix datagram sockets. A socket that is connected learns when its receiver has room again. One
 * that is not learns nothing: it counts as writable, and sending fails all the same; so that is
 * an error, instead of a wait that would end never, or burn CPU.
 *
 * Sending is never left to io_uring: the system copies a datagram before it finds that there is no
 * room, and the ring then tries again with what is left of it, which is nothing (Linux 6.18).
 */
#include <blitz/unix.h>

#include "net/msg.h"

#include <blitz/fd.h>
#include <blitz/error.h>

NET_OPTIONS(unix_dgram, blz_unix_dgram);

/* ---- sockets ---- */

int blz_unix_dgram_bind_with(blz_unix_dgram *dgram, const blz_addr *addr,
                             const blz_unix_dgram_options *options)
{
    blz_rt *rt = options ? options->rt : NULL;
    blz__fd_ref ref;
    int rc;

    *dgram = (blz_unix_dgram){NULL, 0};
    if (addr && blz_addr_family(addr) != BLZ_ADDR_UNIX)
        return -EAFNOSUPPORT;
    rc = blz__net_socket(&ref, rt ? rt : blz_rt_current(), BLZ_ADDR_UNIX, BLZ__SOCKET_DATAGRAM,
                         FD_SHARED);
    if (rc < 0)
        return rc;
    if (addr)
        rc = blz__net_bind(&ref, addr);
    if (rc < 0) {
        blz__fd_close(&ref);
        return rc;
    }
    *dgram = (blz_unix_dgram){ref.entry, ref.generation};
    return 0;
}

int blz_unix_dgram_bind(blz_unix_dgram *dgram, const char *address)
{
    blz_addr addr;
    int rc = blz_addr_parse(&addr, address);

    *dgram = (blz_unix_dgram){NULL, 0};
    return rc < 0 ? rc : blz_unix_dgram_bind_with(dgram, &addr, NULL);
}

int blz_unix_dgram_pair(blz_unix_dgram *a, blz_unix_dgram *b, blz_rt *rt)
{
    return blz__unix_pair(net_mutable_ref(a), net_mutable_ref(b), rt, BLZ__SOCKET_DATAGRAM,
                          FD_SHARED);
}

int blz_unix_dgram_from_fd(blz_unix_dgram *dgram, blz_sysfd fd, blz_rt *rt)
{
    *dgram = (blz_unix_dgram){NULL, 0};
    return blz__net_from_fd(net_mutable_ref(dgram), rt, fd,
                            (struct blz__socket_kind){BLZ_ADDR_UNIX, BLZ__SOCKET_DATAGRAM, false},
                            FD_SHARED);
}

int64_t blz_unix_dgram_into_fd(blz_unix_dgram *dgram)
{
    return blz__net_into_fd(net_mutable_ref(dgram));
}

int blz_unix_dgram_connect(const blz_unix_dgram *dgram, const blz_addr *addr)
{
    return blz__net_connect_now(net_ref(dgram), addr);
}

int blz_unix_dgram_close(blz_unix_dgram *dgram)
{
    return net_close(net_mutable_ref(dgram));
}

int blz_unix_dgram_local_addr(const blz_unix_dgram *dgram, blz_addr *addr)
{
    return blz__net_local_addr(net_ref(dgram), addr);
}

/* ---- receiving ---- */

blz_future *blz_unix_dgram_recv(blz_msg *msg, const blz_unix_dgram *dgram, void *buf, size_t len,
                                blz_addr *from)
{
    static const blz_future_ops ops = NET_RECV("unix_dgram_recv");
    return blz__msg_recv(msg, &ops, net_ref(dgram), buf, len, &(struct msg_extras){.from = from});
}

blz_future *blz_unix_dgram_recv_fds(blz_msg *msg, const blz_unix_dgram *dgram, void *buf,
                                    size_t len, blz_sysfd *fds, size_t max)
{
    static const blz_future_ops ops = NET_RECV("unix_dgram_recv_fds");
    return blz__msg_recv(msg, &ops, net_ref(dgram), buf, len,
                         &(struct msg_extras){.fds = fds, .nr_fds = max});
}

/* ---- sending ---- */

/*
 * To an address: not now, although the socket itself has room, means that the receiver has none. A
 * connected socket counts as writable when its receiver has.
 */
static int64_t send_now(struct io *io, int fd)
{
    const struct msg *m = (const struct msg *)(void *)io;
    int64_t n = blz__message_send(fd, &m->message);

    if (n != -EAGAIN || !m->message.addr)
        return n;
    return blz__socket_events(fd, BLZ_FD_WRITE) > 0 ? -ENOBUFS : -EAGAIN;
}

/* Called when the socket is ready, never left to io_uring: see above. */
static blz_future *send_message(blz_msg *msg, const blz_future_ops *ops,
                                const blz_unix_dgram *dgram, const void *buf, size_t len,
                                const struct msg_extras *extras)
{
    static const struct io_call call = {send_now};
    blz_future *future = blz__msg_send(msg, ops, net_ref(dgram), buf, len, extras);
    struct io *io = (struct io *)future;

    io->op.kind = IO_CALL;
    io->call.by = &call;
    io->call.events = BLZ_FD_WRITE;
    return future;
}

blz_future *blz_unix_dgram_send(blz_msg *msg, const blz_unix_dgram *dgram, const void *buf,
                                size_t len)
{
    static const blz_future_ops ops = NET_OP("unix_dgram_send");
    return send_message(msg, &ops, dgram, buf, len, &(struct msg_extras){.to = NULL});
}

blz_future *blz_unix_dgram_send_fds(blz_msg *msg, const blz_unix_dgram *dgram, const void *buf,
                                    size_t len, const blz_sysfd *fds, size_t nr_fds)
{
    static const blz_future_ops ops = NET_OP("unix_dgram_send_fds");
    return send_message(msg, &ops, dgram, buf, len,
                        &(struct msg_extras){.sent_fds = fds, .nr_fds = nr_fds});
}

blz_future *blz_unix_dgram_send_to(blz_msg *msg, const blz_unix_dgram *dgram, const void *buf,
                                   size_t len, const blz_addr *to)
{
    static const blz_future_ops ops = NET_OP("unix_dgram_send_to");
    return send_message(msg, &ops, dgram, buf, len, &(struct msg_extras){.to = to});
}
