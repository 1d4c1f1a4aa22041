/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shutdown: refuse new tasks, cancel all, let them run to their end; if that takes too long,
 * override their shields; if it still does, report it. The blocking pool comes last.
 *
 * How every task learns of it: the phase is set first. A task that is polled after that is
 * cancelled by the worker that polls it. A task that is idle is found by walking the heaps, and
 * queued. A task that was being polled when the phase changed, and then became idle, might fall
 * between the two: so the worker looks at the phase again after making it idle, and repeats the
 * walk (end_in_pending in poll.c).
 *
 * How the end is noticed: each worker counts what it spawned and what it completed. A worker that
 * parks adds them all up, completions first: if the sums are equal, nothing was alive in
 * between. The last worker to park sees that.
 */
#include "sched/rt.h"
#include "system/clock.h"
#include "system/futex.h"

#include <blitz/error.h>

void blz__rt_walk(blz_rt *rt, void (*visit)(blz_task *block, void *arg), void *arg)
{
    for (uint32_t i = 0; i < rt->nr_workers; i++)
        blz__heap_walk(&rt->workers[i].heap, visit, arg);
    blz__heap_walk(&rt->foreign_heap, visit, arg);
}

/* Not queued here: the walk holds a lock. */
static void cancel_if_idle(blz_task *block, void *arg)
{
    task_list *cancelled = arg;

    if (task_state_cancel_idle(&block->state))
        task_list_append(cancelled, block);
}

void blz__rt_cancel_idle(blz_rt *rt)
{
    task_list cancelled = {NULL, NULL, 0};

    blz__rt_walk(rt, cancel_if_idle, &cancelled);
    for (blz_task *task = task_list_take(&cancelled); task; task = task_list_take(&cancelled))
        blz__sched_queue(task);
}

uint64_t blz__rt_live(const blz_rt *rt)
{
    uint64_t completed = 0, spawned;

    /* acquire: pairs with the release in poll_task, so that the spawn of what was completed is
     * counted below */
    for (uint32_t i = 0; i < rt->nr_workers; i++)
        completed += blz__load(&rt->workers[i].stats.completed, ACQUIRE);
    spawned = blz__load(&rt->inject.spawned, RELAXED);
    for (uint32_t i = 0; i < rt->nr_workers; i++)
        spawned += blz__load(&rt->workers[i].stats.spawned, RELAXED);
    return spawned - completed;
}

void blz__rt_expect_callback(blz_rt *rt)
{
    blz__fetch_add(&rt->callbacks, (uint64_t)1, RELAXED);
}

void blz__rt_callback_done(blz_rt *rt)
{
    visitors_enter(&rt->visitors);                        /* a handle's owner may be any thread */
    blz__fetch_sub(&rt->callbacks, (uint64_t)1, RELEASE); /* pairs with check_drained */
    if (blz__load(&rt->phase, ACQUIRE) != RT_OPEN)        /* pairs with enter_phase */
        blz__rt_check_drained(rt);                        /* the workers may all have parked */
    visitors_leave(&rt->visitors);
}

void blz__rt_check_drained(blz_rt *rt)
{
    /* Callbacks last: those of tasks that the sums say have ended are counted by then. */
    if (blz__rt_live(rt) != 0 || blz__load(&rt->callbacks, ACQUIRE) != 0)
        return;
    blz__store(&rt->drained, 1u, RELEASE); /* pairs with the acquire of whoever waits for it */
    blz__futex_wake(&rt->drained, INT32_MAX);
    blz__plain_read(&rt->closer);
    if (rt->closer)
        blz__parker_unpark(&rt->closer->parker);
}

/* Waits for the last task; a worker takes part, other threads sleep. False: not in time. */
static bool wait_until_drained(blz_rt *rt, blz_worker *self, int64_t deadline_ns)
{
    blz__rt_check_drained(rt);
    if (self) {
        blz__worker_run(self, &rt->drained, deadline_ns);
    } else {
        while (!blz__load(&rt->drained, ACQUIRE)) {
            if (deadline_ns == INT64_MAX)
                blz__futex_wait(&rt->drained, 0);
            else if (!blz__futex_wait_until(&rt->drained, 0, deadline_ns))
                break;
        }
    }
    return blz__load(&rt->drained, ACQUIRE);
}

static int64_t deadline_after(int64_t grace_ns)
{
    int64_t now = blz__clock_ns();

    if (grace_ns <= 0)
        return now;
    return grace_ns > INT64_MAX - now ? INT64_MAX : now + grace_ns;
}

/*
 * What a worker did before the fence is seen by the walk and by the sums; what it does after it, it
 * does knowing the phase. Without such a fence this one is an ordinary fence, and each worker has
 * one of its own between what it does and its look at the phase (rt_fence_before_phase).
 */
static void enter_phase(blz_rt *rt, uint32_t phase)
{
    uint32_t before = blz__load(&rt->phase, RELAXED);

    do {
        if (before >= phase)
            return; /* somebody else is further: it never goes back */
        /* seq_cst: before the walk; pairs with end_in_pending */
    } while (!blz__cas_weak(&rt->phase, &before, phase, SEQ_CST, RELAXED));
    blz__fence_heavy_or_full(rt->asymmetric_fences); /* pairs with rt_fence_before_phase */
    blz__rt_cancel_idle(rt);
}

/* Refuses new tasks; true for the first to ask. After this no worker is started any more. */
static bool close_doors(blz_rt *rt, blz_worker *self, bool *started)
{
    bool first;

    blz__lock_acquire(&rt->life_lock);
    first = !rt->stopped;
    rt->stopped = true;
    *started = rt->started;
    if (first) {
        blz__plain_write(&rt->closer);
        rt->closer = self;
        blz__inject_close(&rt->inject); /* before anyone else may see that there are no tasks */
    }
    blz__lock_release(&rt->life_lock);
    return first;
}

static int end_tasks(blz_rt *rt, blz_worker *self, int64_t grace_ns)
{
    bool started, first = close_doors(rt, self, &started);

    if (!started)
        return 0; /* no task ever came, and none will */
    if (first)
        enter_phase(rt, RT_CLOSING);
    if (wait_until_drained(rt, self, deadline_after(grace_ns)))
        return 0;
    enter_phase(rt, RT_FORCING);
    return wait_until_drained(rt, self, deadline_after(grace_ns)) ? 0 : -ETIMEDOUT;
}

/* ---- the blocking pool ---- */

bool blz__rt_is_open(blz_rt *rt)
{
    bool open;

    blz__lock_acquire(&rt->life_lock);
    open = !rt->stopped;
    blz__lock_release(&rt->life_lock);
    return open;
}

blz__service *blz__rt_blocking(const blz_rt *rt)
{
    return blz__load(&rt->blocking, ACQUIRE); /* pairs with the release in set_blocking */
}

blz__service *blz__rt_set_blocking(blz_rt *rt, blz__service *pool)
{
    blz__lock_acquire(&rt->life_lock);
    if (!rt->pool_closed && !rt->blocking)
        blz__store(&rt->blocking, pool, RELEASE); /* pairs with the acquire in blz__rt_blocking */
    pool = rt->blocking;
    blz__lock_release(&rt->life_lock);
    return pool;
}

/* Tasks may need the pool to the last, so it goes after them. */
static int close_pool(blz_rt *rt, int64_t grace_ns)
{
    blz__service *pool;
    int rc;

    blz__lock_acquire(&rt->life_lock);
    rt->pool_closed = true;
    pool = rt->blocking;
    blz__lock_release(&rt->life_lock);
    rc = pool ? pool->close(pool, deadline_after(grace_ns)) : 0;
    blz__lock_acquire(&rt->life_lock); /* another thread may shut down, too */
    rt->jobs_stuck = rc < 0;
    blz__lock_release(&rt->life_lock);
    return rc;
}

int blz__rt_shutdown(blz_rt *rt, blz_worker *self, int64_t grace_ns)
{
    int rc = end_tasks(rt, self, grace_ns);
    return rc < 0 ? rc : close_pool(rt, grace_ns);
}
