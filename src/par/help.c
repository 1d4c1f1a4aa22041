/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways to wait for what another thread has: helping (help.h), taking anything (worker.c), or just
 * sleeping.
 *
 * To wait without taking a job is always possible, since jobs wait only for those that they have
 * forked. That is what a worker does when its stack is short.
 *
 * Regions that are isolated nest; a thread knows how deep it is in them, in all of its contexts
 * alike. A job that is published there, a scope that is begun there and a computation that is
 * handed to another pool carry that number, and whoever takes them has it while they run. Who is in
 * such a region helps where it would have taken anything.
 */
#include "par/pool.h"

#include "base/panic.h"
#include "system/thread.h"

/* ---- claims ---- */

static uint64_t claim_of(uint32_t index, uint32_t depth, int64_t base)
{
    return (uint64_t)index << 48 | (uint64_t)(depth & 0xffff) << 32 | (uint32_t)base;
}

static worker *claimant(const blz_pool *pool, uint64_t claim)
{
    return claim == PAR_UNCLAIMED ? NULL : &pool->workers[claim >> 48];
}

void blz__par_claim(worker *w, par_taken *t, uint64_t *claim_at, uint32_t *latch)
{
    int64_t base = w->ring.own.tail;

    *t = (par_taken){.outer = w->taken,
                     .claim_at = claim_at,
                     .claim = claim_of(w->index, w->depth, base),
                     .latch = latch,
                     .depth = w->depth,
                     .base = base};
    w->taken = t;
    blz__store(claim_at, t->claim, RELAXED); /* the helper sees it with the jobs that follow */
}

void blz__par_unclaim(worker *w, par_taken *t)
{
    uint64_t claim = t->claim;

    w->taken = t->outer;
    /* Another one may have put up its own, for tasks of the same scope. Relaxed: as above. */
    if (blz__load(t->claim_at, RELAXED) == claim)
        blz__cas(t->claim_at, &claim, PAR_UNCLAIMED, RELAXED, RELAXED);
}

bool blz__par_belongs(const worker *victim, const uint64_t *claim_at, uint64_t claim, int64_t index)
{
    uint32_t depth = blz__load(&victim->depth, RELAXED);

    return blz__load(claim_at, RELAXED) == claim && (depth & 0xffff) == (claim >> 32 & 0xffff) &&
           (uint32_t)index - (uint32_t)claim < UINT32_MAX / 2;
}

void blz__par_tell_helper(worker *w, int64_t index)
{
    for (par_taken *t = w->taken; t && t->depth == w->depth; t = t->outer) {
        if (index < t->base)
            continue;
        if (blz__load(t->claim_at, RELAXED) != t->claim) /* of a scope: the helper looks here */
            blz__store(t->claim_at, t->claim, RELAXED);
        if (latch_poke(t->latch))
            return;
    }
}

/* ---- helping ---- */

/* What is waited for: a job, or the tasks of a scope. */
struct awaited {
    uint32_t *latch;
    const uint64_t *claim_at;
    const blz_par_scope *scope; /* NULL: a job */
};

static blz_par_job *steal_part(worker *w, const uint64_t *claim_at, par_effort how)
{
    uint64_t claim = blz__load(claim_at, RELAXED);
    worker *victim = claimant(w->pool, claim);
    blz_par_job *job;
    int64_t index;

    if (!victim)
        return NULL;
    while (ring_look(&victim->ring, &index, &job) &&
           blz__par_belongs(victim, claim_at, claim, index)) {
        if (ring_take(&victim->ring, index))
            return job;
        blz__spin_hint();
    }
    job = how == PAR_FORCE ? blz__par_force_part(w, victim, claim_at, claim) : NULL;
    if (!job && how != PAR_LOOK)
        blz__par_ask(victim);
    return job;
}

static bool find_part(worker *w, const struct awaited *a, par_effort how, par_found *f)
{
    *f = (par_found){.block = a->scope ? blz__par_take_offer(w, a->scope) : NULL};
    if (f->block) { /* where it was there is more, and who saw that it was being taken may sleep */
        blz__par_sleep_post(&w->pool->sleep, 1);
        return true;
    }
    f->job = steal_part(w, a->claim_at, how);
    if (!f->job && how == PAR_FORCE && a->scope)
        f->block = blz__par_force_tasks(w, a->scope);
    return f->block || f->job;
}

/* Sleeps until it is set, or there is something to help with. */
static void sleep_as_helper(worker *w, const struct awaited *a)
{
    par_found f;

    if (!latch_block(a->latch))
        return;
    /* Pairs with that of blz__par_sleep_post, and with the light one of a spawn. */
    blz__par_sleep_fence(&w->pool->sleep);
    if (find_part(w, a, PAR_FORCE, &f)) {
        latch_unblock(a->latch);
        blz__par_run_found(w, &f);
    } else {
        latch_wait(a->latch);
    }
}

static void help_until(worker *w, const struct awaited *a)
{
    uint32_t rounds = 0;
    par_found f;

    while (!latch_is_set(a->latch)) {
        if (find_part(w, a, rounds % PAR_ASK_EVERY == 0 ? PAR_ASK : PAR_LOOK, &f)) {
            blz__par_run_found(w, &f);
            rounds = 0;
        } else if (!blz__par_idle_round(w->pool, &rounds)) {
            sleep_as_helper(w, a);
        }
    }
}

static void block_until(const blz_pool *pool, uint32_t *latch)
{
    uint32_t rounds = 0;

    while (!latch_is_set(latch))
        if (!blz__par_idle_round(pool, &rounds) && latch_block(latch))
            latch_wait(latch);
}

/* ---- which way to wait ---- */

/* Whether there is stack for another job on top of this one: a quarter must be left. */
static BLZ_NOINLINE bool has_stack(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    struct blz__thread_locals *mine = blz__thread_locals();

    if (!mine->stack_known) {
        blz__thread_stack(&mine->stack_low, &mine->stack_size);
        mine->stack_known = true;
    }
    return here - mine->stack_low >=
           mine->stack_size / 4; /* below `low` we are on a stack of the user's own */
}

bool blz__par_may_take(const worker *w)
{
    return has_stack() && w->depth < PAR_MAX_DEPTH && !pool_is_forked(w->pool);
}

static blz_par_wait_mode way_to_wait(const worker *w, blz_par_wait_mode wish)
{
    blz_par_wait_mode way = wish == BLZ_PAR_WAIT_DEFAULT ? w->pool->waiting : wish;

    if (!blz__par_may_take(w))
        return BLZ_PAR_WAIT_BLOCK;
    return way == BLZ_PAR_WAIT_STEAL && w->isolated ? BLZ_PAR_WAIT_LEAPFROG : way;
}

static void wait_until(worker *w, const struct awaited *a, blz_par_wait_mode waiting)
{
    switch (way_to_wait(w, waiting)) {
    case BLZ_PAR_WAIT_STEAL:
        blz__par_work_until(w, a->latch);
        break;
    case BLZ_PAR_WAIT_DEFAULT:
    case BLZ_PAR_WAIT_LEAPFROG:
        help_until(w, a);
        break;
    case BLZ_PAR_WAIT_BLOCK:
        if (pool_is_forked(w->pool) && !latch_is_set(a->latch))
            blz__panic(PAR_CHILD_WAITS);
        block_until(w->pool, a->latch);
        break;
    }
}

void blz__par_wait_for(worker *w, blz_par_job *job, blz_par_wait_mode waiting)
{
    wait_until(w, &(struct awaited){&job->latch, &job->claim, NULL}, waiting);
}

void blz__par_wait_for_scope(worker *w, blz_par_scope *scope)
{
    wait_until(w, &(struct awaited){&scope->latch, &scope->claim, scope}, BLZ_PAR_WAIT_DEFAULT);
}

void blz__par_wait_outside(worker *w, const blz_pool *pool, uint32_t *latch)
{
    if (w && !w->isolated && way_to_wait(w, BLZ_PAR_WAIT_DEFAULT) != BLZ_PAR_WAIT_BLOCK)
        blz__par_work_until(w, latch);
    else
        block_until(pool, latch);
}

/* ---- isolated regions ---- */

void blz__par_isolate(uint32_t regions)
{
    for (blz_par *par = blz__thread_locals()->par; par; par = worker_of(par)->outer)
        blz__store(&worker_of(par)->isolated, regions, RELAXED); /* thieves read it */
}

void blz_par_isolated(blz_par *par, blz_par_fn fn, void *arg)
{
    uint32_t regions = worker_of(par)->isolated;

    blz__par_isolate(regions + 1);
    fn(par, arg);
    blz__par_isolate(regions);
}
