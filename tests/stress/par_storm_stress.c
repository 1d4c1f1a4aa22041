/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that the pool can do, at random and at the same time: a tree is walked, and each node
 * walks its two children in a way of its own: by a fork, in a scope, in somebody else's scope, in
 * another pool, as a guest there, in a region, in a loop. Several threads walk trees in the same
 * three pools, whose options are random, too, and which are made anew all the time. Each leaf is
 * come to once; a wake-up or a task that is lost hangs.
 *
 * Threads that wait by blocking must not wait in a circle. So a pool calls only those after it; or
 * no thread blocks, and then each may call each. A thread that is in several pools may serve one of
 * them while another one waits for it, which is a circle, too: there are such threads only if all
 * threads wait by stealing. A thread of a walker may be a guest of one pool in any case.
 */
#include "par.h"

#include <sched.h>
#include <stdlib.h>

enum { POOLS = 3, WALKERS = 4, DEPTH = 6, NODES = (2 << DEPTH) - 1 };

struct tree;

struct node {
    blz_par_job job; /* first: when it is forked */
    struct tree *tree;
    blz_par_scope *scope; /* that it is in, or NULL */
    uint64_t seed;
    unsigned pool; /* where it is walked */
    uint32_t visits;
};

struct tree {
    blz_pool **pools;
    bool in_circles; /* pools may call those before them, too */
    bool in_several; /* threads may be in several pools, and all wait by stealing */
    struct node nodes[NODES];
};

static void walk(blz_par *par, struct node *n);

static void walk_job(blz_par *par, blz_par_job *job)
{
    walk(par, blz_container_of(job, struct node, job));
}

static int walk_task(blz_par *par, void *arg)
{
    walk(par, arg);
    return 0;
}

static void walk_fn(blz_par *par, void *arg)
{
    walk(par, arg);
}

/* ---- children ---- */

static struct node *child(struct node *n, int which)
{
    return &n->tree->nodes[2 * (n - n->tree->nodes) + 1 + which];
}

/* Where and in which scope the children are. */
static void place_children(struct node *n, unsigned pool, blz_par_scope *scope)
{
    for (int i = 0; i < 2; i++) {
        struct node *c = child(n, i);
        c->tree = n->tree;
        c->scope = scope;
        c->pool = pool;
        c->seed = mix(n->seed + (uint64_t)i + 1);
    }
}

static void walk_both(blz_par *par, void *arg)
{
    walk(par, child(arg, 0));
    walk(par, child(arg, 1));
}

/* ---- ways to walk them ---- */

/* So that somebody may come and take something. */
static void dawdle(uint64_t seed)
{
    for (uint64_t i = seed % 4; i > 0; i--)
        sched_yield();
}

static void by_fork(blz_par *par, struct node *n)
{
    struct node *left = child(n, 0), *right = child(n, 1);
    blz_par_wait_mode way = (blz_par_wait_mode)(n->seed / 64 % (BLZ_PAR_WAIT_BLOCK + 1));

    if (n->tree->in_several)
        way = BLZ_PAR_WAIT_STEAL;
    blz_par_fork(par, &right->job, walk_job);
    dawdle(n->seed / 16);
    walk(par, left);
    if (blz_par_unfork_with(par, &right->job, way))
        walk(par, right);
}

static void by_scope(blz_par *par, struct node *n)
{
    blz_par_scope scope;

    /* what they spawn goes there, or still into the one around it */
    place_children(n, n->pool, n->scope && n->seed / 64 % 2 ? n->scope : &scope);
    blz_par_scope_begin(par, &scope);
    check(blz_par_spawn(par, &scope, walk_task, child(n, 0)) == 0);
    dawdle(n->seed / 16);
    check(blz_par_spawn_fifo(par, &scope, walk_task, child(n, 1)) == 0);
    check(blz_par_scope_end(par, &scope) == 0);
}

static void by_scope_around(blz_par *par, struct node *n)
{
    if (!n->scope) {
        by_fork(par, n);
        return;
    }
    check(blz_par_spawn(par, n->scope, walk_task, child(n, 1)) == 0);
    walk(par, child(n, 0));
}

static unsigned other_pool(const struct node *n)
{
    unsigned most = POOLS - 1 - n->pool, step = (unsigned)(n->seed / 64);

    if (n->tree->in_circles)
        return (n->pool + 1 + step % (POOLS - 1)) % POOLS;
    return n->pool + (most ? 1 + step % most : 0);
}

static void by_other_pool(blz_par *par, struct node *n)
{
    unsigned pool = other_pool(n);

    (void)par;
    place_children(n, pool, NULL);
    check(blz_pool_run(n->tree->pools[pool], walk_both, n) == 0);
}

/* If there is a place for one. */
static void by_guest(blz_par *par, struct node *n)
{
    unsigned pool = other_pool(n);
    blz_par *there = n->tree->in_several ? blz_pool_enter(n->tree->pools[pool]) : NULL;

    if (there)
        place_children(n, pool, NULL);
    walk_both(there ? there : par, n);
    blz_pool_leave(there);
}

/* A thread that waits for another pool in it blocks, and one that waits for a job helps. */
static void by_region(blz_par *par, struct node *n)
{
    if (n->tree->in_circles || n->tree->in_several)
        walk_both(par, n);
    else
        blz_par_isolated(par, walk_both, n);
}

static void by_yield(blz_par *par, struct node *n)
{
    blz_par_yield(par);
    walk_both(par, n);
}

static int walk_some(blz_par *par, size_t begin, size_t end, void *arg)
{
    for (size_t i = begin; i < end; i++)
        walk(par, child(arg, (int)i));
    return 0;
}

static void by_loop(blz_par *par, struct node *n)
{
    blz_par_options options = {.grain = 1};

    check(blz_par_for(par, 2, walk_some, n, &options) == 0);
}

/* ---- cancellation ---- */

struct ended {
    blz_par_cancel cancel;
    size_t at;
    uint32_t inside, done;
};

static int cancel_in_passing(blz_par *par, size_t begin, size_t end, void *arg)
{
    struct ended *e = arg;

    (void)par;
    __atomic_fetch_add(&e->inside, 1, __ATOMIC_RELAXED);
    if (begin <= e->at && e->at < end)
        blz_par_cancel_set(&e->cancel, -EINTR);
    __atomic_fetch_add(&e->done, (uint32_t)(end - begin), __ATOMIC_RELAXED);
    __atomic_fetch_sub(&e->inside, 1, __ATOMIC_RELAXED);
    return 0;
}

static int fail_late(blz_par *par, void *arg)
{
    struct ended *e = arg;

    (void)par;
    return __atomic_add_fetch(&e->done, 1, __ATOMIC_RELAXED) > e->at ? -EDOM : 0;
}

/* First a loop and a scope that do not come to their end, then the children. */
static void after_failures(blz_par *par, struct node *n)
{
    enum { ELEMENTS = 32, TASKS = 8 };
    struct ended loop = {.at = n->seed / 64 % ELEMENTS}, tasks = {.at = n->seed / 16 % TASKS};
    blz_par_options options = {.grain = 1, .cancel = &loop.cancel};
    blz_par_scope scope;
    int rc;

    rc = blz_par_for(par, ELEMENTS, cancel_in_passing, &loop, &options);
    check(rc == -EINTR || (rc == 0 && loop.done == ELEMENTS)); /* it may have come too late */
    check(loop.inside == 0 && loop.done >= 1 && loop.done <= ELEMENTS);
    rc = 0;
    blz_par_scope_begin(par, &scope);
    for (int i = 0; i < TASKS && rc == 0; i++)
        rc = blz_par_spawn(par, &scope, fail_late, &tasks);
    check(blz_par_scope_end(par, &scope) == -EDOM && (rc == 0 || rc == -EDOM));
    check(tasks.done > tasks.at && tasks.done <= TASKS);
    walk_both(par, n);
}

/* ---- a node ---- */

static void walk(blz_par *par, struct node *n)
{
    static void (*const ways[])(blz_par *,
                                struct node *) = {by_fork,       by_fork,         by_scope,
                                                  by_scope,      by_scope_around, by_scope_around,
                                                  by_other_pool, by_guest,        by_region,
                                                  by_yield,      by_loop,         after_failures};
    enum { NR_WAYS = sizeof ways / sizeof ways[0] };

    check(blz_par_pool(par) == n->tree->pools[n->pool]);
    __atomic_fetch_add(&n->visits, 1, __ATOMIC_RELAXED);
    if (n - n->tree->nodes >= NODES / 2)
        return;
    place_children(n, n->pool, n->scope);
    ways[n->seed % NR_WAYS](par, n);
}

/* ---- threads ---- */

struct walker {
    blz_pool **pools;
    bool in_circles, in_several;
    uint64_t seed;
    int64_t rounds;
};

static void do_nothing(blz_par *par, void *arg)
{
    (void)par, (void)arg;
}

/* A few that are over at once, in between. */
static void inject_little(const struct walker *w, uint64_t seed)
{
    for (uint64_t i = seed % 8; i > 0; i--)
        check(blz_pool_run(w->pools[i % POOLS], do_nothing, NULL) == 0);
}

/* Walks one tree in the first pool, having entered none of the pools, one, or two of them. */
static void walk_tree(const struct walker *w, struct tree *t, uint64_t seed)
{
    bool may_enter = w->in_several || !w->in_circles;
    blz_par *first = may_enter && seed % 3 == 0 ? blz_pool_enter(w->pools[0]) : NULL;
    bool may_enter_last = first ? w->in_several : may_enter;
    blz_par *last = may_enter_last && seed % 5 == 0 ? blz_pool_enter(w->pools[POOLS - 1]) : NULL;

    *t = (struct tree){.pools = w->pools, .in_circles = w->in_circles, .in_several = w->in_several};
    t->nodes[0] = (struct node){.tree = t, .seed = mix(seed)};
    check(blz_pool_run(w->pools[0], walk_fn, &t->nodes[0]) == 0);
    for (int i = 0; i < NODES; i++)
        check(t->nodes[i].visits == 1);
    blz_pool_leave(first);
    blz_pool_leave(last);
}

static void *walk_often(void *arg)
{
    const struct walker *w = arg;
    struct tree *t = malloc(sizeof *t);

    check(t);
    for (int64_t i = 0; i < w->rounds; i++) {
        uint64_t seed = mix(w->seed + (uint64_t)i);
        walk_tree(w, t, seed);
        inject_little(w, seed / 64);
    }
    free(t);
    return NULL;
}

static blz_pool *random_pool(uint64_t seed, bool in_circles, bool in_several)
{
    int ways = in_circles ? BLZ_PAR_WAIT_BLOCK : BLZ_PAR_WAIT_BLOCK + 1;
    blz_par_wait_mode way = (blz_par_wait_mode)(seed / 32 % (unsigned)ways);

    return new_pool_with(&(blz_pool_options){
        .threads = 1 + (unsigned)(seed % 3),
        .ring_size = seed / 4 % 2 ? 2 : 0,
        .guests = 1 + (unsigned)(seed / 8 % 3),
        .waiting = in_several ? BLZ_PAR_WAIT_STEAL : way,
        .spin = (blz_pool_spin)(seed / 128 % (BLZ_POOL_SPIN_LONG + 1)),
    });
}

static void storm(uint64_t seed)
{
    struct walker walkers[WALKERS];
    pthread_t threads[WALKERS];
    blz_pool *pools[POOLS];
    bool in_circles = mix(seed) % 3 == 0, in_several = mix(seed) / 4 % 2;

    for (unsigned i = 0; i < POOLS; i++)
        pools[i] = random_pool(mix(seed + i), in_circles, in_several);
    for (unsigned i = 0; i < WALKERS; i++) {
        walkers[i] = (struct walker){.pools = pools,
                                     .in_circles = in_circles,
                                     .in_several = in_several,
                                     .seed = mix(seed + i),
                                     .rounds = 4};
        threads[i] = start_thread(walk_often, &walkers[i]);
    }
    for (unsigned i = 0; i < WALKERS; i++)
        join_thread(threads[i]);
    for (unsigned i = 0; i < POOLS; i++)
        free_pool(pools[i]);
}

static void each_leaf_is_come_to_once(void **state)
{
    int64_t rounds = scaled(25);

    (void)state;
    for (int64_t i = 0; i < rounds; i++)
        storm((uint64_t)i * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_leaf_is_come_to_once),
    };
    return RUN_TESTS(tests);
}
