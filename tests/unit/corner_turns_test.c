/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Corners where two rules meet, about whose turn it is: joins in place and everybody else, crowds
 * that yield, options of one. The tests count polls; none of them looks at a clock.
 */
#include "harness.h"

#include "sched/rt.h"

#include <sched.h>

/* ---- joins in place ---- */

enum { FAN = 100, LEAVES = FAN * FAN, SOON = 500, INTERVAL = 20 };

struct level {
    BLZ_FRAME;
    int depth;
    int64_t *leaves;
    int i;
    int64_t rc;
    blz_handle handle;
    blz_handle_join_op join;
};
BLZ_DECLARE(level);

/* A tree of tasks, each of which can run in place. */
BLZ_ASYNC(level)
{
    BLZ_BEGIN;
    if (self->depth == 0)
        ++*self->leaves;
    for (; self->depth > 0 && self->i < FAN; self->i++) {
        self->rc =
            BLZ_SPAWN_JOIN(&self->handle, level, .depth = self->depth - 1, .leaves = self->leaves);
        check(self->rc == 0);
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
        check(self->rc == 0);
    }
    BLZ_END(0);
}

struct copies {
    BLZ_FRAME;
    int64_t *from, *to;
};

/* Notes how far a counter is when it runs. */
BLZ_ASYNC(copies)
{
    BLZ_BEGIN;
    *self->to = *self->from;
    BLZ_END(0);
}

struct tree {
    blz_rt *rt;
    bool from_outside;
    int64_t leaves, leaves_before;
    blz_stats stats;
};

static void *spawn_copies(void *arg)
{
    struct tree *tree = arg;

    check(BLZ_SPAWN_ON(tree->rt, NULL, copies, .from = &tree->leaves, .to = &tree->leaves_before) ==
          0);
    return NULL;
}

struct grows {
    BLZ_FRAME;
    struct tree *tree;
    int64_t rc;
    blz_handle handle;
    blz_handle_join_op join;
};

/* Another task waits in the ring or in the inject queue when the tree begins to grow. */
BLZ_ASYNC(grows)
{
    BLZ_BEGIN;
    if (self->tree->from_outside)
        join_thread(start_thread(spawn_copies, self->tree));
    else
        spawn_copies(self->tree);
    self->rc = BLZ_SPAWN_JOIN(&self->handle, level, .depth = 2, .leaves = &self->tree->leaves);
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    blz_rt_stats(self->tree->rt, &self->tree->stats);
    BLZ_END(self->rc);
}

static struct tree grow(bool from_outside)
{
    struct tree tree = {.from_outside = from_outside, .leaves_before = -1};

    tree.rt = new_rt(&(blz_options){.workers = 1,
                                    .watchdog_ns = BLZ_NEVER,
                                    .inject_interval = INTERVAL,
                                    .event_interval = INTERVAL});
    assert_int_equal(BLZ_BLOCK_ON(tree.rt, grows, .tree = &tree), 0);
    free_rt(tree.rt);
    assert_int_equal(tree.leaves, LEAVES);
    assert_true(tree.stats.total.inline_joins > LEAVES / 2);
    return tree;
}

static void joins_in_place_let_the_ring_have_its_turn(void **state)
{
    (void)state;
    assert_in_range(grow(false).leaves_before, 0, SOON);
}

static void joins_in_place_let_the_inject_queue_have_its_turn(void **state)
{
    (void)state;
    assert_in_range(grow(true).leaves_before, 0, SOON);
}

static void joins_in_place_count_towards_the_next_maintenance(void **state)
{
    struct tree tree = grow(false);

    (void)state;
    assert_true(tree.stats.total.maintenances >= tree.stats.total.polls / INTERVAL / 2);
}

struct spends_all {
    BLZ_FRAME;
};

BLZ_ASYNC(spends_all)
{
    BLZ_BEGIN;
    while (cx->budget > 0)
        check(blz_coop_take(cx));
    BLZ_END(0);
}

struct pays {
    BLZ_FRAME;
    uint32_t left;
    int64_t rc;
    blz_handle handle;
    blz_handle_join_op join;
};

BLZ_ASYNC(pays)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_JOIN(&self->handle, spends_all);
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    check(self->rc == 0);
    self->left = cx->budget;
    BLZ_END(self->left);
}

static void a_join_in_place_is_paid_from_the_joiners_budget(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;
    blz_stats stats;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, give), 0);
    turn_all(rt);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, pays), 0);
    turn_all(rt);
    blz_rt_stats(rt, &stats);
    assert_int_equal(stats.total.inline_joins, 1);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 0);
    free_rt(rt);
}

/* ---- many that yield ---- */

enum { PATIENCE = 20000 };

static struct {
    uint64_t polls; /* of those that yield; atomic */
    int ran;        /* of those that came late */
} crowded;

static uint64_t crowd_polls(void)
{
    return __atomic_load_n(&crowded.polls, __ATOMIC_RELAXED);
}

static int64_t note_run(void *arg)
{
    ++*(int *)arg;
    return 0;
}

struct crowd {
    BLZ_FRAME;
    int yielding, pinned_yielding;
    int late, pinned_late;
    uint64_t limit;
    int64_t rc;
    blz_future op;
};

/* When all others yield already, a few more come: how many of those run before long? */
BLZ_ASYNC(crowd)
{
    BLZ_BEGIN;
    for (int i = 0; i < self->yielding; i++)
        check(BLZ_SPAWN(yields, .times = INT32_MAX, .count = &crowded.polls) == 0);
    for (int i = 0; i < self->pinned_yielding; i++)
        check(BLZ_SPAWN_PINNED(NULL, yields, .times = INT32_MAX, .count = &crowded.polls) == 0);
    self->limit = 2 * (uint64_t)(self->yielding + self->pinned_yielding);
    while (crowd_polls() < self->limit)
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
    for (int i = 0; i < self->late; i++)
        check(BLZ_SPAWN(calls, .fn = note_run, .arg = &crowded.ran) == 0);
    for (int i = 0; i < self->pinned_late; i++)
        check(BLZ_SPAWN_PINNED(NULL, calls, .fn = note_run, .arg = &crowded.ran) == 0);
    self->limit = crowd_polls() + PATIENCE;
    while (crowd_polls() < self->limit && crowded.ran < self->late + self->pinned_late)
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
    BLZ_END(crowded.ran);
}

static void late_tasks_run(int yielding, int pinned_yielding, int late, int pinned_late,
                           unsigned event_interval)
{
    blz_rt *rt = new_rt(
        &(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER, .event_interval = event_interval});

    memset(&crowded, 0, sizeof crowded);
    assert_int_equal(BLZ_BLOCK_ON(rt, crowd, .yielding = yielding,
                                  .pinned_yielding = pinned_yielding, .late = late,
                                  .pinned_late = pinned_late),
                     late + pinned_late);
    free_rt(rt);
}

static void a_pinned_task_is_not_starved_by_yielding_ones(void **state)
{
    (void)state;
    late_tasks_run(500, 0, 0, 3, 0);
}

static void a_pinned_task_is_not_starved_where_each_poll_ends_with_maintenance(void **state)
{
    (void)state;
    late_tasks_run(3, 0, 0, 3, 1);
}

static void tasks_of_the_ring_are_not_starved_by_pinned_yielding_ones(void **state)
{
    (void)state;
    late_tasks_run(0, 500, 40, 0, 0);
    late_tasks_run(0, 3, 40, 0, 1);
}

/* ---- options of one ---- */

struct mixes {
    BLZ_FRAME;
    int i;
    int64_t rc;
    blz_future op;
    blz_scope scope;
    blz_scope_op scope_wait;
    blz_handle handle;
    blz_handle_join_op join;
    blz_oneshot channel;
    blz_oneshot_op wait;
    int64_t leaves, value;
};

/* A little of everything. */
BLZ_ASYNC(mixes)
{
    BLZ_BEGIN;
    for (; self->i < 20; self->i++) {
        blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
        for (int i = 0; i < 10; i++)
            check(BLZ_SCOPE_SPAWN(&self->scope, yields, .times = 5) == 0);
        self->rc = BLZ_SPAWN_PINNED(&self->handle, yields, .times = 5, .value = 3);
        check(self->rc == 0);
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
        check(self->rc == 0 && self->handle.result == 3);
        blz_oneshot_init(&self->channel);
        check(blz_oneshot_send(&self->channel, self->i) == 0);
        BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, &self->channel, &self->value));
        check(self->rc == 0 && self->value == self->i);
        BLZ_AWAIT(self->rc, blz_scope_join(&self->scope_wait, &self->scope));
        check(self->rc == 0);
    }
    self->rc = BLZ_SPAWN_JOIN(&self->handle, level, .depth = 1, .leaves = &self->leaves);
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    check(self->rc == 0);
    BLZ_END(self->leaves);
}

static void options_of_one_work_alone_and_together(void **state)
{
    static const blz_options all[] = {
        {.watchdog_ns = 1},
        {.watchdog_ns = BLZ_NEVER, .inject_interval = 1},
        {.watchdog_ns = BLZ_NEVER, .budget = 1},
        {.watchdog_ns = BLZ_NEVER, .event_interval = 1},
        {.watchdog_ns = 1, .inject_interval = 1, .budget = 1, .event_interval = 1},
    };

    (void)state;
    for (unsigned i = 0; i < 2 * sizeof all / sizeof all[0]; i++) {
        blz_options options = all[i / 2];
        options.workers = 1 + i % 2;
        blz_rt *rt = new_rt(&options);
        blz_handle handles[4];
        for (int j = 0; j < 4; j++)
            assert_int_equal(BLZ_SPAWN_ON(rt, &handles[j], mixes), 0);
        for (int j = 0; j < 4; j++) {
            assert_int_equal(blz_handle_wait(&handles[j]), 0);
            assert_int_equal(handles[j].result, FAN);
        }
        free_rt(rt);
    }
}

static void the_watchdog_does_not_look_all_the_time(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .watchdog_ns = 1});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    assert_true(rt->watchdog.limit_ns >= BLZ_MSEC);
    free_rt(rt);
}

enum { CHAIN = 20000 };

struct chain {
    blz_rt *rt;
    int64_t links, links_before;
    struct event ended;
};

/* A callback is no task: what it spawns goes through the inject queue, which is never empty so. */
static void spawn_next(int64_t result, void *arg)
{
    struct chain *chain = arg;
    blz_handle handle;

    check(result == 0);
    if (++chain->links == CHAIN) {
        event_post(&chain->ended);
        return;
    }
    check(BLZ_SPAWN_ON(chain->rt, &handle, give) == 0);
    check(blz_task_on_done(&handle, spawn_next, chain) == 0);
}

/* One task waits in the ring when the chain begins. */
static int64_t begin_chain(void *arg)
{
    struct chain *chain = arg;
    blz_handle handle;

    check(BLZ_SPAWN(copies, .from = &chain->links, .to = &chain->links_before) == 0);
    check(BLZ_SPAWN_JOIN(&handle, give) == 0);
    check(blz_task_on_done(&handle, spawn_next, chain) == 0);
    return 0;
}

static void an_inject_interval_of_one_lets_other_tasks_run(void **state)
{
    struct chain chain = {.links_before = -1, .ended = EVENT_INIT};

    (void)state;
    chain.rt = new_rt(&(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER, .inject_interval = 1});
    assert_int_equal(BLZ_BLOCK_ON(chain.rt, calls, .fn = begin_chain, .arg = &chain), 0);
    event_wait(&chain.ended, 1);
    free_rt(chain.rt);
    assert_in_range(chain.links_before, 0, SOON);
}

/* ---- two that take turns ---- */

struct takes_turns {
    BLZ_FRAME;
    blz_notify *mine, *other;
    int left;
    int64_t rc;
    blz_notify_op op;
};

BLZ_ASYNC(takes_turns)
{
    BLZ_BEGIN;
    for (; self->left > 0; self->left--) {
        BLZ_AWAIT(self->rc, blz_notify_await(&self->op, self->mine));
        blz_notify_one(self->other);
    }
    BLZ_END(0);
}

/* In the ring, each of them would be there to be stolen. */
static void two_that_take_turns_keep_the_lifo_slot_while_they_are_alone(void **state)
{
    blz_notify ping = BLZ_NOTIFY_INIT, pong = BLZ_NOTIFY_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_stats before, after;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, takes_turns, .mine = &ping, .other = &pong,
                                  .left = 500),
                     0);
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, takes_turns, .mine = &pong, .other = &ping,
                                  .left = 500),
                     0);
    turn_all(rt);
    blz_rt_stats(rt, &before);
    blz_notify_one(&ping);
    turn_all(rt);
    blz_rt_stats(rt, &after);
    assert_true(after.total.polls - before.total.polls >= 1000);
    assert_true(after.total.lifo_hits - before.total.lifo_hits >= 950);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(joins_in_place_let_the_ring_have_its_turn),
        TEST(joins_in_place_let_the_inject_queue_have_its_turn),
        TEST(joins_in_place_count_towards_the_next_maintenance),
        TEST(a_join_in_place_is_paid_from_the_joiners_budget),
        TEST(a_pinned_task_is_not_starved_by_yielding_ones),
        TEST(a_pinned_task_is_not_starved_where_each_poll_ends_with_maintenance),
        TEST(tasks_of_the_ring_are_not_starved_by_pinned_yielding_ones),
        TEST(options_of_one_work_alone_and_together),
        TEST(the_watchdog_does_not_look_all_the_time),
        TEST(an_inject_interval_of_one_lets_other_tasks_run),
        TEST(two_that_take_turns_keep_the_lifo_slot_while_they_are_alone),
    };
    return RUN_TESTS(tests);
}
