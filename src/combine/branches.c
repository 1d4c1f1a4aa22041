/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branches: how a combinator starts them, finds out which were woken, and ends them. What it waits
 * for is its policy (select.c, join.c).
 *
 *   line      event                       next      what happens
 *   ---------------------------------------------------------------------------------------------
 *   FRESH     first poll                  RUNNING   polls all branches
 *   FRESH     a branch decides            DECIDED   those not polled yet are refused, not started
 *   FRESH     cancelled from outside      STOPPED   all branches are refused
 *   RUNNING   polled                      RUNNING   polls the branches that are due
 *   RUNNING   a branch decides            DECIDED   the others are cancelled, and polled again
 *   RUNNING   cancelled from outside      STOPPED   all branches are cancelled, and polled again
 *   any       no branch is live           -         ready
 *
 * A branch is due if it has not been polled yet, if its last poll ended in a yield (or for lack of
 * budget, which is the same), if it has just been cancelled, or if one of its wake groups was woken
 * (task/state.h). A waker that is made in a branch is that of the branch's group: it refers to the
 * task, never to this struct, and may be woken long after the combinator has ended.
 *
 * Groups. At its first poll a combinator chooses one for each branch, out of those that nobody uses
 * (cx->groups). `owner` says to which branch a group leads. A combinator inside of a branch has
 * groups of its own, and these lead to the branch as well: cx->groups, compared before and after
 * each poll, tells which it has taken or given back. If an inner combinator is not reached by a
 * poll, its wakes stay for the next (task_keep_woken).
 *
 * If there are fewer groups than branches, several branches have the same; a wake then polls them
 * all. If there are none at all, or if this is no task (blz_cx.task is NULL), all branches are
 * polled every time, and their wakers are those of whatever is around the combinator. Combinators
 * side by side, in a future that somebody wrote by hand, may use the same groups without knowing:
 * what was woken is seen by all that are polled, and both poll a branch.
 *
 * A combinator in a cancelled scope is not refused as a whole (BLZ_FUTURE_ALWAYS): that would
 * follow one `child` and forget what the other branches own. It starts, is told, and refuses each.
 *
 * All of this runs on the worker that polls the task; only the bits in the state word are shared.
 */
#include "combine/branches.h"

#include "base/assert.h"
#include "sched/sched.h"

#include <blitz/async.h>

_Static_assert(sizeof(blz_branches) == 192, "part of the ABI");
_Static_assert(sizeof(((blz_branches *)0)->owner) == TASK_GROUP_COUNT, "one owner for each group");

static uint64_t bit_of(uint32_t branch)
{
    return (uint64_t)1 << branch;
}

/* The n-th bit that is set, from 0. There is one. */
static uint32_t nth_bit(uint64_t bits, uint32_t n)
{
    BLZ_ASSERT(n < (uint32_t)__builtin_popcountll(bits));
    while (n-- > 0)
        bits &= bits - 1;
    return (uint32_t)__builtin_ctzll(bits);
}

/* ---- Wake groups ---- */

static void choose_groups(blz_branches *op, blz_cx *cx)
{
    uint32_t unused = cx->task ? ~cx->groups : 0, n = 0;

    BLZ_ASSERT(op->stride == 0);
    BLZ_ASSERT(op->own_groups == 0);
    for (; n < op->count && unused; n++, unused &= unused - 1) {
        uint32_t group = (uint32_t)__builtin_ctz(unused);
        op->own_groups |= 1u << group;
        op->owner[group] = (uint8_t)n;
    }
    op->groups = op->own_groups;
    op->stride = n ? n : 1;
}

/* The number of the branch's group, from 1, as cx->group is. */
static uint32_t group_of(const blz_branches *op, uint32_t i)
{
    BLZ_ASSERT(op->own_groups);
    BLZ_ASSERT(i < op->count);
    return 1 + nth_bit(op->own_groups, i < op->stride ? i : i % op->stride);
}

static uint64_t branches_of(const blz_branches *op, uint32_t group)
{
    uint64_t branches = 0;

    if (!(op->own_groups >> group & 1))
        return bit_of(op->owner[group]); /* it is of a combinator in there */
    for (uint32_t i = op->owner[group]; i < op->count; i += op->stride)
        branches |= bit_of(i);
    return branches;
}

/* The live branches that have been woken since the last call. */
static uint64_t woken_branches(const blz_branches *op, blz_cx *cx)
{
    uint64_t branches = 0;

    if (op->own_groups == 0)
        return op->live; /* nobody can tell */
    uint32_t woken = task_woken_groups(cx, op->own_groups) & op->groups;
    for (; woken; woken &= woken - 1)
        branches |= branches_of(op, (uint32_t)__builtin_ctz(woken));
    return branches & op->live;
}

/* ---- In and out of a branch ---- */

struct visit {
    uint32_t outer_group;
    uint32_t groups;
};

static inline struct visit enter(const blz_branches *op, uint32_t i, blz_cx *cx)
{
    struct visit visit = {cx->group, cx->groups};

    if (blz_likely(op->own_groups))
        cx->group = group_of(op, i);
    return visit;
}

/* Combinators in the branch have taken groups, and given some back. */
static BLZ_COLD void note_groups(blz_branches *op, uint32_t i, uint32_t before, uint32_t after)
{
    op->groups &= after | ~before | op->own_groups;
    for (uint32_t taken = after & ~before; taken; taken &= taken - 1) {
        uint32_t group = (uint32_t)__builtin_ctz(taken);
        op->groups |= 1u << group;
        op->owner[group] = (uint8_t)i;
    }
}

static inline void leave(blz_branches *op, uint32_t i, blz_cx *cx, struct visit visit)
{
    cx->group = visit.outer_group;
    if (blz_unlikely(cx->groups != visit.groups) && op->own_groups)
        note_groups(op, i, visit.groups, cx->groups);
}

/* *yielded: it is pending, and wants to be polled again. */
static inline blz_poll poll_branch(blz_branches *op, uint32_t i, blz_cx *cx, bool *yielded)
{
    uint32_t others_yielded = cx->yielded;
    struct visit visit = enter(op, i, cx);

    BLZ_ASSERT(op->live & bit_of(i));
    cx->yielded = 0;
    blz_poll poll = blz_poll_branch(op->list[i], cx);
    leave(op, i, cx, visit);
    *yielded = cx->yielded;
    cx->yielded |= others_yielded;
    return poll;
}

static void cancel_branch(blz_branches *op, uint32_t i, blz_cx *cx)
{
    struct visit visit = enter(op, i, cx);

    BLZ_ASSERT(op->live & bit_of(i));
    blz_cancel_branch(op->list[i], cx);
    leave(op, i, cx, visit);
}

/* ---- The end of branches ---- */

/* A branch that has not been polled never is, unless it is one that must run in any case. */
static void refuse_branch(blz_branches *op, uint32_t i, blz_cx *cx)
{
    BLZ_ASSERT(op->future.line == BRANCHES_FRESH);
    if (op->list[i]->flags & BLZ_FUTURE_ALWAYS) {
        cancel_branch(op, i, cx);
        return;
    }
    blz_await_refuse_(op->list[i], cx, -ECANCELED);
    op->live &= ~bit_of(i);
}

/* Those that are left after this are to be polled. */
static void end_branches(blz_branches *op, blz_cx *cx)
{
    uint64_t fresh = op->future.line == BRANCHES_FRESH ? op->due : 0;

    for (uint64_t rest = op->live; rest; rest &= rest - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(rest);
        if (fresh & bit_of(i))
            refuse_branch(op, i, cx);
        else
            cancel_branch(op, i, cx);
    }
    op->due = op->live;
}

/*
 * Too many, or none where there must be one: nobody starts, and those who must be told are awaited,
 * one after the other.
 */
static BLZ_COLD blz_poll call_off(blz_branches *op, blz_cx *cx)
{
    for (; op->turn < op->count; op->turn++) {
        blz_future *branch = op->future.child = op->list[op->turn];
        if (!(branch->flags & BLZ_FUTURE_ALWAYS)) {
            blz_await_refuse_(branch, cx, op->future.result);
            continue;
        }
        if (!(branch->flags & BLZ_FUTURE_CANCELLED))
            blz_cancel_branch(branch, cx);
        if (blz_is_pending(blz_poll_branch(branch, cx)))
            return BLZ_PENDING;
    }
    op->future.child = NULL;
    return blz_future_done(&op->future, op->future.result);
}

/* ---- Polling ---- */

static uint32_t pick(const blz_branches *op, const blz_cx *cx, enum branch_order order)
{
    uint64_t due = op->due, behind = due >> op->turn << op->turn;

    BLZ_ASSERT(op->due);
    BLZ_ASSERT((op->due & ~op->live) == 0);
    if (order == ORDER_RANDOM && (due & (due - 1)) != 0) {
        uint64_t random = blz__sched_random(cx) >> 32;
        return nth_bit(due, (uint32_t)(random * (uint32_t)__builtin_popcountll(due) >> 32));
    }
    return (uint32_t)__builtin_ctzll(order == ORDER_IN_TURN && behind ? behind : due);
}

static void poll_due(blz_branches *op, blz_cx *cx, const struct branch_policy *policy)
{
    uint64_t again = 0;
    bool yielded;

    while (op->due) {
        uint32_t i = pick(op, cx, policy->order);

        op->due &= ~bit_of(i);
        if (blz_is_pending(poll_branch(op, i, cx, &yielded))) {
            again |= yielded ? bit_of(i) : 0;
            continue;
        }
        op->live &= ~bit_of(i);
        if (policy->decides(op, i)) {
            end_branches(op, cx); /* most of them are ready as soon as they are polled now */
            op->future.line = BRANCHES_DECIDED;
            again = 0;
        }
    }
    op->due = again;
}

blz_poll blz__branches_poll(blz_branches *op, blz_cx *cx, const struct branch_policy *policy)
{
    blz_future *future = &op->future;

    if (blz_unlikely(future->result < 0))
        return call_off(op, cx);
    if (op->stride == 0)
        choose_groups(op, cx);
    cx->groups |= op->groups;
    op->due |= woken_branches(op, cx);
    poll_due(op, cx, policy);
    op->turn = op->turn + 1 < op->count ? op->turn + 1 : 0;
    if (future->line == BRANCHES_FRESH)
        future->line = BRANCHES_RUNNING;
    if (op->live) {
        future->child = op->list[__builtin_ctzll(op->live)]; /* for dumps */
        return BLZ_PENDING;
    }
    cx->groups &= ~op->groups;
    future->child = NULL;
    return blz_future_done(future, policy->result(op));
}

void blz__branches_cancel(blz_future *future, blz_cx *cx)
{
    blz_branches *op = (blz_branches *)future;

    if (op->stride == 0)
        choose_groups(op, cx);
    cx->groups |= op->groups;
    end_branches(op, cx);
    if (future->line != BRANCHES_DECIDED)
        future->line = BRANCHES_STOPPED;
}

bool blz__branches_were_stopped(const blz_branches *op)
{
    if (op->future.line != BRANCHES_STOPPED)
        return false;
    for (uint32_t i = 0; i < op->count; i++)
        if (op->list[i]->result == -ECANCELED)
            return true;
    return false;
}

/*
 * One future twice would be polled by two branches that do not know of each other: the second would
 * wait for ever, or be polled after its end. Each future is marked, so that a second visit is seen,
 * and the marks are removed. The mark is a bit that is clear in a future before its first poll.
 */
static void check_list(const char *name, blz_future *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (blz_unlikely(!list[i]))
            blz__panic("branch %zu of `%s` is NULL", i, name);
        if (blz_unlikely(list[i]->flags & BLZ_FUTURE_FRESH_))
            blz__panic("branch %zu of `%s`, a `%s`, is in it twice: each branch needs an "
                       "operation of its own",
                       i, name, list[i]->ops->name);
        list[i]->flags |= BLZ_FUTURE_FRESH_;
    }
    for (size_t i = 0; i < count; i++)
        list[i]->flags &= ~BLZ_FUTURE_FRESH_;
}

blz_future *blz__branches_init(blz_branches *op, const blz_future_ops *ops, blz_future **list,
                               size_t count, int none)
{
    check_list(ops->name, list, count);
    blz_op_check(&op->future, ops);
    op->future = (blz_future){.ops = ops, .flags = BLZ_FUTURE_ALWAYS};
    op->list = list;
    op->live = op->due = 0;
    op->count = (uint32_t)count;
    op->first = -1;
    op->groups = op->own_groups = op->stride = op->turn = 0;
    if (count > BLZ_BRANCHES_MAX)
        op->future.result = -E2BIG;
    else if (count == 0)
        op->future.result = none;
    else
        op->live = op->due = UINT64_MAX >> (BLZ_BRANCHES_MAX - count);
    return &op->future;
}

void blz__branches_describe_all(const blz_future *future, blz_wait_info *info)
{
    const blz_branches *op = (const blz_branches *)future;

    info->branches = op->list;
    info->nr_branches = op->count;
    info->live = op->live;
}

void blz__branches_describe_any(const blz_future *future, blz_wait_info *info)
{
    blz__branches_describe_all(future, info);
    info->any = true;
}
