/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane of the blocking pool (src/blocking/lane.c, crew.c): jobs are called exactly once, or taken
 * back, or refused; threads come when they are needed, and when the lane ends all have gone and are
 * joined. A job that nobody comes for is a deadlock, and so is a thread that nobody sends away: in
 * most models idle threads stay for ever, so that no time limit hides a lost wake-up. The guard's
 * sleep is timed; where it must not come to that, the model looks at the clock.
 */
#include "blocking/lane.h"

#include "sched/rt.h"
#include "support/small_rt.h"
#include "support/table.h"
#include "system/futex.h"

#include <errno.h>
#include <string.h>

enum { MAX_JOBS = 3, NOT_CALLED = 1 };

static const int64_t KEEP = BLZ_NEVER;

struct model_job {
    blz__job job;
    bool queued;               /* ghost: submit has accepted it, and nobody has taken it back */
    bool freed_by_call;        /* it goes with its call */
    int outcome;               /* what it was called with */
    uint32_t begun, done;      /* flags to wait for */
    struct model_job *partner; /* does not end before that one has begun */
};

static blz_rt rt;
static blz_worker worker; /* its wheel has the timer for a thread that was refused */
static lane_config config;
static lane *l;
static struct model_job *jobs[MAX_JOBS];

/* ---- jobs ---- */

static void raise_flag(uint32_t *flag)
{
    blz__store(flag, 1u, RELEASE);
    blz__futex_wake(flag, INT32_MAX);
}

static void await_flag(uint32_t *flag)
{
    while (!blz__load(flag, ACQUIRE))
        blz__futex_wait(flag, 0);
}

static void call(blz__job *job, int error)
{
    struct model_job *j = blz_container_of(job, struct model_job, job);

    blz__plain_write(&j->outcome);
    model_assert(j->outcome == NOT_CALLED);
    j->outcome = error;
    if (j->freed_by_call) {
        model_free(j);
        return;
    }
    if (error == 0) {
        raise_flag(&j->begun);
        if (j->partner)
            await_flag(&j->partner->begun);
    }
    raise_flag(&j->done);
}

static void await_done(struct model_job *j)
{
    await_flag(&j->done);
    blz__plain_read(&j->outcome);
}

static void assert_done(int i)
{
    await_done(jobs[i]);
    model_assert(jobs[i]->outcome == 0);
}

/* ---- the lane ---- */

static struct model_job *new_job(void)
{
    struct model_job *j = model_alloc(sizeof *j, _Alignof(struct model_job));

    *j = (struct model_job){.job = {.call = call}, .outcome = NOT_CALLED};
    return j;
}

/* With as many jobs as that, not submitted yet. */
static void begin(uint32_t max_threads, int64_t keep_alive_ns, int nr_jobs)
{
    memset(&rt, 0, sizeof rt);
    memset(&worker, 0, sizeof worker);
    rt.workers = &worker;
    rt.nr_workers = rt.started = 1;
    worker.rt = &rt;
    blz__wheel_init(&worker.wheel, model_clock_now(), true);
    config = (lane_config){.rt = &rt, .eager = 1, .keep_alive_ns = keep_alive_ns};
    l = model_alloc(sizeof *l, _Alignof(lane));
    blz__lane_init(l, &config, max_threads);
    for (int i = 0; i < MAX_JOBS; i++)
        jobs[i] = i < nr_jobs ? new_job() : NULL;
}

static void submit(void *arg)
{
    struct model_job *j = arg;

    j->queued = true;
    model_assert(blz__lane_submit(l, &j->job) == 0);
}

/* Each waits for the next one, and the last for the first. */
static void make_circle(int nr_jobs)
{
    for (int i = 0; i < nr_jobs; i++)
        jobs[i]->partner = jobs[(i + 1) % nr_jobs];
}

static void free_jobs(void)
{
    for (int i = 0; i < MAX_JOBS; i++) {
        struct model_job *j = jobs[i];

        if (!j)
            continue;
        blz__plain_read(&j->outcome);
        model_assert(j->queued ? j->outcome != NOT_CALLED : j->outcome == NOT_CALLED);
        model_free(j);
    }
}

static void end(void)
{
    blz__lane_close(l);
    model_assert(blz__lane_wait(l, INT64_MAX));
    model_assert(l->threads == 0 && l->nr_idle == 0 && l->called == 0 && !l->guarded);
    model_assert(!l->idle && !l->spinner && !l->guard && l->queued == 0 && l->in_flight == 0);
    free_jobs();
    model_free(l);
}

/* ---- coming ---- */

static void a_thread_comes_for_each_job_in_turn(void)
{
    begin(1, KEEP, 2);
    for (int i = 0; i < 2; i++) {
        submit(jobs[i]); /* the second time the thread sleeps, or does not get round to it */
        assert_done(i);
    }
    end();
}

static void two_who_submit_at_once_both_find_a_thread(void)
{
    begin(1, KEEP, 2);
    model_thread other = model_start(submit, jobs[0]);
    submit(jobs[1]);
    assert_done(0);
    assert_done(1);
    model_join(other);
    end();
}

/* The second thread has to come although nobody will submit or finish meanwhile. */
static void two_jobs_that_wait_for_each_other_both_get_a_thread(void)
{
    begin(2, KEEP, 2);
    make_circle(2);
    submit(jobs[0]);
    submit(jobs[1]);
    assert_done(0);
    assert_done(1);
    end();
}

static void three_jobs_that_wait_for_each_other_all_get_a_thread(void)
{
    begin(3, KEEP, 3);
    make_circle(3);
    for (int i = 0; i < 3; i++)
        submit(jobs[i]);
    for (int i = 0; i < 3; i++)
        assert_done(i);
    end();
}

/* Each may rely on the thread that the other has called. */
static void jobs_of_two_threads_may_wait_for_each_other(void)
{
    begin(2, KEEP, 2);
    make_circle(2);
    model_thread other = model_start(submit, jobs[0]);
    submit(jobs[1]);
    assert_done(0);
    assert_done(1);
    model_join(other);
    end();
}

/*
 * The first thread leaves the second job to a guard, and then is faster itself. The guard sleeps
 * with nothing to watch over when the third job comes, which the second waits for: it is to come at
 * once, not when its time is up.
 */
static void a_guard_with_nothing_to_watch_comes_at_once(void)
{
    int64_t before = model_clock_now();

    begin(2, KEEP, 3);
    jobs[1]->partner = jobs[2];
    submit(jobs[0]);
    submit(jobs[1]);
    await_flag(&jobs[1]->begun);
    submit(jobs[2]);
    await_flag(&jobs[2]->begun);
    model_assert(model_clock_now() == before);
    assert_done(1);
    end();
}

/* Two idle threads, and a CPU for each: the second job does not wait for a guard either. */
static void idle_threads_are_called_for_each_job(void)
{
    int64_t before;

    begin(2, KEEP, 3);
    config.eager = 2;
    make_circle(2);
    submit(jobs[0]);
    await_flag(&jobs[0]->begun);
    submit(jobs[1]);
    assert_done(0);
    assert_done(1);
    before = model_clock_now();
    submit(jobs[2]);
    assert_done(2);
    model_assert(model_clock_now() == before);
    end();
}

/* ---- leaving ---- */

static void a_job_that_comes_as_a_threads_time_is_up_is_done(void)
{
    begin(1, 100, 2);
    for (int i = 0; i < 2; i++) {
        submit(jobs[i]);
        assert_done(i);
    }
    end();
}

static void threads_leave_while_jobs_come(void)
{
    begin(2, 100, 3);
    make_circle(2);
    submit(jobs[0]);
    submit(jobs[1]);
    assert_done(0);
    assert_done(1);
    submit(jobs[2]);
    assert_done(2);
    end();
}

static void nothing(void *unused)
{
    (void)unused;
}

/* After the end there is room for as many threads as before: none is left to be joined. */
static void threads_that_leave_are_joined_by_others(void)
{
    model_thread others[MODEL_MAX_THREADS - 1];

    begin(2, 100, 2);
    make_circle(2);
    submit(jobs[0]);
    submit(jobs[1]);
    assert_done(0);
    assert_done(1);
    end();
    for (int i = 0; i < MODEL_MAX_THREADS - 1; i++)
        others[i] = model_start(nothing, NULL);
    for (int i = 0; i < MODEL_MAX_THREADS - 1; i++)
        model_join(others[i]);
}

/* ---- taking back ---- */

static void withdraw(void *arg)
{
    struct model_job *j = arg;

    if (blz__lane_withdraw(l, &j->job)) {
        blz__plain_write(&j->outcome);
        j->queued = false;
    }
}

static void a_job_is_either_taken_back_or_done(void)
{
    begin(1, KEEP, 2);
    submit(jobs[0]);
    submit(jobs[1]);
    model_thread other = model_start(withdraw, jobs[0]);
    withdraw(jobs[1]);
    model_join(other);
    end();
}

/* It is its owner's at once. */
static void a_job_that_is_taken_back_may_be_freed(void)
{
    begin(1, KEEP, 2);
    submit(jobs[0]);
    submit(jobs[1]);
    withdraw(jobs[0]);
    if (jobs[0]->queued)
        await_done(jobs[0]);
    model_free(jobs[0]);
    jobs[0] = NULL;
    assert_done(1);
    end();
}

static void a_job_may_free_itself(void)
{
    struct model_job *gone;

    begin(1, KEEP, 1);
    gone = new_job();
    gone->freed_by_call = true;
    submit(gone);
    submit(jobs[0]);
    assert_done(0);
    end();
}

/* ---- the end ---- */

static void submit_late(void *arg)
{
    struct model_job *j = arg;
    int rc = blz__lane_submit(l, &j->job);

    model_assert(rc == 0 || rc == -ESHUTDOWN);
    j->queued = rc == 0;
}

static void a_job_that_comes_at_the_end_is_called_or_refused(void)
{
    begin(1, KEEP, 1);
    model_thread other = model_start(submit_late, jobs[0]);
    blz__lane_close(l);
    model_join(other);
    end();
}

static void all_threads_leave_at_the_end_wherever_they_are(void)
{
    begin(2, KEEP, 2);
    submit(jobs[0]);
    submit(jobs[1]);
    end();
}

static void close_lane(void *unused)
{
    (void)unused;
    blz__lane_close(l);
    model_assert(blz__lane_wait(l, INT64_MAX));
}

static void two_may_close(void)
{
    begin(1, KEEP, 1);
    submit(jobs[0]);
    model_thread other = model_start(close_lane, NULL);
    close_lane(NULL);
    model_join(other);
    end();
}

/* The time limit of the one who waits is no reason to lose the threads. */
static void a_wait_that_was_given_up_is_taken_up_again(void)
{
    begin(1, KEEP, 1);
    submit(jobs[0]);
    blz__lane_close(l);
    (void)blz__lane_wait(l, model_clock_now() + 1);
    end();
}

/* ---- no threads ---- */

static void submit_in_vain(void *arg)
{
    struct model_job *j = arg;
    int rc = blz__lane_submit(l, &j->job);

    model_assert(rc == 0 || rc == -EAGAIN);
    j->queued = rc == 0;
}

/* One starts the thread, in vain; the other may have relied on it, or tries itself. */
static void who_relied_on_a_thread_that_does_not_come_is_told(void)
{
    begin(1, KEEP, 2);
    model_refuse_starts(2);
    model_thread other = model_start(submit_in_vain, jobs[0]);
    submit_in_vain(jobs[1]);
    model_join(other);
    for (int i = 0; i < 2; i++)
        if (jobs[i]->queued) {
            await_done(jobs[i]);
            model_assert(jobs[i]->outcome == -EAGAIN);
        }
    end();
}

/* As above, but the second attempt succeeds. */
static void who_relied_on_a_refused_thread_is_told_or_served(void)
{
    begin(1, KEEP, 2);
    model_refuse_starts(1);
    model_thread other = model_start(submit_in_vain, jobs[0]);
    submit_in_vain(jobs[1]);
    model_join(other);
    for (int i = 0; i < 2; i++)
        if (jobs[i]->queued)
            await_done(jobs[i]);
    end();
}

static void a_thread_without_help_does_all_jobs(void)
{
    begin(2, KEEP, 3);
    submit(jobs[0]);
    model_refuse_starts(2);
    submit(jobs[1]);
    submit(jobs[2]);
    for (int i = 0; i < 3; i++)
        assert_done(i);
    end();
}

static uint32_t worker_may_go;

/* Fires the timer, and sleeps until it is due. */
static void be_worker(void *unused)
{
    (void)unused;
    small_rt_be(&worker);
    while (!blz__load(&worker_may_go, ACQUIRE)) {
        blz__worker_expire(&worker);
        blz__parker_wait(&worker.parker, blz__wheel_sleep(&worker.wheel));
    }
}

/* The only thread does not end its job before the other has begun: another must be started. */
static void a_thread_that_is_refused_once_comes_later(void)
{
    begin(2, KEEP, 2);
    jobs[0]->partner = jobs[1];
    worker_may_go = 0;
    model_thread other = model_start_named(be_worker, NULL, "worker");
    submit(jobs[0]);
    model_refuse_starts(1);
    submit(jobs[1]);
    assert_done(0);
    assert_done(1);
    blz__store(&worker_may_go, 1u, RELEASE);
    blz__parker_unpark(&worker.parker);
    model_join(other);
    end();
}

static void a_thread_that_does_not_come_at_the_end_is_not_waited_for(void)
{
    begin(1, KEEP, 1);
    model_refuse_starts(1);
    model_thread other = model_start(close_lane, NULL);
    int rc = blz__lane_submit(l, &jobs[0]->job);

    model_assert(rc == -EAGAIN || rc == -ESHUTDOWN);
    model_join(other);
    end();
}

static const struct model models[] = {
    MODEL(a_thread_comes_for_each_job_in_turn, .preemptions = 3, .reduce = true),
    MODEL(two_who_submit_at_once_both_find_a_thread, .reduce = true),
    MODEL(two_jobs_that_wait_for_each_other_both_get_a_thread, .preemptions = 3, .stale_reads = 1,
          .reduce = true),
    MODEL(three_jobs_that_wait_for_each_other_all_get_a_thread, .stale_reads = MODEL_NONE,
          .reduce = true),
    MODEL(jobs_of_two_threads_may_wait_for_each_other, .stale_reads = 1, .reduce = true),
    MODEL(a_guard_with_nothing_to_watch_comes_at_once, .stale_reads = 1, .timeouts = MODEL_NONE,
          .reduce = true),
    MODEL(idle_threads_are_called_for_each_job, .stale_reads = 1, .timeouts = MODEL_NONE,
          .reduce = true),
    MODEL(a_job_that_comes_as_a_threads_time_is_up_is_done, .timeouts = 2, .reduce = true),
    MODEL(threads_that_leave_are_joined_by_others, .preemptions = 1, .stale_reads = MODEL_NONE,
          .reduce = true),
    MODEL(threads_leave_while_jobs_come, .stale_reads = MODEL_NONE, .timeouts = 2, .reduce = true),
    MODEL(a_job_is_either_taken_back_or_done, .reduce = true),
    MODEL(a_job_that_is_taken_back_may_be_freed, .reduce = true),
    MODEL(a_job_may_free_itself, .reduce = true),
    MODEL(a_job_that_comes_at_the_end_is_called_or_refused, .preemptions = 3, .reduce = true),
    MODEL(all_threads_leave_at_the_end_wherever_they_are, .reduce = true),
    MODEL(two_may_close, .reduce = true),
    MODEL(a_wait_that_was_given_up_is_taken_up_again, .reduce = true),
    MODEL(who_relied_on_a_thread_that_does_not_come_is_told, .reduce = true),
    MODEL(who_relied_on_a_refused_thread_is_told_or_served, .reduce = true),
    MODEL(a_thread_without_help_does_all_jobs, .reduce = true),
    MODEL(a_thread_that_is_refused_once_comes_later, .stale_reads = MODEL_NONE, .reduce = true),
    MODEL(a_thread_that_does_not_come_at_the_end_is_not_waited_for, .preemptions = 3,
          .reduce = true),
};

MODEL_MAIN(models)
