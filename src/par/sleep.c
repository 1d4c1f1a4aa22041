/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeping and waking of sleep.h. The word of a sleeper orders nothing: a worker that was woken
 * looks for a job, and if it does not see it yet, it sees it after the fence of its next
 * announcement. What comes with a latch is ordered by the latch.
 */
#include "par/sleep.h"

#include "base/assert.h"
#include "base/fence.h"
#include "par/latch.h"
#include "system/futex.h"

#include <blitz/base.h>

/* ---- fences ---- */

void blz__par_sleep_fence(const sleep_state *s)
{
    blz__fence_heavy_or_full(s->asymmetric_fences); /* pairs with that in blz__par_sleep_post */
}

/* ---- waking ---- */

bool blz__par_sleep_wake(sleep_state *s, uint32_t worker)
{
    uint32_t *word = &s->sleepers[worker].word;
    uint32_t state = blz__load(word, RELAXED);

    blz__plain_read(&s->sleepers);
    for (;;) {
        if (state == SLEEP_PREP) {
            if (blz__cas(word, &state, (uint32_t)SLEEP_NOTIFIED, RELAXED, RELAXED))
                return true;
        } else if (state == SLEEP_ASLEEP) {
            if (blz__cas(word, &state, (uint32_t)SLEEP_CLAIMED, RELAXED, RELAXED))
                break;
        } else {
            return false;
        }
    }
    blz__fetch_sub(&s->counters, SLEEP_ONE_ASLEEP, RELAXED);
    blz__store(word, (uint32_t)SLEEP_NOTIFIED, RELAXED);
    blz__futex_wake(word, 1);
    return true;
}

static void wake_any(sleep_state *s, uint32_t count)
{
    uint32_t end = blz__load(&s->nr_sleepers, RELAXED);

    for (uint32_t i = 0; i < end && count > 0; i++)
        if (blz__par_sleep_wake(s, i))
            count--;
}

/* ---- counting ---- */

void blz__par_sleep_begin_looking(sleep_state *s)
{
    blz__fetch_add(&s->counters, SLEEP_ONE_INACTIVE, RELAXED);
}

void blz__par_sleep_end_looking(sleep_state *s)
{
    /* acquire: as in blz__par_sleep_post */
    uint64_t before = blz__fetch_sub(&s->counters, SLEEP_ONE_INACTIVE, ACQUIRE);
    uint32_t asleep = sleep_nr_asleep(before);

    BLZ_ASSERT(sleep_nr_looking(before) > 0);
    if (blz_unlikely(asleep))
        wake_any(s, asleep < 2 ? asleep : 2);
}

bool blz__par_sleep_post(sleep_state *s, uint32_t jobs)
{
    blz__fence_light_or_full(s->asymmetric_fences); /* pairs with blz__par_sleep_fence */
    /* acquire: pairs with the release in count_asleep; whoever is counted is seen in PREP */
    uint64_t counters = blz__load(&s->counters, ACQUIRE);
    uint32_t asleep, looking;

    while (!(sleep_event(counters) & 1) &&
           !blz__cas(&s->counters, &counters, counters + SLEEP_ONE_EVENT, ACQUIRE, ACQUIRE))
        ;
    asleep = sleep_nr_asleep(counters);
    looking = sleep_nr_looking(counters);
    if (!asleep || looking >= jobs)
        return false;
    wake_any(s, jobs - looking < asleep ? jobs - looking : asleep);
    return true;
}

/* ---- sleeping ---- */

uint32_t blz__par_sleep_announce(sleep_state *s)
{
    uint64_t counters = blz__load(&s->counters, RELAXED);
    uint64_t announced = counters;

    while (sleep_event(counters) & 1) {
        announced = counters + SLEEP_ONE_EVENT;
        if (blz__cas(&s->counters, &counters, announced, RELAXED, RELAXED))
            break;
        announced = counters;
    }
    blz__par_sleep_fence(s);
    return sleep_event(announced);
}

/* False: something was posted since the announcement. */
static bool count_asleep(sleep_state *s, uint32_t event)
{
    uint64_t counters = blz__load(&s->counters, RELAXED);

    do {
        if (sleep_event(counters) != event)
            return false;
        /* release: pairs with the acquires of those that look for whom to wake; we are in PREP */
    } while (!blz__cas(&s->counters, &counters, counters + SLEEP_ONE_ASLEEP, RELEASE, RELAXED));
    return true;
}

/* Its time is over, unless somebody is waking it just now. */
static bool give_up(sleep_state *s, uint32_t *word)
{
    uint32_t state = SLEEP_ASLEEP;

    if (!blz__cas(word, &state, (uint32_t)SLEEP_RUNNING, RELAXED, RELAXED))
        return false;
    blz__fetch_sub(&s->counters, SLEEP_ONE_ASLEEP, RELAXED);
    return true;
}

/* Counted already: whoever wakes it from here on uncounts it, or leaves that to us. */
static sleep_end fall_asleep(sleep_state *s, uint32_t *word, int64_t deadline_ns)
{
    uint32_t state = SLEEP_PREP;

    if (!blz__cas(word, &state, (uint32_t)SLEEP_ASLEEP, RELAXED, RELAXED)) {
        blz__fetch_sub(&s->counters, SLEEP_ONE_ASLEEP, RELAXED);
        return SLEEP_NOT_AT_ALL;
    }
    while ((state = blz__load(word, RELAXED)) != SLEEP_NOTIFIED) {
        if (deadline_ns == 0)
            blz__futex_wait(word, state);
        else if (blz__futex_wait_until(word, state, deadline_ns))
            continue;
        else if (give_up(s, word))
            return SLEEP_OVER;
        else
            deadline_ns = 0; /* it is being woken */
    }
    return SLEEP_WOKEN;
}

sleep_end blz__par_sleep(sleep_state *s, uint32_t worker, uint32_t event, uint32_t *latch,
                         int64_t deadline_ns)
{
    uint32_t *word = &s->sleepers[worker].word;
    sleep_end end = SLEEP_NOT_AT_ALL;

    BLZ_ASSERT(blz__peek(word) == SLEEP_RUNNING);
    blz__store(word, (uint32_t)SLEEP_PREP, RELAXED);
    if (latch_sleep(latch)) { /* its release: who finds it SLEEPING finds PREP, too */
        if (count_asleep(s, event))
            end = fall_asleep(s, word, deadline_ns);
        latch_awake(latch);
    }
    blz__store(word, (uint32_t)SLEEP_RUNNING, RELAXED);
    return end;
}
