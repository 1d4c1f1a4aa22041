/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix sockets: connections and listeners. Operations are those of TCP; but reads stop where
 * descriptors were sent along, so a short one does not mean that nothing is left (no FD_STREAM).
 */
#include <blitz/tcp.h>
#include <blitz/unix.h>

#include "net/msg.h"

#include "system/handle.h"

#include <blitz/error.h>

NET_STREAM(unix, blz_unix);
NET_OPTIONS(unix, blz_unix);

static int64_t end_writing(const blz_stream *stream)
{
    return blz_unix_shutdown(&(blz_unix){stream->object, stream->word}, BLZ_SHUT_WRITE);
}

STREAM_OF_HANDLE(unix, blz_unix, STREAM_SOCKET, end_writing);

/* ---- listening ---- */

static int listen_at(const blz__fd_ref *ref, const blz_addr *addr, int backlog)
{
    int rc = blz__net_bind(ref, addr);

    return rc < 0 ? rc : blz__net_listen(ref, backlog);
}

int blz_unix_listen_with(blz_unix_listener *listener, const blz_addr *addr,
                         const blz_unix_listen_options *options)
{
    static const blz_unix_listen_options none;
    const blz_unix_listen_options *o = options ? options : &none;
    blz__fd_ref ref;
    int rc;

    *listener = (blz_unix_listener){NULL, 0};
    if (blz_addr_family(addr) != BLZ_ADDR_UNIX)
        return -EAFNOSUPPORT;
    rc = blz__net_socket(&ref, o->rt ? o->rt : blz_rt_current(), BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM,
                         FD_LISTENER | FD_SHARED);
    if (rc < 0)
        return rc;
    rc = listen_at(&ref, addr, o->backlog);
    if (rc < 0) {
        blz__fd_close(&ref);
        return rc;
    }
    *listener = (blz_unix_listener){ref.entry, ref.generation};
    return 0;
}

int blz_unix_listen(blz_unix_listener *listener, const char *address)
{
    blz_addr addr;
    int rc = blz_addr_parse(&addr, address);

    *listener = (blz_unix_listener){NULL, 0};
    return rc < 0 ? rc : blz_unix_listen_with(listener, &addr, NULL);
}

blz_future *blz_unix_accept(blz_io *io, const blz_unix_listener *listener, blz_unix *conn)
{
    return blz__accept_init(io, net_ref(listener), conn, false);
}

int blz_unix_listener_close(blz_unix_listener *listener)
{
    return net_close(net_mutable_ref(listener));
}

int blz_unix_listener_addr(const blz_unix_listener *listener, blz_addr *addr)
{
    return blz__net_local_addr(net_ref(listener), addr);
}

int blz_unix_listener_from_fd(blz_unix_listener *listener, blz_sysfd fd, blz_rt *rt)
{
    *listener = (blz_unix_listener){NULL, 0};
    return blz__net_from_fd(net_mutable_ref(listener), rt, fd,
                            (struct blz__socket_kind){BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM, true},
                            FD_LISTENER | FD_SHARED);
}

int64_t blz_unix_listener_into_fd(blz_unix_listener *listener)
{
    return blz__net_into_fd(net_mutable_ref(listener));
}

/* ---- connecting ---- */

static int set_up_unix(const blz__fd_ref *ref, const blz_unix_options *options)
{
    int rc = 0;

    if (options->send_buffer)
        rc = blz__net_option_set(ref, BLZ_OPT_SEND_BUFFER, options->send_buffer);
    if (rc == 0 && options->recv_buffer)
        rc = blz__net_option_set(ref, BLZ_OPT_RECV_BUFFER, options->recv_buffer);
    if (rc == 0 && options->bind)
        rc = blz__net_bind(ref, options->bind);
    return rc;
}

static int open_unix(blz__fd_ref *ref, blz_rt *rt, const blz_addr *addr, const void *options)
{
    int rc;

    if (blz_addr_family(addr) != BLZ_ADDR_UNIX)
        return -EAFNOSUPPORT;
    rc = blz__net_socket(ref, rt, BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM, 0);
    if (rc < 0 || !options)
        return rc;
    rc = set_up_unix(ref, options);
    if (rc < 0)
        blz__fd_close(ref);
    return rc;
}

static const struct connect_ops unix_connect_ops = {
    .future = {.name = "unix_connect",
               .poll = blz__connect_poll,
               .cancel = blz__io_cancel,
               .describe_wait = blz__io_describe},
    .open = open_unix,
};

blz_future *blz_unix_connect_with(blz_io *io, blz_unix *conn, const blz_addr *addr,
                                  const blz_unix_options *options)
{
    return blz__connect_init(io, &unix_connect_ops, conn, addr, options);
}

blz_future *blz_unix_connect(blz_unix_connect_op *op, blz_unix *conn, const char *address)
{
    int rc;

    io_check(&op->io, &unix_connect_ops.future);
    rc = blz_addr_parse(&op->addr, address);
    *conn = (blz_unix){NULL, 0};
    if (rc < 0)
        return blz_ready(&op->io.future, rc);
    return blz_unix_connect_with(&op->io, conn, &op->addr, NULL);
}

int blz__unix_pair(blz__fd_ref *a, blz__fd_ref *b, blz_rt *rt, enum blz__socket_type type,
                   unsigned flags)
{
    blz_sysfd fds[2];
    int mode, rc;

    *a = *b = (blz__fd_ref){NULL, 0};
    if (!rt)
        rt = blz_rt_current();
    mode = rt ? blz__io_mode(rt) : -ENXIO;
    if (mode < 0)
        return mode;
    rc = blz__socket_pair(type, mode & FD_NONBLOCK, fds);
    if (rc < 0)
        return rc;
    rc = blz__net_adopt(a, rt, fds[0], flags);
    if (rc < 0) {
        blz__handle_close(fds[1]);
        return rc;
    }
    rc = blz__net_adopt(b, rt, fds[1], flags);
    if (rc < 0)
        net_close(a);
    return rc;
}

int blz_unix_pair(blz_unix *a, blz_unix *b, blz_rt *rt)
{
    return blz__unix_pair(net_mutable_ref(a), net_mutable_ref(b), rt, BLZ__SOCKET_STREAM, 0);
}

int blz_unix_from_fd(blz_unix *conn, blz_sysfd fd, blz_rt *rt)
{
    *conn = (blz_unix){NULL, 0};
    return blz__net_from_fd(net_mutable_ref(conn), rt, fd,
                            (struct blz__socket_kind){BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM, false}, 0);
}

/* ---- bytes and descriptors ---- */

blz_future *blz_unix_peek(blz_io *io, const blz_unix *conn, void *buf, size_t len)
{
    static const blz_future_ops ops = NET_OP("unix_peek");
    return blz__io_init(io, &ops, IO_PEEK, net_ref(conn), buf, len);
}

int64_t blz_unix_try_read(const blz_unix *conn, void *buf, size_t len)
{
    return blz__net_try_recv(net_ref(conn), buf, len);
}

int64_t blz_unix_try_write(const blz_unix *conn, const void *buf, size_t len)
{
    return blz__net_try_send(net_ref(conn), buf, len);
}

blz_future *blz_unix_send_fds(blz_msg *msg, const blz_unix *conn, const void *buf, size_t len,
                              const blz_sysfd *fds, size_t nr_fds)
{
    static const blz_future_ops ops = NET_OP("unix_send_fds");
    size_t count = len > 0 ? nr_fds : SIZE_MAX; /* without bytes there is nothing to go with */

    return blz__msg_send(msg, &ops, net_ref(conn), buf, len,
                         &(struct msg_extras){.sent_fds = fds, .nr_fds = count});
}

blz_future *blz_unix_recv_fds(blz_msg *msg, const blz_unix *conn, void *buf, size_t len,
                              blz_sysfd *fds, size_t max)
{
    static const blz_future_ops ops = NET_RECV("unix_recv_fds");
    return blz__msg_recv(msg, &ops, net_ref(conn), buf, len,
                         &(struct msg_extras){.fds = fds, .nr_fds = max});
}

/* ---- ending, asking ---- */

int blz_unix_shutdown(const blz_unix *conn, int how)
{
    return blz__net_shutdown(net_ref(conn), how);
}

int blz_unix_local_addr(const blz_unix *conn, blz_addr *addr)
{
    return blz__net_local_addr(net_ref(conn), addr);
}

int blz_unix_peer_addr(const blz_unix *conn, blz_addr *addr)
{
    return blz__net_peer_addr(net_ref(conn), addr);
}

int blz_unix_peer_cred(const blz_unix *conn, blz_unix_cred *cred)
{
    struct blz__socket_cred peer;
    int fd = blz__fd_acquire(net_ref(conn)), rc;

    if (fd < 0)
        return fd;
    rc = blz__socket_peer_cred(fd, &peer);
    blz__fd_release(net_ref(conn));
    if (rc == 0)
        *cred = (blz_unix_cred){.pid = peer.pid, .uid = peer.uid, .gid = peer.gid};
    return rc;
}
