/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a runtime while other threads are still in the middle of a call that they could not
 * have known to be the last: a wake, a drop of the last reference, a spawn.
 */
#include "harness.h"

#include <sched.h>

enum { ROUNDS = 2000, SPAWN_ROUNDS = 100 };

/* A thread that does one thing over and over, in step with the test. */
struct partner {
    pthread_t thread;
    uint32_t round; /* atomic: what it may do */
    uint32_t done;  /* atomic: what it has done */
    void (*act)(struct partner *self);
    blz_oneshot channel;
    blz_waker waker;
    blz_handle handle;
    blz_rt *rt;
};

static void *partner_main(void *arg)
{
    struct partner *self = arg;

    for (uint32_t round = 1;; round++) {
        uint32_t allowed;
        while ((allowed = __atomic_load_n(&self->round, __ATOMIC_ACQUIRE)) < round)
            sched_yield();
        if (allowed == UINT32_MAX)
            return NULL;
        self->act(self);
        __atomic_store_n(&self->done, round, __ATOMIC_RELEASE);
    }
}

static void partner_begin(struct partner *self, void (*act)(struct partner *self))
{
    *self = (struct partner){.act = act};
    self->thread = start_thread(partner_main, self);
}

static void partner_go(struct partner *self)
{
    __atomic_fetch_add(&self->round, 1, __ATOMIC_RELEASE);
}

static void partner_wait(struct partner *self)
{
    while (__atomic_load_n(&self->done, __ATOMIC_ACQUIRE) != self->round)
        sched_yield();
}

static void partner_end(struct partner *self)
{
    __atomic_store_n(&self->round, UINT32_MAX, __ATOMIC_RELEASE);
    join_thread(self->thread);
}

/* ---- a wake ---- */

struct receives {
    BLZ_FRAME;
    blz_oneshot *channel;
    int64_t rc, value;
    blz_oneshot_op wait;
};

BLZ_ASYNC(receives)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, self->channel, &self->value));
    BLZ_END(self->rc < 0 ? self->rc : self->value);
}

static void act_send(struct partner *self)
{
    check(blz_oneshot_send(&self->channel, 1) == 0);
}

static void a_runtime_may_go_while_the_last_waker_is_still_at_work(void **state)
{
    struct partner partner;

    (void)state;
    allow_seconds(60);
    partner_begin(&partner, act_send);
    for (int i = 0; i < scaled(ROUNDS); i++) {
        blz_rt *rt =
            new_rt(&(blz_options){.workers = 1 + (unsigned)i % 3, .watchdog_ns = BLZ_NEVER});
        blz_handle handle;
        blz_oneshot_init(&partner.channel);
        check(BLZ_SPAWN_ON(rt, &handle, receives, .channel = &partner.channel) == 0);
        partner_go(&partner);
        check(blz_handle_wait(&handle) == 0 && handle.result == 1);
        free_rt(rt);
        partner_wait(&partner);
    }
    partner_end(&partner);
}

/* ---- the last reference ---- */

struct large {
    BLZ_FRAME;
    char bytes[20000]; /* its memory goes back at once */
};

BLZ_ASYNC(large)
{
    BLZ_BEGIN;
    BLZ_END(0);
}

static void act_detach(struct partner *self)
{
    blz_handle_detach(&self->handle);
}

static void a_runtime_may_go_while_the_last_reference_is_dropped(void **state)
{
    struct partner partner;

    (void)state;
    allow_seconds(60);
    partner_begin(&partner, act_detach);
    for (int i = 0; i < scaled(ROUNDS); i++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER});
        blz_handle mine;
        check(BLZ_SPAWN_ON(rt, &partner.handle, large) == 0);
        check(BLZ_SPAWN_ON(rt, &mine, large) == 0);
        while (!blz_handle_done(&partner.handle) || !blz_handle_done(&mine))
            sched_yield();
        partner_go(&partner);
        if (i % 2)
            blz_handle_detach(&mine);
        free_rt(rt);
        if (i % 2 == 0)
            blz_handle_detach(&mine);
        partner_wait(&partner);
    }
    partner_end(&partner);
}

/* ---- a spawn ---- */

enum { SPAWNERS = 8 };

struct spawners {
    blz_rt *rt;
    struct event go;
    uint32_t refused; /* atomic */
    uint64_t spawned, ended;
};

struct counts_end {
    BLZ_FRAME;
    uint64_t *ended;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(counts_end)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    __atomic_fetch_add(self->ended, 1, __ATOMIC_RELAXED);
    BLZ_END(self->rc);
}

static void *spawn_until_refused(void *arg)
{
    struct spawners *s = arg;
    int rc;

    event_wait(&s->go, 1);
    for (;;) {
        blz_handle handle = {NULL, 0};
        bool detached = __atomic_load_n(&s->spawned, __ATOMIC_RELAXED) % 2;
        rc = BLZ_SPAWN_ON(s->rt, detached ? NULL : &handle, counts_end, .ended = &s->ended);
        if (rc < 0)
            break;
        __atomic_fetch_add(&s->spawned, 1, __ATOMIC_RELAXED);
        if (!detached) {
            check(blz_handle_wait(&handle) == 0);
            check(handle.result == 0 || handle.result == -ECANCELED);
        }
    }
    check(rc == -ESHUTDOWN);
    __atomic_fetch_add(&s->refused, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* `started`: whether there was a task before, so that the first spawn is not part of the race. */
static void spawn_into_shutdown(bool started, int delay)
{
    struct spawners s = {.go = EVENT_INIT};
    pthread_t threads[SPAWNERS];

    s.rt = new_rt(&(blz_options){.workers = 2});
    if (started)
        check(BLZ_BLOCK_ON(s.rt, give, .value = 1) == 1);
    for (int i = 0; i < SPAWNERS; i++)
        threads[i] = start_thread(spawn_until_refused, &s);
    event_post(&s.go);
    for (int i = 0; i < delay; i++)
        sched_yield();
    check(blz_rt_shutdown(s.rt, BLZ_NEVER) == 0);
    for (int i = 0; i < SPAWNERS; i++)
        join_thread(threads[i]);
    check(s.refused == SPAWNERS);
    check(__atomic_load_n(&s.ended, __ATOMIC_RELAXED) == s.spawned);
    free_rt(s.rt);
}

static void threads_spawn_while_the_runtime_shuts_down(void **state)
{
    (void)state;
    allow_seconds(60);
    for (int i = 0; i < scaled(SPAWN_ROUNDS); i++)
        spawn_into_shutdown(true, i % 50);
}

static void the_first_spawns_race_with_the_shutdown(void **state)
{
    (void)state;
    allow_seconds(60);
    for (int i = 0; i < scaled(SPAWN_ROUNDS); i++)
        spawn_into_shutdown(false, i % 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_runtime_may_go_while_the_last_waker_is_still_at_work),
        TEST(a_runtime_may_go_while_the_last_reference_is_dropped),
        TEST(threads_spawn_while_the_runtime_shuts_down),
        TEST(the_first_spawns_race_with_the_shutdown),
    };
    return RUN_TESTS(tests);
}
