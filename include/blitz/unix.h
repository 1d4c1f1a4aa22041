/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix sockets: connections and datagrams between processes of one machine, which can carry open
 * descriptors and know the process of the other side.
 *
 *     blz_unix_cred who;
 *     ...
 *     BLZ_AWAIT(self->rc, blz_unix_connect(&self->connect, &self->conn, "unix:/run/app.sock"));
 *     if (self->rc == 0)
 *         self->rc = blz_unix_peer_cred(&self->conn, &self->who);
 *     if (self->rc == 0)
 *         BLZ_AWAIT(self->rc, blz_unix_send_fds(&self->msg, &self->conn, "f", 1, &self->file, 1));
 *
 * Handles, operations and cancellation are as in blitz/tcp.h. Addresses are paths, or abstract
 * names (Linux), which need no file: see blitz/addr.h.
 *
 * Errors that every function may give: -EBADF: the handle is empty, or its socket is closed; and
 * errors of the system, such as -ECONNRESET or -ENOBUFS. Functions that await also give -ECANCELED,
 * and -ENXIO outside of a task (blz_wait) if they would have to wait.
 *
 * Windows has connections, but no datagrams, no descriptors along with bytes, and no credentials:
 * these functions say -ENOTSUP there.
 *
 * A listener, or a datagram socket, makes a file at its path, which stays when it is closed, and
 * makes the next one at that path fail with -EADDRINUSE. Removing it is the program's business:
 * unlink(2) at the end, or before listening if it knows that no other program listens there.
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

/*
 * Awaits a connection: 0 and *conn. A connection that arrives when the wait has just been cancelled
 * is kept for the next accept. When descriptors or memory have run out it pauses (10 ms, then
 * longer, to a second) and tries again. Any number of tasks may accept from one listener. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_accept(blz_io *io, const blz_unix_listener *listener,
                                                  blz_unix *conn);

/*
 * Accepts connections and calls on_conn(conn, arg) for each, which typically spawns a task:
 *
 *     static int on_conn(blz_unix conn, void *arg) { return BLZ_SPAWN(answer, .conn = conn); }
 *
 *     BLZ_AWAIT(self->rc, blz_unix_serve(&self->op, &self->listener, on_conn, NULL));
 *
 * One worker accepts, and calls on_conn, which must not block; the tasks that it spawns run on all
 * workers. The connection belongs to on_conn. But if it gives a negative value the connection is
 * closed, and serving goes on.
 *
 * Ends with -ECANCELED when it is cancelled, with -EBADF when the listener is closed, in both cases
 * after the last call of on_conn; or with what the system says when it cannot accept at all.
 * Connections that wait to be accepted by then are kept for the next accept. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_serve(blz_serve_op *op,
                                                 const blz_unix_listener *listener,
                                                 int (*on_conn)(blz_unix conn, void *arg),
                                                 void *arg);

/*
 * Closes the listener, and the connections that have not been accepted: 0; -EBADF: it is closed.
 * [any thread]
 */
BLZ_API int blz_unix_listener_close(blz_unix_listener *listener);

/* The address at which it listens: 0 and *addr. [any thread] */
BLZ_API int blz_unix_listener_addr(const blz_unix_listener *listener, blz_addr *addr);

/*
 * Takes over a descriptor that listens already (inherited, say), for the runtime `rt` (NULL: this
 * thread's), which closes it from now on. It is put into non-blocking mode. -EINVAL: it does not
 * listen, or is no Unix socket. On failure it is still the caller's. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_unix_listener_from_fd(blz_unix_listener *listener, blz_sysfd fd,
                                                    blz_rt *rt);

/*
 * Gives the descriptor, which the caller closes; *listener is none afterwards. -EBUSY: an accept
 * waits. [any thread]
 */
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
    uint64_t reserved[2];
} blz_unix_connect_op;

/*
 * Connects to an address that is text ("unix:/run/app.sock"): 0 and *conn. On failure there is
 * nothing to close. -EINVAL: not an address; -EAFNOSUPPORT: not a Unix socket's; -ECONNREFUSED: no
 * socket listens there, or (readiness backends) too many connections wait to be accepted, of which
 * there is no event to wait for; -ENOENT: no such path. [task]
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

/*
 * Makes two ends of one connection. `rt` NULL: the runtime of this thread. 0; -ENXIO: no runtime;
 * -EMFILE, -ENOMEM. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_unix_pair(blz_unix *a, blz_unix *b, blz_rt *rt);

/*
 * Takes over a connected descriptor for the runtime `rt` (NULL: this thread's), which closes it
 * from now on. It may be put into non-blocking mode. -EINVAL: no Unix stream socket, or one that
 * listens. On failure it is still the caller's. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_unix_from_fd(blz_unix *conn, blz_sysfd fd, blz_rt *rt);

/*
 * Gives the descriptor, which the caller closes; *conn is none afterwards. -EBUSY: an operation is
 * in flight. [any thread]
 */
BLZ_API BLZ_NODISCARD int64_t blz_unix_into_fd(blz_unix *conn);

/* ---- Reading and writing [task] ---- */

/*
 * Reads what is there, up to `len` bytes, waiting for the first: the number of bytes; 0 is the end
 * of the stream. Descriptors that were sent along are closed; blz_unix_recv_fds takes them.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_read(blz_io *io, const blz_unix *conn, void *buf,
                                                size_t len);

/*
 * Reads all of `len` bytes: `len`. -ENODATA: the end came first; io->done says how many there were.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_read_exact(blz_io *io, const blz_unix *conn, void *buf,
                                                      size_t len);

/*
 * Reads what is there into several pieces of memory, waiting for the first byte: the number of
 * bytes; 0 is the end of the stream. The pieces and the array must stay until the future is ready.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_readv(blz_io *io, const blz_unix *conn,
                                                 const blz_iovec *iov, size_t count);

/*
 * Waits without a buffer, and gets one with data in it: its length; 0 is the end of the stream,
 * without a buffer. Give it back by blz_buf_release.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_read_lease(blz_io *io, const blz_unix *conn,
                                                      blz_buf *buf);

/*
 * Copies what is there, up to `len` bytes, waiting for the first, and leaves it to be read: the
 * number of bytes; 0 is the end of the stream.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_peek(blz_io *io, const blz_unix *conn, void *buf,
                                                size_t len);

/* Writes some of it, at least a byte: the number of bytes. -EPIPE: the peer is gone. */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_write(blz_io *io, const blz_unix *conn, const void *buf,
                                                 size_t len);

/*
 * Writes all of it: `len`. After an error io->done says how far it came. -EPIPE: the peer is gone.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_write_all(blz_io *io, const blz_unix *conn,
                                                     const void *buf, size_t len);

/*
 * Writes some of several pieces of memory, at least a byte: the number of bytes. -EPIPE: the peer
 * is gone.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_writev(blz_io *io, const blz_unix *conn,
                                                  const blz_iovec *iov, size_t count);

/*
 * Writes all of several pieces of memory, which stay valid, as does the array, until the future is
 * ready: the number of bytes. After an error op->done says how far it came. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_writev_all(blz_stream_op *op, const blz_unix *conn,
                                                      const blz_iovec *iov, size_t count);

/*
 * Awaits that a read (BLZ_READABLE) or a write (BLZ_WRITABLE), or one of both, would not wait:
 * gives those that are true. It takes the place of an operation in that direction: -EBUSY.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_ready(blz_io *io, const blz_unix *conn, int events);

/*
 * Reads or writes without waiting: the number of bytes; -EAGAIN: it would have to wait. [any
 * thread]
 */
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

/*
 * Ends a direction (BLZ_SHUT_READ, BLZ_SHUT_WRITE or BLZ_SHUT_BOTH of blitz/tcp.h): after
 * BLZ_SHUT_WRITE the other side reads the end of the stream. 0; -EINVAL: no such direction;
 * -ENOTCONN.
 */
BLZ_API int blz_unix_shutdown(const blz_unix *conn, int how);

/* Closes the connection; *conn is none afterwards. 0; -EBADF: it is closed. */
BLZ_API int blz_unix_close(blz_unix *conn);

/* The connection as a stream (blitz/stream.h). */
BLZ_API blz_stream blz_unix_stream(const blz_unix *conn);

/*
 * The address of this side, or of the other side: 0 and *addr; -ENOTCONN: the connection has ended.
 */
BLZ_API int blz_unix_local_addr(const blz_unix *conn, blz_addr *addr);
BLZ_API int blz_unix_peer_addr(const blz_unix *conn, blz_addr *addr);

/*
 * Sets or gets an option of the connection (blitz/socket.h): 0; -EINVAL: no such option, or the
 * value is out of range; -ENOPROTOOPT or -EOPNOTSUPP: not for this kind of socket, or not on this
 * system.
 */
BLZ_API int blz_unix_set(const blz_unix *conn, blz_opt option, int64_t value);
BLZ_API int blz_unix_get(const blz_unix *conn, blz_opt option, int64_t *value);

/*
 * The process at the other side: process, user and group number. `pid` 0: the system does not know
 * (NetBSD, OpenBSD).
 */
typedef struct blz_unix_cred {
    int64_t pid;
    uint32_t uid, gid;
    uint64_t reserved[2];
} blz_unix_cred;

/*
 * Which process the other side was when it connected, listened, or made the pair: 0 and *cred;
 * -EBADF: the connection is closed; -ENOTSUP: on Windows.
 */
BLZ_API int blz_unix_peer_cred(const blz_unix *conn, blz_unix_cred *cred);

/* ---- Datagrams, received whole or cut off (BLZ_MSG_TRUNCATED) ---- */

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

/*
 * Makes two datagram sockets that are connected to each other. `rt` NULL: the runtime of this
 * thread. 0; -ENXIO: no runtime; -EMFILE, -ENOMEM. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_unix_dgram_pair(blz_unix_dgram *a, blz_unix_dgram *b, blz_rt *rt);

/*
 * Takes over a descriptor for the runtime `rt` (NULL: this thread's), which closes it from now on.
 * -EINVAL: no datagram socket of this kind. On failure it is still the caller's. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_unix_dgram_from_fd(blz_unix_dgram *dgram, blz_sysfd fd, blz_rt *rt);

/* Gives the descriptor, which the caller closes. -EBUSY: an operation is in flight. [any thread] */
BLZ_API BLZ_NODISCARD int64_t blz_unix_dgram_into_fd(blz_unix_dgram *dgram);

/*
 * Connects the socket: from now on it sends to `addr` and receives only from there. Does not wait.
 * 0; -ECONNREFUSED, -ENOENT: there is no such socket. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_unix_dgram_connect(const blz_unix_dgram *dgram, const blz_addr *addr);

/* Closes the socket; *dgram is none afterwards. 0; -EBADF: it is closed. [any thread] */
BLZ_API int blz_unix_dgram_close(blz_unix_dgram *dgram);

/* The address of the socket: 0 and *addr. [any thread] */
BLZ_API int blz_unix_dgram_local_addr(const blz_unix_dgram *dgram, blz_addr *addr);

/*
 * Sets or gets an option of the socket (blitz/socket.h): 0; -EINVAL: no such option, or the value
 * is out of range; -ENOPROTOOPT or -EOPNOTSUPP: not for this kind of socket. [any thread]
 */
BLZ_API int blz_unix_dgram_set(const blz_unix_dgram *dgram, blz_opt option, int64_t value);
BLZ_API int blz_unix_dgram_get(const blz_unix_dgram *dgram, blz_opt option, int64_t *value);

/*
 * Receives one datagram: its length, or `len` if it was longer (BLZ_MSG_TRUNCATED). `from` and
 * `fds` may be NULL. A sender without a name has no address (BLZ_ADDR_NONE). Datagrams wait for
 * room at the receiver, so none is lost. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_dgram_recv(blz_msg *msg, const blz_unix_dgram *dgram,
                                                      void *buf, size_t len, blz_addr *from);
BLZ_API BLZ_NODISCARD blz_future *blz_unix_dgram_recv_fds(blz_msg *msg, const blz_unix_dgram *dgram,
                                                          void *buf, size_t len, blz_sysfd *fds,
                                                          size_t max);

/*
 * Sends one datagram to where the socket is connected, waiting for room: `len`. -ENOTCONN: it is
 * not connected. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_dgram_send(blz_msg *msg, const blz_unix_dgram *dgram,
                                                      const void *buf, size_t len);
BLZ_API BLZ_NODISCARD blz_future *blz_unix_dgram_send_fds(blz_msg *msg, const blz_unix_dgram *dgram,
                                                          const void *buf, size_t len,
                                                          const blz_sysfd *fds, size_t nr_fds);

/*
 * Sends one datagram to an address: `len`. -ENOBUFS: the receiver has no room; there is no event to
 * wait for unless the socket is connected to it. -ECONNREFUSED, -ENOENT: there is no such socket.
 * [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_unix_dgram_send_to(blz_msg *msg, const blz_unix_dgram *dgram,
                                                         const void *buf, size_t len,
                                                         const blz_addr *to);

BLZ_END_DECLS
#endif
