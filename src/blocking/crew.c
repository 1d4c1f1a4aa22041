/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a lane's thread: takes jobs while there are any, stands guard when it is told to, is
 * idle otherwise, and leaves when that has lasted too long or the lane is closed.
 *
 * Idle threads are a stack: the last one is called first, so that those at the bottom can leave.
 * Whether an idle thread leaves or has been called is decided under the lock, by whether it is
 * still on the stack. A timeout that comes at the same moment as a call therefore loses nothing.
 *
 * Before it sleeps, a thread may look at its word for a moment: if jobs come one by one, that saves
 * both sides a trip to the kernel. It only does so while it pays: `spin_score` counts how often the
 * next call came within that moment, and how often it did not.
 *
 * A thread that leaves joins the one that left before it, so that at most one is left to join.
 */
#include "blocking/lane.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/thread_locals.h"
#include "observe/trace.h"
#include "sched/sched.h"
#include "system/clock.h"
#include "system/futex.h"
#include "system/thread.h"
#include "time/time.h"
#include "tuning.h"

/*
 * Jobs that wait longer than this, at the rate at which they are being taken, are reason enough for
 * one more thread.
 */
#define DELAY_NS BLZ_MSEC

enum { SPIN_SCORE_MAX = 4, SPIN_PAUSES = 16 };

/* ---- whose thread this is ---- */

bool blz__lane_is_mine(const lane_config *config)
{
    return blz__thread_locals()->lane == config;
}

/* ---- idle ---- */

/* Waits awake for a while. True: somebody has written the word. */
static bool spin(const sleeper *me, int64_t until_ns)
{
    do {
        for (int i = 0; i < SPIN_PAUSES; i++) {
            if (blz__load(&me->word, RELAXED) != SLEEPER_AWAKE)
                return true;
            blz__spin_hint();
        }
    } while (blz__clock_ns() < until_ns);
    return false;
}

static int64_t deadline_after(int64_t now_ns, int64_t ns)
{
    if (ns <= 0)
        return now_ns;
    return ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + ns;
}

/* Returns when the word has been written, or at the deadline. */
static void sleep_on(sleeper *me, int64_t deadline_ns)
{
    uint32_t awake = SLEEPER_AWAKE;

    if (!blz__cas(&me->word, &awake, SLEEPER_ASLEEP, RELAXED, RELAXED))
        return;
    while (blz__load(&me->word, RELAXED) == SLEEPER_ASLEEP) {
        if (deadline_ns == INT64_MAX)
            blz__futex_wait(&me->word, SLEEPER_ASLEEP);
        else if (!blz__futex_wait_until(&me->word, SLEEPER_ASLEEP, deadline_ns))
            return;
    }
}

static void push_idle(lane *l, sleeper *me)
{
    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    BLZ_ASSERT(l->nr_idle < l->threads);
    blz__store(&me->word, SLEEPER_AWAKE, RELAXED);
    me->called_ns = INT64_MAX;
    me->above = NULL;
    me->below = l->idle;
    if (l->idle)
        l->idle->above = me;
    l->idle = me;
    l->nr_idle++;
}

/* Learns from the wait that is over: would it have paid to wait awake? [locked] */
static void score_wait(lane *l, bool spun, int64_t for_ns)
{
    bool pays = spun || for_ns < BLOCKING_SPIN_NS;

    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    if (pays && l->spin_score < SPIN_SCORE_MAX)
        lane_set(l->spin_score, l->spin_score + 1);
    else if (!pays && l->spin_score > 0)
        lane_set(l->spin_score, l->spin_score - 1);
    l->spun += spun;
}

/* Idle until there is something to do, or the time is up: what to do, as SLEEPER_*. [locked] */
static uint32_t be_idle(lane *l, sleeper *me)
{
    int64_t since_ns = blz__clock_ns();
    bool may_spin = l->spin_score > 0 && !blz__lane_has_spinner(l), spun;
    uint32_t word;

    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    push_idle(l, me);
    if (may_spin)
        l->spinner = me;
    blz__lock_release(&l->lock);
    spun = may_spin && spin(me, since_ns + BLOCKING_SPIN_NS);
    if (!spun)
        sleep_on(me, deadline_after(since_ns, l->config->keep_alive_ns));
    blz__lock_acquire(&l->lock);
    word = blz__load(&me->word, RELAXED); /* under the lock it is what counts */
    if (word == SLEEPER_ASLEEP) {         /* the time is up */
        blz__lane_unlink_idle(l, me);
        word = SLEEPER_LEAVES;
    } else {
        score_wait(l, spun, me->called_ns - since_ns);
    }
    if (word == SLEEPER_CALLED)
        l->called--;
    return word;
}

/* ---- on guard ---- */

/* The watch is over: whether the others need help with what is queued. [locked] */
static bool must_help(lane *l, int64_t now_ns)
{
    uint64_t progress = l->taken - l->guard_taken;
    double elapsed_ns = (double)(now_ns - l->guard_since_ns);

    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    BLZ_ASSERT(l->guarded);
    if (progress == 0) {
        l->misses++;
        return true;
    }
    l->misses = 0;
    return (double)l->queued * elapsed_ns > (double)DELAY_NS * (double)progress;
}

/* Returns when there is nothing to watch over, or somebody must help, which is we. [locked] */
static void stand_guard(lane *l, sleeper *me)
{
    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    BLZ_ASSERT(l->guarded);
    while (l->first && !l->closed) {
        int64_t now_ns = blz__clock_ns();

        if (now_ns >= l->guard_until_ns) {
            if (must_help(l, now_ns))
                break;
            blz__lane_open_watch(l);
        }
        int64_t until_ns = l->guard_until_ns;

        blz__store(&me->word, SLEEPER_AWAKE, RELAXED);
        l->guard = me;
        blz__lock_release(&l->lock);
        sleep_on(me, until_ns);
        blz__lock_acquire(&l->lock);
        l->guard = NULL;
    }
    l->guarded = false;
}

/* ---- work ---- */

static void call_job(blz__job *job)
{
    uint32_t ticket = 0;

    if (trace_watched(TRACE_WORKER))
        ticket = blz__trace_work("blocking job");
    job->call(job, 0);
    if (blz_unlikely(ticket != 0))
        blz__trace_work_done(ticket);
}

/* [locked] */
static void do_jobs(lane *l)
{
    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    for (;;) {
        summons todo = {0};
        blz__job *job = blz__lane_take(l, &todo);

        if (!job)
            return;
        blz__lock_release(&l->lock);
        blz__lane_carry_out(l, &todo);
        call_job(job);
        blz__rt_release_clock(l->config->rt);
        blz__lock_acquire(&l->lock);
        lane_set(l->in_flight, l->in_flight - 1);
    }
}

/* [locked; not afterwards] */
static void leave(lane *l)
{
    blz__thread before = l->exited;
    bool join = l->has_exited, last;

    BLZ_ASSERT(blz__lock_is_held(&l->lock));
    BLZ_ASSERT(l->threads > 0);
    l->exited = blz__thread_self();
    l->has_exited = true;
    l->threads--;
    last = l->closed && l->threads == 0;
    blz__lock_release(&l->lock);
    if (join)
        blz__thread_join(before);
    if (last) { /* the lane is there until we have been joined */
        blz__store(&l->ended, 1u, RELAXED);
        blz__futex_wake(&l->ended, INT32_MAX);
    }
}

void blz__crew_main(void *arg)
{
    lane *l = arg;
    sleeper me = {0};
    uint32_t role;

    blz__thread_locals()->lane = l->config;
    blz__lock_acquire(&l->lock);
    l->started++;
    l->retry_ns = 0;
    role = l->starting_on_guard ? SLEEPER_ON_GUARD : SLEEPER_CALLED;
    if (role == SLEEPER_CALLED)
        l->called--;
    while (role != SLEEPER_LEAVES) {
        if (role == SLEEPER_ON_GUARD)
            stand_guard(l, &me);
        do_jobs(l);
        if (l->closed)
            break;
        role = be_idle(l, &me);
    }
    leave(l);
}
