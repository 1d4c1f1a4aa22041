/* SPDX-License-Identifier: Apache-2.0 */
/* TCP connections: operations on an adopted socket. See blitz/tcp.h. */
#include <blitz/tcp.h>

#include "net/socket.h"

#include <blitz/error.h>

NET_STREAM(tcp, blz_tcp);
NET_OPTIONS(tcp, blz_tcp);

static int64_t end_writing(const blz_stream *stream)
{
    return blz_tcp_shutdown(&(blz_tcp){stream->object, stream->word}, BLZ_SHUT_WRITE);
}

STREAM_OF_HANDLE(tcp, blz_tcp, STREAM_SOCKET, end_writing);

blz_future *blz_tcp_peek(blz_io *io, const blz_tcp *conn, void *buf, size_t len)
{
    static const blz_future_ops ops = NET_OP("tcp_peek");
    return blz__io_init(io, &ops, IO_PEEK, net_ref(conn), buf, len);
}

int64_t blz_tcp_try_read(const blz_tcp *conn, void *buf, size_t len)
{
    return blz__net_try_recv(net_ref(conn), buf, len);
}

int64_t blz_tcp_try_write(const blz_tcp *conn, const void *buf, size_t len)
{
    return blz__net_try_send(net_ref(conn), buf, len);
}

/* ---- sending files ---- */

/* A file that ends before the range does is no error. */
static blz_poll sendfile_poll(blz_future *self, blz_cx *cx)
{
    if (blz_is_pending(blz__io_poll(self, cx)))
        return BLZ_PENDING;
    if (self->result == -ENODATA)
        self->result = (int64_t)((struct io *)self)->op.done;
    return BLZ_READY;
}

blz_future *blz_tcp_sendfile(blz_io *io, const blz_tcp *conn, blz_sysfd file, int64_t offset,
                             size_t len)
{
    static const blz_future_ops ops = {.name = "tcp_sendfile",
                                       .poll = sendfile_poll,
                                       .cancel = blz__io_cancel,
                                       .describe_wait = blz__io_describe};
    struct io *s;

    if (len == SIZE_MAX)
        len = INT64_MAX;
    s = blz__io_prepare(io, &ops, IO_SENDFILE, net_ref(conn));
    s->sendfile.offset = (uint64_t)offset;
    s->sendfile.len = len;
    s->sendfile.file = file;
    return net_all_of_it(&io->future);
}

/* ---- connecting ---- */

static int set_buffers(const blz__fd_ref *ref, const blz_tcp_options *options)
{
    int rc = 0;

    if (options->send_buffer)
        rc = blz__net_option_set(ref, BLZ_OPT_SEND_BUFFER, options->send_buffer);
    if (rc == 0 && options->recv_buffer)
        rc = blz__net_option_set(ref, BLZ_OPT_RECV_BUFFER, options->recv_buffer);
    return rc;
}

static int set_up(const blz__fd_ref *ref, const blz_tcp_options *options)
{
    int rc = set_buffers(ref, options);

    if (rc == 0 && !options->delay)
        rc = blz__net_option_set(ref, BLZ_OPT_NODELAY, 1);
    if (rc == 0 && options->keepalive)
        rc = blz__net_option_set(ref, BLZ_OPT_KEEPALIVE, 1);
    if (rc == 0 && options->reuse_addr)
        rc = blz__net_option_set(ref, BLZ_OPT_REUSE_ADDR, 1);
    if (rc == 0 && options->reuse_port)
        rc = blz__net_option_set(ref, BLZ_OPT_REUSE_PORT, 1);
    if (rc == 0 && options->fast_open)
        rc = blz__net_option_set(ref, BLZ_OPT_FAST_OPEN_CONNECT, 1);
    if (rc == 0 && options->device)
        rc = blz__net_device_set(ref, options->device);
    if (rc == 0 && options->bind)
        rc = blz__net_bind(ref, options->bind);
    return rc;
}

static int open_tcp(blz__fd_ref *ref, blz_rt *rt, const blz_addr *addr, const void *options)
{
    static const blz_tcp_options none;
    int family = blz_addr_family(addr), rc;

    if (family != BLZ_ADDR_V4 && family != BLZ_ADDR_V6)
        return -EAFNOSUPPORT;
    rc = blz__net_socket(ref, rt, family, BLZ__SOCKET_STREAM, FD_STREAM);
    if (rc < 0)
        return rc;
    rc = set_up(ref, options ? options : &none);
    if (rc < 0)
        blz__fd_close(ref);
    return rc;
}

blz_future *blz_tcp_connect_with(blz_io *io, blz_tcp *conn, const blz_addr *addr,
                                 const blz_tcp_options *options)
{
    static const struct connect_ops ops = {
        .future = {.name = "tcp_connect",
                   .poll = blz__connect_poll,
                   .cancel = blz__io_cancel,
                   .describe_wait = blz__io_describe},
        .open = open_tcp,
    };
    return blz__connect_init(io, &ops, conn, addr, options);
}

int blz_tcp_from_fd(blz_tcp *conn, blz_sysfd fd, blz_rt *rt)
{
    *conn = (blz_tcp){NULL, 0};
    return blz__net_from_fd(net_mutable_ref(conn), rt, fd,
                            (struct blz__socket_kind){BLZ_ADDR_V4, BLZ__SOCKET_STREAM, false},
                            FD_STREAM);
}

/* ---- ending, asking ---- */

int blz_tcp_shutdown(const blz_tcp *conn, int how)
{
    return blz__net_shutdown(net_ref(conn), how);
}

int blz_tcp_local_addr(const blz_tcp *conn, blz_addr *addr)
{
    return blz__net_local_addr(net_ref(conn), addr);
}

int blz_tcp_peer_addr(const blz_tcp *conn, blz_addr *addr)
{
    return blz__net_peer_addr(net_ref(conn), addr);
}

int blz_tcp_set_device(const blz_tcp *conn, const char *device)
{
    return blz__net_device_set(net_ref(conn), device);
}

int blz_tcp_get_device(const blz_tcp *conn, char device[BLZ_DEVICE_NAME])
{
    return blz__net_device_get(net_ref(conn), device);
}
