/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo's HTTP parser and its decoder of chunks: wherever the input is cut, what comes out is
 * the same. A difference would be a request that two readers understand differently.
 */
#include "fuzz.h"

#include "http.h"

/* Inputs that are longer are cut at fewer places: all of them takes time to the square. */
enum { ALL_CUTS = 200 };

static size_t next_cut(size_t cut, size_t size)
{
    return cut + (size <= ALL_CUTS ? 1 : size / 32 + 1);
}

/* ---- heads ---- */

static int parse_part(struct http_request *request, const uint8_t *data, size_t size)
{
    char *part = exact_copy(data, size, 0);
    int rc = http_parse(request, part, size);

    free(part);
    return rc;
}

static bool inside(struct http_span span, int head)
{
    return span.at + span.len <= head;
}

static void check_request(const struct http_request *r, int head, size_t size)
{
    require(head > 0 && (size_t)head <= size && head <= HTTP_HEAD_MAX);
    require(inside(r->method_text, head) && inside(r->target, head));
    require(inside(r->path, head) && inside(r->query, head));
    require(r->method_text.len > 0 && r->target.len > 0 && r->nr_headers <= HTTP_HEADERS_MAX);
    require(!r->chunked || r->content_length == 0);
}

static void check_head(const uint8_t *data, size_t size)
{
    struct http_request whole = {0}, cut, bytes = {0};
    int rc = parse_part(&whole, data, size), again = 0;

    if (rc > 0)
        check_request(&whole, rc, size);
    else
        require(rc == 0 || (rc <= -400 && rc >= -505));
    for (size_t at = 1; at < size; at = next_cut(at, size)) {
        cut = (struct http_request){0};
        again = parse_part(&cut, data, at);
        if (again == 0)
            again = parse_part(&cut, data, size);
        require(again == rc);
        if (rc > 0)
            require(memcmp(&cut, &whole, sizeof cut) == 0);
    }
    again = 0;
    for (size_t n = 0; n < size && again == 0; n = next_cut(n, size))
        again = parse_part(&bytes, data, n);
    if (again == 0)
        again = parse_part(&bytes, data, size);
    require(again == rc);
}

/* ---- chunks ---- */

struct decoded {
    char *out;
    size_t len, used;
    int rc;
};

/* In pieces of `piece` bytes, in place or not. */
static struct decoded decode(const uint8_t *data, size_t size, size_t first, size_t piece)
{
    struct decoded d = {.out = malloc(size + 1)};
    struct http_chunks chunks = {0};

    require(d.out);
    for (size_t n = first ? first : piece; d.used < size && d.rc == 0; n = piece) {
        size_t len = n < size - d.used ? n : size - d.used, used, given = len;
        char *part = exact_copy(data + d.used, len, 0);
        d.rc = http_chunks_decode(&chunks, part, part, &len, &used);
        require(len <= used && used <= given && (used == given || d.rc != 0));
        memcpy(d.out + d.len, part, len);
        d.len += len;
        d.used += used;
        free(part);
    }
    return d;
}

static void check_same(const struct decoded *a, struct decoded b)
{
    require(a->rc == b.rc && a->len == b.len && a->used == b.used);
    require(memcmp(a->out, b.out, b.len) == 0);
    free(b.out);
}

static void check_chunks(const uint8_t *data, size_t size)
{
    struct decoded whole = decode(data, size, 0, size + 1);

    check_same(&whole, decode(data, size, 0, 1));
    for (size_t at = 1; at < size; at = next_cut(at, size))
        check_same(&whole, decode(data, size, at, size));
    free(whole.out);
}

/* ---- numbers in queries ---- */

static void check_query(const uint8_t *data, size_t size)
{
    char *query = exact_copy(data, size, 0);
    uint64_t n;

    if (http_query_number(query, size, "n", 1000, &n))
        require(n <= 1000);
    if (http_query_number(query, size, "bytes", UINT64_MAX / 20, &n))
        require(n <= UINT64_MAX / 20);
    free(query);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_head(data, size);
    check_chunks(data, size);
    check_query(data, size);
    return 0;
}
