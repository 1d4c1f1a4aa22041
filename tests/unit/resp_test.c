/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request parser of the Redis example, and its patterns: good requests and bad ones, at once
 * and cut at every byte, in memory that ends where the request does, so that reading further is
 * noticed.
 */
#include "harness.h"

#include "glob.h"
#include "resp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MANY = 70000 };

static struct resp_span spans[MANY];

/* A copy that ends with its memory: sanitizers see every step beyond. */
static char *exact_copy(const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1);

    assert_non_null(copy);
    if (len > 0)
        memcpy(copy, text, len);
    return copy;
}

/* Goes on with an array that has room for one word more each time. */
static int parse_on(struct resp_request *r, char *buf, size_t len)
{
    int rc;

    while ((rc = resp_parse(r, buf, len)) == RESP_FULL) {
        assert_int_equal(r->nr_args, r->room);
        assert_true(r->room < MANY);
        r->room++;
    }
    return rc;
}

/* Words as one text, with a bar behind each, and how much the request took. */
static void expect_words(const struct resp_request *r, const char *buf, const char *words)
{
    size_t at = 0;

    for (uint32_t i = 0; i < r->nr_args; i++) {
        assert_memory_equal(buf + r->args[i].at, words + at, r->args[i].len);
        at += r->args[i].len;
        assert_int_equal(words[at++], '|');
    }
    assert_int_equal(words[at], 0);
}

/* However it is cut: `len` bytes, of which the first `used` are the request. */
static void expect_n(const char *text, size_t len, size_t used, const char *words)
{
    for (size_t cut = 0; cut <= len; cut++) {
        struct resp_request r = {.args = spans, .room = 1};
        char *part = exact_copy(text, cut), *all = exact_copy(text, len);
        char *whole = part;
        int rc = parse_on(&r, part, cut);
        assert_int_equal(rc, cut < used ? RESP_MORE : RESP_READY);
        if (rc == RESP_MORE) {
            assert_in_range(resp_missing(&r, cut), 1, used - cut);
            assert_int_equal(parse_on(&r, all, len), RESP_READY);
            whole = all;
        }
        assert_int_equal(r.at, used);
        expect_words(&r, whole, words);
        free(part);
        free(all);
    }
}

static void expect(const char *text, const char *words)
{
    expect_n(text, strlen(text), strlen(text), words);
}

/* It is refused, however it is cut, and at the latest when all of it is there. */
static void refuse(const char *text, int error)
{
    size_t len = strlen(text);

    for (size_t cut = 0; cut <= len; cut++) {
        struct resp_request r = {.args = spans, .room = 4};
        char *part = exact_copy(text, cut), *all = exact_copy(text, len);
        int rc = parse_on(&r, part, cut);
        if (rc == RESP_MORE)
            rc = parse_on(&r, all, len);
        assert_int_equal(rc, error);
        free(part);
        free(all);
    }
    assert_non_null(strstr(resp_error(error), "Protocol error"));
}

static void arrays_are_taken_word_by_word(void **state)
{
    (void)state;
    expect("*1\r\n$4\r\nPING\r\n", "PING|");
    expect("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\n\r\n$1\r\n", "SET||\r\n$1|");
    expect_n("*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPI", 24, 14, "PING|");
    expect_n("*2\r\n$1\r\n\0\r\n$2\r\na|\r\n", 19, 19, "\0|a||");
    expect("*0\r\n", "");
    expect("*-1\r\n", "");
}

static void lines_are_split_into_words(void **state)
{
    (void)state;
    expect("PING\r\n", "PING|");
    expect("\n", "");
    expect(" \t \r\n", "");
    expect("SET  a b \n", "SET|a|b|");
    expect("a \"b c\" 'd e' \"\" ''\r\n", "a|b c|d e|||");
    expect("a\"b\" \"\\n\\r\\t\\a\\b\\\\\\\"\\x41\\xg\\q\"\r\n", "ab|\n\r\t\a\b\\\"Axgq|");
    expect("'it\\'s' 'a\\n'\n", "it's|a\\n|");
    expect("\"*1\" x y z\r\n", "*1|x|y|z|");
    expect_n("a b\r\nc d\r\n", 10, 5, "a|b|");
}

static void what_is_no_request_is_refused(void **state)
{
    (void)state;
    refuse("*\r\n", RESP_BAD_COUNT);
    refuse("*x\r\n", RESP_BAD_COUNT);
    refuse("*1x\r\n", RESP_BAD_COUNT);
    refuse("*-2\r\n", RESP_BAD_COUNT);
    refuse("*+1\r\n", RESP_BAD_COUNT);
    refuse("*1\n", RESP_BAD_COUNT);
    refuse("*65537\r\n", RESP_BAD_COUNT);
    refuse("*99999999999\r\n", RESP_BAD_COUNT);
    refuse("*00000000000000000000000000000000000001", RESP_BAD_COUNT);
    refuse("*1\r\n:1\r\n", RESP_BAD_TYPE);
    refuse("*1\r\n*1\r\n", RESP_BAD_TYPE);
    refuse("*1\r\n\r\n", RESP_BAD_TYPE);
    refuse("*1\r\n$-1\r\n", RESP_BAD_LENGTH);
    refuse("*1\r\n$x\r\n", RESP_BAD_LENGTH);
    refuse("*1\r\n$16777217\r\n", RESP_BAD_LENGTH);
    refuse("*1\r\n$4294967297\r\n", RESP_BAD_LENGTH);
    refuse("*1\r\n$1\r\nab\r\n", RESP_BAD_END);
    refuse("*1\r\n$1\r\na\r\r", RESP_BAD_END);
    refuse("\"a\r\n", RESP_BAD_QUOTES);
    refuse("'a\r\n", RESP_BAD_QUOTES);
    refuse("\"a\"b\r\n", RESP_BAD_QUOTES);
    refuse("\"a\\\r\n", RESP_BAD_QUOTES);
}

/* Zero pages cost nothing as long as nobody looks at them. */
static char *large_buffer(size_t size)
{
    char *buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(buf, MAP_FAILED);
    return buf;
}

/* As many words of the largest size as there may be, and one more, of which not much has come. */
static void a_request_is_limited_as_a_whole(void **state)
{
    static const char word[] = "$16777216\r\n";
    size_t len = 0, size = RESP_REQUEST_MAX + 4096;
    char *buf = large_buffer(size);
    struct resp_request r = {.args = spans, .room = 8};

    (void)state;
    len = 4;
    memcpy(buf, "*4\r\n", 4);
    for (int i = 0; i < 3; i++) {
        memcpy(buf + len, word, sizeof word - 1);
        len += sizeof word - 1;
        assert_int_equal(resp_parse(&r, buf, len), RESP_MORE);
        assert_int_equal(resp_missing(&r, len), RESP_WORD_MAX + 2);
        len += RESP_WORD_MAX;
        memcpy(buf + len, "\r\n", 2);
        len += 2;
        assert_int_equal(resp_parse(&r, buf, len), RESP_MORE);
    }
    memcpy(buf + len, word, sizeof word - 1);
    assert_int_equal(resp_parse(&r, buf, len + sizeof word - 1), RESP_LONG_REQUEST);
    munmap(buf, size);
}

static void as_many_words_as_may_be_are_taken(void **state)
{
    struct resp_request r = {.args = spans, .room = MANY};
    char *buf = large_buffer(RESP_ARGS_MAX * 8 + 64);
    size_t len = 8;

    (void)state;
    memcpy(buf, "*65536\r\n", 8);
    for (int i = 0; i < RESP_ARGS_MAX; i++) {
        memcpy(buf + len, "$1\r\nx\r\n", 7);
        len += 7;
    }
    assert_int_equal(resp_parse(&r, buf, len), RESP_READY);
    assert_int_equal(r.nr_args, RESP_ARGS_MAX);
    assert_int_equal(r.at, len);
    munmap(buf, RESP_ARGS_MAX * 8 + 64);
}

static void a_line_is_limited(void **state)
{
    char *line = malloc(RESP_LINE_MAX);
    struct resp_request r = {.args = spans, .room = 4};

    (void)state;
    memset(line, 'x', RESP_LINE_MAX);
    assert_int_equal(resp_parse(&r, line, RESP_LINE_MAX - 1), RESP_MORE);
    assert_int_equal(resp_parse(&r, line, RESP_LINE_MAX), RESP_LONG_LINE);
    line[RESP_LINE_MAX - 1] = '\n';
    r = (struct resp_request){.args = spans, .room = 4};
    assert_int_equal(resp_parse(&r, line, RESP_LINE_MAX), RESP_READY);
    assert_int_equal(r.args[0].len, RESP_LINE_MAX - 1);
    free(line);
}

static bool matches(const char *pattern, const char *text)
{
    return glob_match(pattern, strlen(pattern), text, strlen(text));
}

static void patterns_match_all_of_a_text(void **state)
{
    (void)state;
    assert_true(matches("", "") && !matches("", "a") && !matches("a", ""));
    assert_true(matches("*", "") && matches("*", "abc") && matches("**", "x"));
    assert_true(matches("a*c", "abc") && matches("a*c", "ac") && !matches("a*c", "ab"));
    assert_true(matches("*ab", "aab") && matches("*a*b*", "xaxbx") && !matches("*a*b", "ba"));
    assert_true(matches("a?c", "abc") && !matches("a?c", "ac") && !matches("a?", "a"));
    assert_true(matches("[abc]", "b") && !matches("[abc]", "d") && matches("[^abc]", "d"));
    assert_true(matches("[a-c]x", "bx") && matches("[c-a]", "b") && !matches("[a-c]", "d"));
    assert_true(matches("[a\\]]", "]") && matches("[a", "a") && matches("[^a", "b"));
    assert_true(matches("\\*", "*") && !matches("\\*", "x") && matches("a\\", "a\\"));
    assert_true(!matches("[]", "a") && !matches("[", "a") && matches("news.*", "news.it"));
}

/* A pattern that takes a matcher which tries all stars for longer than we live. */
static void no_pattern_takes_for_ever(void **state)
{
    char pattern[200], text[1000];

    (void)state;
    for (size_t i = 0; i < sizeof pattern; i += 2)
        memcpy(pattern + i, "*a", 2);
    pattern[sizeof pattern - 1] = 'b';
    memset(text, 'a', sizeof text);
    assert_false(glob_match(pattern, sizeof pattern, text, sizeof text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(arrays_are_taken_word_by_word),     TEST(lines_are_split_into_words),
        TEST(what_is_no_request_is_refused),     TEST(a_request_is_limited_as_a_whole),
        TEST(as_many_words_as_may_be_are_taken), TEST(a_line_is_limited),
        TEST(patterns_match_all_of_a_text),      TEST(no_pattern_takes_for_ever),
    };
    return RUN_TESTS(tests);
}
