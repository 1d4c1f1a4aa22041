/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of computations from outside: each is had by one, the oldest first, or withdrawn. A
 * computation is in the frame of who waits for it, so the same node comes again as soon as it has
 * been taken: a queue that takes one node by compare and swap does not survive that.
 */
#include "par/inject.h"

static inject_queue queue;
static root roots[2];
static uint32_t taken[2]; /* how often each has been had */

static void begin(void)
{
    blz__par_inject_init(&queue);
    for (int i = 0; i < 2; i++)
        roots[i] = (root){.fn = NULL};
    taken[0] = taken[1] = 0;
}

static root *take(void)
{
    root *r = blz__par_inject_take(&queue);

    if (r) {
        blz__plain_write(&r->arg); /* the queue has nothing to do with it any more */
        r->arg = &taken[r - roots];
        blz__fetch_add(&taken[r - roots], 1u, RELAXED);
    }
    return r;
}

static void push(root *r)
{
    blz__plain_write(&r->arg);
    blz__par_inject_push(&queue, r);
}

static void take_one(void *arg)
{
    (void)arg;
    take();
}

/* As long as there is one: then nobody else will come. */
static void take_the_rest(void)
{
    while (take())
        ;
    model_assert(!queue.first && blz__load(&queue.len, RELAXED) == 0);
}

static void a_root_that_comes_again_is_had_once_each_time(void)
{
    model_thread other;
    root *r;
    uint32_t pushed = 2;

    begin();
    push(&roots[0]);
    push(&roots[1]);
    other = model_start(take_one, NULL);
    r = take();
    take();
    if (r) { /* its thread goes on, and has another computation in the same place */
        push(r);
        pushed++;
    }
    model_join(other);
    take_the_rest();
    model_assert(taken[0] + taken[1] == pushed);
}

static void push_both(void *arg)
{
    (void)arg;
    push(&roots[0]);
    push(&roots[1]);
}

static void the_oldest_is_taken_first(void)
{
    model_thread other;
    root *r;

    begin();
    other = model_start(push_both, NULL);
    r = take();
    model_assert(r != &roots[1]);
    model_join(other);
    take_the_rest();
    model_assert(taken[0] == 1 && taken[1] == 1);
}

static void a_root_is_taken_or_withdrawn(void)
{
    model_thread other;
    bool withdrawn;

    begin();
    push(&roots[0]);
    push(&roots[1]);
    other = model_start(take_one, NULL);
    withdrawn = blz__par_inject_withdraw(&queue, &roots[0]);
    if (withdrawn)
        blz__plain_write(&roots[0].arg);
    model_join(other);
    take_the_rest();
    model_assert(taken[0] + withdrawn == 1 && taken[1] == 1);
}

static const struct model models[] = {
    {"a_root_that_comes_again_is_had_once_each_time",
     a_root_that_comes_again_is_had_once_each_time,
     {.preemptions = 3}},
    {"the_oldest_is_taken_first", the_oldest_is_taken_first, {.preemptions = 3}},
    {"a_root_is_taken_or_withdrawn", a_root_is_taken_or_withdrawn, {.preemptions = 3}},
};

MODEL_MAIN(models)
