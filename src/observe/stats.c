/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics: adds up what the workers counted. Each counter is written by its worker alone, with
 * plain stores, so reading disturbs nobody.
 */
#include "observe/observe.h"

#include "blocking/blocking.h"
#include "sched/rt.h"

#include <blitz/error.h>
#include <string.h>

/* The counters that add up are the first ones, all uint64_t. */
enum { NR_COUNTERS = offsetof(blz_worker_stats, queue_depth) / sizeof(uint64_t) };

static void read_worker(const blz_rt *rt, const blz_worker *w, double ns_per_tick,
                        blz_worker_stats *out)
{
    const uint64_t *from = (const uint64_t *)(const void *)&w->stats;
    uint64_t *to = (uint64_t *)(void *)out;
    uint64_t now = blz__clock_ticks(&rt->clock), started, parked, parked_at;
    const blz__driver *driver;

    memset(out, 0, sizeof *out);
    for (int i = 0; i < NR_COUNTERS; i++)
        to[i] = blz__load(&from[i], RELAXED);
    out->stuck = blz__load(&w->stuck, RELAXED);
    out->timers_armed = blz__load(&w->wheel.nr_armed, RELAXED);
    out->timers_fired = blz__load(&w->wheel.nr_fired, RELAXED);
    driver = blz__load(&w->driver, ACQUIRE); /* pairs with the release in blz__worker_open_driver */
    if (driver) {
        out->io_completions = blz__load(&driver->completions, RELAXED);
        out->io_registered = blz__load(&driver->registrations, RELAXED);
        out->io_entries = blz__load(&driver->entries, RELAXED);
    }
    out->queue_depth = blz__runq_len(&w->ring);
    out->inject_interval = blz__load(&w->tuner.inject_interval, RELAXED);
    out->mean_poll_ns = (uint64_t)((double)blz__load(&w->tuner.mean_ticks, RELAXED) * ns_per_tick);
    started = blz__load(&w->started_at, RELAXED);
    parked = blz__load(&w->parked_ticks, RELAXED);
    parked_at = blz__load(&w->parked_at, RELAXED);
    out->parked = parked_at != 0;
    if (parked_at && now > parked_at)
        parked += now - parked_at;
    if (started && now > started + parked)
        out->busy_ns = (uint64_t)((double)(now - started - parked) * ns_per_tick);
}

int blz_rt_worker_stats(const blz_rt *rt, unsigned worker, blz_worker_stats *out)
{
    if (worker >= rt->nr_workers)
        return -EINVAL;
    read_worker(rt, &rt->workers[worker], blz__clock_ns_per_tick(&rt->clock), out);
    return 0;
}

static void add(blz_worker_stats *total, const blz_worker_stats *one)
{
    const uint64_t *from = (const uint64_t *)(const void *)one;
    uint64_t *to = (uint64_t *)(void *)total;

    for (int i = 0; i < NR_COUNTERS; i++)
        to[i] += from[i];
    total->queue_depth += one->queue_depth;
    total->busy_ns += one->busy_ns;
    total->parked += one->parked;
    total->mean_poll_ns += one->mean_poll_ns * one->polls; /* a sum, until it is divided */
    if (one->inject_interval > total->inject_interval)
        total->inject_interval = one->inject_interval;
}

static void read_blocking(const blz_rt *rt, blz_stats *out)
{
    blz__blocking_counts counts;

    blz__blocking_count(rt, &counts);
    out->blocking_threads = counts.threads;
    out->blocking_idle = counts.idle;
    out->blocking_queued = counts.queued;
    out->blocking_jobs = counts.jobs;
    out->blocking_started = counts.started;
}

const char *blz__observe_backend(const blz_rt *rt)
{
    /* acquire: pairs with choose_driver_ops */
    const blz__driver_ops *ops = blz__load(&rt->driver_ops, ACQUIRE);

    return ops ? ops->name : "none yet";
}

void blz_rt_stats(const blz_rt *rt, blz_stats *out)
{
    double ns_per_tick = blz__clock_ns_per_tick(&rt->clock);
    uint64_t idle = blz__load(&rt->idle.word, RELAXED);
    blz_worker_stats one;

    memset(out, 0, sizeof *out);
    out->live_tasks = blz__rt_live(rt);
    for (uint32_t i = 0; i < rt->nr_workers; i++) {
        read_worker(rt, &rt->workers[i], ns_per_tick, &one);
        add(&out->total, &one);
    }
    if (out->total.polls)
        out->total.mean_poll_ns /= out->total.polls;
    out->remote_spawned = blz__load(&rt->inject.spawned, RELAXED);
    out->inject_depth = inject_len(&rt->inject);
    out->workers = rt->nr_workers;
    out->workers_parked = idle_parked(idle);
    out->workers_searching = idle_searching(idle);
    read_blocking(rt, out);
}
