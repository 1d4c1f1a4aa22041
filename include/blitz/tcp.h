/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP: listeners and connections.
 *
 *     struct hello { BLZ_FRAME; blz_listener ln; blz_tcp conn; blz_io io; int64_t rc; };
 *
 *     BLZ_ASYNC(hello)
 *     {
 *         BLZ_BEGIN;
 *         self->rc = blz_listen(&self->ln, "127.0.0.1:7000");
 *         while (self->rc >= 0) {
 *             BLZ_AWAIT(self->rc, blz_accept(&self->io, &self->ln, &self->conn));
 *             if (self->rc >= 0) {
 *                 BLZ_AWAIT(self->rc, blz_tcp_write_all(&self->io, &self->conn, "hello\n", 6));
 *                 blz_tcp_close(&self->conn);
 *             }
 *         }
 *         blz_listener_close(&self->ln);
 *         BLZ_END(self->rc);
 *     }
 *
 * blz_tcp and blz_listener are small handles that may be copied; all copies mean the same socket,
 * and once one of them has closed it, the others give -EBADF. They belong to the runtime that they
 * were made in, and end with it.
 *
 * One read and one write may be in flight on a connection at a time, by one task or by two; a
 * second one in the same direction gives -EBUSY. Closing is immediate: what is in flight ends with
 * -ECANCELED. All operations are interruptible.
 */
#ifndef BLITZ_TCP_H
#define BLITZ_TCP_H

#include <blitz/addr.h>
#include <blitz/io.h>

BLZ_BEGIN_DECLS

/* All zero: none. */
typedef struct blz_tcp {
    void *entry_;
    uint64_t generation_;
} blz_tcp;

typedef struct blz_listener {
    void *entry_;
    uint64_t generation_;
} blz_listener;

/* ---- Listening ---- */

/* All zero means the default. */
typedef struct blz_listen_options {
    blz_rt *rt;      /* default: the runtime of this thread */
    int backlog;     /* connections that wait to be accepted; default 4096, the system may cap it */
    bool reuse_port; /* several listeners share the port, and the connections */
    bool keep_addr;  /* do not set SO_REUSEADDR */
    bool v6_only;    /* an IPv6 listener takes no IPv4 */
    bool delay;      /* do not set TCP_NODELAY on connections */
    uint64_t reserved[4];
} blz_listen_options;

/*
 * Listens on an address ("127.0.0.1:7000", "[::]:80", ":80"). 0; -EINVAL: not an address; -ENXIO:
 * no runtime on this thread; or what the system says. [worker; with options.rt any thread]
 */
BLZ_API BLZ_NODISCARD int blz_listen(blz_listener *listener, const char *address);
BLZ_API BLZ_NODISCARD int blz_listen_with(blz_listener *listener, const blz_addr *addr,
                                          const blz_listen_options *options);

/*
 * Waits for a connection: 0 and *conn. A connection that arrives when the wait has just been
 * cancelled is kept for the next accept. [task]
 */
BLZ_API blz_future *blz_accept(blz_io *io, const blz_listener *listener, blz_tcp *conn);

/* Closes it, and the connections that nobody has accepted. -EBADF: is closed. [any thread] */
BLZ_API int blz_listener_close(blz_listener *listener);

/* Where it listens; tells the port if that was 0. [any thread] */
BLZ_API int blz_listener_addr(const blz_listener *listener, blz_addr *addr);

/* ---- Connecting ---- */

/*
 * Connects: 0 and *conn. `addr` stays valid until then. On failure there is nothing to close.
 * [task]
 */
BLZ_API blz_future *blz_tcp_connect(blz_io *io, blz_tcp *conn, const blz_addr *addr);

/* ---- Reading and writing [task] ---- */

/* Reads what is there, up to `len` bytes, waiting for the first: the number; 0 is the end. */
BLZ_API blz_future *blz_tcp_read(blz_io *io, const blz_tcp *conn, void *buf, size_t len);

/* Reads all of `len`. -ENODATA: the end came first; io->done says how much there was. */
BLZ_API blz_future *blz_tcp_read_exact(blz_io *io, const blz_tcp *conn, void *buf, size_t len);

/* The same as read, but the data stays there. */
BLZ_API blz_future *blz_tcp_peek(blz_io *io, const blz_tcp *conn, void *buf, size_t len);

/* Reads into several pieces of memory, which stay valid, as does the array, until then. */
BLZ_API blz_future *blz_tcp_readv(blz_io *io, const blz_tcp *conn, const blz_iovec *iov,
                                  size_t count);

/* Waits without a buffer, and gets one with data in it: its length, or 0 at the end. */
BLZ_API blz_future *blz_tcp_read_lease(blz_io *io, const blz_tcp *conn, blz_buf *buf);

/* Writes some of it, at least a byte: the number. -EPIPE: the other side has gone. */
BLZ_API blz_future *blz_tcp_write(blz_io *io, const blz_tcp *conn, const void *buf, size_t len);

/* Writes all of it: `len`. After an error io->done says how far it came. */
BLZ_API blz_future *blz_tcp_write_all(blz_io *io, const blz_tcp *conn, const void *buf, size_t len);
BLZ_API blz_future *blz_tcp_writev(blz_io *io, const blz_tcp *conn, const blz_iovec *iov,
                                   size_t count);

/* ---- Ending [any thread] ---- */

enum { BLZ_SHUT_READ = 1, BLZ_SHUT_WRITE = 2, BLZ_SHUT_BOTH = 3 };

/* Ends one direction: the other side reads the end of the stream. Reads go on. */
BLZ_API int blz_tcp_shutdown(const blz_tcp *conn, int how);

/* Closes it; *conn is none afterwards. What was written is still sent. -EBADF: is closed. */
BLZ_API int blz_tcp_close(blz_tcp *conn);

/* ---- Addresses [any thread] ---- */

BLZ_API int blz_tcp_local_addr(const blz_tcp *conn, blz_addr *addr);
BLZ_API int blz_tcp_peer_addr(const blz_tcp *conn, blz_addr *addr);

BLZ_END_DECLS
#endif
