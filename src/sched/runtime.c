/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime, from its creation to its last byte, and the choice of the backend that its workers
 * share. When its threads start and end is in life.c, how programs run tasks on it in run.c.
 */
#include "observe/trace.h"
#include "sched/rt.h"

#include "base/alloc.h"
#include "base/shared.h"
#include "system/fence.h"
#include "system/fork.h"
#include "tuning.h"

#include <blitz/error.h>
#include <stdio.h>
#include <string.h>

/* How long queues and drivers may go unattended. */
#define TARGET_NS 200000.0

/* ---- all runtimes of the process, for debuggers (tools/gdb) ---- */

/* Without a lock, which a forked child could find taken for ever. */
static void list_runtime(blz_rt *rt)
{
    if (!PROGRAM_OBSERVED)
        return;
    blz__trace_from_environment();
    rt->number = blz__fetch_add(&blz__shared()->nr_runtimes, 1u, RELAXED);
    for (int i = 0; i < RUNTIMES_LISTED; i++) {
        blz_rt *none = NULL;
        if (blz__cas(&blz__shared()->runtimes[i], &none, rt, RELAXED, RELAXED))
            return;
    }
}

static void unlist_runtime(blz_rt *rt)
{
    for (int i = 0; i < RUNTIMES_LISTED && PROGRAM_OBSERVED; i++)
        if (blz__load(&blz__shared()->runtimes[i], RELAXED) == rt)
            blz__store(&blz__shared()->runtimes[i], (blz_rt *)NULL, RELAXED);
}

/* ---- creation ---- */

const blz_allocator *blz__rt_allocator(const blz_rt *rt)
{
    return rt ? &rt->allocator : &blz__system_allocator;
}

void *blz__rt_alloc(blz_rt *rt, size_t size, size_t align)
{
    return blz__alloc(blz__rt_allocator(rt), size, align);
}

void blz__rt_free(blz_rt *rt, void *ptr, size_t size, size_t align)
{
    blz__free(blz__rt_allocator(rt), ptr, size, align);
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
    blz__pool_init(&rt->pool, &rt->allocator, rt->fork_word);
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
    rc = blz__ready_thread_start(*rt);
    if (rc < 0)
        blz__rt_destroy(*rt);
    else
        blz__ready_thread_arm(*rt);
    return rc;
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
