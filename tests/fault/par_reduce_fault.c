/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel folds whose accumulators find no memory. */
#include "par.h"

#include <string.h>

/* ---- an allocator that can be shut ---- */

struct valve {
    blz_allocator real;
    bool is_shut;
    struct event refused;
};

static void *alloc_if_open(size_t size, size_t align, void *ctx)
{
    struct valve *v = ctx;

    if (!__atomic_load_n(&v->is_shut, __ATOMIC_RELAXED))
        return v->real.alloc(size, align, v->real.ctx);
    event_post(&v->refused);
    return NULL;
}

static void free_always(void *ptr, size_t size, size_t align, void *ctx)
{
    struct valve *v = ctx;

    v->real.free(ptr, size, align, v->real.ctx);
}

static void set_shut(struct valve *v, bool is_shut)
{
    __atomic_store_n(&v->is_shut, is_shut, __ATOMIC_RELAXED);
}

static void in_a_pool(blz_par_fn fn)
{
    struct valve v = {.real = *test_memory(), .refused = EVENT_INIT};
    blz_allocator allocator = {.alloc = alloc_if_open, .free = free_always, .ctx = &v};
    blz_pool_options options = {.threads = 2, .allocator = &allocator};
    blz_pool *pool;

    assert_int_equal(blz_pool_new(&pool, &options), 0);
    assert_int_equal(blz_pool_run(pool, fn, &v), 0);
    assert_int_equal(blz_pool_free(pool), 0);
}

/* ---- folds ---- */

struct big {
    uint64_t count;
    char rest[1000];
};

static const struct big zero;

static int add_big(void *acc, void *right, void *arg)
{
    (void)arg;
    ((struct big *)acc)->count += ((struct big *)right)->count;
    return 0;
}

static int count_big(blz_par *par, void *acc, size_t begin, size_t end, void *arg)
{
    (void)par, (void)arg;
    ((struct big *)acc)->count += end - begin;
    return 0;
}

static void run_filler(blz_par *par, blz_par_job *job)
{
    (void)par, (void)job;
}

/*
 * The first element makes forks until a thief has taken others and found no memory. More elements
 * may follow before the thief has said so.
 */
static int count_after_refusal(blz_par *par, void *acc, size_t begin, size_t end, void *arg)
{
    struct valve *v = arg;
    blz_par_job filler;

    check(begin > 0 || end == 1);
    while (begin == 0 && event_count(&v->refused) == 0) {
        blz_par_fork(par, &filler, run_filler);
        if (blz_par_unfork(par, &filler))
            continue;
    }
    return count_big(par, acc, begin, end, arg);
}

static void fold_without_memory(blz_par *par, void *arg)
{
    static const blz_par_reducer starving = {
        sizeof zero, &zero, count_after_refusal, add_big, {0, 0}};
    static const blz_par_reducer counting = {sizeof zero, &zero, count_big, add_big, {0, 0}};
    struct big result;

    set_shut(arg, true);
    check(blz_par_reduce(par, &result, 1000, &starving, arg, NULL) == -ENOMEM);
    check(result.count >= 1 && result.count < 1000); /* what was counted before the end was known */
    set_shut(arg, false);
    check(blz_par_reduce(par, &result, 1000, &counting, arg, NULL) == 0 && result.count == 1000);
}

static void a_fold_whose_part_has_no_accumulator_fails(void **state)
{
    (void)state;
    in_a_pool(fold_without_memory);
}

static void fold_fixed_without_memory(blz_par *par, void *arg)
{
    static const blz_par_reducer counting = {sizeof zero, &zero, count_big, add_big, {0, 0}};
    struct big result;

    set_shut(arg, true);
    check(blz_par_deterministic_reduce(par, &result, 1000, &counting, arg, NULL) == -ENOMEM);
    check(result.count == 0);
    set_shut(arg, false);
    check(blz_par_deterministic_reduce(par, &result, 1000, &counting, arg, NULL) == 0);
    check(result.count == 1000);
}

static void a_deterministic_fold_without_a_stack_fails(void **state)
{
    (void)state;
    in_a_pool(fold_fixed_without_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_fold_whose_part_has_no_accumulator_fails),
        TEST(a_deterministic_fold_without_a_stack_fails),
    };
    return RUN_TESTS(tests);
}
