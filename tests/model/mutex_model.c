/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutex, with one pass at most: holders exclude each other, nobody waits for ever, whoever gives up
 * leaves the line to the others, and whoever locks last may free it. In the end the word is what it
 * was in the beginning: no bit is left over.
 */
#include <blitz/mutex.h>

#include "support/hand_polled.h"

static blz_mutex *mutex;
static uint32_t guarded; /* plain memory, for holders only */

static void begin(void)
{
    mutex = model_alloc(sizeof *mutex, _Alignof(blz_mutex));
    blz_mutex_init(mutex);
    guarded = 0;
}

static void end(void)
{
    model_assert(mutex->word == 0);
    model_assert(!mutex->waiters.first && !mutex->waiters.last);
    model_free(mutex);
}

static void lock(void)
{
    blz_mutex_op op = {0};
    hand_polled hand;

    hand_begin(&hand);
    model_assert(hand_await(&hand, blz_mutex_lock(&op, mutex)) == 0);
    hand_end(&hand);
}

/* Twice, as by a shutdown that loses its patience. */
static void cancel(blz_future *future, blz_cx *cx)
{
    future->ops->cancel(future, cx);
    future->ops->cancel(future, cx);
}

/* Polls once, and gives up if that was not enough. */
static bool lock_or_give_up(void)
{
    blz_mutex_op op = {0};
    hand_polled hand;

    hand_begin(&hand);
    blz_future *future = blz_mutex_lock(&op, mutex);
    if (blz_is_pending(future->ops->poll(future, &hand.cx))) {
        cancel(future, &hand.cx);
        hand_await(&hand, future);
    }
    hand_end(&hand);
    model_assert(future->result == 0 || future->result == -ECANCELED);
    return future->result == 0;
}

static void touch(void)
{
    blz__plain_write(&guarded);
    guarded++;
}

static void unlock(void *unused)
{
    (void)unused;
    touch();
    blz_mutex_unlock(mutex);
}

static void lock_and_unlock(void *unused)
{
    (void)unused;
    lock();
    touch();
    blz_mutex_unlock(mutex);
}

static void try_and_unlock(void *unused)
{
    (void)unused;
    while (blz_mutex_try_lock(mutex) < 0)
        blz__spin_hint();
    touch();
    blz_mutex_unlock(mutex);
}

static void give_up(void *unused)
{
    (void)unused;
    if (lock_or_give_up())
        unlock(NULL);
}

/* ---- excluding ---- */

static void two_exclude_each_other(void)
{
    begin();
    model_thread other = model_start(lock_and_unlock, NULL);
    lock_and_unlock(NULL);
    model_join(other);
    model_assert(guarded == 2);
    end();
}

static void three_exclude_each_other(void)
{
    begin();
    model_thread a = model_start(lock_and_unlock, NULL), b = model_start(lock_and_unlock, NULL);
    lock_and_unlock(NULL);
    model_join(a);
    model_join(b);
    model_assert(guarded == 3);
    end();
}

static void wait_and_unlock(void *unused)
{
    (void)unused;
    model_assert(blz_mutex_lock_wait(mutex) == 0);
    touch();
    blz_mutex_unlock(mutex);
}

static void a_thread_and_a_task_exclude_each_other(void)
{
    begin();
    model_thread a = model_start(wait_and_unlock, NULL);
    lock_and_unlock(NULL);
    model_join(a);
    model_assert(guarded == 2);
    end();
}

/* One waits in line, is called, and may be passed once by who tries. */
static void who_is_passed_has_it_in_the_end(void)
{
    begin();
    model_assert(blz_mutex_try_lock(mutex) == 0);
    model_thread a = model_start_named(lock_and_unlock, NULL, "waits");
    model_thread b = model_start_named(try_and_unlock, NULL, "passes");
    unlock(NULL);
    model_join(a);
    model_join(b);
    model_assert(guarded == 3);
    end();
}

/* ---- giving up ---- */

static void cancel_against_unlock(void)
{
    begin();
    model_assert(blz_mutex_try_lock(mutex) == 0);
    model_thread other = model_start_named(unlock, NULL, "unlocks");
    give_up(NULL);
    model_join(other);
    end();
}

static void who_gives_up_calls_the_next(void)
{
    begin();
    model_assert(blz_mutex_try_lock(mutex) == 0);
    model_thread quitter = model_start_named(give_up, NULL, "gives up");
    model_thread next = model_start_named(lock_and_unlock, NULL, "waits");
    unlock(NULL);
    model_join(quitter);
    model_join(next);
    end();
}

static void who_gives_up_on_its_way_opens_it_for_all(void)
{
    begin();
    model_assert(blz_mutex_try_lock(mutex) == 0);
    model_thread quitter = model_start_named(give_up, NULL, "gives up");
    model_thread other = model_start_named(try_and_unlock, NULL, "passes");
    unlock(NULL);
    model_join(quitter);
    model_join(other);
    end();
}

static void unlock_and_pass(void *unused)
{
    unlock(unused);
    try_and_unlock(unused);
}

/* It comes, finds itself passed, and gives up while the mutex may be on its way into its hands. */
static void cancel_against_hand_over(void)
{
    blz_mutex_op op = {0};
    hand_polled hand;

    begin();
    model_assert(blz_mutex_try_lock(mutex) == 0);
    model_thread other = model_start_named(unlock_and_pass, NULL, "passes");
    hand_begin(&hand);
    blz_future *future = blz_mutex_lock(&op, mutex);
    bool ready = blz_is_ready(future->ops->poll(future, &hand.cx));
    if (!ready) {
        hand_wait(&hand);
        ready = blz_is_ready(future->ops->poll(future, &hand.cx));
    }
    if (!ready) {
        cancel(future, &hand.cx);
        hand_await(&hand, future);
    }
    hand_end(&hand);
    if (future->result == 0)
        unlock(NULL);
    model_join(other);
    end();
}

/* ---- freeing ---- */

/* The last to have had it frees it, while the one before may still be in its unlock. */
static void lock_and_let_go(void *unused)
{
    (void)unused;
    lock();
    touch();
    bool last = guarded == 2;
    blz_mutex_unlock(mutex);
    if (last)
        model_free(mutex);
}

static void the_last_to_have_had_it_frees_it(void)
{
    begin();
    model_thread other = model_start(lock_and_let_go, NULL);
    lock_and_let_go(NULL);
    model_join(other);
}

/* The same where an unlock has meant to call someone who has given up. */
static void an_unlock_is_over_when_it_can_be_locked(void)
{
    begin();
    model_assert(blz_mutex_try_lock(mutex) == 0);
    model_thread quitter = model_start_named(give_up, NULL, "gives up");
    model_thread other = model_start_named(unlock, NULL, "unlocks");
    model_join(quitter);
    lock();
    touch();
    blz_mutex_unlock(mutex);
    model_free(mutex);
    model_join(other);
}

static const struct model models[] = {
    {"two_exclude_each_other", two_exclude_each_other, {.preemptions = 4, .reduce = true}},
    {"three_exclude_each_other", three_exclude_each_other, {.preemptions = 1, .stale_reads = 1}},
    {"a_thread_and_a_task_exclude_each_other",
     a_thread_and_a_task_exclude_each_other,
     {.preemptions = 3, .stale_reads = 1, .reduce = true}},
    {"who_is_passed_has_it_in_the_end",
     who_is_passed_has_it_in_the_end,
     {.preemptions = 2, .stale_reads = 1, .reduce = true}},
    {"cancel_against_unlock", cancel_against_unlock, {.preemptions = 4, .reduce = true}},
    {"who_gives_up_calls_the_next",
     who_gives_up_calls_the_next,
     {.preemptions = 2, .stale_reads = 1}},
    {"who_gives_up_on_its_way_opens_it_for_all",
     who_gives_up_on_its_way_opens_it_for_all,
     {.preemptions = 3, .stale_reads = 1, .reduce = true}},
    {"cancel_against_hand_over", cancel_against_hand_over, {.preemptions = 3, .reduce = true}},
    {"the_last_to_have_had_it_frees_it",
     the_last_to_have_had_it_frees_it,
     {.preemptions = 4, .reduce = true}},
    {"an_unlock_is_over_when_it_can_be_locked",
     an_unlock_is_over_when_it_can_be_locked,
     {.preemptions = 3, .stale_reads = 1, .reduce = true}},
};

MODEL_MAIN(models)
