/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeping workers of the fork-join pool against jobs that are posted and latches that are set. No
 * job is left while all sleep (which would be a deadlock here: everybody works until all jobs are
 * done), the counters are exact at the end, and what comes with a job or a latch is seen.
 */
#include "par/latch.h"
#include "par/sleep.h"

#include <string.h>

enum { MAX_WORKERS = 2, MAX_JOBS = 2 };

static sleep_state s;
static sleeper sleepers[MAX_WORKERS];
static uint32_t ended[MAX_WORKERS]; /* latches */
static uint32_t jobs[MAX_JOBS], contents[MAX_JOBS], nr_done, nr_jobs;
static int64_t deadline; /* of the first sleep of each; 0: none */

static void begin_at(uint32_t event, uint32_t workers, bool asymmetric)
{
    memset(&s, 0, sizeof s);
    memset(sleepers, 0, sizeof sleepers);
    memset(ended, 0, sizeof ended);
    memset(jobs, 0, sizeof jobs);
    memset(contents, 0, sizeof contents);
    nr_done = nr_jobs = 0;
    deadline = 0;
    s.counters = (uint64_t)event << 32;
    s.sleepers = sleepers;
    s.nr_sleepers = workers;
    s.asymmetric_fences = asymmetric;
}

/* ---- workers ---- */

static void end_all(void)
{
    for (uint32_t i = 0; i < s.nr_sleepers; i++)
        if (latch_set(&ended[i]))
            blz__par_sleep_wake(&s, i);
}

/* A job is a word that is not 0; the worker that takes the last one ends them all. */
static bool run_any(void)
{
    for (uint32_t i = 0; i < MAX_JOBS; i++) {
        uint32_t one = 1;
        if (blz__load(&jobs[i], RELAXED) == 0 || !blz__cas(&jobs[i], &one, 0u, ACQUIRE, RELAXED))
            continue;
        blz__par_sleep_end_looking(&s);
        blz__plain_read(&contents[i]);
        model_assert(contents[i] == i + 1);
        if (blz__fetch_add(&nr_done, 1u, ACQ_REL) + 1 == nr_jobs)
            end_all();
        blz__par_sleep_begin_looking(&s);
        return true;
    }
    return false;
}

/* As work_until in worker.c. */
static void work(void *arg)
{
    uint32_t me = (uint32_t)(uintptr_t)arg, event;
    int64_t until = deadline;

    blz__par_sleep_begin_looking(&s);
    while (!latch_is_set(&ended[me])) {
        if (run_any())
            continue;
        event = blz__par_sleep_announce(&s);
        if (run_any())
            continue;
        if (blz__par_sleep(&s, me, event, &ended[me], until) == SLEEP_OVER)
            until = 0;
    }
    blz__par_sleep_end_looking(&s);
}

static model_thread start_worker(uint32_t number)
{
    return model_start_named(work, (void *)(uintptr_t)number, "worker");
}

/* ---- posters ---- */

static void post(void *arg)
{
    uint32_t i = (uint32_t)(uintptr_t)arg;

    blz__plain_write(&contents[i]);
    contents[i] = i + 1;
    blz__store(&jobs[i], 1u, RELEASE);
    blz__par_sleep_post(&s, 1);
}

static model_thread start_poster(uint32_t number)
{
    return model_start_named(post, (void *)(uintptr_t)number, "poster");
}

static void nobody_must_be_counted(void)
{
    uint64_t counters = blz__load(&s.counters, RELAXED);

    model_assert(sleep_nr_asleep(counters) == 0 && sleep_nr_looking(counters) == 0);
    for (uint32_t i = 0; i < s.nr_sleepers; i++)
        model_assert(blz__load(&sleepers[i].word, RELAXED) == SLEEP_RUNNING);
}

static void play_until(int64_t time, uint32_t event, uint32_t workers, uint32_t posters,
                       bool asymmetric)
{
    model_thread threads[MAX_WORKERS + MAX_JOBS];
    uint32_t n = 0;

    begin_at(event, workers, asymmetric);
    deadline = time;
    nr_jobs = posters;
    for (uint32_t i = 0; i < workers; i++)
        threads[n++] = start_worker(i);
    for (uint32_t i = 0; i < posters; i++)
        threads[n++] = start_poster(i);
    while (n > 0)
        model_join(threads[--n]);
    model_assert(blz__load(&nr_done, RELAXED) == posters);
    nobody_must_be_counted();
}

static void play(uint32_t event, uint32_t workers, uint32_t posters, bool asymmetric)
{
    play_until(0, event, workers, posters, asymmetric);
}

/* ---- the models ---- */

static void a_job_wakes_the_worker(void)
{
    play(1, 1, 1, true);
}

static void a_job_wakes_the_worker_after_an_announcement(void)
{
    play(0, 1, 1, true);
}

static void a_job_wakes_the_worker_by_real_fences(void)
{
    play(model_choose(2), 1, 1, false);
}

static void two_jobs_wake_the_worker(void)
{
    play(1, 1, 2, true);
}

static void one_of_two_workers_takes_the_job(void)
{
    play(1, 2, 1, true);
}

static void two_workers_take_two_jobs(void)
{
    play(1, 2, 2, true);
}

static void the_event_counter_wraps(void)
{
    play(UINT32_MAX - 1 + model_choose(2), 1, 1, true);
}

/* It stops sleeping just when it is woken. */
static void a_job_comes_when_the_time_is_over(void)
{
    play_until(1, 1, 1, 1, true);
}

static void a_job_comes_when_the_time_of_two_is_over(void)
{
    play_until(1, 1, 2, 1, true);
}

/* ---- latches ---- */

static uint32_t result;

/* In memory of its own, which is gone as soon as its waiter has seen it. */
static void set_latch(void *arg)
{
    blz__plain_write(&result);
    result = 7;
    if (latch_set(arg))
        blz__par_sleep_wake(&s, 0);
}

static void look_at_the_result(void)
{
    blz__plain_read(&result);
    model_assert(result == 7);
}

static void a_latch_wakes_the_worker_that_sleeps(void)
{
    uint32_t *latch = model_alloc(sizeof *latch, sizeof *latch);

    begin_at(1, 1, true);
    result = 0;
    *latch = LATCH_UNSET;
    model_thread setter = model_start(set_latch, latch);
    blz__par_sleep_begin_looking(&s);
    while (!latch_is_set(latch))
        blz__par_sleep(&s, 0, blz__par_sleep_announce(&s), latch, 0);
    look_at_the_result();
    model_free(latch);
    blz__par_sleep_end_looking(&s);
    model_join(setter);
    nobody_must_be_counted();
}

static void a_latch_wakes_who_is_blocked_on_it(void)
{
    uint32_t *latch = model_alloc(sizeof *latch, sizeof *latch);

    begin_at(1, 1, true);
    result = 0;
    *latch = LATCH_UNSET;
    model_thread setter = model_start(set_latch, latch);
    while (!latch_is_set(latch))
        if (latch_block(latch))
            latch_wait(latch);
    look_at_the_result();
    model_free(latch);
    model_join(setter);
    nobody_must_be_counted();
}

/* Woken for a job by one, and for the latch by another. */
static void a_latch_and_a_job_at_once(void)
{
    uint32_t *latch = model_alloc(sizeof *latch, sizeof *latch);

    begin_at(1, 1, true);
    nr_jobs = MAX_JOBS; /* never reached */
    result = 0;
    *latch = LATCH_UNSET;
    model_thread setter = model_start(set_latch, latch), poster = start_poster(0);
    blz__par_sleep_begin_looking(&s);
    while (!latch_is_set(latch)) {
        uint32_t event = blz__par_sleep_announce(&s);
        if (!run_any())
            blz__par_sleep(&s, 0, event, latch, 0);
    }
    look_at_the_result();
    model_free(latch);
    blz__par_sleep_end_looking(&s);
    model_join(setter);
    model_join(poster);
    model_assert(blz__load(&nr_done, RELAXED) == 1 || blz__load(&jobs[0], RELAXED) == 1);
    nobody_must_be_counted();
}

static const struct model models[] = {
    {"a_job_wakes_the_worker", a_job_wakes_the_worker, {.preemptions = 3}},
    {"a_job_wakes_the_worker_after_an_announcement",
     a_job_wakes_the_worker_after_an_announcement,
     {.preemptions = 3}},
    {"a_job_wakes_the_worker_by_real_fences",
     a_job_wakes_the_worker_by_real_fences,
     {.preemptions = 2}},
    {"two_jobs_wake_the_worker", two_jobs_wake_the_worker, {.stale_reads = 1, .reduce = true}},
    {"one_of_two_workers_takes_the_job",
     one_of_two_workers_takes_the_job,
     {.preemptions = 1, .stale_reads = 1, .reduce = true}},
    {"two_workers_take_two_jobs",
     two_workers_take_two_jobs,
     {.preemptions = 1, .stale_reads = MODEL_NONE, .reduce = true}},
    {"the_event_counter_wraps", the_event_counter_wraps, {.preemptions = 2}},
    {"a_job_comes_when_the_time_is_over", a_job_comes_when_the_time_is_over, {.preemptions = 2}},
    {"a_job_comes_when_the_time_of_two_is_over",
     a_job_comes_when_the_time_of_two_is_over,
     {.preemptions = 1, .stale_reads = 1, .reduce = true}},
    {"a_latch_wakes_the_worker_that_sleeps",
     a_latch_wakes_the_worker_that_sleeps,
     {.preemptions = 4}},
    {"a_latch_wakes_who_is_blocked_on_it", a_latch_wakes_who_is_blocked_on_it, {.preemptions = 4}},
    {"a_latch_and_a_job_at_once", a_latch_and_a_job_at_once, {.preemptions = 2, .reduce = true}},
};

MODEL_MAIN(models)
