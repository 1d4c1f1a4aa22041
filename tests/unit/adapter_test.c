/* SPDX-License-Identifier: Apache-2.0 */
/* Streams made of streams: take, chain, count, both, memory. */
#include "net_probe.h"
#include "script.h"

static char *text_of(const void *data, size_t len)
{
    static char text[64];

    memcpy(text, data, len);
    text[len] = 0;
    return text;
}

/* Reads to the end, in small pieces. */
static void expect(blz_rt *rt, const blz_stream *stream, const char *text)
{
    blz_stream_op op = {0};
    char buf[64];

    assert_int_equal(AWAIT(rt, blz_stream_read(&op.io, stream, buf, 0)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_read_exact(&op, stream, buf, sizeof buf)), -ENODATA);
    assert_string_equal(text_of(buf, op.done), text);
    assert_int_equal(AWAIT(rt, blz_stream_read(&op.io, stream, buf, 8)), 0);
    assert_int_equal(op.io.done, 0);
}

static void take_ends_where_it_is_told_to(void **state)
{
    blz_rt *rt = new_embedded_rt();

    (void)state;
    for (size_t piece = 1; piece < 12; piece++) {
        struct script script = script_of("0123456789", piece);
        blz_take take;
        blz_stream stream = blz_take_stream(&take, script_stream(&script), 7);
        expect(rt, &stream, "0123456");
        assert_int_equal(script.at, 7);
        take.left = 100;
        expect(rt, &stream, "789");
        assert_int_equal(take.left, 97);
    }
    free_rt(rt);
}

static void chain_goes_on_with_the_second(void **state)
{
    blz_rt *rt = new_embedded_rt();

    (void)state;
    for (size_t piece = 1; piece < 6; piece++) {
        struct script one = script_of("one", piece), two = script_of("two", piece);
        blz_chain chain;
        blz_stream stream = blz_chain_stream(&chain, script_stream(&one), script_stream(&two));
        blz_io io = {0};
        expect(rt, &stream, "onetwo");
        assert_int_equal(AWAIT(rt, blz_stream_write(&io, &stream, "x", 1)), -EBADF);
        assert_int_equal(blz_stream_close(&stream), 0);
        assert_int_equal(one.nr_closes + two.nr_closes, 2);
    }
    free_rt(rt);
}

static void chain_passes_an_error_on(void **state)
{
    blz_rt *rt = new_embedded_rt();
    struct script one = script_of("", 1), two = script_of("two", 1);
    blz_chain chain;
    blz_stream stream = blz_chain_stream(&chain, script_stream(&one), script_stream(&two));
    blz_io io = {0};
    char c;

    (void)state;
    one.fail_read = -EIO;
    assert_int_equal(AWAIT(rt, blz_stream_read(&io, &stream, &c, 1)), -EIO);
    one.fail_read = 0;
    assert_int_equal(AWAIT(rt, blz_stream_read(&io, &stream, &c, 1)), 1);
    assert_int_equal(c, 't');
    free_rt(rt);
}

static void bytes_are_counted_both_ways(void **state)
{
    blz_rt *rt = new_embedded_rt();
    struct script script = script_of("hello", 2);
    blz_count count;
    blz_stream stream = blz_count_stream(&count, script_stream(&script));
    blz_stream_op op = {0};

    (void)state;
    expect(rt, &stream, "hello");
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &stream, "abc", 3)), 3);
    assert_int_equal(
        AWAIT(rt, blz_stream_writev_all(&op, &stream,
                                        (blz_iovec[]){{(char[]){"de"}, 2}, {(char[]){"f"}, 1}}, 2)),
        3);
    script.fail_write = -EIO;
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &stream, "x", 1)), -EIO);
    assert_int_equal(count.nr_read, 5);
    assert_int_equal(count.nr_written, 6);
    assert_string_equal(text_of(script.out, script.out_len), "abcdef");
    assert_int_equal(AWAIT(rt, blz_stream_flush(&op.io, &stream)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_shutdown(&op.io, &stream)), 0);
    assert_int_equal(blz_stream_close(&stream), 0);
    assert_int_equal(script.nr_flushes + script.nr_shutdowns + script.nr_closes, 3);
    free_rt(rt);
}

static void memory_is_read_and_chained(void **state)
{
    blz_rt *rt = new_embedded_rt();
    struct script script = script_of(" and more", 3);
    blz_memory memory;
    blz_chain chain;
    blz_count count;
    blz_take take;
    blz_stream stream = blz_memory_stream(&memory, "what was read", 13);

    (void)state;
    stream = blz_chain_stream(&chain, stream, script_stream(&script));
    stream = blz_take_stream(&take, stream, 17);
    stream = blz_count_stream(&count, stream);
    expect(rt, &stream, "what was read and");
    assert_int_equal(count.nr_read, 17);
    assert_int_equal(blz_stream_close(&stream), 0);
    free_rt(rt);
}

static void writing_goes_through_take(void **state)
{
    blz_rt *rt = new_embedded_rt();
    struct script script = script_of("", 2);
    blz_take take;
    blz_stream stream = blz_take_stream(&take, script_stream(&script), 0);
    blz_stream_op op = {0};

    (void)state;
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &stream, "abc", 3)), 3);
    assert_int_equal(AWAIT(rt,
                           blz_stream_writev_all(&op, &stream, &(blz_iovec){(char[]){"d"}, 1}, 1)),
                     1);
    assert_string_equal(text_of(script.out, script.out_len), "abcd");
    assert_int_equal(AWAIT(rt, blz_stream_flush(&op.io, &stream)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_shutdown(&op.io, &stream)), 0);
    assert_int_equal(blz_stream_close(&stream), 0);
    assert_int_equal(script.nr_flushes + script.nr_shutdowns + script.nr_closes, 3);
    free_rt(rt);
}

/* Whatever is outside, the one in the middle of the wait is told, and no byte is lost. */
static void a_cancellation_goes_through_all_of_them(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_stream a, b, stream;
    blz_memory memory;
    blz_chain chain;
    blz_take take;
    blz_count count;
    blz_stream_op op = {0};
    blz_handle reading;
    char buf[8];

    (void)state;
    assert_int_equal(blz_stream_pair(&a, &b, 4, test_memory()), 0);
    stream = blz_chain_stream(&chain, blz_memory_stream(&memory, "", 0), a);
    stream = blz_take_stream(&take, stream, 100);
    stream = blz_count_stream(&count, stream);
    START(rt, &reading, blz_stream_read(&op.io, &stream, buf, 8));
    assert_int_equal(CANCEL(rt, &reading), -ECANCELED);
    assert_int_equal(count.nr_read, 0);
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &b, "abcd", 4)), 4);
    assert_int_equal(AWAIT(rt, blz_stream_read(&op.io, &stream, buf, 8)), 4);
    assert_int_equal(count.nr_read, 4);
    assert_int_equal(take.left, 96);
    blz_stream_close(&a);
    blz_stream_close(&b);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(take_ends_where_it_is_told_to),
        TEST(chain_goes_on_with_the_second),
        TEST(chain_passes_an_error_on),
        TEST(bytes_are_counted_both_ways),
        TEST(memory_is_read_and_chained),
        TEST(writing_goes_through_take),
        TEST(a_cancellation_goes_through_all_of_them),
    };
    return RUN_TESTS(tests);
}
