/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broadcasts: a function that each thread of the pool calls once.
 *
 * They have numbers, and are in a list until all have called them; a worker knows the last number
 * that it has had. One that is not in the list any more has been called by everybody, so the next
 * one for a worker is the first of a higher number: the node that it finds cannot go before it has
 * called it. A worker looks for them where it looks for any other work, before it sleeps the last
 * time; those that sleep are woken, all of them.
 *
 * Workers that wait for a stolen job call it afterwards, and those that wait for another pool in an
 * isolated region, too. That is why who is in such a job or region may not broadcast, in whatever
 * pool it has got to from there: they might wait for each other.
 */
#include "par/pool.h"

#include <blitz/error.h>

struct broadcast {
    broadcast_node node;
    blz_pool *pool;
    blz_pool *waiter; /* the pool of who waits, or NULL */
    uint32_t index;
    uint32_t left;
    uint32_t latch;
};

/* ---- the list ---- */

static void add(broadcast_list *list, broadcast_node *node)
{
    blz__lock_acquire(&list->lock);
    node->number = blz__load(&list->last_number, RELAXED) + 1;
    node->next = NULL;
    if (list->last)
        list->last->next = node;
    else
        list->first = node;
    list->last = node;
    blz__store(&list->last_number, node->number, RELAXED); /* sleep.h orders it for who looks */
    blz__lock_release(&list->lock);
}

static void remove_node(broadcast_list *list, broadcast_node *node)
{
    broadcast_node **link = &list->first, *before = NULL;

    blz__lock_acquire(&list->lock);
    for (; *link != node; link = &before->next)
        before = *link;
    *link = node->next;
    if (list->last == node)
        list->last = before;
    blz__lock_release(&list->lock);
}

/* The first that comes after that number. */
static broadcast_node *next_of(broadcast_list *list, uint32_t number)
{
    broadcast_node *node;

    blz__lock_acquire(&list->lock);
    node = list->first;
    while (node && (int32_t)(node->number - number) <= 0)
        node = node->next;
    blz__lock_release(&list->lock);
    return node;
}

/* ---- calling ---- */

static void call(worker *w, struct broadcast *b)
{
    blz_pool *waiter = b->waiter;
    uint32_t index = b->index;

    w->broadcast_number = b->node.number;
    b->node.fn(&w->ring.own, b->node.arg);
    /* release and acquire: what all of them wrote is seen by who waits */
    if (blz__fetch_sub(&b->left, 1u, ACQ_REL) != 1)
        return;
    remove_node(&b->pool->broadcasts, &b->node);
    if (latch_set(&b->latch)) /* it is gone now, but for its pool */
        blz__par_sleep_wake(&waiter->sleep, index);
    if (waiter)
        blz__fetch_sub(&waiter->nr_wakers, 1u, RELEASE); /* pairs with wait_for_wakers */
}

bool blz__par_has_broadcast(const worker *w)
{
    return blz__load(&w->pool->broadcasts.last_number, RELAXED) != w->broadcast_number &&
           w->index < w->pool->nr_workers;
}

bool blz__par_run_broadcast(worker *w)
{
    broadcast_list *list = &w->pool->broadcasts;
    broadcast_node *node;
    task_frame frame;

    if (!blz__par_has_broadcast(w))
        return false;
    node = next_of(list, w->broadcast_number);
    if (!node)
        return false;
    blz__par_stop_looking(w); /* it may take long */
    blz__par_fresh_fuel(w, false);
    blz__par_frame_begin(w, &frame, true);
    call(w, blz_container_of(node, struct broadcast, node));
    blz__par_frame_end(w, &frame);
    blz__par_sleep_begin_looking(&w->pool->sleep);
    return true;
}

static void wake_all(blz_pool *pool)
{
    blz__par_sleep_post(&pool->sleep, pool->nr_workers);
    for (uint32_t i = 0; i < pool->nr_workers; i++)
        blz__par_sleep_wake(&pool->sleep, i);
    blz__par_call_away(pool);
}

int blz_pool_broadcast(blz_pool *named, blz_par_fn fn, void *arg)
{
    blz_pool *pool = named ? named : blz_pool_default();
    blz_par *here = blz__par_context_in(pool);
    worker *w = here ? worker_of(here) : blz__par_serving(); /* calls it meanwhile, if it is in */
    struct broadcast b = {.node = {.fn = fn, .arg = arg}, .pool = pool};

    if (!pool)
        return -EAGAIN;
    if (pool_is_forked(pool))
        return -EOWNERDEAD;
    if ((w && w->isolated) || blz__par_is_awaited())
        return -EDEADLK;
    b.left = pool->nr_workers;
    if (w) {
        b.waiter = w->pool;
        b.index = w->index;
        blz__fetch_add(&w->pool->nr_wakers, 1u, RELAXED); /* which is not freed before this ends */
    }
    add(&pool->broadcasts, &b.node);
    wake_all(pool);
    if (here)
        blz__par_work_until(w, &b.latch);
    else
        blz__par_wait_outside(w, pool, &b.latch);
    return 0;
}
