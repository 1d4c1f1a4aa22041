/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog. Every half of its limit it looks at each worker's poll counter: a worker that is
 * in a poll, and still in the same one after the limit, is stuck. Then the watchdog
 *
 * - counts it, and tells the program which task it is;
 * - takes what the worker kept to itself (its LIFO slot and yielded tasks) and puts it where others
 *   find it, and wakes one of them if the worker's ring has tasks too;
 * - fires its timers that wake a task; callbacks wait for the worker.
 *
 * The workers do nothing for this but count. When all of them are parked it goes to sleep
 * without a time limit; the first that wakes up wakes it.
 */
#include "sched/rt.h"
#include "system/clock.h"
#include "system/futex.h"
#include "system/thread.h"
#include "tuning.h"

#include <stdio.h>
#include <string.h>

/* It looks twice as often; more would be a load of its own. */
#define MIN_LIMIT_NS BLZ_MSEC

/* ---- a stuck worker ---- */

static void lock_heaps(blz_rt *rt)
{
    for (uint32_t i = 0; i < rt->nr_workers; i++)
        blz__lock_acquire(&rt->workers[i].heap.walk_lock);
    blz__lock_acquire(&rt->foreign_heap.walk_lock);
}

static void unlock_heaps(blz_rt *rt)
{
    blz__lock_release(&rt->foreign_heap.walk_lock);
    for (uint32_t i = rt->nr_workers; i-- > 0;)
        blz__lock_release(&rt->workers[i].heap.walk_lock);
}

/* "echo at server.c:12" -> "echo" */
static void copy_name(char *out, const blz_task *task)
{
    const char *given = task_given_name(task), *name = given ? given : blz__task_origin(task);
    size_t len = given ? strlen(name) : strcspn(name, " ");

    snprintf(out, STUCK_NAME, "%.*s", (int)len, name);
}

/*
 * Who it is. We have no reference, but while all walk locks are held no memory of tasks goes away,
 * so a task that is still being polled can be looked at.
 */
static bool identify(blz_rt *rt, const blz_worker *w, const watchdog_view *view, char *name,
                     uint64_t *id)
{
    bool still;

    lock_heaps(rt);
    /* acquire: pairs with the release in poll_task */
    still = blz__load(&w->current, ACQUIRE) == view->task &&
            blz__load(&w->stats.polls, RELAXED) == view->polls;
    if (still) {
        copy_name(name, view->task);
        *id = blz_task_id(view->task);
    }
    unlock_heaps(rt);
    return still;
}

/* ---- what is remembered ---- */

static void remember(watchdog *dog, const stuck_record *record)
{
    blz__lock_acquire(&dog->log_lock);
    dog->records[dog->nr_records++ % STUCK_RECORDS] = *record;
    blz__lock_release(&dog->log_lock);
}

/* A poll that was reported is over: now it is known how long it took, to half of the limit. */
static void remember_end(watchdog *dog, const blz_worker *w, const watchdog_view *view,
                         int64_t now_ns)
{
    blz__lock_acquire(&dog->log_lock);
    for (uint32_t i = 0; i < STUCK_RECORDS; i++) {
        stuck_record *record = &dog->records[i];
        if (record->worker == w->index && record->polls == view->polls && !record->refused &&
            record->since_ns == view->since_ns) {
            record->for_ns = now_ns - view->since_ns;
            record->ended = true;
        }
    }
    blz__lock_release(&dog->log_lock);
}

/* ---- a stuck worker, told ---- */

static void report(blz_rt *rt, blz_worker *w, const watchdog_view *view, int64_t for_ns)
{
    blz_stuck stuck = {.worker = w->index, .for_ns = for_ns};
    char name[STUCK_NAME] = "";

    if (!identify(rt, w, view, name, &stuck.task_id))
        return;
    stuck.task = name;
    stuck_record record = {.id = stuck.task_id,
                           .polls = view->polls,
                           .since_ns = view->since_ns,
                           .for_ns = for_ns,
                           .worker = w->index};
    memcpy(record.name, name, sizeof record.name);
    remember(&rt->watchdog, &record);
    blz__fetch_add(&w->stuck, (uint64_t)1, RELAXED);
    if (rt->options.on_stuck)
        rt->options.on_stuck(&stuck, rt->options.hook_arg);
}

static void rescue(blz_rt *rt, blz_worker *w)
{
    task_list tasks = {NULL, NULL, 0};

    if (rt->nr_workers == 1)
        return;
    blz__local_empty(&w->local, &tasks);
    if (tasks.count)
        blz__rt_inject(rt, &tasks);
    else if (blz__runq_len(&w->ring) > 0)
        blz__rt_notify(rt);
}

static void look_at(blz_rt *rt, blz_worker *w, int64_t now_ns)
{
    watchdog_view *view = &w->seen;
    blz_task *task = blz__load(&w->current, RELAXED);
    uint64_t polls = blz__load(&w->stats.polls, RELAXED);

    if (!task || task != view->task || polls != view->polls) {
        if (view->reported)
            remember_end(&rt->watchdog, w, view, now_ns);
        *view = (watchdog_view){.polls = polls, .task = task, .since_ns = now_ns};
        return;
    }
    if (now_ns - view->since_ns < rt->watchdog.limit_ns)
        return;
    if (!view->reported)
        report(rt, w, view, now_ns - view->since_ns);
    view->reported = true;
    if (wheel_next_guess(&w->wheel) != INT64_MAX)
        blz__worker_expire(w);
    rescue(rt, w);
}

/* The innermost function with lines. The task is being polled by us. */
static void copy_place(stuck_record *record, const blz_task *task)
{
    for (const blz_future *f = task->root; f; f = f->child) {
        if (!f->ops->file || f->line == 0 || f->line == BLZ_LINE_DONE)
            continue;
        record->function = f->ops->name;
        record->file = f->ops->file;
        record->line = f->line;
    }
}

void blz__watchdog_refused(blz_rt *rt, blz_task *task, uint32_t worker)
{
    blz_stuck stuck = {.worker = worker,
                       .task_id = blz_task_id(task),
                       .task = blz_task_name(task),
                       .refused = true};
    stuck_record record = {.id = stuck.task_id,
                           .since_ns = blz__clock_ns(),
                           .worker = worker,
                           .refused = true,
                           .ended = true};

    copy_name(record.name, task);
    copy_place(&record, task);
    remember(&rt->watchdog, &record);
    if (rt->options.on_stuck)
        rt->options.on_stuck(&stuck, rt->options.hook_arg);
}

/* ---- the thread ---- */

static bool all_parked(const blz_rt *rt)
{
    for (uint32_t i = 0; i < rt->nr_workers; i++)
        if (blz__load(&rt->workers[i].parked_at, SEQ_CST) == 0) /* pairs with the swap in park */
            return false;
    return true;
}

/* Sleeps until a worker wakes up. */
static void sleep_while_idle(blz_rt *rt)
{
    watchdog *dog = &rt->watchdog;
    uint32_t state = WATCHDOG_AWAKE;

    if (!blz__cas(&dog->state, &state, (uint32_t)WATCHDOG_ASLEEP, SEQ_CST, RELAXED))
        return;
    if (!all_parked(rt)) { /* one woke up meanwhile, and may not have seen that we sleep */
        state = WATCHDOG_ASLEEP;
        blz__cas(&dog->state, &state, (uint32_t)WATCHDOG_AWAKE, SEQ_CST, RELAXED);
        return;
    }
    while (blz__load(&dog->state, ACQUIRE) == WATCHDOG_ASLEEP)
        blz__futex_wait(&dog->state, WATCHDOG_ASLEEP);
}

static void watchdog_main(void *arg)
{
    blz_rt *rt = arg;
    watchdog *dog = &rt->watchdog;
    int idle_looks = 0;

    blz__store(&dog->thread_id, blz__thread_id(), RELAXED);
    while (blz__load(&dog->state, ACQUIRE) != WATCHDOG_STOP) {
        int64_t now_ns = blz__clock_ns();

        for (uint32_t i = 0; i < rt->nr_workers; i++)
            look_at(rt, &rt->workers[i], now_ns);
        idle_looks = all_parked(rt) ? idle_looks + 1 : 0;
        if (idle_looks >= WATCHDOG_IDLE_LOOKS)
            sleep_while_idle(rt);
        else
            blz__futex_wait_until(&dog->state, WATCHDOG_AWAKE, now_ns + dog->limit_ns / 2);
    }
}

void blz__watchdog_poke(blz_rt *rt)
{
    watchdog *dog = &rt->watchdog;
    uint32_t state = WATCHDOG_ASLEEP;

    /* The caller has just said that it is awake; pairs with the look in sleep_while_idle. */
    if (blz_likely(blz__load(&dog->state, SEQ_CST) != WATCHDOG_ASLEEP))
        return;
    if (blz__cas(&dog->state, &state, (uint32_t)WATCHDOG_AWAKE, SEQ_CST, RELAXED))
        blz__futex_wake(&dog->state, 1);
}

int blz__watchdog_start(blz_rt *rt)
{
    watchdog *dog = &rt->watchdog;
    int rc;

    if (rt->options.watchdog_ns == BLZ_NEVER || (rt->embedded && !rt->options.on_stuck))
        return 0; /* an embedded runtime has no threads, unless it wants to be told */
    dog->limit_ns = rt->options.watchdog_ns > MIN_LIMIT_NS ? rt->options.watchdog_ns : MIN_LIMIT_NS;
    blz__store(&dog->state, (uint32_t)WATCHDOG_AWAKE, RELAXED);
    rc = blz__thread_start(&dog->thread, watchdog_main, rt, 0, "blitz-watchdog");
    dog->running = rc == 0;
    return rc;
}

bool blz__watchdog_is_me(const blz_rt *rt)
{
    return blz__load(&rt->watchdog.thread_id, RELAXED) == blz__thread_id();
}

void blz__watchdog_stop(blz_rt *rt)
{
    watchdog *dog = &rt->watchdog;

    if (!dog->running)
        return;
    blz__store(&dog->state, (uint32_t)WATCHDOG_STOP, RELEASE);
    blz__futex_wake(&dog->state, 1);
    blz__thread_join(dog->thread);
    dog->running = false;
}
