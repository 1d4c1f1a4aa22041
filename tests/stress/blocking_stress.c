/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocking pool with everything at once: tasks and threads that call, tasks that are cancelled
 * at any moment, threads that leave while calls come in, runtimes that end with calls under way.
 * Every argument must be destroyed once, every call be made once or refused, and nothing hang.
 */
#include "harness.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- arguments that keep score ---- */

struct parcel {
    uint32_t calls, destroyed; /* atomic */
    uint32_t pause;            /* how long a call takes, in rounds */
};

static int64_t open_parcel(void *arg)
{
    struct parcel *p = arg;

    __atomic_fetch_add(&p->calls, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < p->pause; i++)
        sched_yield();
    return 1;
}

static void destroy_parcel(void *arg)
{
    __atomic_fetch_add(&((struct parcel *)arg)->destroyed, 1, __ATOMIC_RELEASE);
}

/* ---- tasks that call, and are cancelled now and then ---- */

struct caller {
    BLZ_FRAME;
    struct parcel *parcel;
    int64_t rc;
    blz_blocking_op op;
};

BLZ_ASYNC(caller)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_blocking(&self->op, open_parcel, self->parcel));
    /* The frame is ours again: whoever still writes to it is found by the sanitizers, or here. */
    memset(&self->op, 0xa5, sizeof self->op);
    BLZ_END(self->rc);
}

struct owner {
    BLZ_FRAME;
    struct parcel *parcel;
    int64_t rc;
    blz_blocking_owned_op op;
};

BLZ_ASYNC(owner)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_blocking_owned(&self->op, open_parcel, self->parcel, destroy_parcel));
    memset(&self->op, 0xa5, sizeof self->op);
    BLZ_END(self->rc);
}

static void cancelled_at_any_moment(void **state)
{
    enum { TASKS = 64 };
    blz_rt *rt = new_rt(&(blz_options){.workers = 2, .max_blocking_threads = 3});
    int64_t rounds = scaled(300);
    uint64_t seed = 7;

    (void)state;
    allow_seconds(110);
    for (int64_t round = 0; round < rounds; round++) {
        struct parcel parcels[TASKS] = {{0}};
        blz_handle handles[TASKS];

        for (int i = 0; i < TASKS; i++) {
            parcels[i].pause = random_below(&seed, 4);
            assert_int_equal(i % 2 ? BLZ_SPAWN_ON(rt, &handles[i], owner, .parcel = &parcels[i])
                                   : BLZ_SPAWN_ON(rt, &handles[i], caller, .parcel = &parcels[i]),
                             0);
            if (random_below(&seed, 2))
                blz_handle_cancel(&handles[random_below(&seed, (uint32_t)i + 1)]);
        }
        for (int i = 0; i < TASKS; i++) {
            assert_int_equal(blz_handle_wait(&handles[i]), 0);
            assert_true(handles[i].result == 1 || handles[i].result == -ECANCELED);
        }
        for (int i = 0; i < TASKS; i++) {
            struct parcel *p = &parcels[i];

            if (i % 2 == 0) { /* made, or not, and over either way */
                assert_int_equal(p->calls, handles[i].result == 1);
                continue;
            }
            while (__atomic_load_n(&p->destroyed, __ATOMIC_ACQUIRE) == 0)
                sched_yield(); /* detached, and still running */
            assert_int_equal(p->destroyed, 1);
            assert_in_range(p->calls, handles[i].result == 1, 1);
        }
    }
    free_rt(rt);
}

/* ---- threads that come and go ---- */

struct shouter {
    pthread_t thread;
    blz_rt *rt;
    int64_t calls;
    uint64_t seed;
    struct parcel parcel;
};

static void *shout(void *arg)
{
    struct shouter *s = arg;

    for (int64_t i = 0; i < s->calls; i++) {
        check(blz_blocking_run(s->rt, open_parcel, &s->parcel) == 1);
        for (uint32_t pause = random_below(&s->seed, 200); pause > 0; pause--)
            sched_yield();
    }
    return NULL;
}

static void threads_leave_while_calls_come_in(void **state)
{
    enum { SHOUTERS = 3 };
    blz_rt *rt = new_rt(&(blz_options){.workers = 1,
                                       .max_blocking_threads = 2,
                                       .blocking_keep_alive_ns = 20 * BLZ_USEC});
    struct shouter shouters[SHOUTERS];

    (void)state;
    allow_seconds(110);
    for (int i = 0; i < SHOUTERS; i++) {
        shouters[i] = (struct shouter){.rt = rt, .calls = scaled(3000), .seed = (uint64_t)i + 1};
        shouters[i].thread = start_thread(shout, &shouters[i]);
    }
    for (int i = 0; i < SHOUTERS; i++) {
        join_thread(shouters[i].thread);
        assert_int_equal(shouters[i].parcel.calls, shouters[i].calls);
    }
    free_rt(rt);
}

/* ---- meetings: as many as there are threads, in bursts, between small calls ---- */

struct meeting {
    struct event arrived;
    int64_t members;
};

static int64_t meet(void *arg)
{
    struct meeting *m = arg;

    event_post(&m->arrived);
    event_wait(&m->arrived, m->members);
    return 1;
}

static void calls_that_wait_for_each_other_between_many_small_ones(void **state)
{
    enum { MEMBERS = 6, SMALL = 200 };
    blz_rt *rt = new_rt(&(blz_options){.workers = 1,
                                       .max_blocking_threads = MEMBERS,
                                       .blocking_keep_alive_ns = 200 * BLZ_USEC});
    blz_blocking_op *ops = calloc(MEMBERS * (SMALL + 1), sizeof *ops);
    int64_t rounds = scaled(60);

    (void)state;
    allow_seconds(110);
    for (int64_t round = 0; round < rounds; round++) {
        struct meeting m = {.arrived = EVENT_INIT, .members = MEMBERS};
        struct parcel parcel = {0};
        int n = 0;

        for (int i = 0; i < MEMBERS; i++) {
            assert_int_equal(blz_blocking_start(&ops[n++], meet, &m, rt), 0);
            for (int k = 0; k < SMALL; k++)
                assert_int_equal(blz_blocking_start(&ops[n++], open_parcel, &parcel, rt), 0);
        }
        for (int i = 0; i < n; i++)
            assert_int_equal(blz_blocking_wait(&ops[i]), 1);
        assert_int_equal(parcel.calls, MEMBERS * SMALL);
    }
    free(ops);
    free_rt(rt);
}

/* ---- the end, with calls under way ---- */

struct late_caller {
    pthread_t thread;
    blz_rt *rt;
    struct parcel parcels[50];
    int accepted;
};

static void *call_until_refused(void *arg)
{
    struct late_caller *l = arg;

    while (l->accepted < 50) {
        int rc = blz_blocking_spawn(l->rt, open_parcel, &l->parcels[l->accepted], destroy_parcel);

        if (rc == -ESHUTDOWN)
            break;
        check(rc == 0);
        l->accepted++;
    }
    return NULL;
}

static void runtimes_end_while_calls_come_in(void **state)
{
    int64_t rounds = scaled(300);
    uint64_t seed = 3;

    (void)state;
    allow_seconds(110);
    for (int64_t round = 0; round < rounds; round++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = 1, .max_blocking_threads = 2});
        struct late_caller late = {.rt = rt};
        struct parcel mine[8] = {{0}};

        for (int i = 0; i < 8; i++)
            if (i % 2)
                assert_int_equal(BLZ_SPAWN_ON(rt, NULL, owner, .parcel = &mine[i]), 0);
            else
                assert_int_equal(BLZ_SPAWN_ON(rt, NULL, caller, .parcel = &mine[i]), 0);
        late.thread = start_thread(call_until_refused, &late);
        for (uint32_t pause = random_below(&seed, 100); pause > 0; pause--)
            sched_yield();
        assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
        join_thread(late.thread);
        free_rt(rt);
        for (int i = 0; i < late.accepted; i++) {
            assert_int_equal(late.parcels[i].destroyed, 1);
            assert_in_range(late.parcels[i].calls, 0, 1);
        }
        for (int i = 1; i < 8; i += 2)
            assert_int_equal(mine[i].destroyed, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(cancelled_at_any_moment),
        TEST(threads_leave_while_calls_come_in),
        TEST(calls_that_wait_for_each_other_between_many_small_ones),
        TEST(runtimes_end_while_calls_come_in),
    };
    return RUN_TESTS(tests);
}
