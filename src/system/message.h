/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages: bytes with an address, descriptors, credentials or a segment size along.
 *
 * A message is received or sent by one call of the system, which the implementation puts together
 * on its stack from the plain fields here. No function waits or raises SIGPIPE, whatever mode the
 * socket is in; -EAGAIN means that nothing has happened. All functions: [any thread].
 *
 *   -ENOTSUP                          where
 *   ----------------------------------------------------------------------------------------
 *   sending descriptors               Windows
 *   sending with a segment size       macOS, FreeBSD, NetBSD, OpenBSD
 */
#ifndef BLZ_SYSTEM_MESSAGE_H
#define BLZ_SYSTEM_MESSAGE_H

#include "system/socket.h"

#include <blitz/udp.h>

typedef struct blz__socket_message {
    const blz_iovec *pieces; /* the bytes */
    size_t nr_pieces;
    blz_addr *addr;    /* receiving: is filled in. Sending: where to. NULL: none */
    blz_sysfd *fds;    /* receiving: room for `max_fds`. Sending: nr_fds of them */
    uint32_t max_fds;  /* receiving */
    uint32_t nr_fds;   /* set by receiving; sending: up to BLZ_MSG_FDS */
    uint32_t segment;  /* set by receiving: the size of each datagram but the last, or 0. Sending:
                            the bytes are cut into datagrams of this size; 0: they are not */
    uint32_t flags;    /* set by receiving: BLZ_MSG_TRUNCATED, BLZ_MSG_FDS_TRUNCATED */
    bool peeks;        /* receiving: leaves the message where it is. Not with descriptors */
    bool wants_extras; /* receiving: `segment` and `cred` are asked for */
    bool has_cred;     /* set by receiving with extras: `cred` is */
    struct blz__socket_cred cred; /* of the sender, if the socket has BLZ_OPT_PASS_CRED */
} blz__socket_message;

/*
 * Receives a message: the number of bytes; 0: an empty datagram, or the end of a stream; -EAGAIN,
 * -ECONNRESET; -ECONNREFUSED: an earlier datagram was refused. A datagram that is longer than the
 * pieces is cut off, and BLZ_MSG_TRUNCATED is set. An address is put into its canonical form; that
 * of a sender without a name is BLZ_ADDR_NONE. Descriptors that come are not inherited by
 * children; those that there is no room for are closed, and BLZ_MSG_FDS_TRUNCATED is set, if `fds`
 * is not NULL.
 */
int64_t blz__message_recv(blz_sysfd fd, blz__socket_message *message);

/*
 * Sends a message: the number of bytes, which for a stream may be fewer than there are, and then
 * the descriptors went with the first. -EAGAIN: there is no room; -EMSGSIZE: too long for one
 * datagram; -EINVAL: too many descriptors; -EBADF: one of them is not open; -EPIPE, -ECONNREFUSED,
 * -ENOTCONN.
 */
int64_t blz__message_send(blz_sysfd fd, const blz__socket_message *message);

/* Receives into pieces alone, without address and extras: as blz__message_recv. */
int64_t blz__message_recv_pieces(blz_sysfd fd, const blz_iovec *pieces, size_t count);

/* Sends pieces alone: as blz__message_send. */
int64_t blz__message_send_pieces(blz_sysfd fd, const blz_iovec *pieces, size_t count);

/* The most datagrams that one call of the functions below moves. */
enum { BLZ__MESSAGE_BATCH = 32 };

/*
 * Receives up to `count` datagrams, at least 1, that are there: their number, or -EAGAIN or another
 * negative error if there is none. Fills in all but `data` and `len` of each. One call of the
 * system on Linux, FreeBSD and NetBSD.
 */
int64_t blz__message_recv_batch(blz_sysfd fd, blz_datagram *datagrams, size_t count);

/*
 * Sends up to `count` datagrams, at least 1, as far as there is room: their number, or the negative
 * error of the first one.
 */
int64_t blz__message_send_batch(blz_sysfd fd, const blz_datagram *datagrams, size_t count);

#endif
