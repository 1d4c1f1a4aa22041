/* SPDX-License-Identifier: Apache-2.0 */
/* The small lock: one thread at a time, which sees what the last one did; none sleeps for ever. */
#include "base/lock.h"

static blz__lock lock;
static uint32_t inside, count;

static void begin(void)
{
    lock.word = inside = count = 0;
}

/* The atomic is a point at which another thread could come in. */
static void count_inside(void)
{
    model_assert(blz__fetch_add(&inside, 1u, RELAXED) == 0);
    blz__plain_write(&count);
    count++;
    blz__fetch_sub(&inside, 1u, RELAXED);
}

static void lock_and_count(void *unused)
{
    (void)unused;
    blz__lock_acquire(&lock);
    count_inside();
    blz__lock_release(&lock);
}

static void lock_twice(void *unused)
{
    lock_and_count(unused);
    lock_and_count(unused);
}

static void try_and_count(void *counted)
{
    *(uint32_t *)counted = 0;
    if (!blz__lock_try(&lock))
        return;
    count_inside();
    blz__lock_release(&lock);
    *(uint32_t *)counted = 1;
}

static void end(uint32_t expected)
{
    blz__lock_acquire(&lock);
    model_assert(count == expected);
    blz__lock_release(&lock);
    model_assert(blz__load(&lock.word, RELAXED) == 0);
}

static void three_threads_exclude_each_other(void)
{
    begin();
    model_thread a = model_start(lock_and_count, NULL), b = model_start(lock_and_count, NULL);
    lock_and_count(NULL);
    model_join(a);
    model_join(b);
    end(3);
}

/* Who comes back for the lock does not leave a sleeper behind. */
static void nobody_sleeps_for_ever(void)
{
    begin();
    model_thread a = model_start(lock_twice, NULL), b = model_start(lock_and_count, NULL);
    lock_twice(NULL);
    model_join(a);
    model_join(b);
    end(5);
}

static void who_only_tries_never_waits(void)
{
    uint32_t counted;

    begin();
    model_thread a = model_start(lock_and_count, NULL), b = model_start(try_and_count, &counted);
    lock_and_count(NULL);
    model_join(a);
    model_join(b);
    end(2 + counted);
}

static const struct model models[] = {
    {"three_threads_exclude_each_other",
     three_threads_exclude_each_other,
     {.preemptions = 4, .spurious_wakes = 1}},
    {"nobody_sleeps_for_ever", nobody_sleeps_for_ever, {.preemptions = 3, .spurious_wakes = 1}},
    {"who_only_tries_never_waits", who_only_tries_never_waits, {.preemptions = 4}},
};

MODEL_MAIN(models)
