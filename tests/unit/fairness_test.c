/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fairness on one worker: whatever some tasks do without end, all others get their turn. Each test
 * has tasks that never stop by themselves, and waits for one that must get through. The watchdog of
 * the tests finds the starved.
 */
#include "harness.h"

static blz_rt *rt;
static bool enough; /* atomic: the endless ones may end */

static bool is_enough(void)
{
    return __atomic_load_n(&enough, __ATOMIC_RELAXED);
}

static void begin(void)
{
    __atomic_store_n(&enough, false, __ATOMIC_RELAXED);
    rt = new_rt(&(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER});
}

static void end(void)
{
    __atomic_store_n(&enough, true, __ATOMIC_RELAXED);
    free_rt(rt);
}

/* ---- endless tasks ---- */

struct endless_yield {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(endless_yield)
{
    BLZ_BEGIN;
    while (!is_enough())
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
    BLZ_END(0);
}

/* Always ready: only the budget ever makes it let go. */
struct endless_ready {
    BLZ_FRAME;
    blz_oneshot channel;
    int64_t rc;
    blz_oneshot_op wait;
};

BLZ_ASYNC(endless_ready)
{
    BLZ_BEGIN;
    while (!is_enough()) {
        blz_oneshot_init(&self->channel);
        check(blz_oneshot_send(&self->channel, 1) == 0);
        BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, &self->channel, NULL));
    }
    BLZ_END(0);
}

/* Two tasks that wake each other, through the LIFO slot. */
struct table {
    blz_waker sides[2];
    int turn;
    int64_t strokes;
};

struct player {
    blz_future future;
    struct table *table;
    int side;
};

static blz_poll player_poll(blz_future *future, blz_cx *cx)
{
    struct player *self = (struct player *)future;
    struct table *table = self->table;

    if (is_enough()) {
        blz_waker_wake(&table->sides[!self->side]);
        return blz_future_done(future, 0);
    }
    if (table->turn == self->side) {
        table->turn = !self->side;
        table->strokes++;
    }
    blz_waker_drop(&table->sides[self->side]);
    table->sides[self->side] = blz_cx_waker(cx);
    blz_waker_wake(&table->sides[!self->side]);
    return BLZ_PENDING;
}

static void player_cancel(blz_future *future, blz_cx *cx)
{
    (void)future;
    (void)cx;
}

static const blz_future_ops player_ops = {.name = "player",
                                          .poll = player_poll,
                                          .cancel = player_cancel};

static void spawn_players(struct table *table)
{
    for (int side = 0; side < 2; side++) {
        struct player frame = {.future.ops = &player_ops, .table = table, .side = side};
        assert_int_equal(blz_spawn(&frame, sizeof frame, &(blz_spawn_args){.rt = rt}), 0);
    }
}

/* ---- tasks that must get through ---- */

struct spawns_children {
    BLZ_FRAME;
    int rounds;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
};

/* Each round needs polls of tasks in the ring. */
BLZ_ASYNC(spawns_children)
{
    BLZ_BEGIN;
    for (; self->rounds > 0; self->rounds--) {
        blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
        for (int i = 0; i < 5; i++)
            check(BLZ_SCOPE_SPAWN(&self->scope, give) == 0);
        BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    }
    BLZ_END(0);
}

/* From the ring, from the yielded tasks, from outside, and by waking from another thread. */
static void all_kinds_get_through(void)
{
    struct gate gate = GATE_INIT;
    blz_handle entered;

    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    assert_int_equal(BLZ_BLOCK_ON(rt, spawns_children, .rounds = 20), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, yields, .times = 20, .value = 2), 2);
    assert_int_equal(BLZ_SPAWN_ON(rt, &entered, enters, .gate = &gate), 0);
    event_wait(&gate.arrived, 1);
    gate_open(&gate, 3);
    assert_int_equal(blz_handle_wait(&entered), 0);
    assert_int_equal(entered.result, 3);
}

static void a_yielding_task_lets_others_run(void **state)
{
    (void)state;
    begin();
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, endless_yield), 0);
    all_kinds_get_through();
    end();
}

static void many_yielding_tasks_let_others_run(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 500; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, endless_yield), 0);
    all_kinds_get_through();
    end();
}

static void a_task_that_is_always_ready_lets_others_run(void **state)
{
    blz_stats stats;

    (void)state;
    begin();
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, endless_ready), 0);
    all_kinds_get_through();
    blz_rt_stats(rt, &stats);
    assert_true(stats.total.budget_yields > 0);
    end();
}

static void tasks_that_wake_each_other_let_others_run(void **state)
{
    struct table table = {.turn = 0};

    (void)state;
    begin();
    spawn_players(&table);
    all_kinds_get_through();
    end();
}

static void tasks_that_wake_each_other_let_yielding_tasks_run(void **state)
{
    struct table table = {.turn = 0};

    (void)state;
    begin();
    spawn_players(&table);
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, endless_yield), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, endless_ready), 0);
    all_kinds_get_through();
    end();
}

static int64_t pin_yielding(void *arg)
{
    for (int i = 0; i < *(int *)arg; i++)
        check(BLZ_SPAWN_WITH((&(blz_spawn_args){.pinned = true}), endless_yield) == 0);
    return 0;
}

static void pinned_and_yielding_tasks_let_others_run(void **state)
{
    struct table table = {.turn = 0};
    int pinned = 200;

    (void)state;
    begin();
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = pin_yielding, .arg = &pinned), 0);
    for (int i = 0; i < 200; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, endless_yield), 0);
    all_kinds_get_through();
    spawn_players(&table);
    all_kinds_get_through();
    end();
}

struct pins_one {
    BLZ_FRAME;
    int64_t rc;
    blz_handle handle;
    blz_handle_join_op join;
};

BLZ_ASYNC(pins_one)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_WITH((&(blz_spawn_args){.handle = &self->handle, .pinned = true}), yields,
                              .times = 20, .value = 7);
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    check(self->rc == 0);
    BLZ_END(self->handle.result);
}

static void a_pinned_task_gets_its_turn_too(void **state)
{
    struct table table = {.turn = 0};

    (void)state;
    begin();
    spawn_players(&table);
    for (int i = 0; i < 300; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, endless_yield), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, pins_one), 7);
    end();
}

/* ---- how often ---- */

struct counts_turns {
    BLZ_FRAME;
    uint64_t *count;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(counts_turns)
{
    BLZ_BEGIN;
    while (!is_enough()) {
        __atomic_fetch_add(self->count, 1, __ATOMIC_RELAXED);
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
    }
    BLZ_END(0);
}

enum { COUNTERS = 20 };

/* All at once, so that none is ahead from the beginning. */
static int64_t spawn_counters(void *arg)
{
    uint64_t *counts = arg;

    for (int i = 0; i < COUNTERS; i++)
        check(BLZ_SPAWN(counts_turns, .count = &counts[i]) == 0);
    return 0;
}

static void yielding_tasks_take_turns(void **state)
{
    uint64_t counts[COUNTERS] = {0}, least = UINT64_MAX, most = 0;

    (void)state;
    begin();
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = spawn_counters, .arg = counts), 0);
    while (__atomic_load_n(&counts[0], __ATOMIC_RELAXED) < 2000)
        assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    end();
    for (int i = 0; i < COUNTERS; i++) {
        least = counts[i] < least ? counts[i] : least;
        most = counts[i] > most ? counts[i] : most;
    }
    assert_true(most <= least + 100);
}

static void a_larger_budget_lasts_longer(void **state)
{
    static const unsigned budgets[] = {1, 10, 1000};

    (void)state;
    for (int i = 0; i < 3; i++) {
        blz_stats stats;
        __atomic_store_n(&enough, false, __ATOMIC_RELAXED);
        rt = new_rt(
            &(blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER, .budget = budgets[i]});
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, endless_ready), 0);
        assert_true(blz_rt_turn(rt) > 0);
        blz_rt_stats(rt, &stats);
        assert_int_equal(stats.total.budget_yields, stats.total.polls);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_yielding_task_lets_others_run),
        TEST(many_yielding_tasks_let_others_run),
        TEST(a_task_that_is_always_ready_lets_others_run),
        TEST(tasks_that_wake_each_other_let_others_run),
        TEST(tasks_that_wake_each_other_let_yielding_tasks_run),
        TEST(pinned_and_yielding_tasks_let_others_run),
        TEST(a_pinned_task_gets_its_turn_too),
        TEST(yielding_tasks_take_turns),
        TEST(a_larger_budget_lasts_longer),
    };
    return RUN_TESTS(tests);
}
