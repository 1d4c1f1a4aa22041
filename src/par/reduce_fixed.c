/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds whose result depends on nothing but the elements: a tree that is fixed by n. A node halves
 * its range until no more than a block is left, and combines the results of its halves, whoever
 * computed them. Each leaf is folded from the identity.
 *
 * A block is a 256th of the loop, so that there is something to share when elements are few and
 * costly, but no more than 4096 elements, by when forks and combining cost nothing.
 *
 * Accumulators of right halves are on a stack of their own, one for each level of the tree: a
 * thread that walks needs as many as there are levels below it. It is an array in its frame if it
 * is small, which it is for all but unusual accumulators, and comes from the allocator otherwise.
 */
#include "par/range.h"

#include <blitz/error.h>
#include <string.h>

enum { MOST_BLOCKS = 256, MOST_IN_A_BLOCK = 4096, STACK_SIZE = 1024, ALIGNMENT = 16 };

typedef struct tree {
    range_loop loop;
    size_t block;
    size_t stride; /* from one accumulator to the next */
} tree;

typedef struct node {
    blz_par_job job;
    tree *tree;
    size_t begin, end;
    char *acc;
} node;

/* Levels below a node of n elements. */
static size_t levels_of(const tree *t, size_t n)
{
    size_t levels = 0;

    for (; n > t->block; n -= n / 2)
        levels++;
    return levels;
}

/* ---- walking ---- */

static void run_node(blz_par *par, blz_par_job *job);

static void set_identity(const tree *t, void *acc)
{
    if (t->loop.reducer->size)
        memcpy(acc, t->loop.reducer->identity, t->loop.reducer->size);
}

static void fold_leaf(blz_par *par, tree *t, size_t begin, size_t end, void *acc)
{
    set_identity(t, acc);
    range_check(&t->loop, t->loop.reducer->fold(par, acc, begin, end, t->loop.arg));
}

/* Folds into *acc; `stack` has room for the levels below. */
static void walk_node(blz_par *par, tree *t, size_t begin, size_t end, char *acc, char *stack)
{
    size_t middle = begin + (end - begin) / 2;
    node right = {.tree = t, .begin = middle, .end = end, .acc = stack};

    if (blz__par_loop_is_over(&t->loop)) {
        set_identity(t, acc);
        return;
    }
    if (end - begin <= t->block) {
        fold_leaf(par, t, begin, end, acc);
        return;
    }
    blz_par_fork(par, &right.job, run_node);
    walk_node(par, t, begin, middle, acc, stack + t->stride);
    if (blz_par_unfork_with(par, &right.job, t->loop.waiting))
        walk_node(par, t, middle, end, stack, stack + t->stride);
    range_check(&t->loop, t->loop.reducer->combine(acc, stack, t->loop.arg));
}

/* With a stack for the thread that begins here. */
static void walk(blz_par *par, tree *t, size_t begin, size_t end, char *acc)
{
    _Alignas(ALIGNMENT) char small[STACK_SIZE];
    size_t levels = levels_of(t, end - begin), size = levels * t->stride;
    char *stack = size <= sizeof small ? small : blz__par_alloc(par, size);

    if (!stack) {
        blz_par_cancel_set(&t->loop.failure, -ENOMEM);
        set_identity(t, acc);
        return;
    }
    walk_node(par, t, begin, end, acc, stack);
    if (stack != small)
        blz__par_free(par, stack, size);
}

static void run_node(blz_par *par, blz_par_job *job)
{
    node *n = blz_container_of(job, node, job);

    walk(par, n->tree, n->begin, n->end, n->acc);
}

int blz_par_deterministic_reduce(blz_par *par, void *result, size_t n,
                                 const blz_par_reducer *reducer, void *arg,
                                 const blz_par_options *options)
{
    tree t = {.block = n / MOST_BLOCKS};

    blz__par_loop_init(&t.loop, par, n, options);
    t.loop.reducer = reducer;
    t.loop.arg = arg;
    t.stride = (reducer->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    t.block = t.block < 1 ? 1 : t.block > MOST_IN_A_BLOCK ? MOST_IN_A_BLOCK : t.block;
    if (n == 0) {
        set_identity(&t, result);
        blz__par_loop_is_over(&t.loop);
    } else {
        walk(par, &t, 0, n, result);
    }
    return blz_par_cancel_code(&t.loop.failure);
}
