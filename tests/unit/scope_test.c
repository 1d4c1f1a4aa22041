/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes: joined, failing fast, cancelled from within and from above, and taken child by child. */
#include "harness.h"

static blz_rt *rt;

static int64_t result_of(blz_handle *handle)
{
    assert_true(blz_handle_done(handle));
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

/* ---- joining ---- */

struct joins_all {
    BLZ_FRAME;
    int children, times, policy;
    uint64_t *count;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
};

BLZ_ASYNC(joins_all)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, self->policy);
    for (int i = 0; i < self->children; i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, yields, .times = self->times, .count = self->count) ==
              0);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    check(blz_scope_live(&self->scope) == 0);
    BLZ_END(self->rc);
}

static void a_join_waits_for_all_children(void **state)
{
    uint64_t count = 0;

    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    assert_int_equal(BLZ_BLOCK_ON(rt, joins_all, .children = 1000, .times = 3, .count = &count), 0);
    assert_int_equal(count, 3000);
    free_rt(rt);
}

static void a_scope_without_children_joins_at_once(void **state)
{
    (void)state;
    rt = new_embedded_rt();
    blz_handle handle;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, joins_all), 0);
    assert_int_equal(turn_all(rt), 1);
    assert_int_equal(result_of(&handle), 0);
    free_rt(rt);
}

struct joins_twice {
    BLZ_FRAME;
    int round;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
};

BLZ_ASYNC(joins_twice)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (self->round = 0; self->round < 3; self->round++) {
        check(BLZ_SCOPE_SPAWN(&self->scope, yields, .times = 2) == 0);
        check(blz_scope_live(&self->scope) == 1);
        BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
        check(self->rc == 0);
    }
    BLZ_END(0);
}

static void a_scope_may_be_filled_again_after_its_join(void **state)
{
    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    assert_int_equal(BLZ_BLOCK_ON(rt, joins_twice), 0);
    free_rt(rt);
}

/* ---- failing ---- */

struct has_failures {
    BLZ_FRAME;
    int policy;
    int64_t first, second; /* results of two children that end at once, in this order */
    bool sleeper;          /* and a third that waits until it is cancelled */
    int64_t rc;
    blz_future op;
    blz_scope scope;
    blz_scope_op wait;
};

BLZ_ASYNC(has_failures)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, self->policy);
    if (self->sleeper)
        check(BLZ_SCOPE_SPAWN(&self->scope, sleeps) == 0);
    check(BLZ_SCOPE_SPAWN(&self->scope, give, .value = self->first) == 0);
    while (blz_scope_live(&self->scope) > (self->sleeper ? 1 : 0))
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
    check(BLZ_SCOPE_SPAWN(&self->scope, give, .value = self->second) == 0);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(self->rc);
}

static void a_join_gives_the_first_failure(void **state)
{
    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    assert_int_equal(BLZ_BLOCK_ON(rt, has_failures, .first = -EIO, .second = -EPERM), -EIO);
    assert_int_equal(BLZ_BLOCK_ON(rt, has_failures, .first = 5, .second = -EPERM), -EPERM);
    assert_int_equal(BLZ_BLOCK_ON(rt, has_failures, .first = 5, .second = 6), 0);
    free_rt(rt);
}

static void failing_fast_cancels_the_other_children(void **state)
{
    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    assert_int_equal(BLZ_BLOCK_ON(rt, has_failures, .policy = BLZ_SCOPE_FAIL_FAST, .first = 0,
                                  .second = -EIO, .sleeper = true),
                     -EIO);
    assert_int_equal(BLZ_BLOCK_ON(rt, has_failures, .policy = BLZ_SCOPE_FAIL_FAST, .first = -EIO,
                                  .second = 0, .sleeper = true),
                     -EIO);
    free_rt(rt);
}

struct collects {
    BLZ_FRAME;
    struct gate *gate;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
};

BLZ_ASYNC(collects)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    check(BLZ_SCOPE_SPAWN(&self->scope, enters, .gate = self->gate) == 0);
    check(BLZ_SCOPE_SPAWN(&self->scope, give, .value = -EIO) == 0);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(self->rc);
}

static void collecting_leaves_the_other_children_alone(void **state)
{
    struct gate gate = GATE_INIT;
    blz_handle handle;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, collects, .gate = &gate), 0);
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    assert_int_equal(event_count(&gate.arrived), 1);
    gate_open(&gate, 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -EIO);
    free_rt(rt);
}

/* ---- cancelling ---- */

struct cancels_scope {
    BLZ_FRAME;
    int before, after;
    int64_t rc;
    blz_future op;
    blz_scope scope;
    blz_scope_op wait;
};

/* Children spawned before and after the cancellation all end with it. */
BLZ_ASYNC(cancels_scope)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (int i = 0; i < self->before; i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, sleeps) == 0);
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    blz_scope_cancel(&self->scope);
    blz_scope_cancel(&self->scope);
    for (int i = 0; i < self->after; i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, sleeps) == 0);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    check(!blz_cancelled(cx));
    BLZ_END(self->rc);
}

static void cancelling_ends_the_children_but_not_the_parent(void **state)
{
    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    assert_int_equal(BLZ_BLOCK_ON(rt, cancels_scope, .before = 100), -ECANCELED);
    free_rt(rt);
}

static void children_of_a_cancelled_scope_are_born_cancelled(void **state)
{
    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    assert_int_equal(BLZ_BLOCK_ON(rt, cancels_scope, .before = 5, .after = 100), -ECANCELED);
    assert_int_equal(BLZ_BLOCK_ON(rt, cancels_scope, .after = 100), -ECANCELED);
    free_rt(rt);
}

struct child_cleans_up {
    BLZ_FRAME;
    struct gate *gate;
    int64_t rc;
    blz_future op;
    struct gate_wait enter;
};

BLZ_ASYNC(child_cleans_up)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    BLZ_AWAIT_SHIELDED(self->rc, gate_enter(&self->enter, self->gate));
    BLZ_END(self->rc);
}

struct parent {
    BLZ_FRAME;
    struct gate *gate;
    bool by_next;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
    blz_handle child;
};

BLZ_ASYNC(parent)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    check(BLZ_SCOPE_SPAWN(&self->scope, child_cleans_up, .gate = self->gate) == 0);
    check(BLZ_SCOPE_SPAWN(&self->scope, sleeps) == 0);
    if (self->by_next) {
        BLZ_AWAIT(self->rc, blz_scope_next(&self->wait, &self->scope, &self->child));
        check(self->rc == -ECANCELED && !self->child.task);
        check(blz_scope_live(&self->scope) == 2); /* they have not been told yet */
    }
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    check(blz_cancelled(cx));
    BLZ_END(self->rc);
}

static void cancel_parent(bool by_next)
{
    struct gate gate = GATE_INIT;
    blz_handle handle;

    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, parent, .gate = &gate, .by_next = by_next), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    /* One child has ended, the other cleans up: the parent still waits. */
    assert_false(blz_handle_done(&handle));
    gate_open(&gate, 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    free_rt(rt);
}

static void a_cancelled_parent_cancels_and_still_joins_its_children(void **state)
{
    (void)state;
    cancel_parent(false);
}

static void a_cancelled_parent_no_longer_takes_children_and_joins_them(void **state)
{
    (void)state;
    cancel_parent(true);
}

struct joins_late {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
    blz_scope scope;
    blz_scope_op wait;
};

BLZ_ASYNC(joins_late)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    check(BLZ_SCOPE_SPAWN(&self->scope, sleeps) == 0);
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    check(self->rc == -ECANCELED);
    /* We have been cancelled before the join: it is not refused, and tells the children. */
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(self->rc);
}

static void a_join_is_not_refused_in_a_cancelled_task(void **state)
{
    blz_handle handle;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, joins_late), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    free_rt(rt);
}

/* ---- one by one ---- */

enum { GATES = 5 };

struct takes {
    BLZ_FRAME;
    struct gate *gates;
    int64_t *order; /* of the results, as they came */
    int n;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
    blz_handle child;
};

BLZ_ASYNC(takes)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (int i = 0; i < GATES; i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, enters, .gate = &self->gates[i]) == 0);
    for (;;) {
        BLZ_AWAIT(self->rc, blz_scope_next(&self->wait, &self->scope, &self->child));
        if (self->rc != 1)
            break;
        check(blz_handle_done(&self->child));
        struct enters *frame = blz_handle_frame(&self->child);
        check(frame->rc == self->child.result);
        self->order[self->n++] = self->child.result;
        blz_handle_detach(&self->child);
    }
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(self->rc);
}

static void next_gives_children_in_the_order_in_which_they_end(void **state)
{
    struct gate gates[GATES] = {GATE_INIT, GATE_INIT, GATE_INIT, GATE_INIT, GATE_INIT};
    const int opened[GATES] = {3, 0, 4, 1, 2};
    int64_t order[GATES] = {0};
    blz_handle handle;

    (void)state;
    rt = new_embedded_rt();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, takes, .gates = gates, .order = order), 0);
    turn_all(rt);
    for (int i = 0; i < GATES; i++) {
        gate_open(&gates[opened[i]], opened[i]);
        if (i % 2)
            turn_all(rt); /* sometimes two have ended before the parent looks */
    }
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    for (int i = 0; i < GATES; i++)
        assert_int_equal(order[i], opened[i]);
    free_rt(rt);
}

struct leaves_some {
    BLZ_FRAME;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
    blz_handle child;
};

BLZ_ASYNC(leaves_some)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (int i = 0; i < 10; i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, yields, .times = i, .value = -1 - i) == 0);
    BLZ_AWAIT(self->rc, blz_scope_next(&self->wait, &self->scope, &self->child));
    check(self->rc == 1);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    check(self->rc < 0);
    blz_handle_detach(&self->child);
    BLZ_END(0);
}

static void a_join_takes_the_children_that_next_has_left(void **state)
{
    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    assert_int_equal(BLZ_BLOCK_ON(rt, leaves_some), 0);
    free_rt(rt);
}

/* ---- nested, and with tails ---- */

struct tree {
    BLZ_FRAME;
    int depth;
    uint64_t *leaves;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
};

BLZ_ASYNC(tree)
{
    BLZ_BEGIN;
    if (self->depth == 0) {
        __atomic_fetch_add(self->leaves, 1, __ATOMIC_RELAXED);
        goto out;
    }
    blz_scope_init(&self->scope, BLZ_SCOPE_FAIL_FAST);
    for (int i = 0; i < 3; i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, tree, .depth = self->depth - 1,
                              .leaves = self->leaves) == 0);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
out:
    BLZ_END(self->rc);
}

static void scopes_nest(void **state)
{
    uint64_t leaves = 0;

    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    assert_int_equal(BLZ_BLOCK_ON(rt, tree, .depth = 7, .leaves = &leaves), 0);
    assert_int_equal(leaves, 2187);
    free_rt(rt);
}

struct tailed {
    BLZ_FRAME;
    size_t len;
    int64_t rc;
    blz_future op;
    unsigned char tail[];
};

BLZ_ASYNC(tailed)
{
    BLZ_BEGIN;
    for (size_t i = 0; i < self->len; i++)
        self->tail[i] = (unsigned char)i;
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    for (size_t i = 0; i < self->len; i++)
        check(self->tail[i] == (unsigned char)i);
    BLZ_END(0);
}

struct spawns_tailed {
    BLZ_FRAME;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
};

BLZ_ASYNC(spawns_tailed)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_FAIL_FAST);
    for (size_t len = 0; len < 300; len++)
        check(BLZ_SCOPE_SPAWN(&self->scope, tailed, BLZ_TAIL(len), .len = len) == 0);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(self->rc);
}

static void a_childs_tail_does_not_touch_its_link(void **state)
{
    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    assert_int_equal(BLZ_BLOCK_ON(rt, spawns_tailed), 0);
    free_rt(rt);
}

/* ---- children that are freed when they end ---- */

enum { MANY_CHILDREN = 10000, AT_A_TIME = 10 };

struct discards {
    BLZ_FRAME;
    int spawned, policy;
    int64_t bytes, rc;
    blz_future op;
    blz_scope scope;
    blz_scope_op wait;
    blz_handle child;
};

/* Ten thousand children, of which at most ten live at a time, and no join in between. */
BLZ_ASYNC(discards)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, self->policy);
    while (self->spawned < MANY_CHILDREN) {
        for (int i = 0; i < AT_A_TIME; i++)
            check(BLZ_SCOPE_SPAWN(&self->scope, yields, .times = 1, .value = 7) == 0);
        while (blz_scope_live(&self->scope) > 0)
            BLZ_AWAIT(self->rc, blz_yield(&self->op));
        if (self->spawned == 0)
            self->bytes = memory_bytes(the_memory());
        self->spawned += AT_A_TIME;
    }
    self->bytes = memory_bytes(the_memory()) - self->bytes;
    BLZ_AWAIT(self->rc, blz_scope_next(&self->wait, &self->scope, &self->child));
    check(self->rc == 0 && !self->child.task);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(self->rc < 0 ? self->rc : self->bytes);
}

static void a_scope_that_discards_does_not_grow_with_the_children_that_have_ended(void **state)
{
    (void)state;
    rt = new_embedded_rt();
    blz_handle handle;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, discards, .policy = BLZ_SCOPE_DISCARD), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    free_rt(rt);
}

static void a_scope_that_discards_gives_the_first_failure(void **state)
{
    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    assert_int_equal(BLZ_BLOCK_ON(rt, has_failures, .policy = BLZ_SCOPE_DISCARD, .first = 5,
                                  .second = -EPERM),
                     -EPERM);
    assert_int_equal(BLZ_BLOCK_ON(rt, has_failures, .policy = BLZ_SCOPE_DISCARD, .first = -EIO,
                                  .second = -EPERM),
                     -EIO);
    assert_int_equal(BLZ_BLOCK_ON(rt, has_failures,
                                  .policy = BLZ_SCOPE_FAIL_FAST | BLZ_SCOPE_DISCARD, .first = 0,
                                  .second = -EIO, .sleeper = true),
                     -EIO);
    free_rt(rt);
}

static void a_join_waits_for_all_children_that_are_discarded(void **state)
{
    uint64_t count = 0;

    (void)state;
    rt = new_rt(&(blz_options){.workers = 2});
    assert_int_equal(BLZ_BLOCK_ON(rt, joins_all, .children = 1000, .times = 3, .count = &count,
                                  .policy = BLZ_SCOPE_DISCARD),
                     0);
    assert_int_equal(count, 3000);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_join_waits_for_all_children),
        TEST(a_scope_without_children_joins_at_once),
        TEST(a_scope_may_be_filled_again_after_its_join),
        TEST(a_join_gives_the_first_failure),
        TEST(failing_fast_cancels_the_other_children),
        TEST(collecting_leaves_the_other_children_alone),
        TEST(cancelling_ends_the_children_but_not_the_parent),
        TEST(children_of_a_cancelled_scope_are_born_cancelled),
        TEST(a_cancelled_parent_cancels_and_still_joins_its_children),
        TEST(a_cancelled_parent_no_longer_takes_children_and_joins_them),
        TEST(a_join_is_not_refused_in_a_cancelled_task),
        TEST(next_gives_children_in_the_order_in_which_they_end),
        TEST(a_join_takes_the_children_that_next_has_left),
        TEST(scopes_nest),
        TEST(a_childs_tail_does_not_touch_its_link),
        TEST(a_scope_that_discards_does_not_grow_with_the_children_that_have_ended),
        TEST(a_scope_that_discards_gives_the_first_failure),
        TEST(a_join_waits_for_all_children_that_are_discarded),
    };
    return RUN_TESTS(tests);
}
