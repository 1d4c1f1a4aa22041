/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combinators in branches of others: a wake goes all the way down to the leaf that it is for, and
 * nowhere else. Hand-written futures in between, shields, force, and what real futures do.
 */
#include "crowd.h"

static blz_rt *rt;

/* Counts the polls of what is in it. */
struct counted {
    blz_future future;
    int polls;
};

static blz_poll counted_poll(blz_future *future, blz_cx *cx)
{
    struct counted *self = (struct counted *)future;

    self->polls++;
    if (blz_is_pending(future->child->ops->poll(future->child, cx)))
        return BLZ_PENDING;
    return blz_future_done(future, future->child->result);
}

static const blz_future_ops counted_ops = {.name = "counted", .poll = counted_poll};

static blz_future *count_in(struct counted *self, blz_future *inner)
{
    self->future = (blz_future){.ops = &counted_ops,
                                .child = inner,
                                .flags = inner->flags & BLZ_FUTURE_ALWAYS};
    return &self->future;
}

/* ---- exactly the way to the leaf ---- */

enum { SIDES = 3, TWIGS = 2, LEAVES = SIDES * TWIGS };

struct tree {
    BLZ_FRAME;
    struct leaf *leaves;
    struct counted *sides;
    int64_t rc;
    blz_select_op select[SIDES];
    blz_join_op join;
};

static blz_future *make_side(struct tree *self, int i)
{
    return count_in(&self->sides[i],
                    blz_select(&self->select[i], make_leaf(&self->leaves[TWIGS * i]),
                               make_leaf(&self->leaves[TWIGS * i + 1])));
}

BLZ_ASYNC(tree)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc,
              blz_join(&self->join, make_side(self, 0), make_side(self, 1), make_side(self, 2)));
    BLZ_END(self->rc);
}

static void a_wake_finds_its_way_through_two_combinators(void **state)
{
    struct leaf leaves[LEAVES] = {0};
    struct counted sides[SIDES] = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, tree, .leaves = leaves, .sides = sides), 0);
    turn_all(rt);
    for (int i = 0; i < LEAVES; i++) {
        forget_polls(leaves, LEAVES);
        for (int j = 0; j < SIDES; j++)
            sides[j].polls = 0;
        nudge(&leaves[i]);
        turn_all(rt);
        assert_int_equal(leaves[i].polls, 1);
        assert_int_equal(count_polls(leaves, LEAVES), 1);
        for (int j = 0; j < SIDES; j++)
            assert_int_equal(sides[j].polls, j == i / TWIGS);
    }
    for (int i = 0; i < SIDES; i++)
        make_ready(&leaves[TWIGS * i + i % TWIGS], 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    end_quietly(rt);
}

/* ---- one select after the other, in a branch ---- */

enum { ROUNDS = 100 };

struct looper {
    BLZ_FRAME;
    struct leaf *leaves; /* TWIGS */
    int polls, round;
    int64_t rc;
    blz_select_op select;
};

BLZ_ASYNC(looper)
{
    BLZ_BEGIN;
    for (self->round = 0; self->round < ROUNDS; self->round++) {
        self->leaves[0].ready = self->leaves[1].ready = false;
        BLZ_AWAIT(self->rc, blz_select(&self->select, make_leaf(&self->leaves[0]),
                                       make_leaf(&self->leaves[1])));
    }
    BLZ_END(0);
}

struct loopers {
    BLZ_FRAME;
    struct leaf *leaves;
    struct counted *sides;
    int64_t rc;
    struct looper loops[SIDES];
    blz_join_op join;
};

static blz_future *make_looper(struct loopers *self, int i)
{
    return count_in(&self->sides[i],
                    BLZ_FUTURE(self->loops[i], looper, .leaves = &self->leaves[TWIGS * i]));
}

BLZ_ASYNC(loopers)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_join(&self->join, make_looper(self, 0), make_looper(self, 1),
                                 make_looper(self, 2)));
    BLZ_END(self->rc);
}

static void selects_that_come_and_go_in_a_branch_concern_it_alone(void **state)
{
    struct leaf leaves[LEAVES] = {0};
    struct counted sides[SIDES] = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, loopers, .leaves = leaves, .sides = sides), 0);
    turn_all(rt);
    for (int i = 0; i < SIDES * ROUNDS; i++) {
        int side = i % SIDES;

        forget_polls(leaves, LEAVES);
        for (int j = 0; j < SIDES; j++)
            sides[j].polls = 0;
        make_ready(&leaves[TWIGS * side + i % TWIGS], 0);
        turn_all(rt);
        for (int j = 0; j < SIDES; j++) {
            assert_int_equal(sides[j].polls, j == side);
            assert_true(j == side || count_polls(&leaves[TWIGS * j], TWIGS) == 0);
        }
    }
    assert_int_equal(result_of(&handle), 0);
    end_quietly(rt);
}

/* ---- more branches than groups ---- */

enum { WIDE = 32 };

struct wide {
    BLZ_FRAME;
    struct leaf *leaves; /* two for each */
    int64_t rc;
    blz_join_op inner[WIDE], join;
    blz_future *branches[WIDE];
};

static blz_future *make_wide(struct wide *self)
{
    for (int i = 0; i < WIDE; i++)
        self->branches[i] = blz_join(&self->inner[i], make_leaf(&self->leaves[2 * i]),
                                     make_leaf(&self->leaves[2 * i + 1]));
    return blz_join_array(&self->join, self->branches, WIDE);
}

BLZ_ASYNC(wide)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, make_wide(self));
    BLZ_END(self->rc);
}

static void without_groups_a_combinator_polls_all_of_its_branches(void **state)
{
    struct leaf leaves[2 * WIDE] = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, wide, .leaves = leaves), 0);
    turn_all(rt);
    for (int i = 0; i < 2 * WIDE; i++) {
        forget_polls(leaves, 2 * WIDE);
        nudge(&leaves[i]);
        turn_all(rt);
        assert_int_equal(leaves[i].polls, 1);
        assert_int_equal(leaves[i ^ 1].polls, 1);
        assert_int_equal(count_polls(leaves, 2 * WIDE), 2);
    }
    for (int i = 0; i < 2 * WIDE; i++) {
        assert_false(blz_handle_done(&handle));
        make_ready(&leaves[(i * 7) % (2 * WIDE)], 0);
        turn_all(rt);
    }
    assert_int_equal(result_of(&handle), 0);
    end_quietly(rt);
}

/* ---- hand-written futures around combinators ---- */

/* Two children, polled in turn at every poll, and made anew as often as it says. */
struct pair {
    blz_future future;
    struct leaf *leaves; /* four for each */
    blz_select_op select[2];
    int left[2];
    int sizes[2]; /* branches in the next round */
};

static blz_future *make_half(struct pair *self, int i)
{
    struct leaf *leaves = &self->leaves[4 * i];

    for (int j = 0; j < 4; j++)
        leaves[j].ready = false;
    self->sizes[i] = self->sizes[i] == 2 ? 4 : 2; /* so that the groups of both overlap */
    if (self->sizes[i] == 2)
        return blz_select(&self->select[i], make_leaf(&leaves[0]), make_leaf(&leaves[1]));
    return blz_select(&self->select[i], make_leaf(&leaves[0]), make_leaf(&leaves[1]),
                      make_leaf(&leaves[2]), make_leaf(&leaves[3]));
}

static blz_poll pair_poll(blz_future *future, blz_cx *cx)
{
    struct pair *self = (struct pair *)future;

    for (int i = 0; i < 2; i++) {
        blz_future *half = &self->select[i].future;

        if (self->left[i] == 0 || blz_is_pending(half->ops->poll(half, cx)))
            continue;
        if (--self->left[i] > 0) {
            half = make_half(self, i);
            (void)half->ops->poll(half, cx); /* it never is ready at once */
        }
    }
    if (self->left[0] || self->left[1])
        return BLZ_PENDING;
    return blz_future_done(future, 0);
}

static const blz_future_ops pair_ops = {.name = "pair", .poll = pair_poll};

struct has_pair {
    BLZ_FRAME;
    struct pair *pair;
    int64_t rc;
};

static blz_future *make_pair(struct pair *pair)
{
    pair->future = (blz_future){.ops = &pair_ops};
    make_half(pair, 0);
    make_half(pair, 1);
    return &pair->future;
}

BLZ_ASYNC(has_pair)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, make_pair(self->pair));
    BLZ_END(self->rc);
}

static void combinators_side_by_side_do_not_take_each_others_wakes(void **state)
{
    struct leaf leaves[8] = {0};
    struct pair pair = {.leaves = leaves, .left = {60, 60}, .sizes = {2, 4}};
    uint64_t seed = 7;
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, has_pair, .pair = &pair), 0);
    turn_all(rt);
    while (pair.left[0] || pair.left[1]) {
        int half = (int)random_below(&seed, 2), before[2] = {pair.left[0], pair.left[1]};
        bool both = random_below(&seed, 3) == 0;

        for (int i = 0; i < 2; i++)
            if ((both || i == half) && pair.left[i])
                make_ready(&leaves[4 * i + (int)random_below(&seed, (uint32_t)pair.sizes[i])], 0);
        turn_all(rt);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pair.left[i], before[i] - (before[i] && (both || i == half)));
    }
    assert_int_equal(result_of(&handle), 0);
    end_quietly(rt);
}

/* Looks at its child only while it is open. */
struct throttle {
    blz_future future;
    blz_waker waker;
    bool open;
};

static blz_poll throttle_poll(blz_future *future, blz_cx *cx)
{
    struct throttle *self = (struct throttle *)future;

    if (!self->waker.ops)
        self->waker = blz_cx_waker(cx);
    if (!self->open || blz_is_pending(future->child->ops->poll(future->child, cx)))
        return BLZ_PENDING;
    blz_waker_drop(&self->waker);
    return blz_future_done(future, future->child->result);
}

static const blz_future_ops throttle_ops = {.name = "throttle", .poll = throttle_poll};

struct throttled {
    BLZ_FRAME;
    struct throttle *throttle;
    struct leaf *leaves; /* three */
    int64_t rc;
    blz_select_op inner, outer;
};

static blz_future *make_throttled(struct throttled *self)
{
    self->throttle->future = (blz_future){
        .ops = &throttle_ops,
        .child = blz_select(&self->inner, make_leaf(&self->leaves[0]), make_leaf(&self->leaves[1])),
        .flags = BLZ_FUTURE_ALWAYS,
    };
    return blz_select(&self->outer, &self->throttle->future, make_leaf(&self->leaves[2]));
}

BLZ_ASYNC(throttled)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, make_throttled(self));
    BLZ_END(self->rc);
}

static void a_wake_that_is_not_looked_at_yet_is_kept(void **state)
{
    struct leaf leaves[3] = {0};
    struct throttle throttle = {.open = true};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, throttled, .throttle = &throttle, .leaves = leaves),
                     0);
    turn_all(rt);
    throttle.open = false;
    make_ready(&leaves[1], 5);
    turn_all(rt);
    nudge(&leaves[2]);
    turn_all(rt);
    assert_int_equal(leaves[1].polls, 1);
    throttle.open = true;
    blz_waker_wake(&throttle.waker);
    turn_all(rt);
    assert_int_equal(leaves[1].polls, 2);
    assert_int_equal(result_of(&handle), 0);
    assert_int_equal(leaves[1].future.result, 5);
    end_quietly(rt);
}

/* ---- shields and force ---- */

/* Its cleanup needs a message. */
struct tidy {
    BLZ_FRAME;
    struct leaf *leaf;
    struct event *started; /* or NULL */
    int64_t rc, cleanup;
    blz_future op;
};

BLZ_ASYNC(tidy)
{
    BLZ_BEGIN;
    if (self->started)
        event_post(self->started);
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    BLZ_AWAIT_SHIELDED(self->cleanup, make_leaf(self->leaf));
    BLZ_AWAIT(self->rc, blz_pending(&self->op)); /* refused */
    BLZ_END(self->rc);
}

struct tidies {
    BLZ_FRAME;
    struct leaf *leaves; /* two of the tidy, one more */
    struct event *started;
    int64_t rc;
    struct tidy tidy[2];
    blz_select_op select;
};

static blz_future *make_tidy(struct tidies *self, int i)
{
    return BLZ_FUTURE(self->tidy[i], tidy, .leaf = &self->leaves[i], .started = self->started);
}

BLZ_ASYNC(tidies)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_select(&self->select, make_tidy(self, 0), make_tidy(self, 1),
                                   make_leaf(&self->leaves[2])));
    BLZ_END(self->rc);
}

static void losers_may_take_their_time_behind_a_shield(void **state)
{
    struct leaf leaves[3] = {0};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, tidies, .leaves = leaves), 0);
    turn_all(rt);
    make_ready(&leaves[2], 0);
    turn_all(rt);
    assert_int_equal(leaves[0].polls, 1);
    make_ready(&leaves[1], 0);
    turn_all(rt);
    assert_int_equal(leaves[0].polls, 1);
    assert_int_equal(leaves[0].cancels + leaves[1].cancels, 0);
    assert_false(blz_handle_done(&handle));
    make_ready(&leaves[0], 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 2);
    end_quietly(rt);
}

static void force_reaches_shielded_branches(void **state)
{
    struct event started = EVENT_INIT, cleanup = EVENT_INIT;
    struct leaf leaves[3] = {{.waits = &cleanup}, {.waits = &cleanup}};
    blz_handle handle;
    int rc;

    (void)state;
    rt = new_rt(&(blz_options){.workers = 1});
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, tidies, .leaves = leaves, .started = &started), 0);
    event_wait(&started, 2);
    blz_handle_cancel(&handle);
    event_wait(&cleanup, 2); /* what has not begun when force comes is not begun at all */
    /* The leaves are never ready: what ends the cleanup is the force phase. */
    while ((rc = blz_rt_shutdown(rt, 5 * BLZ_MSEC)) == -ETIMEDOUT)
        ;
    assert_int_equal(rc, 0);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, -ECANCELED);
    assert_int_equal(leaves[0].cancels, 1);
    assert_int_equal(leaves[1].cancels, 1);
    free_rt(rt);
}

/* ---- what is awaited in real life ---- */

struct office {
    BLZ_FRAME;
    struct gate *gates; /* two */
    int64_t rc, ticks;
    blz_handle handles[2];
    blz_handle_join_op waits[2];
    blz_interval beat;
    blz_sleep_op nap;
    blz_timeout limit;
    blz_join_op join;
    blz_select_op select;
};

BLZ_ASYNC(office)
{
    BLZ_BEGIN;
    check(BLZ_SPAWN_JOIN(&self->handles[0], enters, .gate = &self->gates[0]) == 0);
    check(BLZ_SPAWN_JOIN(&self->handles[1], enters, .gate = &self->gates[1]) == 0);
    check(blz_interval_init(&self->beat, at_ms(10), 10 * MS, BLZ_INTERVAL_SKIP) == 0);
    do {
        BLZ_AWAIT(self->rc,
                  blz_select(&self->select, blz_interval_tick(&self->beat),
                             blz_join(&self->join,
                                      blz_handle_join(&self->waits[0], &self->handles[0]),
                                      blz_with_timeout(&self->limit, BLZ_SEC,
                                                       blz_handle_join(&self->waits[1],
                                                                       &self->handles[1])))));
        self->ticks += self->rc == 0;
    } while (self->rc == 0);
    BLZ_END(1000 * self->handles[0].result + 100 * self->handles[1].result + self->ticks);
}

static void timers_limits_and_joins_are_branches(void **state)
{
    struct gate gates[2] = {GATE_INIT, GATE_INIT};
    blz_handle handle;

    (void)state;
    rt = new_clock_rt(true);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, office, .gates = gates), 0);
    turn_all(rt);
    advance(rt, 10 * MS);
    advance(rt, 10 * MS);
    gate_open(&gates[0], 3);
    gate_open(&gates[1], 4);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 3402);
    end_quietly(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wake_finds_its_way_through_two_combinators),
        TEST(selects_that_come_and_go_in_a_branch_concern_it_alone),
        TEST(without_groups_a_combinator_polls_all_of_its_branches),
        TEST(combinators_side_by_side_do_not_take_each_others_wakes),
        TEST(a_wake_that_is_not_looked_at_yet_is_kept),
        TEST(losers_may_take_their_time_behind_a_shield),
        TEST(force_reaches_shielded_branches),
        TEST(timers_limits_and_joins_are_branches),
    };
    return RUN_TESTS(tests);
}
