/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where tasks wait: a worker's LIFO slot, its ring, its yielded and pinned tasks, its mailbox; and
 * the inject queue of all. In which order a worker takes them:
 *
 *   1. every `inject_interval` polls, a share of the inject queue, so that it is never starved;
 *   2. the LIFO slot, the task woken last, whose data is still in the cache; three times in a row
 *      at most, then it goes behind the others;
 *   3. the ring, taking turns with yielded and pinned tasks that may run again;
 *   4. out of all these, the inject queue again.
 *
 * A share of the inject queue goes into the ring, where it can be stolen. A worker that has work of
 * its own leaves the queue alone between two intervals: each look costs whoever fills it a cache
 * miss.
 */
#include "observe/trace.h"

#include "base/assert.h"
#include "sched/rt.h"

/* ---- putting in ---- */

/* One queued task in 16 gets a precise stamp, for the latency histogram: it is odd. */
static inline void stamp(blz_worker *w, blz_task *task)
{
    uint64_t ticks = w->now & ~(uint64_t)1;

    if (blz_unlikely(--w->until_latency == 0)) {
        w->until_latency = w->rt->observe_full ? 1 : SAMPLE_INTERVAL;
        ticks = blz__clock_ticks(&w->rt->clock) | 1;
    }
    blz__store(&task->stamp, ticks, RELAXED);
}

static BLZ_COLD void spill_to_inject(blz_worker *w, task_list *spill)
{
    stat_inc(w->stats.overflows);
    blz__rt_inject(w->rt, spill);
}

/*
 * Into the ring. Others are told only if somebody sleeps and nobody searches. The look at the idle
 * set is not ordered after the push: at worst a sleeper is missed that parked this very moment, and
 * the next poll of this worker makes up for it (poll_found looks again when the ring is not
 * empty), while the task is here for this worker to run in any case.
 */
static inline void push_ring(blz_worker *w, blz_task *task)
{
    task_list spill = {NULL, NULL, 0};

    blz__runq_push(&w->ring, task, &spill);
    if (blz_unlikely(spill.count))
        spill_to_inject(w, &spill);
    else if (blz_unlikely(idle_wants_work(&w->rt->idle)))
        blz__rt_notify(w->rt);
}

void blz__worker_push_back(blz_worker *w, blz_task *task)
{
    BLZ_ASSERT(w == blz__worker_current());
    stamp(w, task);
    if (blz_unlikely(blz__load(&task->state, RELAXED) & TASK_PINNED))
        task_list_append(&w->pinned, task);
    else
        push_ring(w, task);
}

void blz__worker_push(blz_worker *w, blz_task *task)
{
    blz_task *displaced;
    bool locked;

    BLZ_ASSERT(w == blz__worker_current());
    if (blz_unlikely(!w->rt->lifo)) {
        blz__worker_push_back(w, task);
        return;
    }
    stamp(w, task);
    locked = local_enter(&w->local);
    displaced = w->local.lifo;
    w->local.lifo = task;
    local_leave(&w->local, locked);
    if (displaced)
        push_ring(w, displaced);
}

bool blz__worker_has_more(const blz_worker *w)
{
    return !runq_is_empty(&w->ring) || w->pinned.first;
}

uint32_t blz__worker_room(void)
{
    return blz__runq_room(&blz__worker_current()->ring);
}

void blz__rt_inject(blz_rt *rt, task_list *tasks)
{
    blz__inject_push(&rt->inject, tasks);
    blz__rt_notify(rt);
}

void blz__rt_notify(blz_rt *rt)
{
    int index = blz__idle_claim(&rt->idle);
    blz_worker *self = blz__worker_current();

    if (index < 0)
        return;
    if (self && self->rt == rt)
        stat_inc(self->stats.wakeups);
    blz__parker_unpark(&rt->workers[index].parker);
}

/* By any thread. One that is not the task's worker is a visitor: see visitors.h. */
static BLZ_COLD void queue_pinned(blz_rt *rt, blz_task *task)
{
    blz_worker *home = &rt->workers[task_ext(task)->pinned_to];

    if (rt_is_forked(rt))
        return; /* nobody would run it, and the parent's worker is none of our business */
    if (home == blz__worker_current()) {
        blz__worker_push_back(home, task);
    } else {
        visitors_enter(&rt->visitors);
        blz__worker_mail_pinned(home, task);
        visitors_leave(&rt->visitors);
    }
}

/* By a thread that is not a worker of the runtime. */
static BLZ_NOINLINE void queue_foreign(blz_rt *rt, blz_task *task)
{
    task_list one = {NULL, NULL, 0};

    if (rt_is_forked(rt))
        return; /* nobody would run it */
    visitors_enter(&rt->visitors);
    blz__store(&task->stamp, blz__clock_ticks(&rt->clock) | 1, RELAXED);
    task_list_append(&one, task);
    blz__rt_inject(rt, &one);
    visitors_leave(&rt->visitors);
}

static BLZ_INLINE void queue_task(blz_task *task)
{
    blz_rt *rt = blz__heap_rt(task);
    blz_worker *w = blz__worker_current();

    if (blz_unlikely(blz__load(&task->state, RELAXED) & TASK_PINNED))
        queue_pinned(rt, task);
    else if (blz_likely(w && w->rt == rt))
        blz__worker_push(w, task);
    else
        queue_foreign(rt, task);
}

/* Who traces goes its own way to the end: a call in the middle would cost every wake-up a frame. */
static BLZ_COLD void queue_watched(blz_task *task)
{
    blz__trace_wake(task);
    queue_task(task);
}

void blz__sched_queue(blz_task *task)
{
    if (trace_watched(TRACE_QUEUE))
        queue_watched(task);
    else
        queue_task(task);
}

static BLZ_COLD void push_back_watched(blz_worker *w, blz_task *task)
{
    blz__trace_wake(task);
    blz__worker_push_back(w, task);
}

void blz__worker_wake_back(blz_worker *w, blz_task *task)
{
    if (trace_watched(TRACE_QUEUE))
        push_back_watched(w, task);
    else
        blz__worker_push_back(w, task);
}

void blz__sched_queue_joiner(blz_task *task)
{
    blz_worker *w = blz__worker_current();

    if (w && w->rt == blz__heap_rt(task) && !runq_is_empty(&w->ring) &&
        !(blz__load(&task->state, RELAXED) & TASK_PINNED))
        blz__worker_wake_back(w, task);
    else
        blz__sched_queue(task); /* nothing else to do here: it is next, and stays here */
}

/* ---- what other threads leave ---- */

void blz__worker_mail_pinned(blz_worker *w, blz_task *task)
{
    blz_task *head = blz__load(&w->pinned_mail, RELAXED);

    BLZ_ASSERT(blz__peek(&task->state) & TASK_PINNED);
    blz__plain_write(&task->next);
    do
        task->next = head;
    while (!blz__cas_weak(&w->pinned_mail, &head, task, RELEASE,
                          RELAXED)); /* release: pairs with take_pinned_mail */
    blz__parker_unpark(&w->parker);
}

void blz__worker_post(blz_worker *w, blz__message *message)
{
    blz__message *head = blz__load(&w->mailbox, RELAXED);

    visitors_enter(&w->rt->visitors); /* until it is sent, the sender's object keeps the runtime */
    blz__plain_write(&message->next);
    do
        message->next = head;
    while (!blz__cas_weak(&w->mailbox, &head, message, RELEASE,
                          RELAXED)); /* release: pairs with execute_messages */
    blz__parker_unpark(&w->parker);
    visitors_leave(&w->rt->visitors);
}

/* The stack is newest first: turn it round. */
static void take_pinned_mail(blz_worker *w)
{
    blz_task *newest = blz__swap(&w->pinned_mail, (blz_task *)NULL, ACQUIRE), *oldest = NULL;

    BLZ_ASSERT(w == blz__worker_current());
    while (newest) {
        blz__plain_write(&newest->next);
        blz_task *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest) {
        blz_task *next = oldest->next;
        task_list_append(&w->pinned, oldest);
        oldest = next;
    }
}

static void execute_messages(blz_worker *w)
{
    blz__message *message = blz__swap(&w->mailbox, (blz__message *)NULL, ACQUIRE);

    BLZ_ASSERT(w == blz__worker_current());
    while (message) {
        blz__plain_read(&message->next);
        blz__message *next = message->next; /* its memory may go with the call */
        message->fn(message, w);
        message = next;
    }
}

bool blz__worker_read_mail(blz_worker *w)
{
    bool pinned = blz__load(&w->pinned_mail, RELAXED), messages = blz__load(&w->mailbox, RELAXED);

    BLZ_ASSERT(w == blz__worker_current());
    if (pinned)
        take_pinned_mail(w);
    if (messages)
        execute_messages(w);
    return pinned || messages;
}

/* ---- taking out ---- */

/*
 * Ring, yielded and pinned tasks take turns: ring, yielded, pinned, yielded. Who has nothing leaves
 * the turn to the next.
 */
static inline bool is_turn_of_yielded(uint32_t turn)
{
    return turn & 1;
}

static inline bool is_turn_of_pinned(uint32_t turn)
{
    return turn & 2;
}

/* Whether the tasks whose turn it is, if not that of yielded ones, have anything. */
static inline bool others_have_work(const blz_worker *w)
{
    return !runq_is_empty(&w->ring) ||
           (blz_unlikely(w->pinned.first) && is_turn_of_pinned(w->turn));
}

/*
 * The LIFO slot if it is its turn (*lifo is true), or else a yielded task if it is theirs. Tasks
 * that wake each other keep the slot full for ever: when it has had its run, the others have
 * theirs all the same. Where there are no others it goes on: in the ring, its task would be there
 * for another worker to be woken for, and to steal, which is the last that two tasks need that
 * take turns.
 */
static inline blz_task *take_local(blz_worker *w, bool *lifo)
{
    bool locked = local_enter(&w->local);
    blz_task *newest = w->local.lifo, *task = NULL;

    BLZ_ASSERT(w == blz__worker_current());
    *lifo = newest && (w->lifo_run < LIFO_MAX_RUN ||
                       (runq_is_empty(&w->ring) && !w->local.resumed.first && !w->pinned.first));
    w->local.lifo = NULL;
    if (!*lifo && (is_turn_of_yielded(w->turn) || !others_have_work(w)))
        task = task_list_take(&w->local.resumed);
    local_leave(&w->local, locked);

    if (*lifo) {
        w->lifo_run++;
        stat_inc(w->stats.lifo_hits);
        return newest;
    }
    if (newest)
        push_ring(w, newest);
    return task;
}

static blz_task *take_resumed(blz_worker *w)
{
    bool locked = local_enter(&w->local);
    blz_task *task = task_list_take(&w->local.resumed);

    BLZ_ASSERT(w == blz__worker_current());
    local_leave(&w->local, locked);
    return task;
}

/* A fair share of the inject queue: one to run now, the others into the ring. */
BLZ_NOINLINE blz_task *blz__worker_take_share(blz_worker *w)
{
    blz_rt *rt = w->rt;
    uint64_t len = inject_len(&rt->inject);
    uint32_t room = blz__runq_room(&w->ring), share;

    w->until_inject = w->tuner.inject_interval;
    if (len == 0)
        return NULL;
    share = (uint32_t)(len / rt->nr_workers);
    share = share < INJECT_BATCH_MIN ? INJECT_BATCH_MIN : share;
    share = share > INJECT_BATCH_MAX ? INJECT_BATCH_MAX : share;
    share = share > room + 1 ? room + 1 : share;
    task_list batch = blz__inject_take(&rt->inject, share), spill = {NULL, NULL, 0};
    blz_task *first = task_list_take(&batch), *task;
    if (!first)
        return NULL;
    stat_inc(w->stats.inject_batches);
    stat_add(w->stats.inject_tasks, batch.count + 1);
    while ((task = task_list_take(&batch))) {
        __builtin_prefetch(task->root);
        blz__runq_push(&w->ring, task, &spill);
    }
    if (spill.count)
        blz__rt_inject(rt, &spill);
    else if (inject_len(&rt->inject) > 0)
        blz__rt_notify(
            rt); /* somebody may have looked while the rest was out; see blz__inject_take */
    return first;
}

blz_task *blz__worker_next(blz_worker *w)
{
    blz_task *task;
    uint32_t turn;
    bool lifo;

    BLZ_ASSERT(w == blz__worker_current());
    if (blz_unlikely(--w->until_inject == 0)) {
        task = blz__worker_take_share(w);
        if (!task)
            task = blz__worker_steal_now_and_then(w);
        if (task)
            return task;
    }
    task = take_local(w, &lifo);
    if (lifo)
        return task;
    w->lifo_run = 0;
    turn = w->turn++;
    if (task)
        return task;
    if (blz_unlikely(w->pinned.first) && is_turn_of_pinned(turn))
        return task_list_take(&w->pinned);
    task = blz__runq_pop(&w->ring);
    if (task)
        return task;
    task = take_resumed(w);
    if (task)
        return task;
    return task_list_take(&w->pinned);
}
