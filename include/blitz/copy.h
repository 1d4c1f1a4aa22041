/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying from one stream to another, and both ways between two: a proxy is little more.
 *
 *     struct relay { BLZ_FRAME; blz_tcp client, server; blz_copy_both_op op; int64_t rc; };
 *
 *     BLZ_ASYNC(relay)
 *     {
 *         BLZ_BEGIN;
 *         BLZ_AWAIT(self->rc, blz_copy_both(&self->op, blz_tcp_stream(&self->client),
 *                                           blz_tcp_stream(&self->server),
 *                                           &(blz_copy_options){.idle_ns = 60 * BLZ_SEC}));
 *         printf("%" PRIu64 " bytes up, %" PRIu64 " down\n", self->op.a_to_b, self->op.b_to_a);
 *         blz_tcp_close(&self->client);
 *         blz_tcp_close(&self->server);
 *         BLZ_END(self->rc);
 *     }
 *
 * Bytes stay in the kernel where both ends allow that: from socket to socket, and between sockets
 * and pipes (splice), from files to sockets (sendfile, of what is in the system's memory), from
 * file to file (copy_file_range). A connection that moves little has no memory and no descriptors
 * of its own while it waits. Everything else goes through a buffer of 64 KiB, which is there as
 * long as the copy goes on. What is faster where, and when, is decided as it goes.
 *
 * Interruptible, but for files. Bytes that have been read when it is cancelled, or when writing
 * fails, and have not been written yet, are lost: up to a megabyte.
 */
#ifndef BLITZ_COPY_H
#define BLITZ_COPY_H

#include <blitz/stream.h>

BLZ_BEGIN_DECLS

/* All zero means the default. */
typedef struct blz_copy_options {
    uint64_t limit; /* blz_copy: bytes at most; default: to the end */
    /* blz_copy_both: no byte in either direction for so long ends it; default: no limit */
    int64_t idle_ns;
    bool plain; /* always through a buffer */
    uint64_t reserved[4];
} blz_copy_options;

/* The future of blz_copy. */
typedef struct blz_copy_op {
    blz_future future;
    uint64_t done; /* bytes written, valid at any time */
    uint64_t private_[108];
} blz_copy_op;

/*
 * Copies from `from` to `to` until the end, or the limit, and flushes: the number of bytes. `to` is
 * not shut down. Neither may be used in that direction meanwhile. -ENOMEM: for the buffer; or what
 * reading or writing says. op->done says how many bytes were written, whatever the result. The
 * options are copied; NULL: the defaults. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_copy(blz_copy_op *op, blz_stream from, blz_stream to,
                                           const blz_copy_options *options);

/* The future of blz_copy_both. */
typedef struct blz_copy_both_op {
    blz_future future;
    uint64_t a_to_b, b_to_a; /* bytes written, valid at any time */
    uint64_t private_[330];
} blz_copy_both_op;

/*
 * Copies both ways until both directions have ended: 0. The end of one stream shuts down the other
 * one, and the opposite direction goes on. The first error ends both: it is the result.
 * -ETIMEDOUT: nothing moved for as long as the options allow. Nothing is closed. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_copy_both(blz_copy_both_op *op, blz_stream a, blz_stream b,
                                                const blz_copy_options *options);

BLZ_END_DECLS
#endif
