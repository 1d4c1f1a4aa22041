/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers on several workers at once: sleeps that are cancelled from other workers and threads at
 * the moment at which they fire, timers in memory that is freed as soon as a cancel returns,
 * deadlines that threads move about, and sleepers that must never be missed. What is reused too
 * early, AddressSanitizer sees; what is lost hangs.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#define MS BLZ_MSEC

/* ---- sleeps that are cancelled while they fire ---- */

enum { SLEEPERS = 200 };

struct sleeper {
    BLZ_FRAME;
    uint64_t seed;
    int64_t rounds, i;
    int64_t until, rc;
    blz_sleep_op *op; /* on the heap, gone at once when it is over */
    blz_future yield;
};

static void take_op(struct sleeper *self)
{
    self->op = calloc(1, sizeof *self->op);
    check(self->op);
}

static void leave_op(struct sleeper *self)
{
    memset(self->op, 0x5a, sizeof *self->op);
    free(self->op);
    self->op = NULL;
}

BLZ_ASYNC(sleeper)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < self->rounds; self->i++) {
        take_op(self);
        self->until = blz_deadline(random_below(&self->seed, 3000) * BLZ_USEC);
        BLZ_AWAIT(self->rc, blz_sleep_until(self->op, self->until));
        check(self->rc == -ECANCELED || (self->rc == 0 && blz_now() >= self->until));
        leave_op(self);
        if (self->rc < 0)
            break;
        BLZ_AWAIT(self->rc, blz_yield(&self->yield)); /* it may go to another worker */
    }
    BLZ_END(self->rc);
}

/* Tasks that keep the others moving from worker to worker. */
struct churn {
    BLZ_FRAME;
    uint32_t *stop;
    int64_t rc;
    blz_future yield;
};

BLZ_ASYNC(churn)
{
    BLZ_BEGIN;
    while (!__atomic_load_n(self->stop, __ATOMIC_RELAXED)) {
        BLZ_AWAIT(self->rc, blz_yield(&self->yield));
        if (self->rc < 0)
            break;
    }
    BLZ_END(0);
}

/* One wave: all sleep, and each is cancelled after a while that is about as long as its sleep. */
static void cancel_a_wave(blz_rt *rt, uint64_t *seed)
{
    static blz_handle handles[SLEEPERS];

    for (int i = 0; i < SLEEPERS; i++)
        check(BLZ_SPAWN_ON(rt, &handles[i], sleeper, .seed = *seed + (uint64_t)i, .rounds = 50) ==
              0);
    for (int i = 0; i < SLEEPERS; i++) {
        for (uint32_t spin = random_below(seed, 20000); spin > 0; spin--)
            __asm__ __volatile__("");
        blz_handle_cancel(&handles[i]);
    }
    for (int i = 0; i < SLEEPERS; i++) {
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
        assert_true(handles[i].result == 0 || handles[i].result == -ECANCELED);
    }
}

static void sleeps_are_cancelled_while_they_fire(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 4});
    int64_t waves = scaled(100);
    uint32_t stop = 0;
    uint64_t seed = 5;
    blz_handle churns[2];

    (void)state;
    allow_seconds(110);
    for (int i = 0; i < 2; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &churns[i], churn, .stop = &stop), 0);
    for (int64_t i = 0; i < waves; i++)
        cancel_a_wave(rt, &seed);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        assert_int_equal(blz_handle_wait(&churns[i]), 0);
    free_rt(rt);
}

/* ---- limits that come about when their child is ready ---- */

struct limited {
    BLZ_FRAME;
    uint64_t seed;
    int64_t rounds, i, rc;
    blz_timeout limit;
    blz_sleep_op nap;
};

BLZ_ASYNC(limited)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < self->rounds; self->i++) {
        BLZ_AWAIT(self->rc,
                  blz_with_timeout(&self->limit, random_below(&self->seed, 4) * MS,
                                   blz_sleep(&self->nap, random_below(&self->seed, 4) * MS)));
        check(self->rc == 0 || self->rc == -ETIMEDOUT);
    }
    BLZ_END(0);
}

static void limits_meet_their_children(void **state)
{
    static blz_handle handles[SLEEPERS];
    blz_rt *rt = new_rt(&(blz_options){.workers = 4});
    int64_t rounds = scaled(300);

    (void)state;
    allow_seconds(110);
    for (int i = 0; i < SLEEPERS; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], limited, .seed = (uint64_t)i + 1,
                                      .rounds = rounds),
                         0);
    for (int i = 0; i < SLEEPERS; i++) {
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
        assert_int_equal(handles[i].result, 0);
    }
    free_rt(rt);
}

/* ---- threads that arm, move and cancel ---- */

/* Outlives the timer: a callback may be under way when the cancel comes. */
struct counts {
    uint64_t fired;
};

static void count_fired(void *arg)
{
    struct counts *counts = arg;
    __atomic_fetch_add(&counts->fired, 1, __ATOMIC_RELAXED);
}

struct thread {
    blz_rt *rt;
    uint64_t seed;
    int64_t rounds;
    uint64_t started, cancelled;
    struct counts counts;
};

/* The timer's memory goes as soon as the cancel has returned, whatever it says. */
static void one_timer(struct thread *self)
{
    blz_timer *timer = blz_timer_new(count_fired, &self->counts, self->rt);
    int64_t due = blz_deadline(random_below(&self->seed, 2000) * BLZ_USEC);

    check(timer && blz_timer_start(timer, due, self->rt) == 0);
    self->started++;
    for (uint32_t moves = random_below(&self->seed, 4); moves > 0; moves--) {
        blz_timer_reset(timer, blz_deadline(random_below(&self->seed, 2000) * BLZ_USEC));
        for (uint32_t spin = random_below(&self->seed, 5000); spin > 0; spin--)
            __asm__ __volatile__("");
    }
    if (random_below(&self->seed, 8) == 0)
        while (blz_timer_is_armed(timer)) /* it fires by itself, or this hangs */
            sched_yield();
    self->cancelled += blz_timer_cancel(timer);
    blz_timer_free(timer);
}

static void *arm_and_cancel(void *arg)
{
    struct thread *self = arg;

    for (int64_t i = 0; i < self->rounds; i++)
        one_timer(self);
    return NULL;
}

static void threads_arm_move_and_cancel(void **state)
{
    enum { THREADS = 4 };
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct thread threads[THREADS];
    pthread_t ids[THREADS];

    (void)state;
    allow_seconds(110);
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.rt = rt, .seed = (uint64_t)i + 3, .rounds = scaled(5000)};
        ids[i] = start_thread(arm_and_cancel, &threads[i]);
    }
    for (int i = 0; i < THREADS; i++)
        join_thread(ids[i]);
    free_rt(rt); /* waits for callbacks that are under way */
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(threads[i].counts.fired + threads[i].cancelled, threads[i].started);
}

/* ---- one after the other, each waking a worker that sleeps ---- */

static void post_event(void *arg)
{
    event_post(arg);
}

static void no_timer_of_another_thread_is_missed(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct event fired = EVENT_INIT;
    uint64_t seed = 11;
    blz_timer timer;

    (void)state;
    allow_seconds(110);
    for (int64_t i = 1; i <= scaled(3000); i++) {
        blz_timer_init(&timer, post_event, &fired);
        assert_int_equal(blz_timer_start(&timer, blz_deadline(random_below(&seed, 1500) * BLZ_USEC),
                                         rt),
                         0);
        event_wait(&fired, i);
    }
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sleeps_are_cancelled_while_they_fire),
        TEST(limits_meet_their_children),
        TEST(threads_arm_move_and_cancel),
        TEST(no_timer_of_another_thread_is_missed),
    };
    return RUN_TESTS(tests);
}
