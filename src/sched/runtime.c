/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime's birth and its doors for other threads: creation, starting the workers with the first
 * task, blocking on a task, running one with the calling thread as a worker, embedded turns.
 */
#include "observe/trace.h"
#include "sched/rt.h"

#include "base/alloc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* How long queues and drivers may go unattended. */
#define TARGET_NS 200000.0

/* ---- all runtimes of the process, for debuggers (tools/gdb) ---- */

#ifndef BLZ_MODEL

blz_rt *blz__runtimes[RUNTIMES_LISTED];

/* Without a lock, which a forked child could find taken for ever. */
static void list_runtime(blz_rt *rt)
{
    static uint32_t count;

    blz__trace_from_environment();
    rt->number = blz__fetch_add(&count, 1u, RELAXED);
    for (int i = 0; i < RUNTIMES_LISTED; i++) {
        blz_rt *none = NULL;
        if (blz__cas(&blz__runtimes[i], &none, rt, RELAXED, RELAXED))
            return;
    }
}

static void unlist_runtime(blz_rt *rt)
{
    for (int i = 0; i < RUNTIMES_LISTED; i++)
        if (blz__load(&blz__runtimes[i], RELAXED) == rt)
            blz__store(&blz__runtimes[i], (blz_rt *)NULL, RELAXED);
}

#else
#define list_runtime(rt)   ((void)0) /* nothing depends on it: no step of a model */
#define unlist_runtime(rt) ((void)0)
#endif

/* ---- creation ---- */

void *blz__rt_alloc(blz_rt *rt, size_t size, size_t align)
{
    return blz__alloc(&rt->allocator, size, align);
}

void blz__rt_free(blz_rt *rt, void *ptr, size_t size, size_t align)
{
    blz__free(&rt->allocator, ptr, size, align);
}

const blz_allocator *blz__rt_allocator(const blz_rt *rt)
{
    return &rt->allocator;
}

bool blz__rt_is_forked(const blz_rt *rt)
{
    return rt_is_forked(rt);
}

const blz_options *blz__rt_options(const blz_rt *rt)
{
    return &rt->options;
}

static void copy_options(blz_rt *rt, const blz_options *options)
{
    rt->options = *options;
    rt->options.allocator = &rt->allocator; /* drivers keep it, longer than the program has to */
    snprintf(rt->name, sizeof rt->name, "%s", options->name);
    rt->options.name = rt->name; /* it is used later, when the workers start */
    rt->nr_workers = options->workers;
    rt->budget = options->budget;
    rt->event_interval = options->event_interval;
    rt->observe_full = options->observe == BLZ_OBSERVE_FULL;
    rt->stealing = !options->disable_stealing && options->workers > 1;
    rt->lifo = !options->disable_lifo;
    rt->embedded = options->embedded;
}

static int create_workers(blz_rt *rt)
{
    size_t size = rt->nr_workers * sizeof(blz_worker);
    uint32_t i;
    int rc;

    rt->workers = blz__rt_alloc(rt, size, _Alignof(blz_worker));
    if (!rt->workers)
        return -ENOMEM;
    for (i = 0; i < rt->nr_workers; i++) {
        rc = blz__worker_init(&rt->workers[i], rt, i);
        if (rc < 0)
            goto out_workers;
    }
    return 0;
out_workers:
    while (i-- > 0)
        blz__worker_destroy(&rt->workers[i]);
    blz__rt_free(rt, rt->workers, size, _Alignof(blz_worker));
    return rc;
}

static size_t bitmap_size(const blz_rt *rt)
{
    return idle_words(rt->nr_workers) * sizeof(uint64_t);
}

int blz__rt_create(blz_rt **out, const blz_options *given, const blz__driver_ops *driver_ops)
{
    const blz_allocator *allocator =
        given && given->allocator ? given->allocator : &blz__system_allocator;
    blz_options options;
    blz_rt *rt;
    int rc = blz__options_resolve(&options, given);

    if (rc < 0)
        return rc;
    rt = blz__alloc(allocator, sizeof *rt, _Alignof(blz_rt));
    if (!rt)
        return -ENOMEM;
    memset(rt, 0, sizeof *rt);
    rt->allocator = *allocator;
    rt->driver_ops = driver_ops;
    copy_options(rt, &options);
    rt->next_ids = 1024; /* 0 is no task */
    rc = -ENOMEM;
    rt->fork_word = blz__fork_word_new();
    if (!rt->fork_word)
        goto out_rt;
    rt->idle.nr_workers = rt->nr_workers;
    rt->idle.bits = blz__rt_alloc(rt, bitmap_size(rt), 8);
    if (!rt->idle.bits)
        goto out_fork_word;
    memset(rt->idle.bits, 0, bitmap_size(rt));
    rt->asymmetric_fences = blz__fence_asymmetric_init();
    blz__clock_init(&rt->clock);
    if (options.test_clock)
        blz__test_clock_init(&rt->test_clock);
    rt->target_ticks = (uint64_t)(TARGET_NS / rt->clock.ns_per_tick);
    blz__pool_init(&rt->pool, &rt->allocator);
    blz__heap_init(&rt->foreign_heap, rt, &rt->pool);
    rc = blz__io_new(&rt->io, rt);
    if (rc < 0)
        goto out_bits;
    rc = create_workers(rt);
    if (rc < 0)
        goto out_io;
    list_runtime(rt);
    *out = rt;
    return 0;
out_io:
    blz__io_free(rt->io);
out_bits:
    blz__rt_free(rt, rt->idle.bits, bitmap_size(rt), 8);
out_fork_word:
    blz__fork_word_free(rt->fork_word);
out_rt:
    blz__free(allocator, rt, sizeof *rt, _Alignof(blz_rt));
    return rc;
}

void blz__rt_destroy(blz_rt *rt)
{
    blz_allocator allocator = rt->allocator;

    unlist_runtime(rt);
    if (rt->blocking)
        rt->blocking->destroy(rt->blocking);
    blz__heap_destroy(&rt->foreign_heap);
    for (uint32_t i = 0; i < rt->nr_workers; i++)
        blz__worker_destroy(&rt->workers[i]); /* drivers may have descriptors open */
    blz__io_free(rt->io);
    blz__rt_free(rt, rt->workers, rt->nr_workers * sizeof(blz_worker), _Alignof(blz_worker));
    blz__pool_destroy(&rt->pool);
    blz__rt_free(rt, rt->idle.bits, bitmap_size(rt), 8);
    blz__fork_word_free(rt->fork_word);
    blz__free(&allocator, rt, sizeof *rt, _Alignof(blz_rt));
}

int blz_rt_new(blz_rt **rt, const blz_options *options)
{
    bool embedded = options && options->embedded;
    int rc = blz__rt_create(rt, options, NULL);

    if (rc < 0 || !embedded)
        return rc;
    rc = blz__worker_open_driver(&(*rt)->workers[0]); /* whose fd the caller waits for */
    if (rc < 0) {
        blz__rt_destroy(*rt);
        return rc;
    }
    blz__worker_park_for_turn(&(*rt)->workers[0]); /* what is spawned before the first turn */
    return 0;
}

/* ---- drivers ---- */

struct blz__io *blz__rt_io(const blz_rt *rt)
{
    return rt->io;
}

static void reserve_drivers(blz_rt *rt, blz__driver *drivers)
{
    for (uint32_t i = 0; drivers; i++) {
        blz__driver *next = drivers->next;
        rt->workers[i].reserved = drivers;
        drivers = next;
    }
}

/*
 * One thread chooses, and the others wait for it: each would open a driver for each worker, and
 * together they would find less than there is for one. So this lock is held for a while, and
 * under it the allocator is called, unlike under any other: it must not ask for the backend.
 */
static BLZ_COLD const blz__driver_ops *choose_driver_ops(blz_rt *rt, int *rc)
{
    const blz__driver_ops *ops;
    blz__driver *drivers = NULL;

    if (rt_is_forked(rt)) {
        *rc = -EOWNERDEAD;
        return NULL;
    }
    blz__lock_acquire(&rt->driver_lock);
    ops = blz__load(&rt->driver_ops, RELAXED);
    if (!ops) {
        *rc = blz__io_choose(&rt->options, &ops, &drivers, rt->driver_reason,
                             sizeof rt->driver_reason);
        reserve_drivers(rt, drivers);
        blz__store(&rt->driver_ops, ops, RELEASE); /* pairs with blz__rt_driver_ops */
    }
    blz__lock_release(&rt->driver_lock);
    return ops;
}

const blz__driver_ops *blz__rt_driver_ops(blz_rt *rt, int *rc)
{
    const blz__driver_ops *ops = blz__load(&rt->driver_ops, ACQUIRE); /* pairs with choosing */

    *rc = 0;
    return blz_likely(ops != NULL) ? ops : choose_driver_ops(rt, rc);
}

const char *blz_rt_backend(blz_rt *rt)
{
    int rc;
    const blz__driver_ops *ops = blz__rt_driver_ops(rt, &rc);

    return ops ? ops->name : "none";
}

const char *blz_rt_backend_reason(blz_rt *rt)
{
    int rc;

    (void)blz__rt_driver_ops(rt, &rc);
    return rt->driver_reason;
}

unsigned blz_rt_workers(const blz_rt *rt)
{
    return rt->nr_workers;
}

/* ---- starting ---- */

static void worker_main(void *arg)
{
    blz_worker *w = arg;
    const blz_options *options = &w->rt->options;

    blz__worker_set_current(w);
    if (options->on_thread_start)
        options->on_thread_start(options->hook_arg, w->index);
    blz__worker_run(w, &w->rt->stop, INT64_MAX);
    if (options->on_thread_stop)
        options->on_thread_stop(options->hook_arg, w->index);
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

/* The first thread that makes a turn is the only one that may. */
static bool is_turn_owner(blz_rt *rt)
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
    if (blz__sched_on_worker() || blz__watchdog_is_me(rt) || is_pool_thread(rt))
        return -EDEADLK;
    if (rt->embedded && !is_turn_owner(rt))
        return -EPERM;
    return blz__rt_shutdown(rt, rt->embedded ? &rt->workers[0] : NULL, grace_ns);
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

int blz__rt_watch(blz_rt *rt, blz__watcher *watcher)
{
    int rc = -ESHUTDOWN;

    if (rt_is_forked(rt))
        return -EOWNERDEAD;
    blz__lock_acquire(&rt->life_lock);
    if (!rt->stopped) {
        watcher->next = rt->watchers;
        rt->watchers = watcher;
        rc = 0;
    }
    blz__lock_release(&rt->life_lock);
    return rc;
}

bool blz__rt_unwatch(blz_rt *rt, blz__watcher *watcher)
{
    blz__watcher **link = &rt->watchers;
    bool found;

    blz__lock_acquire(&rt->life_lock);
    while (*link && *link != watcher)
        link = &(*link)->next;
    found = *link != NULL;
    if (found)
        *link = watcher->next;
    blz__lock_release(&rt->life_lock);
    return found;
}

/* They may ask the runtime for what they like until they return, but not to live on. */
static void tell_watchers(blz_rt *rt)
{
    blz__watcher *watcher;

    do {
        blz__lock_acquire(&rt->life_lock);
        watcher = rt->watchers;
        if (watcher)
            rt->watchers = watcher->next;
        blz__lock_release(&rt->life_lock);
        if (watcher)
            watcher->ended(watcher, rt);
    } while (watcher);
}

/*
 * After the shutdown. Tasks that did not end keep their workers, and all that they may use: that is
 * leaked on purpose. So is the runtime under jobs that did not end. Tasks that did end may still be
 * referred to by handles and wakers: then the last of these frees the runtime.
 */
static void end_runtime(blz_rt *rt)
{
    struct blz__chunk *removed = NULL;

    tell_watchers(rt);
    blz__watchdog_stop(rt);
    if (blz__load(&rt->started, ACQUIRE) && !blz__load(&rt->drained, ACQUIRE))
        return;
    stop_threads(rt);
    for (uint32_t i = 0; i < rt->nr_workers; i++) {
        blz__worker_drop_timers(&rt->workers[i]);
        blz__worker_close_driver(&rt->workers[i]);
    }
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
    end_runtime(rt);
    return rc;
}

/* ---- blocking ---- */

bool blz__sched_may_block(const blz_rt *rt)
{
    if (blz__sched_on_worker())
        return false;
    return !rt->embedded || blz__load(&rt->turn_owner, RELAXED) != blz__thread_id();
}

int64_t blz_block_on(blz_rt *rt, const void *frame, size_t size, const char *site)
{
    blz_handle handle = {NULL, 0};
    int rc;

    if (!rt)
        return -ENXIO;
    if (!blz__sched_may_block(rt))
        return -EDEADLK;
    rc = blz_spawn(&(blz_spawn_args){.rt = rt, .handle = &handle, .site = site}, frame, size);
    if (rc == 0)
        rc = blz_handle_wait(&handle);
    return rc < 0 ? rc : handle.result;
}

/* ---- the calling thread as worker 0 ---- */

/* Ends blz__worker_run when the root task has. */
struct root_done {
    uint32_t done;
    blz_worker *worker;
    int64_t result;
};

static void root_ended(void *arg, int64_t result)
{
    struct root_done *root = arg;
    blz_worker *worker = root->worker; /* root is gone once it is done */

    blz__plain_write(&root->result);
    root->result = result;
    blz__store(&root->done, 1u, RELEASE); /* pairs with the acquire in blz__worker_run */
    blz__parker_unpark(&worker->parker);
}

static int64_t run_root(blz_rt *rt, const void *frame, size_t size, const char *site)
{
    struct root_done root = {.worker = &rt->workers[0]};
    blz_handle handle = {NULL, 0};
    int rc;

    blz__worker_set_current(root.worker);
    rc = blz__worker_spawn(root.worker, frame, size, &handle, site);
    if (rc == 0) {
        rc = blz_task_on_done(&handle, root_ended, &root);
        if (rc < 0) {
            blz_handle_cancel(&handle);
            blz_handle_detach(&handle);
        }
    }
    blz__worker_set_current(NULL);
    if (rc < 0)
        return rc;
    blz__worker_run(root.worker, &root.done, INT64_MAX);
    blz__plain_read(&root.result);
    return root.result;
}

int64_t blz_run(const blz_options *options, const void *frame, size_t size, const char *site)
{
    int64_t result;
    blz_rt *rt;
    int rc;

    if (blz__sched_on_worker())
        return -EDEADLK;
    if (options && options->embedded)
        return -EINVAL;
    rc = blz__rt_create(&rt, options, NULL);
    if (rc < 0)
        return rc;
    rc = blz__rt_start(rt, true);
    if (rc < 0) {
        blz__rt_destroy(rt);
        return rc;
    }
    if (rt->options.on_thread_start)
        rt->options.on_thread_start(rt->options.hook_arg, 0);
    result = run_root(rt, frame, size, site);
    rc = blz__rt_shutdown(rt, &rt->workers[0], rt->options.shutdown_ns);
    if (rt->options.on_thread_stop)
        rt->options.on_thread_stop(rt->options.hook_arg, 0);
    end_runtime(rt);
    return rc < 0 && result >= 0 ? rc : result;
}

/* ---- embedding ---- */

int blz_rt_fd(blz_rt *rt)
{
    blz__driver *driver = rt->workers[0].driver;
    return rt->embedded ? driver->ops->fd(driver) : -ENOTSUP;
}

int64_t blz_rt_deadline(blz_rt *rt)
{
    int64_t next_ns = blz__wheel_next(&rt->workers[0].wheel, false);

    return rt->test_clock.on ? blz__test_clock_real(&rt->test_clock, next_ns) : next_ns;
}

int64_t blz_rt_turn(blz_rt *rt)
{
    blz_worker *w = &rt->workers[0];
    int rc;

    if (!rt->embedded)
        return -ENOTSUP;
    if (rt_is_forked(rt))
        return -EOWNERDEAD;
    if (blz__sched_on_worker())
        return -EDEADLK;
    if (!blz__load(&rt->started, ACQUIRE)) {
        rc = blz__rt_start(rt, false);
        if (rc < 0)
            return rc;
    }
    if (!is_turn_owner(rt))
        return -EPERM;
    return blz__worker_turn(w);
}
