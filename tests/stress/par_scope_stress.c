/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scopes under load: tasks that spawn, fork and open scopes of their own, in more threads than
 * there are cores, from several computations at once. Each task must run once; a task that is lost,
 * or a wake-up, hangs.
 */
#include "harness.h"

#include <stdlib.h>

struct work {
    blz_par_scope *scope;
    uint64_t *done;
    uint64_t seed;
    int depth;
};

enum { MAX_DEPTH = 6, WIDTH = 4 };

static int work_on(blz_par *par, void *arg);

/* How many tasks it makes, itself included: known beforehand, by the same numbers. */
static uint64_t size_of(uint64_t seed, int depth)
{
    uint64_t state = seed, sum = 1;
    uint32_t children = depth ? random_below(&state, WIDTH + 1) : 0;

    for (uint32_t i = 0; i < children; i++)
        sum += size_of(seed * 31 + i + 1, depth - 1);
    return sum;
}

static void spawn_child(blz_par *par, struct work *w, struct work *child)
{
    uint64_t state = child->seed * 7;
    bool fifo = random_below(&state, 2);

    check((fifo ? blz_par_spawn_fifo : blz_par_spawn)(par, w->scope, work_on, child) == 0);
}

struct pair {
    struct work *work, *child;
};

static void spawn_left(blz_par *par, void *arg)
{
    struct pair *pair = arg;

    spawn_child(par, pair->work, &pair->child[0]);
}

static void spawn_right(blz_par *par, void *arg)
{
    struct pair *pair = arg;

    spawn_child(par, pair->work, &pair->child[1]);
}

static int work_on(blz_par *par, void *arg)
{
    struct work *w = arg, children[WIDTH], inner;
    uint64_t state = w->seed;
    uint32_t nr = w->depth ? random_below(&state, WIDTH + 1) : 0, i = 0;
    blz_par_scope scope;

    __atomic_fetch_add(w->done, 1, __ATOMIC_RELAXED);
    if (nr == 0)
        return 0;
    inner = *w;
    inner.scope = &scope;
    blz_par_scope_begin(par, &scope);
    for (uint32_t k = 0; k < nr; k++)
        children[k] = (struct work){&scope, w->done, w->seed * 31 + k + 1, w->depth - 1};
    if (nr >= 2 && w->seed % 2) {
        struct pair pair = {&inner, children};
        blz_par_join(par, spawn_left, &pair, spawn_right, &pair);
        i = 2;
    }
    for (; i < nr; i++)
        spawn_child(par, &inner, &children[i]);
    check(blz_par_scope_end(par, &scope) == 0);
    return 0;
}

static void begin_work(blz_par *par, void *arg)
{
    check(work_on(par, arg) == 0);
}

/* ---- the same tree in one scope, from memory that outlives it ---- */

struct flat {
    blz_par_scope *scope;
    uint64_t *done;
    struct flat *all;
    size_t index, count;
};

static int visit(blz_par *par, void *arg)
{
    struct flat *f = arg;

    __atomic_fetch_add(f->done, 1, __ATOMIC_RELAXED);
    for (size_t i = 3 * f->index + 1; i <= 3 * f->index + 3 && i < f->count; i++)
        check(blz_par_spawn(par, f->scope, visit, &f->all[i]) == 0);
    return 0;
}

static void visit_all(blz_par *par, void *arg)
{
    enum { COUNT = 3000 };
    struct flat *all = calloc(COUNT, sizeof *all);
    blz_par_scope scope;
    uint64_t done = 0;

    (void)arg;
    check(all);
    for (size_t i = 0; i < COUNT; i++)
        all[i] = (struct flat){&scope, &done, all, i, COUNT};
    blz_par_scope_begin(par, &scope);
    check(blz_par_spawn(par, &scope, visit, &all[0]) == 0);
    check(blz_par_scope_end(par, &scope) == 0);
    check(done == COUNT);
    free(all);
}

/* ---- threads ---- */

static void *run_often(void *arg)
{
    int64_t rounds = scaled(40);

    for (int64_t i = 0; i < rounds; i++) {
        uint64_t done = 0;
        struct work work = {NULL, &done, (uint64_t)i + 5, MAX_DEPTH};
        blz_par *par = i % 3 == 0 ? blz_pool_enter(arg) : NULL;

        check(blz_pool_run(arg, begin_work, &work) == 0);
        check(done == size_of(work.seed, MAX_DEPTH));
        check(blz_pool_run(arg, visit_all, NULL) == 0);
        blz_pool_leave(par);
    }
    return NULL;
}

static void each_task_runs_once(void **state)
{
    (void)state;
    for (int waiting = BLZ_PAR_WAIT_LEAPFROG; waiting <= BLZ_PAR_WAIT_BLOCK; waiting++)
        for (unsigned threads = 1; threads <= 8; threads *= 2) {
            pthread_t others[3];
            blz_pool *pool;
            assert_int_equal(blz_pool_new(&pool,
                                          &(blz_pool_options){.threads = threads,
                                                              .waiting = (blz_par_wait_mode)waiting,
                                                              .guests = 2,
                                                              .allocator = test_memory()}),
                             0);
            for (int i = 0; i < 3; i++)
                others[i] = start_thread(run_often, pool);
            for (int i = 0; i < 3; i++)
                join_thread(others[i]);
            assert_int_equal(blz_pool_free(pool), 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_task_runs_once),
    };
    return RUN_TESTS(tests);
}
