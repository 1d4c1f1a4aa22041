/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a stream that end with a byte. What is in the buffer is found by the inline function of
 * the header; this is what is beyond it: parts that are not there yet, too long, or the last one.
 *
 * `searched_` of the reader is where the search goes on, so that no byte is looked at twice however
 * slowly they come. It means the delimiter that was looked for last; whoever takes bytes resets it.
 */
#include "stream/reader.h"

#include <errno.h>

void blz_split_init(blz_split *split, blz_reader *reader, char delimiter, size_t max)
{
    *split = (blz_split){.reader = reader,
                         .max = max ? max : SIZE_MAX,
                         .delimiter = (unsigned char)delimiter};
    reader->searched_ = 0;
}

void blz_lines_init(blz_split *lines, blz_reader *reader, size_t max)
{
    blz_split_init(lines, reader, '\n', max);
    lines->crlf = true;
}

/* Where the delimiter is, or NULL; the next search begins there. */
static const char *search(const blz_split *split)
{
    blz_reader *r = split->reader;
    size_t there = r->end - r->pos;
    const char *start = r->buf + r->pos, *at = NULL;

    if (r->searched_ < there)
        at = memchr(start + r->searched_, split->delimiter, there - r->searched_);
    r->searched_ = at ? (size_t)(at - start) : there;
    return at;
}

/* The length of the part that ends at `at`, without what is before its delimiter. */
static size_t length_of(const blz_split *split, const char *at)
{
    const char *start = split->reader->buf + split->reader->pos;
    size_t len = (size_t)(at - start);

    return split->crlf && len > 0 && at[-1] == '\r' ? len - 1 : len;
}

bool blz_split_rest_(blz_split *split, blz_view *part)
{
    blz_reader *r = split->reader;
    size_t there = r->end - r->pos;
    const char *at = search(split);
    size_t len = at ? length_of(split, at) : there;

    if (len > split->max || (!at && (!r->ended_ || there == 0)))
        return false;
    *part = (blz_view){r->buf + r->pos, len};
    blz_reader_consume(r, at ? r->searched_ + 1 : there);
    return true;
}

/* Whether there is a part. A CR at the end of what is there may turn out to be none of it. */
static int64_t more_step(blz_reader *r, blz_cx *cx)
{
    const blz_split *split = r->more_;
    const char *at = search(split);
    size_t there = r->end - r->pos;

    (void)cx;
    if (at)
        return length_of(split, at) > split->max ? -EMSGSIZE : 1;
    if (there > split->max && (r->ended_ || there - split->max > split->crlf))
        return -EMSGSIZE;
    if (r->ended_)
        return there > 0;
    return NEED_MORE;
}

blz_future *blz_split_more(blz_split *split)
{
    reader_begin(split->reader, more_step, NULL, 0);
    split->reader->more_ = split;
    return &split->reader->future;
}
