/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Join: all branches are awaited. With try, the first that ends with an error has the others
 * cancelled.
 *
 * The branches that are due at once take turns in being first: one that uses up the task's budget
 * every time does not keep the others from theirs.
 */
#include "combine/branches.h"

/* ---- Whatever they end with ---- */

static bool never_decides(blz_branches *op, uint32_t i)
{
    (void)op, (void)i;
    return false;
}

static int64_t count_failures(const blz_branches *op)
{
    int64_t failures = 0;

    if (blz__branches_were_stopped(op))
        return -ECANCELED;
    for (uint32_t i = 0; i < op->count; i++)
        failures += op->list[i]->result < 0;
    return failures;
}

static blz_poll join_poll(blz_future *future, blz_cx *cx)
{
    static const struct branch_policy policy = {ORDER_IN_TURN, never_decides, count_failures};

    return blz__branches_poll((blz_branches *)future, cx, &policy);
}

blz_future *blz_join_array(blz_join_op *op, blz_future **branches, size_t count)
{
    static const blz_future_ops ops = {.name = "join",
                                       .poll = join_poll,
                                       .cancel = blz__branches_cancel,
                                       .describe_wait = blz__branches_describe_all};

    return blz__branches_init(op, &ops, branches, count, 0);
}

/* ---- As long as they go well ---- */

static bool failure_decides(blz_branches *op, uint32_t i)
{
    int64_t result = op->list[i]->result;
    bool stopped = op->future.line == BRANCHES_STOPPED;

    if (result >= 0 || op->first >= 0 || (stopped && result == -ECANCELED))
        return false;
    op->first = (int32_t)i;
    return !stopped; /* else all are ending already */
}

static int64_t first_failure(const blz_branches *op)
{
    if (op->first >= 0)
        return op->list[op->first]->result;
    return blz__branches_were_stopped(op) ? -ECANCELED : 0;
}

static blz_poll try_join_poll(blz_future *future, blz_cx *cx)
{
    static const struct branch_policy policy = {ORDER_IN_TURN, failure_decides, first_failure};

    return blz__branches_poll((blz_branches *)future, cx, &policy);
}

blz_future *blz_try_join_array(blz_try_join_op *op, blz_future **branches, size_t count)
{
    static const blz_future_ops ops = {.name = "try_join",
                                       .poll = try_join_poll,
                                       .cancel = blz__branches_cancel,
                                       .describe_wait = blz__branches_describe_all};

    return blz__branches_init(op, &ops, branches, count, 0);
}
