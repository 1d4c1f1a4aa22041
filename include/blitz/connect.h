/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting to a name, or to an address that is text.
 *
 *     struct ask { BLZ_FRAME; blz_tcp conn; blz_tcp_connect_op connect; int64_t rc; };
 *
 *     BLZ_ASYNC(ask)
 *     {
 *         BLZ_BEGIN;
 *         BLZ_AWAIT(self->rc, blz_tcp_connect(&self->connect, &self->conn, "example.org:80",
 *                                             10 * BLZ_SEC));
 *         if (self->rc < 0)
 *             goto out;
 *         ...
 *         blz_tcp_close(&self->conn);
 *     out:
 *         BLZ_END(self->rc);
 *     }
 *
 * The name is looked up, and its addresses are tried as RFC 8305 (happy eyeballs) has it: IPv6 and
 * IPv4 in turn, the next one a quarter of a second after the last, or at once if one has failed.
 * The first connection wins; the other attempts are cancelled, and have ended before the await
 * does. To connect to one blz_addr, blz_tcp_connect_with (blitz/tcp.h) is enough.
 */
#ifndef BLITZ_CONNECT_H
#define BLITZ_CONNECT_H

#include <blitz/dns.h>
#include <blitz/tcp.h>
#include <blitz/time.h>

BLZ_BEGIN_DECLS

/* All zero means the default. */
typedef struct blz_tcp_connect_options {
    int64_t timeout_ns; /* for everything, the lookup included; default: no limit */
    int64_t stagger_ns; /* between attempts; default 250 ms, negative: all at once */
    blz_lookup_hints hints;
    blz_tcp_options tcp; /* what it points to stays valid until the await ends */
    uint64_t reserved[2];
} blz_tcp_connect_options;

/* The future of blz_tcp_connect and blz_tcp_connect_name. */
typedef struct blz_tcp_connect_op {
    blz_future future;
    blz_timeout limit;
    blz_tcp *conn;
    const char *target;
    blz_tcp_connect_options options;
    blz_addrs addrs;
    struct blz__attempt *attempts;
    uint64_t live; /* a bit for each attempt under way */
    uint64_t next; /* address to try */
    int64_t next_at_ns;
    int64_t error; /* to report if all fail */
    uint32_t nr_attempts;
    uint32_t won;
    union {
        blz_dns dns;     /* first */
        blz_timer timer; /* then */
    } phase;
    uint64_t reserved[4];
} blz_tcp_connect_op;

/*
 * Connects to "host:service": a name or an IP address (IPv6 in brackets), and a port or the name of
 * a service. 0 and *conn. On failure there is nothing to close: -ETIMEDOUT after `timeout_ns`
 * (BLZ_NEVER: no limit); -EINVAL: not a target; an error of the lookup (blitz/dns.h); if there were
 * addresses, the error of the first that could be reached, or else of the first. `target` must stay
 * until the first poll. At most 16 attempts are under way at a time; further addresses wait until
 * one of them has failed. Interruptible. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_connect(blz_tcp_connect_op *op, blz_tcp *conn,
                                                  const char *target, int64_t timeout_ns);

/*
 * Connects to "host:service" with options, which are copied; NULL: the default ones. Results and
 * errors are those of blz_tcp_connect. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_tcp_connect_name(blz_tcp_connect_op *op, blz_tcp *conn,
                                                       const char *target,
                                                       const blz_tcp_connect_options *options);

BLZ_END_DECLS
#endif
