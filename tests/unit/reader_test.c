/* SPDX-License-Identifier: Apache-2.0 */
/* Readers: whatever the pieces are in which bytes come, and however small the buffer is. */
#include "net_probe.h"
#include "script.h"

/* A reader of a text that comes in pieces, with a buffer of a size. */
struct reads {
    blz_rt *rt;
    struct script script;
    blz_reader reader;
    char memory[256];
};

static void begin(struct reads *t, const char *text, size_t piece, size_t size)
{
    t->rt = new_embedded_rt();
    t->script = script_of(text, piece);
    assert_int_equal(blz_reader_init(&t->reader, script_stream(&t->script), t->memory, size), 0);
}

static void end(struct reads *t)
{
    blz_reader_free(&t->reader);
    free_rt(t->rt);
}

/* ---- bytes ---- */

static void bytes_are_read_exactly_whatever_the_pieces(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= 12; piece++)
        for (size_t size = 1; size <= 12; size++) {
            struct reads t;
            char a[3], b[5], c[9];
            begin(&t, "abcdefghijk", piece, size);
            assert_int_equal(AWAIT(t.rt, blz_reader_read_exact(&t.reader, a, 3)), 3);
            assert_int_equal(AWAIT(t.rt, blz_reader_read_exact(&t.reader, b, 0)), 0);
            assert_int_equal(AWAIT(t.rt, blz_reader_read_exact(&t.reader, b, 5)), 5);
            assert_int_equal(AWAIT(t.rt, blz_reader_read_exact(&t.reader, c, 9)), -ENODATA);
            assert_int_equal(t.reader.done, 3);
            assert_memory_equal(a, "abc", 3);
            assert_memory_equal(b, "defgh", 5);
            assert_memory_equal(c, "ijk", 3);
            end(&t);
        }
}

static void a_read_gives_what_is_there(void **state)
{
    struct reads t;
    char buf[64];

    (void)state;
    begin(&t, "abcdefghij", 4, 8);
    assert_int_equal(AWAIT(t.rt, blz_reader_read(&t.reader, buf, 3)), 3); /* one is kept */
    assert_int_equal(AWAIT(t.rt, blz_reader_read(&t.reader, buf, 0)), 0);
    assert_int_equal(AWAIT(t.rt, blz_reader_read(&t.reader, buf, 64)), 1);
    assert_int_equal(AWAIT(t.rt, blz_reader_read(&t.reader, buf, 64)), 4); /* past the buffer */
    assert_int_equal(t.reader.pos, t.reader.end);
    assert_memory_equal(buf, "efgh", 4);
    assert_int_equal(AWAIT(t.rt, blz_reader_read(&t.reader, buf, 64)), 2);
    assert_int_equal(AWAIT(t.rt, blz_reader_read(&t.reader, buf, 64)), 0);
    assert_int_equal(AWAIT(t.rt, blz_reader_read(&t.reader, buf, 64)), 0);
    end(&t);
}

static void what_is_peeked_at_stays(void **state)
{
    struct reads t;

    (void)state;
    for (size_t piece = 1; piece <= 8; piece++) {
        begin(&t, "abcdefgh", piece, 6);
        assert_int_equal(AWAIT(t.rt, blz_reader_peek(&t.reader, 4)), 4);
        assert_memory_equal(blz_reader_buffered(&t.reader).data, "abcd", 4);
        blz_reader_consume(&t.reader, 3);
        assert_int_equal(AWAIT(t.rt, blz_reader_peek(&t.reader, 5)), 5);
        assert_memory_equal(blz_reader_buffered(&t.reader).data, "defgh", 5);
        assert_int_equal(AWAIT(t.rt, blz_reader_peek(&t.reader, 6)), 5);
        assert_int_equal(AWAIT(t.rt, blz_reader_peek(&t.reader, 7)), -EMSGSIZE);
        end(&t);
    }
}

static void filling_stops_at_the_buffer_and_at_the_end(void **state)
{
    struct reads t;

    (void)state;
    begin(&t, "abcdef", 2, 4);
    assert_int_equal(AWAIT(t.rt, blz_reader_fill(&t.reader)), 2);
    assert_int_equal(AWAIT(t.rt, blz_reader_fill(&t.reader)), 2);
    assert_int_equal(AWAIT(t.rt, blz_reader_fill(&t.reader)), -EMSGSIZE);
    assert_int_equal(blz_reader_buffered(&t.reader).len, 4);
    blz_reader_consume(&t.reader, 1);
    assert_int_equal(AWAIT(t.rt, blz_reader_fill(&t.reader)), 1); /* as much as there is room for */
    blz_reader_consume(&t.reader, 4);
    assert_int_equal(AWAIT(t.rt, blz_reader_fill(&t.reader)), 1);
    assert_int_equal(AWAIT(t.rt, blz_reader_fill(&t.reader)), 0);
    end(&t);
}

static void bytes_are_passed_over(void **state)
{
    struct reads t;
    char c;

    (void)state;
    for (size_t piece = 1; piece <= 9; piece++) {
        begin(&t, "abc;def;xyz", piece, 4);
        assert_int_equal(AWAIT(t.rt, blz_reader_skip(&t.reader, 2)), 2);
        assert_int_equal(AWAIT(t.rt, blz_reader_skip_until(&t.reader, ';')), 1);
        assert_int_equal(AWAIT(t.rt, blz_reader_read_exact(&t.reader, &c, 1)), 1);
        assert_int_equal(c, 'd');
        assert_int_equal(AWAIT(t.rt, blz_reader_skip_until(&t.reader, ';')), 1);
        assert_int_equal(AWAIT(t.rt, blz_reader_skip(&t.reader, 100)), 3);
        assert_int_equal(AWAIT(t.rt, blz_reader_skip_until(&t.reader, ';')), 0);
        end(&t);
    }
}

static void an_error_of_the_stream_is_the_result(void **state)
{
    struct reads t;
    char buf[8];

    (void)state;
    begin(&t, "abc", 8, 8);
    t.script.fail_read = -EIO;
    assert_int_equal(AWAIT(t.rt, blz_reader_read_exact(&t.reader, buf, 8)), -EIO);
    assert_int_equal(t.reader.done, 3);
    assert_int_equal(AWAIT(t.rt, blz_reader_fill(&t.reader)), -EIO);
    assert_int_equal(AWAIT(t.rt, blz_reader_peek(&t.reader, 1)), -EIO);
    end(&t);
}

/* ---- memory that grows ---- */

static void text_is_read_up_to_a_byte(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= 12; piece++)
        for (size_t size = 1; size <= 12; size += 3) {
            struct reads t;
            blz_bytes out = {0};
            begin(&t, "one,two,,three", piece, size);
            assert_int_equal(AWAIT(t.rt, blz_reader_read_until(&t.reader, &out, 100, ',')), 4);
            assert_string_equal(out.data, "one,");
            assert_int_equal(AWAIT(t.rt, blz_reader_read_until(&t.reader, &out, 100, ',')), 4);
            assert_int_equal(AWAIT(t.rt, blz_reader_read_until(&t.reader, &out, 100, ',')), 1);
            assert_int_equal(AWAIT(t.rt, blz_reader_read_until(&t.reader, &out, 100, ',')), 5);
            assert_string_equal(out.data, "one,two,,three");
            assert_int_equal(AWAIT(t.rt, blz_reader_read_until(&t.reader, &out, 100, ',')), 0);
            blz_bytes_free(&out);
            end(&t);
        }
}

static void reading_into_memory_ends_at_the_limit(void **state)
{
    struct reads t;
    blz_bytes out = {0};

    (void)state;
    begin(&t, "abcdefghij", 3, 8);
    assert_int_equal(AWAIT(t.rt, blz_reader_read_until(&t.reader, &out, 5, ',')), -EMSGSIZE);
    assert_string_equal(out.data, "abcde");
    assert_int_equal(t.reader.done, 5);
    assert_int_equal(AWAIT(t.rt, blz_reader_read_to_end(&t.reader, &out, 9)), -EMSGSIZE);
    assert_string_equal(out.data, "abcdefghi");
    assert_int_equal(AWAIT(t.rt, blz_reader_read_to_end(&t.reader, &out, 10)), 1);
    assert_string_equal(out.data, "abcdefghij");
    assert_int_equal(AWAIT(t.rt, blz_reader_read_to_end(&t.reader, &out, 10)), 0);
    blz_bytes_free(&out);
    end(&t);
}

static void much_is_read_to_the_end(void **state)
{
    static char text[5000];
    struct reads t;
    blz_bytes out = {0};

    (void)state;
    memset(text, 'x', sizeof text - 1);
    begin(&t, text, 700, 256);
    t.script.slow = false;
    assert_int_equal(AWAIT(t.rt, blz_reader_read_to_end(&t.reader, &out, SIZE_MAX)), 4999);
    assert_int_equal(out.len, 4999);
    assert_string_equal(out.data, text);
    blz_bytes_free(&out);
    end(&t);
}

static void without_memory_bytes_stay_in_the_buffer(void **state)
{
    struct reads t;
    blz_bytes out = {0};

    (void)state;
    begin(&t, "abc", 8, 8);
    assert_int_equal(AWAIT(t.rt, blz_reader_peek(&t.reader, 3)), 3);
    memory_fail_at(the_memory(), 1, true);
    assert_int_equal(AWAIT(t.rt, blz_reader_read_to_end(&t.reader, &out, 100)), -ENOMEM);
    memory_fail_at(the_memory(), 0, false);
    assert_int_equal(AWAIT(t.rt, blz_reader_read_to_end(&t.reader, &out, 100)), 3);
    blz_bytes_free(&out);
    end(&t);
}

/* ---- cancellation ---- */

static blz_future *start_fill(blz_reader *reader, char *buf)
{
    (void)buf;
    return blz_reader_fill(reader);
}

static blz_future *start_peek(blz_reader *reader, char *buf)
{
    (void)buf;
    return blz_reader_peek(reader, 8);
}

static blz_future *start_read(blz_reader *reader, char *buf)
{
    return blz_reader_read(reader, buf, 8);
}

/* Each is cancelled while it waits; the next one finds everything. */
static void a_cancelled_operation_loses_nothing(void **state)
{
    static blz_future *(*const starts[])(blz_reader *, char *) = {start_fill, start_peek,
                                                                  start_read};
    blz_rt *rt = new_embedded_rt();
    blz_stream a, b;
    blz_stream_op op = {0};
    blz_reader reader;
    char memory[16], buf[16];

    (void)state;
    assert_int_equal(blz_stream_pair(&a, &b, 16, test_memory()), 0);
    assert_int_equal(blz_reader_init(&reader, a, memory, sizeof memory), 0);
    for (size_t i = 0; i < 3; i++) {
        blz_handle waiting;
        START(rt, &waiting, starts[i](&reader, buf));
        assert_int_equal(CANCEL(rt, &waiting), -ECANCELED);
        START(rt, &waiting, blz_reader_peek(&reader, 8));
        assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &b, "half", 4)), 4);
        turn_all(rt);
        assert_int_equal(CANCEL(rt, &waiting), -ECANCELED);
        assert_int_equal(blz_reader_buffered(&reader).len, 4);
        assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &b, "full", 4)), 4);
        assert_int_equal(AWAIT(rt, blz_reader_read_exact(&reader, buf, 8)), 8);
        assert_memory_equal(buf, "halffull", 8);
    }
    blz_stream_close(&a);
    blz_stream_close(&b);
    blz_reader_free(&reader);
    free_rt(rt);
}

static void a_cancelled_exact_read_says_how_much_it_has(void **state)
{
    struct reads t;
    blz_stream a, b;
    blz_stream_op op = {0};
    blz_handle waiting;
    char buf[8];

    (void)state;
    begin(&t, "", 1, 4);
    assert_int_equal(blz_stream_pair(&a, &b, 16, test_memory()), 0);
    t.reader.stream = a;
    START(t.rt, &waiting, blz_reader_read_exact(&t.reader, buf, 8));
    assert_int_equal(AWAIT(t.rt, blz_stream_write_all(&op, &b, "abc", 3)), 3);
    turn_all(t.rt);
    assert_int_equal(CANCEL(t.rt, &waiting), -ECANCELED);
    assert_int_equal(t.reader.done, 3);
    assert_memory_equal(buf, "abc", 3);
    blz_stream_close(&a);
    blz_stream_close(&b);
    end(&t);
}

/* ---- memory, streams ---- */

static void a_buffer_may_be_allocated(void **state)
{
    blz_reader reader;
    struct memory memory;

    (void)state;
    assert_int_equal(blz_reader_init(&reader, (blz_stream){0}, NULL, 0), 0);
    assert_int_equal(reader.size, 65536);
    blz_reader_free(&reader);
    blz_reader_free(&reader);
    memory_init(&memory);
    assert_int_equal(blz_reader_init_with(&reader, (blz_stream){0}, 100, &memory.allocator), 0);
    blz_reader_free(&reader);
    memory_fail_at(&memory, 1, false);
    assert_int_equal(blz_reader_init_with(&reader, (blz_stream){0}, 100, &memory.allocator),
                     -ENOMEM);
    blz_reader_free(&reader);
    assert_int_equal(memory_blocks(&memory), 0);
}

static void a_reader_is_a_stream_of_what_is_left(void **state)
{
    struct reads t;
    blz_stream stream;
    blz_stream_op op = {0};
    char buf[16];

    (void)state;
    begin(&t, "head\nbody", 9, 64);
    stream = blz_reader_stream(&t.reader);
    assert_int_equal(AWAIT(t.rt, blz_reader_skip_until(&t.reader, '\n')), 1);
    assert_int_equal(AWAIT(t.rt, blz_stream_read_exact(&op, &stream, buf, 16)), -ENODATA);
    assert_int_equal(op.done, 4);
    assert_memory_equal(buf, "body", 4);
    assert_int_equal(AWAIT(t.rt, blz_stream_write_all(&op, &stream, "answer", 6)), 6);
    assert_int_equal(AWAIT(t.rt,
                           blz_stream_writev_all(&op, &stream, &(blz_iovec){(char[]){"!"}, 1}, 1)),
                     1);
    assert_memory_equal(t.script.out, "answer!", 7);
    assert_int_equal(AWAIT(t.rt, blz_stream_flush(&op.io, &stream)), 0);
    assert_int_equal(AWAIT(t.rt, blz_stream_shutdown(&op.io, &stream)), 0);
    assert_int_equal(blz_stream_close(&stream), 0);
    assert_int_equal(t.script.nr_flushes, 1);
    assert_int_equal(t.script.nr_shutdowns, 1);
    assert_int_equal(t.script.nr_closes, 1);
    end(&t);
}

/* ---- frames ---- */

static void frames_are_cut_whatever_the_pieces(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= 20; piece++) {
        struct reads t;
        blz_codec codec;
        blz_view frame;
        begin(&t, "first\r\nsecond\n\nlast", piece, 16);
        assert_int_equal(blz_codec_lines(&codec, &(blz_lines_options){.max = 10}), 0);
        assert_int_equal(AWAIT(t.rt, blz_reader_record(&t.reader, &frame, &codec)), 1);
        assert_memory_equal(frame.data, "first", frame.len);
        assert_int_equal(AWAIT(t.rt, blz_reader_record(&t.reader, &frame, &codec)), 1);
        assert_memory_equal(frame.data, "second", frame.len);
        assert_int_equal(AWAIT(t.rt, blz_reader_record(&t.reader, &frame, &codec)), 1);
        assert_int_equal(frame.len, 0);
        assert_int_equal(AWAIT(t.rt, blz_reader_record(&t.reader, &frame, &codec)), 1);
        assert_memory_equal(frame.data, "last", frame.len);
        assert_int_equal(AWAIT(t.rt, blz_reader_record(&t.reader, &frame, &codec)), 0);
        end(&t);
    }
}

static void a_frame_that_is_too_long_is_refused(void **state)
{
    struct reads t;
    blz_codec codec;
    blz_view frame;

    (void)state;
    begin(&t, "0123456789abcdef\n", 3, 32);
    assert_int_equal(blz_codec_lines(&codec, &(blz_lines_options){.max = 10}), 0);
    assert_int_equal(AWAIT(t.rt, blz_reader_record(&t.reader, &frame, &codec)), -EMSGSIZE);
    end(&t);
    begin(&t, "0123456789abcdef\n", 3, 8);
    assert_int_equal(blz_codec_lines(&codec, NULL), 0);
    assert_int_equal(AWAIT(t.rt, blz_reader_record(&t.reader, &frame, &codec)), -ENOBUFS);
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_are_read_exactly_whatever_the_pieces),
        TEST(a_read_gives_what_is_there),
        TEST(what_is_peeked_at_stays),
        TEST(filling_stops_at_the_buffer_and_at_the_end),
        TEST(bytes_are_passed_over),
        TEST(an_error_of_the_stream_is_the_result),
        TEST(text_is_read_up_to_a_byte),
        TEST(reading_into_memory_ends_at_the_limit),
        TEST(much_is_read_to_the_end),
        TEST(without_memory_bytes_stay_in_the_buffer),
        TEST(a_cancelled_operation_loses_nothing),
        TEST(a_cancelled_exact_read_says_how_much_it_has),
        TEST(a_buffer_may_be_allocated),
        TEST(a_reader_is_a_stream_of_what_is_left),
        TEST(frames_are_cut_whatever_the_pieces),
        TEST(a_frame_that_is_too_long_is_refused),
    };
    return RUN_TESTS(tests);
}
