/* SPDX-License-Identifier: Apache-2.0 */
/* The smaller functions of the examples' HTTP: headers, paths, tags, ranges, dates. */
#include "harness.h"

#include "http.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A copy that ends with its memory: sanitizers see every step beyond. */
static char *exact_copy(const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1);

    assert_non_null(copy);
    if (len > 0)
        memcpy(copy, text, len);
    return copy;
}

/* ---- headers ---- */

static void expect_header(const char *head, const char *name, int times, const char *value)
{
    size_t len = strlen(head);
    char *copy = exact_copy(head, len);
    struct http_span span = {0};

    assert_int_equal(http_header(copy, len, name, &span), times);
    assert_int_equal(span.len, strlen(value));
    assert_memory_equal(copy + span.at, value, span.len);
    free(copy);
}

static void headers_are_found_whatever_their_case(void **state)
{
    const char *head =
        "GET /range: HTTP/1.1\r\nHost: x\r\nRANGE:\t bytes=1-2 \r\nX-Range: no\r\n\r\n";

    (void)state;
    expect_header(head, "range", 1, "bytes=1-2");
    expect_header(head, "host", 1, "x");
    expect_header(head, "x-range", 1, "no");
    expect_header(head, "rang", 0, "");
    expect_header(head, "ranges", 0, "");
    expect_header("GET / HTTP/1.1\r\nEmpty:\r\n\r\n", "empty", 1, "");
}

static void headers_that_come_twice_are_counted(void **state)
{
    (void)state;
    expect_header("GET / HTTP/1.1\r\nA: 1\r\nB: 2\r\na:3\r\n\r\n", "a", 2, "1");
}

static void what_is_cut_off_is_no_trouble(void **state)
{
    const char *head = "GET / HTTP/1.1\r\nRange: b\r\n\r\n";

    (void)state;
    for (size_t len = 0; len <= strlen(head); len++) {
        char *copy = exact_copy(head, len);
        struct http_span span = {0};
        http_header(copy, len, "range", &span);
        assert_true((size_t)span.at + span.len <= len);
        free(copy);
    }
}

/* ---- paths ---- */

static void expect_path(const char *path, const char *expected)
{
    size_t len = strlen(path);
    char *copy = exact_copy(path, len), *out = malloc(len + 2);

    assert_non_null(out);
    if (http_path_decode(out, copy, len) != (expected != NULL))
        fail_msg("%s is %s", path, expected ? "refused" : out);
    if (expected)
        assert_string_equal(out, expected);
    free(out);
    free(copy);
}

static void paths_become_file_names(void **state)
{
    (void)state;
    expect_path("/", ".");
    expect_path("", ".");
    expect_path("/a", "a");
    expect_path("/a/", "a");
    expect_path("//a///b.c", "a/b.c");
    expect_path("/./a/./b/.", "a/b");
    expect_path("/a/../b", "b");
    expect_path("/a/b/..", "a");
    expect_path("/a/b/../../c/", "c");
    expect_path("/a/..", ".");
    expect_path("/...", "...");
    expect_path("/a%20b/%C3%A9", "a b/\xc3\xa9");
    expect_path("/%41%2f%2Fb", "A/b");
    expect_path("/a+b%25", "a+b%");
}

static void no_path_leads_above_the_root(void **state)
{
    (void)state;
    expect_path("/..", NULL);
    expect_path("/../a", NULL);
    expect_path("..", NULL);
    expect_path("/a/../..", NULL);
    expect_path("/a/../../a", NULL);
    expect_path("/%2e%2e/a", NULL);
    expect_path("/.%2E/a", NULL);
    expect_path("/a/%2e%2e%2f%2e%2e", NULL);
    expect_path("/%2e%2e%2fa", NULL);
}

static void escapes_that_are_none_are_refused(void **state)
{
    (void)state;
    expect_path("/%", NULL);
    expect_path("/%4", NULL);
    expect_path("/%4g", NULL);
    expect_path("/%g4", NULL);
    expect_path("/%%41", NULL);
    expect_path("/a%00b", NULL);
}

/* ---- tags ---- */

static bool has_tag(const char *list)
{
    size_t len = strlen(list);
    char *copy = exact_copy(list, len);
    bool found = http_tag_in(copy, len, "\"abc\"");

    free(copy);
    return found;
}

static void tags_are_found_in_lists(void **state)
{
    (void)state;
    assert_true(has_tag("\"abc\""));
    assert_true(has_tag("W/\"abc\""));
    assert_true(has_tag("\"x\", \"abc\",\"y\""));
    assert_true(has_tag("*"));
    assert_false(has_tag(""));
    assert_false(has_tag("abc"));
    assert_false(has_tag("\""));
    assert_false(has_tag("\"abc"));
    assert_false(has_tag("\"ab\", \"abcd\""));
    assert_false(has_tag("\"x\"abc\"y\"")); /* between two tags */
}

/* ---- ranges ---- */

static void expect_range(int rc, const char *text, uint64_t at, uint64_t count)
{
    size_t len = strlen(text);
    char *copy = exact_copy(text, len);
    uint64_t got_at = 0, got_count = 0;

    assert_int_equal(http_range_parse(copy, len, 100, &got_at, &got_count), rc);
    if (rc == 1) {
        assert_int_equal(got_at, at);
        assert_int_equal(got_count, count);
    }
    free(copy);
}

static void ranges_are_cut_to_what_there_is(void **state)
{
    (void)state;
    expect_range(1, "bytes=0-0", 0, 1);
    expect_range(1, "bytes=0-99", 0, 100);
    expect_range(1, "Bytes=10-19", 10, 10);
    expect_range(1, "bytes=10-", 10, 90);
    expect_range(1, "bytes=10-1000", 10, 90);
    expect_range(1, "bytes=99-", 99, 1);
    expect_range(1, "bytes=-1", 99, 1);
    expect_range(1, "bytes=-1000", 0, 100);
}

static void ranges_of_nothing_are_told(void **state)
{
    uint64_t at, count;

    (void)state;
    expect_range(-416, "bytes=100-", 0, 0);
    expect_range(-416, "bytes=100-200", 0, 0);
    expect_range(-416, "bytes=-0", 0, 0);
    assert_int_equal(http_range_parse("bytes=0-", 8, 0, &at, &count), -416);
    assert_int_equal(http_range_parse("bytes=-5", 8, 0, &at, &count), -416);
}

static void other_ranges_are_passed_over(void **state)
{
    (void)state;
    expect_range(0, "", 0, 0);
    expect_range(0, "bytes=", 0, 0);
    expect_range(0, "bytes=-", 0, 0);
    expect_range(0, "bytes=5", 0, 0);
    expect_range(0, "bytes=5-4", 0, 0);
    expect_range(0, "bytes=0-1,5-6", 0, 0);
    expect_range(0, "bytes=0-1 ", 0, 0);
    expect_range(0, "bytes=a-b", 0, 0);
    expect_range(0, "lines=0-1", 0, 0);
    expect_range(0, "bytes=99999999999999999999-", 0, 0);
    expect_range(0, "bytes=0-99999999999999999999", 0, 0);
}

/* ---- dates ---- */

static void dates_are_those_of_the_system(void **state)
{
    char text[HTTP_DATE], expected[HTTP_DATE];

    (void)state;
    for (int64_t s = 0; s < 253402300799; s += 1234567891) {
        time_t t = (time_t)s;
        struct tm tm;
        int64_t again = -1;
        gmtime_r(&t, &tm);
        strftime(expected, sizeof expected, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        http_date_format(text, s);
        assert_string_equal(text, expected);
        assert_true(http_date_parse(text, strlen(text), &again));
        assert_int_equal(again, s);
    }
}

static void dates_beyond_the_calendar_are_its_ends(void **state)
{
    char text[HTTP_DATE];

    (void)state;
    http_date_format(text, INT64_MIN);
    assert_string_equal(text, "Thu, 01 Jan 1970 00:00:00 GMT");
    http_date_format(text, INT64_MAX);
    assert_string_equal(text, "Fri, 31 Dec 9999 23:59:59 GMT");
}

static void leap_days_are_days(void **state)
{
    int64_t s;

    (void)state;
    assert_true(http_date_parse("Tue, 29 Feb 2000 00:00:00 GMT", 29, &s));
    assert_true(http_date_parse("Thu, 29 Feb 2024 00:00:00 GMT", 29, &s));
    assert_false(http_date_parse("Mon, 29 Feb 2100 00:00:00 GMT", 29, &s));
    assert_false(http_date_parse("Wed, 29 Feb 2023 00:00:00 GMT", 29, &s));
}

static void what_is_no_date_is_refused(void **state)
{
    static const char *const bad[] = {
        "Mon, 06 Nov 1994 08:49:37 GMT", /* was a Sunday */
        "Sun, 06 Nov 1994 24:49:37 GMT",    "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",    "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, +6 Nov 1994 08:49:37 GMT",    "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",   "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37 GMTxxx", "",
    };
    int64_t s;

    (void)state;
    assert_true(http_date_parse("Sun, 06 Nov 1994 08:49:37 GMT", 29, &s));
    assert_int_equal(s, 784111777);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(http_date_parse(bad[i], strlen(bad[i]), &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_found_whatever_their_case),
        cmocka_unit_test(headers_that_come_twice_are_counted),
        cmocka_unit_test(what_is_cut_off_is_no_trouble),
        cmocka_unit_test(paths_become_file_names),
        cmocka_unit_test(no_path_leads_above_the_root),
        cmocka_unit_test(escapes_that_are_none_are_refused),
        cmocka_unit_test(tags_are_found_in_lists),
        cmocka_unit_test(ranges_are_cut_to_what_there_is),
        cmocka_unit_test(ranges_of_nothing_are_told),
        cmocka_unit_test(other_ranges_are_passed_over),
        cmocka_unit_test(dates_are_those_of_the_system),
        cmocka_unit_test(dates_beyond_the_calendar_are_its_ends),
        cmocka_unit_test(leap_days_are_days),
        cmocka_unit_test(what_is_no_date_is_refused),
    };

    return RUN_TESTS(tests);
}
