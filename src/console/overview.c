/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overview as JSON: workers, pools, histograms; numbers that only ever go up as they are, with
 * the time, so that whoever asks twice can tell rates. It needs no snapshot.
 */
#include "console/console.h"

#include "base/clock.h"
#include "par/par.h"
#include "system/clock.h"
#include "system/env.h"

#include <blitz/stats.h>
#include <blitz/version.h>
#include <stdio.h>
#include <string.h>

static void number(struct text *out, const char *name, uint64_t value)
{
    blz__text_print(out, ",\"%s\":", name);
    blz__text_number(out, value);
}

static void string(struct text *out, const char *name, const char *value)
{
    blz__text_print(out, ",\"%s\":", name);
    blz__text_json(out, value, strlen(value));
}

static void write_worker(struct text *out, unsigned index, const blz_worker_stats *w)
{
    blz__text_print(out, "%s{\"index\":%u,\"parked\":%s", index ? "," : "", index,
                    w->parked ? "true" : "false");
    number(out, "busy_ns", w->busy_ns);
    number(out, "queue_depth", w->queue_depth);
    number(out, "polls", w->polls);
    number(out, "mean_poll_ns", w->mean_poll_ns);
    number(out, "spawned", w->spawned);
    number(out, "completed", w->completed);
    number(out, "lifo_hits", w->lifo_hits);
    number(out, "inline_joins", w->inline_joins);
    number(out, "steals", w->steals);
    number(out, "stolen", w->stolen);
    number(out, "overflows", w->overflows);
    number(out, "inject_tasks", w->inject_tasks);
    number(out, "parks", w->parks);
    number(out, "wakeups", w->wakeups);
    number(out, "searches", w->searches);
    number(out, "yields", w->yields);
    number(out, "budget_yields", w->budget_yields);
    number(out, "stuck", w->stuck);
    number(out, "timers_armed", w->timers_armed);
    number(out, "timers_fired", w->timers_fired);
    number(out, "io_completions", w->io_completions);
    number(out, "io_registered", w->io_registered);
    number(out, "io_entries", w->io_entries);
    blz__text_print(out, "}");
}

static void write_workers(struct text *out, const blz_rt *rt)
{
    blz_worker_stats w;

    blz__text_print(out, ",\"workers\":[");
    for (unsigned i = 0; blz_rt_worker_stats(rt, i, &w) == 0; i++)
        write_worker(out, i, &w);
    blz__text_print(out, "]");
}

static void write_histogram(struct text *out, const blz_rt *rt, const char *name, int which)
{
    const char *separator = "";
    blz_histogram h;

    if (blz_rt_histogram(rt, which, &h) < 0)
        return;
    blz__text_print(out, ",\"%s\":{\"samples\":%llu", name, (unsigned long long)h.count);
    number(out, "p50_ns", blz_histogram_quantile(&h, 0.5));
    number(out, "p90_ns", blz_histogram_quantile(&h, 0.9));
    number(out, "p99_ns", blz_histogram_quantile(&h, 0.99));
    number(out, "p999_ns", blz_histogram_quantile(&h, 0.999));
    number(out, "max_ns", blz_histogram_quantile(&h, 1.0));
    blz__text_print(out, ",\"buckets\":[");
    for (unsigned i = 0; i < BLZ_HISTOGRAM_BUCKETS; i++) {
        if (!h.buckets[i])
            continue;
        blz__text_print(out, "%s[%llu,%llu]", separator, (unsigned long long)blz_histogram_floor(i),
                        (unsigned long long)h.buckets[i]);
        separator = ",";
    }
    blz__text_print(out, "]}");
}

static void write_runtime(struct text *out, const blz_rt *rt)
{
    blz_stats s;

    blz_rt_stats(rt, &s);
    string(out, "name", blz__rt_options(rt)->name);
    string(out, "backend", blz__observe_backend(rt));
    number(out, "live_tasks", s.live_tasks);
    number(out, "spawned", s.total.spawned + s.remote_spawned);
    number(out, "completed", s.total.completed);
    number(out, "polls", s.total.polls);
    number(out, "inject_depth", s.inject_depth);
    number(out, "workers_parked", s.workers_parked);
    number(out, "workers_searching", s.workers_searching);
    number(out, "timers_pending_at_most", s.total.timers_armed - s.total.timers_fired);
    blz__text_print(out, ",\"blocking\":{\"threads\":%llu", (unsigned long long)s.blocking_threads);
    number(out, "idle", s.blocking_idle);
    number(out, "queued", s.blocking_queued);
    number(out, "jobs", s.blocking_jobs);
    number(out, "started", s.blocking_started);
    blz__text_print(out, "}");
    write_workers(out, rt);
    write_histogram(out, rt, "poll_time", BLZ_HISTOGRAM_POLL);
    write_histogram(out, rt, "latency", BLZ_HISTOGRAM_LATENCY);
}

static void write_pool(struct text *out, bool first, const char *name, const blz_pool *pool)
{
    blz_par_stats s;

    blz_pool_stats(pool, &s);
    blz__text_print(out, "%s{\"threads\":%u", first ? "" : ",", s.threads);
    string(out, "name", name);
    number(out, "guests", s.guests);
    number(out, "sleeping", s.sleeping);
    number(out, "looking", s.looking);
    number(out, "queued", s.queued);
    number(out, "injected", s.injected);
    number(out, "published", s.published);
    number(out, "stolen", s.stolen);
    number(out, "sleeps", s.sleeps);
    number(out, "vain", s.vain);
    blz__text_print(out, "}");
}

static void write_pools(blz_console *console, struct text *out)
{
    const blz_pool *common = blz__pool_default_if_any();
    char name[24];

    blz__text_print(out, ",\"pools\":[");
    if (common)
        write_pool(out, true, "default", common);
    for (uint32_t i = 0; i < console->nr_pools; i++) {
        snprintf(name, sizeof name, "pool %u", i);
        write_pool(out, !common && i == 0, name, console->pools[i]);
    }
    blz__text_print(out, "]");
}

void blz__console_overview(blz_console *console, struct text *out)
{
    blz__text_print(out, "{\"title\":");
    blz__text_json(out, console->title, strlen(console->title));
    string(out, "version", blz_version());
    number(out, "pid", (uint64_t)blz__env_pid());
    number(out, "time_ns", (uint64_t)blz__clock_ns());
    number(out, "requests", console->nr_requests);
    blz__text_print(out, ",\"runtimes\":[");
    for (uint32_t i = 0; i < console->nr_targets; i++) {
        struct target *target = &console->targets[i];
        const blz_rt *rt = blz__target_enter(target);

        blz__text_print(out, "%s{\"index\":%u,\"ended\":%s", i ? "," : "", i,
                        rt ? "false" : "true");
        if (rt) {
            write_runtime(out, rt);
            blz__target_leave(target);
        }
        blz__text_print(out, "}");
    }
    blz__text_print(out, "]");
    write_pools(console, out);
    blz__text_print(out, "}\n");
}
