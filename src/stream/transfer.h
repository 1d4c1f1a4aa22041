/* SPDX-License-Identifier: Apache-2.0 */
/* Moving bytes between two descriptors by system calls that do not wait. See transfer.c. */
#ifndef BLZ_STREAM_TRANSFER_H
#define BLZ_STREAM_TRANSFER_H

#include "stream/stream.h"

/* What a step could not go on without. */
enum { BLOCKED_NOT, BLOCKED_FROM, BLOCKED_TO, BLOCKED_DISK };

struct transfer {
    struct io_call call; /* first: what the driver calls */
    blz__fd_ref from, to;
    uint64_t left; /* bytes that may still be read */
    const blz_allocator *allocator;
    /* how it goes now */
    int (*move)(struct transfer *t, blz_sysfd from, blz_sysfd to, int64_t *moved);
    char *kept; /* bytes that were read, and not written yet; or NULL */
    uint32_t kept_at, kept_len;
    uint32_t in_pipe, pipe_size;
    blz_sysfd pipe[2];
    int64_t offset; /* of files */
    int64_t error;  /* has been met after bytes were moved */
    uint8_t blocked;
    uint8_t full_reads; /* in a row */
    bool begun;         /* bytes have been moved */
    bool ended;         /* nothing more is to be read */
    bool no_splice;     /* has been refused */
};

/*
 * What becomes of an operation whose call is blocked by the other side: no error has this number.
 */
#define TRANSFER_ELSEWHERE (-3999)

/* Whether these two can be used so; then it is ready to begin. */
bool blz__transfer_init(struct transfer *t, const blz_stream *from, const blz_stream *to);

/*
 * Awaits the next step: bytes moved; 0: the end; TRANSFER_ELSEWHERE: see `blocked`; -ENOTSUP:
 * nothing has been moved, and the system does not want to. [task]
 */
blz_future *blz__transfer_step(struct transfer *t, blz_io *io);

/* Gives back what it has. */
void blz__transfer_end(struct transfer *t);

#endif
