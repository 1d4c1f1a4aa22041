/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shutdowns in the middle of everything: tasks of two runtimes and plain threads enter and leave
 * all the time, some shielded, signals and calls begin the shutdown and hurry it. When it says that
 * all is done nobody is inside, and nobody gets in any more.
 */
#include "harness.h"

#include <signal.h>

enum { TASKS = 12, THREADS = 2 };

struct round {
    blz_shutdown *shutdown;
    struct event go;
    int64_t inside; /* atomic: by our own count */
    bool ended;     /* atomic: the shutdown says so */
};

/* It must be counted: nobody is inside after the end. */
static void be_inside(struct round *r)
{
    __atomic_fetch_add(&r->inside, 1, __ATOMIC_SEQ_CST);
    check(!__atomic_load_n(&r->ended, __ATOMIC_SEQ_CST));
}

static void be_outside(struct round *r)
{
    check(!__atomic_load_n(&r->ended, __ATOMIC_SEQ_CST));
    __atomic_fetch_sub(&r->inside, 1, __ATOMIC_SEQ_CST);
}

/* ---- work ---- */

struct piece {
    BLZ_FRAME;
    struct round *round;
    int steps;
    bool shielded, endless; /* endless: until it is cancelled */
    int64_t rc;
    blz_future yield;
    blz_future never;
};

BLZ_ASYNC(piece)
{
    BLZ_BEGIN;
    be_inside(self->round);
    for (self->rc = 0; self->rc == 0 && self->steps > 0; self->steps--) {
        if (self->shielded)
            BLZ_AWAIT_SHIELDED(self->rc, blz_yield(&self->yield));
        else
            BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    }
    if (self->endless)
        BLZ_AWAIT(self->rc, blz_pending(&self->never));
    be_outside(self->round);
    BLZ_END(self->rc);
}

struct worker {
    BLZ_FRAME;
    struct round *round;
    uint64_t seed;
    blz_guard guard, more;
    int64_t rc;
    struct piece piece;
    blz_guard_op op;
};

BLZ_ASYNC(worker)
{
    BLZ_BEGIN;
    while (blz_guard_work(&self->guard, self->round->shutdown) == 0) {
        check(blz_guard_clone(&self->more, &self->guard) == 0);
        BLZ_AWAIT(self->rc, blz_guard_run(&self->op, &self->guard,
                                          BLZ_FUTURE(self->piece, piece, .round = self->round,
                                                     .steps = (int)random_below(&self->seed, 5),
                                                     .endless = random_below(&self->seed, 8) == 0,
                                                     .shielded = random_below(&self->seed, 2))));
        check(self->rc == 0 || self->rc == -ECANCELED);
        blz_guard_leave(&self->more);
    }
    BLZ_END(0);
}

static void *work_on_a_thread(void *arg)
{
    struct round *r = arg;
    blz_guard guard;

    event_wait(&r->go, 1);
    while (blz_guard_work(&guard, r->shutdown) == 0) {
        be_inside(r);
        be_outside(r);
        blz_guard_leave(&guard);
    }
    return NULL;
}

/* ---- rounds ---- */

struct runs {
    BLZ_FRAME;
    struct round *round;
    int64_t rc;
    blz_shutdown_op op;
};

BLZ_ASYNC(runs)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_shutdown_run(&self->op, self->round->shutdown));
    __atomic_store_n(&self->round->ended, true, __ATOMIC_SEQ_CST);
    check(__atomic_load_n(&self->round->inside, __ATOMIC_SEQ_CST) == 0);
    BLZ_END(self->rc);
}

static void one_round(blz_rt *rts[2], uint64_t *seed)
{
    struct round r = {.go = EVENT_INIT};
    blz_shutdown_options options = {.signals = {SIGUSR1},
                                    .drain_ns = BLZ_NEVER,
                                    .cancel_ns = BLZ_NEVER,
                                    .stop_ns = BLZ_NEVER,
                                    .force_ns = BLZ_NEVER,
                                    .allocator = test_memory()};
    blz_handle run, workers[TASKS];
    pthread_t threads[THREADS];

    check(blz_shutdown_new(&r.shutdown, &options) == 0);
    check(BLZ_SPAWN_ON(rts[0], &run, runs, .round = &r) == 0);
    for (int i = 0; i < TASKS; i++)
        check(BLZ_SPAWN_ON(rts[i % 2], &workers[i], worker, .round = &r,
                           .seed = *seed + (unsigned)i) == 0);
    for (int i = 0; i < THREADS; i++)
        threads[i] = start_thread(work_on_a_thread, &r);
    event_post(&r.go);
    if (random_below(seed, 2))
        raise(SIGUSR1);
    else
        blz_shutdown_begin(r.shutdown);
    /* Those who never end are waited for until somebody is in a hurry. */
    check(blz_token_wait(blz_shutdown_token(r.shutdown, BLZ_SHUTDOWN_DRAINING)) == 0);
    if (random_below(seed, 2))
        raise(SIGUSR1); /* within a second of the first one it counts for nothing */
    blz_shutdown_hurry(r.shutdown);
    check(blz_handle_wait(&run) == 0);
    check(run.result == 0);
    for (int i = 0; i < TASKS; i++)
        check(blz_handle_wait(&workers[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        join_thread(threads[i]);
    blz_shutdown_free(r.shutdown);
}

static void nobody_is_inside_when_it_is_over(void **state)
{
    blz_rt *rts[2] = {new_rt(&(blz_options){.workers = 2}), new_rt(&(blz_options){.workers = 1})};
    uint64_t seed = 1;

    (void)state;
    for (int64_t i = scaled(150); i > 0; i--)
        one_round(rts, &seed);
    free_rt(rts[0]);
    free_rt(rts[1]);
}

/* ---- letting go ---- */

static void *leave_late(void *arg)
{
    blz_guard_leave(arg);
    return NULL;
}

/* Who leaves last frees it: the owner or one of those inside. */
static void it_is_freed_by_the_last_of_all(void **state)
{
    (void)state;
    for (int64_t i = scaled(300); i > 0; i--) {
        blz_shutdown_options options = {.no_signals = true, .allocator = test_memory()};
        blz_guard guards[THREADS];
        pthread_t threads[THREADS];
        blz_shutdown *s;

        assert_int_equal(blz_shutdown_new(&s, &options), 0);
        for (int k = 0; k < THREADS; k++) {
            assert_int_equal(blz_guard_work(&guards[k], s), 0);
            threads[k] = start_thread(leave_late, &guards[k]);
        }
        blz_shutdown_free(s);
        for (int k = 0; k < THREADS; k++)
            join_thread(threads[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nobody_is_inside_when_it_is_over),
        TEST(it_is_freed_by_the_last_of_all),
    };
    return RUN_TESTS(tests);
}
