/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: the same behaviour whatever is below, on every backend. */
#include "stream_kinds.h"

#include <stdlib.h>

enum { BIG = 8 << 20 }; /* more than anything holds */

static union {
    char bytes[BIG];
    uint64_t words[BIG / 8];
} data, got;

static void make_data(void)
{
    for (size_t i = 0; i < BIG / 8; i++)
        data.words[i] = i * 0x9e3779b97f4a7c15u;
}

/* ---- bytes ---- */

ON_EACH_KIND(what_is_written_is_read)
{
    blz_io in = {0}, out = {0};
    blz_handle reading;
    char buf[16];

    START(rt, &reading, blz_stream_read(&in, &ends->from, buf, sizeof buf));
    assert_false(blz_handle_done(&reading));
    assert_int_equal(AWAIT(rt, blz_stream_write(&out, &ends->to, "abc", 3)), 3);
    assert_int_equal(FINISH(rt, &reading), 3);
    assert_memory_equal(buf, "abc", 3);
    assert_int_equal(in.done, 3);
    assert_int_equal(out.done, 3);
}

ON_EACH_KIND(pieces_are_written_in_order)
{
    blz_io in = {0}, out = {0};
    blz_iovec pieces[] = {{NULL, 0}, {(char[]){'a', 'b'}, 2}, {NULL, 0}, {(char[]){'c'}, 1}};
    char buf[16];

    assert_int_equal(AWAIT(rt, blz_stream_writev(&out, &ends->to, pieces, 4)), 3);
    assert_int_equal(AWAIT(rt, blz_stream_read(&in, &ends->from, buf, sizeof buf)), 3);
    assert_memory_equal(buf, "abc", 3);
    assert_int_equal(AWAIT(rt, blz_stream_writev(&out, &ends->to, pieces, 0)), 0);
}

ON_EACH_KIND(nothing_moves_nothing)
{
    blz_stream_op op = {0};
    char buf[1];

    assert_int_equal(AWAIT(rt, blz_stream_read(&op.io, &ends->from, buf, 0)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_write(&op.io, &ends->to, buf, 0)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_read_exact(&op, &ends->from, buf, 0)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &ends->to, buf, 0)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_writev_all(&op, &ends->to, NULL, 0)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_flush(&op.io, &ends->to)), 0);
}

ON_EACH_KIND(a_read_that_is_to_be_exact_waits_for_the_last_byte)
{
    blz_stream_op in = {0}, out = {0};
    blz_handle reading;
    char buf[6];

    START(rt, &reading, blz_stream_read_exact(&in, &ends->from, buf, 6));
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&out, &ends->to, "abc", 3)), 3);
    turn_all(rt);
    assert_false(blz_handle_done(&reading));
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&out, &ends->to, "defgh", 5)), 5);
    assert_int_equal(FINISH(rt, &reading), 6);
    assert_memory_equal(buf, "abcdef", 6);
    assert_int_equal(in.done, 6);
}

/* More than fits: partial writes, and a reader that makes room bit by bit. */
static void move_a_lot(blz_rt *rt, struct ends *ends, blz_future *write)
{
    blz_stream_op in = {0};
    blz_handle writing;

    START(rt, &writing, write);
    assert_false(blz_handle_done(&writing));
    assert_int_equal(AWAIT(rt, blz_stream_read_exact(&in, &ends->from, got.bytes, BIG)), BIG);
    assert_int_equal(FINISH(rt, &writing), BIG);
    assert_int_equal(memcmp(got.bytes, data.bytes, BIG), 0);
}

ON_EACH_KIND(a_write_of_all_goes_on_until_all_is_written)
{
    blz_stream_op out = {0};

    move_a_lot(rt, ends, blz_stream_write_all(&out, &ends->to, data.bytes, BIG));
    assert_int_equal(out.done, BIG);
}

ON_EACH_KIND(pieces_are_written_to_the_end_wherever_a_write_stops)
{
    enum { PIECES = 1500 };
    static blz_iovec pieces[PIECES];
    blz_stream_op out = {0};
    size_t at = 0;

    for (size_t i = 0; i < PIECES; i++) {
        size_t len = i + 1 < PIECES ? (i * 37) % 4300 : BIG - at;
        pieces[i] = (blz_iovec){data.bytes + at, len};
        at += len;
    }
    assert_int_equal(at, BIG);
    move_a_lot(rt, ends, blz_stream_writev_all(&out, &ends->to, pieces, PIECES));
    assert_int_equal(out.done, BIG);
}

/* ---- ends ---- */

ON_EACH_KIND(the_end_is_read_behind_the_bytes)
{
    blz_stream_op in = {0}, out = {0};
    char buf[8];

    assert_int_equal(AWAIT(rt, blz_stream_write_all(&out, &ends->to, "abc", 3)), 3);
    assert_int_equal(AWAIT(rt, blz_stream_shutdown(&out.io, &ends->to)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_read_exact(&in, &ends->from, buf, 8)), -ENODATA);
    assert_int_equal(in.done, 3);
    assert_memory_equal(buf, "abc", 3);
    assert_int_equal(AWAIT(rt, blz_stream_read(&in.io, &ends->from, buf, 8)), 0);
}

ON_EACH_KIND(after_a_shutdown_the_other_direction_goes_on)
{
    blz_stream_op in = {0}, out = {0};
    char buf[8];

    if (!is_two_way(ends))
        return;
    assert_int_equal(AWAIT(rt, blz_stream_shutdown(&out.io, &ends->to)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_write(&out.io, &ends->to, "x", 1)), -EPIPE);
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&out, &ends->from, "back", 4)), 4);
    assert_int_equal(AWAIT(rt, blz_stream_read_exact(&in, &ends->to, buf, 4)), 4);
    assert_memory_equal(buf, "back", 4);
}

ON_EACH_KIND(a_reader_that_waits_sees_the_other_side_close)
{
    blz_io in = {0};
    blz_handle reading;
    char buf[8];

    START(rt, &reading, blz_stream_read(&in, &ends->from, buf, 8));
    assert_int_equal(blz_stream_close(&ends->to), 0);
    assert_int_equal(FINISH(rt, &reading), 0);
}

ON_EACH_KIND(a_writer_that_waits_sees_the_other_side_close)
{
    blz_stream_op out = {0};
    blz_handle writing;
    int64_t rc;

    START(rt, &writing, blz_stream_write_all(&out, &ends->to, data.bytes, BIG));
    assert_false(blz_handle_done(&writing));
    assert_int_equal(blz_stream_close(&ends->from), 0);
    rc = FINISH(rt, &writing);
    assert_true(rc == -EPIPE || rc == -ECONNRESET);
    assert_true(out.done < BIG);
}

ON_EACH_KIND(closing_ends_what_is_in_flight_on_it)
{
    blz_io in = {0};
    blz_handle reading;
    blz_stream copy = ends->from;
    char buf[8];

    START(rt, &reading, blz_stream_read(&in, &ends->from, buf, 8));
    assert_int_equal(blz_stream_close(&ends->from), 0);
    assert_int_equal(FINISH(rt, &reading), -EBADF);
    assert_int_equal(AWAIT(rt, blz_stream_read(&in, &copy, buf, 8)), -EBADF);
    assert_int_equal(AWAIT(rt, blz_stream_read(&in, &ends->from, buf, 8)), -EBADF);
    assert_int_equal(blz_stream_close(&ends->from), -EBADF);
    assert_int_equal(blz_stream_close(&copy), -EBADF);
}

/* Also when both are closed, and when others have taken their place. */
ON_EACH_KIND(a_copy_of_a_closed_end_is_stale)
{
    blz_stream from = ends->from, to = ends->to;
    struct ends next;
    blz_io io = {0};
    char byte;

    assert_int_equal(blz_stream_close(&ends->from), 0);
    assert_int_equal(blz_stream_close(&(blz_stream){from.ops, from.object, from.word}), -EBADF);
    assert_int_equal(blz_stream_close(&ends->to), 0);
    for (int i = 0; i < 2; i++) {
        blz_stream copy = from;
        assert_int_equal(AWAIT(rt, blz_stream_read(&io, &from, &byte, 1)), -EBADF);
        assert_int_equal(AWAIT(rt, blz_stream_write(&io, &to, "x", 1)), -EBADF);
        assert_int_equal(AWAIT(rt, blz_stream_shutdown(&io, &to)), -EBADF);
        assert_int_equal(blz_stream_close(&copy), -EBADF);
        copy = to;
        assert_int_equal(blz_stream_close(&copy), -EBADF);
        if (i == 0)
            open_ends(&next, ends->kind, rt);
    }
    assert_int_equal(AWAIT(rt, blz_stream_write(&io, &next.to, "x", 1)), 1);
    assert_int_equal(AWAIT(rt, blz_stream_read(&io, &next.from, &byte, 1)), 1);
    close_ends(&next);
}

ON_EACH_KIND(a_second_read_is_refused)
{
    blz_io one = {0}, two = {0};
    blz_handle reading;
    char buf[8];

    START(rt, &reading, blz_stream_read(&one, &ends->from, buf, 8));
    assert_int_equal(AWAIT(rt, blz_stream_read(&two, &ends->from, buf, 8)), -EBUSY);
    assert_int_equal(CANCEL(rt, &reading), -ECANCELED);
}

/* ---- cancellation ---- */

ON_EACH_KIND(a_cancelled_read_loses_nothing)
{
    blz_stream_op in = {0}, out = {0};
    blz_handle reading;
    char buf[8];

    START(rt, &reading, blz_stream_read(&in.io, &ends->from, buf, 8));
    assert_int_equal(CANCEL(rt, &reading), -ECANCELED);
    START(rt, &reading, blz_stream_read_exact(&in, &ends->from, buf, 8));
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&out, &ends->to, "abc", 3)), 3);
    while (in.done < 3)
        blz_rt_turn(rt);
    assert_int_equal(CANCEL(rt, &reading), -ECANCELED);
    assert_int_equal(in.done, 3);
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&out, &ends->to, "def", 3)), 3);
    assert_int_equal(AWAIT(rt, blz_stream_read(&in.io, &ends->from, buf, 8)), 3);
    assert_memory_equal(buf, "def", 3);
}

ON_EACH_KIND(a_cancelled_write_says_how_far_it_came)
{
    blz_stream_op in = {0}, out = {0};
    blz_handle writing;

    START(rt, &writing, blz_stream_write_all(&out, &ends->to, data.bytes, BIG));
    assert_int_equal(CANCEL(rt, &writing), -ECANCELED);
    assert_in_range(out.done, 1, BIG - 1);
    assert_int_equal(AWAIT(rt, blz_stream_shutdown(&in.io, &ends->to)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_read_exact(&in, &ends->from, got.bytes, BIG)), -ENODATA);
    assert_int_equal(in.done, out.done);
    assert_int_equal(memcmp(got.bytes, data.bytes, out.done), 0);
}

struct tries_when_cancelled {
    BLZ_FRAME;
    blz_stream from, to;
    blz_stream_op op;
    int64_t rc;
    char buf[4];
};

BLZ_ASYNC(tries_when_cancelled)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_stream_read(&self->op.io, &self->from, self->buf, 4));
    check(self->rc == -ECANCELED);
    BLZ_AWAIT(self->rc, blz_stream_write_all(&self->op, &self->to, "late", 4));
    check(self->rc == -ECANCELED && self->op.done == 0);
    BLZ_AWAIT_SHIELDED(self->rc, blz_stream_write_all(&self->op, &self->to, "last", 4));
    check(self->rc == 4);
    BLZ_AWAIT_SHIELDED(self->rc, blz_stream_read_exact(&self->op, &self->from, self->buf, 4));
    check(self->rc == 4);
    BLZ_END(0);
}

ON_EACH_KIND(a_cancelled_task_starts_nothing_unless_it_is_shielded)
{
    blz_handle task;

    assert_int_equal(BLZ_SPAWN_ON(rt, &task, tries_when_cancelled, .from = ends->from,
                                  .to = ends->to),
                     0);
    turn_all(rt);
    assert_int_equal(CANCEL(rt, &task), 0);
}

/* ---- files ---- */

ON_EACH_BACKEND(a_file_is_a_stream_at_its_position)
{
    blz_rt *rt = turning_rt(backend);
    char path[] = "/tmp/blitz-stream-XXXXXX", buf[16];
    int fd = mkstemp(path);
    blz_stream_op op = {0};
    blz_stream stream;
    blz_file file;

    assert_true(fd >= 0);
    unlink(path);
    assert_int_equal(blz_file_from_fd(&file, fd, rt), 0);
    stream = blz_file_stream(&file);
    assert_int_equal(blz_stream_fd(&stream), fd);
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &stream, "hello ", 6)), 6);
    assert_int_equal(AWAIT(rt, blz_stream_writev_all(
                                   &op, &stream,
                                   (blz_iovec[]){{(char[]){"wor"}, 3}, {(char[]){"ld"}, 2}}, 2)),
                     5);
    assert_int_equal(AWAIT(rt, blz_stream_shutdown(&op.io, &stream)), 0);
    assert_int_equal(blz_file_seek(&file, 0, SEEK_SET), 0);
    assert_int_equal(AWAIT(rt, blz_stream_read_exact(&op, &stream, buf, 16)), -ENODATA);
    assert_int_equal(op.done, 11);
    assert_memory_equal(buf, "hello world", 11);
    assert_int_equal(blz_stream_close(&stream), 0);
    assert_int_equal(blz_file_close(&file), -EBADF);
    free_rt(rt);
}

/* ---- children ---- */

ON_EACH_BACKEND(the_pipes_of_a_child_are_a_stream)
{
    blz_rt *rt = turning_rt(backend);
    blz_command cmd;
    blz_child child;
    blz_child_await_op wait = {0};
    blz_stream_op op = {0};
    blz_both both;
    blz_stream stream;
    char buf[8];

    blz_command_init(&cmd, "cat");
    blz_command_stdio(&cmd, 0, BLZ_STDIO_PIPE);
    blz_command_stdio(&cmd, 1, BLZ_STDIO_PIPE);
    assert_int_equal(blz_command_spawn(&cmd, &child, rt), 0);
    stream = blz_both_stream(&both, blz_pipe_stream(&child.out), blz_pipe_stream(&child.in));
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &stream, "meow", 4)), 4);
    assert_int_equal(AWAIT(rt,
                           blz_stream_writev_all(&op, &stream, &(blz_iovec){(char[]){"!"}, 1}, 1)),
                     1);
    assert_int_equal(AWAIT(rt, blz_stream_flush(&op.io, &stream)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_shutdown(&op.io, &stream)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_read_exact(&op, &stream, buf, 8)), -ENODATA);
    assert_int_equal(op.done, 5);
    assert_memory_equal(buf, "meow!", 5);
    assert_int_equal(AWAIT(rt, blz_child_await(&wait, &child)), 0);
    assert_int_equal(blz_stream_close(&stream), -EBADF); /* its output has been closed by the end */
    blz_child_drop(&child);
    blz_command_free(&cmd);
    free_rt(rt);
}

/* ---- none ---- */

static void none_gives_ebadf(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_stream none = {0};
    blz_stream_op op = {0};
    char buf[1];

    (void)state;
    assert_int_equal(AWAIT(rt, blz_stream_read(&op.io, &none, buf, 1)), -EBADF);
    assert_int_equal(AWAIT(rt, blz_stream_write(&op.io, &none, buf, 1)), -EBADF);
    assert_int_equal(AWAIT(rt, blz_stream_writev(&op.io, &none, NULL, 0)), -EBADF);
    assert_int_equal(AWAIT(rt, blz_stream_flush(&op.io, &none)), -EBADF);
    assert_int_equal(AWAIT(rt, blz_stream_shutdown(&op.io, &none)), -EBADF);
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &none, buf, 1)), -EBADF);
    assert_int_equal(AWAIT(rt, blz_stream_read_exact(&op, &none, buf, 1)), -EBADF);
    assert_int_equal(blz_stream_fd(&none), -EBADF);
    assert_int_equal(blz_stream_close(&none), -EBADF);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read),
        TEST(pieces_are_written_in_order),
        TEST(nothing_moves_nothing),
        TEST(a_read_that_is_to_be_exact_waits_for_the_last_byte),
        TEST(a_write_of_all_goes_on_until_all_is_written),
        TEST(pieces_are_written_to_the_end_wherever_a_write_stops),
        TEST(the_end_is_read_behind_the_bytes),
        TEST(after_a_shutdown_the_other_direction_goes_on),
        TEST(a_reader_that_waits_sees_the_other_side_close),
        TEST(a_writer_that_waits_sees_the_other_side_close),
        TEST(closing_ends_what_is_in_flight_on_it),
        TEST(a_copy_of_a_closed_end_is_stale),
        TEST(a_second_read_is_refused),
        TEST(a_cancelled_read_loses_nothing),
        TEST(a_cancelled_write_says_how_far_it_came),
        TEST(a_cancelled_task_starts_nothing_unless_it_is_shielded),
        TEST(a_file_is_a_stream_at_its_position),
        TEST(the_pipes_of_a_child_are_a_stream),
        TEST(none_gives_ebadf),
    };
    make_data();
    return RUN_TESTS(tests);
}
