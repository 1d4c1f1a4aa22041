/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combinators: one future made of several, its branches.
 *
 *     blz_select         the first to be ready; fair: no branch is preferred
 *     blz_select_biased  the first to be ready; if several are, the first in the list
 *     blz_race           another name of blz_select_biased
 *     blz_join           all of them
 *     blz_try_join       all of them, unless one fails: then the others are cancelled
 *
 * (blz_with_timeout is in blitz/time.h; a set of tasks that grows is a blz_scope, blitz/task.h.)
 *
 *     for (;;) {
 *         BLZ_AWAIT(self->rc, blz_select(&self->select,
 *                                        blz_tcp_accept(&self->io, &self->ln, &self->conn),
 *                                        blz_interval_tick(&self->beat)));
 *         if (self->io.future.result >= 0)
 *             serve(&self->conn);              // a connection, perhaps although branch 1 was first
 *         if (self->rc < 0)
 *             break;                           // this task is cancelled
 *         if (self->rc == 1)
 *             puts("still here");
 *     }
 *
 * What they have in common:
 * - Each branch is a future of its own, in memory of its own. The same one twice (one blz_io for a
 *   read and a write, say) and NULL abort.
 * - Nothing is allocated, and no task is made: the branches run within the awaiting task, one at a
 *   time.
 * - What a branch ends with is in its own `result`, whether or not the combinator waited for it.
 * - Each branch is a cancel scope of its own. A branch that is no longer needed is cancelled, and
 *   awaited, before the combinator is ready: nothing goes on behind the caller's back. It ends with
 *   -ECANCELED, or with a real result that came all the same: a message that was received, a
 *   connection that was accepted. Such a result is the caller's to look at.
 * - A branch is polled when something in it was woken, and not for the sake of the others: 64
 *   branches cost no more than two as long as nothing happens in them. (The branches of one task
 *   share 32 marks. Beyond that, within combinators in combinators too, a wake may have others
 *   polled that it does not concern.)
 * - A cancellation from outside is passed on to all branches, which are awaited.
 *
 *     blz_join(&self->join, a, b, c)                   up to 8, copied
 *     blz_join_array(&self->join, self->branches, n)   up to 64; the array stays until it is ready
 *
 * With more than 64 the combinator and all of its branches end with -E2BIG, and none is started.
 */
#ifndef BLITZ_COMBINE_H
#define BLITZ_COMBINE_H

#include <blitz/future.h>

BLZ_BEGIN_DECLS

/* Branches of the forms that copy, and of those that take an array. */
#define BLZ_BRANCHES_COPIED 8
#define BLZ_BRANCHES_MAX    64

/* ---- Combinators [task] ---- */

/* The future of a combinator. It may be used again, for any of them, once it is ready. */
typedef struct blz_branches {
    blz_future future;
    blz_future **list;
    uint64_t live;       /* a bit for each branch that is not ready */
    uint64_t due;        /* and for each that is to be polled */
    uint32_t count;      /* branches */
    int32_t first;       /* the one that decided, or -1; see blz_try_join */
    uint32_t groups;     /* wake groups: of its branches, and of combinators in these */
    uint32_t own_groups; /* of its branches alone */
    uint32_t stride;     /* how many these are; 0: none chosen yet */
    uint32_t turn;       /* the branch with which the next round begins */
    uint8_t owner[32];   /* of each group: in which branch it is */
    blz_future *own[BLZ_BRANCHES_COPIED];
    uint64_t reserved[2];
} blz_branches;

/* The futures of the combinators. */
typedef blz_branches blz_select_op, blz_race_op, blz_join_op, blz_try_join_op;

/*
 * Awaits the first of several futures to be ready: gives its number, from 0. The others are
 * cancelled and awaited. If several are ready at once each is as likely to be chosen as any other.
 * At the first poll they are started in random order; when one is ready, those that have not been
 * started are not.
 *
 * -EINVAL: no branch; -E2BIG: more than 64. Cancelled from outside: -ECANCELED, or the number of
 * the first branch that ended otherwise.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_select_array(blz_select_op *op, blz_future **branches,
                                                   size_t count);

/*
 * Awaits the first of several futures to be ready: gives its number, from 0. The others are
 * cancelled and awaited. If several are ready at once the first in the list is chosen. For branches
 * that matter more than others, such as a request to stop. One that is often ready keeps those
 * behind it waiting, for ever if it always is.
 *
 * -EINVAL: no branch; -E2BIG: more than 64. Cancelled from outside: -ECANCELED, or the number of
 * the first branch that ended otherwise.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_select_biased_array(blz_select_op *op, blz_future **branches,
                                                          size_t count);

/*
 * Awaits the first of several futures to be ready, as blz_select_biased_array does: gives its
 * number, from 0. The others are cancelled and awaited. -EINVAL: no branch; -E2BIG: more than 64.
 * Cancelled from outside: -ECANCELED, or the number of the first branch that ended otherwise.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_race_array(blz_race_op *op, blz_future **branches,
                                                 size_t count);

/*
 * Awaits all: gives the number of those that ended with an error, so 0 means that all went well.
 * The list may be empty. -E2BIG: more than 64.
 *
 * Cancelled from outside: -ECANCELED if any branch ended with that; otherwise the number of those
 * that ended with an error.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_join_array(blz_join_op *op, blz_future **branches,
                                                 size_t count);

/*
 * Awaits all, as long as they go well: 0. As soon as one ends with an error the others are
 * cancelled and awaited (those that have not been polled yet are not started), and the result is
 * that error; op->first is the number of the branch. If several fail at once it may be any of them.
 * The list may be empty. -E2BIG: more than 64.
 *
 * Cancelled from outside: 0 if all went well nevertheless; otherwise the first error that is not
 * -ECANCELED, or -ECANCELED.
 */
BLZ_API BLZ_NODISCARD blz_future *blz_try_join_array(blz_try_join_op *op, blz_future **branches,
                                                     size_t count);

#ifndef __cplusplus

/*
 * Combinators that take up to eight futures as arguments: blz_select(&self->op, a, b, c). Results
 * and errors of the function that takes an array. C only.
 */
#define blz_select(op, ...)        BLZ_BRANCHES_(blz_select_array, (op), __VA_ARGS__)
#define blz_select_biased(op, ...) BLZ_BRANCHES_(blz_select_biased_array, (op), __VA_ARGS__)
#define blz_race(op, ...)          BLZ_BRANCHES_(blz_race_array, (op), __VA_ARGS__)
#define blz_join(op, ...)          BLZ_BRANCHES_(blz_join_array, (op), __VA_ARGS__)
#define blz_try_join(op, ...)      BLZ_BRANCHES_(blz_try_join_array, (op), __VA_ARGS__)

/* ---- What the macros are made of ---- */

#define BLZ_BRANCHES_(make, op, ...)                                \
    blz_branches_copy_((make), (op), (blz_future *[]){__VA_ARGS__}, \
                       BLZ_BRANCHES_COUNT_(__VA_ARGS__))

#define BLZ_BRANCHES_LEN_(...) (sizeof((blz_future *[]){__VA_ARGS__}) / sizeof(blz_future *))
/* An array of negative size: there are more than 8 branches, use an array of your own. */
#define BLZ_BRANCHES_COUNT_(...)      \
    (BLZ_BRANCHES_LEN_(__VA_ARGS__) + \
     0 * sizeof(char[BLZ_BRANCHES_LEN_(__VA_ARGS__) <= BLZ_BRANCHES_COPIED ? 1 : -1]))

static inline BLZ_NODISCARD blz_future *blz_branches_copy_(
    blz_future *(*make)(blz_branches *, blz_future **, size_t), blz_branches *op,
    blz_future *const *branches, size_t count)
{
    for (size_t i = 0; i < count; i++)
        op->own[i] = branches[i];
    return make(op, op->own, count);
}

#endif

BLZ_END_DECLS
#endif
