/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings things into buckets, stably: those of one bucket keep their order.
 *
 * The things are cut into rows. Each row counts what it has for each bucket; from the counts
 * follows where each row may put what it has: behind what the rows before it have for the same
 * bucket. Then each row moves its things. The result does not depend on the number of rows.
 */
#ifndef BLZ_PAR_DISTRIBUTE_H
#define BLZ_PAR_DISTRIBUTE_H

#include "par/blocks.h"

typedef struct distribution {
    size_t n;          /* things; a row is a range of them */
    size_t row;        /* so many are worth a row of their own */
    size_t nr_buckets; /* 4096 at most, or the rows' counters cost too much */
    void *arg;
    /* Adds up in counts, which are zero, what is in the range for each bucket. 0, or an error. */
    int (*count)(size_t begin, size_t end, size_t *counts, void *arg);
    /* Puts it there; moves the places on. */
    void (*move)(size_t begin, size_t end, size_t *places, void *arg);
    size_t *starts; /* nr_buckets + 1: where the buckets begin */
} distribution;

/* 0, -ENOMEM, the error of `count`, or of the cancellation: nothing has been moved then, or not
 * all. */
int blz__par_distribute(blz_par *par, const distribution *d, const blz_par_options *options);

#endif
