/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a request, line by line. A line is looked at once, when its end has come; in between
 * there are two offsets to remember. So a client that sends its request byte by byte costs no more
 * than one that sends it at once, and what is wrong is found at the end of the line that it is in.
 */
#include "http.h"

#include <string.h>

enum { SEEN_HOST = 1, SEEN_LENGTH = 2, SEEN_ENCODING = 4, SEEN_CLOSE = 8, SEEN_KEEP_ALIVE = 16 };

/* ---- characters ---- */

enum { TOKEN = 1, TARGET = 2, VALUE = 4 };

#define T (TOKEN | TARGET | VALUE) /* letters, digits and !#$%&'*+-.^_`|~ */
#define G (TARGET | VALUE)         /* the other visible ones */
#define V VALUE                    /* space, tab, and bytes above 127 */

/* clang-format off */
static const uint8_t kinds[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, V, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    V, T, G, T, T, T, T, T, G, G, T, T, G, T, T, G,
    T, T, T, T, T, T, T, T, T, T, G, G, G, G, G, G,
    G, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T,
    T, T, T, T, T, T, T, T, T, T, T, G, G, G, T, T,
    T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T,
    T, T, T, T, T, T, T, T, T, T, T, G, T, G, T, 0,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
};
/* clang-format on */

#undef T
#undef G
#undef V

/* How many characters at `text` are of this kind. */
static size_t span_of(const char *text, size_t len, uint8_t kind)
{
    size_t n = 0;

    while (n < len && (kinds[(unsigned char)text[n]] & kind))
        n++;
    return n;
}

/* Whether eight characters are all plain: at least `lowest`, which is a space or more, to '~'. */
static bool is_plain(const char *text, unsigned char lowest)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t x;

    memcpy(&x, text, 8);
    return ((x | (x + ones) | (x - lowest * ones)) & ones << 7) == 0;
}

/* Whether all are of this kind: VALUE or TARGET. Eight at a time; the last eight may overlap. */
static bool are_all(const char *text, size_t len, uint8_t kind)
{
    unsigned char lowest = kind == VALUE ? ' ' : '!';
    size_t n = 0;

    while (n + 8 < len && is_plain(text + n, lowest))
        n += 8;
    if (n + 8 >= len && len >= 8 && is_plain(text + len - 8, lowest))
        return true;
    return span_of(text + n, len - n, kind) == len - n;
}

/* Whatever its case. `word` has small letters and hyphens; `text` has no control characters. */
static bool is_word(const char *text, size_t len, const char *word, size_t word_len)
{
    if (len != word_len)
        return false;
    for (size_t i = 0; i < len; i++)
        if ((text[i] | 0x20) != word[i])
            return false;
    return true;
}

#define IS(text, len, word) is_word((text), (len), (word), sizeof(word) - 1)

/* ---- the request line ---- */

static enum http_method method_of(const char *text, size_t len)
{
    if (len == 3 && memcmp(text, "GET", 3) == 0)
        return HTTP_GET;
    if (len == 4 && memcmp(text, "HEAD", 4) == 0)
        return HTTP_HEAD;
    if (len == 4 && memcmp(text, "POST", 4) == 0)
        return HTTP_POST;
    return HTTP_OTHER;
}

/* /path?query, also behind http://host, or a lone *. False: none of these. */
static bool split_target(struct http_request *r, const char *buf)
{
    const char *target = buf + r->target.at;
    size_t len = r->target.len, at = 0, path;
    const char *mark;

    if (len > 7 && memcmp(target, "http://", 7) == 0) {
        const char *slash = memchr(target + 7, '/', len - 7);
        if (!slash)
            return false;
        at = (size_t)(slash - target);
    }
    if (target[at] != '/' && !(len == 1 && target[0] == '*'))
        return false;
    mark = memchr(target + at, '?', len - at);
    path = mark ? (size_t)(mark - target) - at : len - at;
    r->path = (struct http_span){(uint16_t)(r->target.at + at), (uint16_t)path};
    if (mark)
        r->query =
            (struct http_span){(uint16_t)(r->path.at + path + 1), (uint16_t)(len - at - path - 1)};
    return true;
}

static int parse_version(struct http_request *r, const char *text, size_t len)
{
    if (len != 8 || memcmp(text, "HTTP/", 5) != 0 || text[6] != '.' || text[5] < '0' ||
        text[5] > '9' || text[7] < '0' || text[7] > '9')
        return -400;
    if (text[5] != '1')
        return -505;
    r->minor = text[7] != '0'; /* a minor version above ours is spoken to as ours */
    return 0;
}

static int parse_request_line(struct http_request *r, const char *buf, size_t at, size_t len)
{
    size_t method = span_of(buf + at, len, TOKEN), target;

    if (method == 0 || method == len || buf[at + method] != ' ')
        return -400;
    target = span_of(buf + at + method + 1, len - method - 1, TARGET);
    if (target == 0 || method + 1 + target == len || buf[at + method + 1 + target] != ' ')
        return -400;
    r->method = (uint8_t)method_of(buf + at, method);
    r->method_text = (struct http_span){(uint16_t)at, (uint16_t)method};
    r->target = (struct http_span){(uint16_t)(at + method + 1), (uint16_t)target};
    if (!split_target(r, buf))
        return -400;
    return parse_version(r, buf + at + method + target + 2, len - method - target - 2);
}

/* ---- headers ---- */

/* Takes note of a header that may come only once. */
static int once(struct http_request *r, unsigned which)
{
    if (r->seen & which)
        return -400;
    r->seen |= (uint16_t)which;
    return 0;
}

static int on_host(struct http_request *r, const char *value, size_t len)
{
    if (!are_all(value, len, TARGET)) /* no spaces: not two of them */
        return -400;
    return once(r, SEEN_HOST);
}

static int on_content_length(struct http_request *r, const char *value, size_t len)
{
    uint64_t n = 0;

    if (len == 0)
        return -400;
    for (size_t i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9' || n > (UINT64_MAX - 9) / 10)
            return -400;
        n = n * 10 + (uint64_t)(value[i] - '0');
    }
    r->content_length = n;
    return once(r, SEEN_LENGTH);
}

static int on_transfer_encoding(struct http_request *r, const char *value, size_t len)
{
    r->chunked = IS(value, len, "chunked");
    return r->chunked ? once(r, SEEN_ENCODING) : -501;
}

static int on_expect(struct http_request *r, const char *value, size_t len)
{
    r->expects_continue =
        len == 12 && memcmp(value, "100-", 4) == 0 && IS(value + 4, len - 4, "continue");
    return r->expects_continue ? 0 : -417;
}

/* A list: "keep-alive, upgrade". */
static int on_connection(struct http_request *r, const char *value, size_t len)
{
    while (len > 0) {
        size_t word = span_of(value, len, TOKEN);
        if (IS(value, word, "close"))
            r->seen |= SEEN_CLOSE;
        if (IS(value, word, "keep-alive"))
            r->seen |= SEEN_KEEP_ALIVE;
        if (word == 0)
            word = 1; /* a comma, a space, something that we do not know */
        value += word;
        len -= word;
    }
    return 0;
}

/* Most headers are none of ours; the length of the name tells nearly all of them apart. */
static int on_header(struct http_request *r, const char *name, size_t name_len, const char *value,
                     size_t len)
{
    switch (name_len) {
    case 4:
        return IS(name, name_len, "host") ? on_host(r, value, len) : 0;
    case 6:
        return IS(name, name_len, "expect") ? on_expect(r, value, len) : 0;
    case 10:
        return IS(name, name_len, "connection") ? on_connection(r, value, len) : 0;
    case 14:
        return IS(name, name_len, "content-length") ? on_content_length(r, value, len) : 0;
    case 17:
        return IS(name, name_len, "transfer-encoding") ? on_transfer_encoding(r, value, len) : 0;
    default:
        return 0;
    }
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static int parse_header(struct http_request *r, const char *line, size_t len)
{
    size_t name = span_of(line, len, TOKEN), from = name + 1, to = len;

    /* No name: a folded line, for one. A space before the colon: understood differently by many. */
    if (name == 0 || name == len || line[name] != ':')
        return -400;
    if (!are_all(line + from, len - from, VALUE))
        return -400;
    while (from < to && is_blank(line[from]))
        from++;
    while (to > from && is_blank(line[to - 1]))
        to--;
    if (++r->nr_headers > HTTP_HEADERS_MAX)
        return -431;
    return on_header(r, line, name, line + from, to - from);
}

/* ---- all of it ---- */

static int finish(struct http_request *r, size_t len)
{
    if (r->minor == 1 && !(r->seen & SEEN_HOST))
        return -400;
    if (r->chunked && (r->minor == 0 || (r->seen & SEEN_LENGTH)))
        return -400; /* where does the body end? */
    r->keep_alive = !(r->seen & SEEN_CLOSE) && (r->minor == 1 || (r->seen & SEEN_KEEP_ALIVE));
    return (int)len;
}

/* One line without its CRLF. The length of the head if it was the last, or 0. */
static int parse_line(struct http_request *r, const char *buf, size_t at, size_t len)
{
    if (r->target.len == 0)
        return len == 0 ? 0 /* empty lines before a request are fine */
                        : parse_request_line(r, buf, at, len);
    return len == 0 ? finish(r, at + 2) : parse_header(r, buf + at, len);
}

/* An incomplete request line that can no longer become one: another protocol, mostly. */
static bool is_hopeless(const struct http_request *r, const char *buf, size_t len)
{
    size_t method, at;

    if (r->target.len > 0)
        return false;
    method = span_of(buf + r->line, len - r->line, TOKEN);
    at = r->line + method;
    return at < len && (method == 0 ? buf[at] != '\r' : buf[at] != ' ');
}

int http_parse(struct http_request *r, const char *buf, size_t len)
{
    size_t max = len < HTTP_HEAD_MAX ? len : HTTP_HEAD_MAX;

    while (r->scanned < max) {
        const char *end = memchr(buf + r->scanned, '\n', max - r->scanned);
        size_t at = r->line;
        int rc;
        if (!end)
            break;
        r->line = r->scanned = (uint16_t)(end - buf + 1);
        if (r->line < at + 2 || end[-1] != '\r')
            return -400;
        rc = parse_line(r, buf, at, r->line - at - 2u);
        if (rc != 0)
            return rc;
    }
    r->scanned = (uint16_t)max;
    if (is_hopeless(r, buf, max))
        return -400;
    if (max == HTTP_HEAD_MAX)
        return r->target.len == 0 ? -414 : -431;
    return 0;
}

bool http_query_number(const char *query, size_t len, const char *name, uint64_t max, uint64_t *n)
{
    size_t name_len = strlen(name);

    while (len > 0) {
        const char *mark = memchr(query, '&', len);
        size_t pair = mark ? (size_t)(mark - query) : len, i = name_len + 1;
        if (pair > i && memcmp(query, name, name_len) == 0 && query[name_len] == '=') {
            for (*n = 0; i < pair && query[i] >= '0' && query[i] <= '9' && *n <= max; i++)
                *n = *n * 10 + (uint64_t)(query[i] - '0');
            return i == pair && *n <= max;
        }
        query += mark ? pair + 1 : pair;
        len -= mark ? pair + 1 : pair;
    }
    return false;
}
