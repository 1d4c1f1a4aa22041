/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP: listeners and connections.
 *
 *     struct hello { BLZ_FRAME; blz_tcp_listener ln; blz_tcp conn; blz_io io; int64_t rc; };
 *
 *     BLZ_ASYNC(hello)
 *     {
 *         BLZ_BEGIN;
 *         self->rc = blz_tcp_listen(&self->ln, "127.0.0.1:7000");
 *         while (self->rc >= 0) {
 *             BLZ_AWAIT(self->rc, blz_tcp_accept(&self->io, &self->ln, &self->conn));
 *             if (self->rc >= 0) {
 *                 BLZ_AWAIT(self->rc, blz_tcp_write_all(&self->io, &self->conn, "hello\n", 6));
 *                 blz_tcp_close(&self->conn);
 *             }
 *         }
 *         blz_tcp_listener_close(&self->ln);
 *         BLZ_END(self->rc);
 *     }
 *
 * blz_tcp and blz_tcp_listener are small handles that may be copied; all copies mean the same
 * socket, and once one of them has closed it, the others give -EBADF. They belong to the runtime
 * that they were made in, and end with it.
 *
 * One read and one write may be in flight on a connection at a time, by one task or by two; a
 * second one in the same direction gives -EBUSY. Closing is immediate: what is in flight ends with
 * -EBADF. All operations are interruptible.
 *
 * Errors that every function may give: -EBADF: the handle is empty, or its socket is closed; and
 * errors of the system, such as -ECONNRESET, -ETIMEDOUT, -ENOBUFS. Functions that await also give
 * -ECANCELED, and -ENXIO outside of a task (blz_wait) if they would have to wait.
 */
#ifndef BLITZ_TCP_H
#define BLITZ_TCP_H

#include <blitz/addr.h>
#include <blitz/io.h>
#include <blitz/socket.h>
#include <blitz/stream.h>

BLZ_BEGIN_DECLS

/* A connection: a handle, which may be copied. All zero: none. */
typedef struct blz_tcp {
    void *entry_;
    uint64_t generation_;
} blz_tcp;

/* A socket that listens. All zero: none. */
typedef struct blz_tcp_listener {
    void *entry_;
    uint64_t generation_;
} blz_tcp_listener;

/* ---- Listening ---- */

/* All zero means the default. */
typedef struct blz_tcp_listen_options {
    blz_rt *rt;      /* default: the runtime of this thread */
    int backlog;     /* connections that wait to be accepted; default 4096, the system may cap it */
    bool reuse_port; /* several listeners share the port, and the connections */
    bool keep_addr;  /* do not set SO_REUSEADDR */
    bool v6_only;    /* an IPv6 listener takes no IPv4 */
    bool delay;      /* do not set TCP_NODELAY on connections */
    bool spread;     /* blz_tcp_serve accepts on every worker; implies reuse_port */
    int fast_open;   /* connections that may bring data with their first packet; default: none */
    const char *device; /* only connections that come through this network interface */
    uint64_t reserved[2];
} blz_tcp_listen_options;

/*
 * Listens on an address that is text ("127.0.0.1:7000", "[::]:80"; ":80" means every interface,
 * of IPv4 alone where there is no IPv6). 0; -EINVAL: not an address; -ENXIO: no runtime on this
 * thread; or what the system says. [worker]
 */
BLZ_API BLZ_NODISCARD int blz_tcp_listen(blz_tcp_listener *listener, const char *address);

/*
 * Listens on an address, with options, which may be NULL. 0; -EAFNOSUPPORT: not an IP address;
 * -ENXIO: no runtime; or what the system says. [worker; with options.rt any thread]
 */
BLZ_API BLZ_NODISCARD int blz_tcp_listen_with(blz_tcp_listener *listener, const blz_addr *addr,
                                              const blz_tcp_listen_options *options);

/*
 * Awaits a connection: 0 and *conn. A connection that arrives when the wait has just been cancelled
 * is kept for the next accept. Trouble of a single connection is passed over; when descriptors or
 * memory have run out it pauses (10 ms, then longer, to a second) and tries again. Any number of
 * tasks may accept from one listener. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_accept(blz_io *io, const blz_tcp_listener *listener,
                                                 blz_tcp *conn);

/*
 * Closes the listener, and the connections that have not been accepted. 0; -EBADF: it is closed.
 * [any thread]
 */
BLZ_API int blz_tcp_listener_close(blz_tcp_listener *listener);

/* The address at which it listens, with the port that was chosen if that was 0. [any thread] */
BLZ_API int blz_tcp_listener_addr(const blz_tcp_listener *listener, blz_addr *addr);

/*
 * Sets or gets an option of the listener (blitz/socket.h); most are inherited by its connections.
 * 0; -EINVAL: no such option, or the value is out of range; -ENOPROTOOPT or -EOPNOTSUPP: not for
 * this kind of socket, or not on this system. [any thread]
 */
BLZ_API int blz_tcp_listener_set(const blz_tcp_listener *listener, blz_opt option, int64_t value);
BLZ_API int blz_tcp_listener_get(const blz_tcp_listener *listener, blz_opt option, int64_t *value);

/*
 * Takes over a descriptor that listens already (inherited, say), for the runtime `rt` (NULL: this
 * thread's), which closes it from now on. It is put into non-blocking mode. Other processes may
 * share it (socket activation, pre-forked servers): a connection is taken only while a task
 * accepts, and the end of the runtime does not end it for them. -EINVAL: it does not listen, or is
 * no TCP socket. On failure it is still the caller's. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_tcp_listener_from_fd(blz_tcp_listener *listener, blz_sysfd fd,
                                                   blz_rt *rt);

/*
 * Gives the descriptor, which the caller closes; *listener is none afterwards. -EBUSY: an accept
 * waits. [any thread]
 */
BLZ_API BLZ_NODISCARD int64_t blz_tcp_listener_into_fd(blz_tcp_listener *listener);

/* ---- Serving ---- */

/*
 * Accepts connections and calls on_conn(conn, arg) for each, which typically spawns a task:
 *
 *     static int on_conn(blz_tcp conn, void *arg) { return BLZ_SPAWN(echo, .conn = conn); }
 *
 *     BLZ_AWAIT(self->rc, blz_tcp_serve(&self->op, &self->listener, on_conn, NULL));
 *
 * To await the connections' tasks as well, spawn them into a scope that discards what ends
 * (BLZ_SCOPE_DISCARD in blitz/task.h), and join that after blz_tcp_serve.
 *
 * With options.spread every worker accepts, from a socket of its own at the same address, and calls
 * on_conn itself, so that the task begins there; Linux and FreeBSD spread the connections evenly.
 * Without, and on the other systems, one worker does. on_conn must not block. The connection is
 * its; but if it gives a negative value the connection is closed, and serving goes on.
 *
 * Ends with -ECANCELED when it is cancelled, with -EBADF when the listener is closed, in both cases
 * after the last call of on_conn; or with what the system says when it cannot accept at all.
 * Connections that wait to be accepted by then are kept for the next accept. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_serve(blz_serve_op *op, const blz_tcp_listener *listener,
                                                int (*on_conn)(blz_tcp conn, void *arg), void *arg);

/* ---- Connecting ---- */

/* What is set before connecting. All zero means the default. */
typedef struct blz_tcp_options {
    const blz_addr *bind; /* connect from this address; its port may be 0 */
    const char *device;   /* and through this network interface */
    bool delay;           /* do not set TCP_NODELAY */
    bool reuse_addr;      /* for `bind` */
    bool reuse_port;
    bool fast_open; /* the first data goes with the first packet, if the system and the peer can */
    bool keepalive;
    int send_buffer; /* bytes; 0: the system's choice */
    int recv_buffer;
    uint64_t reserved[4];
} blz_tcp_options;

/*
 * Connects to one address: 0 and *conn. On failure there is nothing to close. `addr` and `options`
 * stay valid until the future is ready; `options` may be NULL. To connect to a name, or to an
 * address that is text, see blz_tcp_connect in blitz/connect.h. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_connect_with(blz_io *io, blz_tcp *conn,
                                                       const blz_addr *addr,
                                                       const blz_tcp_options *options);

/*
 * Takes over a connected descriptor for the runtime `rt` (NULL: this thread's), which closes it
 * from now on. It may be put into non-blocking mode. -EINVAL: no TCP socket, or one that listens.
 * On failure it is still the caller's. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_tcp_from_fd(blz_tcp *conn, blz_sysfd fd, blz_rt *rt);

/*
 * Gives the descriptor, which the caller closes; *conn is none afterwards. -EBUSY: an operation is
 * in flight. [any thread]
 */
BLZ_API BLZ_NODISCARD int64_t blz_tcp_into_fd(blz_tcp *conn);

/* ---- Reading and writing [task] ---- */

/*
 * Reads what is there, up to `len` bytes, waiting for the first: the number of bytes; 0 is the end
 * of the stream.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_read(blz_io *io, const blz_tcp *conn, void *buf,
                                               size_t len);

/*
 * Reads all of `len` bytes: `len`. -ENODATA: the end came first; io->done says how many there were.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_read_exact(blz_io *io, const blz_tcp *conn, void *buf,
                                                     size_t len);

/*
 * Copies what is there, up to `len` bytes, waiting for the first, and leaves it to be read: the
 * number of bytes; 0 is the end of the stream.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_peek(blz_io *io, const blz_tcp *conn, void *buf,
                                               size_t len);

/*
 * Reads what is there into several pieces of memory, waiting for the first byte: the number of
 * bytes; 0 is the end of the stream. The pieces and the array must stay until the future is ready.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_readv(blz_io *io, const blz_tcp *conn,
                                                const blz_iovec *iov, size_t count);

/*
 * Waits without a buffer, and gets one with data in it: its length; 0 is the end of the stream,
 * without a buffer. Give it back by blz_buf_release.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_read_lease(blz_io *io, const blz_tcp *conn, blz_buf *buf);

/* Writes some of it, at least a byte: the number of bytes. -EPIPE: the peer is gone. */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_write(blz_io *io, const blz_tcp *conn, const void *buf,
                                                size_t len);

/*
 * Writes all of it: `len`. After an error io->done says how far it came. -EPIPE: the peer is gone.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_write_all(blz_io *io, const blz_tcp *conn,
                                                    const void *buf, size_t len);

/*
 * Writes some of several pieces of memory, at least a byte: the number. -EPIPE: the peer is gone.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_writev(blz_io *io, const blz_tcp *conn,
                                                 const blz_iovec *iov, size_t count);

/*
 * Writes all of several pieces of memory, which stay valid, as does the array, until the future is
 * ready: the number of bytes. After an error op->done says how far it came. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_writev_all(blz_stream_op *op, const blz_tcp *conn,
                                                     const blz_iovec *iov, size_t count);

/*
 * Sends a part of a file: `len` bytes from `offset`, or fewer if it ends before; `len` SIZE_MAX:
 * to its end. Gives the number. The file's own position is not used. What is not in memory is read
 * from the disk while the worker waits: for files that are rarely used, read them by the blocking
 * pool. After an error io->done says how far it came.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_sendfile(blz_io *io, const blz_tcp *conn, blz_sysfd file,
                                                   int64_t offset, size_t len);

/*
 * Awaits that a read (BLZ_READABLE) or a write (BLZ_WRITABLE), or one of both, would not wait:
 * gives those that are true. It takes the place of an operation in that direction: -EBUSY. Errors
 * and the end make both true.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_ready(blz_io *io, const blz_tcp *conn, int events);

/*
 * Reads or writes without waiting: the number of bytes; -EAGAIN: it would have to wait. [any
 * thread]
 */
BLZ_API BLZ_NODISCARD int64_t blz_tcp_try_read(const blz_tcp *conn, void *buf, size_t len);
BLZ_API BLZ_NODISCARD int64_t blz_tcp_try_write(const blz_tcp *conn, const void *buf, size_t len);

/* ---- Halves [any thread] ---- */

/*
 * A connection in two halves, for two tasks: read from reader.conn, write to writer.conn. Closing
 * the writer ends that direction, so that the other side reads the end of the stream; the
 * connection is closed when both are.
 */
typedef struct blz_tcp_reader {
    blz_tcp conn;
} blz_tcp_reader;

/* The half of a connection that writes. */
typedef struct blz_tcp_writer {
    blz_tcp conn;
} blz_tcp_writer;

/* Splits a connection; *conn is none afterwards. 0; -EBADF: it is closed, or split already. */
BLZ_API BLZ_NODISCARD int blz_tcp_split(blz_tcp *conn, blz_tcp_reader *reader,
                                        blz_tcp_writer *writer);

/*
 * Makes the halves one connection again; they are none afterwards. 0; -EINVAL: they are of
 * different connections; -EBADF: a half is closed. After an error they stay as they are. Operations
 * that are in flight go on.
 */
BLZ_API BLZ_NODISCARD int blz_tcp_reunite(blz_tcp *conn, blz_tcp_reader *reader,
                                          blz_tcp_writer *writer);

/* Closes a half, and cancels what is in flight in its direction. 0; -EBADF: it is closed. */
BLZ_API int blz_tcp_reader_close(blz_tcp_reader *reader);
BLZ_API int blz_tcp_writer_close(blz_tcp_writer *writer);

/* ---- Ending [any thread] ---- */

/* Which direction blz_tcp_shutdown ends. */
enum { BLZ_SHUT_READ = 1, BLZ_SHUT_WRITE = 2, BLZ_SHUT_BOTH = 3 };

/*
 * Ends a direction (BLZ_SHUT_READ, BLZ_SHUT_WRITE, BLZ_SHUT_BOTH): after BLZ_SHUT_WRITE the other
 * side reads the end of the stream. 0; -EINVAL: no such direction; -ENOTCONN.
 */
BLZ_API int blz_tcp_shutdown(const blz_tcp *conn, int how);

/*
 * Closes the connection; *conn is none afterwards. What was written is still sent. 0; -EBADF: it is
 * closed.
 */
BLZ_API int blz_tcp_close(blz_tcp *conn);

/* The connection as a stream (blitz/stream.h). [any thread] */
BLZ_API blz_stream blz_tcp_stream(const blz_tcp *conn);

/* ---- Addresses and options [any thread] ---- */

/*
 * The address of this side, or of the other side: 0 and *addr; -ENOTCONN: the connection has ended.
 */
BLZ_API int blz_tcp_local_addr(const blz_tcp *conn, blz_addr *addr);
BLZ_API int blz_tcp_peer_addr(const blz_tcp *conn, blz_addr *addr);

/*
 * Sets or gets an option of the connection (blitz/socket.h): 0; -EINVAL: no such option, or the
 * value is out of range; -ENOPROTOOPT or -EOPNOTSUPP: not for this kind of socket, or not on this
 * system.
 */
BLZ_API int blz_tcp_set(const blz_tcp *conn, blz_opt option, int64_t value);
BLZ_API int blz_tcp_get(const blz_tcp *conn, blz_opt option, int64_t *value);

/*
 * Sets or gets the network interface that the connection is bound to: 0. To set NULL or "" unbinds;
 * to get gives "" if it is not bound. -ENODEV: no such interface; -EPERM.
 */
BLZ_API int blz_tcp_set_device(const blz_tcp *conn, const char *device);
BLZ_API int blz_tcp_get_device(const blz_tcp *conn, char device[BLZ_DEVICE_NAME]);

BLZ_END_DECLS
#endif
