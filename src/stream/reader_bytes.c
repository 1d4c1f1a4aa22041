/* SPDX-License-Identifier: Apache-2.0 */
/* Reading into memory that grows: up to a byte, or to the end, and never beyond a limit. */
#include "stream/reader.h"

#include "base/alloc.h"

#include <blitz/error.h>

enum { FIRST_CAPACITY = 256 };

/* Room for so many bytes and a zero; twice as much as before, if that is more. */
static int reserve(blz_bytes *bytes, const blz_allocator *allocator, size_t capacity)
{
    size_t size = bytes->capacity_ < SIZE_MAX / 2 ? 2 * bytes->capacity_ : SIZE_MAX - 1;
    char *data;

    if (bytes->data && bytes->capacity_ >= capacity)
        return 0;
    if (size < FIRST_CAPACITY)
        size = FIRST_CAPACITY;
    if (size < capacity)
        size = capacity;
    if (bytes->data)
        allocator = &bytes->allocator_;
    data = blz__alloc(allocator, size + 1, 1);
    if (!data)
        return -ENOMEM;
    if (bytes->data) {
        memcpy(data, bytes->data, bytes->len);
        blz__free(allocator, bytes->data, bytes->capacity_ + 1, 1);
    } else {
        bytes->allocator_ = *allocator;
        bytes->len = 0;
    }
    bytes->data = data;
    bytes->capacity_ = size;
    return 0;
}

/* Moves `n` bytes from the buffer to the end of *out_, as far as the limit (len_) allows. */
static int64_t append(blz_reader *r, size_t n, blz_cx *cx)
{
    blz_bytes *out = r->out_;
    size_t room = out->len < r->len_ ? r->len_ - out->len : 0;
    bool too_much = n > room;

    if (too_much)
        n = room;
    if (reserve(out, blz__rt_allocator(blz_cx_rt(cx)), out->len + n) < 0)
        return -ENOMEM;
    if (n > 0)
        memcpy(out->data + out->len, r->buf + r->pos, n);
    out->len += n;
    out->data[out->len] = '\0';
    blz_reader_consume(r, n);
    r->done += n;
    return too_much ? -EMSGSIZE : 0;
}

static int64_t read_until_step(blz_reader *r, blz_cx *cx)
{
    size_t there = r->end - r->pos;
    const char *start = r->buf + r->pos, *at = there ? memchr(start, r->delimiter_, there) : NULL;
    int64_t rc = append(r, at ? (size_t)(at - start) + 1 : there, cx);

    if (rc < 0)
        return rc;
    return at || r->ended_ ? (int64_t)r->done : NEED_MORE;
}

blz_future *blz_reader_read_until(blz_reader *reader, blz_bytes *out, size_t max, char delimiter)
{
    reader->delimiter_ = (unsigned char)delimiter;
    return reader_begin(reader, read_until_step, out, max);
}

static int64_t read_to_end_step(blz_reader *r, blz_cx *cx)
{
    int64_t rc = append(r, r->end - r->pos, cx);

    if (rc < 0)
        return rc;
    return r->ended_ ? (int64_t)r->done : NEED_MORE;
}

blz_future *blz_reader_read_to_end(blz_reader *reader, blz_bytes *out, size_t max)
{
    return reader_begin(reader, read_to_end_step, out, max);
}
