/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a runtime: they start with its first task, and end with it. A runtime that is
 * freed may be needed a little longer, by tasks that did not end, by handles and wakers of those
 * that did: its memory goes with the last of them.
 */
#include "sched/rt.h"

#include "base/assert.h"
#include "system/thread.h"

#include <blitz/error.h>
#include <stdio.h>

/* ---- starting ---- */

static void worker_main(void *arg)
{
    blz_worker *w = arg;
    const blz_options *options = &w->rt->options;

    blz__worker_set_current(w);
    if (options->on_thread_start)
        options->on_thread_start(w->index, options->hook_arg);
    blz__worker_run(w, &w->rt->stop, INT64_MAX);
    if (options->on_thread_stop)
        options->on_thread_stop(w->index, options->hook_arg);
}

static int start_thread(blz_worker *w)
{
    const blz_options *options = &w->rt->options;
    char name[32];
    int rc;

    snprintf(name, sizeof name, "%.8s-%u", options->name, w->index);
    rc = blz__thread_start(&w->thread, worker_main, w, options->stack_size, name);
    w->is_thread = rc == 0;
    return rc;
}

static void stop_threads(blz_rt *rt)
{
    blz__store(&rt->stop, 1u, RELEASE); /* pairs with the acquire in blz__worker_run */
    for (uint32_t i = 0; i < rt->nr_workers; i++)
        if (rt->workers[i].is_thread)
            blz__parker_unpark(&rt->workers[i].parker);
    for (uint32_t i = 0; i < rt->nr_workers; i++) {
        if (rt->workers[i].is_thread)
            blz__thread_join(rt->workers[i].thread);
        rt->workers[i].is_thread = false;
    }
}

static int start_all(blz_rt *rt, bool caller_is_worker_0)
{
    int rc = blz__watchdog_start(rt);

    if (rc < 0)
        return rc;
    for (uint32_t i = caller_is_worker_0 || rt->embedded; i < rt->nr_workers; i++) {
        rc = start_thread(&rt->workers[i]);
        if (rc < 0) {
            stop_threads(rt);
            blz__store(&rt->stop, 0u, RELAXED);
            blz__watchdog_stop(rt);
            return rc;
        }
    }
    return 0;
}

int blz__rt_start(blz_rt *rt, bool caller_is_worker_0)
{
    int rc = 0;

    blz__lock_acquire(&rt->life_lock);
    if (!rt->started && rt->stopped) {
        rc = -ESHUTDOWN;
    } else if (!rt->started) {
        rc = start_all(rt, caller_is_worker_0);
        if (rc == 0)
            blz__store(&rt->started, true, RELEASE); /* pairs with the acquire in spawn_remote */
    }
    blz__lock_release(&rt->life_lock);
    return rc;
}

/* ---- ending ---- */

bool blz__rt_is_turn_owner(blz_rt *rt)
{
    uint64_t owner = 0, self = blz__thread_id();
    return blz__cas(&rt->turn_owner, &owner, self, RELAXED, RELAXED) || owner == self;
}

static bool is_pool_thread(const blz_rt *rt)
{
    const blz__service *pool = blz__rt_blocking(rt);
    return pool && pool->is_mine(pool);
}

int blz_rt_shutdown(blz_rt *rt, int64_t grace_ns)
{
    if (rt_is_forked(rt))
        return -EOWNERDEAD;
    if (blz__sched_on_worker() || blz__watchdog_is_me(rt) || blz__ready_thread_is_me(rt) ||
        is_pool_thread(rt))
        return -EDEADLK;
    if (rt->embedded && !blz__rt_is_turn_owner(rt))
        return -EPERM;
    return blz__rt_shutdown(rt, rt->embedded ? &rt->workers[0] : NULL, grace_ns);
}

void blz__rt_visit(blz_rt *rt)
{
    visitors_enter(&rt->visitors);
}

void blz__rt_leave(blz_rt *rt)
{
    visitors_leave(&rt->visitors);
}

void blz__rt_drop_orphan(blz_rt *rt)
{
    bool last;

    blz__lock_acquire(&rt->inject.lock);
    last = --rt->orphans == 0 && rt->ended;
    blz__lock_release(&rt->inject.lock);
    if (last)
        blz__rt_destroy(rt);
}

int blz__rt_add_end_hook(blz_rt *rt, blz__rt_end_hook *hook)
{
    int rc = -ESHUTDOWN;

    if (rt_is_forked(rt))
        return -EOWNERDEAD;
    blz__lock_acquire(&rt->life_lock);
    if (!rt->stopped) {
        hook->next = rt->end_hooks;
        rt->end_hooks = hook;
        rc = 0;
    }
    blz__lock_release(&rt->life_lock);
    return rc;
}

bool blz__rt_remove_end_hook(blz_rt *rt, blz__rt_end_hook *hook)
{
    blz__rt_end_hook **link = &rt->end_hooks;
    bool found;

    blz__lock_acquire(&rt->life_lock);
    while (*link && *link != hook)
        link = &(*link)->next;
    found = *link != NULL;
    if (found)
        *link = hook->next;
    blz__lock_release(&rt->life_lock);
    return found;
}

/* They may ask the runtime for what they like until they return, but not to live on. */
static void tell_watchers(blz_rt *rt)
{
    blz__rt_end_hook *hook;

    do {
        blz__lock_acquire(&rt->life_lock);
        hook = rt->end_hooks;
        if (hook)
            rt->end_hooks = hook->next;
        blz__lock_release(&rt->life_lock);
        if (hook)
            hook->ended(hook, rt);
    } while (hook);
}

/*
 * All threads of the runtime have gone. Others may still let go of tasks that have ended: what they
 * free goes to the foreign heap, under its lock.
 */
static void check_at_rest(blz_rt *rt)
{
    BLZ_ASSERT_VALID(blz__idle_check(&rt->idle));
    BLZ_ASSERT_VALID(blz__task_list_check(&rt->inject.list));
    blz__lock_acquire(&rt->inject.lock);
    BLZ_ASSERT_VALID(blz__heap_check(&rt->foreign_heap));
    blz__lock_release(&rt->inject.lock);
    for (uint32_t i = 0; i < rt->nr_workers; i++) {
        BLZ_ASSERT_VALID(blz__runq_check(&rt->workers[i].ring));
        BLZ_ASSERT_VALID(blz__wheel_check(&rt->workers[i].wheel));
        BLZ_ASSERT_VALID(blz__heap_check(&rt->workers[i].heap));
    }
    if (rt->io)
        BLZ_ASSERT_VALID(blz__fd_check(rt->io));
}

/*
 * After the shutdown. Tasks that did not end keep their workers, and all that they may use: that is
 * leaked on purpose. So is the runtime under jobs that did not end. Tasks that did end may still be
 * referred to by handles and wakers: then the last of these frees the runtime.
 */
void blz__rt_end(blz_rt *rt)
{
    struct blz__chunk *removed = NULL;

    tell_watchers(rt);
    blz__watchdog_stop(rt);
    blz__ready_thread_stop(rt);
    if (blz__load(&rt->started, ACQUIRE) && !blz__load(&rt->drained, ACQUIRE)) {
        blz__rt_report_end(rt, false);
        return;
    }
    stop_threads(rt);
    visitors_await(&rt->visitors);
    check_at_rest(rt);
    for (uint32_t i = 0; i < rt->nr_workers; i++) {
        blz__worker_drop_timers(&rt->workers[i]);
        blz__worker_close_driver(&rt->workers[i]);
    }
    blz__rt_report_end(rt, true);
    blz__io_end(rt->io); /* now: the rest may have to wait for the last handle */
    blz__lock_acquire(&rt->inject.lock);
    for (uint32_t i = 0; i < rt->nr_workers; i++) /* into any heap: so before any is counted */
        blz__worker_flush_frees(&rt->workers[i]);
    for (uint32_t i = 0; i < rt->nr_workers; i++)
        rt->orphans += blz__heap_used(&rt->workers[i].heap, &removed);
    rt->orphans += blz__heap_used(&rt->foreign_heap, &removed) + 1; /* and we */
    rt->orphans += rt->jobs_stuck;                                  /* for good */
    rt->ended = true;
    blz__lock_release(&rt->inject.lock);
    blz__heap_release(&rt->foreign_heap, removed); /* one pool serves all heaps */
    blz__rt_drop_orphan(rt);
}

int blz_rt_free(blz_rt *rt)
{
    int rc;

    if (!rt)
        return 0;
    rc = blz_rt_shutdown(rt, rt->options.shutdown_ns);
    if (rc < 0 && rc != -ETIMEDOUT)
        return rc;
    blz__rt_end(rt);
    return rc;
}
