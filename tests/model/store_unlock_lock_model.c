/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock that is released by a store: one thread at a time, which sees what the last one did;
 * none sleeps for ever. With asymmetric fences, and without.
 */
#include "base/store_unlock_lock.h"

#include "support/table.h"

static blz__store_unlock_lock lock;
static uint32_t inside, count;
static bool asymmetric;

static void lock_and_count(void *unused)
{
    (void)unused;
    blz__store_unlock_lock_acquire(&lock, asymmetric);
    model_assert(blz__fetch_add(&inside, 1u, RELAXED) == 0);
    blz__plain_write(&count);
    count++;
    blz__fetch_sub(&inside, 1u, RELAXED);
    blz__store_unlock_lock_release(&lock, asymmetric);
}

static void begin(bool fences)
{
    lock = (blz__store_unlock_lock){0, 0};
    inside = count = 0;
    asymmetric = fences;
}

static void end(uint32_t expected)
{
    blz__plain_read(&count);
    model_assert(count == expected);
    model_assert(blz__load(&lock.word, RELAXED) == 0);
    model_assert(blz__load(&lock.sleepers, RELAXED) == 0);
}

static void two_threads(bool fences)
{
    begin(fences);
    model_thread a = model_start(lock_and_count, NULL);
    lock_and_count(NULL);
    lock_and_count(NULL);
    model_join(a);
    end(3);
}

static void who_sleeps_is_woken(void)
{
    two_threads(true);
}

static void who_sleeps_is_woken_without_heavy_fences(void)
{
    two_threads(false);
}

static void three_threads_exclude_each_other(void)
{
    begin(true);
    model_thread a = model_start(lock_and_count, NULL), b = model_start(lock_and_count, NULL);
    lock_and_count(NULL);
    model_join(a);
    model_join(b);
    end(3);
}

static const struct model models[] = {
    MODEL(who_sleeps_is_woken, .preemptions = 4, .reduce = true),
    MODEL(who_sleeps_is_woken_without_heavy_fences, .preemptions = 4, .reduce = true),
    MODEL(three_threads_exclude_each_other, .preemptions = 3, .stale_reads = 2, .reduce = true),
};

MODEL_MAIN(models)
