/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combinators against threads that wake their branches: a wake at any moment of a poll, between
 * two, of several branches at once, after the combinator has ended, and while it is being
 * cancelled. A wake that does not reach its branch is a test that waits for ever.
 *
 * The flag of a leaf is written and read without an order of its own, so it is seen only if the
 * wake and the poll that answers it are ordered by the task's state word.
 */
#include <blitz/async.h>
#include <blitz/combine.h>

#include "support/hand_polled.h"
#include "support/table.h"

enum { LEAVES = 4 };

struct leaf {
    blz_future future;
    uint32_t fired;
    blz_waker waker;
    blz_waker for_thread; /* a second one, which may be woken at any time */
    bool cancelled;
};

static struct leaf leaves[LEAVES];
static hand_polled hand;

static blz_poll leaf_poll(blz_future *future, blz_cx *cx)
{
    struct leaf *self = (struct leaf *)future;
    bool fired = blz__load(&self->fired, RELAXED);

    if (!self->waker.ops) {
        self->waker = blz_cx_waker(cx);
        self->for_thread = blz_waker_clone(&self->waker);
    }
    if (!fired && !self->cancelled)
        return BLZ_PENDING;
    blz_waker_drop(&self->waker);
    return blz_future_done(future, fired ? 1 : -ECANCELED);
}

static void leaf_cancel(blz_future *future, blz_cx *cx)
{
    (void)cx;
    ((struct leaf *)future)->cancelled = true;
}

static const blz_future_ops leaf_ops = {.name = "leaf", .poll = leaf_poll, .cancel = leaf_cancel};

static blz_future *leaf(int i)
{
    leaves[i] = (struct leaf){.future.ops = &leaf_ops};
    return &leaves[i].future;
}

/* ---- threads ---- */

static void fire_one(int i)
{
    blz__store(&leaves[i].fired, 1u, RELAXED);
    blz_waker_wake(&leaves[i].for_thread);
}

/* The leaves whose bits are set in `which`. */
static void fire(void *which)
{
    for (int i = 0; i < LEAVES; i++)
        if ((uintptr_t)which >> i & 1)
            fire_one(i);
}

static model_thread start(uintptr_t which)
{
    return model_start_named(fire, (void *)which, "waker");
}

/* ---- the task ---- */

static blz_poll poll(blz_future *future)
{
    return future->ops->poll(future, &hand.cx);
}

/* The next poll: at once after a yield, otherwise when something is woken. */
static void next_poll(void)
{
    if (hand.cx.yielded)
        hand_yield(&hand);
    else
        hand_wait(&hand);
}

static int64_t await(blz_future *future)
{
    while (blz_is_pending(poll(future)))
        next_poll();
    return future->result;
}

/* The first poll: from now on leaves can be fired. */
static blz_future *begin(blz_future *future)
{
    hand_begin(&hand);
    model_assert(blz_is_pending(poll(future)));
    return future;
}

/* ---- models ---- */

static void two_branches_are_woken_at_once(void)
{
    blz_join_op op = {0};
    blz_future *join = begin(blz_join(&op, leaf(0), leaf(1)));
    model_thread first = start(1), second = start(2);

    next_poll();
    model_assert(await(join) == 0);
    model_join(first);
    model_join(second);
    hand_end(&hand);
}

/* The first of the two wakes may come while the second branch is being polled. */
static void branches_are_woken_one_after_the_other(void)
{
    blz_join_op op = {0};
    blz_future *join = begin(blz_join(&op, leaf(0), leaf(1), leaf(2)));
    model_thread thread = start(7);

    next_poll();
    model_assert(await(join) == 0);
    model_join(thread);
    hand_end(&hand);
}

/* The loser's wake comes before it is told, while it is, or when nobody is there any more. */
static void a_loser_is_woken_at_any_time(void)
{
    blz_select_op op = {0};
    blz_future *select = begin(blz_select_biased(&op, leaf(0), leaf(1)));
    model_thread first = start(1), second = start(2);

    next_poll();
    int64_t winner = await(select);
    model_assert(winner == 0 || winner == 1);
    model_assert(leaves[winner].future.result == 1);
    int64_t other = leaves[1 - winner].future.result;
    model_assert(other == 1 || other == -ECANCELED);
    model_join(first);
    model_join(second);
    hand_end(&hand);
}

/* The groups of the first combinator are those of the second. */
static void a_late_wake_meets_the_next_combinator(void)
{
    blz_branches op = {0};
    blz_future *select = begin(blz_select_biased(&op, leaf(0), leaf(1)));
    model_thread early = start(3);

    next_poll();
    model_assert(await(select) >= 0);
    blz_future *join = blz_join(&op, leaf(2), leaf(3));
    model_assert(blz_is_pending(poll(join)));
    model_thread late = start(12);
    next_poll();
    model_assert(await(join) == 0);
    model_join(early);
    model_join(late);
    hand_end(&hand);
}

static void a_wake_goes_down_to_the_combinator_in_a_branch(void)
{
    blz_join_op outer = {0}, inner = {0};
    blz_future *join = begin(blz_join(&outer, leaf(0), blz_join(&inner, leaf(1), leaf(2))));
    model_thread first = start(1 | 4), second = start(2);

    next_poll();
    model_assert(await(join) == 0);
    model_join(first);
    model_join(second);
    hand_end(&hand);
}

/* One poll function with two children, whose groups are the same. */
static void combinators_side_by_side(void)
{
    blz_join_op ops[2] = {0};
    blz_future *left, *right;

    left = begin(blz_join(&ops[0], leaf(0), leaf(1)));
    hand.cx.groups = 0;
    right = blz_join(&ops[1], leaf(2), leaf(3));
    model_assert(blz_is_pending(poll(right)));
    model_thread first = start(1 | 8), second = start(2 | 4);
    bool more[2] = {true, true};
    while (more[0] || more[1]) {
        next_poll();
        more[0] = more[0] && blz_is_pending(poll(left));
        more[1] = more[1] && blz_is_pending(poll(right));
    }
    model_join(first);
    model_join(second);
    hand_end(&hand);
}

static void a_cancel_against_a_wake(void)
{
    blz_select_op op = {0};
    blz_future *select = begin(blz_select_biased(&op, leaf(0), leaf(1)));
    model_thread thread = start(2);

    blz_future_cancel(select, &hand.cx); /* at the beginning of a poll */
    int64_t result = await(select);
    model_assert(result == 1 || result == -ECANCELED);
    model_assert(leaves[0].future.result == -ECANCELED);
    model_assert(leaves[1].future.result == (result == 1 ? 1 : -ECANCELED));
    blz_waker_drop(&leaves[0].for_thread);
    model_join(thread);
    hand_end(&hand);
}

/* The yielding branch is polled again, and the wake of the other one is not taken for that. */
static void a_yield_against_a_wake(void)
{
    blz_join_op op = {0};
    blz_future yield;
    blz_future *join = begin(blz_join(&op, leaf(0), blz_yield(&yield)));
    model_thread thread = start(1);

    model_assert(await(join) == 0);
    model_join(thread);
    hand_end(&hand);
}

/* What the threads share is atomic, or is handed over when they start. */
#define REDUCED(n) .preemptions = (n), .reduce = true

static const struct model models[] = {
    MODEL(two_branches_are_woken_at_once, REDUCED(3)),
    MODEL(branches_are_woken_one_after_the_other, REDUCED(2)),
    MODEL(a_loser_is_woken_at_any_time, REDUCED(3)),
    MODEL(a_late_wake_meets_the_next_combinator, REDUCED(2), .stale_reads = 1),
    MODEL(a_wake_goes_down_to_the_combinator_in_a_branch, REDUCED(2), .stale_reads = 2),
    MODEL(combinators_side_by_side, REDUCED(2), .stale_reads = 1),
    MODEL(a_cancel_against_a_wake, REDUCED(3)),
    MODEL(a_yield_against_a_wake, REDUCED(3)),
};

MODEL_MAIN(models)
