/* SPDX-License-Identifier: Apache-2.0 */
/* TCP connections: operations on an adopted socket. See blitz/tcp.h. */
#include <blitz/tcp.h>

#include "net/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

_Static_assert(sizeof(blz_tcp) == sizeof(blz__fd_ref), "a handle is a reference");

/* ---- reading and writing ---- */

/* clang-format off */
#define NET_OP(what) {.name = (what), .poll = blz__io_poll, .cancel = blz__io_cancel}
/* clang-format on */

blz_future *blz_tcp_read(blz_io *io, const blz_tcp *conn, void *buf, size_t len)
{
    static const blz_future_ops ops = NET_OP("tcp_read");
    return blz__io_init(io, &ops, IO_READ, net_ref(conn), buf, len);
}

static blz_future *all_of_it(blz_future *io)
{
    ((struct io *)io)->flags |= IO_ALL;
    return io;
}

blz_future *blz_tcp_read_exact(blz_io *io, const blz_tcp *conn, void *buf, size_t len)
{
    static const blz_future_ops ops = NET_OP("tcp_read_exact");
    return all_of_it(blz__io_init(io, &ops, IO_READ, net_ref(conn), buf, len));
}

blz_future *blz_tcp_peek(blz_io *io, const blz_tcp *conn, void *buf, size_t len)
{
    static const blz_future_ops ops = NET_OP("tcp_peek");
    return blz__io_init(io, &ops, IO_PEEK, net_ref(conn), buf, len);
}

/* The array is only read, whatever the system's prototypes say. */
static void *iovec_of(const blz_iovec *iov)
{
    return (void *)(uintptr_t)iov;
}

blz_future *blz_tcp_readv(blz_io *io, const blz_tcp *conn, const blz_iovec *iov, size_t count)
{
    static const blz_future_ops ops = NET_OP("tcp_readv");
    return blz__io_init(io, &ops, IO_READV, net_ref(conn), iovec_of(iov), count);
}

blz_future *blz_tcp_read_lease(blz_io *io, const blz_tcp *conn, blz_buf *buf)
{
    static const blz_future_ops ops = NET_OP("tcp_read_lease");

    *buf = (blz_buf){NULL, 0, NULL};
    return blz__io_init(io, &ops, IO_LEASE, net_ref(conn), buf, 0);
}

blz_future *blz_tcp_write(blz_io *io, const blz_tcp *conn, const void *buf, size_t len)
{
    static const blz_future_ops ops = NET_OP("tcp_write");
    return blz__io_init(io, &ops, IO_WRITE, net_ref(conn), (void *)(uintptr_t)buf, len);
}

blz_future *blz_tcp_write_all(blz_io *io, const blz_tcp *conn, const void *buf, size_t len)
{
    static const blz_future_ops ops = NET_OP("tcp_write_all");
    return all_of_it(blz__io_init(io, &ops, IO_WRITE, net_ref(conn), (void *)(uintptr_t)buf, len));
}

blz_future *blz_tcp_writev(blz_io *io, const blz_tcp *conn, const blz_iovec *iov, size_t count)
{
    static const blz_future_ops ops = NET_OP("tcp_writev");
    return blz__io_init(io, &ops, IO_WRITEV, net_ref(conn), iovec_of(iov), count);
}

/* ---- connecting ---- */

/* At the first poll, because a future that is never polled must not own a socket. */
static int open_socket(struct io *io, blz_cx *cx)
{
    const struct sockaddr *sa = io->buf;
    blz__fd_ref ref;
    int rc;

    if (io->len == 0 || (sa->sa_family != AF_INET && sa->sa_family != AF_INET6))
        return -EAFNOSUPPORT;
    rc = blz__socket_new(&ref, blz_cx_rt(cx), sa->sa_family, SOCK_STREAM, FD_STREAM);
    if (rc < 0)
        return rc;
    blz__socket_set(&ref, IPPROTO_TCP, TCP_NODELAY, 1);
    io->fd = ref.entry;
    io->generation = (uint32_t)ref.generation;
    return 0;
}

static blz_poll connect_poll(blz_future *self, blz_cx *cx)
{
    struct io *io = (struct io *)self;
    blz_tcp *conn = io->extra;
    int rc;

    if (!io->fd) {
        rc = open_socket(io, cx);
        if (rc < 0)
            return blz_future_done(self, rc);
    }
    if (blz__io_poll(self, cx) == BLZ_PENDING)
        return BLZ_PENDING;
    blz__fd_ref ref = {io->fd, io->generation};
    if (self->result >= 0)
        *conn = (blz_tcp){ref.entry, ref.generation};
    else
        blz__fd_close(&ref, NULL);
    return BLZ_READY;
}

blz_future *blz_tcp_connect(blz_io *io, blz_tcp *conn, const blz_addr *addr)
{
    static const blz_future_ops ops = {.name = "tcp_connect",
                                       .poll = connect_poll,
                                       .cancel = blz__io_cancel};
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(addr, &len);

    *conn = (blz_tcp){NULL, 0};
    blz__io_init(io, &ops, IO_CONNECT, net_ref(conn), (void *)(uintptr_t)sa, len);
    ((struct io *)io)->extra = conn;
    return &io->future;
}

/* ---- ending, asking ---- */

int blz_tcp_shutdown(const blz_tcp *conn, int how)
{
    return blz__socket_shutdown(net_ref(conn), how);
}

int blz_tcp_close(blz_tcp *conn)
{
    int rc = blz__fd_close(net_mutable_ref(conn), NULL);

    *conn = (blz_tcp){NULL, 0};
    return rc;
}

int blz_tcp_local_addr(const blz_tcp *conn, blz_addr *addr)
{
    return blz__socket_local_addr(net_ref(conn), addr);
}

int blz_tcp_peer_addr(const blz_tcp *conn, blz_addr *addr)
{
    return blz__socket_peer_addr(net_ref(conn), addr);
}
