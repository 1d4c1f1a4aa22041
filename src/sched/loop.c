/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a worker: take a task, poll it; every so often look at the driver; out of work,
 * search the others' rings; in vain, park.
 *
 * Parking is without time limit, unless something is due at a certain time. That it is safe is the
 * business of the idle set (idle.h) and the parker (park.h); the order of steps here is theirs:
 * be counted as parked, look at all queues once more, and only then sleep.
 */
#include "observe/trace.h"

#include "base/assert.h"
#include "sched/rt.h"
#include "system/clock.h"
#include "system/thread.h"
#include "tuning.h"

/* ---- maintenance ---- */

/* Yielded tasks may run again. If others are out of work, half of them go where they can be
 * stolen. */
static void resume_yielded(blz_worker *w)
{
    uint64_t word = blz__load(&w->rt->idle.word, RELAXED);
    bool hungry = w->rt->stealing && (idle_parked(word) || idle_searching(word) > w->searching);
    bool locked = local_enter(&w->local);
    task_list share = {NULL, NULL, 0};

    BLZ_ASSERT(w == blz__worker_current());
    task_list_join(&w->local.resumed, &w->local.yielded);
    if (blz_unlikely(hungry))
        while (share.count + 1 < w->local.resumed.count && share.count < RUNQ_CAPACITY / 2)
            task_list_append(&share, task_list_take(&w->local.resumed));
    local_leave(&w->local, locked);

    task_list_join(&w->pinned, &w->pinned_yielded);
    for (blz_task *task = task_list_take(&share); task; task = task_list_take(&share))
        blz__worker_push_back(w, task);
}

/*
 * Tasks that do nothing but yield wait for somebody, who may be a thread without a CPU to run on:
 * after a while without any other work this thread gives way to it.
 */
static void give_way(blz_worker *w)
{
    uint64_t polls = w->stats.polls - w->polls_seen, yields = w->stats.yields - w->yields_seen;

    w->polls_seen += polls;
    w->yields_seen += yields;
    if (polls != yields) {
        w->gave_way_at = w->now;
    } else if (blz_unlikely(w->now - w->gave_way_at > w->rt->target_ticks / 2)) {
        blz__thread_yield();
        w->gave_way_at = w->now;
    }
}

void blz__worker_maintain(blz_worker *w)
{
    BLZ_ASSERT(w == blz__worker_current());
    w->until_events = w->rt->event_interval;
    w->events_at = w->now;
    stat_inc(w->stats.maintenances);
    if (w->driver)
        w->driver->ops->poll(w->driver, 0);
    if (wheel_next_guess(&w->wheel) != INT64_MAX)
        blz__worker_expire(w);
    blz__worker_read_mail(w);
    resume_yielded(w);
    give_way(w);
}

/* ---- searching ---- */

static blz_task *steal_from(blz_worker *w, uint32_t victim)
{
    runq *ring = &w->rt->workers[victim].ring;
    uint32_t moved;

    BLZ_ASSERT(victim < w->rt->nr_workers);
    BLZ_ASSERT(w == blz__worker_current());
    if (victim == w->index || blz__runq_len(ring) == 0)
        return NULL;
    blz_task *task = blz__runq_steal(ring, &w->ring, &moved);
    if (task) {
        stat_inc(w->stats.steals);
        stat_add(w->stats.stolen, moved);
        if (trace_watched(TRACE_WORKER))
            blz__trace_steal(w->index, victim, moved);
    }
    return task;
}

static blz_task *steal_from_anyone(blz_worker *w)
{
    uint32_t nr = w->rt->nr_workers, start = blz__rng_below(&w->rng, nr);
    blz_task *task = NULL;

    if (!w->rt->stealing)
        return NULL;
    for (uint32_t i = 0; i < nr && !task; i++)
        task = steal_from(w, start + i < nr ? start + i : start + i - nr);
    return task;
}

BLZ_NOINLINE blz_task *blz__worker_steal_now_and_then(blz_worker *w)
{
    if (!w->rt->stealing || !runq_is_empty(&w->ring))
        return NULL;
    return steal_from(w, blz__rng_below(&w->rng, w->rt->nr_workers));
}

/* Without others to steal from, only what blocking jobs bring is worth a look. */
static bool may_search(blz_worker *w)
{
    if (!w->rt->stealing) {
        const blz__service *pool = blz__rt_blocking(w->rt);
        return pool && pool->is_brisk(pool);
    }
    if (!w->searching)
        w->searching = blz__idle_search(&w->rt->idle);
    return w->searching;
}

static BLZ_NOINLINE blz_task *search(blz_worker *w)
{
    bool searches = may_search(w);

    for (int round = 0; searches && round < SEARCH_ROUNDS; round++) {
        blz_task *task = steal_from_anyone(w);
        if (!task)
            task = blz__worker_take_share(w);
        if (task)
            return task;
        for (int i = 0; i < SEARCH_PAUSES; i++)
            blz__spin_hint();
        if (worker_has_mail(w))
            break;
    }
    if (searches)
        stat_inc(w->stats.searches);
    return NULL;
}

bool blz__rt_has_work(const blz_rt *rt, const blz_worker *asking)
{
    if (inject_has_work(&rt->inject))
        return true;
    for (uint32_t i = 0; i < rt->nr_workers; i++)
        if ((rt->stealing || &rt->workers[i] == asking) && blz__runq_len(&rt->workers[i].ring) > 0)
            return true;
    return false;
}

/*
 * A searcher has found something. While it searched, others relied on it and woke nobody: if it was
 * the last one and there is more, somebody else must look.
 */
static BLZ_NOINLINE void stop_searching(blz_worker *w)
{
    BLZ_ASSERT(w->searching);
    w->searching = false;
    if (blz__idle_found(&w->rt->idle) && blz__rt_has_work(w->rt, w))
        blz__rt_notify(w->rt);
}

/* ---- parking ---- */

static void sleep_in_driver(blz_worker *w, int64_t deadline_ns)
{
    BLZ_ASSERT(w->driver);
    BLZ_ASSERT(w == blz__worker_current());
    if (blz__parker_begin_driver(&w->parker)) {
        w->driver->ops->poll(w->driver, deadline_ns);
        blz__parker_end_driver(&w->parker);
    }
}

/*
 * Is counted as parked, and looks once more. False: there is work, and it is us who have been
 * claimed for it.
 */
static bool prepare_to_park(blz_worker *w)
{
    blz_rt *rt = w->rt;

    BLZ_ASSERT_VALID(blz__runq_check(&w->ring));
    BLZ_ASSERT_VALID(blz__task_list_check(&w->pinned));
    blz__worker_flush_frees(w);
    blz__idle_park(&rt->idle, w->index, w->searching);
    w->searching = false;
    rt_fence_before_phase(rt);
    if (blz__load(&rt->phase, ACQUIRE) != RT_OPEN) /* pairs with enter_phase */
        blz__rt_check_drained(rt);
    if (!blz__rt_has_work(rt, w))
        return true;
    int index = blz__idle_claim(&rt->idle);
    if (index == (int)w->index) {
        w->searching = true;
        return false;
    }
    if (index >= 0)
        blz__parker_unpark(&rt->workers[index].parker);
    return true;
}

/* The program's hook may spawn: then there is work. */
static bool hook_leaves_idle(blz_worker *w)
{
    const blz_options *options = &w->rt->options;
    bool locked, idle;

    if (blz_likely(!options->on_thread_park))
        return true;
    options->on_thread_park(w->index, options->hook_arg);
    locked = local_enter(&w->local);
    idle = !w->local.lifo && runq_is_empty(&w->ring) && !w->pinned.first;
    local_leave(&w->local, locked);
    return idle;
}

/* Until when it may sleep: the deadline, or the next timer. Others know of that from here on. */
static int64_t sleep_limit(blz_worker *w, int64_t deadline_ns)
{
    int64_t next_ns = blz__wheel_sleep(&w->wheel);

    if (blz_unlikely(w->rt->test_clock.on))
        next_ns = blz__test_clock_real(&w->rt->test_clock, next_ns);
    return next_ns < deadline_ns ? next_ns : deadline_ns;
}

static void sleep_until_unparked(blz_worker *w, int64_t deadline_ns)
{
    uint32_t ticket = 0;
    uint64_t before;

    stat_inc(w->stats.parks);
    if (trace_watched(TRACE_WORKER))
        ticket = blz__trace_park(w->index);
    deadline_ns = sleep_limit(w, deadline_ns);
    before = blz__clock_ticks(&w->rt->clock);
    blz__store(&w->parked_at, before, RELAXED);
    if (w->driver && w->driver->ops->has_pending(w->driver))
        sleep_in_driver(w, deadline_ns);
    else
        blz__parker_wait(&w->parker, deadline_ns);
    if (trace_watched(TRACE_WORKER))
        blz__trace_unpark(w->index, ticket);
    w->now = blz__clock_ticks(&w->rt->clock);
    stat_add(w->parked_ticks, w->now - before);
    blz__swap(&w->parked_at, (uint64_t)0, SEQ_CST); /* before the poke; pairs with the watchdog */
    w->searching = blz__idle_unpark(&w->rt->idle, w->index);
    blz__watchdog_poke(w->rt);
}

/* Nothing can run, and the clock is one that need not wait: it goes on to the next timer. */
static bool skip_to_next_timer(blz_worker *w)
{
    return !blz__rt_has_work(w->rt, w) &&
           blz__test_clock_skip(&w->rt->test_clock, blz__wheel_next(&w->wheel, true));
}

static BLZ_NOINLINE void park(blz_worker *w, int64_t deadline_ns)
{
    const blz_options *options = &w->rt->options;

    if (blz_unlikely(w->rt->test_clock.on) && skip_to_next_timer(w))
        return;
    if (hook_leaves_idle(w) && prepare_to_park(w))
        sleep_until_unparked(w, deadline_ns);
    if (options->on_thread_unpark)
        options->on_thread_unpark(w->index, options->hook_arg);
}

/* ---- the loop ---- */

/* A task to poll, from anywhere; NULL: time to park. */
static blz_task *find(blz_worker *w)
{
    blz_task *task = blz__worker_next(w);

    if (task)
        return task;
    blz__worker_maintain(w);
    task = blz__worker_next(w);
    if (!task)
        task = blz__worker_take_share(w);
    return task ? task : search(w);
}

static inline void poll_found(blz_worker *w, blz_task *task)
{
    if (w->searching)
        stop_searching(w);
    else if (blz_unlikely(idle_wants_work(&w->rt->idle)) && blz__runq_len(&w->ring) > 0)
        blz__rt_notify(w->rt); /* makes up for push_ring's unordered look */
    blz__worker_poll(w, task);
    if (blz_unlikely(--w->until_events == 0))
        blz__worker_maintain(w);
}

/* Embedded: from the sleep between two turns. */
static void leave_turn_park(blz_worker *w)
{
    blz__ready_thread_disarm(w->rt);
    if (!w->in_turn_park)
        return;
    w->in_turn_park = false;
    blz__parker_end_driver(&w->parker);
    w->searching = blz__idle_unpark(&w->rt->idle, w->index);
}

void blz__worker_run(blz_worker *w, const uint32_t *until, int64_t deadline_ns)
{
    blz_worker *outer = blz__worker_current();

    blz__worker_set_current(w);
    w->thread_id = blz__thread_id();
    leave_turn_park(w);
    w->now = blz__clock_ticks(&w->rt->clock);
    if (!w->started_at)
        blz__store(&w->started_at, w->now, RELAXED); /* statistics read it */
    blz__watchdog_poke(w->rt);
    while (!blz__load(until, ACQUIRE)) {
        blz_task *task = find(w);
        if (task)
            poll_found(w, task);
        else if (!worker_has_mail(w))
            park(w, deadline_ns);
        if (deadline_ns != INT64_MAX && blz__clock_ns() >= deadline_ns)
            break;
    }
    blz__worker_set_current(outer);
}

/* ---- embedded turns ---- */

bool blz__worker_park_for_turn(blz_worker *w)
{
    if (blz_unlikely(w->rt->test_clock.on) && skip_to_next_timer(w))
        return false;
    if (!prepare_to_park(w))
        return false;
    blz__wheel_sleep(&w->wheel); /* an earlier timer makes the fd readable */
    if (!blz__parker_begin_driver(&w->parker)) {
        w->searching = blz__idle_unpark(&w->rt->idle, w->index);
        return false;
    }
    stat_inc(w->stats.parks);
    w->in_turn_park = true;
    return true;
}

/* A turn ends when nothing can run, or after this many rounds of the driver, so that tasks that
 * only yield do not keep the caller. */
enum { TURN_ROUNDS = 4 };

int64_t blz__worker_turn(blz_worker *w)
{
    uint64_t before = w->stats.polls, limit, parked_at;
    bool parked = false;
    int rounds = 0; /* that did not end in a park: a test clock may skip for ever */

    blz__worker_set_current(w);
    w->now = blz__clock_ticks(&w->rt->clock);
    if (!w->started_at)
        blz__store(&w->started_at, w->now, RELAXED); /* statistics read it */
    leave_turn_park(w);
    w->driver->ops->poll(w->driver, 0);
    parked_at = blz__swap(&w->parked_at, (uint64_t)0, SEQ_CST);
    if (parked_at && w->now > parked_at)
        stat_add(w->parked_ticks, w->now - parked_at);
    blz__watchdog_poke(w->rt);
    limit = before + TURN_ROUNDS * (uint64_t)w->rt->event_interval;
    while (!parked && w->stats.polls < limit && rounds < TURN_ROUNDS) {
        blz_task *task = find(w);
        if (task)
            poll_found(w, task);
        else if (!worker_has_mail(w))
            rounds += !(parked = blz__worker_park_for_turn(w));
    }
    if (!parked)
        w->driver->ops->wake(w->driver); /* more to do: the fd stays readable */
    w->now = blz__clock_ticks(&w->rt->clock);
    blz__store(&w->parked_at, w->now | 1, RELAXED);
    blz__worker_set_current(NULL);
    blz__ready_thread_arm(w->rt);
    return (int64_t)(w->stats.polls - before);
}
