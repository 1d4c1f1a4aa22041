/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the explorer itself: spinning, sleeping, and time, and that lost wake-ups, deadlocks
 * and livelocks are found.
 *
 * `expect` marks a model that must fail with those words; the others must hold.
 */
#include "base/atomic.h"
#include "system/clock.h"
#include "system/futex.h"
#include "system/thread.h"

static uint32_t word, count, turn;
static uint32_t data;

static void reset(void)
{
    word = count = turn = data = 0;
}

static void run_two(void (*first)(void *), void (*second)(void *))
{
    model_thread a = model_start(first, NULL), b = model_start(second, NULL);
    model_join(a);
    model_join(b);
}

/* ---- Spinning ---- */

static void spin_lock(void)
{
    while (blz__swap(&word, 1, ACQUIRE) != 0)
        blz__spin_hint();
}

static void spin_unlock(void)
{
    blz__store(&word, 0, RELEASE);
}

static void count_under_spinlock(void *unused)
{
    (void)unused;
    spin_lock();
    blz__plain_write(&data);
    data++;
    spin_unlock();
}

static void spinlock_excludes(void)
{
    reset();
    model_thread third = model_start(count_under_spinlock, NULL);
    run_two(count_under_spinlock, count_under_spinlock);
    model_join(third);
    model_assert(data == 3);
}

static void count_under_leaky_spinlock(void *unused)
{
    (void)unused;
    spin_lock();
    blz__plain_write(&data);
    data++;
    blz__store(&word, 0, RELAXED);
}

static void spinlock_without_release(void)
{
    reset();
    run_two(count_under_leaky_spinlock, count_under_leaky_spinlock);
}

static void wait_for_turn(void *unused)
{
    (void)unused;
    while (blz__load(&turn, RELAXED) == 0)
        blz__spin_hint();
}

static void give_turn(void *unused)
{
    (void)unused;
    blz__store(&turn, 1, RELAXED);
}

/* The reader may see the old value for a while, but not for ever. */
static void spinning_ends(void)
{
    reset();
    run_two(wait_for_turn, give_turn);
}

static void yield_for_turn(void *unused)
{
    (void)unused;
    while (blz__load(&turn, RELAXED) == 0)
        blz__thread_yield();
}

static void yielding_ends(void)
{
    reset();
    run_two(yield_for_turn, give_turn);
}

static void spinning_for_nothing(void)
{
    reset();
    run_two(wait_for_turn, yield_for_turn);
}

static void count_while_waiting(void *unused)
{
    (void)unused;
    while (blz__load(&turn, RELAXED) == 0) {
        blz__fetch_add(&count, 1, RELAXED);
        blz__spin_hint();
    }
}

/* The two that wait keep each other awake, but the third one gets to run. */
static void spinning_is_fair(void)
{
    reset();
    model_thread first = model_start(count_while_waiting, NULL);
    run_two(count_while_waiting, give_turn);
    model_join(first);
}

static void burn_steps(void *unused)
{
    (void)unused;
    while (blz__load(&turn, RELAXED) == 0)
        blz__fetch_add(&count, 1, RELAXED);
}

static void working_for_ever(void)
{
    reset();
    run_two(burn_steps, burn_steps);
}

/* Gives up after two rounds, although nobody has stored anything. */
static void spin_then_give_up(void *unused)
{
    (void)unused;
    for (int round = 0; round < 2; round++) {
        if (blz__load(&turn, ACQUIRE) != 0)
            return;
        blz__spin_hint();
    }
    count = 1;
}

static void spinning_can_be_given_up(void)
{
    reset();
    run_two(spin_then_give_up, give_turn);
    model_assert(count == 0);
}

/* ---- Futex ---- */

static void mutex_lock(void)
{
    uint32_t free = 0;

    if (blz__cas(&word, &free, 1, ACQUIRE, RELAXED))
        return;
    while (blz__swap(&word, 2, ACQUIRE) != 0)
        blz__futex_wait(&word, 2);
}

static void mutex_unlock(void)
{
    if (blz__swap(&word, 0, RELEASE) == 2)
        blz__futex_wake(&word, 1);
}

static void count_under_mutex(void *unused)
{
    (void)unused;
    mutex_lock();
    blz__plain_write(&data);
    data++;
    mutex_unlock();
}

static void futex_mutex_excludes(void)
{
    reset();
    model_thread third = model_start(count_under_mutex, NULL);
    run_two(count_under_mutex, count_under_mutex);
    model_join(third);
    model_assert(data == 3);
}

static void mutex_lock_that_forgets_the_waiters(void)
{
    uint32_t found = 0;

    while (!blz__cas(&word, &found, 1, ACQUIRE, RELAXED)) {
        uint32_t locked = 1;
        if (blz__cas(&word, &locked, 2, RELAXED, RELAXED) || locked == 2)
            blz__futex_wait(&word, 2);
        found = 0;
    }
}

static void count_under_broken_mutex(void *unused)
{
    (void)unused;
    mutex_lock_that_forgets_the_waiters();
    data++;
    mutex_unlock();
}

/* A woken thread takes the lock as if nobody else waited: the other waiter sleeps for ever. */
static void lost_wakeup(void)
{
    reset();
    model_thread third = model_start(count_under_broken_mutex, NULL);
    run_two(count_under_broken_mutex, count_under_broken_mutex);
    model_join(third);
}

static void sleep_until_set(void *unused)
{
    (void)unused;
    while (blz__load(&word, ACQUIRE) == 0)
        blz__futex_wait(&word, 0);
}

static void set_and_wake(void *unused)
{
    (void)unused;
    blz__store(&word, 1, RELEASE);
    blz__futex_wake(&word, 1);
}

static void set_without_wake(void *unused)
{
    (void)unused;
    blz__store(&word, 1, RELEASE);
}

static void wake_then_set(void *unused)
{
    (void)unused;
    blz__futex_wake(&word, 1);
    blz__store(&word, 1, RELEASE);
}

static void futex_wakes(void)
{
    reset();
    run_two(sleep_until_set, set_and_wake);
}

static void missing_wake(void)
{
    reset();
    run_two(sleep_until_set, set_without_wake);
}

static void wake_before_store(void)
{
    reset();
    run_two(sleep_until_set, wake_then_set);
}

static void sleep_once(void *unused)
{
    (void)unused;
    blz__futex_wait(&word, 0);
    count = blz__load(&word, RELAXED);
}

static void waits_can_return_for_no_reason(void)
{
    reset();
    run_two(sleep_once, set_and_wake);
    model_assert(count == 1);
}

static uint32_t woken;

static void sleep_as_first(void *unused)
{
    (void)unused;
    blz__futex_wait(&word, 0);
    if (woken == 0)
        woken = 1;
}

static void sleep_as_second(void *unused)
{
    (void)unused;
    blz__futex_wait(&word, 0);
    if (woken == 0)
        woken = 2;
}

/* Without a budget for timeouts, a timed wait ends when nobody else can run. */
static void let_all_fall_asleep(void)
{
    blz__futex_wait_until(&turn, 0, blz__clock_ns() + 1);
}

static void wake_one_and_look(void)
{
    reset();
    woken = 0;
    model_thread first = model_start(sleep_as_first, NULL);
    model_thread second = model_start(sleep_as_second, NULL);
    let_all_fall_asleep();
    blz__futex_wake(&word, 1);
    let_all_fall_asleep();
    blz__futex_wake(&word, 1);
    model_join(first);
    model_join(second);
}

static void a_wake_can_reach_the_first(void)
{
    wake_one_and_look();
    model_assert(woken != 1);
}

static void a_wake_can_reach_the_second(void)
{
    wake_one_and_look();
    model_assert(woken != 2);
}

static void lock_both(uint32_t *first, uint32_t *second)
{
    while (blz__swap(first, 1, ACQUIRE) != 0)
        blz__futex_wait(first, 1);
    while (blz__swap(second, 1, ACQUIRE) != 0)
        blz__futex_wait(second, 1);
    blz__store(first, 0, RELEASE);
    blz__futex_wake(first, 1);
    blz__store(second, 0, RELEASE);
    blz__futex_wake(second, 1);
}

static void lock_word_then_count(void *unused)
{
    (void)unused;
    lock_both(&word, &count);
}

static void lock_count_then_word(void *unused)
{
    (void)unused;
    lock_both(&count, &word);
}

static void locks_in_both_orders(void)
{
    reset();
    run_two(lock_word_then_count, lock_count_then_word);
}

static void locks_in_one_order(void)
{
    reset();
    run_two(lock_word_then_count, lock_word_then_count);
}

/* ---- Time ---- */

static void sleep_with_deadline(void *unused)
{
    (void)unused;
    if (!blz__futex_wait_until(&word, 0, blz__clock_ns() + 1000))
        count = 1;
}

static void timed_waits_can_end_early(void)
{
    reset();
    run_two(sleep_with_deadline, set_and_wake);
    model_assert(count == 0);
}

static void timed_waits_can_be_woken(void)
{
    reset();
    run_two(sleep_with_deadline, set_and_wake);
    model_assert(count == 1);
}

static void timed_waits_end(void)
{
    int64_t start = blz__clock_ns();

    reset();
    model_join(model_start(sleep_with_deadline, NULL));
    model_assert(count == 1 && blz__clock_ns() == start + 1000);
}

static void advance_clock(void *unused)
{
    (void)unused;
    model_clock_advance(1000);
    blz__store(&turn, 1, RELAXED);
}

static void the_clock_wakes(void)
{
    reset();
    run_two(sleep_with_deadline, advance_clock);
    model_assert(count == 1);
}

static const struct model models[] = {
    {"spinlock_excludes", spinlock_excludes, {0}},
    {"spinlock_without_release", spinlock_without_release, {.expect = "data race"}},
    {"spinning_ends", spinning_ends, {.preemptions = MODEL_UNLIMITED}},
    {"yielding_ends", yielding_ends, {.preemptions = MODEL_UNLIMITED}},
    {"spinning_is_fair", spinning_is_fair, {0}},
    {"spinning_for_nothing", spinning_for_nothing, {.expect = "livelock: no thread can go on"}},
    {"working_for_ever", working_for_ever, {.expect = "livelock: more than"}},
    {"spinning_can_be_given_up", spinning_can_be_given_up, {.spins = 2, .expect = "count == 0"}},

    {"futex_mutex_excludes", futex_mutex_excludes, {.spurious_wakes = 1}},
    {"lost_wakeup", lost_wakeup, {.expect = "deadlock"}},
    {"futex_wakes", futex_wakes, {.preemptions = MODEL_UNLIMITED, .spurious_wakes = 2}},
    {"missing_wake", missing_wake, {.expect = "deadlock"}},
    {"wake_before_store", wake_before_store, {.expect = "deadlock"}},
    {"waits_can_return_for_no_reason",
     waits_can_return_for_no_reason,
     {.spurious_wakes = 1, .expect = "count == 1"}},
    {"a_wake_can_reach_the_first",
     a_wake_can_reach_the_first,
     {.timeouts = MODEL_NONE, .expect = "woken != 1"}},
    {"a_wake_can_reach_the_second",
     a_wake_can_reach_the_second,
     {.timeouts = MODEL_NONE, .expect = "woken != 2"}},
    {"locks_in_both_orders", locks_in_both_orders, {.expect = "deadlock"}},
    {"locks_in_one_order", locks_in_one_order, {.preemptions = MODEL_UNLIMITED}},

    {"timed_waits_can_end_early", timed_waits_can_end_early, {.expect = "count == 0"}},
    {"timed_waits_can_be_woken", timed_waits_can_be_woken, {.expect = "count == 1"}},
    {"timed_waits_end", timed_waits_end, {.timeouts = MODEL_NONE}},
    {"the_clock_wakes", the_clock_wakes, {.preemptions = MODEL_UNLIMITED}},
};
MODEL_MAIN(models)
