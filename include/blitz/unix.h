/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix sockets: connections and datagrams between processes of one machine, which can carry open
 * descriptors and know who the other side is.
 *
 *     blz_unix_cred who;
 *     ...
 *     BLZ_AWAIT(self->rc, blz_unix_connect(&self->connect, &self->conn, "unix:/run/app.sock"));
 *     if (self->rc == 0)
 *         self->rc = blz_unix_peer_cred(&self->conn, &self->who);
 *     BLZ_AWAIT(self->n, blz_unix_send_fds(&self->msg, &self->conn, "f", 1, &self->file, 1));
 *
 * Handles, operations, errors and cancellation are as in blitz/tcp.h. Addresses are paths, or
 * abstract names (Linux), which need no file: see blitz/addr.h.
 *
 * Windows has connections, but no datagrams, no descriptors along with bytes, and no credentials:
 * these functions say -ENOTSUP there.
 *
 * A listener, or a datagram socket, makes a file at its path, which stays when it is closed, and
 * makes the next one at that path fail with -EADDRINUSE. Removing it is the program's business:
 * unlink(2) at the end, or before listening if it knows that nobody else listens there.
 */
#ifndef BLITZ_UNIX_H
#define BLITZ_UNIX_H

#include <blitz/socket.h>
#include <blitz/stream.h>

BLZ_BEGIN_DECLS

/* A connection. All zero: none. */
typedef struct blz_unix {
    void *entry_;
    uint64_t generation_;
} blz_unix;

/* A socket that listens. All zero: none. */
typedef struct blz_unix_listener {
    void *entry_;
    uint64_t generation_;
} blz_unix_listener;

/* A datagram socket. */
typedef struct blz_unix_dgram {
    void *entry_;
    uint64_t generation_;
} blz_unix_dgram;

/* ---- Listening and connecting ---- */

/* All zero means the default. */
typedef struct blz_unix_listen_options {
    blz_rt *rt;  /* default: the runtime of this thread */
    int backlog; /* connections that wait to be accepted; default 4096, the system may cap it */
    uint64_t reserved[4];
} blz_unix_listen_options;

/*
 * Listens on an address that is text ("unix:/run/app.sock", "unix:@app"). 0; -EINVAL: not an
 * address; -EAFNOSUPPORT: not a Unix socket's; -EADDRINUSE; -ENXIO: no runtime on this thread; or
 * what the system says. [worker]
 */
BLZ_API BLZ_NODISCARD int blz_unix_listen(blz_unix_listener *listener, const char *address);

/*
 * Listens on an address, with options, which may be NULL. 0; -EAFNOSUPPORT: not a Unix socket's;
 * -EADDRINUSE; -ENXIO: no runtime; or what the system says. [worker; with options.rt any thread]
 */
BLZ_API BLZ_NODISCARD int blz_unix_listen_with(blz_unix_listener *listener, const blz_addr *addr,
                                               const blz_unix_listen_options *options);

/* Waits for a connection: 0 and *conn; as blz_tcp_accept. [task] */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_accept(blz_io *io, const blz_unix_listener *listener,
                                                  blz_unix *conn);

/*
 * Accepts connections and calls on_conn(arg, conn) for each, which typically spawns a task:
 *
 *     static int on_conn(void *arg, blz_unix conn) { return BLZ_SPAWN(answer, .conn = conn); }
 *
 *     BLZ_AWAIT(self->rc, blz_unix_serve(&self->op, &self->listener, on_conn, NULL));
 *
 * One worker accepts, and calls on_conn, which must not block; the tasks that it spawns run on all
 * workers. The connection belongs to on_conn. But if it gives a negative value the connection is
 * closed, and serving goes on.
 *
 * Ends with -ECANCELED when it is cancelled or the listener is closed, after the last call of
 * on_conn; -EBADF: was closed already; or what the system says when it cannot accept at all.
 * Connections that wait to be accepted by then are kept for the next accept. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_serve(blz_serve_op *op,
                                                 const blz_unix_listener *listener,
                                                 int (*on_conn)(void *arg, blz_unix conn),
                                                 void *arg);

/* As blz_tcp_listener_close and blz_tcp_listener_addr. [any thread] */
BLZ_API int blz_unix_listener_close(blz_unix_listener *listener);
BLZ_API int blz_unix_listener_addr(const blz_unix_listener *listener, blz_addr *addr);

/* See blz_tcp_listener_from_fd. */
BLZ_API BLZ_NODISCARD int blz_unix_listener_from_fd(blz_unix_listener *listener, blz_rt *rt,
                                                    blz_sysfd fd);
BLZ_API BLZ_NODISCARD int64_t blz_unix_listener_into_fd(blz_unix_listener *listener);

/* What is set before connecting. All zero means the default. */
typedef struct blz_unix_options {
    const blz_addr *bind; /* connect from this address; default: without a name */
    int send_buffer;      /* bytes; 0: the system's choice */
    int recv_buffer;
    uint64_t reserved[4];
} blz_unix_options;

/* The future of blz_unix_connect. */
typedef struct blz_unix_connect_op {
    blz_io io;
    blz_addr addr;
} blz_unix_connect_op;

/*
 * Connects to an address that is text ("unix:/run/app.sock"): 0 and *conn. On failure there is
 * nothing to close. -EINVAL: not an address; -EAFNOSUPPORT: not a Unix socket's; -ECONNREFUSED:
 * nobody listens there, or (readiness backends) too many wait to be accepted, of which there is no
 * news to wait for; -ENOENT: no such path. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_connect(blz_unix_connect_op *op, blz_unix *conn,
                                                   const char *address);

/*
 * Connects to an address: 0 and *conn. `addr` and `options` stay valid until the future is ready;
 * `options` may be NULL. Errors are those of blz_unix_connect. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_connect_with(blz_io *io, blz_unix *conn,
                                                        const blz_addr *addr,
                                                        const blz_unix_options *options);

/* Two ends of one connection. `rt` NULL: the runtime of this thread. [any thread] */
BLZ_API BLZ_NODISCARD int blz_unix_pair(blz_unix *a, blz_unix *b, blz_rt *rt);

/* See blz_tcp_from_fd. */
BLZ_API BLZ_NODISCARD int blz_unix_from_fd(blz_unix *conn, blz_rt *rt, blz_sysfd fd);
BLZ_API BLZ_NODISCARD int64_t blz_unix_into_fd(blz_unix *conn);

/* ---- Reading and writing: see blitz/tcp.h [task] ---- */

/* Descriptors that were sent along are closed by these; blz_unix_recv_fds takes them. */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_read(blz_io *io, const blz_unix *conn, void *buf,
                                                size_t len);
BLZ_API BLZ_NODISCARD blz_future *blz_unix_read_exact(blz_io *io, const blz_unix *conn, void *buf,
                                                      size_t len);
BLZ_API BLZ_NODISCARD blz_future *blz_unix_readv(blz_io *io, const blz_unix *conn,
                                                 const blz_iovec *iov, size_t count);
BLZ_API BLZ_NODISCARD blz_future *blz_unix_read_lease(blz_io *io, const blz_unix *conn,
                                                      blz_buf *buf);
BLZ_API BLZ_NODISCARD blz_future *blz_unix_peek(blz_io *io, const blz_unix *conn, void *buf,
                                                size_t len);
BLZ_API BLZ_NODISCARD blz_future *blz_unix_write(blz_io *io, const blz_unix *conn, const void *buf,
                                                 size_t len);
BLZ_API BLZ_NODISCARD blz_future *blz_unix_write_all(blz_io *io, const blz_unix *conn,
                                                     const void *buf, size_t len);
BLZ_API BLZ_NODISCARD blz_future *blz_unix_writev(blz_io *io, const blz_unix *conn,
                                                  const blz_iovec *iov, size_t count);
BLZ_API BLZ_NODISCARD blz_future *blz_unix_ready(blz_io *io, const blz_unix *conn, int events);
BLZ_API BLZ_NODISCARD int64_t blz_unix_try_read(const blz_unix *conn, void *buf, size_t len);
BLZ_API BLZ_NODISCARD int64_t blz_unix_try_write(const blz_unix *conn, const void *buf, size_t len);

/* ---- Descriptors [task] ---- */

/*
 * Sends up to BLZ_MSG_FDS descriptors with some bytes, at least one: the number of bytes that were
 * sent, which may be fewer than `len`; the descriptors went with the first. They are still open
 * here. -EINVAL: too many, or no bytes; -EBADF: one is not open; -ETOOMANYREFS: the system's limit.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_send_fds(blz_msg *msg, const blz_unix *conn,
                                                    const void *buf, size_t len,
                                                    const blz_sysfd *fds, size_t nr_fds);

/*
 * Reads bytes and the descriptors that came with them: the number of bytes, 0 at the end;
 * msg->nr_fds in `fds`, which are the caller's, and close-on-exec. If there are more than `max`, or
 * the process may not have so many, the others are closed, and msg->flags says
 * BLZ_MSG_FDS_TRUNCATED. Interruptible; what has arrived is never lost by a cancellation.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_recv_fds(blz_msg *msg, const blz_unix *conn, void *buf,
                                                    size_t len, blz_sysfd *fds, size_t max);

/* ---- Ending and asking [any thread] ---- */

/* `how`: BLZ_SHUT_READ and so on, of blitz/tcp.h. */
BLZ_API int blz_unix_shutdown(const blz_unix *conn, int how);
BLZ_API int blz_unix_close(blz_unix *conn);

/* It as a stream: see blitz/stream.h. [any thread] */
BLZ_API blz_stream blz_unix_stream(const blz_unix *conn);
BLZ_API int blz_unix_local_addr(const blz_unix *conn, blz_addr *addr);
BLZ_API int blz_unix_peer_addr(const blz_unix *conn, blz_addr *addr);
BLZ_API int blz_unix_set(const blz_unix *conn, blz_opt option, int64_t value);
BLZ_API int blz_unix_get(const blz_unix *conn, blz_opt option, int64_t *value);

/*
 * Who the other side was when it connected, listened, or made the pair. `pid` 0: the system does not
 * know (NetBSD, OpenBSD). -ENOTSUP: on Windows.
 */
typedef struct blz_unix_cred {
    int64_t pid;
    uint32_t uid, gid;
} blz_unix_cred;
BLZ_API int blz_unix_peer_cred(const blz_unix *conn, blz_unix_cred *cred);

/* ---- Datagrams: see blitz/udp.h ---- */

/* All zero means the default. */
typedef struct blz_unix_dgram_options {
    blz_rt *rt; /* default: the runtime of this thread */
    uint64_t reserved[4];
} blz_unix_dgram_options;

/*
 * Makes a datagram socket at an address that is text ("unix:/run/app.sock"). 0; -EINVAL: not an
 * address; -EAFNOSUPPORT: not a Unix socket's; -EADDRINUSE; -ENXIO: no runtime on this thread; or
 * what the system says. [worker]
 */
BLZ_API BLZ_NODISCARD int blz_unix_dgram_bind(blz_unix_dgram *dgram, const char *address);

/*
 * Makes a datagram socket at an address, or without a name (NULL), which can send but not be
 * answered. `options` may be NULL. Errors are those of blz_unix_dgram_bind. [worker; with
 * options.rt any thread]
 */
BLZ_API BLZ_NODISCARD int blz_unix_dgram_bind_with(blz_unix_dgram *dgram, const blz_addr *addr,
                                                   const blz_unix_dgram_options *options);
BLZ_API BLZ_NODISCARD int blz_unix_dgram_pair(blz_unix_dgram *a, blz_unix_dgram *b, blz_rt *rt);
BLZ_API BLZ_NODISCARD int blz_unix_dgram_from_fd(blz_unix_dgram *dgram, blz_rt *rt, blz_sysfd fd);
BLZ_API BLZ_NODISCARD int64_t blz_unix_dgram_into_fd(blz_unix_dgram *dgram);
BLZ_API BLZ_NODISCARD int blz_unix_dgram_connect(const blz_unix_dgram *dgram, const blz_addr *addr);
BLZ_API int blz_unix_dgram_close(blz_unix_dgram *dgram);
BLZ_API int blz_unix_dgram_local_addr(const blz_unix_dgram *dgram, blz_addr *addr);
BLZ_API int blz_unix_dgram_set(const blz_unix_dgram *dgram, blz_opt option, int64_t value);
BLZ_API int blz_unix_dgram_get(const blz_unix_dgram *dgram, blz_opt option, int64_t *value);

/*
 * Receives one; `from` and `fds` may be NULL. A sender without a name has no address
 * (BLZ_ADDR_NONE). Datagrams wait for room at the receiver, so none is lost. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_dgram_recv(blz_msg *msg, const blz_unix_dgram *dgram,
                                                      void *buf, size_t len, blz_addr *from);
BLZ_API BLZ_NODISCARD blz_future *blz_unix_dgram_recv_fds(blz_msg *msg, const blz_unix_dgram *dgram,
                                                          void *buf, size_t len, blz_sysfd *fds,
                                                          size_t max);

/* Sends one to where it is connected, waiting for room. -ENOTCONN. */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_dgram_send(blz_msg *msg, const blz_unix_dgram *dgram,
                                                      const void *buf, size_t len);
BLZ_API BLZ_NODISCARD blz_future *blz_unix_dgram_send_fds(blz_msg *msg, const blz_unix_dgram *dgram,
                                                          const void *buf, size_t len,
                                                          const blz_sysfd *fds, size_t nr_fds);

/*
 * Sends one to an address. -ENOBUFS: the receiver has no room; of this there is no news to wait for
 * unless the socket is connected to it. -ECONNREFUSED, -ENOENT: nobody is there.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_dgram_send_to(blz_msg *msg, const blz_unix_dgram *dgram,
                                                         const void *buf, size_t len,
                                                         const blz_addr *to);

BLZ_END_DECLS
#endif
