/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on foreign descriptors until one does not block; waits that race on several workers. */
#include "fd_waits.h"

/* ---- calls until one does not block ---- */

struct reads {
    BLZ_FRAME;
    blz_fd fd;
    int number;
    int calls;
    char buf[16];
    int64_t rc;
    blz_fd_op op;
};

static int64_t try_read(void *arg)
{
    struct reads *self = arg;
    ssize_t n = read(self->number, self->buf, sizeof self->buf);

    self->calls++;
    return n < 0 ? -errno : n;
}

BLZ_ASYNC(reads)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_fd_io(&self->op, &self->fd, BLZ_FD_READ, try_read, self));
    BLZ_END(self->rc < 0 ? self->rc : self->calls * 100 + self->rc);
}

static void read_by_calls(blz_rt *rt)
{
    blz_fd handle, stale;
    blz_handle task;
    int fds[2];

    make_pipe(fds);
    handle = stale = attach(rt, fds[0]);
    put(fds[1]);
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, reads, .fd = handle, .number = fds[0]), 0);
    assert_int_equal(result_of(rt, &task), 101);
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, reads, .fd = handle, .number = fds[0]), 0);
    assert_waits(rt, &task);
    put(fds[1]);
    assert_int_equal(result_of(rt, &task), 201);

    assert_int_equal(BLZ_SPAWN_ON(rt, &task, reads, .fd = handle, .number = fds[0]), 0);
    assert_waits(rt, &task);
    blz_handle_cancel(&task);
    assert_int_equal(result_of(rt, &task), -ECANCELED);

    assert_int_equal(BLZ_SPAWN_ON(rt, &task, reads, .fd = handle, .number = fds[0]), 0);
    assert_waits(rt, &task);
    assert_int_equal(blz_fd_detach(&handle), 0);
    assert_int_equal(result_of(rt, &task), -EBADF);
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, reads, .fd = stale, .number = fds[0]), 0);
    assert_int_equal(result_of(rt, &task), -EBADF);

    handle = attach(rt, fds[0]);
    close(fds[1]);
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, reads, .fd = handle, .number = fds[0]), 0);
    assert_int_equal(result_of(rt, &task), 100); /* the end */
    assert_int_equal(blz_fd_detach(&handle), 0);
    close(fds[0]);
}
ON_ALL(a_call_is_repeated_until_it_does_not_block, read_by_calls)

/* A function that says -EAGAIN although there is something: others have their turn all the same. */
static int64_t never_satisfied(void *arg)
{
    int *left = arg;
    return (*left)-- > 0 ? -EAGAIN : 0;
}

struct insists {
    BLZ_FRAME;
    blz_fd fd;
    int left;
    int64_t rc;
    blz_fd_op op;
};

BLZ_ASYNC(insists)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_fd_io(&self->op, &self->fd, BLZ_FD_READ, never_satisfied, &self->left));
    BLZ_END(self->rc);
}

static void call_often(blz_rt *rt)
{
    blz_fd handle;
    blz_handle task;
    blz_stats stats;
    int fds[2];

    make_pipe(fds);
    put(fds[1]);
    handle = attach(rt, fds[0]);
    assert_int_equal(BLZ_SPAWN_ON(rt, &task, insists, .fd = handle, .left = 1000), 0);
    assert_int_equal(result_of(rt, &task), 0);
    blz_rt_stats(rt, &stats);
    assert_true(stats.total.polls > 5);
    assert_int_equal(blz_fd_detach(&handle), 0);
    close_both(fds);
}
ON_ALL(repeated_calls_let_others_run, call_often)

/* ---- several workers ---- */

enum { NR_STORM = 64 };

/* Waits for its pipe, again and again, with limits that pass now and then. */
struct storm {
    BLZ_FRAME;
    blz_fd fd;
    int number, rounds;
    uint64_t seed;
    int64_t rc;
    blz_io io;
    blz_timeout limit;
};

BLZ_ASYNC(storm)
{
    BLZ_BEGIN;
    while (self->rounds > 0) {
        BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, random_below(&self->seed, 3) * BLZ_MSEC,
                                             blz_fd_readable(&self->io, &self->fd)));
        if (self->rc == -ECANCELED || self->rc == -EBADF)
            break; /* detached */
        check(self->rc == -ETIMEDOUT || self->rc == BLZ_FD_READ);
        char byte;
        if (self->rc == BLZ_FD_READ && read(self->number, &byte, 1) == 1)
            self->rounds--;
    }
    BLZ_END(0);
}

static void storm_on(const char *backend)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 4, .backend = backend});
    blz_handle tasks[NR_STORM][3];
    blz_fd handles[NR_STORM];
    int fds[NR_STORM][2], own[NR_STORM], rounds = (int)scaled(200);

    for (int i = 0; i < NR_STORM; i++) {
        make_pipe(fds[i]);
        handles[i] = attach(rt, fds[i][0]);
        own[i] = dup(fds[i][0]); /* what the tasks read from, until they end */
        for (int j = 0; j < 3; j++)
            check(BLZ_SPAWN_ON(rt, &tasks[i][j], storm, .fd = handles[i], .number = own[i],
                               .rounds = rounds, .seed = (uint64_t)(3 * i + j)) == 0);
    }
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < NR_STORM; i++)
            check(write(fds[i][1], "xy", 2) == 2);
    for (int i = 0; i < NR_STORM; i++) {
        check(blz_fd_detach(&handles[i]) == 0); /* from a thread that is no worker */
        close(fds[i][0]);
    }
    for (int i = 0; i < NR_STORM; i++) {
        for (int j = 0; j < 3; j++)
            check(blz_handle_wait(&tasks[i][j]) == 0 && tasks[i][j].result == 0);
        close(own[i]);
        close(fds[i][1]);
    }
    free_rt(rt);
}

static void waits_cancels_and_detaches_may_race(void **state)
{
    (void)state;
    allow_seconds(120);
    for (int i = 0; i < NR_BACKENDS; i++)
        storm_on(backends[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_call_is_repeated_until_it_does_not_block),
        TEST(repeated_calls_let_others_run),
        TEST(waits_cancels_and_detaches_may_race),
    };
    return RUN_TESTS(tests);
}
