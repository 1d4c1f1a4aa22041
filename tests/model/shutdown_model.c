/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of the shutdown (src/sched/shutdown.c), most of them with a whole runtime: its worker
 * threads are fibres, which park and are woken. A task that is passed by, or an end that nobody
 * notices, shows as a deadlock; memory that nobody frees as a leak.
 */
#include "support/small_rt.h"
#include "support/table.h"

#include <blitz/async.h>

static blz_rt *rt;
static blz_handle handle;

/* ghosts */
static unsigned ended;
static int spawned; /* what the spawn of another thread returned */

/* ---- tasks ---- */

struct quick {
    BLZ_FRAME;
};

BLZ_ASYNC(quick)
{
    BLZ_BEGIN;
    ended++;
    BLZ_END(0);
}

/* Ends when it is cancelled. */
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

/* Ends when it is forced to. */
struct stubborn {
    BLZ_FRAME;
    blz_future never;
    int64_t rc;
};

BLZ_ASYNC(stubborn)
{
    BLZ_BEGIN;
    BLZ_AWAIT_SHIELDED(self->rc, blz_pending(&self->never));
    model_assert(self->rc == -ECANCELED && blz__load(&rt->phase, RELAXED) == RT_FORCING);
    ended++;
    BLZ_END(self->rc);
}

struct parent {
    BLZ_FRAME;
};

BLZ_ASYNC(parent)
{
    BLZ_BEGIN;
    spawned = BLZ_SPAWN(sleeper);
    model_assert(spawned == 0 || spawned == -ESHUTDOWN);
    BLZ_END(0);
}

/* ---- a whole runtime ---- */

static const blz_options *options(unsigned workers)
{
    static blz_options given;

    given = (blz_options){.workers = workers,
                          .watchdog_ns = BLZ_NEVER,
                          .seed = 1,
                          .shutdown_ns = BLZ_NEVER};
    return &given;
}

static void create(unsigned workers)
{
    model_assert(blz_rt_new(&rt, options(workers)) == 0);
    ended = 0;
    spawned = 0;
    handle = (blz_handle){NULL, 0};
}

static void a_task_that_starts_to_wait_is_cancelled(void)
{
    create(1);
    model_assert(BLZ_SPAWN_ON(rt, NULL, sleeper) == 0);
    model_assert(blz_rt_free(rt) == 0);
    model_assert(ended == 1);
}

/* Its memory stays, so that nothing but the shutdown orders its end with the closing thread. */
static void the_end_of_the_last_task_is_noticed(void)
{
    create(1);
    model_assert(BLZ_SPAWN_ON(rt, &handle, quick) == 0);
    model_assert(blz_rt_shutdown(rt, BLZ_NEVER) == 0);
    blz_handle_detach(&handle);
    model_assert(blz_rt_free(rt) == 0);
    model_assert(ended == 1);
}

static void a_task_that_a_worker_spawns_is_refused_or_cancelled(void)
{
    create(1);
    model_assert(BLZ_SPAWN_ON(rt, NULL, parent) == 0);
    model_assert(blz_rt_free(rt) == 0);
    model_assert(ended == (spawned == 0));
}

static void a_shield_holds_until_it_is_forced(void)
{
    create(1);
    model_assert(BLZ_SPAWN_ON(rt, NULL, stubborn) == 0);
    int rc = blz_rt_shutdown(rt, 1000);
    model_assert(rc == 0 || rc == -ETIMEDOUT); /* the second time limit may be missed, too */
    model_assert(blz_rt_free(rt) == 0);
    model_assert(ended == 1);
}

static void spawner(void *unused)
{
    (void)unused;
    spawned = BLZ_SPAWN_ON(rt, NULL, sleeper);
    model_assert(spawned == 0 || spawned == -ESHUTDOWN);
}

static void a_task_that_another_thread_spawns_is_refused_or_cancelled(void)
{
    create(1);
    model_assert(BLZ_SPAWN_ON(rt, NULL, quick) == 0);
    model_thread other = model_start(spawner, NULL);
    model_assert(blz_rt_shutdown(rt, BLZ_NEVER) == 0);
    model_join(other);
    model_assert(ended == 1u + (spawned == 0));
    model_assert(blz_rt_free(rt) == 0);
}

/* The workers start with the first task: perhaps during the shutdown. */
static void the_first_task_is_refused_or_cancelled(void)
{
    create(1);
    model_thread other = model_start(spawner, NULL);
    model_assert(blz_rt_shutdown(rt, BLZ_NEVER) == 0);
    model_join(other);
    model_assert(ended == (spawned == 0));
    model_assert(blz_rt_free(rt) == 0);
}

static void shut_down(void *unused)
{
    (void)unused;
    model_assert(blz_rt_shutdown(rt, BLZ_NEVER) == 0);
}

static void two_shutdowns_both_wait_for_the_last_task(void)
{
    create(1);
    model_assert(BLZ_SPAWN_ON(rt, NULL, quick) == 0);
    model_thread second = model_start(shut_down, NULL), other = model_start(spawner, NULL);
    model_assert(blz_rt_shutdown(rt, BLZ_NEVER) == 0);
    model_join(other);
    model_join(second);
    model_assert(ended == 1u + (spawned == 0));
    model_assert(blz_rt_free(rt) == 0);
}

static void called_back(int64_t result, void *arg)
{
    model_assert(arg == &ended && result == 0);
    ended++;
}

static void call_back_later(void *unused)
{
    (void)unused;
    model_assert(blz_task_on_done(&handle, called_back, &ended) == 0);
}

/* Asked for when the task may have ended already, and the shutdown may be waiting. */
static void a_late_callback_is_called_and_does_not_hold_off_the_end(void)
{
    create(1);
    model_assert(BLZ_SPAWN_ON(rt, &handle, quick) == 0);
    model_thread other = model_start(call_back_later, NULL);
    model_assert(blz_rt_shutdown(rt, BLZ_NEVER) == 0);
    model_join(other);
    model_assert(blz_rt_free(rt) == 0);
    model_assert(ended == 2);
}

static void the_last_of_two_workers_notices_the_end(void)
{
    create(2);
    model_assert(BLZ_SPAWN_ON(rt, NULL, sleeper) == 0);
    model_assert(blz_rt_free(rt) == 0);
    model_assert(ended == 1);
}

static void a_worker_that_shuts_down_takes_part(void)
{
    struct parent frame = {.blz_frame.ops = &parent_ops};

    ended = 0;
    model_assert(blz_run(&frame, sizeof frame, "parent", options(2)) == 0);
    model_assert(ended == (spawned == 0));
}

/* ---- counting ---- */

static bool finished; /* ghost: the last task is in its last poll */

struct last {
    BLZ_FRAME;
};

BLZ_ASYNC(last)
{
    BLZ_BEGIN;
    finished = true;
    BLZ_END(0);
}

struct first {
    BLZ_FRAME;
};

BLZ_ASYNC(first)
{
    BLZ_BEGIN;
    spawned = BLZ_SPAWN(last);
    model_assert(spawned == 0);
    BLZ_END(0);
}

static void count(void *unused)
{
    (void)unused;
    if (blz__rt_live(rt) == 0)
        model_assert(finished);
}

static void a_task_that_hands_over_to_another_is_never_missed(void)
{
    rt = small_rt_new(1, NULL);
    finished = false;
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN(first)) == 0);
    model_thread other = model_start(count, NULL);
    small_rt_poll_all(&rt->workers[0]);
    model_join(other);
    small_rt_free(rt);
}

static void thief(void *w)
{
    uint32_t moved;

    small_rt_be(w);
    blz_task *task = blz__runq_steal(&rt->workers[0].ring, &((blz_worker *)w)->ring, &moved);
    if (task)
        blz__worker_poll(w, task);
}

static void a_task_that_hands_over_to_another_worker_is_never_missed(void)
{
    rt = small_rt_new(2, NULL);
    rt->lifo = false; /* what is spawned can be stolen */
    finished = false;
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN(first)) == 0);
    model_thread summing = model_start(count, NULL);
    model_thread stealing = model_start(thief, &rt->workers[1]);
    small_rt_poll_all(&rt->workers[0]);
    model_join(stealing);
    model_join(summing);
    small_rt_be(&rt->workers[1]);
    small_rt_poll_all(&rt->workers[1]);
    small_rt_free(rt);
}

static const struct model models[] = {
    MODEL(a_task_that_starts_to_wait_is_cancelled, .stale_reads = 2, .reduce = true),
    MODEL(the_end_of_the_last_task_is_noticed, .reduce = true),
    MODEL(a_task_that_a_worker_spawns_is_refused_or_cancelled, .stale_reads = 2, .reduce = true),
    MODEL(a_shield_holds_until_it_is_forced, .stale_reads = MODEL_NONE, .reduce = true),
    MODEL(a_task_that_another_thread_spawns_is_refused_or_cancelled, .stale_reads = MODEL_NONE,
          .reduce = true),
    MODEL(the_first_task_is_refused_or_cancelled, .stale_reads = 2, .reduce = true),
    MODEL(two_shutdowns_both_wait_for_the_last_task, .stale_reads = MODEL_NONE, .reduce = true),
    MODEL(a_late_callback_is_called_and_does_not_hold_off_the_end, .stale_reads = MODEL_NONE,
          .reduce = true),
    MODEL(the_last_of_two_workers_notices_the_end, .preemptions = 1, .stale_reads = 1,
          .reduce = true),
    MODEL(a_worker_that_shuts_down_takes_part, .stale_reads = 1, .reduce = true),
    MODEL(a_task_that_hands_over_to_another_is_never_missed, .preemptions = 4),
    MODEL(a_task_that_hands_over_to_another_worker_is_never_missed, .stale_reads = MODEL_NONE),
};

MODEL_MAIN(models)
