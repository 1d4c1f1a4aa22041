/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1: parsing requests, and other pure functions over bytes. Nothing here reads, waits or
 * allocates; whoever has the bytes calls again when there are more.
 *
 *     struct http_request request = {0};
 *
 *     while ((n = http_parse(&request, buf, len)) == 0)
 *         len += read_some_more(buf + len);
 *     if (n < 0)
 *         return reply_with_status(-n);           // 400, 414, 431, 501, 505, 417
 *     // the head is buf[0..n), the body, if any, comes behind it
 *
 * The parser keeps to the strict side of RFC 9112: lines end in CRLF, nothing is folded, nothing is
 * guessed. What two readers could understand differently is refused, since that is how requests are
 * smuggled past one of them.
 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_HEAD_MAX = 8 << 10,   /* request line and headers together */
    HTTP_HEADERS_MAX = 100,    /* their number */
    HTTP_BODY_MAX = 1 << 20,   /* a chunk; it is for the caller to add them up */
    HTTP_TRAILER_MAX = 4 << 10 /* extensions and trailers of a chunked body */
};

enum http_method { HTTP_OTHER, HTTP_GET, HTTP_HEAD, HTTP_POST };

/* Offsets into the buffer, so that it may move while a request is incomplete. */
struct http_span {
    uint16_t at, len;
};

/* All zero before the first call. */
struct http_request {
    struct http_span method_text, target;
    struct http_span path, query; /* of the target: /path?query */
    uint64_t content_length;
    uint8_t method;  /* enum http_method */
    uint8_t minor;   /* HTTP/1.minor: 0 or 1 */
    bool keep_alive; /* the client would like to go on after this one */
    bool chunked;    /* the body comes in chunks; content_length is 0 */
    bool expects_continue;

    /* How far it has come. */
    uint16_t line;    /* where the line begins that is not complete yet */
    uint16_t scanned; /* no end of line before this */
    uint16_t nr_headers;
    uint16_t seen; /* headers that may come only once, and tokens of Connection */
};

/*
 * Looks at what has come of a request, from its first byte. The length of the head; 0: incomplete,
 * call again with more behind it; negative: a status to refuse it with.
 */
int http_parse(struct http_request *request, const char *buf, size_t len);

/*
 * How many headers of that name (in small letters) a head has that http_parse has been through, and
 * the value of the first.
 */
int http_header(const char *head, size_t len, const char *name, struct http_span *value);

/* The value of a number in a query: name=123. False: not there, not a number, above `max`. */
bool http_query_number(const char *query, size_t len, const char *name, uint64_t max, uint64_t *n);

/*
 * A path as a file name below some root: "/a%20b/./c" is "a b/c", and "/" is ".". Without escapes,
 * empty parts and "."; `out` has room for `len` + 2 bytes, `out` and `path` may not overlap. False:
 * it goes above the root, has a zero, or an escape that is none.
 */
bool http_path_decode(char *out, const char *path, size_t len);

/* ---- What a client has already ---- */

/*
 * Whether a list of tags ("a", W/"b") has this one, weak or not; "*" has all. What is wrong with
 * the rest of the list is not looked for.
 */
bool http_tag_in(const char *list, size_t len, const char *tag);

/*
 * "bytes=5-9", "bytes=5-", "bytes=-5" of something with `size` bytes: 1 and where it begins and how
 * long it is. 0: several, or nothing that we understand: send it all; -416: nothing of it is there.
 */
int http_range_parse(const char *text, size_t len, uint64_t size, uint64_t *at, uint64_t *count);

/* ---- Dates: seconds since 1970 ---- */

enum { HTTP_DATE = 32 }; /* "Sun, 06 Nov 1994 08:49:37 GMT" and a zero */

/* Between the years 1970 and 9999; what is beyond is the nearest of these. */
void http_date_format(char text[HTTP_DATE], int64_t seconds);

/* This form only, and not the two that have been obsolete since 1997. False: not a date. */
bool http_date_parse(const char *text, size_t len, int64_t *seconds);

/* ---- Replies ---- */

/* 404: "Not Found". */
const char *http_status_name(int status);

/* ---- Chunked bodies ---- */

/* All zero before the first call. */
struct http_chunks {
    uint64_t left;   /* of the chunk's data */
    uint32_t around; /* bytes of extensions and trailers so far */
    uint16_t state;
    uint16_t digits; /* of the size */
};

/*
 * Decodes what has come of a chunked body: the *len bytes of `data`. What they mean is moved to
 * `out`, which may be `data` or before it; *len says how much that is, and *used how many bytes
 * were looked at. 1: the body is complete, and the next request begins behind those; 0: call again
 * with more; negative: a status to refuse it with.
 */
int http_chunks_decode(struct http_chunks *chunks, char *out, const char *data, size_t *len,
                       size_t *used);

#endif
