/* SPDX-License-Identifier: Apache-2.0 */
/* Writers: what they keep, when they write, and that nothing is lost or written twice. */
#include "net_probe.h"
#include "script.h"

struct writes {
    blz_rt *rt;
    struct script script;
    blz_writer writer;
    char memory[16];
};

static void begin(struct writes *t, size_t piece)
{
    t->rt = new_embedded_rt();
    t->script = script_of("", piece);
    assert_int_equal(blz_writer_init(&t->writer, script_stream(&t->script), t->memory,
                                     sizeof t->memory),
                     0);
}

static void end(struct writes *t)
{
    blz_writer_free(&t->writer);
    free_rt(t->rt);
}

static void small_writes_are_kept_until_there_is_no_room(void **state)
{
    struct writes t;

    (void)state;
    begin(&t, 100);
    for (int i = 0; i < 4; i++)
        assert_int_equal(AWAIT(t.rt, blz_writer_write_all(&t.writer, "abcd", 4)), 4);
    assert_int_equal(t.script.nr_writes, 0);
    assert_false(blz_writer_put(&t.writer, "e", 1));
    assert_true(blz_writer_put(&t.writer, "", 0));
    assert_int_equal(AWAIT(t.rt, blz_writer_write_all(&t.writer, "efgh", 4)), 4);
    assert_int_equal(t.script.out_len, 16);
    assert_int_equal(AWAIT(t.rt, blz_writer_flush(&t.writer)), 0);
    assert_int_equal(t.script.out_len, 20);
    assert_memory_equal(t.script.out, "abcdabcdabcdabcdefgh", 20);
    assert_int_equal(t.script.nr_flushes, 1);
    assert_true(blz_writer_put(&t.writer, "0123456789abcdef", 16));
    assert_int_equal(AWAIT(t.rt, blz_writer_shutdown(&t.writer)), 0);
    assert_int_equal(t.script.out_len, 36);
    assert_int_equal(t.script.nr_flushes, 2);
    assert_int_equal(t.script.nr_shutdowns, 1);
    end(&t);
}

/* Pieces of all sizes, to a stream that takes as little as a byte at a time. */
static void everything_arrives_in_order_whatever_the_pieces(void **state)
{
    static const char text[] = "The quick brown fox jumps over the lazy dog, and nobody minds.";

    (void)state;
    for (size_t piece = 1; piece <= 20; piece++)
        for (size_t step = 1; step <= 40; step++) {
            struct writes t;
            size_t at = 0;
            begin(&t, piece);
            t.script.slow = step % 2;
            while (at < sizeof text) {
                size_t len = step < sizeof text - at ? step : sizeof text - at;
                assert_int_equal(AWAIT(t.rt, blz_writer_write_all(&t.writer, text + at, len)), len);
                assert_int_equal(t.writer.done, len);
                at += len;
            }
            assert_int_equal(AWAIT(t.rt, blz_writer_flush(&t.writer)), 0);
            assert_int_equal(t.script.out_len, sizeof text);
            assert_memory_equal(t.script.out, text, sizeof text);
            end(&t);
        }
}

static void several_pieces_are_written_as_one(void **state)
{
    struct writes t;
    char a[] = "0123456789", b[] = "abcdefghijklmnopqrstuvwxyz";
    blz_iovec iov[] = {{a, 10}, {NULL, 0}, {b, 26}, {a, 3}};

    (void)state;
    for (size_t piece = 1; piece < 50; piece += 7) {
        begin(&t, piece);
        assert_int_equal(AWAIT(t.rt, blz_writer_writev_all(&t.writer, iov, 4)), 39);
        assert_int_equal(AWAIT(t.rt, blz_writer_writev_all(&t.writer, NULL, 0)), 0);
        assert_int_equal(AWAIT(t.rt, blz_writer_flush(&t.writer)), 0);
        assert_memory_equal(t.script.out, "0123456789abcdefghijklmnopqrstuvwxyz012", 39);
        end(&t);
    }
}

static void an_error_says_how_much_was_taken(void **state)
{
    struct writes t;

    (void)state;
    begin(&t, 4);
    t.script.fail_write = -EPIPE;
    t.script.fail_at = 12;
    assert_true(blz_writer_put(&t.writer, "abcd", 4));
    assert_int_equal(AWAIT(t.rt,
                           blz_writer_write_all(&t.writer, "0123456789012345678901234567", 28)),
                     -EPIPE);
    assert_int_equal(t.writer.done, 8);
    assert_memory_equal(t.script.out, "abcd01234567", 12);
    assert_true(blz_writer_put(&t.writer, "x", 1));
    assert_int_equal(AWAIT(t.rt, blz_writer_flush(&t.writer)), -EPIPE);
    assert_int_equal(AWAIT(t.rt, blz_writer_shutdown(&t.writer)), -EPIPE);
    assert_int_equal(t.script.nr_flushes + t.script.nr_shutdowns, 0);
    end(&t);
}

/* A flush that is cancelled half way goes on where it was. */
static void a_cancelled_flush_repeats_nothing(void **state)
{
    struct writes t;
    blz_stream a, b;
    blz_stream_op op = {0};
    blz_handle flushing;
    char buf[32];

    (void)state;
    begin(&t, 1);
    assert_int_equal(blz_stream_pair(&a, &b, 6, test_memory()), 0);
    t.writer.stream = a;
    assert_true(blz_writer_put(&t.writer, "0123456789abcdef", 16));
    START(t.rt, &flushing, blz_writer_flush(&t.writer));
    assert_int_equal(CANCEL(t.rt, &flushing), -ECANCELED);
    assert_int_equal(t.writer.end - t.writer.pos, 10);
    START(t.rt, &flushing, blz_writer_flush(&t.writer));
    assert_int_equal(AWAIT(t.rt, blz_stream_read_exact(&op, &b, buf, 16)), 16);
    assert_int_equal(FINISH(t.rt, &flushing), 0);
    assert_memory_equal(buf, "0123456789abcdef", 16);
    blz_stream_close(&a);
    blz_stream_close(&b);
    end(&t);
}

static void a_cancelled_write_says_how_much_was_taken(void **state)
{
    struct writes t;
    blz_stream a, b;
    blz_stream_op op = {0};
    blz_handle writing;
    char buf[32];

    (void)state;
    begin(&t, 1);
    assert_int_equal(blz_stream_pair(&a, &b, 6, test_memory()), 0);
    t.writer.stream = a;
    assert_true(blz_writer_put(&t.writer, "ab", 2));
    START(t.rt, &writing, blz_writer_write_all(&t.writer, "0123456789abcdefghijklmnopqrst", 30));
    assert_int_equal(CANCEL(t.rt, &writing), -ECANCELED);
    assert_int_equal(t.writer.done, 4);
    assert_int_equal(AWAIT(t.rt, blz_stream_read(&op.io, &b, buf, 32)), 6);
    assert_memory_equal(buf, "ab0123", 6);
    blz_stream_close(&a);
    blz_stream_close(&b);
    end(&t);
}

static void a_writer_is_a_stream(void **state)
{
    struct writes t;
    blz_stream stream;
    blz_stream_op op = {0};
    char buf[8];

    (void)state;
    begin(&t, 100);
    t.script.text = "in";
    t.script.len = 2;
    stream = blz_writer_stream(&t.writer);
    assert_int_equal(AWAIT(t.rt, blz_stream_write_all(&op, &stream, "abc", 3)), 3);
    assert_int_equal(AWAIT(t.rt,
                           blz_stream_writev_all(&op, &stream, &(blz_iovec){(char[]){"d"}, 1}, 1)),
                     1);
    assert_int_equal(t.script.out_len, 0);
    assert_int_equal(AWAIT(t.rt, blz_stream_flush(&op.io, &stream)), 0);
    assert_memory_equal(t.script.out, "abcd", 4);
    assert_int_equal(AWAIT(t.rt, blz_stream_read(&op.io, &stream, buf, 8)), 2);
    assert_int_equal(AWAIT(t.rt, blz_stream_write_all(&op, &stream, "e", 1)), 1);
    assert_int_equal(AWAIT(t.rt, blz_stream_shutdown(&op.io, &stream)), 0);
    assert_memory_equal(t.script.out, "abcde", 5);
    assert_int_equal(t.script.nr_shutdowns, 1);
    assert_int_equal(blz_stream_close(&stream), 0);
    assert_int_equal(t.script.nr_closes, 1);
    end(&t);
}

/* Half of it has been taken when the stream fails: that half is not written again. */
static void a_stream_of_a_writer_counts_what_was_taken(void **state)
{
    struct writes t;
    blz_stream stream;
    blz_stream_op op = {0};

    (void)state;
    begin(&t, 4);
    t.script.fail_write = -EIO;
    t.script.fail_at = 8;
    stream = blz_writer_stream(&t.writer);
    assert_int_equal(AWAIT(t.rt,
                           blz_stream_write_all(&op, &stream, "0123456789abcdefghijklmnopqr", 28)),
                     -EIO);
    assert_int_equal(op.done, 8);
    end(&t);
}

static void a_buffer_may_be_allocated(void **state)
{
    blz_writer writer;
    struct memory memory;

    (void)state;
    assert_int_equal(blz_writer_init(&writer, (blz_stream){0}, NULL, 0), 0);
    blz_writer_free(&writer);
    memory_init(&memory);
    assert_int_equal(blz_writer_init_with(&writer, (blz_stream){0}, 100, &memory.allocator), 0);
    blz_writer_free(&writer);
    blz_writer_free(&writer);
    memory_fail_at(&memory, 1, false);
    assert_int_equal(blz_writer_init_with(&writer, (blz_stream){0}, 100, &memory.allocator),
                     -ENOMEM);
    blz_writer_free(&writer);
    assert_int_equal(memory_blocks(&memory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(small_writes_are_kept_until_there_is_no_room),
        TEST(everything_arrives_in_order_whatever_the_pieces),
        TEST(several_pieces_are_written_as_one),
        TEST(an_error_says_how_much_was_taken),
        TEST(a_cancelled_flush_repeats_nothing),
        TEST(a_cancelled_write_says_how_much_was_taken),
        TEST(a_writer_is_a_stream),
        TEST(a_stream_of_a_writer_counts_what_was_taken),
        TEST(a_buffer_may_be_allocated),
    };
    return RUN_TESTS(tests);
}
