/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storms of signals, while runtimes, subscriptions and stops come and go on many threads. Who has
 * subscribed for the whole time counts every signal, who comes and goes at least its own; in the
 * end the handlers from before are back, and have got nothing but what nobody had received.
 */
#include "harness.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NR_KINDS = 3, THREADS = 4 };

static int kinds[NR_KINDS]; /* SIGRTMIN is not a constant */

static struct {
    struct event go;
    uint64_t raised[NR_KINDS]; /* atomic */
    uint64_t passed[NR_KINDS]; /* atomic: to the handlers from before */
} storm = {.go = EVENT_INIT};

static int kind_of(int signal)
{
    return signal == SIGUSR1 ? 0 : signal == SIGUSR2 ? 1 : 2;
}

static void pass(int signal)
{
    __atomic_fetch_add(&storm.passed[kind_of(signal)], 1, __ATOMIC_RELAXED);
}

static void raise_kind(int kind)
{
    __atomic_fetch_add(&storm.raised[kind], 1, __ATOMIC_RELAXED);
    raise(kinds[kind]); /* returns when the handler has run */
}

static void begin(void)
{
    storm.go.count = 0;
    kinds[0] = SIGUSR1;
    kinds[1] = SIGUSR2;
    kinds[2] = SIGRTMIN;
    for (int i = 0; i < NR_KINDS; i++) {
        storm.raised[i] = storm.passed[i] = 0;
        signal(kinds[i], pass);
    }
}

static void handlers_are_back(void)
{
    for (int i = 0; i < NR_KINDS; i++) {
        struct sigaction now;
        sigaction(kinds[i], NULL, &now);
        assert_true(now.sa_handler == pass);
    }
}

/* ---- who raises ---- */

struct raiser {
    uint64_t seed;
    int64_t left;
};

/* Some of the time it has a subscription of its own: it sees its own signals, at least. */
static void *raise_many(void *arg)
{
    struct raiser *raiser = arg;

    event_wait(&storm.go, 1);
    while (raiser->left-- > 0) {
        int kind = (int)random_below(&raiser->seed, NR_KINDS);
        int64_t times = 1 + random_below(&raiser->seed, 4);
        blz_signal sub;

        check(blz_signal_open(&sub, kinds[kind]) == 0);
        for (int64_t i = 0; i < times; i++)
            raise_kind(kind);
        if (random_below(&raiser->seed, 2))
            check(blz_signal_try_recv(&sub, NULL) >= times);
        blz_signal_close(&sub);
    }
    return NULL;
}

static void run_raisers(int64_t count)
{
    struct raiser raisers[THREADS];
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        raisers[i] = (struct raiser){(uint64_t)i + 1, count};
        threads[i] = start_thread(raise_many, &raisers[i]);
    }
    event_post(&storm.go);
    for (int i = 0; i < THREADS; i++)
        join_thread(threads[i]);
}

/* ---- who receives ---- */

struct receiver {
    BLZ_FRAME;
    blz_signal sub;
    uint64_t *total;
    int64_t rc;
    blz_signal_op op;
    blz_timeout limit;
    bool impatient; /* has its waits cancelled all the time */
};

BLZ_ASYNC(receiver)
{
    BLZ_BEGIN;
    for (;;) {
        if (self->impatient)
            BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, 10 * BLZ_USEC,
                                                 blz_signal_recv(&self->op, &self->sub, NULL)));
        else
            BLZ_AWAIT(self->rc, blz_signal_recv(&self->op, &self->sub, NULL));
        if (self->rc == -ECANCELED)
            break;
        if (self->rc > 0)
            __atomic_fetch_add(self->total, (uint64_t)self->rc, __ATOMIC_RELAXED);
    }
    /* What is left: the wait was cancelled, the subscription was not. */
    self->rc = blz_signal_try_recv(&self->sub, NULL);
    if (self->rc > 0)
        __atomic_fetch_add(self->total, (uint64_t)self->rc, __ATOMIC_RELAXED);
    blz_signal_close(&self->sub);
    BLZ_END(0);
}

static void nothing_is_lost_in_a_storm(void **state)
{
    enum { RECEIVERS = 4 };
    blz_rt *rts[2] = {new_rt(&(blz_options){.workers = 2}), new_rt(&(blz_options){.workers = 1})};
    uint64_t totals[NR_KINDS * RECEIVERS] = {0};
    blz_handle handles[NR_KINDS * RECEIVERS];

    (void)state;
    begin();
    for (int i = 0; i < NR_KINDS * RECEIVERS; i++) {
        struct blz_signal sub;
        assert_int_equal(blz_signal_open(&sub, kinds[i % NR_KINDS]), 0);
        assert_int_equal(BLZ_SPAWN_ON(rts[i % 2], &handles[i], receiver, .sub = sub,
                                      .total = &totals[i], .impatient = i % 4 == 0),
                         0);
    }
    run_raisers(scaled(1000));
    for (int i = 0; i < NR_KINDS * RECEIVERS; i++) {
        blz_handle_cancel(&handles[i]);
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
        assert_int_equal(totals[i], storm.raised[i % NR_KINDS]);
    }
    handlers_are_back();
    for (int i = 0; i < NR_KINDS; i++)
        assert_int_equal(storm.passed[i], 0);
    free_rt(rts[0]);
    free_rt(rts[1]);
}

/* ---- runtimes that come and go ---- */

static void *live_and_die(void *arg)
{
    int64_t *left = arg;

    event_wait(&storm.go, 1);
    while ((*left)-- > 0) {
        uint64_t totals[4] = {0};
        blz_handle handles[4];
        blz_rt *rt;

        check(blz_rt_new(&rt, &(blz_options){.workers = 1 + (unsigned)*left % 2}) == 0);
        for (int i = 0; i < 4; i++) {
            struct blz_signal sub;
            check(blz_signal_open(&sub, kinds[i % NR_KINDS]) == 0);
            check(BLZ_SPAWN_ON(rt, &handles[i], receiver, .sub = sub, .total = &totals[i]) == 0);
        }
        raise_kind(0);
        check(blz_rt_free(rt) == 0); /* in the middle of it */
        for (int i = 0; i < 4; i++)
            check(blz_handle_wait(&handles[i]) == 0);
        check(totals[0] >= 1 && totals[3] >= 1);
    }
    return NULL;
}

static void runtimes_come_and_go_in_a_storm(void **state)
{
    int64_t left[2] = {scaled(60), scaled(60)};
    pthread_t threads[2];
    blz_signal whole;

    (void)state;
    begin();
    assert_int_equal(blz_signal_open(&whole, SIGUSR1), 0);
    for (int i = 0; i < 2; i++)
        threads[i] = start_thread(live_and_die, &left[i]);
    run_raisers(scaled(300));
    for (int i = 0; i < 2; i++)
        join_thread(threads[i]);
    assert_int_equal(blz_signal_try_recv(&whole, NULL), storm.raised[0]);
    blz_signal_close(&whole);
    handlers_are_back();
    assert_int_equal(storm.passed[0], 0);
}

/* ---- from outside ---- */

/* Signals to the process, which any thread may get, or the herald; the system merges some. */
static void a_storm_from_another_process_leaves_nobody_waiting(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    int64_t count = scaled(2000);
    uint64_t total = 0, received = 0;
    blz_signal last, sub;
    blz_handle handle;
    int status;
    pid_t pid;

    (void)state;
    begin();
    assert_int_equal(blz_signal_open(&last, SIGUSR2), 0);
    assert_int_equal(blz_signal_open(&sub, SIGUSR1), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receiver, .sub = sub, .total = &total), 0);
    pid = fork();
    if (pid == 0) {
        for (int64_t i = 0; i < count; i++)
            kill(getppid(), SIGUSR1);
        kill(getppid(), SIGUSR2);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(blz_signal_wait(&last, NULL), 1);
    while (received == 0) /* the first one has come, and wakes the task */
        received = __atomic_load_n(&total, __ATOMIC_RELAXED);
    blz_handle_cancel(&handle);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_true(total >= 1 && total <= (uint64_t)count);
    blz_signal_close(&last);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_lost_in_a_storm),
        TEST(runtimes_come_and_go_in_a_storm),
        TEST(a_storm_from_another_process_leaves_nobody_waiting),
    };
    return RUN_TESTS(tests);
}
