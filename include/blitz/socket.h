/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all sockets have in common: their options, messages with more than bytes, readiness.
 *
 *     blz_tcp_set(&conn, BLZ_OPT_KEEPALIVE, true);
 *     blz_tcp_set(&conn, BLZ_OPT_KEEPALIVE_IDLE, 30 * BLZ_SEC);
 *     blz_tcp_set(&conn, BLZ_OPT_LINGER, 0);          // closing resets the connection
 *     int64_t size;
 *     int rc = blz_udp_get(&socket, BLZ_OPT_RECV_BUFFER, &size);
 *
 * Each kind of socket has a get and a set of its own: blz_tcp_set, blz_tcp_listener_set,
 * blz_udp_set, blz_unix_set, and so on. Both give 0; -EINVAL: no such option, or the value is out
 * of range; -ENOPROTOOPT or -ENOTSUP: not for this kind of socket, or this system does not have
 * it; -EBADF: closed. [any thread]
 */
#ifndef BLITZ_SOCKET_H
#define BLITZ_SOCKET_H

#include <blitz/addr.h>
#include <blitz/io.h>

BLZ_BEGIN_DECLS

/* ---- Options ---- */

/*
 * Values are 0 or 1 unless it says otherwise. Times are in nanoseconds, and rounded up to what the
 * system can do, which is whole seconds but for USER_TIMEOUT (milliseconds).
 *
 *     -ENOTSUP on        options
 *     macOS              QUICKACK, FAST_OPEN_CONNECT, GRO, GSO, PASS_CRED
 *     FreeBSD            QUICKACK, USER_TIMEOUT, FAST_OPEN_CONNECT, GRO, GSO
 *     NetBSD, OpenBSD    QUICKACK, USER_TIMEOUT, FAST_OPEN, FAST_OPEN_CONNECT, GRO, GSO
 *     Windows            QUICKACK, REUSE_PORT, PASS_CRED. REUSE_ADDR does nothing there
 */
typedef enum blz_opt {
    BLZ_OPT_NODELAY = 1,    /* TCP: send small pieces at once. We set it; the system does not */
    BLZ_OPT_QUICKACK,       /* TCP: acknowledge at once; the system may go back on it by itself */
    BLZ_OPT_KEEPALIVE,      /* ask a silent peer whether it is still there */
    BLZ_OPT_KEEPALIVE_IDLE, /* TCP, time: silence before the first question; to 32767 s */
    BLZ_OPT_KEEPALIVE_INTERVAL, /* TCP, time: between two questions; to 32767 s */
    BLZ_OPT_KEEPALIVE_COUNT,    /* TCP, 1 to 127: questions before the connection is given up */
    BLZ_OPT_USER_TIMEOUT, /* TCP, time: data unacknowledged for so long ends it; 0: as usual */
    BLZ_OPT_LINGER,       /* 0: closing resets the connection; -1 (as it is at first): closing sends
                             what is left in the background. There is no waiting for it: that would
                             stop a whole thread. Use shutdown, and read until the end */
    BLZ_OPT_REUSE_ADDR,   /* bind to an address that old connections still hold */
    BLZ_OPT_REUSE_PORT,   /* several sockets share an address */
    BLZ_OPT_SEND_BUFFER,  /* bytes; the system doubles it, and says so when asked */
    BLZ_OPT_RECV_BUFFER,  /* the same */
    BLZ_OPT_TTL,          /* 1 to 255: hops that a packet may make (IPv6: hop limit) */
    BLZ_OPT_TRAFFIC_CLASS, /* 0 to 255: IPv4's type of service, IPv6's traffic class */
    BLZ_OPT_FAST_OPEN,     /* listener, 0 and up: that many may send data with their first packet */
    BLZ_OPT_FAST_OPEN_CONNECT, /* TCP, before connecting: connect with the first data */
    BLZ_OPT_V6_ONLY,           /* IPv6, before binding: not IPv4 as well */
    BLZ_OPT_BROADCAST,         /* UDP: may send to broadcast addresses */
    BLZ_OPT_MULTICAST_LOOP,    /* UDP: what is sent to a group comes back to members here */
    BLZ_OPT_MULTICAST_TTL,     /* UDP, 0 to 255: hops of what is sent to a group */
    BLZ_OPT_GRO,               /* UDP: several datagrams may be received as one (blitz/udp.h) */
    BLZ_OPT_GSO,               /* UDP, 0 to 65535: what is sent is cut into pieces of that size */
    BLZ_OPT_PASS_CRED,         /* Unix: peers' credentials come with messages */
    BLZ_OPT_ERROR, /* get only: takes the pending error (as a positive errno), 0: none */
    BLZ_OPT_NR_
} blz_opt;

/* Room for the name of a network interface, with the final NUL. */
enum { BLZ_DEVICE_NAME = 16 };

/* ---- Readiness ---- */

/* For blz_tcp_ready and its kin. */
enum { BLZ_READABLE = 0x1, BLZ_WRITABLE = 0x4 };

/* ---- Messages ---- */

/* What was wrong with a message that has been received. */
enum {
    BLZ_MSG_TRUNCATED = 0x1,    /* the datagram was longer than the buffer; the rest is lost */
    BLZ_MSG_FDS_TRUNCATED = 0x2 /* there were more descriptors than asked for; they are closed */
};

/* Descriptors that go with one message at most. */
enum { BLZ_MSG_FDS = 24 };

/*
 * An operation that receives or sends more than bytes: an address, descriptors. Like blz_io, which
 * it begins with, it must be zero before its first use, and stays untouched until it is ready.
 */
typedef struct blz_msg {
    blz_io io;
    uint32_t flags;   /* after receiving: BLZ_MSG_* */
    uint32_t segment; /* after receiving with GRO: the length of each datagram but the last; or 0 */
    uint32_t nr_fds;  /* after receiving: descriptors that came */
    uint32_t reserved;
    uint64_t private_[28];
} blz_msg;

/* The future of blz_tcp_serve and blz_unix_serve. */
typedef struct blz_serve_op {
    blz_future future;
    uint64_t private_[28];
} blz_serve_op;

BLZ_END_DECLS
#endif
