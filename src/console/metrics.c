/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics in the text format of Prometheus, version 0.0.4: for each name one HELP, one TYPE,
 * and then all samples. So the numbers of all runtimes are read first, and written name by name.
 *
 * The histograms of the runtime have four buckets to a power of two; here there is one to each.
 * They count the polls that were timed, one in 16 by default, and no sum is kept: it is put
 * together from the middles of the buckets, and so is right to about an eighth.
 */
#include "console/console.h"

#include "base/alloc.h"
#include "par/par.h"

#include <blitz/stats.h>
#include <blitz/version.h>
#include <stddef.h>
#include <stdio.h>

struct reading {
    bool present;
    char name[16];
    blz_stats stats;
    blz_histogram histograms[2];
    blz_worker_stats *workers;
    uint32_t nr_workers;
};

/* ---- what there is ---- */

struct metric {
    const char *name, *help, *type;
    size_t offset; /* of the number, in what it is about */
    bool seconds;  /* it is in nanoseconds, and is told in seconds */
};

#define WORKER(member) offsetof(blz_worker_stats, member)
#define RT(member)     offsetof(blz_stats, member)

static const struct metric worker_metrics[] = {
    {"blitz_worker_busy_seconds_total", "Time that the worker was not asleep.", "counter",
     WORKER(busy_ns), true},
    {"blitz_worker_parked", "Whether the worker sleeps now.", "gauge", WORKER(parked), false},
    {"blitz_worker_queue_depth", "Tasks in the worker's own queue now.", "gauge",
     WORKER(queue_depth), false},
    {"blitz_worker_polls_total", "Polls of tasks.", "counter", WORKER(polls), false},
    {"blitz_worker_steals_total", "Times that the worker stole.", "counter", WORKER(steals), false},
    {"blitz_worker_stolen_tasks_total", "Tasks that the worker stole.", "counter", WORKER(stolen),
     false},
    {"blitz_worker_overflows_total", "Times that the worker's queue was full.", "counter",
     WORKER(overflows), false},
    {"blitz_worker_parks_total", "Times that the worker went to sleep.", "counter", WORKER(parks),
     false},
    {"blitz_worker_budget_yields_total", "Polls that ended because their budget was used up.",
     "counter", WORKER(budget_yields), false},
    {"blitz_worker_long_polls_total", "Polls that the watchdog found too long.", "counter",
     WORKER(stuck), false},
    {"blitz_worker_tasks_completed_total", "Tasks that ended on the worker.", "counter",
     WORKER(completed), false},
    {"blitz_worker_timers_fired_total", "Timers of the worker that came due.", "counter",
     WORKER(timers_fired), false},
    {"blitz_worker_io_completions_total", "I/O operations that had to wait and are complete.",
     "counter", WORKER(io_completions), false},
    {"blitz_worker_io_entries_total", "Times that the worker's driver entered the kernel.",
     "counter", WORKER(io_entries), false},
};

static const struct metric rt_metrics[] = {
    {"blitz_tasks", "Tasks that have not ended.", "gauge", RT(live_tasks), false},
    {"blitz_workers", "Workers of the runtime.", "gauge", RT(workers), false},
    {"blitz_inject_queue_depth", "Tasks in the shared queue now.", "gauge", RT(inject_depth),
     false},
    {"blitz_remote_spawned_total", "Tasks spawned by threads that are not workers.", "counter",
     RT(remote_spawned), false},
    {"blitz_blocking_threads", "Threads of the blocking pool.", "gauge", RT(blocking_threads),
     false},
    {"blitz_blocking_idle_threads", "Threads of the blocking pool without a job.", "gauge",
     RT(blocking_idle), false},
    {"blitz_blocking_queued_jobs", "Jobs of the blocking pool that have not begun.", "gauge",
     RT(blocking_queued), false},
    {"blitz_blocking_jobs_total", "Jobs of the blocking pool that have begun.", "counter",
     RT(blocking_jobs), false},
};

static void write_title(struct text *out, const struct metric *m)
{
    blz__text_print(out, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name, m->type);
}

static void write_value(struct text *out, const struct metric *m, const void *about)
{
    uint64_t value = *(const uint64_t *)(const void *)((const char *)about + m->offset);

    if (m->seconds)
        blz__text_print(out, " %.9f\n", (double)value / 1e9);
    else
        blz__text_print(out, " %llu\n", (unsigned long long)value);
}

static void write_labels(struct text *out, const char *name, uint32_t index,
                         const struct reading *r)
{
    blz__text_print(out, "%s{runtime=\"%u\",name=\"", name, index);
    blz__text_label(out, r->name);
    blz__text_print(out, "\"");
}

/* ---- numbers ---- */

static void write_rt_metrics(struct text *out, const struct reading *readings, uint32_t count)
{
    for (size_t i = 0; i < sizeof rt_metrics / sizeof rt_metrics[0]; i++) {
        write_title(out, &rt_metrics[i]);
        for (uint32_t r = 0; r < count; r++) {
            if (!readings[r].present)
                continue;
            write_labels(out, rt_metrics[i].name, r, &readings[r]);
            blz__text_print(out, "}");
            write_value(out, &rt_metrics[i], &readings[r].stats);
        }
    }
}

static void write_worker_metrics(struct text *out, const struct reading *readings, uint32_t count)
{
    for (size_t i = 0; i < sizeof worker_metrics / sizeof worker_metrics[0]; i++) {
        write_title(out, &worker_metrics[i]);
        for (uint32_t r = 0; r < count; r++)
            for (uint32_t w = 0; w < readings[r].nr_workers; w++) {
                write_labels(out, worker_metrics[i].name, r, &readings[r]);
                blz__text_print(out, ",worker=\"%u\"}", w);
                write_value(out, &worker_metrics[i], &readings[r].workers[w]);
            }
    }
}

/* ---- histograms ---- */

enum { FIRST_POWER = 6, LAST_POWER = 36 }; /* 64 ns to 69 s */

static void write_buckets(struct text *out, const char *name, uint32_t index,
                          const struct reading *r, const blz_histogram *h)
{
    uint64_t below = 0;
    unsigned i = 0;

    for (unsigned power = FIRST_POWER; power <= LAST_POWER; power++) {
        for (; i < BLZ_HISTOGRAM_BUCKETS && blz_histogram_floor(i) < (uint64_t)1 << power; i++)
            below += h->buckets[i];
        write_labels(out, name, index, r);
        blz__text_print(out, ",le=\"%.9g\"} %llu\n", (double)((uint64_t)1 << power) / 1e9,
                        (unsigned long long)below);
    }
    write_labels(out, name, index, r);
    blz__text_print(out, ",le=\"+Inf\"} %llu\n", (unsigned long long)h->count);
}

static void write_sums(struct text *out, const char *name, uint32_t index, const struct reading *r,
                       const blz_histogram *h)
{
    char with[80];
    double sum = 0;

    for (unsigned i = 0; i < BLZ_HISTOGRAM_BUCKETS; i++)
        sum += (double)h->buckets[i] *
               (double)(blz_histogram_floor(i) + blz_histogram_floor(i + 1)) / 2;
    snprintf(with, sizeof with, "%s_sum", name);
    write_labels(out, with, index, r);
    blz__text_print(out, "} %.9f\n", sum / 1e9);
    snprintf(with, sizeof with, "%s_count", name);
    write_labels(out, with, index, r);
    blz__text_print(out, "} %llu\n", (unsigned long long)h->count);
}

static void write_histograms(struct text *out, const struct reading *readings, uint32_t count)
{
    static const struct metric titles[] = {
        {"blitz_poll_duration_seconds", "How long polls took; of those that were timed.",
         "histogram", 0, true},
        {"blitz_schedule_latency_seconds", "How long woken tasks waited; of those that were timed.",
         "histogram", 0, true},
    };
    char bucket[80];

    for (int h = 0; h < 2; h++) {
        write_title(out, &titles[h]);
        snprintf(bucket, sizeof bucket, "%s_bucket", titles[h].name);
        for (uint32_t r = 0; r < count; r++) {
            if (!readings[r].present)
                continue;
            write_buckets(out, bucket, r, &readings[r], &readings[r].histograms[h]);
            write_sums(out, titles[h].name, r, &readings[r], &readings[r].histograms[h]);
        }
    }
}

/* ---- fork-join pools ---- */

struct pool_metric {
    const char *name, *help, *type;
    size_t offset;
    bool narrow; /* a uint32_t */
};

#define POOL(member) offsetof(blz_par_stats, member)

static const struct pool_metric pool_metrics[] = {
    {"blitz_pool_threads", "Threads of the fork-join pool.", "gauge", POOL(threads), true},
    {"blitz_pool_sleeping_threads", "Threads that sleep now.", "gauge", POOL(sleeping), true},
    {"blitz_pool_queued", "Computations that have not begun.", "gauge", POOL(queued), false},
    {"blitz_pool_injected_total", "Computations from outside that were begun.", "counter",
     POOL(injected), false},
    {"blitz_pool_published_jobs_total",
     "Jobs that were shown to other threads, or that one took unasked.", "counter", POOL(published),
     false},
    {"blitz_pool_stolen_jobs_total", "Jobs that another thread has taken.", "counter", POOL(stolen),
     false},
    {"blitz_pool_sleeps_total", "Times that a thread has slept.", "counter", POOL(sleeps), false},
};

static void write_pool_value(struct text *out, const struct pool_metric *m, const char *name,
                             const blz_pool *pool)
{
    blz_par_stats s;
    const char *at = (const char *)&s + m->offset;

    blz_pool_stats(pool, &s);
    blz__text_print(out, "%s{pool=\"%s\"} %llu\n", m->name, name,
                    m->narrow ? *(const uint32_t *)(const void *)at
                              : (unsigned long long)*(const uint64_t *)(const void *)at);
}

static void write_pools(blz_console *console, struct text *out)
{
    const blz_pool *common = blz__pool_default_if_any();
    char name[16];

    if (!common && console->nr_pools == 0)
        return;
    for (size_t i = 0; i < sizeof pool_metrics / sizeof pool_metrics[0]; i++) {
        const struct pool_metric *m = &pool_metrics[i];

        blz__text_print(out, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name, m->type);
        if (common)
            write_pool_value(out, m, "default", common);
        for (uint32_t p = 0; p < console->nr_pools; p++) {
            snprintf(name, sizeof name, "%u", p);
            write_pool_value(out, m, name, console->pools[p]);
        }
    }
}

/* ---- all of it ---- */

/* Without memory for the workers there are none. */
static void read_target(blz_console *console, struct target *target, struct reading *out)
{
    blz_rt *rt = blz__target_enter(target);

    *out = (struct reading){.present = rt != NULL};
    if (!rt)
        return;
    snprintf(out->name, sizeof out->name, "%s", blz__rt_options(rt)->name);
    blz_rt_stats(rt, &out->stats);
    (void)blz_rt_histogram(rt, BLZ_HISTOGRAM_POLL, &out->histograms[0]);
    (void)blz_rt_histogram(rt, BLZ_HISTOGRAM_LATENCY, &out->histograms[1]);
    out->workers = blz__alloc(&console->allocator, blz_rt_workers(rt) * sizeof *out->workers,
                              _Alignof(uint64_t));
    if (out->workers)
        out->nr_workers = blz_rt_workers(rt);
    for (uint32_t i = 0; i < out->nr_workers; i++)
        (void)blz_rt_worker_stats(rt, i, &out->workers[i]);
    blz__target_leave(target);
}

void blz__console_metrics(blz_console *console, struct text *out)
{
    uint32_t count = console->nr_targets;
    struct reading *readings =
        blz__alloc(&console->allocator, count * sizeof *readings, _Alignof(struct reading));

    if (!readings) {
        out->failed = true;
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        read_target(console, &console->targets[i], &readings[i]);
        out->failed |= readings[i].present && !readings[i].workers;
    }
    blz__text_print(out,
                    "# HELP blitz_build_info Always 1; the version is a label.\n"
                    "# TYPE blitz_build_info gauge\nblitz_build_info{version=\"%s\"} 1\n",
                    blz_version());
    write_rt_metrics(out, readings, count);
    write_worker_metrics(out, readings, count);
    write_histograms(out, readings, count);
    write_pools(console, out);
    for (uint32_t i = 0; i < count; i++)
        if (readings[i].workers)
            blz__free(&console->allocator, readings[i].workers,
                      readings[i].nr_workers * sizeof *readings[i].workers, _Alignof(uint64_t));
    blz__free(&console->allocator, readings, count * sizeof *readings, _Alignof(struct reading));
}
