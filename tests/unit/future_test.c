/* SPDX-License-Identifier: Apache-2.0 */
/* Cancel scopes, shields and the small futures, polled by hand: nothing here needs a runtime. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "probe.h"

/* ---- Ready, pending, yield, lazy ---- */

static void a_ready_future_is_ready_with_its_value(void **state)
{
    blz_future op;
    blz_cx cx = cx_for(blz_ready(&op, 42));

    (void)state;
    assert_true(blz_is_ready(poll_once(&op, &cx)));
    assert_int_equal(op.result, 42);
}

static void pending_is_not_ready_however_often_it_is_polled(void **state)
{
    blz_future op;
    blz_cx cx = cx_for(blz_pending(&op));

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(blz_is_pending(poll_once(&op, &cx)));
    assert_int_equal(cx.yielded, 0);
}

static void pending_ends_with_ecanceled_at_the_poll_after_a_cancel(void **state)
{
    blz_future op;
    blz_cx cx = cx_for(blz_pending(&op));

    (void)state;
    assert_true(blz_is_pending(poll_once(&op, &cx)));
    blz_future_cancel(&op, &cx);
    assert_true(blz_is_ready(poll_once(&op, &cx)));
    assert_int_equal(op.result, -ECANCELED);
}

static void pending_that_is_cancelled_before_its_first_poll_ends_too(void **state)
{
    blz_future op;
    blz_cx cx = cx_for(blz_pending(&op));

    (void)state;
    blz_future_cancel(&op, &cx);
    assert_true(blz_is_ready(poll_once(&op, &cx)));
    assert_int_equal(op.result, -ECANCELED);
}

static void a_yield_asks_for_another_poll_and_is_ready_then(void **state)
{
    blz_future op;
    blz_cx cx = cx_for(blz_yield(&op));

    (void)state;
    assert_true(blz_is_pending(poll_once(&op, &cx)));
    assert_int_equal(cx.yielded, 1);
    assert_true(blz_is_ready(poll_once(&op, &cx)));
    assert_int_equal(op.result, 0);
}

static void a_yield_needs_no_budget(void **state)
{
    blz_future op;
    blz_cx cx = cx_for(blz_yield(&op));

    (void)state;
    cx.budget = 0;
    assert_true(blz_is_pending(poll_once(&op, &cx)));
    assert_true(blz_is_ready(poll_once(&op, &cx)));
}

static void a_cancelled_yield_completes(void **state)
{
    blz_future op;
    blz_cx cx = cx_for(blz_yield(&op));

    (void)state;
    assert_true(blz_is_pending(poll_once(&op, &cx)));
    blz_future_cancel(&op, &cx);
    assert_true(blz_is_ready(poll_once(&op, &cx)));
    assert_int_equal(op.result, 0);
}

static int64_t count_call(void *arg)
{
    return ++*(int *)arg;
}

static void lazy_calls_its_function_at_the_first_poll(void **state)
{
    blz_lazy op;
    int calls = 0;
    blz_cx cx = cx_for(blz_lazy_init(&op, count_call, &calls));

    (void)state;
    assert_int_equal(calls, 0);
    assert_true(blz_is_ready(poll_once(&op.future, &cx)));
    assert_int_equal(calls, 1);
    assert_int_equal(op.future.result, 1);
}

/* ---- Map and then ---- */

static int64_t add_to(int64_t result, void *arg)
{
    return *(int *)arg + result;
}

static void map_gives_what_its_function_makes_of_the_result(void **state)
{
    blz_future inner;
    blz_map op;
    int summand = 5;
    blz_cx cx = cx_for(blz_map_init(&op, blz_ready(&inner, 3), add_to, &summand));

    (void)state;
    assert_true(blz_is_ready(poll_once(&op.future, &cx)));
    assert_int_equal(op.future.result, 8);
}

static void map_waits_for_its_inner_future(void **state)
{
    struct probe inner;
    blz_map op;
    int summand = 5;
    blz_cx cx = cx_for(blz_map_init(&op, probe_init(&inner), add_to, &summand));

    (void)state;
    assert_true(blz_is_pending(poll_once(&op.future, &cx)));
    assert_ptr_equal(op.future.child, &inner.future);
    inner.ready = true;
    assert_true(blz_is_ready(poll_once(&op.future, &cx)));
    assert_int_equal(op.future.result, 5);
    assert_int_equal(inner.polls, 2);
}

static void cancelling_a_map_reaches_its_inner_future_and_maps_the_error(void **state)
{
    struct probe inner;
    blz_map op;
    int summand = 0;
    blz_cx cx = cx_for(blz_map_init(&op, probe_init(&inner), add_to, &summand));

    (void)state;
    assert_true(blz_is_pending(poll_once(&op.future, &cx)));
    blz_future_cancel(&op.future, &cx);
    assert_int_equal(inner.cancels, 1);
    assert_true(blz_is_ready(poll_once(&op.future, &cx)));
    assert_int_equal(op.future.result, -ECANCELED);
}

struct sequel {
    struct probe second;
    int64_t first_result;
    bool none;
};

static blz_future *make_sequel(int64_t result, void *arg)
{
    struct sequel *sequel = arg;

    sequel->first_result = result;
    return sequel->none ? NULL : probe_init(&sequel->second);
}

static void then_awaits_the_future_that_its_function_makes(void **state)
{
    blz_future first;
    blz_then op;
    struct sequel sequel = {.none = false};
    blz_cx cx = cx_for(blz_then_init(&op, blz_ready(&first, 7), make_sequel, &sequel));

    (void)state;
    assert_true(blz_is_pending(poll_once(&op.future, &cx)));
    assert_int_equal(sequel.first_result, 7);
    assert_ptr_equal(op.future.child, &sequel.second.future);
    sequel.second.ready = true;
    sequel.second.value = 9;
    assert_true(blz_is_ready(poll_once(&op.future, &cx)));
    assert_int_equal(op.future.result, 9);
}

static void then_without_a_second_future_ends_with_the_first_result(void **state)
{
    blz_future first;
    blz_then op;
    struct sequel sequel = {.none = true};
    blz_cx cx = cx_for(blz_then_init(&op, blz_ready(&first, 7), make_sequel, &sequel));

    (void)state;
    assert_true(blz_is_ready(poll_once(&op.future, &cx)));
    assert_int_equal(op.future.result, 7);
}

static void then_waits_for_its_first_future(void **state)
{
    struct probe first;
    blz_then op;
    struct sequel sequel = {.none = true};
    blz_cx cx = cx_for(blz_then_init(&op, probe_init(&first), make_sequel, &sequel));

    (void)state;
    assert_true(blz_is_pending(poll_once(&op.future, &cx)));
    first.ready = true;
    first.value = 3;
    assert_true(blz_is_ready(poll_once(&op.future, &cx)));
    assert_int_equal(op.future.result, 3);
}

static void cancelling_then_reaches_whichever_future_is_awaited(void **state)
{
    struct probe first;
    blz_then op;
    struct sequel sequel = {.none = false};
    blz_cx cx = cx_for(blz_then_init(&op, probe_init(&first), make_sequel, &sequel));

    (void)state;
    assert_true(blz_is_pending(poll_once(&op.future, &cx)));
    first.stubborn = true;
    blz_future_cancel(&op.future, &cx);
    assert_int_equal(first.cancels, 1);
    first.ready = true;
    assert_true(blz_is_pending(poll_once(&op.future, &cx)));
    blz_future_cancel(&op.future, &cx);
    assert_int_equal(first.cancels, 1);
    assert_int_equal(sequel.second.cancels, 1);
    assert_true(blz_is_ready(poll_once(&op.future, &cx)));
    assert_int_equal(op.future.result, -ECANCELED);
}

static blz_future *yield_in_place(int64_t result, void *arg)
{
    (void)result;
    return blz_yield(arg);
}

static void the_second_future_of_then_may_live_where_the_first_did(void **state)
{
    blz_future both;
    blz_then op;
    blz_cx cx = cx_for(blz_then_init(&op, blz_ready(&both, 7), yield_in_place, &both));

    (void)state;
    assert_true(blz_is_pending(poll_once(&op.future, &cx)));
    assert_true(blz_is_ready(poll_once(&op.future, &cx)));
    assert_int_equal(op.future.result, 0);
}

/* ---- Cancelling down the chain ---- */

static void cancel_goes_down_to_the_first_future_that_handles_it(void **state)
{
    struct probe leaf;
    blz_map middle, top;
    int zero = 0;
    blz_future *chain =
        blz_map_init(&top, blz_map_init(&middle, probe_init(&leaf), add_to, &zero), add_to, &zero);
    blz_cx cx = cx_for(chain);

    (void)state;
    assert_true(blz_is_pending(poll_once(chain, &cx)));
    blz_future_cancel(chain, &cx);
    assert_int_equal(leaf.cancels, 1);
}

static void a_refused_future_is_not_told(void **state)
{
    struct probe leaf;
    blz_map top;
    int zero = 0;
    blz_cx cx = cx_for(blz_map_init(&top, probe_init(&leaf), add_to, &zero));

    (void)state;
    leaf.future.flags |= BLZ_FUTURE_REFUSED;
    blz_future_cancel(&top.future, &cx);
    assert_int_equal(leaf.cancels, 0);
}

static void cancel_of_a_future_that_awaits_nothing_does_nothing(void **state)
{
    blz_future op;
    blz_cx cx = cx_for(blz_yield(&op));

    (void)state;
    blz_future_cancel(&op, &cx);
    blz_future_cancel(NULL, &cx);
    assert_int_equal(op.flags, 0);
}

/* ---- Branches ---- */

static void a_branch_is_the_scope_while_it_is_polled(void **state)
{
    blz_future root;
    struct probe branch;
    blz_cx cx = cx_for(blz_pending(&root));

    (void)state;
    assert_true(blz_is_pending(blz_poll_branch(probe_init(&branch), &cx)));
    assert_ptr_equal(branch.scope, &branch.future);
    assert_ptr_equal(cx.scope, &root);
    branch.ready = true;
    assert_true(blz_is_ready(blz_poll_branch(&branch.future, &cx)));
    assert_ptr_equal(cx.scope, &root);
}

static void a_branch_that_is_cancelled_is_told_at_once_and_in_its_own_scope(void **state)
{
    blz_future root;
    struct probe branch;
    blz_cx cx = cx_for(blz_pending(&root));

    (void)state;
    (void)blz_poll_branch(probe_init(&branch), &cx);
    blz_cancel_branch(&branch.future, &cx);
    assert_int_equal(branch.cancels, 1);
    assert_ptr_equal(branch.scope, &branch.future);
    assert_ptr_equal(cx.scope, &root);
    assert_int_equal(root.flags, 0);
    assert_true(blz_is_ready(blz_poll_branch(&branch.future, &cx)));
    assert_int_equal(branch.future.result, -ECANCELED);
}

static void a_branch_is_told_only_once(void **state)
{
    blz_future root;
    struct probe branch;
    blz_cx cx = cx_for(blz_pending(&root));

    (void)state;
    (void)blz_poll_branch(probe_init(&branch), &cx);
    branch.stubborn = true;
    blz_cancel_branch(&branch.future, &cx);
    blz_cancel_branch(&branch.future, &cx);
    (void)blz_poll_branch(&branch.future, &cx);
    (void)blz_poll_branch(&branch.future, &cx);
    assert_int_equal(branch.cancels, 1);
}

static void a_cancelled_branch_sees_that_it_is_cancelled(void **state)
{
    blz_future root;
    struct probe branch;
    blz_cx cx = cx_for(blz_pending(&root)), inside = cx_for(probe_init(&branch));

    (void)state;
    branch.stubborn = true;
    blz_cancel_branch(&branch.future, &cx);
    assert_false(blz_cancelled(&cx));
    assert_true(blz_cancelled(&inside));
}

static void a_shielded_branch_is_told_before_the_first_poll_without_a_shield(void **state)
{
    blz_future root;
    struct probe branch;
    blz_cx cx = cx_for(blz_pending(&root));

    (void)state;
    (void)blz_poll_branch(probe_init(&branch), &cx);
    branch.future.flags += BLZ_FUTURE_SHIELD;
    blz_cancel_branch(&branch.future, &cx);
    (void)blz_poll_branch(&branch.future, &cx);
    assert_int_equal(branch.cancels, 0);
    branch.future.flags -= BLZ_FUTURE_SHIELD;
    assert_true(blz_is_ready(blz_poll_branch(&branch.future, &cx)));
    assert_int_equal(branch.cancels, 1);
}

static void a_forced_scope_overrides_the_shields_of_its_branches(void **state)
{
    blz_future root;
    struct probe branch;
    blz_cx cx = cx_for(blz_pending(&root));

    (void)state;
    (void)blz_poll_branch(probe_init(&branch), &cx);
    branch.future.flags += BLZ_FUTURE_SHIELD;
    blz_cancel_branch(&branch.future, &cx);
    root.flags |= BLZ_FUTURE_FORCED;
    assert_true(blz_is_ready(blz_poll_branch(&branch.future, &cx)));
    assert_int_equal(branch.cancels, 1);
    assert_true(branch.flags & BLZ_FUTURE_FORCED);
}

static void a_branch_of_a_forced_scope_is_told_although_it_is_shielded(void **state)
{
    blz_future root;
    struct probe branch;
    blz_cx cx = cx_for(blz_pending(&root));

    (void)state;
    (void)blz_poll_branch(probe_init(&branch), &cx);
    branch.future.flags += BLZ_FUTURE_SHIELD;
    root.flags |= BLZ_FUTURE_CANCELLED | BLZ_FUTURE_FORCED;
    blz_cancel_branch(&branch.future, &cx);
    assert_int_equal(branch.cancels, 1);
}

/* ---- Shields ---- */

static void a_shield_hides_the_cancellation_until_the_last_unshield(void **state)
{
    blz_future root;
    blz_cx cx = cx_for(blz_pending(&root));

    (void)state;
    root.flags |= BLZ_FUTURE_CANCELLED | BLZ_FUTURE_DELIVERED;
    assert_true(blz_cancelled(&cx));
    assert_int_equal(blz_shield(&cx), 0);
    assert_int_equal(blz_shield(&cx), 0);
    assert_false(blz_cancelled(&cx));
    blz_unshield(&cx);
    assert_false(blz_cancelled(&cx));
    blz_unshield(&cx);
    assert_true(blz_cancelled(&cx));
}

static void a_shield_does_not_hide_a_forced_cancellation(void **state)
{
    blz_future root;
    blz_cx cx = cx_for(blz_pending(&root));

    (void)state;
    assert_int_equal(blz_shield(&cx), 0);
    root.flags |= BLZ_FUTURE_CANCELLED | BLZ_FUTURE_FORCED;
    assert_true(blz_cancelled(&cx));
}

static void a_shield_too_many_is_refused_and_changes_nothing(void **state)
{
    blz_future root;
    blz_cx cx = cx_for(blz_pending(&root));

    (void)state;
    root.flags |= BLZ_FUTURE_CANCELLED;
    for (int i = 0; i < 65535; i++)
        assert_int_equal(blz_shield(&cx), 0);
    assert_int_equal(blz_shield(&cx), -EOVERFLOW);
    assert_int_equal(root.flags, 0xffff0000u | BLZ_FUTURE_CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ready_future_is_ready_with_its_value),
        cmocka_unit_test(pending_is_not_ready_however_often_it_is_polled),
        cmocka_unit_test(pending_ends_with_ecanceled_at_the_poll_after_a_cancel),
        cmocka_unit_test(pending_that_is_cancelled_before_its_first_poll_ends_too),
        cmocka_unit_test(a_yield_asks_for_another_poll_and_is_ready_then),
        cmocka_unit_test(a_yield_needs_no_budget),
        cmocka_unit_test(a_cancelled_yield_completes),
        cmocka_unit_test(lazy_calls_its_function_at_the_first_poll),
        cmocka_unit_test(map_gives_what_its_function_makes_of_the_result),
        cmocka_unit_test(map_waits_for_its_inner_future),
        cmocka_unit_test(cancelling_a_map_reaches_its_inner_future_and_maps_the_error),
        cmocka_unit_test(then_awaits_the_future_that_its_function_makes),
        cmocka_unit_test(then_without_a_second_future_ends_with_the_first_result),
        cmocka_unit_test(then_waits_for_its_first_future),
        cmocka_unit_test(cancelling_then_reaches_whichever_future_is_awaited),
        cmocka_unit_test(the_second_future_of_then_may_live_where_the_first_did),
        cmocka_unit_test(cancel_goes_down_to_the_first_future_that_handles_it),
        cmocka_unit_test(a_refused_future_is_not_told),
        cmocka_unit_test(cancel_of_a_future_that_awaits_nothing_does_nothing),
        cmocka_unit_test(a_branch_is_the_scope_while_it_is_polled),
        cmocka_unit_test(a_branch_that_is_cancelled_is_told_at_once_and_in_its_own_scope),
        cmocka_unit_test(a_branch_is_told_only_once),
        cmocka_unit_test(a_cancelled_branch_sees_that_it_is_cancelled),
        cmocka_unit_test(a_shielded_branch_is_told_before_the_first_poll_without_a_shield),
        cmocka_unit_test(a_forced_scope_overrides_the_shields_of_its_branches),
        cmocka_unit_test(a_branch_of_a_forced_scope_is_told_although_it_is_shielded),
        cmocka_unit_test(a_shield_hides_the_cancellation_until_the_last_unshield),
        cmocka_unit_test(a_shield_does_not_hide_a_forced_cancellation),
        cmocka_unit_test(a_shield_too_many_is_refused_and_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
