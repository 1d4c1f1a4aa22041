/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of the task dump (src/observe/dump.c): it reads the frames of waiting tasks, which it
 * claims for that, while workers poll, wake, end and cancel them. The tasks never notice, no frame
 * is read while it is polled, and no memory after it is gone.
 */
#include "support/small_rt.h"
#include "support/table.h"

#include <blitz/async.h>

#include <string.h>

static blz_rt *rt;
static blz_handle handle;
static uint32_t fired;

/* ghosts */
static unsigned ended, lines;
static const char *names[3]; /* one of them is in each line */

/* ---- tasks ---- */

static blz_waker waker; /* for whoever fires */

static blz_poll leaf_poll(blz_future *future, blz_cx *cx)
{
    if (blz__load(&fired, ACQUIRE)) /* pairs with fire */
        return blz_future_done(future, 0);
    if (!waker.ops)
        waker = blz_cx_waker(cx);
    return BLZ_PENDING;
}

static blz_future *leaf(blz_future *op)
{
    static const blz_future_ops ops = {.name = "leaf", .poll = leaf_poll};

    *op = (blz_future){.ops = &ops};
    return op;
}

struct waits {
    BLZ_FRAME;
    blz_future op;
    int64_t rc;
};

BLZ_ASYNC(waits)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, leaf(&self->op));
    ended++;
    BLZ_END(self->rc);
}

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

struct renames {
    BLZ_FRAME;
};

BLZ_ASYNC(renames)
{
    BLZ_BEGIN;
    model_assert(blz_task_set_name("new") == 0);
    ended++;
    BLZ_END(0);
}

/* Two tasks, one after the other, in memory that comes and goes. */
struct spawns {
    BLZ_FRAME;
    int rc;
};

BLZ_ASYNC(spawns)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN(sleeper);
    model_assert(self->rc == 0);
    ended++;
    BLZ_END(0);
}

/* ---- threads ---- */

static bool has_name(const char *line)
{
    for (int i = 0; i < 3; i++)
        if (names[i] && strstr(line, names[i]))
            return true;
    return false;
}

static void write_line(const char *line, void *arg)
{
    model_assert(arg == &lines);
    model_assert(has_name(line));
    if (strstr(line, " waiting"))
        model_assert(strstr(line, " at dump_model.c:") && strstr(line, " > "));
    lines++;
}

static void dumper(void *unused)
{
    (void)unused;
    model_assert(blz_task_dump(rt, write_line, &lines) == 0);
}

static void fire(void *unused)
{
    (void)unused;
    blz__store(&fired, 1u, RELEASE); /* pairs with leaf_poll */
    blz_waker_wake(&waker);
}

static void canceller(void *unused)
{
    (void)unused;
    blz_handle_cancel(&handle);
}

/* ---- models ---- */

static void set_up(const char *name, const char *other_name)
{
    rt = small_rt_new(1, NULL);
    small_rt_be(&rt->workers[0]);
    ended = lines = fired = 0;
    waker = (blz_waker){NULL, NULL};
    names[0] = name;
    names[1] = other_name;
    names[2] = NULL;
}

static void tear_down(void)
{
    small_rt_poll_all(&rt->workers[0]);
    small_rt_free(rt);
}

static void a_task_that_is_woken_while_it_is_dumped_runs(void)
{
    set_up("\"waits\"", NULL);
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, waits)) == 0);
    small_rt_poll_all(&rt->workers[0]);
    model_thread dump = model_start(dumper, NULL), firing = model_start(fire, NULL);
    model_assert(small_rt_join(&rt->workers[0], &handle) == 0);
    model_join(dump);
    model_join(firing);
    model_assert(ended == 1 && lines <= 1);
    tear_down();
}

static void a_task_that_is_cancelled_while_it_is_dumped_ends(void)
{
    set_up("\"sleeper\"", NULL);
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, sleeper)) == 0);
    small_rt_poll_all(&rt->workers[0]);
    model_thread dump = model_start(dumper, NULL), cancel = model_start(canceller, NULL);
    model_assert(small_rt_join(&rt->workers[0], &(blz_handle){blz_task_ref(handle.task), 0}) ==
                 -ECANCELED);
    model_join(dump);
    model_join(cancel);
    model_assert(ended == 1 && lines <= 1);
    blz_handle_detach(&handle);
    tear_down();
}

/* From its first poll to the end of its memory. */
static void a_task_that_ends_while_it_is_dumped_is_freed_once(void)
{
    set_up("\"waits\"", NULL);
    fired = 1;
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN(waits)) == 0);
    model_thread dump = model_start(dumper, NULL);
    small_rt_poll_all(&rt->workers[0]);
    model_join(dump);
    model_assert(ended == 1 && lines <= 1);
    tear_down();
}

static void tasks_that_come_and_go_are_dumped_as_they_are(void)
{
    set_up("\"spawns\"", "\"sleeper\"");
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN(spawns)) == 0);
    model_thread dump = model_start(dumper, NULL);
    small_rt_poll_all(&rt->workers[0]);
    blz__rt_cancel_idle(rt);
    small_rt_poll_all(&rt->workers[0]);
    model_join(dump);
    tear_down();
    model_assert(ended == 2 && lines <= 2);
}

static void a_name_that_changes_is_read_whole(void)
{
    set_up("\"old\"", "\"new\"");
    names[2] = "\"renames\""; /* has ended, and its name is gone */
    model_assert(SMALL_RT_ON(&rt->workers[0],
                             BLZ_SPAWN_WITH((&(blz_spawn_args){.name = "old"}), renames)) == 0);
    model_thread dump = model_start(dumper, NULL);
    small_rt_poll_all(&rt->workers[0]);
    model_join(dump);
    model_assert(ended == 1 && lines <= 1);
    tear_down();
}

/* A whole runtime: if the shutdown passed by the task that the dump had claimed, all sleep. */
static void a_task_that_is_dumped_during_a_shutdown_is_cancelled(void)
{
    blz_options options = {.workers = 1,
                           .watchdog_ns = BLZ_NEVER,
                           .seed = 1,
                           .shutdown_ns = BLZ_NEVER};

    model_assert(blz_rt_new(&rt, &options) == 0);
    ended = lines = 0;
    names[0] = "\"sleeper\"";
    model_assert(BLZ_SPAWN_ON(rt, NULL, sleeper) == 0);
    model_thread dump = model_start(dumper, NULL);
    model_assert(blz_rt_shutdown(rt, BLZ_NEVER) == 0);
    model_join(dump);
    model_assert(ended == 1 && lines <= 1);
    model_assert(blz_rt_free(rt) == 0);
}

static const struct model models[] = {
    MODEL(a_task_that_is_woken_while_it_is_dumped_runs, .stale_reads = 1, .reduce = true),
    MODEL(a_task_that_is_cancelled_while_it_is_dumped_ends, .stale_reads = 1, .reduce = true),
    MODEL(a_task_that_ends_while_it_is_dumped_is_freed_once, .preemptions = 3, .reduce = true),
    MODEL(tasks_that_come_and_go_are_dumped_as_they_are, .reduce = true),
    MODEL(a_name_that_changes_is_read_whole, .preemptions = 3, .reduce = true),
    MODEL(a_task_that_is_dumped_during_a_shutdown_is_cancelled, .stale_reads = MODEL_NONE,
          .reduce = true),
};

MODEL_MAIN(models)
