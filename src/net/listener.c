/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP listeners. A connection that the kernel hands over when nobody wants it any more (the accept
 * was cancelled, and lost the race) is kept in the listener's backlog, for the next accept.
 */
#include <blitz/tcp.h>

#include "net/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DEFAULT_BACKLOG = 4096 };

/* ---- listening ---- */

static int set_up(const blz__fd_ref *ref, const blz_addr *addr, const blz_listen_options *options)
{
    int rc = 0;

    if (!options->keep_addr)
        rc = blz__socket_set(ref, SOL_SOCKET, SO_REUSEADDR, 1);
    if (rc == 0 && options->reuse_port)
        rc = blz__socket_set(ref, SOL_SOCKET, SO_REUSEPORT, 1);
    if (rc == 0 && blz_addr_family(addr) == BLZ_ADDR_V6)
        rc = blz__socket_set(ref, IPPROTO_IPV6, IPV6_V6ONLY, options->v6_only);
    if (rc == 0 && !options->delay) /* connections inherit it */
        rc = blz__socket_set(ref, IPPROTO_TCP, TCP_NODELAY, 1);
    return rc;
}

static int bind_and_listen(const blz__fd_ref *ref, const blz_addr *addr, int backlog)
{
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(addr, &len);
    int fd = blz__fd_acquire(ref), rc;

    if (fd < 0)
        return fd;
    rc = bind(fd, sa, len) < 0 || listen(fd, backlog ? backlog : DEFAULT_BACKLOG) < 0 ? -errno : 0;
    blz__fd_release(ref);
    return rc;
}

int blz_listen_with(blz_listener *listener, const blz_addr *addr, const blz_listen_options *options)
{
    static const blz_listen_options none;
    const blz_listen_options *o = options ? options : &none;
    blz__fd_ref ref;
    int family = blz_addr_family(addr), rc;

    *listener = (blz_listener){NULL, 0};
    if (family != BLZ_ADDR_V4 && family != BLZ_ADDR_V6)
        return -EAFNOSUPPORT;
    rc = blz__socket_new(&ref, o->rt ? o->rt : blz_rt_current(),
                         family == BLZ_ADDR_V4 ? AF_INET : AF_INET6, SOCK_STREAM, FD_SHARED);
    if (rc < 0)
        return rc;
    rc = set_up(&ref, addr, o);
    if (rc == 0)
        rc = bind_and_listen(&ref, addr, o->backlog);
    if (rc < 0) {
        blz__fd_close(&ref, NULL);
        return rc;
    }
    *listener = (blz_listener){ref.entry, ref.generation};
    return 0;
}

int blz_listen(blz_listener *listener, const char *address)
{
    blz_addr addr;
    int rc = blz_addr_parse(&addr, address);

    return rc < 0 ? rc : blz_listen_with(listener, &addr, NULL);
}

int blz_listener_close(blz_listener *listener)
{
    int rc = blz__fd_close(net_mutable_ref(listener), NULL);

    *listener = (blz_listener){NULL, 0};
    return rc;
}

int blz_listener_addr(const blz_listener *listener, blz_addr *addr)
{
    return blz__socket_local_addr(net_ref(listener), addr);
}

/* ---- accepting ---- */

static blz_poll accept_poll(blz_future *self, blz_cx *cx)
{
    struct io *io = (struct io *)self;
    blz_tcp *conn = io->extra;
    blz__fd_ref ref;
    int rc;

    if (blz__io_poll(self, cx) == BLZ_PENDING)
        return BLZ_PENDING;
    if (self->result < 0)
        return BLZ_READY;
    rc = blz__socket_adopt(&ref, blz_cx_rt(cx), (int)self->result, FD_STREAM);
    if (rc == 0)
        *conn = (blz_tcp){ref.entry, ref.generation};
    return blz_future_done(self, rc);
}

blz_future *blz_accept(blz_io *io, const blz_listener *listener, blz_tcp *conn)
{
    static const blz_future_ops ops = {.name = "accept",
                                       .poll = accept_poll,
                                       .cancel = blz__io_cancel};

    *conn = (blz_tcp){NULL, 0};
    blz__io_init(io, &ops, IO_ACCEPT, net_ref(listener), NULL, 0);
    ((struct io *)io)->extra = conn;
    return &io->future;
}
