/* SPDX-License-Identifier: Apache-2.0 */
/* What all combinators have in common; see branches.c. Between the files of src/combine. */
#ifndef BLZ_COMBINE_BRANCHES_H
#define BLZ_COMBINE_BRANCHES_H

#include <blitz/combine.h>
#include <blitz/wait_info.h>

/* future.line */
enum { BRANCHES_FRESH, BRANCHES_RUNNING, BRANCHES_DECIDED, BRANCHES_STOPPED };

enum branch_order { ORDER_OF_LIST, ORDER_IN_TURN, ORDER_RANDOM };

/* What makes one combinator different from another. */
struct branch_policy {
    enum branch_order order; /* in which branches are polled that are due at once */
    /* Branch `i` has ended. True: the others are no longer needed, as op->first then says. */
    bool (*decides)(blz_branches *op, uint32_t i);
    /* All have ended. */
    int64_t (*result)(const blz_branches *op);
};

/* `none` is the result if there are no branches: an error, or 0. */
blz_future *blz__branches_init(blz_branches *op, const blz_future_ops *ops, blz_future **list,
                               size_t count, int none);

blz_poll blz__branches_poll(blz_branches *op, blz_cx *cx, const struct branch_policy *policy);

/* ops->cancel of all of them. */
void blz__branches_cancel(blz_future *future, blz_cx *cx);

/* ops->describe_wait of those that need all their branches, and of those that need one. */
void blz__branches_describe_all(const blz_future *future, blz_wait_info *info);
void blz__branches_describe_any(const blz_future *future, blz_wait_info *info);

/* Whether some branch ended with -ECANCELED after the combinator was cancelled from outside. */
bool blz__branches_were_stopped(const blz_branches *op);

#endif
