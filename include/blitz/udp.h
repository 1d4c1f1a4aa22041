/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP: datagrams.
 *
 *     struct answer { BLZ_FRAME; blz_udp socket; blz_msg msg; blz_addr from; int64_t n;
 *                     char buf[1500]; };
 *
 *     BLZ_ASYNC(answer)
 *     {
 *         BLZ_BEGIN;
 *         self->n = blz_udp_bind(&self->socket, "0.0.0.0:7000");
 *         while (self->n >= 0) {
 *             BLZ_AWAIT(self->n, blz_udp_recv_from(&self->msg, &self->socket, self->buf,
 *                                                  sizeof self->buf, &self->from));
 *             if (self->n >= 0)
 *                 BLZ_AWAIT(self->n, blz_udp_send_to(&self->msg, &self->socket, self->buf,
 *                                                    (size_t)self->n, &self->from));
 *         }
 *         blz_udp_close(&self->socket);
 *         BLZ_END(self->n);
 *     }
 *
 * blz_udp is a handle like blz_tcp (blitz/tcp.h). Any number of operations may be in flight, by any
 * number of tasks. All are interruptible; buffers and addresses stay valid until they are ready.
 *
 * Errors that every function may give: -EBADF: the handle is empty, or its socket is closed; and
 * errors of the system. Functions that await also give -ECANCELED, and -ENXIO outside of a task
 * (blz_wait) if they would have to wait.
 *
 * A datagram is received whole or cut off, and then BLZ_MSG_TRUNCATED is set in msg.flags. Empty
 * ones are sent and received like others: 0 is not an end. On a connected socket an error that
 * the network reported for something sent before (-ECONNREFUSED) is the result of the next
 * operation.
 */
#ifndef BLITZ_UDP_H
#define BLITZ_UDP_H

#include <blitz/socket.h>

BLZ_BEGIN_DECLS

/* A datagram socket: a handle, which may be copied. All zero: none. */
typedef struct blz_udp {
    void *entry_;
    uint64_t generation_;
} blz_udp;

/* All zero means the default. */
typedef struct blz_udp_options {
    blz_rt *rt; /* default: the runtime of this thread */
    bool reuse_addr;
    bool reuse_port;
    bool v6_only;
    bool broadcast;
    const char *device; /* only through this network interface */
    uint64_t reserved[4];
} blz_udp_options;

/* ---- Sockets [any thread] ---- */

/*
 * Makes a socket at an address that is text ("127.0.0.1:7000", "[::1]:0"; ":7000" means every
 * interface, of IPv4 alone where there is no IPv6). 0; -EINVAL: not an address; -ENXIO: no runtime
 * on this thread; or what the system says. [worker]
 */
BLZ_API BLZ_NODISCARD int blz_udp_bind(blz_udp *udp, const char *address);

/*
 * Makes a socket at an address, whose port may be 0, with options, which may be NULL. 0;
 * -EAFNOSUPPORT: not an IP address; -ENXIO: no runtime; or what the system says. [worker; with
 * options.rt any thread]
 */
BLZ_API BLZ_NODISCARD int blz_udp_bind_with(blz_udp *udp, const blz_addr *addr,
                                            const blz_udp_options *options);

/*
 * Connects the socket: from now on it sends to `addr` and receives only from there. NULL ends that.
 * Does not wait. 0; -EAFNOSUPPORT: an address of another family.
 */
BLZ_API BLZ_NODISCARD int blz_udp_connect(const blz_udp *udp, const blz_addr *addr);

/*
 * Closes the socket; *udp is none afterwards. What is in flight ends with -EBADF. 0; -EBADF: it
 * is closed.
 */
BLZ_API int blz_udp_close(blz_udp *udp);

/*
 * Takes over a descriptor for the runtime `rt` (NULL: this thread's), which closes it from now on.
 * 0; -EINVAL: no UDP socket. On failure it is still the caller's.
 */
BLZ_API BLZ_NODISCARD int blz_udp_from_fd(blz_udp *udp, blz_sysfd fd, blz_rt *rt);

/*
 * Gives the descriptor, which the caller closes; *udp is none afterwards. -EBUSY: an operation is
 * in flight.
 */
BLZ_API BLZ_NODISCARD int64_t blz_udp_into_fd(blz_udp *udp);

/*
 * The address of this side, or of the one that the socket is connected to: 0 and *addr; -ENOTCONN:
 * it is not connected.
 */
BLZ_API int blz_udp_local_addr(const blz_udp *udp, blz_addr *addr);
BLZ_API int blz_udp_peer_addr(const blz_udp *udp, blz_addr *addr);

/*
 * Sets or gets an option of the socket (blitz/socket.h): 0; -EINVAL: no such option, or the value
 * is out of range; -ENOPROTOOPT or -EOPNOTSUPP: not for this kind of socket, or not on this system.
 */
BLZ_API int blz_udp_set(const blz_udp *udp, blz_opt option, int64_t value);
BLZ_API int blz_udp_get(const blz_udp *udp, blz_opt option, int64_t *value);

/* ---- Datagrams [task] ---- */

/* Receives one datagram: its length, or `len` if it was longer (BLZ_MSG_TRUNCATED). */
BLZ_API BLZ_NODISCARD blz_future *blz_udp_recv(blz_msg *msg, const blz_udp *udp, void *buf,
                                               size_t len);

/*
 * Receives one datagram, and the address that it came from: its length, or `len` if it was longer
 * (BLZ_MSG_TRUNCATED).
 */
BLZ_API BLZ_NODISCARD blz_future *blz_udp_recv_from(blz_msg *msg, const blz_udp *udp, void *buf,
                                                    size_t len, blz_addr *from);

/*
 * Copies the next datagram and leaves it to be received: its length, or `len` if it is longer
 * (BLZ_MSG_TRUNCATED). `from` may be NULL.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_udp_peek(blz_msg *msg, const blz_udp *udp, void *buf,
                                               size_t len, blz_addr *from);

/*
 * Sends one datagram to where the socket is connected: `len`. -EDESTADDRREQ: it is not connected;
 * -EMSGSIZE: too long.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_udp_send(blz_msg *msg, const blz_udp *udp, const void *buf,
                                               size_t len);

/* Sends one datagram to an address: `len`. -EMSGSIZE: too long. */
BLZ_API BLZ_NODISCARD blz_future *blz_udp_send_to(blz_msg *msg, const blz_udp *udp, const void *buf,
                                                  size_t len, const blz_addr *to);

/*
 * Sends several datagrams of `segment` bytes each (the last may be shorter) that lie one after the
 * other, in one go: 64 of them, 65,507 bytes at most. `to` NULL: where it is connected. -EINVAL,
 * -EMSGSIZE: too many, or too large for the network; -EIO, -ENOPROTOOPT: the system cannot;
 * -ENOTSUP: on macOS and the BSDs.
 *
 * The other way round, with BLZ_OPT_GRO several datagrams of one sender may be received as one;
 * msg.segment is then the length of each.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_udp_send_segments(blz_msg *msg, const blz_udp *udp,
                                                        const void *buf, size_t len,
                                                        uint16_t segment, const blz_addr *to);

/* Awaits that it could receive (BLZ_READABLE) or send (BLZ_WRITABLE): gives those that are true. */
BLZ_API BLZ_NODISCARD blz_future *blz_udp_ready(blz_io *io, const blz_udp *udp, int events);

/*
 * Receives, or sends to where the socket is connected, without waiting: the number of bytes;
 * -EAGAIN: it would have to wait. [any thread]
 */
BLZ_API BLZ_NODISCARD int64_t blz_udp_try_recv(const blz_udp *udp, void *buf, size_t len);
BLZ_API BLZ_NODISCARD int64_t blz_udp_try_send(const blz_udp *udp, const void *buf, size_t len);

/* ---- Batches [task] ---- */

/* One of several that are sent or received at once. */
typedef struct blz_datagram {
    void *data;
    size_t len;       /* of what is sent; of the room for what is received */
    blz_addr addr;    /* to, or none: where the socket is connected; from */
    size_t received;  /* bytes; after receiving */
    uint32_t flags;   /* BLZ_MSG_TRUNCATED; after receiving */
    uint32_t segment; /* see blz_udp_send_segments; after receiving */
    uint64_t reserved;
} blz_datagram;

/*
 * Receives as many datagrams as are there, up to `count`, waiting for the first; or sends as many
 * as there is room for, waiting for room for the first: their number. An error is reported if the
 * first could not be sent. One system call for up to 32. `count` 0 gives 0.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_udp_recv_batch(blz_msg *msg, const blz_udp *udp,
                                                     blz_datagram *datagrams, size_t count);
BLZ_API BLZ_NODISCARD blz_future *blz_udp_send_batch(blz_msg *msg, const blz_udp *udp,
                                                     blz_datagram *datagrams, size_t count);

/* ---- Multicast [any thread] ---- */

/*
 * Joins or leaves a group, on the interface with that number (0: the system's choice). -EINVAL: not
 * a group; -EADDRINUSE: has joined; -EADDRNOTAVAIL: has not. What is received depends on the
 * address that the socket is bound to as well.
 */
BLZ_API BLZ_NODISCARD int blz_udp_join(const blz_udp *udp, const blz_addr *group,
                                       uint32_t interface);
BLZ_API int blz_udp_leave(const blz_udp *udp, const blz_addr *group, uint32_t interface);

/*
 * Sets the interface through which datagrams to groups are sent. See also BLZ_OPT_MULTICAST_TTL and
 * BLZ_OPT_MULTICAST_LOOP.
 */
BLZ_API int blz_udp_set_multicast_interface(const blz_udp *udp, uint32_t interface);

BLZ_END_DECLS
#endif
