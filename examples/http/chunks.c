/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunked bodies: size in hex, CRLF, that many bytes, CRLF, again and again until a size of 0; then
 * trailers, which are dropped, and an empty line.
 *
 * One state a kind of byte; the data of a chunk is moved as a whole.
 */
#include "http.h"

#include <string.h>

enum state {
    SIZE_FIRST,    /* at least one digit */
    SIZE,          /* more of them */
    EXTENSION,     /* ;what=ever, until the end of the line */
    SIZE_LF,       /* after the CR */
    DATA,          /* `left` bytes */
    DATA_CR,       /* behind them */
    DATA_LF,       /* */
    TRAILER_FIRST, /* the first byte of a line after the last chunk */
    TRAILER,       /* more of it */
    TRAILER_LF,    /* its end */
    LAST_LF,       /* the end of the empty line */
    COMPLETE,
};

enum { MAX_DIGITS = 16 };

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int on_size(struct http_chunks *c, char byte)
{
    int digit = digit_of(byte);

    if (digit >= 0) {
        c->left = c->left * 16 + (uint64_t)digit;
        c->digits = c->state == SIZE_FIRST ? 1 : c->digits + 1;
        c->state = SIZE;
        return c->digits > MAX_DIGITS ? -400 : c->left > HTTP_BODY_MAX ? -413 : 0;
    }
    if (c->state == SIZE_FIRST || (byte != '\r' && byte != ';'))
        return -400;
    c->state = byte == '\r' ? SIZE_LF : EXTENSION;
    return 0;
}

/* In an extension or a trailer: anything but control characters, and not too much of it. */
static int on_text(struct http_chunks *c, char byte, enum state same, enum state after_cr)
{
    if (++c->around > HTTP_TRAILER_MAX)
        return -431;
    c->state = (uint16_t)(byte == '\r' ? after_cr : same);
    return byte == '\r' || byte == '\t' || (unsigned char)byte >= ' ' ? 0 : -400;
}

static int expect(struct http_chunks *c, char byte, char wanted, enum state next)
{
    c->state = next;
    return byte == wanted ? 0 : -400;
}

/* One byte that is not data. */
static int on_byte(struct http_chunks *c, char byte)
{
    switch ((enum state)c->state) {
    case SIZE_FIRST:
    case SIZE:
        return on_size(c, byte);
    case EXTENSION:
        return on_text(c, byte, EXTENSION, SIZE_LF);
    case SIZE_LF:
        return expect(c, byte, '\n', c->left > 0 ? DATA : TRAILER_FIRST);
    case DATA_CR:
        return expect(c, byte, '\r', DATA_LF);
    case DATA_LF:
        return expect(c, byte, '\n', SIZE_FIRST);
    case TRAILER_FIRST:
        return byte == ' ' || byte == '\t' ? -400 : on_text(c, byte, TRAILER, LAST_LF);
    case TRAILER:
        return on_text(c, byte, TRAILER, TRAILER_LF);
    case TRAILER_LF:
        return expect(c, byte, '\n', TRAILER_FIRST);
    case LAST_LF:
        return expect(c, byte, '\n', COMPLETE);
    case DATA:
    case COMPLETE:
        break;
    }
    return -400;
}

int http_chunks_decode(struct http_chunks *c, char *out, const char *data, size_t *len,
                       size_t *used)
{
    size_t from = 0, to = 0;
    int rc = 0;

    while (from < *len && rc == 0 && c->state != COMPLETE) {
        if (c->state == DATA) {
            size_t n = *len - from < c->left ? *len - from : (size_t)c->left;
            memmove(out + to, data + from, n);
            from += n;
            to += n;
            c->left -= n;
            if (c->left == 0)
                c->state = DATA_CR;
        } else {
            rc = on_byte(c, data[from++]);
        }
    }
    *len = to;
    *used = from;
    return rc < 0 ? rc : c->state == COMPLETE;
}
