/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notify, barriers, once cells, tokens and wait groups, by tasks on two and four workers and by
 * threads of their own at once, with waits that are cut short all the time. What is counted must
 * come out even; a lost wakeup hangs; memory goes as early as it may.
 */
#include "harness.h"

#include <stdlib.h>

static const unsigned worker_counts[] = {2, 4};

#define FOR_WORKERS(rt)                                                                         \
    for (unsigned blz_i_ = 0; blz_i_ < 2; blz_i_++)                                             \
        for (blz_rt *rt = new_rt(&(blz_options){.workers = worker_counts[blz_i_]}); rt != NULL; \
             free_rt(rt), rt = NULL)

static void join(blz_handle *handle)
{
    assert_int_equal(blz_handle_wait(handle), 0);
    assert_int_equal(handle->result, 0);
}

/* ---- notify: items, and consumers that look after they have enabled their wait ---- */

enum { CONSUMERS = 6, PRODUCERS = 3 };

struct market {
    blz_notify ready;
    int64_t items;    /* atomic: not consumed yet */
    int64_t consumed; /* atomic */
    int64_t goal;
};

static bool is_over(struct market *market)
{
    return __atomic_load_n(&market->consumed, __ATOMIC_RELAXED) == market->goal;
}

static bool consume(struct market *market)
{
    int64_t items = __atomic_load_n(&market->items, __ATOMIC_RELAXED);

    while (items > 0) {
        if (__atomic_compare_exchange_n(&market->items, &items, items - 1, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            if (__atomic_add_fetch(&market->consumed, 1, __ATOMIC_RELAXED) == market->goal)
                blz_notify_all(&market->ready); /* all may go home */
            return true;
        }
    }
    return false;
}

struct consumer {
    BLZ_FRAME;
    struct market *market;
    uint64_t seed;
    int64_t rc;
    blz_notify_op wait;
    blz_timeout limit;
    blz_future ready;
    blz_race_op race;
};

BLZ_ASYNC(consumer)
{
    BLZ_BEGIN;
    for (;;) {
        blz_ignore(blz_notify_await(&self->wait, &self->market->ready));
        blz_notify_enable(&self->wait);
        if (consume(self->market) || is_over(self->market)) {
            blz_notify_disable(&self->wait);
            if (is_over(self->market))
                break;
            continue;
        }
        /* Cut short or not: what comes at that moment must go to another. */
        self->rc = random_below(&self->seed, 3);
        if (self->rc == 0)
            BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, 0, &self->wait.future));
        else if (self->rc == 1)
            BLZ_AWAIT(self->rc,
                      blz_race(&self->race, &self->wait.future, blz_ready(&self->ready, 0)));
        else
            BLZ_AWAIT(self->rc, &self->wait.future);
    }
    BLZ_END(0);
}

/* Waits only until now, or for real, as chance has it. */
static void *consume_on_thread(void *arg)
{
    struct market *market = arg;
    uint64_t seed = 99;

    while (!is_over(market)) {
        blz_notify_op wait = {0};
        blz_ignore(blz_notify_await(&wait, &market->ready));
        blz_notify_enable(&wait);
        if (consume(market) || is_over(market))
            blz_notify_disable(&wait);
        else
            check(blz_wait_until(&wait.future, random_below(&seed, 2) ? 0 : INT64_MAX) <= 0);
    }
    return NULL;
}

static void *produce(void *arg)
{
    struct market *market = arg;

    for (int64_t i = 0; i < market->goal / PRODUCERS; i++) {
        __atomic_fetch_add(&market->items, 1, __ATOMIC_RELAXED);
        if (i % 3)
            blz_notify_one(&market->ready);
        else
            blz_notify_last(&market->ready);
    }
    return NULL;
}

static void no_notification_is_lost(void **state)
{
    (void)state;
    FOR_WORKERS(rt)
    {
        struct market market = {.goal = scaled(20000) / PRODUCERS * PRODUCERS};
        blz_handle handles[CONSUMERS];
        pthread_t producers[PRODUCERS], thread;
        for (uint64_t i = 0; i < CONSUMERS; i++)
            assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], consumer, .market = &market,
                                          .seed = i + 1),
                             0);
        thread = start_thread(consume_on_thread, &market);
        for (int i = 0; i < PRODUCERS; i++)
            producers[i] = start_thread(produce, &market);
        for (int i = 0; i < PRODUCERS; i++)
            join_thread(producers[i]);
        join_thread(thread);
        for (int i = 0; i < CONSUMERS; i++)
            join(&handles[i]);
        assert_int_equal(market.items, 0);
    }
}

/* ---- barriers: nobody is a round ahead ---- */

enum { PARTIES = 5 };

struct assembly {
    blz_barrier barrier;
    int64_t rounds;
    int64_t leaders;        /* atomic */
    int64_t place[PARTIES]; /* atomic: the round in which each is */
};

static void check_places(struct assembly *assembly, int64_t round)
{
    for (int i = 0; i < PARTIES; i++) {
        int64_t place = __atomic_load_n(&assembly->place[i], __ATOMIC_RELAXED);
        check(place == round || place == round + 1);
    }
}

struct party {
    BLZ_FRAME;
    struct assembly *assembly;
    int me;
    uint64_t seed;
    int64_t round, rc;
    blz_barrier_op wait;
    blz_timeout limit;
};

BLZ_ASYNC(party)
{
    BLZ_BEGIN;
    for (self->round = 1; self->round <= self->assembly->rounds; self->round++) {
        __atomic_store_n(&self->assembly->place[self->me], self->round, __ATOMIC_RELAXED);
        self->rc = -ETIMEDOUT;
        while (self->rc == -ETIMEDOUT && random_below(&self->seed, 3))
            BLZ_AWAIT(self->rc,
                      blz_with_timeout(&self->limit, 0,
                                       blz_barrier_arrive(&self->wait, &self->assembly->barrier)));
        if (self->rc == -ETIMEDOUT)
            BLZ_AWAIT(self->rc, blz_barrier_arrive(&self->wait, &self->assembly->barrier));
        check(self->rc == 0 || self->rc == 1);
        __atomic_fetch_add(&self->assembly->leaders, self->rc, __ATOMIC_RELAXED);
        check_places(self->assembly, self->round);
    }
    BLZ_END(0);
}

static void *meet_on_thread(void *arg)
{
    struct assembly *assembly = arg;

    for (int64_t round = 1; round <= assembly->rounds; round++) {
        __atomic_store_n(&assembly->place[0], round, __ATOMIC_RELAXED);
        int64_t rc = blz_barrier_arrive_wait(&assembly->barrier);
        check(rc == 0 || rc == 1);
        __atomic_fetch_add(&assembly->leaders, rc, __ATOMIC_RELAXED);
        check_places(assembly, round);
    }
    return NULL;
}

static void rounds_do_not_overlap(void **state)
{
    (void)state;
    FOR_WORKERS(rt)
    {
        struct assembly assembly = {.barrier = BLZ_BARRIER_INIT(PARTIES), .rounds = scaled(3000)};
        blz_handle handles[PARTIES];
        pthread_t thread = start_thread(meet_on_thread, &assembly);
        for (int i = 1; i < PARTIES; i++)
            assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], party, .assembly = &assembly, .me = i,
                                          .seed = (uint64_t)i),
                             0);
        for (int i = 1; i < PARTIES; i++)
            join(&handles[i]);
        join_thread(thread);
        assert_int_equal(assembly.leaders, assembly.rounds);
        assert_int_equal(blz_barrier_rounds(&assembly.barrier), assembly.rounds);
    }
}

/* ---- once: made by one at a time, whatever becomes of it ---- */

enum { CELLS_AT_A_TIME = 8 };

struct cell {
    blz_once once;
    int64_t making; /* atomic: at most one */
    int64_t made;   /* atomic */
    int64_t secret; /* plain: belongs to the value */
};

struct maker {
    BLZ_FRAME;
    struct cell *cell;
    bool fails;
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(maker)
{
    BLZ_BEGIN;
    check(__atomic_fetch_add(&self->cell->making, 1, __ATOMIC_RELAXED) == 0);
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    if (self->rc >= 0 && self->fails)
        self->rc = -EIO;
    if (self->rc >= 0) {
        self->cell->secret++;
        self->rc = __atomic_add_fetch(&self->cell->made, 1, __ATOMIC_RELAXED);
    }
    __atomic_fetch_sub(&self->cell->making, 1, __ATOMIC_RELAXED);
    BLZ_END(self->rc);
}

struct needs {
    BLZ_FRAME;
    struct cell *cells;
    int i;
    uint64_t seed;
    int64_t rc;
    struct maker maker;
    blz_once_op get;
    blz_timeout limit;
};

BLZ_ASYNC(needs)
{
    BLZ_BEGIN;
    for (; self->i < CELLS_AT_A_TIME; self->i++) {
        do {
            if (random_below(&self->seed, 2))
                BLZ_AWAIT(self->rc,
                          blz_with_timeout(&self->limit, 0,
                                           blz_once_get(&self->get, &self->cells[self->i].once,
                                                        BLZ_FUTURE(self->maker, maker,
                                                                   .cell =
                                                                       &self->cells[self->i]))));
            else
                BLZ_AWAIT(self->rc,
                          blz_once_get(&self->get, &self->cells[self->i].once,
                                       BLZ_FUTURE(self->maker, maker, .cell = &self->cells[self->i],
                                                  .fails = random_below(&self->seed, 2))));
            check(self->rc == 1 || self->rc == -EIO || self->rc == -ETIMEDOUT);
        } while (self->rc != 1);
        check(self->cells[self->i].secret == 1);
    }
    BLZ_END(0);
}

static void *need_on_thread(void *arg)
{
    struct cell *cells = arg;

    for (int i = 0; i < CELLS_AT_A_TIME; i++) {
        check(blz_once_get_wait(&cells[i].once, NULL) == 1);
        check(cells[i].secret == 1);
    }
    return NULL;
}

static void a_value_is_made_once(void **state)
{
    (void)state;
    FOR_WORKERS(rt)
    {
        for (int64_t round = 0; round < scaled(150); round++) {
            struct cell cells[CELLS_AT_A_TIME] = {{.making = 0}};
            blz_handle handles[4];
            pthread_t thread = start_thread(need_on_thread, cells);
            for (int i = 0; i < 4; i++)
                assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], needs, .cells = cells,
                                              .seed = (uint64_t)(round * 4 + i + 1)),
                                 0);
            for (int i = 0; i < 4; i++)
                join(&handles[i]);
            join_thread(thread);
            for (int i = 0; i < CELLS_AT_A_TIME; i++)
                assert_int_equal(blz_once_try_get(&cells[i].once), 1);
        }
    }
}

/* ---- tokens: trees that are cancelled while they grow and shrink ---- */

struct grower {
    BLZ_FRAME;
    blz_token *parent; /* a reference of our own */
    uint64_t seed;
    int64_t rc;
    blz_token *child;
    blz_token_op wait;
    blz_token_guard_op guard;
    blz_future pending;
};

/* Lets a child of its token come and go, until that is cancelled. */
BLZ_ASYNC(grower)
{
    BLZ_BEGIN;
    while (!blz_token_is_cancelled(self->parent)) {
        check(blz_token_child(&self->child, self->parent) == 0);
        if (random_below(&self->seed, 4) == 0)
            blz_token_cancel(self->child);
        if (random_below(&self->seed, 3) == 0) {
            BLZ_AWAIT(self->rc,
                      blz_token_guard(&self->guard, self->child, blz_pending(&self->pending)));
            check(self->rc == -ECANCELED);
        } else if (random_below(&self->seed, 3) == 0) {
            BLZ_AWAIT(self->rc, blz_token_cancelled(&self->wait, self->child));
            check(self->rc == 0);
        } else {
            BLZ_AWAIT(self->rc, blz_yield(&self->pending));
        }
        blz_token_unref(self->child);
    }
    blz_token_unref(self->parent);
    BLZ_END(0);
}

static void count_call(void *arg)
{
    int64_t *calls = arg;

    check(++*calls == 1); /* in memory that is freed as soon as it is unregistered */
}

static void *register_until_cancelled(void *arg)
{
    blz_token *token = arg; /* a reference of its own */

    for (bool over = false; !over;) {
        blz_token_callback *callback = malloc(sizeof *callback);
        int64_t *calls = malloc(sizeof *calls);
        check(callback && calls);
        *calls = 0;
        over = blz_token_register(callback, token, count_call, calls) == 1;
        bool unregistered = blz_token_unregister(callback);
        check(*calls == !unregistered);
        over |= !unregistered;
        free(calls);
        free(callback);
    }
    blz_token_unref(token);
    return NULL;
}

static void *cancel_after_a_while(void *arg)
{
    blz_token *root = arg;

    for (int i = 0; i < 200; i++) {
        blz_token *child;
        check(blz_token_child(&child, root) == 0);
        if (i % 2)
            check(blz_token_cancel(child));
        blz_token_unref(child);
    }
    check(blz_token_cancel(root));
    blz_token_unref(root);
    return NULL;
}

static void trees_are_cancelled_while_they_grow(void **state)
{
    (void)state;
    FOR_WORKERS(rt)
    {
        for (int64_t round = 0; round < scaled(150); round++) {
            blz_token *root;
            blz_handle handles[4];
            pthread_t threads[2];
            assert_int_equal(blz_token_new_with(&root, test_memory()), 0);
            threads[0] = start_thread(register_until_cancelled, blz_token_ref(root));
            for (int i = 0; i < 4; i++)
                assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], grower,
                                              .parent = blz_token_ref(root),
                                              .seed = (uint64_t)(round * 4 + i + 1)),
                                 0);
            threads[1] = start_thread(cancel_after_a_while, root);
            for (int i = 0; i < 4; i++)
                join(&handles[i]);
            for (int i = 0; i < 2; i++)
                join_thread(threads[i]);
        }
    }
}

/* ---- wait groups: freed by who waits ---- */

struct does {
    BLZ_FRAME;
    blz_wait_group *group;
    int64_t *work; /* plain */
};

BLZ_ASYNC(does)
{
    BLZ_BEGIN;
    *self->work = 1;
    blz_wait_group_done(self->group);
    BLZ_END(0);
}

enum { JOBS = 5 };

struct employer {
    BLZ_FRAME;
    int64_t rounds;
    uint64_t seed;
    int64_t rc;
    blz_wait_group *group;
    int64_t work[JOBS];
    blz_wait_group_op wait;
    blz_timeout limit;
};

BLZ_ASYNC(employer)
{
    BLZ_BEGIN;
    for (; self->rounds > 0; self->rounds--) {
        self->group = malloc(sizeof *self->group);
        check(self->group);
        blz_wait_group_init(self->group);
        for (int i = 0; i < JOBS; i++) {
            self->work[i] = 0;
            check(blz_wait_group_add(self->group, 1) == 0);
            check(BLZ_SPAWN(does, .group = self->group, .work = &self->work[i]) == 0);
        }
        self->rc = -ETIMEDOUT;
        while (self->rc == -ETIMEDOUT && random_below(&self->seed, 2))
            BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, 0,
                                                 blz_wait_group_await(&self->wait, self->group)));
        if (self->rc == -ETIMEDOUT)
            BLZ_AWAIT(self->rc, blz_wait_group_await(&self->wait, self->group));
        free(self->group);
        check(self->rc == 0);
        for (int i = 0; i < JOBS; i++)
            check(self->work[i] == 1);
    }
    BLZ_END(0);
}

/* On a thread: the group is on the stack, and gone when the wait has returned. */
static void employ_on_thread(blz_rt *rt)
{
    blz_wait_group group = BLZ_WAIT_GROUP_INIT;
    int64_t work[JOBS] = {0};

    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(blz_wait_group_add(&group, 1), 0);
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, does, .group = &group, .work = &work[i]), 0);
    }
    assert_int_equal(blz_wait_group_wait(&group), 0);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(work[i], 1);
}

static void groups_are_freed_by_who_waits(void **state)
{
    (void)state;
    FOR_WORKERS(rt)
    {
        blz_handle handles[3];
        for (int i = 0; i < 3; i++)
            assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], employer, .rounds = scaled(4000),
                                          .seed = (uint64_t)i + 1),
                             0);
        for (int64_t round = 0; round < scaled(1500); round++)
            employ_on_thread(rt);
        for (int i = 0; i < 3; i++)
            join(&handles[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_notification_is_lost),       TEST(rounds_do_not_overlap),
        TEST(a_value_is_made_once),          TEST(trees_are_cancelled_while_they_grow),
        TEST(groups_are_freed_by_who_waits),
    };
    return RUN_TESTS(tests);
}
