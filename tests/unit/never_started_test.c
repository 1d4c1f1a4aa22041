/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function that takes over a resource, and the caller that learns whether it ever began: exactly
 * one of them gives the resource back, whenever the task is cancelled.
 */
#include "clock_rt.h"

#include <errno.h>

/* ---- a callee that owns what it is given ---- */

static int given_back; /* by the callee, or by its caller */
static bool by_caller;

struct owner {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(owner)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    given_back++;
    BLZ_END(self->rc);
}

static void keep_or_give_back(const blz_future *callee)
{
    by_caller = blz_never_started(callee);
    given_back += by_caller;
}

enum way { CALL, LIMIT, SELECT, JOIN, BOX };

struct caller {
    BLZ_FRAME;
    enum way way;
    int64_t rc;
    struct owner owner;
    blz_timeout limit;
    blz_select_op select;
    blz_join_op join;
    blz_box box;
    blz_future other;
    blz_sleep_op sleep;
};

/* Each way in a function of its own would be longer. */
BLZ_ASYNC(caller)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_sleep(&self->sleep, BLZ_SEC)); /* may be cancelled here */
    if (self->way == CALL)
        BLZ_CALL(self->rc, self->owner, owner);
    if (self->way == LIMIT)
        BLZ_AWAIT(self->rc,
                  blz_with_timeout(&self->limit, BLZ_HOUR, BLZ_FUTURE(self->owner, owner)));
    if (self->way == SELECT)
        BLZ_AWAIT(self->rc, blz_select(&self->select, blz_pending(&self->other),
                                       BLZ_FUTURE(self->owner, owner)));
    if (self->way == JOIN)
        BLZ_AWAIT(self->rc,
                  blz_join(&self->join,
                           blz_with_timeout(&self->limit, BLZ_HOUR, BLZ_FUTURE(self->owner, owner)),
                           blz_pending(&self->other)));
    if (self->way == BOX)
        BLZ_AWAIT(self->rc, BLZ_BOX(&self->box, owner));
    keep_or_give_back(self->way == BOX ? &self->box.future : &self->owner.blz_frame);
    BLZ_END(self->rc);
}

/* Cancels the caller before it calls, or while the callee waits. */
static void run_way(enum way way, bool begun)
{
    blz_rt *rt = new_clock_rt(true);
    blz_handle handle;

    given_back = 0;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, caller, .way = way), 0);
    turn_all(rt);
    if (begun)
        advance(rt, 2 * BLZ_SEC);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    assert_int_equal(given_back, 1);
    assert_int_equal(by_caller, !begun);
    free_rt(rt);
}

static void a_callee_that_is_refused_leaves_the_resource_to_its_caller(void **state)
{
    (void)state;
    run_way(CALL, false);
    run_way(CALL, true);
}

static void so_does_one_with_a_limit(void **state)
{
    (void)state;
    run_way(LIMIT, false);
    run_way(LIMIT, true);
}

static void so_does_a_branch(void **state)
{
    (void)state;
    run_way(SELECT, false);
    run_way(SELECT, true);
}

static void so_does_one_with_a_limit_in_a_branch(void **state)
{
    (void)state;
    run_way(JOIN, false);
    run_way(JOIN, true);
}

static void so_does_one_in_a_box(void **state)
{
    (void)state;
    run_way(BOX, false);
    run_way(BOX, true);
}

/* ---- those that end at once ---- */

struct ends {
    BLZ_FRAME;
};

BLZ_ASYNC(ends)
{
    BLZ_BEGIN;
    given_back++;
    BLZ_END(-ECANCELED);
}

struct calls_ends {
    BLZ_FRAME;
    int64_t rc;
    struct ends ends;
};

BLZ_ASYNC(calls_ends)
{
    BLZ_BEGIN;
    BLZ_CALL(self->rc, self->ends, ends);
    keep_or_give_back(&self->ends.blz_frame);
    BLZ_END(self->rc);
}

static void a_callee_whose_own_result_is_ecanceled_has_started(void **state)
{
    (void)state;
    given_back = 0;
    assert_int_equal(BLZ_RUN(calls_ends), -ECANCELED);
    assert_int_equal(given_back, 1);
    assert_false(by_caller);
}

static void a_box_without_memory_has_not_started(void **state)
{
    blz_box box;

    (void)state;
    assert_int_equal(blz_wait(BLZ_BOX(&box, ends)), -ENXIO); /* no runtime, so no memory of it */
    assert_true(blz_never_started(&box.future));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_callee_that_is_refused_leaves_the_resource_to_its_caller),
        TEST(so_does_one_with_a_limit),
        TEST(so_does_a_branch),
        TEST(so_does_one_with_a_limit_in_a_branch),
        TEST(so_does_one_in_a_box),
        TEST(a_callee_whose_own_result_is_ecanceled_has_started),
        TEST(a_box_without_memory_has_not_started),
    };

    return RUN_TESTS(tests);
}
