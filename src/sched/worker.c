/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker is: the state of a thread that polls tasks, its driver, and the blocks of memory
 * that end here. What it does is in loop.c.
 */
#include "sched/rt.h"

#include "base/thread_locals.h"
#include "system/clock.h"

#include <blitz/error.h>
#include <string.h>

blz_worker *blz__worker_current(void)
{
    return blz__thread_locals()->worker;
}

unsigned blz__worker_index(void)
{
    return blz__thread_locals()->worker->index;
}

uint64_t blz__sched_random(const blz_cx *cx)
{
    blz__rng rng;

    if (blz_likely(cx->worker != NULL))
        return blz__rng_next(&cx->worker->rng);
    blz__rng_init(&rng, (uint64_t)blz__clock_ns());
    return blz__rng_next(&rng);
}

void blz__worker_set_current(blz_worker *worker)
{
    blz__thread_locals()->worker = worker;
}

blz_cx *blz__sched_current_cx(void)
{
    return blz__thread_locals()->worker ? blz__thread_locals()->worker->cx : NULL;
}

bool blz__sched_on_worker(void)
{
    return blz__thread_locals()->worker && !rt_is_forked(blz__thread_locals()->worker->rt);
}

blz_task *blz_task_current(void)
{
    return blz__thread_locals()->worker && blz__thread_locals()->worker->cx
               ? blz__thread_locals()->worker->cx->task
               : NULL;
}

blz_rt *blz_rt_current(void)
{
    return blz__thread_locals()->worker ? blz__thread_locals()->worker->rt : NULL;
}

/* ---- creation ---- */

int blz__worker_init(blz_worker *w, blz_rt *rt, uint32_t index)
{
    memset(w, 0, sizeof *w);
    w->rt = rt;
    w->index = index;
    local_init(&w->local, rt->asymmetric_fences);
    w->ring.unshared = rt->nr_workers == 1 || !rt->stealing;
    w->until_events = rt->event_interval;
    w->until_inject = 1;
    w->until_sample = 1;
    w->until_latency = 1;
    blz__rng_init(&w->rng, rt->options.seed + index * 0x9E3779B97F4A7C15u);
    blz__tuner_init(&w->tuner, rt);
    blz__heap_init(&w->heap, rt, &rt->pool);
    blz__wheel_init(&w->wheel, blz__rt_now(rt), rt->asymmetric_fences);
    return rt->driver_ops ? blz__worker_open_driver(w) : 0;
}

int blz__worker_open_driver(blz_worker *w)
{
    blz_rt *rt = w->rt;
    int rc;
    const blz__driver_ops *ops = blz__rt_driver_ops(rt, &rc);
    blz__driver *driver;

    if (!ops)
        return rc;
    driver = w->reserved;
    w->reserved = NULL;
    rc = driver ? 0 : ops->open(&driver, &rt->options, &rt->allocator);
    if (rc < 0)
        return rc;
    driver->worker = w;
    w->parker.driver = driver;
    blz__store(&w->driver, driver, RELEASE); /* statistics read it */
    return 0;
}

blz__driver *blz__driver_current(void)
{
    return blz__thread_locals()->worker ? blz__thread_locals()->worker->driver : NULL;
}

int blz__driver_need(void)
{
    if (!blz__thread_locals()->worker)
        return -ENXIO;
    return blz__thread_locals()->worker->driver
               ? 0
               : blz__worker_open_driver(blz__thread_locals()->worker);
}

void blz__worker_close_driver(blz_worker *w)
{
    if (w->reserved)
        w->reserved->ops->close(w->reserved);
    w->reserved = NULL;
    if (!w->driver)
        return;
    if (w->in_turn_park)
        blz__parker_end_driver(&w->parker);
    w->in_turn_park = false;
    w->driver->ops->close(w->driver);
    w->driver = w->parker.driver = NULL;
}

void blz__worker_destroy(blz_worker *w)
{
    blz__worker_close_driver(w);
    blz__heap_destroy(&w->heap);
}

/* ---- blocks of other heaps ---- */

void blz__worker_flush_frees(blz_worker *w)
{
    if (w->remote_frees.first)
        blz__heap_free_remote(w->remote_frees.first, w->remote_frees.last);
    w->remote_frees = (task_list){NULL, NULL, 0};
}

/*
 * By a thread that is no worker of that runtime. It may be the last to let go of a task of a
 * runtime that has been freed already, and while it calls the allocator it must not be too late for
 * that: it counts as one that still needs the runtime.
 */
static BLZ_NOINLINE void free_foreign(blz_rt *rt, blz__heap *heap, blz_task *task)
{
    struct blz__chunk *removed = NULL;
    bool counted;

    if (rt_is_forked(rt))
        return; /* the lock may be held by a thread that the child does not have */
    blz__lock_acquire(&rt->inject.lock);
    counted = rt->ended; /* the block was */
    if (heap == &rt->foreign_heap)
        blz__heap_free_local(heap, task, &removed);
    else
        blz__heap_free_remote(task, task);
    if (removed && !counted) {
        rt->orphans++;
        counted = true;
    }
    blz__lock_release(&rt->inject.lock);
    blz__heap_release(heap, removed);
    if (blz_unlikely(counted))
        blz__rt_drop_orphan(rt);
}

void blz__sched_free_block(blz_task *task)
{
    blz_worker *w = blz__thread_locals()->worker;
    blz__heap *heap = blz__heap_of(task);

    if (blz_likely(w && heap == &w->heap)) {
        struct blz__chunk *removed = NULL;
        blz__heap_free_local(heap, task, &removed);
        if (blz_unlikely(removed != NULL))
            blz__heap_release(heap, removed);
    } else if (!w || w->rt != blz__heap_rt(task)) {
        free_foreign(blz__heap_rt(task), heap, task);
    } else {
        if (w->remote_frees.first && blz__heap_of(w->remote_frees.first) != heap)
            blz__worker_flush_frees(w);
        task_list_append(&w->remote_frees, task);
        if (w->remote_frees.count >= REMOTE_FREE_BATCH)
            blz__worker_flush_frees(w);
    }
}
