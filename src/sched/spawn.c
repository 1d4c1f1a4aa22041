/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spawning: a block from the heap of this worker (or of all other threads), the frame copied into
 * it, and into a queue. From a worker this takes no lock and no read-modify-write.
 */
#include "observe/trace.h"
#include "sched/rt.h"

#include <blitz/error.h>
#include <string.h>

enum { ID_BATCH = 1024 };

/* More than any frame has; above, sizes might overflow. */
#define MAX_TAIL ((size_t)1 << 30)

static inline uint64_t next_id(blz_worker *w)
{
    if (blz_unlikely(w->ids_left == 0)) {
        w->next_id = blz__fetch_add(&w->rt->next_ids, (uint64_t)ID_BATCH, RELAXED);
        w->ids_left = ID_BATCH;
    }
    w->ids_left--;
    return w->next_id++;
}

/* The bytes that BLZ_TAIL asked for. */
static inline size_t tail_of(const void *frame)
{
    return (size_t)((const blz_future *)frame)->result;
}

static inline const char *origin_of(const blz_spawn_args *args, const void *frame)
{
    return args->site ? args->site : ((const blz_future *)frame)->ops->name;
}

/* The parts that only some tasks have. The task is not published yet. */
static BLZ_COLD int add_extras(blz_task *task, const blz_spawn_args *args, uint32_t pin)
{
    int rc = 0;

    if (args->name)
        rc = blz__task_rename(task, args->name);
    if (rc == 0 && args->pinned) {
        rc = blz__task_make_ext(task);
        if (rc == 0)
            task_ext(task)->pinned_to = pin;
    }
    if (rc < 0 && task_has_ext(task))
        blz__task_drop_ext(task);
    return rc;
}

/* Fills the block; `pin` is the worker of a pinned task. 0, or a negative errno and the block is
 * still the caller's. */
static inline int prepare(blz_task *task, const blz_spawn_args *args, const void *frame,
                          size_t size, uint64_t id, uint32_t pin)
{
    blz__task_init(task, frame, size, origin_of(args, frame), id);
    if (blz_unlikely(args->name || args->pinned)) {
        int rc = add_extras(task, args, pin);
        if (rc < 0)
            return rc;
    }
    uint64_t state = task_state_new(args->handle || args->scope, args->pinned);
    task_holders_init(task, args->handle || args->scope);
    if (args->handle)
        *args->handle = (blz_handle){task, 0};
    if (blz_unlikely(args->scope != NULL))
        blz__scope_adopt(args->scope, task, sizeof *task + size + tail_of(frame), state);
    else
        /* release: pairs with the acquire of whoever polls it, or of a dump that claims it */
        blz__store(&task->state, state, RELEASE);
    return 0;
}

/* Nobody will poll it. A sibling that failed meanwhile may have a reference, and cancel it. */
static void unprepare(const blz_spawn_args *args, blz_task *task)
{
    if (args->handle)
        args->handle->task = NULL;
    if (args->scope)
        blz__scope_disown(args->scope, task);
    if (task_state_unref(&task->state, args->handle || args->scope ? 2 : 1))
        blz__task_destroy(task);
}

/* Apart, with all that follows: the common way then needs no room for a call in its middle. */
static BLZ_COLD void push_watched(blz_worker *w, blz_task *task)
{
    blz__trace_spawn(task);
    blz__worker_push(w, task);
}

/* From a worker, with nothing special: the common case. */
static inline int spawn_plain(blz_worker *w, const void *frame, size_t size, size_t total,
                              blz_handle *handle, const char *origin)
{
    blz_task *task;

    if (blz_unlikely(blz__load(&w->rt->phase, RELAXED) != RT_OPEN))
        return -ESHUTDOWN;
    task = blz__heap_alloc(&w->heap, total, NULL);
    if (blz_unlikely(!task))
        return -ENOMEM;
    blz__task_init(task, frame, size, origin, next_id(w));
    if (handle)
        *handle = (blz_handle){task, 0};
    task_holders_init(task, handle != NULL);
    /* release: pairs with the acquire of whoever polls it, or of a dump that claims it */
    blz__store(&task->state, task_state_new(handle != NULL, false), RELEASE);
    blz__store(&w->stats.spawned, w->stats.spawned + 1, RELAXED);
    if (trace_watched(TRACE_QUEUE))
        push_watched(w, task);
    else
        blz__worker_push(w, task);
    return 0;
}

/* A pinned task goes to worker `pin`. */
static BLZ_COLD int spawn_special(blz_worker *w, const blz_spawn_args *args, const void *frame,
                                  size_t size, size_t total, uint32_t pin)
{
    blz_task *task;
    int rc;

    if (blz__load(&w->rt->phase, RELAXED) != RT_OPEN)
        return -ESHUTDOWN;
    task = blz__heap_alloc(&w->heap, total, NULL);
    if (!task)
        return -ENOMEM;
    rc = prepare(task, args, frame, size, next_id(w), pin);
    if (rc < 0) {
        blz__sched_free_block(task);
        return rc;
    }
    blz__store(&w->stats.spawned, w->stats.spawned + 1, RELAXED);
    if (trace_watched(TRACE_QUEUE))
        blz__trace_spawn(task);
    if (args->pinned && pin != w->index)
        blz__worker_mail_pinned(&w->rt->workers[pin], task); /* this task keeps the runtime alive */
    else if (args->pinned)
        blz__worker_push_back(w, task);
    else
        blz__worker_push(w, task);
    return 0;
}

/* Under the inject queue's lock, which is let go while the allocator is asked. */
static blz_task *alloc_foreign(blz_rt *rt, size_t total, uint64_t *id)
{
    *id = rt->foreign_ids++;
    if (blz_unlikely(*id % ID_BATCH == 0)) {
        *id = blz__fetch_add(&rt->next_ids, (uint64_t)ID_BATCH, RELAXED);
        rt->foreign_ids = *id + 1;
    }
    return blz__heap_alloc(&rt->foreign_heap, total, &rt->inject.lock);
}

static void stamp_foreign(const blz_rt *rt, blz_task *task, uint64_t id)
{
    blz__store(&task->stamp, id % SAMPLE_INTERVAL ? 0 : blz__clock_ticks(&rt->clock) | 1, RELAXED);
}

static BLZ_COLD void inject_watched(inject *q, blz_task *task)
{
    blz__trace_spawn(task);
    blz__inject_spawn_locked(q, task);
}

/* With nothing special and little to copy: all under one lock. */
static int spawn_remote_plain(blz_rt *rt, const void *frame, size_t size, size_t total,
                              blz_handle *handle, const char *origin)
{
    struct blz__chunk *removed = NULL;
    blz_task *task = NULL;
    uint64_t id;

    blz__lock_acquire(&rt->inject.lock);
    if (!rt->inject.closed)
        task = alloc_foreign(rt, total, &id);
    bool closed = rt->inject.closed; /* perhaps only now: the lock may have been let go */
    if (blz_likely(task && !closed)) {
        blz__task_init(task, frame, size, origin, id);
        stamp_foreign(rt, task, id);
        if (handle)
            *handle = (blz_handle){task, 0};
        task_holders_init(task, handle != NULL);
        blz__store(&task->state, task_state_new(handle != NULL, false), RELEASE); /* see prepare */
        if (trace_watched(TRACE_QUEUE))
            inject_watched(&rt->inject, task);
        else
            blz__inject_spawn_locked(&rt->inject, task);
    } else if (task) {
        blz__heap_free_local(&rt->foreign_heap, task, &removed);
    }
    blz__lock_release(&rt->inject.lock);
    if (blz_unlikely(closed || !task)) {
        blz__heap_release(&rt->foreign_heap, removed);
        return closed ? -ESHUTDOWN : -ENOMEM;
    }
    blz__rt_notify(rt);
    return 0;
}

static BLZ_COLD int spawn_remote_special(blz_rt *rt, const blz_spawn_args *args, const void *frame,
                                         size_t size, size_t total)
{
    blz_task *task;
    uint64_t id;
    int rc;

    blz__lock_acquire(&rt->inject.lock);
    task = alloc_foreign(rt, total, &id);
    blz__lock_release(&rt->inject.lock);
    if (!task)
        return -ENOMEM;
    rc = prepare(task, args, frame, size, id, 0);
    if (rc < 0) {
        blz__sched_free_block(task);
        return rc;
    }
    stamp_foreign(rt, task, id);
    if (trace_watched(TRACE_QUEUE))
        blz__trace_spawn(task);
    if (!blz__inject_spawn(&rt->inject, task)) {
        unprepare(args, task);
        return -ESHUTDOWN;
    }
    blz__rt_notify(rt);
    return 0;
}

enum { COPY_UNDER_LOCK = 512 };

static BLZ_NOINLINE int spawn_remote(blz_rt *rt, const blz_spawn_args *args, const void *frame,
                                     size_t size, size_t total)
{
    int rc;

    if (args->pinned)
        return -EPERM;
    if (blz_unlikely(!blz__load(&rt->started, ACQUIRE))) { /* pairs with blz__rt_start */
        rc = blz__rt_start(rt, false);
        if (rc < 0)
            return rc;
    }
    visitors_enter(&rt->visitors); /* the runtime may end with the new task */
    if (args->name || args->scope || size > COPY_UNDER_LOCK)
        rc = spawn_remote_special(rt, args, frame, size, total);
    else
        rc = spawn_remote_plain(rt, frame, size, total, args->handle, origin_of(args, frame));
    visitors_leave(&rt->visitors);
    return rc;
}

/* More than any frame has, or less than nothing. */
static inline int check_tail(const void *frame)
{
    if (blz_likely(tail_of(frame) <= MAX_TAIL))
        return 0;
    return ((const blz_future *)frame)->result < 0 ? -EINVAL : -ENOMEM;
}

int blz__worker_spawn(blz_worker *w, const void *frame, size_t size, blz_handle *handle,
                      const char *site)
{
    int rc = check_tail(frame);

    if (blz_unlikely(rc < 0))
        return rc;
    return spawn_plain(w, frame, size, sizeof(blz_task) + size + tail_of(frame), handle, site);
}

/*
 * Inside a poll there is a live task, so that a shutdown cannot be over before the new one is
 * counted. A hook or a callback of the program on a worker spawns like any other thread.
 */
static bool is_polling(const blz_worker *w, const blz_rt *rt)
{
    return w && w->rt == rt && w->cx;
}

int blz_spawn(const void *frame, size_t size, const blz_spawn_args *args)
{
    blz_worker *w = blz__worker_current();
    blz_rt *rt = args->rt ? args->rt : w ? w->rt : NULL;
    size_t total = sizeof(blz_task) + size + tail_of(frame);

    if (blz_unlikely(!rt))
        return -ENXIO;
    if (rt_is_forked(rt))
        return -EOWNERDEAD;
    if (blz_unlikely(check_tail(frame) < 0))
        return check_tail(frame);
    if (blz_unlikely(args->scope != NULL))
        total = blz__scope_block_size(total);
    if (!is_polling(w, rt))
        return spawn_remote(rt, args, frame, size, total);
    if (args->name || args->pinned || args->scope)
        return spawn_special(w, args, frame, size, total, w->index);
    return spawn_plain(w, frame, size, total, args->handle, origin_of(args, frame));
}

int blz__spawn_pinned(const blz_spawn_args *args, const void *frame, size_t size, unsigned worker)
{
    blz_worker *w = blz__worker_current();
    size_t total = sizeof(blz_task) + size + tail_of(frame);

    if (args->scope)
        total = blz__scope_block_size(total);
    return spawn_special(w, args, frame, size, total, worker);
}

int blz_spawn_here_(const void *frame, size_t size, blz_handle *handle, const char *site)
{
    blz_worker *w = blz__worker_current();

    if (blz_unlikely(!w))
        return -ENXIO;
    if (blz_unlikely(!w->cx || rt_is_forked(w->rt)))
        return blz_spawn(frame, size, &(blz_spawn_args){.handle = handle, .site = site});
    return blz__worker_spawn(w, frame, size, handle, site);
}
