/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane's queue, and who is called when a job comes in or stays behind (lane.h, and
 * docs/design/blocking.md for the reasons).
 *
 * Starting a thread costs as much as hundreds of small jobs, and so does waking one; but a job may
 * block for ever, so the threads at work are no promise that the queue will move. Hence the guard:
 * bursts of small jobs are done by a thread or two while a third one watches, and when the watch
 * shows that nothing moves, threads come one after the other, each started by the one before, as
 * fast as they can be.
 *
 * Called from any thread. The lock is held for a few dozen instructions; waking, starting and the
 * jobs' own functions come after it.
 */
#include "blocking/lane.h"

#include "base/assert.h"
#include "sched/sched.h"
#include "system/clock.h"
#include "system/futex.h"
#include "system/thread.h"
#include "time/time.h"

#include <blitz/error.h>
#include <string.h>

/*
 * The guard's watch: long enough for a thread that works to show progress although it has lost its
 * CPU for a moment, short beside what blocking work takes. Halved for each miss in a row.
 */
#define WATCH_NS (100 * BLZ_USEC)

/* How long to wait before a thread that was refused is asked for again; doubled each time. */
#define RETRY_MIN_NS BLZ_MSEC
#define RETRY_MAX_NS BLZ_SEC

static void retry_start(void *lane);

void blz__lane_init(lane *l, const lane_config *config, uint32_t max_threads)
{
    memset(l, 0, sizeof *l);
    l->config = config;
    l->max_threads = max_threads;
    blz_timer_init(&l->retry, retry_start, l);
}

/* ---- the queue ---- */

static void push(lane *l, blz__job *job)
{
    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    BLZ_ASSERT(!l->closed);
    blz__plain_write(job);
    job->next = NULL;
    job->prev = l->last;
    job->queued = 1;
    if (l->last)
        l->last->next = job;
    else
        l->first = job;
    l->last = job;
    l->queued++;
    lane_set(l->in_flight, l->in_flight + 1);
}

static void unlink_job(lane *l, blz__job *job)
{
    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    BLZ_ASSERT(job->queued);
    BLZ_ASSERT(l->queued > 0);
    blz__plain_write(job);
    if (job->prev)
        job->prev->next = job->next;
    else
        l->first = job->next;
    if (job->next)
        job->next->prev = job->prev;
    else
        l->last = job->prev;
    job->queued = 0;
    l->queued--;
}

blz__job *blz__lane_take_all(lane *l)
{
    blz__job *jobs = l->first;

    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    BLZ_ASSERT(!l->first == (l->queued == 0));
    for (blz__job *job = jobs; job; job = job->next)
        job->queued = 0;
    l->first = l->last = NULL;
    lane_set(l->in_flight, l->in_flight - l->queued);
    l->queued = 0;
    return jobs;
}

/* The job is gone after its call; after the last one the lane may be, and the runtime. */
void blz__lane_refuse(lane *l, blz__job *jobs, int error)
{
    blz_rt *rt = l->config->rt;

    while (jobs) {
        blz__job *job = jobs;

        jobs = job->next;
        blz__rt_release_clock(rt);
        job->call(job, error);
    }
}

/* ---- whom to call ---- */

void blz__lane_unlink_idle(lane *l, sleeper *s)
{
    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    BLZ_ASSERT(l->nr_idle > 0);
    BLZ_ASSERT(l->nr_idle <= l->threads);
    if (s->above)
        s->above->below = s->below;
    else
        l->idle = s->below;
    if (s->below)
        s->below->above = s->above;
    if (l->spinner == s)
        l->spinner = NULL;
    l->nr_idle--;
}

bool blz__lane_has_spinner(const lane *l)
{
    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    return l->spinner && blz__load(&l->spinner->word, RELAXED) == SLEEPER_AWAKE;
}

void blz__lane_open_watch(lane *l)
{
    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    l->guard_since_ns = blz__clock_ns();
    l->guard_until_ns = l->guard_since_ns + (l->misses < 8 ? WATCH_NS >> l->misses : 0);
    l->guard_taken = l->taken;
}

bool blz__lane_summon(lane *l, bool on_guard, summons *out)
{
    sleeper *s = blz__lane_has_spinner(l) ? l->spinner : l->idle;

    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    BLZ_ASSERT(!on_guard || !l->guarded);
    if (s) {
        uint32_t role = on_guard ? SLEEPER_ON_GUARD : SLEEPER_CALLED;

        blz__lane_unlink_idle(l, s);
        if (blz__swap(&s->word, role, RELAXED) == SLEEPER_ASLEEP) {
            out->wake = &s->word;
            s->called_ns = blz__clock_ns();
        }
    } else if (l->threads < l->max_threads) {
        l->threads++;
        l->starting_on_guard = out->on_guard = on_guard;
        out->start = true;
    } else {
        return false;
    }
    if (on_guard) {
        l->guarded = true;
        blz__lane_open_watch(l);
    } else {
        l->called++;
    }
    return true;
}

/* A job has come to an empty queue, and nobody but the guard is there for it: it need not wait. */
static void hasten_guard(lane *l, summons *out)
{
    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    BLZ_ASSERT(l->guarded);
    l->guard_until_ns = 0;
    l->guard_taken = l->taken;
    if (l->guard && blz__swap(&l->guard->word, SLEEPER_CALLED, RELAXED) == SLEEPER_ASLEEP)
        out->wake = &l->guard->word;
}

/*
 * After a job has been added. Idle threads are called for each job as long as there may be CPUs for
 * them; beyond that one who is called brings others, and the guard decides.
 */
static void call_for_job(lane *l, summons *out)
{
    uint32_t active = l->threads - l->nr_idle - l->guarded;

    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    BLZ_ASSERT(l->queued > 0);
    if (l->idle && l->called < l->queued && active < l->config->eager)
        blz__lane_summon(l, false, out);
    else if (l->called > 0)
        return;
    else if (!l->guarded)
        blz__lane_summon(l, false, out);
    else if (l->queued == 1)
        hasten_guard(l, out);
}

blz__job *blz__lane_take(lane *l, summons *out)
{
    blz__job *job = l->first;

    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    if (!job)
        return NULL;
    unlink_job(l, job);
    l->taken++;
    if (!l->first)
        l->misses = 0;
    else if (!l->guarded && l->called == 0)
        blz__lane_summon(l, true, out);
    return job;
}

/* ---- after the lock ---- */

/* There are jobs, and no thread will come for them unless one of those in jobs ends. [locked] */
static bool is_stranded(const lane *l)
{
    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    return l->first && !l->closed && l->called == 0 && !l->guarded;
}

/*
 * Has a worker try again in a while. Where no timer can be armed, the next job that is added or
 * ends brings a thread; so it is with a test clock, which stands still while there are jobs.
 */
static void retry_later(lane *l, int64_t ns)
{
    if (blz__rt_options(l->config->rt)->test_clock ||
        blz__timer_arm_own(&l->retry, ns, l->config->rt) < 0) {
        blz__lock_acquire(&l->lock);
        l->retrying = false;
        blz__lock_release(&l->lock);
    }
}

/* A timer's callback. [worker] */
static void retry_start(void *lane_)
{
    lane *l = lane_;
    summons todo = {0};

    blz__lock_acquire(&l->lock);
    l->retrying = false;
    if (is_stranded(l))
        blz__lane_summon(l, false, &todo);
    blz__lock_release(&l->lock);
    blz__lane_carry_out(l, &todo);
}

/*
 * The thread that was counted on will not come. Without any thread, what is queued cannot stay. If
 * there are some, which may be in jobs that never end, another attempt is made later.
 */
static void give_up_start(lane *l, bool on_guard, int error)
{
    blz_rt *rt = l->config->rt;
    blz__job *orphans = NULL;
    int64_t retry_ns = 0;
    bool last = false;

    blz__lock_acquire(&l->lock);
    l->threads--;
    if (on_guard)
        l->guarded = false;
    else
        l->called--;
    if (l->threads == 0) {
        orphans = blz__lane_take_all(l);
        last = l->closed;
    } else if (is_stranded(l) && !l->retrying) {
        retry_ns = l->retry_ns ? 2 * l->retry_ns : RETRY_MIN_NS;
        l->retry_ns = retry_ns < RETRY_MAX_NS ? retry_ns : RETRY_MAX_NS;
        l->retrying = true;
        blz__rt_visit(rt); /* another thread may take the job, and with it the runtime may end */
    }
    if (last)
        blz__store(&l->ended, 1u, RELAXED);
    blz__lock_release(&l->lock);
    if (last)
        blz__futex_wake(&l->ended, INT32_MAX);
    blz__lane_refuse(l, orphans, error);
    if (retry_ns) {
        retry_later(l, retry_ns);
        blz__rt_leave(rt);
    }
}

int blz__lane_carry_out(lane *l, const summons *todo)
{
    blz__thread thread;
    int rc = 0;

    if (todo->wake)
        blz__futex_wake(todo->wake, 1); /* its thread may have left: then nobody is woken */
    if (todo->start) {
        rc = blz__thread_start(&thread, blz__crew_main, l, l->config->stack_size,
                               l->config->thread_name);
        if (rc < 0)
            give_up_start(l, todo->on_guard, rc);
    }
    return rc;
}

/* ---- coming in and going out ---- */

/* Starts the first thread before there is a job, so that the job can be refused. [locked] */
static int start_first(lane *l)
{
    summons todo = {0};
    int rc;

    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    BLZ_ASSERT(l->threads == 0);
    blz__lane_summon(l, false, &todo);
    blz__lock_release(&l->lock);
    rc = blz__lane_carry_out(l, &todo);
    blz__lock_acquire(&l->lock);
    return rc;
}

int blz__lane_submit(lane *l, blz__job *job)
{
    summons todo = {0};
    int rc = 0;

    blz__rt_hold_clock(l->config->rt);
    blz__lock_acquire(&l->lock);
    while (rc == 0 && l->threads == 0 && !l->closed)
        rc = start_first(l);
    if (rc == 0 && l->closed)
        rc = -ESHUTDOWN;
    if (rc == 0) {
        push(l, job);
        call_for_job(l, &todo);
    }
    blz__lock_release(&l->lock);
    if (rc < 0)
        blz__rt_release_clock(l->config->rt);
    blz__lane_carry_out(l, &todo); /* if that fails, it is tried again */
    return rc;
}

bool blz__lane_withdraw(lane *l, blz__job *job)
{
    bool queued;

    blz__lock_acquire(&l->lock);
    blz__plain_read(job);
    queued = job->queued;
    if (queued) {
        unlink_job(l, job);
        lane_set(l->in_flight, l->in_flight - 1);
    }
    blz__lock_release(&l->lock);
    if (queued)
        blz__rt_release_clock(l->config->rt);
    return queued;
}

bool blz__lane_is_brisk(const lane *l)
{
    return blz__load(&l->in_flight, RELAXED) > 0 && blz__load(&l->spin_score, RELAXED) > 0;
}

/* ---- the end ---- */

static void send_away(sleeper *s)
{
    if (blz__swap(&s->word, SLEEPER_LEAVES, RELAXED) == SLEEPER_ASLEEP)
        blz__futex_wake(&s->word, 1); /* under the lock: a thread that leaves is gone */
}

void blz__lane_close(lane *l)
{
    blz__job *jobs;

    blz__lock_acquire(&l->lock);
    l->closed = true;
    jobs = blz__lane_take_all(l);
    while (l->idle) {
        sleeper *s = l->idle;

        blz__lane_unlink_idle(l, s);
        send_away(s);
    }
    if (l->guard)
        send_away(l->guard);
    if (l->threads == 0)
        blz__store(&l->ended, 1u, RELAXED);
    blz__lock_release(&l->lock);
    blz__lane_refuse(l, jobs, -ECANCELED);
}

/* `ended` is only a sign: what the threads did is seen through the lock, and by joining. */
bool blz__lane_wait(lane *l, int64_t deadline_ns)
{
    blz__thread exited = {0};
    bool join;

    while (!blz__load(&l->ended, RELAXED)) {
        if (deadline_ns == INT64_MAX)
            blz__futex_wait(&l->ended, 0);
        else if (!blz__futex_wait_until(&l->ended, 0, deadline_ns))
            return blz__load(&l->ended, RELAXED);
    }
    blz__lock_acquire(&l->lock);
    join = l->has_exited;
    exited = l->exited;
    l->has_exited = false;
    blz__lock_release(&l->lock);
    if (join)
        blz__thread_join(exited); /* it has joined the one before, and so on */
    return true;
}
