/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Select: the first branch to be ready is chosen, the others are cancelled and awaited. Which one
 * is first if several are due at once is the order in which they are polled: at random, or as
 * listed.
 *
 * A select that is cancelled from outside chooses nobody, unless a branch ends with a result of its
 * own in spite of that: then the first to do so.
 */
#include "combine/branches.h"

static bool decides(blz_branches *op, uint32_t i)
{
    bool stopped = op->future.line == BRANCHES_STOPPED;

    if (op->first >= 0 || (stopped && op->list[i]->result == -ECANCELED))
        return false;
    op->first = (int32_t)i;
    return !stopped; /* else all are ending already */
}

static int64_t result(const blz_branches *op)
{
    return op->first >= 0 ? op->first : -ECANCELED;
}

static const struct branch_policy fair = {ORDER_RANDOM, decides, result};
static const struct branch_policy biased = {ORDER_OF_LIST, decides, result};

static blz_poll fair_poll(blz_future *future, blz_cx *cx)
{
    return blz__branches_poll((blz_branches *)future, cx, &fair);
}

static blz_poll biased_poll(blz_future *future, blz_cx *cx)
{
    return blz__branches_poll((blz_branches *)future, cx, &biased);
}

blz_future *blz_select_array(blz_select_op *op, blz_future **branches, size_t count)
{
    static const blz_future_ops ops = {.name = "select",
                                       .poll = fair_poll,
                                       .cancel = blz__branches_cancel,
                                       .describe_wait = blz__branches_describe_any};

    return blz__branches_init(op, &ops, branches, count, -EINVAL);
}

blz_future *blz_select_biased_array(blz_select_op *op, blz_future **branches, size_t count)
{
    static const blz_future_ops ops = {.name = "select_biased",
                                       .poll = biased_poll,
                                       .cancel = blz__branches_cancel,
                                       .describe_wait = blz__branches_describe_any};

    return blz__branches_init(op, &ops, branches, count, -EINVAL);
}

blz_future *blz_race_array(blz_race_op *op, blz_future **branches, size_t count)
{
    static const blz_future_ops ops = {.name = "race",
                                       .poll = biased_poll,
                                       .cancel = blz__branches_cancel,
                                       .describe_wait = blz__branches_describe_any};

    return blz__branches_init(op, &ops, branches, count, -EINVAL);
}
