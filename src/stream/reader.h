/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of readers share. See reader.c. */
#ifndef BLZ_STREAM_READER_H
#define BLZ_STREAM_READER_H

#include "stream/stream.h"

#include <blitz/bufio.h>

/* What a step says that has to be called again, with more. */
#define NEED_MORE INT64_MIN

extern const blz_future_ops blz__reader_ops;

/*
 * Looks for a byte in buf[from, end): where it is, in order, up to BLZ_READER_FOUND times. Gives
 * the place up to which they are all known. See scan.c.
 */
size_t blz__scan(const char *buf, size_t from, size_t end, unsigned char byte, size_t *found,
                 unsigned *count);

static inline bool is_full(const blz_reader *r)
{
    return r->pos == 0 && r->end == r->size;
}

/* Begins an operation. `out` and `len` are the step's. */
static inline blz_future *reader_begin(blz_reader *r,
                                       int64_t (*step)(blz_reader *reader, blz_cx *cx), void *out,
                                       size_t len)
{
    blz_op_check(&r->future, &blz__reader_ops);
    r->future = (blz_future){.ops = &blz__reader_ops};
    r->done = 0;
    r->step_ = step;
    r->out_ = out;
    r->len_ = len;
    r->into_ = NULL;
    r->got_ = 0;
    r->ended_ = r->cancelled_ = false;
    return &r->future;
}

#endif
