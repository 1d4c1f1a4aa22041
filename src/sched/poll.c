/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One poll of one task: begin, deliver a cancellation, poll, and act on the outcome. This is the
 * innermost loop of the library; what is not needed every time is in functions of their own.
 *
 * After the state word says idle or complete the task is anybody's: nothing here touches it then.
 */
#include "observe/trace.h"
#include "sched/rt.h"

/* ---- clocks: one poll in 16, or all of them ---- */

/* What the task has waited in a queue, if its stamp was a precise one. */
static BLZ_COLD void record_latency(blz_worker *w, uint64_t stamp)
{
    uint64_t now = blz__clock_ticks(&w->rt->clock);

    w->now = now;
    histogram_add(&w->latency_histogram, now - (stamp & ~(uint64_t)1));
}

static uint64_t timed_start(blz_worker *w)
{
    if (!w->rt->observe_full)
        w->now = blz__clock_ticks(&w->rt->clock);
    return w->now; /* in full mode: the end of the previous poll */
}

static BLZ_COLD void timed_end(blz_worker *w, blz_task *task, uint64_t start)
{
    const blz_rt *rt = w->rt;
    uint64_t now = blz__clock_ticks(&rt->clock), ticks = now - start;
    uint64_t ns = (uint64_t)((double)ticks * rt->clock.ns_per_tick);

    w->now = now;
    histogram_add(&w->poll_histogram, ticks);
    /* A sampled poll stands for those between. What is too short for the unit is carried over, and
     * charged to whoever makes it full: right on average, and nothing is lost. */
    uint64_t owed = ns * w->tuner.sample_interval + w->busy_rest;
    uint64_t busy = blz__load(&task->busy, RELAXED) + owed / TASK_BUSY_NS;
    blz__store(&task->busy, (uint32_t)(busy < UINT32_MAX ? busy : UINT32_MAX), RELAXED);
    w->busy_rest = (uint32_t)(owed % TASK_BUSY_NS);
    blz__tuner_sample(&w->tuner, rt, ticks);
    w->until_sample = w->tuner.sample_interval;
    if (now - w->events_at > rt->target_ticks)
        w->until_events = 1;
}

/* ---- cancellation ---- */

/* Tells the task's futures, once, unless a shield holds it off. */
static BLZ_COLD void deliver_cancel(blz_task *task, blz_cx *cx, uint32_t phase)
{
    blz_future *root = task->root;

    root->flags |= BLZ_FUTURE_CANCELLED;
    if (phase == RT_FORCING)
        task_force_scope(root);
    if (!(root->flags & BLZ_FUTURE_DELIVERED) && blz_cancelled(cx)) {
        root->flags |= BLZ_FUTURE_DELIVERED;
        blz_future_cancel(root, cx);
    }
}

/* ---- outcomes ---- */

/*
 * The stamp is put in when the poll begins: a store to the line of the state word costs most just
 * before the locked operation that ends the poll. That it is still right is seen without a look at
 * the task.
 */
static inline uint64_t begin_stamp(const blz_worker *w, blz_task *task)
{
    uint64_t since = w->now & ~(uint64_t)1;

    blz__store(&task->stamp, since, RELAXED);
    return since;
}

static inline void end_stamp(const blz_worker *w, blz_task *task, uint64_t since)
{
    if (blz_unlikely((w->now & ~(uint64_t)1) != since))
        (void)begin_stamp(w, task);
}

/* Stays running, in this worker's list of yielded tasks: no other thread need know. */
static void end_in_yield(blz_worker *w, blz_task *task, blz_cx *cx)
{
    /* The bias must be whole at the next poll. More than that: wakers were given back. */
    if (blz_unlikely(cx->refs_left < TASK_BIAS))
        task_state_ref(&task->state, TASK_BIAS - cx->refs_left);
    else if (blz_unlikely(cx->refs_left > TASK_BIAS))
        (void)task_state_unref(&task->state, cx->refs_left - TASK_BIAS);
    task_keep_woken(cx);
    stat_inc(w->stats.yields);
    if (cx->budget == 0)
        stat_inc(w->stats.budget_yields);
    if (blz_unlikely(blz__load(&task->state, RELAXED) & TASK_PINNED)) {
        task_list_append(&w->pinned_yielded, task);
        return;
    }
    bool locked = local_enter(&w->local);
    task_list_append(&w->local.yielded, task);
    local_leave(&w->local, locked);
}

static void end_in_pending(blz_worker *w, blz_task *task, blz_cx *cx, uint32_t phase)
{
#ifdef TASK_CHECKS_WAITS
    if (!task_can_wake(task, cx->refs_left))
        blz__task_waits_for_nothing(task->root);
#endif
    task_keep_woken(cx);
    if (task_state_pend(&task->state, cx->refs_left) == TASK_QUEUE) {
        blz__worker_push_back(w, task);
        return;
    }
    rt_fence_before_phase(w->rt);
    /* A shutdown that began during this poll may have passed the task by. Pairs with the store
     * of the phase before blz__rt_cancel_idle looks at the states. */
    if (blz_unlikely(blz__load(&w->rt->phase, SEQ_CST) != phase))
        blz__rt_cancel_idle(w->rt);
}

/* The task ran inside the poll of its joiner, who has the only other reference. */
static BLZ_INLINE void end_joined(blz_task *task, uint32_t unused)
{
    if (task_state_is_private(&task->state, unused, 2)) {
        task_set_result(task);
        blz__store(&task->state, TASK_COMPLETE | TASK_REF, RELAXED);
    } else {
        blz__task_complete(task, unused);
    }
}

/* Whose poll goes on when this one is over, if any does. */
static inline blz_task *task_around(const blz_cx *joiner, const blz_cx *outer)
{
    if (joiner)
        return joiner->task;
    return outer ? outer->task : NULL;
}

/* `joiner`: in whose poll this happens, and on whose budget; or NULL. */
static BLZ_INLINE trace_outcome poll_task(blz_worker *w, blz_task *task, blz_cx *joiner)
{
    const blz_rt *rt = w->rt;
    blz_cx cx = {.task = task,
                 .scope = task->root,
                 .worker = w,
                 .budget = joiner ? joiner->budget : rt->budget,
                 .refs_left = TASK_BIAS};
    uint64_t stamp = blz__load(&task->stamp, RELAXED), since, start = 0;
    uint64_t state = task_state_begin(&task->state, joiner ? 2 : 1);
    uint32_t phase = blz__load(&rt->phase, RELAXED);
    blz_cx *outer_cx = w->cx;
    bool timed;

    if (blz_unlikely(stamp & 1))
        record_latency(w, stamp);
    since = begin_stamp(w, task);
    blz__store(&task->polls, blz__load(&task->polls, RELAXED) + 1, RELAXED);
    stat_inc(w->stats.polls);
    w->cx = &cx;
    /* release: the task's name and number; pairs with the watchdog, which reads them */
    blz__store(&w->current, task, RELEASE);
    if (blz_unlikely((state & TASK_CANCEL) || phase != RT_OPEN))
        deliver_cancel(task, &cx, phase);
    timed = --w->until_sample == 0;
    if (timed)
        start = timed_start(w);

    blz__plain_write(&task->root->child); /* the frame is ours */
    blz_poll poll = task->root->ops->poll(task->root, &cx);

    if (timed)
        timed_end(w, task, start);
    w->cx = outer_cx;
    blz__store(&w->current, task_around(joiner, outer_cx), RELEASE);
    if (joiner)
        joiner->budget = cx.budget;
    if (blz_is_ready(poll)) {
        /* release: pairs with the acquire in blz__rt_live */
        blz__store(&w->stats.completed, w->stats.completed + 1, RELEASE);
        if (joiner)
            end_joined(task, cx.refs_left);
        else
            blz__task_complete(task, cx.refs_left);
        return TRACE_ENDED;
    }
    end_stamp(w, task, since);
    if (cx.yielded) {
        end_in_yield(w, task, &cx);
        return TRACE_YIELDED;
    }
    end_in_pending(w, task, &cx, phase);
    return TRACE_PENDING;
}

static BLZ_COLD void poll_watched(blz_worker *w, blz_task *task, blz_cx *joiner)
{
    trace_poll poll;

    blz__trace_poll_begin(&poll, task, w->index);
    blz__trace_poll_end(&poll, poll_task(w, task, joiner));
}

void blz__worker_poll(blz_worker *w, blz_task *task)
{
    if (trace_watched(TRACE_POLL))
        poll_watched(w, task, NULL);
    else
        poll_task(w, task, NULL);
}

/* ---- a joined task, run in place ---- */

/*
 * The task that is awaited would be next anyway: it is in the LIFO slot of the worker on which its
 * joiner is about to suspend. Running it here saves suspending and resuming the joiner. As the
 * handle is ours too and no waker exists yet, the state word needs no atomic operation either.
 *
 * It counts as a poll like any other, and is paid from the joiner's budget: when it is time to look
 * at the driver or the inject queue, or the budget is used up, the joiner suspends after all.
 */
bool blz__sched_run_joined(blz_cx *cx, blz_task *task)
{
    blz_worker *w = cx->worker;
    uint64_t fresh = task_state_new(true, false);
    bool locked, next_in_line;

    if (w->inline_depth >= INLINE_DEPTH || w->until_events <= 1 || w->until_inject <= 1 ||
        blz__load(&task->state, ACQUIRE) != fresh)
        return false;
    locked = local_enter(&w->local);
    next_in_line = w->local.lifo == task;
    if (next_in_line)
        w->local.lifo = NULL;
    local_leave(&w->local, locked);
    if (!next_in_line)
        return false;
    w->inline_depth++;
    w->until_events--;
    w->until_inject--;
    stat_inc(w->stats.inline_joins);
    if (trace_watched(TRACE_POLL))
        poll_watched(w, task, cx);
    else
        poll_task(w, task, cx);
    w->inline_depth--;
    return true;
}

static uint32_t refusals(uint32_t flags)
{
    return (flags & (BLZ_FUTURE_ALWAYS - 1)) / BLZ_FUTURE_REFUSAL;
}

void blz__task_refused(blz_cx *cx)
{
    blz_worker *w = cx->worker;
    uint32_t *flags = &cx->scope->flags; /* a branch that is over takes its count along */

    stat_inc(w->stats.refused);
    if (refusals(*flags) >= REFUSED_REPORT)
        return; /* reported already */
    *flags += BLZ_FUTURE_REFUSAL;
    if (refusals(*flags) == REFUSED_REPORT)
        blz__watchdog_refused(w->rt, cx->task, w->index);
}
