/* SPDX-License-Identifier: Apache-2.0 */
/* Records over a stream: whatever the pieces are, with a buffer that grows with what has come. */
#include "net_probe.h"
#include "script.h"

#include <blitz/records.h>

#include <stdlib.h>

static blz_codec lines(size_t max)
{
    blz_codec codec;

    assert_int_equal(blz_codec_lines(&codec, &(blz_lines_options){.max = max}), 0);
    return codec;
}

static blz_codec lengths(size_t max)
{
    blz_codec codec;

    assert_int_equal(blz_codec_length(&codec, &(blz_length_options){.max = max}), 0);
    return codec;
}

/* The next record, awaited: as blz_records_take, and 0 is the end. */
static int64_t next(blz_rt *rt, blz_records *records, blz_view *record)
{
    for (;;) {
        int64_t rc = blz_records_take(records, record);
        if (rc != 0)
            return rc;
        rc = AWAIT(rt, blz_records_more(records));
        if (rc <= 0)
            return rc;
    }
}

static void is_next(blz_rt *rt, blz_records *records, const char *text)
{
    blz_view record;

    assert_int_equal(next(rt, records, &record), 1);
    assert_int_equal(record.len, strlen(text));
    assert_memory_equal(record.data, text, record.len);
}

/* ---- reading ---- */

static void frames_are_the_same_whatever_the_pieces(void **state)
{
    blz_rt *rt = new_embedded_rt();

    (void)state;
    for (size_t piece = 1; piece <= 20; piece++) {
        struct script script = script_of("first\nsecond\r\n\nlast", piece);
        blz_codec codec = lines(10);
        blz_records records;
        blz_view record;
        assert_int_equal(blz_records_init(&records, script_stream(&script), &codec, test_memory()),
                         0);
        is_next(rt, &records, "first");
        is_next(rt, &records, "second");
        is_next(rt, &records, "");
        is_next(rt, &records, "last");
        assert_int_equal(next(rt, &records, &record), 0);
        assert_int_equal(next(rt, &records, &record), 0);
        blz_records_free(&records);
    }
    free_rt(rt);
}

/* From 4 KiB to what the record needs, and back again. */
static void the_buffer_grows_for_a_long_frame_and_is_small_again(void **state)
{
    enum { LONG = 300000 };
    blz_rt *rt = new_embedded_rt();
    char *text = malloc(LONG + 16);
    struct script script = {.text = text, .len = LONG + 10, .piece = 5000};
    blz_codec codec = lines(1 << 20);
    blz_records records;
    blz_view record;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', LONG);
    memcpy(text + LONG, "\nshort\nend", 10);
    assert_int_equal(blz_records_init(&records, script_stream(&script), &codec, test_memory()), 0);
    assert_int_equal(next(rt, &records, &record), 1);
    assert_int_equal(record.len, LONG);
    assert_true(records.reader.size >= LONG && records.reader.size <= 2 * LONG);
    for (size_t i = 0; i < LONG; i++)
        assert_true(record.data[i] == 'x');
    is_next(rt, &records, "short");
    is_next(rt, &records, "end");
    assert_int_equal(next(rt, &records, &record), 0);
    blz_records_free(&records);

    script = (struct script){.text = text + LONG - 100000, .len = 100001, .piece = 5000};
    assert_int_equal(blz_records_init(&records, script_stream(&script), &codec, test_memory()), 0);
    assert_int_equal(next(rt, &records, &record), 1);
    assert_true(records.reader.size >= 100000);
    assert_int_equal(next(rt, &records, &record), 0);
    assert_true(records.reader.size <= 4096);
    blz_records_free(&records);
    free(text);
    free_rt(rt);
}

/* Only bytes that have come cost memory. */
static void a_length_that_is_only_announced_costs_nothing(void **state)
{
    static const char header[] = "\x0f\xff\xff\xff some bytes of it";
    blz_rt *rt = new_embedded_rt();
    struct script script = {.text = header, .len = sizeof header - 1, .piece = 3};
    blz_codec codec = lengths((size_t)1 << 30);
    blz_records records;
    blz_view record;

    (void)state;
    assert_int_equal(blz_records_init(&records, script_stream(&script), &codec, test_memory()), 0);
    assert_int_equal(next(rt, &records, &record), -ENODATA);
    assert_int_equal(records.reader.size, 4096);
    blz_records_free(&records);
    free_rt(rt);
}

static void a_frame_that_is_too_long_is_refused_or_passed_over(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_codec codec = lines(4);
    blz_records records;
    blz_view record;

    (void)state;
    for (int skips = 0; skips < 2; skips++) {
        struct script script = script_of("ok\nmuch too long\nfine\n", 2);
        assert_int_equal(blz_codec_lines(&codec,
                                         &(blz_lines_options){.max = 4, .skip_too_long = skips}),
                         0);
        assert_int_equal(blz_records_init(&records, script_stream(&script), &codec, test_memory()),
                         0);
        is_next(rt, &records, "ok");
        assert_int_equal(next(rt, &records, &record), -EMSGSIZE);
        if (skips)
            is_next(rt, &records, "fine");
        assert_int_equal(next(rt, &records, &record), skips ? 0 : -EMSGSIZE);
        blz_records_free(&records);
    }
    free_rt(rt);
}

static void an_error_of_the_stream_is_told_and_frames_before_it_are_not_lost(void **state)
{
    blz_rt *rt = new_embedded_rt();
    struct script script = script_of("one\ntwo\nthr", 100);
    blz_codec codec = lines(10);
    blz_records records;
    blz_view record;

    (void)state;
    script.fail_read = -ECONNRESET;
    assert_int_equal(blz_records_init(&records, script_stream(&script), &codec, test_memory()), 0);
    is_next(rt, &records, "one");
    is_next(rt, &records, "two");
    assert_int_equal(next(rt, &records, &record), -ECONNRESET);
    assert_int_equal(blz_records_rest(&records).len, 3);
    blz_records_free(&records);
    free_rt(rt);
}

static void what_follows_the_frames_is_there_for_another_protocol(void **state)
{
    blz_rt *rt = new_embedded_rt();
    struct script script = script_of("upgrade\n\x16\x03 something else", 100);
    blz_codec codec = lines(100);
    blz_records records;

    (void)state;
    assert_int_equal(blz_records_init(&records, script_stream(&script), &codec, test_memory()), 0);
    is_next(rt, &records, "upgrade");
    assert_memory_equal(blz_records_rest(&records).data, "\x16\x03 something else", 17);
    blz_records_free(&records);
    free_rt(rt);
}

static void a_cancelled_wait_loses_nothing(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_codec codec = lines(100);
    blz_records records;
    blz_stream a, b;
    blz_stream_op op = {0};
    blz_handle waiting;
    blz_view record;

    (void)state;
    assert_int_equal(blz_stream_pair(&a, &b, 16, test_memory()), 0);
    assert_int_equal(blz_records_init(&records, a, &codec, test_memory()), 0);
    START(rt, &waiting, blz_records_more(&records));
    assert_int_equal(CANCEL(rt, &waiting), -ECANCELED);
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &b, "hal", 3)), 3);
    assert_int_equal(AWAIT(rt, blz_records_more(&records)), 1);
    assert_int_equal(blz_records_take(&records, &record), 0);
    START(rt, &waiting, blz_records_more(&records));
    assert_int_equal(CANCEL(rt, &waiting), -ECANCELED);
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &b, "f\n", 2)), 2);
    is_next(rt, &records, "half");
    blz_records_free(&records);
    blz_stream_close(&a);
    blz_stream_close(&b);
    free_rt(rt);
}

static void without_memory_it_can_be_tried_again(void **state)
{
    static char text[9000];
    blz_rt *rt = new_embedded_rt();
    struct script script = {.text = text, .len = sizeof text, .piece = sizeof text};
    blz_codec codec = lines(10000);
    blz_handle waiting;
    blz_records records;
    blz_view record;

    (void)state;
    memset(text, 'x', sizeof text);
    memory_fail_at(the_memory(), 1, false);
    assert_int_equal(blz_records_init(&records, script_stream(&script), &codec, test_memory()),
                     -ENOMEM);
    blz_records_free(&records);
    memory_fail_at(the_memory(), 0, false);
    assert_int_equal(blz_records_init(&records, script_stream(&script), &codec, test_memory()), 0);
    assert_int_equal(AWAIT(rt, blz_records_more(&records)), 1);
    assert_int_equal(blz_records_take(&records, &record), 0); /* it is full now */
    assert_int_equal(BLZ_SPAWN_ON(rt, &waiting, awaits, .op = blz_records_more(&records)), 0);
    memory_fail_at(the_memory(), 1, false);
    assert_int_equal(FINISH(rt, &waiting), -ENOMEM);
    memory_fail_at(the_memory(), 0, false);
    assert_int_equal(next(rt, &records, &record), 1);
    assert_int_equal(record.len, sizeof text);
    blz_records_free(&records);
    free_rt(rt);
}

/* ---- writing ---- */

static void what_is_written_is_read(void **state)
{
    static const char *const words[] = {"hello", "", "a longer one that does not fit", "x"};
    blz_rt *rt = new_embedded_rt();
    blz_codec codec = lengths(100);

    (void)state;
    for (size_t size = 4; size < 40; size++) {
        struct script out = {.piece = 7, .slow = true};
        blz_writer writer;
        blz_record_op op = {0};
        char memory[40];
        assert_int_equal(blz_writer_init(&writer, script_stream(&out), memory, size), 0);
        for (int i = 0; i < 4; i++)
            assert_int_equal(AWAIT(rt, blz_writer_record(&op, &writer, &codec, NULL, words[i],
                                                         strlen(words[i]))),
                             4 + strlen(words[i]));
        assert_int_equal(AWAIT(rt, blz_writer_flush(&writer)), 0);
        struct script in = {.text = out.out, .len = out.out_len, .piece = 5};
        blz_records records;
        assert_int_equal(blz_records_init(&records, script_stream(&in), &codec, test_memory()), 0);
        for (int i = 0; i < 4; i++)
            is_next(rt, &records, words[i]);
        blz_records_free(&records);
        blz_writer_free(&writer);
    }
    free_rt(rt);
}

static void what_cannot_be_a_frame_is_not_written(void **state)
{
    blz_rt *rt = new_embedded_rt();
    struct script out = {.piece = 100};
    blz_codec codec = lines(5);
    blz_writer writer;
    blz_record_op op = {0};
    char memory[16];

    (void)state;
    assert_int_equal(blz_writer_init(&writer, script_stream(&out), memory, sizeof memory), 0);
    assert_int_equal(AWAIT(rt, blz_writer_record(&op, &writer, &codec, NULL, "a\nb", 3)), -EINVAL);
    assert_int_equal(AWAIT(rt, blz_writer_record(&op, &writer, &codec, NULL, "123456", 6)),
                     -EMSGSIZE);
    assert_int_equal(AWAIT(rt, blz_writer_record(&op, &writer, &codec, NULL, "12345", 5)), 6);
    assert_int_equal(AWAIT(rt, blz_writer_flush(&writer)), 0);
    assert_int_equal(out.out_len, 6);
    assert_memory_equal(out.out, "12345\n", 6);
    blz_writer_free(&writer);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(frames_are_the_same_whatever_the_pieces),
        TEST(the_buffer_grows_for_a_long_frame_and_is_small_again),
        TEST(a_length_that_is_only_announced_costs_nothing),
        TEST(a_frame_that_is_too_long_is_refused_or_passed_over),
        TEST(an_error_of_the_stream_is_told_and_frames_before_it_are_not_lost),
        TEST(what_follows_the_frames_is_there_for_another_protocol),
        TEST(a_cancelled_wait_loses_nothing),
        TEST(without_memory_it_can_be_tried_again),
        TEST(what_is_written_is_read),
        TEST(what_cannot_be_a_frame_is_not_written),
    };
    return RUN_TESTS(tests);
}
