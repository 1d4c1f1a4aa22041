/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a stream that end with a byte. What is in the buffer is found by the inline function of
 * the header; this is what is beyond it: parts that are not there yet, too long, or the last one.
 *
 * Delimiters are found many at a time (scan.c), and their places kept in the reader: up to
 * `scanned_` they are all known, so no byte is looked at twice however slowly they come. They
 * belong to the one who goes through the parts; whoever takes bytes in another way drops them.
 */
#include "stream/reader.h"

#include <blitz/error.h>

void blz_split_init(blz_split *split, blz_reader *reader, char delimiter, size_t max)
{
    *split = (blz_split){.reader = reader,
                         .max = max && max < SIZE_MAX / 2 ? max : SIZE_MAX / 2,
                         .delimiter = (unsigned char)delimiter};
    reader->found_for_ = NULL;
}

void blz_lines_init(blz_split *lines, blz_reader *reader, size_t max)
{
    blz_split_init(lines, reader, '\n', max);
    lines->crlf = true;
}

/* Where the next delimiter is, or NULL. */
static const char *find(const blz_split *split)
{
    blz_reader *r = split->reader;

    if (r->found_for_ != split) {
        r->found_for_ = split;
        r->nr_found_ = r->found_at_ = 0;
        r->scanned_ = r->pos;
    }
    if (r->found_at_ == r->nr_found_) {
        r->nr_found_ = r->found_at_ = 0;
        r->scanned_ = blz__scan(r->buf, r->scanned_ > r->pos ? r->scanned_ : r->pos, r->end,
                                split->delimiter, r->found_, &r->nr_found_);
        r->found_[r->nr_found_] = SIZE_MAX;
    }
    return r->nr_found_ ? r->buf + r->found_[r->found_at_] : NULL;
}

/* The length of the part that ends at `at`, without what is before its delimiter. */
static size_t length_of(const blz_split *split, const char *at)
{
    const char *start = split->reader->buf + split->reader->pos;
    size_t len = (size_t)(at - start);

    return split->crlf && len > 0 && at[-1] == '\r' ? len - 1 : len;
}

bool blz_split_search_(blz_split *split, blz_view *part)
{
    blz_reader *r = split->reader;
    size_t there = r->end - r->pos;
    const char *at = find(split);
    size_t len = at ? length_of(split, at) : there;

    if (len > split->max || (!at && (!r->ended_ || there == 0)))
        return false;
    *part = (blz_view){r->buf + r->pos, len};
    if (at)
        r->pos = r->found_[r->found_at_++] + 1;
    else
        blz_reader_consume(r, there);
    return true;
}

/* Whether there is a part. A CR at the end of what is there may turn out to be none of it. */
static int64_t more_step(blz_reader *r, blz_cx *cx)
{
    const blz_split *split = r->more_;
    const char *at = find(split);
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
