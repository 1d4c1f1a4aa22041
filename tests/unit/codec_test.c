/* SPDX-License-Identifier: Apache-2.0 */
/* Framing: what codecs find in bytes, at once and byte by byte, and what they refuse. */
#include "harness.h"

#include <blitz/codec.h>

#include <stdlib.h>
#include <string.h>

/* ---- feeding ---- */

/* What came out, one after the other: "record|", "!error|". */
static char seen[4096];

static void note(const char *text, size_t len)
{
    size_t at = strlen(seen);

    assert_true(at + len + 2 < sizeof seen);
    memcpy(seen + at, text, len);
    strcpy(seen + at + len, "|");
}

static const char *name_of(int error)
{
    return error == -EMSGSIZE  ? "!too long"
           : error == -EBADMSG ? "!bad"
           : error == -ENODATA ? "!cut off"
                               : "!";
}

/* Takes what there is. False: it has failed. */
static bool take(blz_codec *codec, const char *data, size_t len, size_t *used, bool at_end)
{
    for (;;) {
        char *exact = malloc(len - *used + 1); /* ends with the bytes, for sanitizers */
        blz_cut cut;
        assert_non_null(exact);
        memcpy(exact + 1, data + *used, len - *used);
        int rc = at_end ? blz_codec_finish(codec, &cut, exact + 1, len - *used)
                        : blz_codec_decode(codec, &cut, exact + 1, len - *used);
        if (rc == 1)
            note(exact + 1 + cut.at, cut.len);
        else if (rc < 0)
            note(name_of(rc), strlen(name_of(rc)));
        free(exact);
        *used += cut.used;
        if (rc == 0 || codec->failed_)
            return rc == 0;
    }
}

static const char *decode(const blz_codec *settings, const char *data, size_t len, size_t piece)
{
    blz_codec codec = *settings;
    size_t used = 0, given = 0;
    bool goes_on = true;

    seen[0] = '\0';
    while (given < len && goes_on) {
        given += piece < len - given ? piece : len - given;
        goes_on = take(&codec, data, given, &used, false);
    }
    if (goes_on)
        take(&codec, data, len, &used, true);
    return seen;
}

/* However it is cut. */
#define DECODES(codec, data, expected)                                                          \
    do {                                                                                        \
        blz_codec codec_ = (codec);                                                             \
        for (size_t piece_ = 1; piece_ <= sizeof(data); piece_++)                               \
            assert_string_equal(decode(&codec_, (data), sizeof(data) - 1, piece_), (expected)); \
    } while (0)

static blz_codec lines(blz_lines_options options)
{
    blz_codec codec;

    assert_int_equal(blz_codec_lines(&codec, &options), 0);
    return codec;
}

static blz_codec length(blz_length_options options)
{
    blz_codec codec;

    assert_int_equal(blz_codec_length(&codec, &options), 0);
    return codec;
}

static blz_codec delimiter(const char *text, blz_delimiter_options options)
{
    blz_codec codec;

    assert_int_equal(blz_codec_delimiter(&codec, text, strlen(text), &options), 0);
    return codec;
}

/* ---- lines ---- */

static void lines_end_with_lf_or_crlf(void **state)
{
    blz_codec codec = lines((blz_lines_options){0}),
              keeps = lines((blz_lines_options){.keep_cr = 1});

    (void)state;
    DECODES(codec, "one\ntwo\r\n\n\r\nthree\r\r\n", "one|two|||three\r|");
    DECODES(keeps, "one\ntwo\r\n", "one|two\r|");
}

static void the_last_line_needs_no_end(void **state)
{
    blz_codec codec = lines((blz_lines_options){.max = 5});
    blz_codec whole = lines((blz_lines_options){.whole_only = true});

    (void)state;
    DECODES(codec, "one\ntwo", "one|two|");
    DECODES(codec, "one\n", "one|");
    DECODES(codec, "one\n\r", "one|\r|"); /* a CR alone ends nothing */
    DECODES(codec, "12345\r", "!too long|");
    DECODES(whole, "one\ntwo", "one|!cut off|");
    DECODES(whole, "one\n", "one|");
    assert_string_equal(decode(&codec, "", 0, 1), "");
}

static void a_line_may_be_as_long_as_the_limit_without_its_end(void **state)
{
    blz_codec codec = lines((blz_lines_options){.max = 3});

    (void)state;
    DECODES(codec, "abc\nabc\r\nabc", "abc|abc|abc|");
    DECODES(codec, "abc\r\nabcd\nabc\n", "abc|!too long|");
    DECODES(codec, "abcd\n", "!too long|");
    DECODES(codec, "ab\r\r\n", "ab\r|");
    DECODES(codec, "abc\rd", "!too long|");
}

static void a_long_line_is_refused_before_its_end_comes(void **state)
{
    blz_codec codec = lines((blz_lines_options){.max = 10});
    char endless[64];
    blz_cut cut;

    (void)state;
    memset(endless, 'x', sizeof endless);
    for (size_t n = 1; n <= 10; n++)
        assert_int_equal(blz_codec_decode(&codec, &cut, endless, n), 0);
    assert_int_equal(blz_codec_decode(&codec, &cut, endless, 11), -EMSGSIZE);
    assert_int_equal(blz_codec_decode(&codec, &cut, "ok\n", 3), -EMSGSIZE); /* for good */
    assert_int_equal(blz_codec_finish(&codec, &cut, "ok\n", 3), -EMSGSIZE);
    blz_codec_reset(&codec);
    assert_int_equal(blz_codec_decode(&codec, &cut, "ok\n", 3), 1);
}

/* Once, not once for each piece of it; also when its end never comes. */
static void a_line_that_is_skipped_is_one_error(void **state)
{
    blz_codec codec = lines((blz_lines_options){.max = 3, .skip_too_long = true});

    (void)state;
    DECODES(codec, "a\nvery very long line\nb\nabcd\nabc\r\n", "a|!too long|b|!too long|abc|");
    DECODES(codec, "ab\nabcdefghijkl", "ab|!too long|");
    DECODES(codec, "abcdef\n\n", "!too long||");
    DECODES(codec, "abcd\r\n\r\nx", "!too long||x|");
}

static void what_is_skipped_is_used_at_once(void **state)
{
    blz_codec codec = lines((blz_lines_options){.max = 3, .skip_too_long = true});
    blz_cut cut;

    (void)state;
    assert_int_equal(blz_codec_decode(&codec, &cut, "abcdef", 6), -EMSGSIZE);
    assert_true(cut.used > 3);
    assert_int_equal(blz_codec_decode(&codec, &cut, "f", 1), 0);
    assert_int_equal(cut.used, 1);
    assert_int_equal(blz_codec_decode(&codec, &cut, "gh\nxy\nz", 7), 1);
    assert_true(cut.at == 3 && cut.len == 2 && cut.used == 6);
}

/* ---- delimiters ---- */

static void a_delimiter_may_be_any_bytes(void **state)
{
    blz_codec crlf = delimiter("\r\n", (blz_delimiter_options){0});
    blz_codec word = delimiter("--x", (blz_delimiter_options){0}), zero;

    (void)state;
    DECODES(crlf, "one\r\ntwo\r\r\nth\nree\r\n\r", "one|two\r|th\nree|\r|");
    DECODES(word, "one----x-two--x---x", "one--|-two|-|");
    assert_int_equal(blz_codec_delimiter(&zero, "\0", 1, NULL), 0);
    DECODES(zero, "a\0b\0\0", "a|b||");
}

static void delimiters_that_repeat_themselves_are_found_as_early_as_possible(void **state)
{
    blz_codec codec = delimiter("aab", (blz_delimiter_options){0});
    blz_codec same = delimiter("aa", (blz_delimiter_options){0});

    (void)state;
    DECODES(codec, "aaaabaaabxaab", "aa|a|x|");
    DECODES(same, "xaaayaa", "x|ay|");
}

static void half_a_delimiter_does_not_count_as_the_frame(void **state)
{
    blz_codec codec = delimiter("abcd", (blz_delimiter_options){.max = 3});
    blz_codec skips = delimiter("abcd", (blz_delimiter_options){.max = 3, .skip_too_long = true});

    (void)state;
    DECODES(codec, "xyzabcdabcabcd", "xyz|abc|");
    DECODES(codec, "xyzwabcd", "!too long|");
    DECODES(codec, "xyzabcabcd", "!too long|");
    DECODES(skips, "xyzabcabcdok!abcd1abcabcdxabcd", "!too long|ok!|!too long|x|");
}

static void delimiters_have_a_length(void **state)
{
    char long_one[BLZ_DELIMITER_MAX + 1] = "";
    blz_codec codec;

    (void)state;
    assert_int_equal(blz_codec_delimiter(&codec, "", 0, NULL), -EINVAL);
    assert_int_equal(blz_codec_delimiter(&codec, long_one, sizeof long_one, NULL), -EINVAL);
    assert_int_equal(blz_codec_delimiter(&codec, long_one, sizeof long_one - 1, NULL), 0);
    assert_int_equal(blz_codec_lines(&codec,
                                     &(blz_lines_options){.max = BLZ_CODEC_MAX_MAX + (size_t)1}),
                     -EINVAL);
}

/* ---- lengths ---- */

static void lengths_have_several_widths_and_both_orders(void **state)
{
    (void)state;
    DECODES(length((blz_length_options){.width = 1}), "\5hello\0\2hi", "hello||hi|");
    DECODES(length((blz_length_options){.width = 2}), "\0\5hello", "hello|");
    DECODES(length((blz_length_options){.width = 3}), "\0\0\5hello", "hello|");
    DECODES(length((blz_length_options){0}), "\0\0\0\5hello", "hello|");
    DECODES(length((blz_length_options){.width = 8}), "\0\0\0\0\0\0\0\5hello", "hello|");
    DECODES(length((blz_length_options){.width = 2, .little_endian = true}), "\5\0hello", "hello|");
    DECODES(length((blz_length_options){.width = 8, .little_endian = true}),
            "\5\0\0\0\0\0\0\0hello", "hello|");
}

static void varints_have_seven_bits_a_byte(void **state)
{
    blz_codec codec = length((blz_length_options){.width = BLZ_VARINT, .max = 200});
    char text[202] = "\xac\1"; /* 172 */
    char expected[174];

    (void)state;
    memset(text + 2, 'x', 172);
    memset(expected, 'x', 172);
    strcpy(expected + 172, "|");
    assert_string_equal(decode(&codec, text, 174, 1), expected);
    DECODES(codec, "\5hello\0\x83\0abc",
            "hello||abc|"); /* longer than needed, as protobuf allows */
    DECODES(codec, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1hello", "!too long|");
    DECODES(codec, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\2hello", "!bad|");
    DECODES(codec, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\1hello", "!bad|");
}

static void a_header_may_have_more_than_a_length(void **state)
{
    blz_codec behind = length((blz_length_options){.width = 2, .adjustment = 1});
    blz_codec before = length((blz_length_options){.width = 2, .offset = 2});
    blz_codec keeps = length((blz_length_options){.width = 1, .offset = 2, .keep_header = true});

    (void)state;
    DECODES(behind, "\0\5thello\0\0t", "thello|t|");
    DECODES(before, "ab\0\5hellocd\0\0", "hello||");
    DECODES(keeps, "ab\5helloab\1x", "ab\5hello|ab\1x|");
}

static void a_length_may_count_its_header(void **state)
{
    blz_codec codec = length((blz_length_options){.width = 2, .adjustment = -2});

    (void)state;
    DECODES(codec, "\0\7hello\0\2", "hello||");
    DECODES(codec, "\0\1hello", "!bad|");
}

/* The limit is that of the payload: before the adjustment it would be that of something else. */
static void the_limit_is_applied_after_the_adjustment(void **state)
{
    blz_codec less = length((blz_length_options){.width = 1, .max = 5, .adjustment = -1});
    blz_codec more = length((blz_length_options){.width = 1, .max = 5, .adjustment = 3});

    (void)state;
    DECODES(less, "\6hello", "hello|");
    DECODES(less, "\7hello!", "!too long|");
    DECODES(more, "\2hello", "hello|");
    DECODES(more, "\3hello!", "!too long|");
}

static void huge_lengths_overflow_nothing(void **state)
{
    blz_length_options o = {.width = 8, .max = 100};

    (void)state;
    DECODES(length(o), "\x80\0\0\0\0\0\0\0hello", "!too long|");
    DECODES(length(o), "\xff\xff\xff\xff\xff\xff\xff\xffhello", "!too long|");
    o.adjustment = INT64_MAX;
    DECODES(length(o), "\xff\xff\xff\xff\xff\xff\xff\xffhello", "!too long|");
    o.adjustment = -INT64_MAX;
    DECODES(length(o), "\x80\0\0\0\0\0\0\4hello", "hello|");
    DECODES(length(o), "\x7f\xff\xff\xff\xff\xff\xff\xfehello", "!bad|");
    o.skip_too_long = true;
    DECODES(length(o), "\xff\xff\xff\xff\xff\xff\xff\xffhello", "!too long|!cut off|");
    o.adjustment = INT64_MAX;
    DECODES(length(o), "\xff\xff\xff\xff\xff\xff\xff\xffhello", "!too long|!cut off|");
}

static void frames_that_are_too_long_are_passed_over_by_their_length(void **state)
{
    blz_codec codec = length((blz_length_options){.width = 1, .max = 3, .skip_too_long = true});

    (void)state;
    DECODES(codec, "\5hello\2hi\4long\4long\3end", "!too long|hi|!too long|!too long|end|");
    DECODES(codec, "\5hel", "!too long|!cut off|");
}

static void the_end_within_a_frame_is_an_error(void **state)
{
    blz_codec codec = length((blz_length_options){.width = 2});

    (void)state;
    DECODES(codec, "\0\2hi", "hi|");
    DECODES(codec, "\0\2hi\0", "hi|!cut off|");
    DECODES(codec, "\0\2hi\0\5hell", "hi|!cut off|");
}

static void settings_that_cannot_be_are_refused(void **state)
{
    static const blz_length_options bad[] = {
        {.width = 5},
        {.width = 7},
        {.width = 9},
        {.width = 17},
        {.offset = 61},
        {.width = BLZ_VARINT, .offset = 55},
        {.offset = UINT32_MAX},
        {.adjustment = INT64_MIN},
        {.max = BLZ_CODEC_MAX_MAX + (size_t)1},
    };
    blz_codec codec;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(blz_codec_length(&codec, &bad[i]), -EINVAL);
    assert_int_equal(blz_codec_length(&codec, &(blz_length_options){.offset = 60}), 0);
}

static void wants_says_how_much_must_come(void **state)
{
    blz_codec codec = length((blz_length_options){.width = 4, .offset = 2, .max = 1000});
    blz_cut cut;

    (void)state;
    assert_int_equal(blz_codec_wants(&codec), 6);
    assert_int_equal(blz_codec_decode(&codec, &cut, "ab\0", 3), 0);
    assert_int_equal(blz_codec_wants(&codec), 6);
    assert_int_equal(blz_codec_decode(&codec, &cut, "ab\0\0\1\0", 6), 0);
    assert_int_equal(blz_codec_wants(&codec), 262);
    assert_true(blz_codec_room(&codec) >= 1006);
    codec = lines((blz_lines_options){.max = 10});
    assert_int_equal(blz_codec_decode(&codec, &cut, "abc", 3), 0);
    assert_int_equal(blz_codec_wants(&codec), 4);
    assert_true(blz_codec_room(&codec) >= 12);
    assert_int_equal(blz_codec_decode(&codec, &cut, "ab", 2), -EINVAL); /* it has seen three */
}

/* ---- encoding ---- */

static void envelope_is(const blz_codec *codec, const char *prefix, const char *payload,
                        const char *head, size_t head_len, const char *tail)
{
    blz_envelope e;

    assert_int_equal(blz_codec_encode(codec, &e, prefix, payload, strlen(payload)), 0);
    assert_int_equal(e.head_len, head_len);
    assert_memory_equal(e.head, head, head_len);
    assert_int_equal(e.tail_len, strlen(tail));
    assert_memory_equal(e.tail, tail, e.tail_len);
}

static void encoding_gives_what_goes_around(void **state)
{
    blz_codec text = lines((blz_lines_options){0});
    blz_codec four = length((blz_length_options){0});
    blz_codec little = length((blz_length_options){.width = 3, .little_endian = true, .offset = 2});
    blz_codec varint = length((blz_length_options){.width = BLZ_VARINT, .adjustment = -300});
    blz_codec behind = length((blz_length_options){.width = 1, .adjustment = 3});

    (void)state;
    envelope_is(&text, NULL, "hello", "", 0, "\n");
    envelope_is(&text, NULL, "", "", 0, "\n");
    envelope_is(&four, NULL, "hello", "\0\0\0\5", 4, "");
    envelope_is(&little, "ab", "hello", "ab\5\0\0", 5, "");
    envelope_is(&little, NULL, "hello", "\0\0\5\0\0", 5, "");
    envelope_is(&varint, NULL, "hello", "\xb1\2", 2, "");
    envelope_is(&behind, NULL, "hello", "\2", 1, "");
}

/* Cut to the width of the field, a length would make two records of one. */
static void a_length_that_does_not_fit_its_field_is_refused(void **state)
{
    static char payload[70000];
    blz_codec codec = length((blz_length_options){.width = 1});
    blz_envelope e;

    (void)state;
    assert_int_equal(blz_codec_encode(&codec, &e, NULL, payload, 255), 0);
    assert_int_equal(blz_codec_encode(&codec, &e, NULL, payload, 256), -EMSGSIZE);
    codec = length((blz_length_options){.width = 2, .adjustment = -2});
    assert_int_equal(blz_codec_encode(&codec, &e, NULL, payload, 65533), 0);
    assert_int_equal(blz_codec_encode(&codec, &e, NULL, payload, 65534), -EMSGSIZE);
    codec = length((blz_length_options){.max = 10});
    assert_int_equal(blz_codec_encode(&codec, &e, NULL, payload, 11), -EMSGSIZE);
    codec = length((blz_length_options){.adjustment = 6});
    assert_int_equal(blz_codec_encode(&codec, &e, NULL, payload, 5), -EINVAL);
}

/* Who may choose a payload may not choose what follows it. */
static void a_payload_with_the_delimiter_is_refused(void **state)
{
    blz_codec text = lines((blz_lines_options){.max = 10});
    blz_codec keeps = lines((blz_lines_options){.keep_cr = true});
    blz_codec word = delimiter("aa", (blz_delimiter_options){0});
    blz_envelope e;

    (void)state;
    assert_int_equal(blz_codec_encode(&text, &e, NULL, "a\nb", 3), -EINVAL);
    assert_int_equal(blz_codec_encode(&text, &e, NULL, "a\r", 2), -EINVAL);
    assert_int_equal(blz_codec_encode(&text, &e, NULL, "a\rb", 3), 0);
    assert_int_equal(blz_codec_encode(&text, &e, NULL, "01234567890", 11), -EMSGSIZE);
    assert_int_equal(blz_codec_encode(&keeps, &e, NULL, "a\r", 2), 0);
    assert_int_equal(blz_codec_encode(&word, &e, NULL, "xaay", 4), -EINVAL);
    assert_int_equal(blz_codec_encode(&word, &e, NULL, "xa", 2), -EINVAL); /* "xa" "aa" */
    assert_int_equal(blz_codec_encode(&word, &e, NULL, "ax", 2), 0);
    assert_int_equal(blz_codec_encode(&word, &e, NULL, NULL, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_end_with_lf_or_crlf),
        TEST(the_last_line_needs_no_end),
        TEST(a_line_may_be_as_long_as_the_limit_without_its_end),
        TEST(a_long_line_is_refused_before_its_end_comes),
        TEST(a_line_that_is_skipped_is_one_error),
        TEST(what_is_skipped_is_used_at_once),
        TEST(a_delimiter_may_be_any_bytes),
        TEST(delimiters_that_repeat_themselves_are_found_as_early_as_possible),
        TEST(half_a_delimiter_does_not_count_as_the_frame),
        TEST(delimiters_have_a_length),
        TEST(lengths_have_several_widths_and_both_orders),
        TEST(varints_have_seven_bits_a_byte),
        TEST(a_header_may_have_more_than_a_length),
        TEST(a_length_may_count_its_header),
        TEST(the_limit_is_applied_after_the_adjustment),
        TEST(huge_lengths_overflow_nothing),
        TEST(frames_that_are_too_long_are_passed_over_by_their_length),
        TEST(the_end_within_a_frame_is_an_error),
        TEST(settings_that_cannot_be_are_refused),
        TEST(wants_says_how_much_must_come),
        TEST(encoding_gives_what_goes_around),
        TEST(a_length_that_does_not_fit_its_field_is_refused),
        TEST(a_payload_with_the_delimiter_is_refused),
    };
    return RUN_TESTS(tests);
}
