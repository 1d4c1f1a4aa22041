/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks as data; see observe.h. A task that waits is claimed, so that
 * nobody polls it, its futures are read, and it is let go; of those that run or are queued only the
 * header is read. All of it happens under the walk lock of the heap, for a bounded number of blocks
 * at a time; tasks that were woken while we had them are queued after the lock. A shutdown cancels
 * tasks under the same lock, so it never passes by one that is claimed here.
 */
#include "observe/observe.h"

#include "sched/rt.h"
#include "system/clock.h"

#include <stdio.h>
#include <string.h>

/* Deeper than that the tree is not followed: it may be a circle, made by mistake. */
enum { MAX_DEPTH = 1000, MAX_BRANCHES = 64 };

/* ---- futures ---- */

/* The innermost frames are the telling ones: with too many, the first ones make room. */
static void add_frame(struct observed_task *out, const blz_future *f, uint32_t depth, int branch)
{
    struct observed_frame *frame;

    if (out->nr_frames == OBSERVE_FRAMES) {
        /* the outermost stays: it says what the task is */
        memmove(&out->frames[1], &out->frames[2], sizeof out->frames[0] * (OBSERVE_FRAMES - 2));
        out->nr_frames--;
        out->omitted++;
    }
    frame = &out->frames[out->nr_frames++];
    *frame = (struct observed_frame){.name = f->ops->name,
                                     .depth = (uint16_t)depth,
                                     .branch = (int16_t)branch};
    if (f->ops->file && f->line != 0 && f->line != BLZ_LINE_DONE) {
        frame->file = f->ops->file;
        frame->line = f->line;
    }
}

static void add_wait(struct observed_task *out, const blz_wait_info *info, bool optional)
{
    if (!info->kind || out->nr_waits == OBSERVE_WAITS)
        return;
    out->waits[out->nr_waits++] = (struct observed_wait){.kind = info->kind,
                                                         .object = (uintptr_t)info->object,
                                                         .holder = info->holder,
                                                         .holder32 = info->holder32,
                                                         .fd = info->fd,
                                                         .due_ns = info->due_ns,
                                                         .optional = optional};
}

/* A chain is followed in a loop, branches by calls: these nest as the program text does. */
static void add_futures(struct observed_task *out, const blz_future *f, uint32_t depth, int branch,
                        bool optional)
{
    for (; f && depth < MAX_DEPTH; f = f->child, depth++, branch = -1) {
        blz_wait_info info = {.fd = -1};

        add_frame(out, f, depth, branch);
        if (f->ops->describe_wait)
            f->ops->describe_wait(f, &info);
        optional |= info.any;
        add_wait(out, &info, optional || info.due_ns > 0);
        for (uint32_t i = 0; i < info.nr_branches && i < MAX_BRANCHES; i++)
            if (info.live >> i & 1)
                add_futures(out, info.branches[i], depth + 1, (int)i, optional);
        if (info.nr_branches > 0)
            return;
    }
}

/* ---- a task ---- */

/* The worker that polls it, or -1. Relaxed: it is a guess, and nothing is read through it. */
static int32_t polled_by(const blz_rt *rt, const blz_task *task)
{
    for (uint32_t i = 0; i < rt->nr_workers; i++)
        if (blz__load(&rt->workers[i].current, RELAXED) == task)
            return (int32_t)i;
    return -1;
}

static void copy_name(char *out, const blz_task *task)
{
    const char *given = task_given_name(task), *name = given ? given : blz__task_origin(task);
    const char *place = given ? NULL : strstr(name, " at ");

    snprintf(out, OBSERVE_NAME, "%.*s", place ? (int)(place - name) : OBSERVE_NAME, name);
}

static void add_header(const observe_walk *walk, struct observed_task *out, const blz_task *task,
                       uint64_t state)
{
    uint64_t since = blz__load(&task->stamp, RELAXED);

    out->id = blz_task_id(task);
    out->polls = blz__load(&task->polls, RELAXED);
    out->busy_ns = (uint64_t)blz__load(&task->busy, RELAXED) * TASK_BUSY_NS;
    out->cancelled = state & TASK_CANCEL;
    out->worker = -1;
    out->nr_frames = out->nr_waits = 0;
    out->omitted = 0;
    out->origin = blz__task_origin(task);
    copy_name(out->name, task);
    out->since_ns = 0;
    if (since > 1 && walk->now > since)
        out->since_ns = (int64_t)((double)(walk->now - since) * walk->ns_per_tick);
}

struct step {
    observe_walk *walk;
    task_list woken;
};

static bool visit(blz_task *task, void *arg)
{
    struct step *step = arg;
    observe_walk *walk = step->walk;
    uint64_t state = blz__load(&task->state, ACQUIRE);
    struct observed_task *out = &walk->out[walk->count];

    if (task_state_refs(state) == 0 || (state & TASK_COMPLETE))
        return true;
    if (walk->count == walk->room)
        return false;
    if (task_state_claim(&task->state)) {
        add_header(walk, out, task, state);
        out->state = OBSERVE_WAITING;
        blz__plain_read(&task->root->child); /* the frame is ours */
        add_futures(out, task->root, 0, -1, false);
        if (task_state_unclaim(&task->state) == TASK_QUEUE)
            task_list_append(&step->woken, task);
    } else {
        add_header(walk, out, task, state);
        out->worker = polled_by(walk->rt, task);
        out->state = out->worker >= 0 ? OBSERVE_RUNNING : OBSERVE_QUEUED;
    }
    walk->count++;
    return true;
}

/* ---- all of them ---- */

static blz__heap *heap_of(blz_rt *rt, uint32_t i)
{
    return i < rt->nr_workers ? &rt->workers[i].heap : &rt->foreign_heap;
}

void blz__observe_begin(observe_walk *walk, blz_rt *rt)
{
    *walk = (observe_walk){.rt = rt, .ns_per_tick = blz__clock_ns_per_tick(&rt->clock)};
    blz__heap_walk_begin(heap_of(rt, 0), &walk->cursor);
}

/* False: there is no other heap. */
static bool next_heap(observe_walk *walk)
{
    if (walk->heap == walk->rt->nr_workers)
        return false;
    blz__heap_walk_end(heap_of(walk->rt, walk->heap), &walk->cursor);
    walk->heap++;
    blz__heap_walk_begin(heap_of(walk->rt, walk->heap), &walk->cursor);
    return true;
}

size_t blz__observe_step(observe_walk *walk, struct observed_task *out, size_t max, bool *more)
{
    struct step step = {.walk = walk, .woken = {NULL, NULL, 0}};
    blz_rt *rt = walk->rt;

    walk->out = out;
    walk->room = max;
    walk->count = 0;
    walk->now = blz__clock_ticks(&rt->clock);
    *more =
        blz__heap_walk_step(heap_of(rt, walk->heap), &walk->cursor, OBSERVE_BLOCKS, visit, &step);
    for (blz_task *task = task_list_take(&step.woken); task; task = task_list_take(&step.woken))
        blz__sched_queue(task);
    if (!*more)
        *more = next_heap(walk);
    return walk->count;
}

void blz__observe_end(observe_walk *walk)
{
    blz__heap_walk_end(heap_of(walk->rt, walk->heap), &walk->cursor);
}

/* ---- long polls ---- */

static bool still_goes_on(const blz_rt *rt, const stuck_record *record)
{
    const blz_worker *w = &rt->workers[record->worker];

    return !record->ended && blz__load(&w->current, RELAXED) != NULL &&
           blz__load(&w->stats.polls, RELAXED) == record->polls;
}

size_t blz__observe_stuck(blz_rt *rt, struct observed_stuck *out)
{
    watchdog *dog = &rt->watchdog;
    int64_t now_ns = blz__clock_ns();
    uint32_t count;

    blz__lock_acquire(&dog->log_lock);
    count = dog->nr_records < STUCK_RECORDS ? dog->nr_records : STUCK_RECORDS;
    for (uint32_t i = 0; i < count; i++) {
        const stuck_record *record = &dog->records[(dog->nr_records - 1 - i) % STUCK_RECORDS];

        out[i] = (struct observed_stuck){.id = record->id,
                                         .since_ns = record->since_ns,
                                         .for_ns = record->for_ns,
                                         .worker = record->worker,
                                         .refused = record->refused,
                                         .ongoing = still_goes_on(rt, record)};
        if (out[i].ongoing)
            out[i].for_ns = now_ns - record->since_ns;
        memcpy(out[i].name, record->name, sizeof out[i].name);
    }
    blz__lock_release(&dog->log_lock);
    return count;
}
