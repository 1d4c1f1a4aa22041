/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that several pools need, and that sleeps in one of them.
 *
 * A worker of one pool may be in the middle of something that it took as a guest of another: either
 * may have nobody else for what comes from outside. While it waits for yet another pool it sleeps
 * in one of them, as sleep.h says, and leaves word in the others where that is. Who posts a
 * computation or a broadcast follows that word:
 *
 *     thread                                poster
 *     announces that it will sleep          puts it where others find it
 *     leaves word in the other pools        light fence
 *     heavy fence                           anybody away? moves the event where that one sleeps,
 *     looks for what came there; sleeps     and wakes it
 *
 * Either the thread finds what was posted; or the poster finds the word, and the announcement: then
 * the thread is counted as asleep, and is woken, or will not be counted any more. A word that is
 * old wakes it in vain at most. It is taken back, before the wait ends, with the lock under which
 * it is followed, so the pool that it names is there as long as somebody is about to wake one.
 */
#include "par/pool.h"

bool blz__par_is_needed(const worker *w)
{
    return !pool_is_forked(w->pool) &&
           (w->index < w->pool->nr_workers || w->tasks.frame != &w->tasks.base);
}

/* NULL: the thread of that context is back. */
static void leave_word(worker *w, worker *sleeps_as)
{
    blz_pool *pool = w->pool;
    uint32_t change = (uint32_t)(sleeps_as != NULL) - (uint32_t)(w->sleeps_as != NULL);

    if (w->sleeps_as == sleeps_as)
        return;
    blz__lock_acquire(&pool->away_lock);
    blz__plain_write(&w->sleeps_as);
    w->sleeps_as = sleeps_as;
    /* Relaxed: blz__par_away ends with a fence, and the lock orders the rest. */
    blz__store(&pool->nr_away, blz__load(&pool->nr_away, RELAXED) + change, RELAXED);
    blz__lock_release(&pool->away_lock);
}

void blz__par_away(worker *sleeps_as)
{
    for (blz_par *par = blz__thread_locals()->par; par; par = worker_of(par)->outer) {
        worker *w = worker_of(par);

        if (w == sleeps_as || !blz__par_is_needed(w))
            continue;
        leave_word(w, sleeps_as);
        blz__par_sleep_fence(&w->pool->sleep); /* pairs with that of blz__par_sleep_post */
    }
}

void blz__par_back(void)
{
    for (blz_par *par = blz__thread_locals()->par; par; par = worker_of(par)->outer)
        if (!pool_is_forked(worker_of(par)->pool))
            leave_word(worker_of(par), NULL);
}

void blz__par_call_away(blz_pool *pool)
{
    if (blz_likely(!blz__load(&pool->nr_away, RELAXED))) /* after the fence of the post */
        return;
    blz__lock_acquire(&pool->away_lock);
    for (uint32_t i = 0; i < pool_nr_in_use(pool); i++) {
        worker *sleeps_as = pool->workers[i].sleeps_as;

        blz__plain_read(&pool->workers[i].sleeps_as);
        if (!sleeps_as)
            continue;
        blz__par_sleep_post(&sleeps_as->pool->sleep, 0); /* not asleep yet: it looks again */
        blz__par_sleep_wake(&sleeps_as->pool->sleep, sleeps_as->index);
    }
    blz__lock_release(&pool->away_lock);
}
