/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of each thread of a pool: counters, buffers, random numbers that no two threads share.
 *
 *     static void make(void *item, void *arg) { *(uint64_t *)item = 0; }
 *
 *     blz_par_per_thread sums;
 *
 *     rc = blz_par_per_thread_init(&sums, pool, sizeof(uint64_t), make, NULL);
 *     ...
 *     *(uint64_t *)blz_par_per_thread_get(&sums, par) += value;        // in a computation
 *     ...
 *     for (uint64_t *sum = NULL; (sum = blz_par_per_thread_next(&sums, sum));)        // after it
 *         total += *sum;
 *     blz_par_per_thread_free(&sums);
 *
 * A thread that never asks has no item, and a thread that waits for a job may run another one that
 * asks for the same item: it is the thread's, not the computation's.
 */
#ifndef BLITZ_PAR_PER_THREAD_H
#define BLITZ_PAR_PER_THREAD_H

#include <blitz/par.h>

BLZ_BEGIN_DECLS

/* Makes an item, in memory that is 0. */
typedef void (*blz_par_make_fn)(void *item, void *arg);

/* All of it is the library's business. */
typedef struct blz_par_per_thread {
    blz_pool *pool;
    char *slots; /* one for each index: whether its item is made, then the item */
    size_t stride;
    unsigned count;
    blz_par_make_fn make;
    void *arg;
    uint64_t reserved[2];
} blz_par_per_thread;

enum { BLZ_PAR_PER_THREAD_HEAD_ = 16 };

/*
 * Prepares items of `size` bytes, aligned to 16, on cache lines of their own, one for each thread
 * of the pool. make is called for each thread when it first asks; NULL: an item is 0. 0; -ENOMEM;
 * -EINVAL: size 0, or far too large. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_par_per_thread_init(blz_par_per_thread *items, blz_pool *pool,
                                                  size_t size, blz_par_make_fn make, void *arg);

/*
 * Frees the items. Nothing may use them any more. What an item refers to must be freed by the
 * caller before. [any thread]
 */
BLZ_API void blz_par_per_thread_free(blz_par_per_thread *items);

/* The library's: the thread has no item yet. */
BLZ_API BLZ_COLD void *blz_par_per_thread_make_(blz_par_per_thread *items, unsigned index);

/* The item of this thread. Never NULL. [in a computation of the pool] */
static inline void *blz_par_per_thread_get(blz_par_per_thread *items, blz_par *par)
{
    unsigned index = blz_par_index(par);
    char *slot = items->slots + index * items->stride;

    return blz_likely(*slot) ? slot + BLZ_PAR_PER_THREAD_HEAD_
                             : blz_par_per_thread_make_(items, index);
}

/*
 * The item after the given one, of those that were made; NULL: the first. Gives NULL after the
 * last. [any thread, after the computations]
 */
BLZ_API void *blz_par_per_thread_next(const blz_par_per_thread *items, const void *item);

BLZ_END_DECLS
#endif
