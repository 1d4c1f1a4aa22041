/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How loops are cut: the part that all of them share.
 *
 * A fork costs as much as a call, so a loop is cut into leaves that are only long enough to hide
 * that: some microseconds, by the clock. How many elements that is differs from place to place;
 * so each thread that walks through a part keeps its own pace. It begins with single elements, and
 * after each leaf takes twice as many if that was short, and fewer if it was long.
 */
#ifndef BLZ_PAR_RANGE_H
#define BLZ_PAR_RANGE_H

#include "par/pool.h"

#include <blitz/par_reduce.h>

/* A loop, in the frame of the one who began it. */
typedef struct range_loop {
    const blz_par_reducer *reducer;
    void *arg;
    const blz_par_cancel *cancel;
    blz_par_wait_mode waiting;
    size_t least, most;    /* elements of a leaf */
    uint64_t look_ticks;   /* after this much time a thread looks around */
    uint64_t target_ticks; /* of a leaf */
    blz__cache_aligned blz_par_cancel failure;
} range_loop;

/* A thread on its way through a part of it. */
typedef struct range_walk {
    range_loop *loop;
    void *acc;
    size_t grain;  /* elements of the next leaf, more or less */
    uint64_t last; /* ticks when it last looked at the clock; only used at the beginning */
} range_walk;

/* Ready for n elements; options may be NULL. */
void blz__par_loop_init(range_loop *l, blz_par *par, size_t n, const blz_par_options *options);

/* Whether an error or a cancellation has ended it. Asked before each split and each leaf. */
bool blz__par_loop_is_over(range_loop *l);

/* The result of a step: an error ends the loop. */
static inline void range_check(range_loop *l, int rc)
{
    if (blz_unlikely(rc < 0))
        blz_par_cancel_set(&l->failure, rc);
}

/* Whether it can do without cuts: nobody is there to help, and nobody may want to end it. */
static inline bool range_is_solo(const range_loop *l, blz_par *par)
{
    return pool_nr_in_use(worker_of(par)->pool) == 1 && !l->cancel;
}

static inline uint64_t range_now(blz_par *par)
{
    return blz__clock_ticks(&worker_of(par)->pool->clock);
}

/* At the next fork the thread looks whether others need work, though it has made few forks. */
static inline void range_look_soon(blz_par *par)
{
    blz__store(&par->fuel, 0, RELAXED);
}

/* A leaf of that many elements has taken so long. */
static inline void range_adapt(blz_par *par, range_walk *w, size_t elements, uint64_t ticks)
{
    const range_loop *l = w->loop;
    size_t grain = w->grain;

    if (ticks > l->look_ticks)
        range_look_soon(par);
    if (ticks < l->target_ticks / 2)
        grain = elements < grain / 2 ? grain : 2 * elements;
    else if (ticks > 2 * l->target_ticks)
        grain = (size_t)((double)elements * (double)l->target_ticks / (double)ticks);
    w->grain = grain > l->most ? l->most : grain < l->least ? l->least : grain;
}

/*
 * Folds [0, n) into acc, which has been set to the identity. 0; the first error; the error of the
 * cancellation. Every accumulator that was begun has been combined, in each case.
 */
int blz__par_range(blz_par *par, size_t n, const blz_par_reducer *reducer, void *arg, void *acc,
                   const blz_par_options *options);

#endif
