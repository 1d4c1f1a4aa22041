/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of the walk over all tasks in steps (src/observe/tasks.c, and the cursors of
 * src/task/heap.c), by which the console sees them: between two steps tasks end, their memory goes,
 * and others come. Each step here shows one task. One that is there all the time is seen once, none
 * is seen twice, none notices, and no memory is read after it is gone.
 */
#include "observe/observe.h"
#include "support/small_rt.h"
#include "support/table.h"

#include <blitz/async.h>

#include <string.h>

enum { MAX_SEEN = 8 };

static blz_rt *rt;

/* ghosts */
static unsigned ended;
static struct observed_task seen[MAX_SEEN];
static unsigned nr_seen;

/* ---- tasks ---- */

/* Waits to be cancelled. */
struct sleeper {
    BLZ_FRAME;
    blz_future never;
    int64_t rc;
};

BLZ_ASYNC(sleeper)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_pending(&self->never));
    model_assert(self->rc == -ECANCELED);
    ended++;
    BLZ_END(self->rc);
}

/* Is gone after its first poll. */
struct visitor {
    BLZ_FRAME;
};

BLZ_ASYNC(visitor)
{
    BLZ_BEGIN;
    ended++;
    BLZ_END(0);
}

static blz_handle new_sleeper(const char *name)
{
    blz_handle handle;
    blz_spawn_args args = {.handle = &handle, .name = name};

    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_WITH(&args, sleeper)) == 0);
    small_rt_poll_all(&rt->workers[0]);
    return handle;
}

static void end(blz_handle *handle)
{
    blz_handle_cancel(handle);
    blz_handle_detach(handle);
    small_rt_poll_all(&rt->workers[0]);
}

/* ---- walkers ---- */

static bool step(observe_walk *walk)
{
    bool more;
    size_t count = blz__observe_step(walk, &seen[nr_seen], 1, &more);

    nr_seen += (unsigned)count;
    model_assert(nr_seen < MAX_SEEN);
    return more;
}

static void walk_all(void *unused)
{
    observe_walk *walk = model_alloc(sizeof *walk, _Alignof(observe_walk));

    (void)unused;
    blz__observe_begin(walk, rt);
    while (step(walk))
        ;
    blz__observe_end(walk);
    model_free(walk);
}

/* Loses interest after its first step. */
static void walk_a_little(void *unused)
{
    observe_walk *walk = model_alloc(sizeof *walk, _Alignof(observe_walk));

    (void)unused;
    blz__observe_begin(walk, rt);
    step(walk);
    blz__observe_end(walk);
    model_free(walk);
}

static unsigned times_seen(const char *name)
{
    unsigned count = 0;

    for (unsigned i = 0; i < nr_seen; i++)
        count += strcmp(seen[i].name, name) == 0;
    return count;
}

static void none_was_seen_twice(void)
{
    for (unsigned i = 0; i < nr_seen; i++)
        for (unsigned j = 0; j < i; j++)
            model_assert(seen[i].id != seen[j].id);
}

/* ---- models ---- */

static void set_up(unsigned workers)
{
    rt = small_rt_new(workers, NULL);
    small_rt_be(&rt->workers[0]);
    ended = nr_seen = 0;
}

static void tear_down(void)
{
    blz__rt_cancel_idle(rt);
    small_rt_poll_all(&rt->workers[0]);
    small_rt_free(rt);
}

/* The chunks are in the order of the last one first: the walk waits at the one that goes. */
static void a_task_that_stays_is_seen_once_while_others_go(void)
{
    set_up(1);
    blz_handle stays = new_sleeper("stays"), goes = new_sleeper("goes"),
               first = new_sleeper("first");
    model_thread walker = model_start_named(walk_all, NULL, "walker");
    end(&goes);
    model_join(walker);
    none_was_seen_twice();
    model_assert(times_seen("stays") == 1 && times_seen("first") == 1 && times_seen("goes") <= 1);
    end(&first);
    end(&stays);
    model_assert(ended == 3);
    tear_down();
}

static void a_task_that_stays_is_seen_once_while_others_come(void)
{
    set_up(1);
    blz_handle stays = new_sleeper("stays");
    model_thread walker = model_start_named(walk_all, NULL, "walker");
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN(visitor)) == 0);
    small_rt_poll_all(&rt->workers[0]);
    model_join(walker);
    none_was_seen_twice();
    model_assert(times_seen("stays") == 1 && times_seen("visitor") <= 1);
    end(&stays);
    model_assert(ended == 2);
    tear_down();
}

/* The last task that there is, at which the walk waits. */
static void the_walk_ends_where_all_have_gone(void)
{
    set_up(1);
    blz_handle last = new_sleeper("last"), first = new_sleeper("first");
    model_thread walker = model_start_named(walk_all, NULL, "walker");
    end(&last);
    model_join(walker);
    model_assert(times_seen("first") == 1 && times_seen("last") <= 1);
    end(&first);
    tear_down();
}

static void a_walk_that_is_given_up_leaves_nothing_behind(void)
{
    set_up(1);
    blz_handle second = new_sleeper("second"), first = new_sleeper("first");
    model_thread walker = model_start_named(walk_a_little, NULL, "walker");
    end(&second);
    model_join(walker);
    model_assert(nr_seen == 1 && times_seen("first") == 1);
    end(&first);
    tear_down();
}

/* Woken, or cancelled, while the walk has it. */
static void a_task_that_is_cancelled_while_it_is_seen_ends(void)
{
    set_up(1);
    blz_handle one = new_sleeper("one");
    model_thread walker = model_start_named(walk_all, NULL, "walker");
    blz_handle_cancel(&one);
    model_assert(small_rt_join(&rt->workers[0], &one) == -ECANCELED);
    model_join(walker);
    model_assert(ended == 1 && nr_seen <= 1);
    if (nr_seen == 1 && seen[0].state == OBSERVE_WAITING)
        model_assert(seen[0].nr_frames == 2 && strcmp(seen[0].frames[1].name, "pending") == 0);
    tear_down();
}

static void stop(void *unused)
{
    (void)unused;
    model_assert(blz_rt_shutdown(rt, BLZ_NEVER) == 0);
}

/* A whole runtime: if the shutdown passed by the task that the walk had claimed, all sleep. */
static void a_task_that_is_seen_during_a_shutdown_is_cancelled(void)
{
    blz_options options = {.workers = 1,
                           .watchdog_ns = BLZ_NEVER,
                           .seed = 1,
                           .shutdown_ns = BLZ_NEVER};
    blz_handle later;

    model_assert(blz_rt_new(&rt, &options) == 0);
    ended = nr_seen = 0;
    model_assert(BLZ_SPAWN_ON(rt, NULL, sleeper) == 0);
    model_assert(BLZ_SPAWN_ON(rt, &later, visitor) == 0);
    model_assert(blz_handle_wait(&later) == 0); /* so the first one waits */
    model_thread stopper = model_start_named(stop, NULL, "stopper");
    walk_all(NULL);
    model_join(stopper);
    model_assert(ended == 2 && times_seen("sleeper") <= 1);
    model_assert(blz_rt_free(rt) == 0);
}

static const struct model models[] = {
    MODEL(a_task_that_stays_is_seen_once_while_others_go, .stale_reads = MODEL_NONE,
          .reduce = true),
    MODEL(a_task_that_stays_is_seen_once_while_others_come, .stale_reads = MODEL_NONE,
          .reduce = true),
    MODEL(the_walk_ends_where_all_have_gone, .stale_reads = MODEL_NONE, .reduce = true),
    MODEL(a_walk_that_is_given_up_leaves_nothing_behind, .stale_reads = MODEL_NONE, .reduce = true),
    MODEL(a_task_that_is_cancelled_while_it_is_seen_ends, .stale_reads = 1, .reduce = true),
    MODEL(a_task_that_is_seen_during_a_shutdown_is_cancelled, .preemptions = 1,
          .stale_reads = MODEL_NONE, .reduce = true),
};

MODEL_MAIN(models)
