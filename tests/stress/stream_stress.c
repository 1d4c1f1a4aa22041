/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams under storms of cancellations, on two workers. Pipes in memory: reads and writes under
 * limits that are often too short, and every byte arrives once and in order by the account of those
 * who moved it. Copies both ways: relays that are cancelled at any moment, or whose ends are closed
 * under them; what arrives is a beginning of what was sent, and nothing is left behind. The harness
 * counts memory, descriptors and threads.
 */
#include "io_fixture.h"

#include <errno.h>
#include <string.h>

enum { PAIRS = 8, PIECE = 700 };

static int64_t short_while(uint64_t *seed)
{
    return random_below(seed, 3) == 0 ? 10 * BLZ_SEC : random_below(seed, 100) * BLZ_USEC;
}

static char byte_at(uint64_t at)
{
    return (char)(at * 7 + (at >> 8));
}

/* ---- pipes in memory ---- */

struct sends {
    BLZ_FRAME;
    blz_stream to;
    uint64_t total, at, seed;
    blz_stream_op op;
    blz_timeout limit;
    int64_t rc;
    char buf[PIECE];
};

static size_t prepare(struct sends *s)
{
    size_t len = 1 + random_below(&s->seed, PIECE);

    if (len > s->total - s->at)
        len = (size_t)(s->total - s->at);
    for (size_t i = 0; i < len; i++)
        s->buf[i] = byte_at(s->at + i);
    return len;
}

BLZ_ASYNC(sends)
{
    BLZ_BEGIN;
    while (self->at < self->total) {
        BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, short_while(&self->seed),
                                             blz_stream_write_all(&self->op, &self->to, self->buf,
                                                                  prepare(self))));
        check(self->rc >= 0 || self->rc == -ETIMEDOUT);
        self->at += self->op.done;
    }
    BLZ_AWAIT(self->rc, blz_stream_shutdown(&self->op.io, &self->to));
    BLZ_END(self->rc);
}

struct receives {
    BLZ_FRAME;
    blz_stream from;
    uint64_t at, seed;
    blz_stream_op op;
    blz_timeout limit;
    int64_t rc;
    char buf[PIECE];
};

BLZ_ASYNC(receives)
{
    BLZ_BEGIN;
    do {
        BLZ_AWAIT(self->rc,
                  blz_with_timeout(&self->limit, short_while(&self->seed),
                                   blz_stream_read_exact(&self->op, &self->from, self->buf,
                                                         1 + random_below(&self->seed, PIECE))));
        check(self->rc >= 0 || self->rc == -ETIMEDOUT || self->rc == -ENODATA);
        for (size_t i = 0; i < self->op.done; i++)
            check(self->buf[i] == byte_at(self->at + i));
        self->at += self->op.done;
    } while (self->rc != -ENODATA);
    BLZ_END((int64_t)self->at);
}

static void pipes_in_memory_lose_and_repeat_nothing(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_handle senders[2 * PAIRS], receivers[2 * PAIRS];
    blz_stream ends[2 * PAIRS];
    uint64_t total = (uint64_t)scaled(60000);

    (void)state;
    for (int i = 0; i < PAIRS; i++)
        assert_int_equal(blz_stream_pair(&ends[2 * i], &ends[2 * i + 1], 1 + (size_t)i * i * 40,
                                         test_memory()),
                         0);
    for (int i = 0; i < 2 * PAIRS; i++) {
        uint64_t seed = (uint64_t)i + 1;
        assert_int_equal(BLZ_SPAWN_ON(rt, &senders[i], sends, .to = ends[i], .seed = seed,
                                      .total = i < 2 ? total / 20 : total),
                         0);
        assert_int_equal(BLZ_SPAWN_ON(rt, &receivers[i], receives, .from = ends[i],
                                      .seed = seed + 100),
                         0);
    }
    for (int i = 0; i < 2 * PAIRS; i++) {
        assert_int_equal(blz_handle_wait(&senders[i]), 0);
        assert_int_equal(senders[i].result, 0);
        assert_int_equal(blz_handle_wait(&receivers[i]), 0);
        assert_int_equal(receivers[i].result, i < 2 ? total / 20 : total);
    }
    for (int i = 0; i < 2 * PAIRS; i++)
        blz_stream_close(&ends[i]);
    free_rt(rt);
}

/* ---- ends that are closed under those who use them ---- */

struct hammers {
    BLZ_FRAME;
    blz_stream stream;
    bool writes;
    blz_io io;
    int64_t rc;
    char buf[300];
};

BLZ_ASYNC(hammers)
{
    BLZ_BEGIN;
    do
        BLZ_AWAIT(self->rc, self->writes
                                ? blz_stream_write(&self->io, &self->stream, self->buf, 300)
                                : blz_stream_read(&self->io, &self->stream, self->buf, 300));
    while (self->rc > 0);
    check(self->rc == 0 || self->rc == -EPIPE || self->rc == -EBADF || self->rc == -ECANCELED);
    blz_stream_close(&self->stream);
    BLZ_END(0);
}

/* Each end is used by one task, which closes it in the end; the last one frees the memory. */
static void ends_are_closed_at_any_moment(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    uint64_t seed = 5;

    (void)state;
    for (int64_t i = scaled(1500); i > 0; i--) {
        blz_stream a, b;
        blz_handle tasks[2];
        assert_int_equal(blz_stream_pair(&a, &b, 100, test_memory()), 0);
        assert_int_equal(BLZ_SPAWN_ON(rt, &tasks[0], hammers, .stream = a, .writes = true), 0);
        assert_int_equal(BLZ_SPAWN_ON(rt, &tasks[1], hammers, .stream = b), 0);
        blz_handle_cancel(&tasks[random_below(&seed, 2)]);
        assert_int_equal(blz_handle_wait(&tasks[0]), 0);
        assert_int_equal(blz_handle_wait(&tasks[1]), 0);
    }
    free_rt(rt);
}

/* ---- copies ---- */

struct relays {
    BLZ_FRAME;
    blz_stream a, b;
    int64_t limit_ns;
    blz_copy_both_op op;
    blz_timeout limit;
    int64_t rc;
};

BLZ_ASYNC(relays)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc,
              blz_with_timeout(&self->limit, self->limit_ns,
                               blz_copy_both(&self->op, self->a, self->b,
                                             &(blz_copy_options){.idle_ns = 20 * BLZ_SEC})));
    check(self->rc == 0 || self->rc == -ETIMEDOUT || self->rc == -EPIPE || self->rc == -ECONNRESET);
    blz_stream_close(&self->a);
    blz_stream_close(&self->b);
    BLZ_END(self->rc);
}

/* Writes until all is written or it fails; then ends the stream. */
struct pours {
    BLZ_FRAME;
    blz_stream to;
    uint64_t total, at;
    blz_stream_op op;
    int64_t rc;
    char buf[16384];
};

static void fill_in(struct pours *s)
{
    for (size_t i = 0; i < sizeof s->buf; i++)
        s->buf[i] = byte_at(s->at + i);
}

BLZ_ASYNC(pours)
{
    BLZ_BEGIN;
    self->rc = 0;
    while (self->at < self->total && self->rc >= 0) {
        fill_in(self);
        BLZ_AWAIT(self->rc,
                  blz_stream_write_all(&self->op, &self->to, self->buf, sizeof self->buf));
        self->at += self->op.done;
    }
    if (self->rc >= 0)
        BLZ_AWAIT(self->rc, blz_stream_shutdown(&self->op.io, &self->to));
    BLZ_END((int64_t)self->at);
}

struct drinks {
    BLZ_FRAME;
    blz_stream from;
    uint64_t at;
    blz_io io;
    int64_t rc;
    char buf[16384];
};

BLZ_ASYNC(drinks)
{
    BLZ_BEGIN;
    do {
        BLZ_AWAIT(self->rc, blz_stream_read(&self->io, &self->from, self->buf, sizeof self->buf));
        for (int64_t i = 0; i < self->rc; i++)
            check(self->buf[i] == byte_at(self->at + (uint64_t)i));
        self->at += self->rc > 0 ? (uint64_t)self->rc : 0;
    } while (self->rc > 0);
    BLZ_END((int64_t)self->at);
}

/* left: far end 0, relay end 1; right: relay end 2, far end 3. */
static void open_relay(blz_rt *rt, blz_stream ends[4], int kind)
{
    for (int i = 0; i < 4; i += 2) {
        int fds[2];
        blz_tcp tcp[2];
        if (kind == 0) {
            check(blz_stream_pair(&ends[i], &ends[i + 1], 5000, test_memory()) == 0);
            continue;
        }
        tcp_socketpair(fds);
        check(blz_tcp_from_fd(&tcp[0], fds[0], rt) == 0 &&
              blz_tcp_from_fd(&tcp[1], fds[1], rt) == 0);
        ends[i] = blz_tcp_stream(&tcp[0]);
        ends[i + 1] = blz_tcp_stream(&tcp[1]);
    }
}

static void relay_once(blz_rt *rt, int kind, uint64_t total, int64_t limit_ns)
{
    blz_stream ends[4];
    blz_handle tasks[5];

    open_relay(rt, ends, kind);
    assert_int_equal(BLZ_SPAWN_ON(rt, &tasks[0], relays, .a = ends[1], .b = ends[2],
                                  .limit_ns = limit_ns),
                     0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(BLZ_SPAWN_ON(rt, &tasks[1 + i], pours, .to = ends[3 * i], .total = total),
                         0);
        assert_int_equal(BLZ_SPAWN_ON(rt, &tasks[3 + i], drinks, .from = ends[3 - 3 * i]), 0);
    }
    for (int i = 0; i < 5; i++)
        assert_int_equal(blz_handle_wait(&tasks[i]), 0);
    for (int i = 0; i < 2; i++) {
        assert_true(tasks[3 + i].result <= tasks[1 + i].result);
        if (tasks[0].result == 0)
            assert_int_equal(tasks[3 + i].result, tasks[1 + i].result);
    }
    blz_stream_close(&ends[0]);
    blz_stream_close(&ends[3]);
}

static void relays_are_cancelled_at_any_moment_on(blz_rt *rt)
{
    uint64_t seed = 11;

    for (int64_t i = scaled(40); i > 0; i--)
        relay_once(rt, i % 2, 1 << 18, random_below(&seed, 800) * BLZ_USEC);
    relay_once(rt, 0, 1 << 20, 100 * BLZ_SEC);
    relay_once(rt, 1, 4 << 20, 100 * BLZ_SEC);
}

static void relays_are_cancelled_at_any_moment(void **state)
{
    (void)state;
    on_every_backend_of(2, relays_are_cancelled_at_any_moment_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pipes_in_memory_lose_and_repeat_nothing),
        TEST(ends_are_closed_at_any_moment),
        TEST(relays_are_cancelled_at_any_moment),
    };
    return RUN_TESTS(tests);
}
