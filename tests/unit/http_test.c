/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP parser of the examples: good requests and bad ones, each of them at once and cut at
 * every byte, in a block of memory that ends where the request does, so that reading further is
 * noticed.
 */
#include "harness.h"

#include "http.h"

#include <stdlib.h>
#include <string.h>

#define HOST "Host: x\r\n"
#define GET  "GET / HTTP/1.1\r\n"

/* ---- feeding ---- */

/* A copy that ends with its memory: sanitizers see every step beyond. */
static char *exact_copy(const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1);

    assert_non_null(copy);
    if (len > 0)
        memcpy(copy, text, len);
    return copy;
}

/* What the parser says when it is shown the first `first` bytes, then all. */
static int parse_cut(struct http_request *request, const char *text, size_t len, size_t first)
{
    char *part = exact_copy(text, first), *all = exact_copy(text, len);
    int rc;

    *request = (struct http_request){0};
    rc = http_parse(request, part, first);
    if (rc == 0)
        rc = http_parse(request, all, len);
    free(part);
    free(all);
    return rc;
}

static int parse_byte_by_byte(struct http_request *request, const char *text, size_t len)
{
    int rc = 0;

    *request = (struct http_request){0};
    for (size_t n = 0; n <= len && rc == 0; n++) {
        char *part = exact_copy(text, n);
        rc = http_parse(request, part, n);
        free(part);
    }
    return rc;
}

/* The same, however it is cut. */
static struct http_request parse(const char *text, size_t len, int expected)
{
    struct http_request request, again;

    assert_int_equal(parse_cut(&request, text, len, 0), expected);
    for (size_t first = 1; first <= len; first++) {
        int rc = parse_cut(&again, text, len, first);
        if (rc != expected)
            fail_msg("%d instead of %d when cut at %zu: %s", rc, expected, first, text);
        if (expected > 0)
            assert_memory_equal(&again, &request, sizeof request);
    }
    assert_int_equal(parse_byte_by_byte(&again, text, len), expected);
    return request;
}

static struct http_request good(const char *text)
{
    return parse(text, strlen(text), (int)strlen(text));
}

static void bad(int status, const char *text)
{
    parse(text, strlen(text), -status);
}

static void assert_span(const char *text, struct http_span span, const char *expected)
{
    assert_int_equal(span.len, strlen(expected));
    assert_memory_equal(text + span.at, expected, span.len);
}

/* ---- heads ---- */

static void a_plain_request_is_understood(void **state)
{
    const char *text = "GET /a/b?c=d&e HTTP/1.1\r\nHost: 127.0.0.1:80\r\nAccept: */*\r\n\r\n";
    struct http_request r = good(text);

    (void)state;
    assert_int_equal(r.method, HTTP_GET);
    assert_int_equal(r.minor, 1);
    assert_true(r.keep_alive);
    assert_false(r.chunked);
    assert_int_equal(r.content_length, 0);
    assert_span(text, r.method_text, "GET");
    assert_span(text, r.target, "/a/b?c=d&e");
    assert_span(text, r.path, "/a/b");
    assert_span(text, r.query, "c=d&e");
}

static void methods_are_told_apart(void **state)
{
    (void)state;
    assert_int_equal(good("HEAD / HTTP/1.1\r\n" HOST "\r\n").method, HTTP_HEAD);
    assert_int_equal(good("POST / HTTP/1.1\r\n" HOST "\r\n").method, HTTP_POST);
    assert_int_equal(good("get / HTTP/1.1\r\n" HOST "\r\n").method, HTTP_OTHER);
    assert_int_equal(good("X-!#$ / HTTP/1.1\r\n" HOST "\r\n").method, HTTP_OTHER);
}

static void all_forms_of_a_target_are_understood(void **state)
{
    const char *full = "GET http://a.b:1/p/q?r HTTP/1.1\r\n" HOST "\r\n";
    struct http_request r = good(full);

    (void)state;
    assert_span(full, r.path, "/p/q");
    assert_span(full, r.query, "r");
    assert_int_equal(good("OPTIONS * HTTP/1.1\r\n" HOST "\r\n").path.len, 1);
    bad(400, "GET x HTTP/1.1\r\n" HOST "\r\n");
    bad(400, "GET *x HTTP/1.1\r\n" HOST "\r\n");
    bad(400, "GET http:// HTTP/1.1\r\n" HOST "\r\n");
    bad(400, "GET http://host HTTP/1.1\r\n" HOST "\r\n");
    bad(400, "CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n");
}

static void connections_are_kept_as_the_client_likes(void **state)
{
    (void)state;
    assert_true(good(GET HOST "Connection: keep-alive\r\n\r\n").keep_alive);
    assert_false(good(GET HOST "Connection: close\r\n\r\n").keep_alive);
    assert_false(good(GET HOST "cOnNeCtIoN: a, CLOSE ,b\r\n\r\n").keep_alive);
    assert_false(good(GET HOST "Connection: close\r\nConnection: keep-alive\r\n\r\n").keep_alive);
    assert_true(good(GET HOST "Connection: closer, x-close\r\n\r\n").keep_alive);
    assert_false(good("GET / HTTP/1.0\r\n\r\n").keep_alive);
    assert_true(good("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep_alive);
    assert_true(good("GET / HTTP/1.9\r\n" HOST "\r\n").keep_alive);
}

static void values_are_trimmed(void **state)
{
    (void)state;
    assert_int_equal(good(GET HOST "Content-Length:12\r\n\r\n").content_length, 12);
    assert_int_equal(good(GET HOST "Content-Length: \t 12 \t\r\n\r\n").content_length, 12);
    assert_true(good(GET HOST "Expect:  100-Continue \r\n\r\n").expects_continue);
    assert_true(good("GET / HTTP/1.1\r\nHost:\r\nX:\r\nY: \x80\xff\r\n\r\n").keep_alive);
}

static void empty_lines_before_a_request_are_skipped(void **state)
{
    const char *text = "\r\n\r\n" GET HOST "\r\n";

    (void)state;
    assert_span(text, good(text).target, "/");
}

static void what_follows_is_left_alone(void **state)
{
    const char *text = GET HOST "\r\n" GET HOST "\r\n";

    (void)state;
    parse(text, strlen(text), (int)strlen(text) / 2);
}

static void bad_request_lines_are_refused(void **state)
{
    (void)state;
    bad(400, " GET / HTTP/1.1\r\n" HOST "\r\n");
    bad(400, "G(T / HTTP/1.1\r\n" HOST "\r\n");
    bad(400, "GET  / HTTP/1.1\r\n" HOST "\r\n");
    bad(400, "GET /  HTTP/1.1\r\n" HOST "\r\n");
    bad(400, "GET\t/ HTTP/1.1\r\n" HOST "\r\n");
    bad(400, "GET /\x80 HTTP/1.1\r\n" HOST "\r\n");
    bad(400, "GET /\r\n" HOST "\r\n");
    bad(400, "GET\r\n" HOST "\r\n");
    bad(400, "GET / HTTP/1.1 \r\n" HOST "\r\n");
    bad(400, "GET / HTTP/1.10\r\n" HOST "\r\n");
    bad(400, "GET / HTTP/1,1\r\n" HOST "\r\n");
    bad(400, "GET / HTTP/x.1\r\n" HOST "\r\n");
    bad(400, "GET / http/1.1\r\n" HOST "\r\n");
    bad(400, "GET / HTTP/1.1\n" HOST "\r\n");
    bad(400, "\n");
    bad(505, "GET / HTTP/2.0\r\n" HOST "\r\n");
    bad(505, "GET / HTTP/0.9\r\n" HOST "\r\n");
}

static void bad_headers_are_refused(void **state)
{
    (void)state;
    bad(400, GET HOST "X : y\r\n\r\n");
    bad(400, GET HOST ": y\r\n\r\n");
    bad(400, GET HOST "X\r\n\r\n");
    bad(400, GET HOST "X\xe9: y\r\n\r\n");
    bad(400, GET HOST "X: y\r\n folded\r\n\r\n");
    bad(400, GET HOST "X: y\r\n\tfolded\r\n\r\n");
    bad(400, GET " " HOST "\r\n");
    bad(400, GET HOST "X: y\rz\r\n\r\n");
    bad(400, GET HOST "X: y\r\r\n\r\n");
    bad(400, GET HOST "X: y\n\r\n");
    bad(400, GET HOST "X: \x7f\r\n\r\n");
    bad(400, GET HOST "\n");
}

static void a_nul_is_refused_wherever_it_is(void **state)
{
    const char text[] = GET HOST "X: y\r\n\r\n";
    size_t len = sizeof text - 1;

    (void)state;
    for (size_t i = 0; i < len; i++) {
        char copy[sizeof text];
        struct http_request request;
        memcpy(copy, text, sizeof text);
        copy[i] = 0;
        int rc = parse_byte_by_byte(&request, copy, len);
        assert_true(rc == -400 || (rc == 0 && i >= len - 1)); /* or it stands for the last LF */
    }
}

static void one_host_is_needed(void **state)
{
    (void)state;
    bad(400, GET "\r\n");
    bad(400, GET HOST HOST "\r\n");
    bad(400, GET "Host: a b\r\n\r\n");
    good("GET / HTTP/1.0\r\n\r\n");
}

static void one_clear_length_is_needed(void **state)
{
    (void)state;
    bad(400, GET HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n");
    bad(400, GET HOST "Content-Length: 1, 1\r\n\r\n");
    bad(400, GET HOST "Content-Length: -1\r\n\r\n");
    bad(400, GET HOST "Content-Length: +1\r\n\r\n");
    bad(400, GET HOST "Content-Length: 0x1\r\n\r\n");
    bad(400, GET HOST "Content-Length: 1 1\r\n\r\n");
    bad(400, GET HOST "Content-Length:\r\n\r\n");
    bad(400, GET HOST "Content-Length: 99999999999999999999\r\n\r\n");
    assert_int_equal(good(GET HOST "Content-Length: 1844674407370955160\r\n\r\n").content_length,
                     1844674407370955160u);
}

static void length_and_chunks_exclude_each_other(void **state)
{
    (void)state;
    assert_true(good(GET HOST "Transfer-Encoding: Chunked\r\n\r\n").chunked);
    bad(400, GET HOST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n");
    bad(400, GET HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n");
    bad(400, GET HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n");
    bad(400, "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
    bad(501, GET HOST "Transfer-Encoding: gzip, chunked\r\n\r\n");
    bad(501, GET HOST "Transfer-Encoding: identity\r\n\r\n");
    bad(501, GET HOST "Transfer-Encoding:\r\n\r\n");
}

static void only_one_expectation_is_met(void **state)
{
    (void)state;
    bad(417, GET HOST "Expect: 101-continue\r\n\r\n");
    bad(417, GET HOST "Expect: 100-continue, more\r\n\r\n");
}

static void another_protocol_is_noticed_at_once(void **state)
{
    struct http_request request = {0};

    (void)state;
    assert_int_equal(http_parse(&request, "\x16\x03\x01", 3), -400); /* TLS */
    request = (struct http_request){0};
    assert_int_equal(http_parse(&request, "GET/", 4), -400);
}

/* ---- limits ---- */

static void heads_have_a_limit(void **state)
{
    static char text[HTTP_HEAD_MAX + 64];
    struct http_request request = {0};
    size_t at;

    (void)state;
    memset(text, 'x', sizeof text);
    memcpy(text, "GET /", 5);
    assert_int_equal(http_parse(&request, text, HTTP_HEAD_MAX - 1), 0);
    assert_int_equal(http_parse(&request, text, sizeof text), -414);

    at = strlen(GET HOST "X: ");
    memcpy(text, GET HOST "X: ", at);
    memcpy(text + HTTP_HEAD_MAX - 4, "\r\n\r\n", 4);
    request = (struct http_request){0};
    assert_int_equal(http_parse(&request, text, sizeof text), HTTP_HEAD_MAX);
    memcpy(text + HTTP_HEAD_MAX - 4, "x\r\n\r\n", 5);
    request = (struct http_request){0};
    assert_int_equal(http_parse(&request, text, sizeof text), -431);
}

static void headers_have_a_limit(void **state)
{
    char text[1024];
    struct http_request request = {0};
    size_t len = strlen(GET HOST);

    (void)state;
    memcpy(text, GET HOST, len);
    for (int i = 0; i < HTTP_HEADERS_MAX; i++, len += 4)
        memcpy(text + len, "x:\r\n", 4);
    assert_int_equal(http_parse(&request, text, len), -431);
}

/* ---- chunks ---- */

/* Decodes in pieces of `step` bytes, in place. The status; `text` gets the body. */
static int decode(const char *coded, size_t step, char *text, size_t *rest)
{
    size_t len = strlen(coded), body = 0, at = 0;
    struct http_chunks chunks = {0};
    int rc = 0;

    while (rc == 0 && at < len) {
        size_t n = len - at < step ? len - at : step, used;
        char *piece = exact_copy(coded + at, n);
        rc = http_chunks_decode(&chunks, piece, piece, &n, &used);
        memcpy(text + body, piece, n);
        free(piece);
        body += n;
        at += used;
    }
    text[body] = 0;
    *rest = len - at;
    return rc;
}

static void expect_chunks(int expected, const char *coded, const char *body, size_t rest)
{
    char text[256];
    size_t left;

    for (size_t step = 1; step <= strlen(coded); step++) {
        assert_int_equal(decode(coded, step, text, &left), expected);
        if (expected >= 0)
            assert_string_equal(text, body);
        if (expected == 1)
            assert_int_equal(left, rest);
    }
}

static void chunks_are_put_together(void **state)
{
    (void)state;
    expect_chunks(1, "0\r\n\r\n", "", 0);
    expect_chunks(1, "1\r\na\r\n0\r\n\r\n", "a", 0);
    expect_chunks(1, "3\r\nabc\r\nA\r\n0123456789\r\n000\r\n\r\nGET", "abc0123456789", 3);
    expect_chunks(1, "2;x=\"y\"\r\na\n\r\n0;z\r\nTrailer: x\r\nOther:\r\n\r\n", "a\n", 0);
    expect_chunks(0, "3\r\nabc\r\n0\r\n\r", "abc", 0);
}

static void bad_chunks_are_refused(void **state)
{
    (void)state;
    expect_chunks(-400, "\r\n", NULL, 0);
    expect_chunks(-400, "x\r\n", NULL, 0);
    expect_chunks(-400, " 1\r\na\r\n", NULL, 0);
    expect_chunks(-400, "1 \r\na\r\n", NULL, 0);
    expect_chunks(-400, "-1\r\na\r\n", NULL, 0);
    expect_chunks(-400, "0x1\r\na\r\n", NULL, 0);
    expect_chunks(-400, "1\na\r\n", NULL, 0);
    expect_chunks(-400, "1\r\nab\r\n", NULL, 0);
    expect_chunks(-400, "1\r\na\n", NULL, 0);
    expect_chunks(-400, "0\r\n\rx", NULL, 0);
    expect_chunks(-400, "0\r\n folded\r\n\r\n", NULL, 0);
    expect_chunks(-400, "1;\x01\r\na\r\n", NULL, 0);
    expect_chunks(-400, "00000000000000001\r\na\r\n", NULL, 0);
    expect_chunks(-413, "100001\r\n", NULL, 0);
    expect_chunks(-413, "ffffffffffffffff\r\n", NULL, 0);
}

static void trailers_have_a_limit(void **state)
{
    struct http_chunks chunks = {0};
    char byte = 'x';
    size_t len = 3, used, nr = 0;
    char first[] = "0\r\n";
    int rc = http_chunks_decode(&chunks, first, first, &len, &used);

    (void)state;
    for (; rc == 0 && nr <= HTTP_TRAILER_MAX; nr++) {
        len = 1;
        rc = http_chunks_decode(&chunks, &byte, &byte, &len, &used);
    }
    assert_int_equal(rc, -431);
    assert_int_equal(nr, HTTP_TRAILER_MAX + 1);
}

/* ---- numbers in queries; noise ---- */

static bool number(const char *query, uint64_t *n)
{
    return http_query_number(query, strlen(query), "ms", 10000, n);
}

static void numbers_in_queries_are_found(void **state)
{
    uint64_t n;

    (void)state;
    assert_true(number("ms=12", &n) && n == 12);
    assert_true(number("a=b&ms=10000&c", &n) && n == 10000);
    assert_true(number("&&ms=0&", &n) && n == 0);
    assert_false(number("", &n));
    assert_false(number("ms=", &n));
    assert_false(number("ms", &n));
    assert_false(number("xms=1", &n));
    assert_false(number("ms=1x", &n));
    assert_false(number("ms=-1", &n));
    assert_false(number("ms=10001", &n));
    assert_false(number("ms=99999999999999999999999999999", &n));
}

static char random_byte(uint64_t *seed)
{
    static const char nasty[] = "\r\n :,\t0";

    return random_below(seed, 2) ? (char)random_below(seed, 256) : nasty[random_below(seed, 7)];
}

/* Replaces a byte by none, one or two others. The new length. */
static size_t disturb(char *text, size_t len, uint64_t *seed)
{
    size_t at = random_below(seed, (uint32_t)len), by = random_below(seed, 3);

    memmove(text + at + by, text + at + 1, len - at - 1);
    for (size_t i = 0; i < by; i++)
        text[at + i] = random_byte(seed);
    return len - 1 + by;
}

/* Whatever the parser makes of it, it makes the same of it when it comes in two parts. */
static void noise_does_no_harm(void **state)
{
    const char text[] = "POST /echo?ms=1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                        "Expect: 100-continue\r\nConnection: close\r\n\r\n";
    uint64_t seed = 7;

    (void)state;
    for (int64_t i = 0; i < scaled(20000); i++) {
        char noisy[2 * sizeof text];
        size_t len = sizeof text - 1;
        struct http_request once, cut;
        memcpy(noisy, text, len);
        for (uint32_t n = random_below(&seed, 4); n > 0; n--)
            len = disturb(noisy, len, &seed);
        int rc = parse_cut(&once, noisy, len, 0);
        assert_true(rc <= (int)len);
        assert_int_equal(parse_cut(&cut, noisy, len, random_below(&seed, (uint32_t)len + 1)), rc);
        if (rc > 0)
            assert_memory_equal(&once, &cut, sizeof once);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_plain_request_is_understood),
        TEST(methods_are_told_apart),
        TEST(all_forms_of_a_target_are_understood),
        TEST(connections_are_kept_as_the_client_likes),
        TEST(values_are_trimmed),
        TEST(empty_lines_before_a_request_are_skipped),
        TEST(what_follows_is_left_alone),
        TEST(bad_request_lines_are_refused),
        TEST(bad_headers_are_refused),
        TEST(a_nul_is_refused_wherever_it_is),
        TEST(one_host_is_needed),
        TEST(one_clear_length_is_needed),
        TEST(length_and_chunks_exclude_each_other),
        TEST(only_one_expectation_is_met),
        TEST(another_protocol_is_noticed_at_once),
        TEST(heads_have_a_limit),
        TEST(headers_have_a_limit),
        TEST(chunks_are_put_together),
        TEST(bad_chunks_are_refused),
        TEST(trailers_have_a_limit),
        TEST(numbers_in_queries_are_found),
        TEST(noise_does_no_harm),
    };
    return RUN_TESTS(tests);
}
