/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cold halves of fork and unfork (par.h).
 *
 * When to publish. A worker keeps its forks to itself until it looks around, which it does at the
 * first fork of a computation and each time that its fuel is used up. Fuel is a number of forks,
 * chosen so that they take about two microseconds: doubled at most from look to look, cut down at
 * once when they turn out to take longer. A thief that looks for work asks earlier, by taking the
 * fuel away. At such a moment the oldest job is published (the one with the most behind it), unless
 * another one is public already.
 *
 * Typed tasks fork only while this worker has fewer than three private jobs; from then on they are
 * plain calls. Others take the oldest first, so what is not forked is small beside what is. A
 * thief that asks makes it fork again, wherever it is: `enough` goes out of reach.
 *
 * So the first fork of a computation is seen by others at once, and wakes one of them if all are
 * asleep: each branch may run for a second without another fork. To wake a thread costs more than a
 * small computation, though. If the job was taken back before anybody came, or was done within a
 * few microseconds by the one who came, the pool stays calm for a millisecond, or longer if that
 * happens again: computations that begin in that time publish nothing in their first microseconds,
 * and whatever is over by then does not disturb another thread at all. What stays private then, and
 * what does because there is fuel, is found by those who go to sleep (force.c).
 */
#include "par/pool.h"

#include "base/panic.h"

enum { MAX_BURST = 256 };

/* Private jobs from which on typed tasks fork no more; the second: while nobody shall take any. */
enum { KEEP = 3, KEEP_SOLO = 1 };

/* ---- fuel ---- */

/* After each change of `bottom`. */
static void set_enough(worker *w)
{
    int64_t bottom = blz__load(&w->ring.own.bottom, RELAXED);
    int64_t enough = bottom + (w->is_solo ? KEEP_SOLO : KEEP);

    if (pool_nr_in_use(w->pool) == 1)
        enough = INT64_MIN; /* there is nobody to keep any for */
    blz__store(&w->ring.own.enough, enough, RELAXED);
}

/*
 * Whether somebody looks later for what is private from now on. That is the watcher; or one who is
 * awake and has not announced that it is about to sleep: it will see that this worker is solo, and
 * watch. If others are asleep it must be looking for work already: it wakes them if it finds some.
 */
static bool is_looked_after(const blz_pool *pool)
{
    uint64_t counters;

    if (!pool->sleep.asymmetric_fences || blz__load(&pool->has_watcher, RELAXED))
        return true;
    counters = blz__load(&pool->sleep.counters, RELAXED);
    return (sleep_event(counters) & 1) &&
           (sleep_nr_looking(counters) > 0 || sleep_nr_asleep(counters) == 0);
}

bool blz__par_go_solo(worker *w, uint64_t now)
{
    blz_pool *pool = w->pool;

    if ((int64_t)(blz__load(&pool->calm_until, RELAXED) - now) <= 0)
        return false;
    blz__store(&w->is_solo, true, RELAXED);
    /* Pairs with the heavy fence of blz__par_sleep_announce: who has announced before is seen here,
     * and who does later sees that we are solo. */
    blz__fence_light();
    if (is_looked_after(pool)) {
        w->solo_until = now + pool->solo_ticks;
        w->is_excused = false;
        return true;
    }
    blz__store(&w->is_solo, false, RELAXED);
    return false;
}

void blz__par_fresh_fuel(worker *w, bool is_root)
{
    blz_pool *pool = w->pool;
    uint64_t now = blz__clock_ticks(&pool->clock);

    w->burst = pool_nr_in_use(pool) > 1 ? 1 : INT32_MAX; /* alone it need not look */
    w->looks = 0;
    blz__store(&w->looked_at, now, RELAXED);
    blz__store(&w->is_solo, false, RELAXED);
    w->solo_until = now;
    w->is_fresh = is_root && blz__par_go_solo(w, now);
    blz__store(&w->ring.own.fuel, 0, RELAXED);
    set_enough(w);
}

void blz__par_end_solo(worker *w)
{
    blz__store(&w->is_solo, false, RELAXED);
    w->is_fresh = false;
    set_enough(w);
}

void blz__par_end_root(worker *w)
{
    uint64_t now;

    blz__store(&w->ring.own.fuel, 0, RELAXED); /* whoever called it looks around at its next fork */
    if (!w->is_solo)
        return;
    blz__par_end_solo(w);
    now = blz__clock_ticks(&w->pool->clock);
    if ((int64_t)(now - w->solo_until) > (int64_t)(4 * w->pool->solo_ticks))
        blz__par_judge(w->pool, now, true);
}

static int32_t next_burst(const worker *w, uint64_t elapsed)
{
    uint64_t most = 2 * (uint64_t)w->burst;

    if (w->looks < PAR_FIRST_LOOKS && !w->is_solo)
        return 1;
    if (elapsed > w->pool->look_ticks)
        most = (uint64_t)w->burst * w->pool->look_ticks / elapsed;
    return most == 0 ? 1 : most > MAX_BURST ? MAX_BURST : (int32_t)most;
}

/* How many of the next forks are free, by the clock and by the room in the ring. */
static void refill(worker *w, int64_t room)
{
    int32_t free = w->burst - 1;
    int32_t fuel = room < free ? (int32_t)room : free;

    blz__store(&w->ring.own.fuel, fuel > 0 ? fuel : 0, RELAXED);
}

/* ---- publishing ---- */

void blz__par_judge(blz_pool *pool, uint64_t now, bool worth_it)
{
    int64_t left = (int64_t)(blz__load(&pool->calm_until, RELAXED) - now);
    uint32_t vain = blz__load(&pool->vain, RELAXED);

    if (worth_it) {
        if (left > 0) /* others read it: seldom */
            blz__store(&pool->calm_until, now, RELAXED);
        if (vain)
            blz__store(&pool->vain, 0u, RELAXED);
    } else if (left < (int64_t)pool->calm_ticks / 2) {
        blz__store(&pool->calm_until, now + (pool->calm_ticks << vain), RELAXED);
        if (vain < PAR_MAX_DOUBLED)
            blz__store(&pool->vain, vain + 1, RELAXED);
    }
}

static void publish_oldest(worker *w)
{
    blz_par_job *job = ring_publish_begin(&w->ring);

    if (!job)
        return;
    job_prepare(job, w);
    ring_publish_end(&w->ring);
    par_count(w->stats.published);
    if (blz__par_sleep_post(&w->pool->sleep, 1) || w->looks <= 1)
        w->shown = job->index;
    blz__par_tell_helper(w, job->index);
}

/* It goes on a little longer than it was to: what took so long may have been an interruption. */
static bool stays_solo(worker *w, uint64_t now)
{
    if (!w->is_solo) /* nobody would look for what is kept: its time is that of an earlier one */
        return false;
    if ((int64_t)(now - w->solo_until) < 0)
        return true;
    if (w->is_excused)
        return false;
    w->is_excused = true;
    w->solo_until = now + w->pool->look_ticks;
    return true;
}

static void look_around(worker *w, bool asked)
{
    uint64_t now;

    if (w->is_solo && w->is_fresh && !asked) { /* it has just begun: never mind the clock */
        w->is_fresh = false;
        return;
    }
    now = blz__clock_ticks(&w->pool->clock);

    w->looks += w->looks < PAR_FIRST_LOOKS;
    if (!asked)
        w->burst = next_burst(w, now - w->looked_at);
    blz__store(&w->looked_at, now, RELAXED);
    if (stays_solo(w, now) || pool_is_forked(w->pool)) /* a child is alone */
        return;
    blz__store(&w->is_solo, false, RELAXED);
    blz__par_offer(w);
    if (!ring_has_public(&w->ring))
        publish_oldest(w);
}

static bool has_shown(const worker *w)
{
    return ring_has_public(&w->ring) || blz__load(&w->tasks.offer, RELAXED);
}

void blz__par_look(worker *w)
{
    bool asked = blz__load(&w->ring.own.fuel, RELAXED) == PAR_FUEL_ASKED;

    if (pool_nr_in_use(w->pool) > 1)
        look_around(w, asked);
    set_enough(w);
    if (asked && !has_shown(w)) /* there was nothing to show: the next is */
        blz__store(&w->ring.own.fuel, 0, RELAXED);
    else
        refill(w, ring_room(&w->ring));
}

void blz_par_refuel_(blz_par *par, blz_par_job *job)
{
    worker *w = worker_of(par);
    bool asked = blz__load(&par->fuel, RELAXED) == PAR_FUEL_ASKED;
    int64_t room = ring_room(&w->ring) - 1;

    ring_add(&w->ring, job);
    if (pool_nr_in_use(w->pool) > 1)
        look_around(w, asked);
    set_enough(w);
    refill(w, room);
}

/* ---- a public job ---- */

/* In a forked child: a thief of the parent was taking this job, and has the lock for ever. */
static bool is_out_of_reach(worker *w, int64_t index)
{
    return pool_is_forked(w->pool) && ring_is_held(&w->ring, index);
}

bool blz_par_reclaim_(blz_par *par, blz_par_job *job, blz_par_wait_mode waiting)
{
    worker *w = worker_of(par);
    bool tells = job->index == w->shown;

    if (tells)
        w->shown = -1;
    if (is_out_of_reach(w, job->index))
        blz__panic(PAR_CHILD_WAITS);
    if (!ring_unfork(&w->ring, job->index)) {
        blz__par_wait_for(w, job, waiting);
        return false;
    }
    set_enough(w);
    if (tells) /* nobody has come in time */
        blz__par_judge(w->pool, blz__clock_ticks(&w->pool->clock), false);
    return true;
}
