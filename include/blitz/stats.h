/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics: what the workers have done. Each worker counts for itself, so that counting costs
 * nothing; reading adds them up, and may be a moment behind.
 *
 *     blz_stats s;
 *     blz_rt_stats(rt, &s);
 *     printf("%llu polls of %llu tasks\n", (unsigned long long)s.total.polls,
 *            (unsigned long long)s.total.spawned);
 */
#ifndef BLITZ_STATS_H
#define BLITZ_STATS_H

#include <blitz/future.h>

BLZ_BEGIN_DECLS

/* Counters of one worker, or of all. */
typedef struct blz_worker_stats {
    uint64_t spawned;         /* tasks spawned by tasks on this worker */
    uint64_t completed;       /* tasks that ended here */
    uint64_t polls;           /* polls of tasks */
    uint64_t lifo_hits;       /* of these: taken from the LIFO slot */
    uint64_t inline_joins;    /* of these: run in place by the task that joined them */
    uint64_t steals;          /* times that this worker stole */
    uint64_t stolen;          /* tasks that it stole */
    uint64_t overflows;       /* times that its ring was full */
    uint64_t inject_batches;  /* batches taken from the shared queue */
    uint64_t inject_tasks;    /* tasks taken from it */
    uint64_t parks;           /* times that it slept */
    uint64_t wakeups;         /* other workers that it woke */
    uint64_t searches;        /* searches that found nothing */
    uint64_t budget_yields;   /* tasks that used up their budget */
    uint64_t yields;          /* polls that ended in a yield */
    uint64_t maintenances;    /* looks at the driver */
    uint64_t refused;         /* awaits refused because of a cancellation */
    uint64_t stuck;           /* polls that the watchdog found too long */
    uint64_t timers_armed;    /* timers put into its wheel */
    uint64_t timers_fired;    /* of these: those that came due */
    uint64_t io_completions;  /* I/O operations that had to wait and are complete */
    uint64_t io_registered;   /* descriptors registered with its driver, ever */
    uint64_t io_entries;      /* times that its driver entered the kernel */
    uint64_t queue_depth;     /* tasks in its ring now */
    uint64_t busy_ns;         /* time not spent asleep */
    uint64_t mean_poll_ns;    /* moving average */
    uint64_t inject_interval; /* polls between looks at the shared queue, as tuned */
    uint64_t parked;          /* now: 1 if it sleeps */
    uint64_t reserved[4];
} blz_worker_stats;

/* Of a whole runtime. */
typedef struct blz_stats {
    blz_worker_stats total;
    uint64_t remote_spawned; /* tasks spawned by threads that are not workers */
    uint64_t live_tasks;
    uint64_t inject_depth; /* tasks in the shared queue now */
    uint64_t workers;
    uint64_t workers_parked;
    uint64_t workers_searching;
    uint64_t blocking_threads; /* of the blocking pool, in all its lanes */
    uint64_t blocking_idle;    /* of these: waiting for a job */
    uint64_t blocking_queued;  /* jobs that have not begun */
    uint64_t blocking_jobs;    /* jobs that have begun, ever */
    uint64_t blocking_started; /* threads, ever */
    uint64_t reserved[3];
} blz_stats;

/* Reads the counters of a runtime, summed over its workers. [any thread] */
BLZ_API void blz_rt_stats(const blz_rt *rt, blz_stats *out);

/* Reads the counters of one worker, from 0: 0; -EINVAL: there is no such worker. [any thread] */
BLZ_API int blz_rt_worker_stats(const blz_rt *rt, unsigned worker, blz_worker_stats *out);

/*
 * Histograms with four buckets to each power of two, from 0 ns up; the last bucket holds the rest.
 */
#define BLZ_HISTOGRAM_BUCKETS 160
typedef struct blz_histogram {
    uint64_t count;
    uint64_t buckets[BLZ_HISTOGRAM_BUCKETS];
    uint64_t reserved[2];
} blz_histogram;

/* The smallest value that falls into a bucket, in nanoseconds. [any thread] */
BLZ_API uint64_t blz_histogram_floor(unsigned bucket);
/*
 * The value below which the given share of samples lies: 0.5 is the median. 0 without samples. [any
 * thread]
 */
BLZ_API uint64_t blz_histogram_quantile(const blz_histogram *histogram, double share);

/* Which histogram. */
enum {
    BLZ_HISTOGRAM_POLL = 0,    /* how long polls took */
    BLZ_HISTOGRAM_LATENCY = 1, /* how long woken tasks waited for their poll */
};
/* Sums the histograms of all workers: 0; -EINVAL: there is no such histogram. [any thread] */
BLZ_API int blz_rt_histogram(const blz_rt *rt, int which, blz_histogram *out);

BLZ_END_DECLS
#endif
