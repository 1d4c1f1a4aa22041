/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying. A pump moves bytes in one direction until the end, by the first of these ways that is
 * open:
 *
 *   descriptors  sockets and pipes at both ends, or a file and a socket: transfer.c
 *   files        from file to file: the system copies, on a thread, a piece at a time
 *   a buffer     everything else, and what the system does not want to do
 *
 * Both ways are two pumps, of which the first error ends both, beside a watch for silence.
 */
#include "stream/transfer.h"

#include "base/alloc.h"
#include "combine/combine.h"
#include "system/transfer.h"
#include "time/time.h"

#include <blitz/async.h>
#include <blitz/copy.h>

#include <blitz/error.h>
#include <string.h>

enum {
    BUFFER = 64 << 10,
    DISK_PIECE = 256 << 10, /* read by hand, when sendfile would wait */
    FILE_PIECE = 32 << 20,  /* copied between two looks for a cancellation */
    TURN = 1 << 20,         /* bytes after which others are let in */
};

/* What a copy counts, and what its watch looks at. */
struct meter {
    uint64_t *done;
    int64_t *moved_ns; /* or NULL */
};

static void count(const struct meter *meter, uint64_t n)
{
    *meter->done += n;
    if (meter->moved_ns && n > 0)
        *meter->moved_ns = blz_now();
}

/* ---- through a buffer ---- */

/* Up to `left` bytes: the number, which is less only at the end. */
struct by_buffer {
    BLZ_FRAME;
    blz_stream from, to;
    struct meter meter;
    uint64_t left, all;
    const blz_allocator *allocator;
    char *buf;
    int64_t n;
    blz_stream_op op;
};

BLZ_ASYNC(by_buffer)
{
    BLZ_BEGIN;
    self->allocator = blz__rt_allocator(blz_cx_rt(cx));
    self->buf = blz__alloc(self->allocator, BUFFER, 64);
    self->n = self->buf ? 0 : -ENOMEM;
    while (self->n >= 0 && self->left > 0) {
        BLZ_AWAIT(self->n, blz_stream_read(&self->op.io, &self->from, self->buf,
                                           self->left < BUFFER ? (size_t)self->left : BUFFER));
        if (self->n <= 0)
            break;
        self->left -= (uint64_t)self->n;
        BLZ_AWAIT(self->n, blz_stream_write_all(&self->op, &self->to, self->buf, (size_t)self->n));
        self->all += self->op.done;
        count(&self->meter, self->op.done);
    }
    if (self->buf)
        blz__free(self->allocator, self->buf, BUFFER, 64);
    BLZ_END(self->n < 0 ? self->n : (int64_t)self->all);
}

/* ---- by descriptors ---- */

/* 0: to the end. */
struct by_descriptors {
    BLZ_FRAME;
    struct meter meter;
    struct transfer *transfer;
    blz_stream from, to;
    uint64_t turn;
    int64_t n;
    union {
        blz_io io;
        blz_future pause;
        struct by_buffer buffer;
    };
};

/* Bytes that were read by hand. */
static void pass_over(struct transfer *t, int64_t n)
{
    t->offset += n;
    t->left -= (uint64_t)n;
    t->begun |= n > 0;
    t->ended = n < DISK_PIECE;
}

BLZ_ASYNC(by_descriptors)
{
    BLZ_BEGIN;
    for (;;) {
        memset(&self->io, 0, sizeof self->io);
        BLZ_AWAIT(self->n, blz__transfer_step(self->transfer, &self->io));
        if (self->n > 0) {
            count(&self->meter, (uint64_t)self->n);
            self->turn += (uint64_t)self->n;
        } else if (self->n != TRANSFER_ELSEWHERE) {
            break;
        } else if (self->transfer->blocked == BLOCKED_DISK) {
            BLZ_CALL(self->n, self->buffer, by_buffer, .from = self->from, .to = self->to,
                     .meter = self->meter,
                     .left = self->transfer->left < DISK_PIECE ? self->transfer->left : DISK_PIECE);
            if (self->n < 0)
                break;
            pass_over(self->transfer, self->n);
        } else if (self->transfer->blocked == BLOCKED_NOT) {
            self->turn = TURN;
        }
        if (self->turn >= TURN) {
            self->turn = 0;
            BLZ_AWAIT(self->n, blz_yield(&self->pause));
        }
    }
    BLZ_END(self->n);
}

/* ---- by the system ---- */

/* 0: to the end; -ENOTSUP: nothing has been copied, and the system does not want to. */
struct by_range {
    BLZ_FRAME;
    struct meter meter;
    blz__fd_ref from, to;
    uint64_t left;
    bool begun;
    int64_t n;
    blz_blocking_op op;
};

static int64_t copy_range(blz_sysfd from, blz_sysfd to, uint64_t left)
{
    return blz__transfer_copy(from, to, left < FILE_PIECE ? (size_t)left : FILE_PIECE);
}

/* On a thread of the pool. */
static int64_t copy_piece(void *arg)
{
    struct by_range *self = arg;
    int from = blz__fd_acquire(&self->from), to = blz__fd_acquire(&self->to);
    int64_t n = from < 0 ? from : to < 0 ? to : copy_range(from, to, self->left);

    if (from >= 0)
        blz__fd_release(&self->from);
    if (to >= 0)
        blz__fd_release(&self->to);
    return n;
}

BLZ_ASYNC(by_range)
{
    BLZ_BEGIN;
    do {
        BLZ_AWAIT(self->n, blz_blocking(&self->op, copy_piece, self));
        if (self->n > 0) {
            self->begun = true;
            self->left -= (uint64_t)self->n;
            count(&self->meter, (uint64_t)self->n);
        }
    } while (self->n > 0 && self->left > 0);
    if (!self->begun && self->n == 0)
        self->n = -ENOTSUP; /* a file whose length the system does not know looks empty */
    if (self->begun && self->n == -ENOTSUP)
        self->n = -EINVAL; /* the caller cannot begin in another way any more */
    BLZ_END(self->n < 0 ? self->n : 0);
}

/* ---- one direction ---- */

/* 0: to the end, or the limit. */
struct pump {
    BLZ_FRAME;
    blz_stream from, to;
    struct meter meter;
    uint64_t left;
    bool plain, shuts_down;
    int64_t n;
    struct transfer transfer;
    union {
        struct by_descriptors descriptors;
        struct by_range range;
        struct by_buffer buffer;
        blz_io io;
    };
};

static bool can_transfer(struct pump *self, blz_cx *cx)
{
    if (self->plain || !blz__transfer_init(&self->transfer, &self->from, &self->to))
        return false;
    self->transfer.left = self->left;
    self->transfer.allocator = blz__rt_allocator(blz_cx_rt(cx));
    return true;
}

static bool are_files(const struct pump *self)
{
    return !self->plain && stream_kind(&self->from) == STREAM_FILE &&
           stream_kind(&self->to) == STREAM_FILE;
}

BLZ_ASYNC(pump)
{
    BLZ_BEGIN;
    self->n = -ENOTSUP;
    if (can_transfer(self, cx)) {
        BLZ_CALL(self->n, self->descriptors, by_descriptors, .meter = self->meter,
                 .transfer = &self->transfer, .from = self->from, .to = self->to);
        blz__transfer_end(&self->transfer);
    } else if (are_files(self)) {
        BLZ_CALL(self->n, self->range, by_range, .meter = self->meter,
                 .from = stream_ref(&self->from), .to = stream_ref(&self->to), .left = self->left);
    }
    if (self->n == -ENOTSUP)
        BLZ_CALL(self->n, self->buffer, by_buffer, .from = self->from, .to = self->to,
                 .meter = self->meter, .left = self->left);
    if (self->n < 0)
        goto out;
    memset(&self->io, 0, sizeof self->io);
    BLZ_AWAIT(self->n, self->shuts_down ? blz_stream_shutdown(&self->io, &self->to)
                                        : blz_stream_flush(&self->io, &self->to));
    if (self->n == -ENOTCONN)
        self->n = 0; /* has gone; the other direction will say so */
out:
    BLZ_END(self->n);
}

struct copy {
    BLZ_FRAME;
    uint64_t done;
    struct pump pump;
    int64_t n;
};
_Static_assert(sizeof(struct copy) <= sizeof(blz_copy_op), "it is too small");
_Static_assert(offsetof(struct copy, done) == offsetof(blz_copy_op, done), "it is elsewhere");

BLZ_ASYNC(copy)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->n, &self->pump.blz_frame);
    BLZ_END(self->n < 0 ? self->n : (int64_t)self->done);
}

static void pump_init(struct pump *pump, blz_stream from, blz_stream to, uint64_t *done)
{
    pump->blz_frame.ops = &pump_ops;
    pump->from = from;
    pump->to = to;
    pump->meter.done = done;
    pump->left = UINT64_MAX;
}

blz_future *blz_copy(blz_copy_op *op, blz_stream from, blz_stream to,
                     const blz_copy_options *options)
{
    struct copy *self = (struct copy *)(void *)op;

    blz_op_check(&self->blz_frame, &copy_ops);
    memset(self, 0, sizeof *self);
    self->blz_frame.ops = &copy_ops;
    pump_init(&self->pump, from, to, &self->done);
    if (options) {
        self->pump.plain = options->plain;
        if (options->limit)
            self->pump.left = options->limit;
    }
    return &self->blz_frame;
}

/* ---- both ways ---- */

/* Ends when nothing has moved for too long. */
struct watch {
    BLZ_FRAME;
    int64_t idle_ns;
    const int64_t *moved_ns;
    int64_t rc;
    blz_sleep_op sleep;
};

BLZ_ASYNC(watch)
{
    BLZ_BEGIN;
    do
        BLZ_AWAIT(self->rc,
                  blz_sleep_until(&self->sleep, blz_time_add(*self->moved_ns, self->idle_ns)));
    while (self->rc >= 0 && blz_now() < blz_time_add(*self->moved_ns, self->idle_ns));
    BLZ_END(self->rc);
}

struct both {
    BLZ_FRAME;
    uint64_t done[2];
    struct pump pumps[2];
    struct watch watch;
    int64_t moved_ns;
    int64_t rc;
    blz_try_join_op join;
    blz_select_op select;
};
_Static_assert(sizeof(struct both) <= sizeof(blz_copy_both_op), "it is too small");
_Static_assert(offsetof(struct both, done) == offsetof(blz_copy_both_op, a_to_b), "elsewhere");

static blz_future *pump_both(struct both *self)
{
    return blz_try_join(&self->join, &self->pumps[0].blz_frame, &self->pumps[1].blz_frame);
}

BLZ_ASYNC(both)
{
    BLZ_BEGIN;
    if (self->watch.idle_ns < 0) {
        self->rc = -EINVAL;
        goto out;
    }
    if (self->watch.idle_ns == 0 || self->watch.idle_ns == BLZ_NEVER) {
        BLZ_AWAIT(self->rc, pump_both(self));
        goto out;
    }
    self->moved_ns = blz_now();
    BLZ_AWAIT(self->rc, blz_select(&self->select, pump_both(self), &self->watch.blz_frame));
    if (self->rc < 0)
        goto out;
    if (self->rc == 0 || self->join.future.result != -ECANCELED)
        self->rc = self->join.future.result;
    else
        self->rc = self->watch.rc < 0 ? self->watch.rc : -ETIMEDOUT;
out:
    BLZ_END(self->rc);
}

blz_future *blz_copy_both(blz_copy_both_op *op, blz_stream a, blz_stream b,
                          const blz_copy_options *options)
{
    struct both *self = (struct both *)(void *)op;

    blz_op_check(&self->blz_frame, &both_ops);
    memset(self, 0, sizeof *self);
    self->blz_frame.ops = &both_ops;
    pump_init(&self->pumps[0], a, b, &self->done[0]);
    pump_init(&self->pumps[1], b, a, &self->done[1]);
    for (int i = 0; i < 2; i++) {
        self->pumps[i].shuts_down = true;
        self->pumps[i].plain = options && options->plain;
        self->pumps[i].meter.moved_ns = options && options->idle_ns > 0 ? &self->moved_ns : NULL;
    }
    self->watch.blz_frame.ops = &watch_ops;
    self->watch.idle_ns = options ? options->idle_ns : 0;
    self->watch.moved_ns = &self->moved_ns;
    return &self->blz_frame;
}
