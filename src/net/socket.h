/* SPDX-License-Identifier: Apache-2.0 */
/* What the socket modules of src/net share. */
#ifndef BLZ_NET_SOCKET_H
#define BLZ_NET_SOCKET_H

#include "io/io.h"
#include "net/net.h"
#include "stream/stream.h"
#include "system/socket.h"

#include <blitz/socket.h>

/* The public handles are all laid out like this. */
#define net_ref(handle)         ((const blz__fd_ref *)(const void *)(handle))
#define net_mutable_ref(handle) ((blz__fd_ref *)(void *)(handle))

/* clang-format off */
#define NET_OP(what) \
    {.name = (what), .poll = blz__io_poll, .cancel = blz__io_cancel, \
     .describe_wait = blz__io_describe}
/* clang-format on */

/*
 * A new socket of a family (BLZ_ADDR_V4 and so on), adopted by the runtime. `flags`: FD_SHARED,
 * FD_STREAM. 0 or a negative error.
 */
int blz__net_socket(blz__fd_ref *ref, blz_rt *rt, int family, enum blz__socket_type type,
                    unsigned flags);

/* Adopts a socket that is in the right mode, as accept gives it. On failure it is closed. */
int blz__net_adopt(blz__fd_ref *ref, blz_rt *rt, blz_sysfd fd, unsigned flags);

/*
 * Adopts a socket that comes from elsewhere. It is put into non-blocking mode if the backend needs
 * that, and never into blocking mode: other processes may share it. It must be of that kind, where
 * BLZ_ADDR_V4 stands for IPv6 as well: else -EINVAL. On failure it is still the caller's.
 */
int blz__net_from_fd(blz__fd_ref *ref, blz_rt *rt, blz_sysfd fd, struct blz__socket_kind kind,
                     unsigned flags);

/* By number: see blitz/socket.h. */
int blz__net_option_set(const blz__fd_ref *ref, int number, int64_t value);
int blz__net_option_get(const blz__fd_ref *ref, int number, int64_t *value);
int blz__net_device_set(const blz__fd_ref *ref, const char *device);
int blz__net_device_get(const blz__fd_ref *ref, char device[BLZ_DEVICE_NAME]);

int blz__net_local_addr(const blz__fd_ref *ref, blz_addr *addr);
int blz__net_peer_addr(const blz__fd_ref *ref, blz_addr *addr);
int blz__net_shutdown(const blz__fd_ref *ref, int how);
int blz__net_bind(const blz__fd_ref *ref, const blz_addr *addr);

/*
 * After a bind to the address `text` failed with `rc`: if the text names no family (":80") and the
 * system has no IPv6, *addr becomes the IPv4 address for the second attempt. True: try again.
 */
bool blz__addr_retry_v4(blz_addr *addr, const char *text, int rc);

/* Listens; `backlog` 0: 4096. */
int blz__net_listen(const blz__fd_ref *ref, int backlog);

/* Connects a datagram socket, which does not wait; NULL: it is connected no more. */
int blz__net_connect_now(const blz__fd_ref *ref, const blz_addr *addr);

/* The calls that do not wait: a number of bytes, or -EAGAIN. */
int64_t blz__net_try_recv(const blz__fd_ref *ref, void *buf, size_t len);
int64_t blz__net_try_send(const blz__fd_ref *ref, const void *buf, size_t len);

/* Two Unix sockets that are connected. 0 or a negative error. */
int blz__unix_pair(blz__fd_ref *a, blz__fd_ref *b, blz_rt *rt, enum blz__socket_type type,
                   unsigned flags);

/* ---- connecting and accepting, for TCP and Unix ---- */

/*
 * Connects a socket that `open` makes at the first poll, with `options`, which stay valid until
 * then; *conn is a handle.
 */
struct connect_ops {
    blz_future_ops future;
    int (*open)(blz__fd_ref *ref, blz_rt *rt, const blz_addr *addr, const void *options);
};
blz_future *blz__connect_init(blz_io *io, const struct connect_ops *ops, void *conn,
                              const blz_addr *addr, const void *options);
blz_poll blz__connect_poll(blz_future *self, blz_cx *cx);

/* Accepts; see accept.c. */
blz_future *blz__accept_init(blz_io *io, const blz__fd_ref *listener, void *conn, bool is_tcp);

/* Another listener at the same address, as the first. 0 or a negative errno. */
int blz__listener_clone(blz__fd_ref *ref, blz_rt *rt, const blz__fd_ref *from);

/* Closes a clone; its backlog, and what waits in the system's, go to the one of `heir`. [worker] */
void blz__listener_retire(blz__fd_ref *clone, const blz__fd_ref *heir);

/* ---- readiness ---- */

/* Of a wait for BLZ_READABLE and BLZ_WRITABLE: errors and ends count as what was asked for. */
blz_future *blz__ready_init(blz_io *io, const blz_future_ops *ops, const blz__fd_ref *ref,
                            int events);
blz_poll blz__ready_poll(blz_future *self, blz_cx *cx);

/* clang-format off */
#define NET_READY(what) \
    {.name = (what), .poll = blz__ready_poll, .cancel = blz__io_cancel, \
     .describe_wait = blz__io_describe}
/* clang-format on */

/* ---- streams ---- */

static inline void *net_bytes(const void *buf)
{
    return (void *)(uintptr_t)buf;
}

static inline blz_future *net_all_of_it(blz_future *io)
{
    ((struct io *)io)->flags |= IO_ALL;
    return io;
}

static inline int net_close(blz__fd_ref *ref)
{
    int rc = blz__fd_close(ref);

    *ref = (blz__fd_ref){NULL, 0};
    return rc;
}

/* Defines the operations that all streams have: blz_NAME_read and so on, on a handle of `type`. */
#define NET_STREAM(name, type)                                                                    \
    blz_future *blz_##name##_read(blz_io *io, const type *conn, void *buf, size_t len)            \
    {                                                                                             \
        static const blz_future_ops ops = NET_OP(#name "_read");                                  \
        return blz__io_init(io, &ops, IO_READ, net_ref(conn), buf, len);                          \
    }                                                                                             \
    blz_future *blz_##name##_read_exact(blz_io *io, const type *conn, void *buf, size_t len)      \
    {                                                                                             \
        static const blz_future_ops ops = NET_OP(#name "_read_exact");                            \
        return net_all_of_it(blz__io_init(io, &ops, IO_READ, net_ref(conn), buf, len));           \
    }                                                                                             \
    blz_future *blz_##name##_readv(blz_io *io, const type *conn, const blz_iovec *iov, size_t n)  \
    {                                                                                             \
        static const blz_future_ops ops = NET_OP(#name "_readv");                                 \
        return blz__io_init_pieces(io, &ops, IO_READV, net_ref(conn), iov, n);                    \
    }                                                                                             \
    blz_future *blz_##name##_read_lease(blz_io *io, const type *conn, blz_buf *buf)               \
    {                                                                                             \
        static const blz_future_ops ops = NET_OP(#name "_read_lease");                            \
        *buf = (blz_buf){NULL, 0, NULL};                                                          \
        return blz__io_init(io, &ops, IO_LEASE, net_ref(conn), buf, 0);                           \
    }                                                                                             \
    blz_future *blz_##name##_write(blz_io *io, const type *conn, const void *buf, size_t len)     \
    {                                                                                             \
        static const blz_future_ops ops = NET_OP(#name "_write");                                 \
        return blz__io_init(io, &ops, IO_WRITE, net_ref(conn), net_bytes(buf), len);              \
    }                                                                                             \
    blz_future *blz_##name##_write_all(blz_io *io, const type *conn, const void *buf, size_t len) \
    {                                                                                             \
        static const blz_future_ops ops = NET_OP(#name "_write_all");                             \
        return net_all_of_it(                                                                     \
            blz__io_init(io, &ops, IO_WRITE, net_ref(conn), net_bytes(buf), len));                \
    }                                                                                             \
    blz_future *blz_##name##_writev(blz_io *io, const type *conn, const blz_iovec *iov, size_t n) \
    {                                                                                             \
        static const blz_future_ops ops = NET_OP(#name "_writev");                                \
        return blz__io_init_pieces(io, &ops, IO_WRITEV, net_ref(conn), iov, n);                   \
    }                                                                                             \
    blz_future *blz_##name##_ready(blz_io *io, const type *conn, int events)                      \
    {                                                                                             \
        static const blz_future_ops ops = NET_READY(#name "_ready");                              \
        return blz__ready_init(io, &ops, net_ref(conn), events);                                  \
    }                                                                                             \
    int blz_##name##_close(type *conn)                                                            \
    {                                                                                             \
        return net_close(net_mutable_ref(conn));                                                  \
    }                                                                                             \
    int64_t blz_##name##_into_fd(type *conn)                                                      \
    {                                                                                             \
        return blz__net_into_fd(net_mutable_ref(conn));                                           \
    }                                                                                             \
    _Static_assert(sizeof(type) == sizeof(blz__fd_ref), "a handle is a reference")

/* Defines blz_NAME_set and blz_NAME_get. */
#define NET_OPTIONS(name, type)                                              \
    int blz_##name##_set(const type *socket, blz_opt option, int64_t value)  \
    {                                                                        \
        return blz__net_option_set(net_ref(socket), (int)option, value);     \
    }                                                                        \
    int blz_##name##_get(const type *socket, blz_opt option, int64_t *value) \
    {                                                                        \
        return blz__net_option_get(net_ref(socket), (int)option, value);     \
    }                                                                        \
    _Static_assert(sizeof(type) == sizeof(blz__fd_ref), "a handle is a reference")

/* Takes the descriptor out of the handle, which is none afterwards. */
int64_t blz__net_into_fd(blz__fd_ref *ref);

#endif
