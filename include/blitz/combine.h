/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combinators: one future made of several. (blz_with_timeout is in blitz/time.h.)
 *
 *     BLZ_AWAIT(self->rc, blz_race(&self->race,
 *                                  blz_oneshot_recv(&self->wait, &self->reply, &self->value),
 *                                  blz_sleep(&self->nap, BLZ_SEC)));
 *     if (self->rc == 0 && self->wait.future.result == 0)
 *         use(self->value);                   // the reply
 *     else if (self->rc == 1)
 *         puts("no reply within a second");   // the receiver has been cancelled, and has ended
 *
 * Each branch is a cancel scope of its own. A combinator that no longer needs a branch cancels it
 * and waits for its end before it is ready itself: nothing goes on behind the caller's back.
 */
#ifndef BLITZ_COMBINE_H
#define BLITZ_COMBINE_H

#include <blitz/future.h>

BLZ_BEGIN_DECLS

/* Branches of blz_race, and of blz_race_array. */
#define BLZ_RACE_MAX       8
#define BLZ_RACE_ARRAY_MAX 64

typedef struct blz_race_op {
    blz_future future;
    blz_future **branches;
    uint64_t live; /* a bit for each branch that is not ready */
    uint32_t count;
    int32_t winner; /* -1: none yet */
    blz_future *own[BLZ_RACE_MAX];
    uint64_t reserved;
} blz_race_op;

/*
 * Awaits the first of several futures to be ready: gives its number, from 0. The others are
 * cancelled and awaited; what they ended with (-ECANCELED, or a real result that came all the same)
 * is in their own `result`, as the winner's is. If several are ready at once the first in the list
 * wins; branches behind a winner that is ready at the very first poll are not started.
 *
 * A cancellation is passed on to all branches, which are awaited: -ECANCELED, or the number of the
 * first branch that ended otherwise. Each poll polls every branch that is not ready: meant for a
 * few, not for hundreds. -EINVAL: no branch; -E2BIG: more than 64. [task]
 *
 *     blz_race(&self->race, a, b, c)                   up to 8, copied
 *     blz_race_array(&self->race, self->branches, n)   up to 64; the array stays until it is ready
 */
BLZ_API blz_future *blz_race_array(blz_race_op *op, blz_future **branches, size_t count);

/* What blz_race calls: copies the array. */
BLZ_API blz_future *blz_race_copy_(blz_race_op *op, blz_future *const *branches, size_t count);

#ifndef __cplusplus
#define blz_race(op, ...) \
    blz_race_copy_((op), (blz_future *[]){__VA_ARGS__}, BLZ_RACE_COUNT_(__VA_ARGS__))

#define BLZ_RACE_LEN_(...) (sizeof((blz_future *[]){__VA_ARGS__}) / sizeof(blz_future *))
/* An array of negative size: blz_race takes 8 branches, use blz_race_array. */
#define BLZ_RACE_COUNT_(...)      \
    (BLZ_RACE_LEN_(__VA_ARGS__) + \
     0 * sizeof(char[BLZ_RACE_LEN_(__VA_ARGS__) <= BLZ_RACE_MAX ? 1 : -1]))
#endif

BLZ_END_DECLS
#endif
