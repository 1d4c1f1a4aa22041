/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Semaphore: releases against acquires that have to wait, against cancellation and against close.
 * No permit is lost or made, nobody waits for ever, what came before a release has happened for who
 * acquires, and who acquires may free the semaphore.
 */
#include <blitz/semaphore.h>

#include "support/hand_polled.h"

static blz_semaphore *semaphore;
static uint32_t guarded[2]; /* plain memory, handed over with the permits */

static void begin(uint32_t permits)
{
    semaphore = model_alloc(sizeof *semaphore, _Alignof(blz_semaphore));
    blz_semaphore_init(semaphore, permits);
    guarded[0] = guarded[1] = 0;
}

static void end(uint32_t permits)
{
    model_assert(blz_semaphore_available(semaphore) == permits);
    model_assert(!semaphore->waiters.first && !semaphore->waiters.last);
    model_free(semaphore);
}

static int64_t acquire(uint32_t n)
{
    blz_semaphore_op op = {0};
    hand_polled hand;

    hand_begin(&hand);
    int64_t result = hand_await(&hand, blz_semaphore_acquire(&op, semaphore, n));
    hand_end(&hand);
    return result;
}

/* Polls once, and gives up if that was not enough. */
static int64_t acquire_or_give_up(uint32_t n)
{
    blz_semaphore_op op = {0};
    hand_polled hand;

    hand_begin(&hand);
    blz_future *future = blz_semaphore_acquire(&op, semaphore, n);
    if (blz_is_pending(future->ops->poll(future, &hand.cx))) {
        future->ops->cancel(future, &hand.cx);
        hand_await(&hand, future);
    }
    hand_end(&hand);
    return future->result;
}

static void write_and_release(void *which)
{
    uint32_t *slot = which;

    blz__plain_write(slot);
    *slot = 1;
    model_assert(blz_semaphore_release(semaphore, 1) == 0);
}

static void release(void *unused)
{
    (void)unused;
    model_assert(blz_semaphore_release(semaphore, 1) == 0);
}

static void check_written(uint32_t *slot)
{
    blz__plain_read(slot);
    model_assert(*slot == 1);
}

/* ---- as a signal ---- */

static void who_acquires_sees_what_was_released_and_frees(void)
{
    begin(0);
    model_thread other = model_start_named(write_and_release, &guarded[0], "releases");
    model_assert(acquire(1) == 0);
    check_written(&guarded[0]);
    model_free(semaphore);
    model_join(other);
}

static void a_request_for_two_sees_both_releases(void)
{
    begin(0);
    model_thread first = model_start_named(write_and_release, &guarded[0], "releases");
    model_thread second = model_start_named(write_and_release, &guarded[1], "also releases");
    model_assert(acquire(2) == 0);
    check_written(&guarded[0]);
    check_written(&guarded[1]);
    model_free(semaphore);
    model_join(first);
    model_join(second);
}

/* Polled without being woken, it has only its own look at the queue to go by. */
static void a_poll_for_nothing_sees_what_was_released(void)
{
    blz_semaphore_op op = {0};
    hand_polled hand;

    begin(0);
    hand_begin(&hand);
    model_thread other = model_start_named(write_and_release, &guarded[0], "releases");
    blz_future *future = blz_semaphore_acquire(&op, semaphore, 1);
    while (blz_is_pending(future->ops->poll(future, &hand.cx)))
        blz__spin_hint();
    check_written(&guarded[0]);
    model_free(semaphore);
    model_join(other);
    hand_end(&hand);
}

static void try_and_check(void *unused)
{
    (void)unused;
    while (blz_semaphore_try_acquire(semaphore, 1) < 0)
        blz__spin_hint();
    check_written(&guarded[0]);
}

static void write_and_release_two(void *unused)
{
    (void)unused;
    blz__plain_write(&guarded[0]);
    guarded[0] = 1;
    model_assert(blz_semaphore_release(semaphore, 2) == 0);
}

/* One is served, perhaps, and the other takes what is left. */
static void a_release_of_two_is_seen_by_both(void)
{
    begin(0);
    model_thread one = model_start_named(try_and_check, NULL, "tries");
    model_thread other = model_start_named(write_and_release_two, NULL, "releases");
    model_assert(acquire(1) == 0);
    check_written(&guarded[0]);
    model_join(one);
    model_join(other);
    end(0);
}

static void give_up(void *unused)
{
    (void)unused;
    model_assert(acquire_or_give_up(2) == -ECANCELED);
}

/* The release may have meant to serve a waiter that is gone: not even then does it come back. */
static void a_release_is_over_when_its_permit_is_had(void)
{
    begin(0);
    model_thread quitter = model_start_named(give_up, NULL, "gives up");
    model_thread other = model_start_named(release, NULL, "releases");
    model_join(quitter);
    model_assert(acquire(1) == 0);
    model_free(semaphore);
    model_join(other);
}

/* ---- as a lock ---- */

static void enter_and_leave(void *unused)
{
    (void)unused;
    model_assert(acquire(1) == 0);
    blz__plain_write(&guarded[0]);
    guarded[0]++;
    model_assert(blz_semaphore_release(semaphore, 1) == 0);
}

static void one_permit_excludes(void)
{
    begin(1);
    model_thread a = model_start(enter_and_leave, NULL), b = model_start(enter_and_leave, NULL);
    enter_and_leave(NULL);
    model_join(a);
    model_join(b);
    model_assert(guarded[0] == 3);
    end(1);
}

static void wait_and_leave(void *unused)
{
    (void)unused;
    model_assert(blz_semaphore_acquire_wait(semaphore, 1) == 0);
    blz__plain_write(&guarded[0]);
    guarded[0]++;
    model_assert(blz_semaphore_release(semaphore, 1) == 0);
}

static void a_thread_and_a_task_exclude_each_other(void)
{
    begin(1);
    model_thread a = model_start(wait_and_leave, NULL);
    enter_and_leave(NULL);
    model_join(a);
    model_assert(guarded[0] == 2);
    end(1);
}

/* ---- cancelling ---- */

static void cancel_against_release(void)
{
    begin(0);
    model_thread other = model_start_named(release, NULL, "releases");
    int64_t result = acquire_or_give_up(1);
    model_join(other);
    model_assert(result == 0 || result == -ECANCELED);
    end(result == 0 ? 0 : 1);
}

static void take_one(void *unused)
{
    (void)unused;
    model_assert(acquire(1) == 0);
}

static void who_gives_up_lets_the_next_in(void)
{
    begin(1);
    model_thread next = model_start_named(take_one, NULL, "takes one");
    model_assert(acquire_or_give_up(2) == -ECANCELED);
    model_join(next);
    end(0);
}

/* The permit of a release is had by one of the two, whoever gives up when. */
static void a_permit_outlives_who_gives_up(void)
{
    begin(0);
    model_thread next = model_start_named(take_one, NULL, "takes one");
    model_thread other = model_start_named(release, NULL, "releases");
    int64_t result = acquire_or_give_up(1);
    if (result == 0)
        release(NULL);
    model_join(next);
    model_join(other);
    end(0);
}

/* ---- closing and forgetting ---- */

static void close_it(void *unused)
{
    (void)unused;
    blz_semaphore_close(semaphore);
}

static void a_close_ends_the_wait(void)
{
    begin(0);
    model_thread other = model_start_named(close_it, NULL, "closes");
    model_assert(acquire(1) == -EPIPE);
    model_join(other);
    end(0);
}

static void close_against_release(void)
{
    begin(0);
    model_thread closer = model_start_named(close_it, NULL, "closes");
    model_thread other = model_start_named(release, NULL, "releases");
    int64_t result = acquire(1);
    model_join(closer);
    model_join(other);
    model_assert(result == 0 || result == -EPIPE);
    end(result == 0 ? 0 : 1);
}

static void forget_against_release(void)
{
    begin(1);
    model_thread other = model_start_named(release, NULL, "releases");
    model_thread taker = model_start_named(take_one, NULL, "takes one");
    uint32_t forgotten = blz_semaphore_forget(semaphore, 1);
    model_join(other);
    model_join(taker); /* at least one permit is left to it */
    end(1 - forgotten);
}

static const struct model models[] = {
    {"who_acquires_sees_what_was_released_and_frees",
     who_acquires_sees_what_was_released_and_frees,
     {.preemptions = 4, .reduce = true}},
    {"a_request_for_two_sees_both_releases",
     a_request_for_two_sees_both_releases,
     {.preemptions = 1, .stale_reads = 1, .reduce = true}},
    {"a_poll_for_nothing_sees_what_was_released",
     a_poll_for_nothing_sees_what_was_released,
     {.preemptions = 3, .reduce = true}},
    {"a_release_of_two_is_seen_by_both",
     a_release_of_two_is_seen_by_both,
     {.preemptions = 1, .stale_reads = 1, .reduce = true}},
    {"a_release_is_over_when_its_permit_is_had",
     a_release_is_over_when_its_permit_is_had,
     {.preemptions = 2, .stale_reads = 1, .reduce = true}},
    {"one_permit_excludes", one_permit_excludes, {.preemptions = 1, .stale_reads = 1}},
    {"a_thread_and_a_task_exclude_each_other",
     a_thread_and_a_task_exclude_each_other,
     {.preemptions = 3, .reduce = true}},
    {"cancel_against_release", cancel_against_release, {.preemptions = 4, .reduce = true}},
    {"who_gives_up_lets_the_next_in",
     who_gives_up_lets_the_next_in,
     {.preemptions = 3, .reduce = true}},
    {"a_permit_outlives_who_gives_up",
     a_permit_outlives_who_gives_up,
     {.preemptions = 1, .stale_reads = 1}},
    {"a_close_ends_the_wait", a_close_ends_the_wait, {.preemptions = 4, .reduce = true}},
    {"close_against_release",
     close_against_release,
     {.preemptions = 2, .stale_reads = MODEL_NONE, .reduce = true}},
    {"forget_against_release", forget_against_release, {.preemptions = 2, .reduce = true}},
};

MODEL_MAIN(models)
