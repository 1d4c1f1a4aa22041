/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Race: the first branch to be ready wins, the others are cancelled and awaited.
 *
 *   line      event                        next      what happens
 *   --------------------------------------------------------------------------------------------
 *   FRESH     first poll                   RUNNING   polls the branches in turn
 *   FRESH     a branch is ready            DECIDED   those behind it are refused, not started
 *   FRESH     cancelled from outside       STOPPED   all branches are refused
 *   RUNNING   a branch is ready            DECIDED   the others are cancelled, and polled again
 *   RUNNING   cancelled from outside       STOPPED   all branches are cancelled
 *   STOPPED   a branch ends with a result  STOPPED   the first to do so is the winner after all
 *   any       no branch is live            -         ready
 *
 * A race in a cancelled scope is not refused as a whole (BLZ_FUTURE_ALWAYS): that would follow one
 * `child` and forget what the other branches own. It starts, is told, and refuses each of them.
 */
#include <blitz/async.h>
#include <blitz/combine.h>

#include <string.h>

_Static_assert(sizeof(blz_race_op) == 128, "part of the ABI");

enum { RACE_FRESH, RACE_RUNNING, RACE_DECIDED, RACE_STOPPED };

static uint64_t bit_of(uint32_t branch)
{
    return (uint64_t)1 << branch;
}

/* Branches that are not ready, one after the other: for (i = next_live(op, 0); i < count; ...) */
static uint32_t next_live(const blz_race_op *op, uint32_t from)
{
    uint64_t rest = from < BLZ_RACE_ARRAY_MAX ? op->live >> from : 0;

    return rest ? from + (uint32_t)__builtin_ctzll(rest) : op->count;
}

/* A branch that has not been polled never is, unless it is one that must run in any case. */
static void refuse(blz_race_op *op, uint32_t i, blz_cx *cx)
{
    blz_future *branch = op->branches[i];

    if (branch->flags & BLZ_FUTURE_ALWAYS) {
        blz_cancel_branch(branch, cx);
        return;
    }
    blz_await_refuse_(branch, cx, -ECANCELED);
    op->live &= ~bit_of(i);
}

/* Ends the branches: those from `fresh` on have not been polled yet. */
static void end_branches(blz_race_op *op, uint32_t fresh, blz_cx *cx)
{
    for (uint32_t i = next_live(op, 0); i < op->count; i = next_live(op, i + 1)) {
        if (i < fresh)
            blz_cancel_branch(op->branches[i], cx);
        else
            refuse(op, i, cx);
    }
}

/* A branch is ready. True: it has decided the race. */
static bool cross_the_line(blz_race_op *op, uint32_t i)
{
    op->live &= ~bit_of(i);
    if (op->winner >= 0)
        return false;
    if (op->future.line == RACE_STOPPED && op->branches[i]->result == -ECANCELED)
        return false;
    op->winner = (int32_t)i;
    return op->future.line != RACE_STOPPED; /* else all are ending already */
}

/* Polls the live branches. True: one of them has just won. */
static bool poll_branches(blz_race_op *op, blz_cx *cx)
{
    uint32_t fresh = op->future.line == RACE_FRESH ? 0 : op->count;

    for (uint32_t i = next_live(op, 0); i < op->count; i = next_live(op, i + 1)) {
        if (blz_poll_branch(op->branches[i], cx) == BLZ_PENDING || !cross_the_line(op, i))
            continue;
        end_branches(op, fresh == op->count ? fresh : i + 1, cx);
        op->future.line = RACE_DECIDED;
        return true;
    }
    return false;
}

/* There are none, or too many: nobody starts. */
static BLZ_COLD blz_poll call_off(blz_race_op *op, blz_cx *cx)
{
    for (uint32_t i = 0; i < op->count; i++)
        blz_await_refuse_(op->branches[i], cx, op->future.result);
    return blz_future_done(&op->future, op->future.result);
}

static blz_poll race_poll(blz_future *future, blz_cx *cx)
{
    blz_race_op *op = (blz_race_op *)future;
    uint32_t first;

    if (blz_unlikely(future->result < 0))
        return call_off(op, cx);
    if (poll_branches(op, cx))
        poll_branches(op, cx); /* the losers have been told: most are ready now */
    else if (future->line == RACE_FRESH)
        future->line = RACE_RUNNING;
    first = next_live(op, 0);
    future->child = first < op->count ? op->branches[first] : NULL; /* for dumps */
    if (future->child)
        return BLZ_PENDING;
    return blz_future_done(future, op->winner >= 0 ? op->winner : -ECANCELED);
}

static void race_cancel(blz_future *future, blz_cx *cx)
{
    blz_race_op *op = (blz_race_op *)future;

    end_branches(op, future->line == RACE_FRESH ? 0 : op->count, cx);
    if (future->line != RACE_DECIDED)
        future->line = RACE_STOPPED;
}

static const blz_future_ops race_ops = {.name = "race", .poll = race_poll, .cancel = race_cancel};

blz_future *blz_race_array(blz_race_op *op, blz_future **branches, size_t count)
{
    op->future = (blz_future){.ops = &race_ops, .flags = BLZ_FUTURE_ALWAYS};
    op->branches = branches;
    op->winner = -1;
    op->count = (uint32_t)count;
    op->live = 0;
    if (count == 0 || count > BLZ_RACE_ARRAY_MAX)
        op->future.result = count ? -E2BIG : -EINVAL;
    else
        op->live = UINT64_MAX >> (BLZ_RACE_ARRAY_MAX - count);
    return &op->future;
}

blz_future *blz_race_copy_(blz_race_op *op, blz_future *const *branches, size_t count)
{
    memcpy(op->own, branches, count * sizeof *branches);
    return blz_race_array(op, op->own, count);
}
