/* SPDX-License-Identifier: Apache-2.0 */
/* Copying between streams of every kind, one way and both. */
#include "stream_kinds.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { BIG = 1 << 20 };

static union {
    char bytes[BIG];
    uint64_t words[BIG / 8];
} data;

static void make_data(void)
{
    for (size_t i = 0; i < BIG / 8; i++)
        data.words[i] = i * 0x9e3779b97f4a7c15u;
}

/* ---- those at the far ends ---- */

/* Writes some of the data, and ends the stream. */
struct feeds {
    BLZ_FRAME;
    blz_stream to;
    size_t len;
    blz_stream_op op;
    int64_t rc;
};

BLZ_ASYNC(feeds)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_stream_write_all(&self->op, &self->to, data.bytes, self->len));
    if (self->rc >= 0)
        BLZ_AWAIT(self->rc, blz_stream_shutdown(&self->op.io, &self->to));
    BLZ_END(self->rc);
}

/* Writes until that fails. */
struct floods {
    BLZ_FRAME;
    blz_stream to;
    blz_stream_op op;
    int64_t rc;
};

BLZ_ASYNC(floods)
{
    BLZ_BEGIN;
    do
        BLZ_AWAIT(self->rc, blz_stream_write_all(&self->op, &self->to, data.bytes, BIG));
    while (self->rc >= 0);
    BLZ_END(self->rc);
}

/* Reads to the end, and compares: the number of bytes. */
struct drains {
    BLZ_FRAME;
    blz_stream from;
    size_t at;
    blz_io io;
    int64_t rc;
    char buf[16384];
};

BLZ_ASYNC(drains)
{
    BLZ_BEGIN;
    do {
        BLZ_AWAIT(self->rc, blz_stream_read(&self->io, &self->from, self->buf, sizeof self->buf));
        if (self->rc > 0) {
            check(self->at + (size_t)self->rc <= BIG);
            check(memcmp(self->buf, data.bytes + self->at, (size_t)self->rc) == 0);
            self->at += (size_t)self->rc;
        }
    } while (self->rc > 0);
    BLZ_END(self->rc < 0 ? self->rc : (int64_t)self->at);
}

static blz_stream temp_file(blz_rt *rt, size_t len)
{
    char path[] = "/tmp/blitz-copy-XXXXXX";
    int fd = mkstemp(path);
    blz_file file;

    check(fd >= 0);
    unlink(path);
    put(fd, data.bytes, len);
    check(lseek(fd, 0, SEEK_SET) == 0);
    check(blz_file_from_fd(&file, fd, rt) == 0);
    return blz_file_stream(&file);
}

static void check_file(const blz_stream *stream, size_t len)
{
    struct stat st;
    char *got = malloc(len + 1);
    int fd = blz_stream_fd(stream);

    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, len);
    assert_int_equal(pread(fd, got, len, 0), len);
    assert_int_equal(memcmp(got, data.bytes, len), 0);
    free(got);
}

/* ---- one way ---- */

enum { KIND_FILE = NR_KINDS, NR_ALL_KINDS };

static void copy_between(blz_rt *rt, int source, int target, size_t len,
                         const blz_copy_options *options)
{
    struct ends in = {.kind = KIND_PAIR}, out = in;
    blz_stream from, to;
    blz_handle feeding, draining;
    blz_copy_op op = {0};
    size_t expected = options && options->limit && options->limit < len ? options->limit : len;

    if (source == KIND_FILE) {
        from = temp_file(rt, len);
    } else {
        open_ends(&in, source, rt);
        from = in.from;
        assert_int_equal(BLZ_SPAWN_ON(rt, &feeding, feeds, .to = in.to, .len = len), 0);
    }
    if (target == KIND_FILE) {
        to = temp_file(rt, 0);
    } else {
        open_ends(&out, target, rt);
        to = out.to;
        assert_int_equal(BLZ_SPAWN_ON(rt, &draining, drains, .from = out.from), 0);
    }
    assert_int_equal(AWAIT(rt, blz_copy(&op, from, to, options)), expected);
    assert_int_equal(op.done, expected);
    if (target == KIND_FILE)
        check_file(&to, expected);
    blz_stream_close(&to);
    blz_stream_close(&from);
    if (source != KIND_FILE)
        assert_true(FINISH(rt, &feeding) == 0 || expected < len);
    if (target != KIND_FILE)
        assert_int_equal(FINISH(rt, &draining), expected);
    if (source != KIND_FILE)
        blz_stream_close(&in.to);
    if (target != KIND_FILE)
        blz_stream_close(&out.from);
}

static void copy_all_kinds(const char *backend, size_t len, const blz_copy_options *options)
{
    blz_rt *rt = turning_rt(backend);

    for (int source = 0; source < NR_ALL_KINDS; source++)
        for (int target = 0; target < NR_ALL_KINDS; target++)
            copy_between(rt, source, target, len, options);
    free_rt(rt);
}

ON_EACH_BACKEND(every_kind_is_copied_to_every_kind)
{
    copy_all_kinds(backend, BIG, NULL);
}

ON_EACH_BACKEND(the_same_goes_through_a_buffer)
{
    copy_all_kinds(backend, BIG, &(blz_copy_options){.plain = true});
}

ON_EACH_BACKEND(a_few_bytes_are_copied_too_and_none)
{
    copy_all_kinds(backend, 5, NULL);
    copy_all_kinds(backend, 0, NULL);
}

ON_EACH_BACKEND(a_limit_ends_it)
{
    copy_all_kinds(backend, BIG, &(blz_copy_options){.limit = 765432});
    copy_all_kinds(backend, 1000, &(blz_copy_options){.limit = 1000});
    copy_all_kinds(backend, 1000, &(blz_copy_options){.limit = 999, .plain = true});
}

/* What is behind the limit is still there. */
ON_EACH_KIND(a_limit_takes_no_byte_too_many)
{
    blz_copy_op op = {0};
    blz_stream_op io = {0};
    blz_stream a, b;
    char buf[16];

    assert_int_equal(blz_stream_pair(&a, &b, 64, test_memory()), 0);
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&io, &ends->to, "headerbody", 10)), 10);
    assert_int_equal(AWAIT(rt, blz_copy(&op, ends->from, a, &(blz_copy_options){.limit = 6})), 6);
    assert_int_equal(AWAIT(rt, blz_stream_read(&io.io, &ends->from, buf, 16)), 4);
    assert_memory_equal(buf, "body", 4);
    blz_stream_close(&a);
    blz_stream_close(&b);
}

/* A stream that is written bit by bit, with silence in between. */
ON_EACH_KIND(bytes_are_passed_on_as_they_come)
{
    struct ends out;
    blz_copy_op op = {0};
    blz_stream_op io = {0};
    blz_handle copying;
    char buf[8];

    open_ends(&out, ends->kind, rt);
    START(rt, &copying, blz_copy(&op, ends->from, out.to, NULL));
    for (int i = 0; i < 5; i++) {
        assert_int_equal(AWAIT(rt, blz_stream_write_all(&io, &ends->to, "ping", 4)), 4);
        assert_int_equal(AWAIT(rt, blz_stream_read_exact(&io, &out.from, buf, 4)), 4);
        assert_memory_equal(buf, "ping", 4);
        assert_false(blz_handle_done(&copying));
    }
    assert_int_equal(AWAIT(rt, blz_stream_shutdown(&io.io, &ends->to)), 0);
    assert_int_equal(FINISH(rt, &copying), 20);
    close_ends(&out);
}

ON_EACH_KIND(a_reader_that_goes_away_is_an_error_and_no_signal)
{
    struct ends out;
    blz_copy_op op = {0};
    blz_handle copying, feeding;
    int64_t rc;

    open_ends(&out, ends->kind, rt);
    assert_int_equal(BLZ_SPAWN_ON(rt, &feeding, floods, .to = ends->to), 0);
    START(rt, &copying, blz_copy(&op, ends->from, out.to, NULL));
    blz_stream_close(&out.from);
    rc = FINISH(rt, &copying);
    assert_true(rc == -EPIPE || rc == -ECONNRESET);
    blz_stream_close(&ends->from);
    FINISH(rt, &feeding);
    close_ends(&out);
}

ON_EACH_KIND(a_copy_is_cancelled_wherever_it_waits)
{
    struct ends out;
    blz_copy_op op = {0};
    blz_handle copying, feeding;

    open_ends(&out, ends->kind, rt);
    START(rt, &copying, blz_copy(&op, ends->from, out.to, NULL)); /* for bytes */
    assert_int_equal(CANCEL(rt, &copying), -ECANCELED);
    assert_int_equal(op.done, 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &feeding, floods, .to = ends->to), 0);
    START(rt, &copying, blz_copy(&op, ends->from, out.to, NULL)); /* for room, in the end */
    assert_int_equal(CANCEL(rt, &copying), -ECANCELED);
    assert_true(op.done > 0);
    blz_stream_close(&ends->from);
    FINISH(rt, &feeding);
    close_ends(&out);
}

/* ---- both ways ---- */

struct relay {
    struct ends left, right; /* the copy is between left.from and right.to */
    blz_copy_both_op op;
    blz_handle copying;
};

static void start_relay(struct relay *relay, blz_rt *rt, enum kind kind,
                        const blz_copy_options *options)
{
    memset(relay, 0, sizeof *relay);
    open_ends(&relay->left, kind, rt);
    open_ends(&relay->right, kind, rt);
    START(rt, &relay->copying,
          blz_copy_both(&relay->op, relay->left.from, relay->right.to, options));
}

static void end_relay(struct relay *relay)
{
    close_ends(&relay->left);
    close_ends(&relay->right);
}

#define ON_EACH_RELAY(name)                                                           \
    static void name##_with(blz_rt *rt, enum kind kind, const blz_copy_options *how); \
    ON_EACH_BACKEND(name)                                                             \
    {                                                                                 \
        static const enum kind kinds[] = {KIND_TCP, KIND_UNIX, KIND_PAIR};            \
        for (int i = 0; i < 6; i++) {                                                 \
            blz_rt *rt = turning_rt(backend);                                         \
            name##_with(rt, kinds[i / 2], &(blz_copy_options){.plain = i % 2});       \
            free_rt(rt);                                                              \
        }                                                                             \
    }                                                                                 \
    static void name##_with(blz_rt *rt, enum kind kind, const blz_copy_options *how)

ON_EACH_RELAY(much_is_copied_both_ways_at_once)
{
    struct relay relay;
    blz_handle tasks[4];

    start_relay(&relay, rt, kind, how);
    assert_int_equal(BLZ_SPAWN_ON(rt, &tasks[0], feeds, .to = relay.left.to, .len = BIG), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &tasks[1], feeds, .to = relay.right.from, .len = BIG - 9), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &tasks[2], drains, .from = relay.right.from), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &tasks[3], drains, .from = relay.left.to), 0);
    assert_int_equal(FINISH(rt, &relay.copying), 0);
    assert_int_equal(FINISH(rt, &tasks[0]), 0);
    assert_int_equal(FINISH(rt, &tasks[1]), 0);
    assert_int_equal(FINISH(rt, &tasks[2]), BIG);
    assert_int_equal(FINISH(rt, &tasks[3]), BIG - 9);
    assert_int_equal(relay.op.a_to_b, BIG);
    assert_int_equal(relay.op.b_to_a, BIG - 9);
    end_relay(&relay);
}

ON_EACH_RELAY(the_end_of_one_direction_leaves_the_other_open)
{
    struct relay relay;
    blz_stream_op op = {0};
    char buf[8];

    start_relay(&relay, rt, kind, how);
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &relay.left.to, "request", 7)), 7);
    assert_int_equal(AWAIT(rt, blz_stream_shutdown(&op.io, &relay.left.to)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_read_exact(&op, &relay.right.from, buf, 8)), -ENODATA);
    assert_memory_equal(buf, "request", 7);
    assert_false(blz_handle_done(&relay.copying));
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &relay.right.from, "answer", 6)), 6);
    assert_int_equal(AWAIT(rt, blz_stream_read_exact(&op, &relay.left.to, buf, 6)), 6);
    assert_memory_equal(buf, "answer", 6);
    assert_int_equal(AWAIT(rt, blz_stream_shutdown(&op.io, &relay.right.from)), 0);
    assert_int_equal(FINISH(rt, &relay.copying), 0);
    assert_int_equal(relay.op.a_to_b, 7);
    assert_int_equal(relay.op.b_to_a, 6);
    end_relay(&relay);
}

/* One side goes while the other still sends: the direction that waits is ended as well. */
ON_EACH_RELAY(an_error_ends_both_directions)
{
    struct relay relay;
    blz_handle feeding;
    int64_t rc;

    start_relay(&relay, rt, kind, how);
    assert_int_equal(BLZ_SPAWN_ON(rt, &feeding, floods, .to = relay.left.to), 0);
    turn_all(rt);
    blz_stream_close(&relay.right.from);
    rc = FINISH(rt, &relay.copying);
    assert_true(rc == -EPIPE || rc == -ECONNRESET);
    blz_stream_close(&relay.left.from);
    FINISH(rt, &feeding);
    end_relay(&relay);
}

ON_EACH_RELAY(a_relay_is_cancelled_at_rest_and_at_work)
{
    struct relay relay;
    blz_handle feeding;

    start_relay(&relay, rt, kind, how);
    assert_int_equal(CANCEL(rt, &relay.copying), -ECANCELED);
    end_relay(&relay);
    start_relay(&relay, rt, kind, how);
    assert_int_equal(BLZ_SPAWN_ON(rt, &feeding, floods, .to = relay.left.to), 0);
    while (relay.op.a_to_b == 0) /* the test's own thread is the worker */
        blz_rt_turn(rt);
    assert_int_equal(CANCEL(rt, &relay.copying), -ECANCELED);
    blz_stream_close(&relay.left.from);
    FINISH(rt, &feeding);
    end_relay(&relay);
}

/* ---- silence ---- */

/* Says something every 40 s, five times. */
struct talker {
    BLZ_FRAME;
    blz_stream to;
    blz_stream_op io;
    blz_sleep_op sleep;
    int64_t rc;
    int i;
};

BLZ_ASYNC(talker)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < 5; self->i++) {
        BLZ_AWAIT(self->rc, blz_sleep(&self->sleep, 40 * BLZ_SEC));
        BLZ_AWAIT(self->rc, blz_stream_write_all(&self->io, &self->to, "x", 1));
    }
    BLZ_END(self->rc);
}

struct idles {
    BLZ_FRAME;
    blz_stream a, b, far;
    blz_copy_both_op op;
    int64_t rc, begin_ns;
};

BLZ_ASYNC(idles)
{
    BLZ_BEGIN;
    check(BLZ_SPAWN(talker, .to = self->far) == 0);
    self->begin_ns = blz_now();
    BLZ_AWAIT(self->rc, blz_copy_both(&self->op, self->a, self->b,
                                      &(blz_copy_options){.idle_ns = 60 * BLZ_SEC}));
    check(self->rc == -ETIMEDOUT);
    check(self->op.a_to_b == 5);
    check(blz_now() - self->begin_ns >= 260 * BLZ_SEC);
    check(blz_now() - self->begin_ns < 261 * BLZ_SEC);
    BLZ_END(0);
}

static void silence_ends_it_and_a_byte_now_and_then_does_not(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .test_clock = true});
    blz_stream ends[4];

    (void)state;
    assert_int_equal(blz_stream_pair(&ends[0], &ends[1], 0, test_memory()), 0);
    assert_int_equal(blz_stream_pair(&ends[2], &ends[3], 0, test_memory()), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, idles, .far = ends[0], .a = ends[1], .b = ends[2]), 0);
    for (int i = 0; i < 4; i++)
        blz_stream_close(&ends[i]);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kind_is_copied_to_every_kind),
        TEST(the_same_goes_through_a_buffer),
        TEST(a_few_bytes_are_copied_too_and_none),
        TEST(a_limit_ends_it),
        TEST(a_limit_takes_no_byte_too_many),
        TEST(bytes_are_passed_on_as_they_come),
        TEST(a_reader_that_goes_away_is_an_error_and_no_signal),
        TEST(a_copy_is_cancelled_wherever_it_waits),
        TEST(much_is_copied_both_ways_at_once),
        TEST(the_end_of_one_direction_leaves_the_other_open),
        TEST(an_error_ends_both_directions),
        TEST(a_relay_is_cancelled_at_rest_and_at_work),
        TEST(silence_ends_it_and_a_byte_now_and_then_does_not),
    };
    make_data();
    return RUN_TESTS(tests);
}
