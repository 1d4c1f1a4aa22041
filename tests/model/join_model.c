/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of join handles (src/task/handle.c): whoever waits for the end of a task learns of it
 * once, sees what the task did, and the task's memory is given back once. Real tasks, on workers
 * whose threads are the fibres of the test.
 */
#include "support/small_rt.h"
#include "support/table.h"

#include <blitz/async.h>

static blz_rt *rt;
static blz_handle handle;
static uint32_t data; /* written by the task, read by who joined it */

/* ghosts */
static unsigned calls;
static int64_t joined;

/* ---- tasks ---- */

struct child {
    BLZ_FRAME;
};

BLZ_ASYNC(child)
{
    BLZ_BEGIN;
    blz__plain_write(&data);
    BLZ_END(7);
}

struct joiner {
    BLZ_FRAME;
    blz_handle_join_op join;
    int64_t rc;
};

BLZ_ASYNC(joiner)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &handle));
    model_assert(self->rc == 0);
    blz__plain_read(&data);
    joined = handle.result;
    BLZ_END(0);
}

/* ---- threads ---- */

static void worker(void *w)
{
    small_rt_be(w);
    small_rt_poll_all(w);
}

static model_thread start_worker(unsigned i)
{
    return model_start(worker, &rt->workers[i]);
}

/* A runtime in which the child waits in the queue of the last worker. */
static void set_up(unsigned workers)
{
    rt = small_rt_new(workers, NULL);
    calls = 0;
    joined = 0;
    model_assert(SMALL_RT_ON(&rt->workers[workers - 1], BLZ_SPAWN_JOIN(&handle, child)) == 0);
    small_rt_be(NULL);
}

/* All other threads have ended. */
static void tear_down(void)
{
    for (uint32_t i = 0; i < rt->nr_workers; i++) {
        small_rt_be(&rt->workers[i]);
        small_rt_poll_all(&rt->workers[i]);
    }
    small_rt_be(NULL);
    small_rt_free(rt);
}

/* ---- threads that wait ---- */

static void a_thread_that_waits_gets_the_result(void)
{
    set_up(1);
    model_thread thread = start_worker(0);
    model_assert(blz_handle_wait(&handle) == 0);
    model_assert(handle.result == 7 && handle.task == NULL);
    blz__plain_read(&data);
    model_join(thread);
    tear_down();
}

static void a_thread_that_looks_sees_the_frame_of_a_finished_task(void)
{
    set_up(1);
    model_thread thread = start_worker(0);
    if (blz_handle_done(&handle)) {
        const struct child *frame = blz_handle_frame(&handle);
        model_assert(frame->blz_frame.result == 7);
        blz__plain_read(&data);
    }
    blz_handle_detach(&handle);
    model_join(thread);
    tear_down();
}

static void a_handle_let_go_at_the_end_of_the_task_frees_it_once(void)
{
    set_up(1);
    model_thread thread = start_worker(0);
    blz_handle_detach(&handle);
    model_join(thread);
    tear_down();
}

static void ended(int64_t result, void *arg)
{
    model_assert(arg == &data && result == 7);
    blz__plain_read(&data);
    calls++;
}

static void a_callback_is_called_once(void)
{
    set_up(1);
    model_thread thread = start_worker(0);
    model_assert(blz_task_on_done(&handle, ended, &data) == 0);
    model_assert(handle.task == NULL);
    model_join(thread);
    model_assert(calls == 1);
    tear_down();
}

/* ---- tasks that wait ---- */

static void spawn_joiner(void)
{
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN(joiner)) == 0);
}

static void a_task_that_joins_gets_the_result(void)
{
    set_up(2);
    spawn_joiner();
    model_thread thread = start_worker(1);
    small_rt_poll_all(&rt->workers[0]);
    model_join(thread);
    tear_down();
    model_assert(joined == 7);
}

/* Joins, takes it back, and joins again. */
struct fickle {
    BLZ_FRAME;
    blz_handle_join_op join;
    int64_t rc;
    bool again;
};

static blz_poll fickle_poll(blz_future *future, blz_cx *cx)
{
    struct fickle *self = (struct fickle *)(void *)future;
    bool first = !self->join.future.ops;

    if (first)
        blz_ignore(blz_handle_join(&self->join, &handle));
    blz_poll poll = blz_poll_branch(&self->join.future, cx);
    if (first && blz_is_pending(poll)) {
        blz_cancel_branch(&self->join.future, cx);
        poll = blz_poll_branch(&self->join.future, cx);
        if (blz_is_ready(poll) && self->join.future.result == -ECANCELED) {
            self->again = true;
            blz_ignore(blz_handle_join(&self->join, &handle));
            poll = blz_poll_branch(&self->join.future, cx);
        }
    }
    if (blz_is_pending(poll))
        return BLZ_PENDING;
    model_assert(self->join.future.result == 0 && handle.task == NULL);
    blz__plain_read(&data);
    joined = handle.result;
    return blz_future_done(future, 0);
}

static const blz_future_ops fickle_ops = {.name = "fickle", .poll = fickle_poll};

static void a_join_that_is_taken_back_can_be_repeated(void)
{
    struct fickle frame = {.blz_frame.ops = &fickle_ops};

    set_up(2);
    model_assert(SMALL_RT_ON(&rt->workers[0],
                             blz_spawn(&frame, sizeof frame, &(blz_spawn_args){.rt = rt})) == 0);
    model_thread thread = start_worker(1);
    small_rt_poll_all(&rt->workers[0]);
    model_join(thread);
    tear_down();
    model_assert(joined == 7);
}

/* ---- in place ---- */

struct parent {
    BLZ_FRAME;
    blz_handle_join_op join;
    int64_t rc;
};

/* The child is in the LIFO slot when it is joined. */
BLZ_ASYNC(parent)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_JOIN(&handle, child);
    model_assert(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &handle));
    model_assert(self->rc == 0);
    blz__plain_read(&data);
    joined = handle.result;
    BLZ_END(0);
}

/* The watchdog finds worker 0 stuck and puts its LIFO task where others find it; worker 1 does. */
static void rescuer(void *unused)
{
    task_list tasks = {NULL, NULL, 0};

    (void)unused;
    blz__local_empty(&rt->workers[0].local, &tasks);
    if (tasks.count)
        blz__rt_inject(rt, &tasks);
    worker(&rt->workers[1]);
}

static void a_task_joined_in_place_may_be_rescued_meanwhile(void)
{
    rt = small_rt_new(2, NULL);
    joined = 0;
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN(parent)) == 0);
    model_thread thread = model_start(rescuer, NULL);
    small_rt_poll_all(&rt->workers[0]);
    model_join(thread);
    tear_down();
    model_assert(joined == 7);
}

static const struct model models[] = {
    MODEL(a_thread_that_waits_gets_the_result, .preemptions = 4, .reduce = true),
    MODEL(a_thread_that_looks_sees_the_frame_of_a_finished_task, .preemptions = 4, .reduce = true),
    MODEL(a_handle_let_go_at_the_end_of_the_task_frees_it_once, .preemptions = 4, .reduce = true),
    MODEL(a_callback_is_called_once, .preemptions = 4, .reduce = true),
    MODEL(a_task_that_joins_gets_the_result, .preemptions = 3, .reduce = true),
    MODEL(a_join_that_is_taken_back_can_be_repeated, .preemptions = 3, .stale_reads = 1,
          .reduce = true),
    MODEL(a_task_joined_in_place_may_be_rescued_meanwhile, .stale_reads = 2, .reduce = true),
};

MODEL_MAIN(models)
