/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole runtimes, small ones: real workers with their real loop, threads that are not workers,
 * and everything between the two. No limit of time is given anywhere, so that a wake-up which is
 * lost leaves all threads asleep; memory is checked at every access, and all of it is gone in the
 * end.
 */
#include "sched/rt.h"
#include "support/fake_driver.h"
#include "support/parcel.h"
#include "system/futex.h"

#include <blitz/async.h>
#include <blitz/oneshot.h>

#include <string.h>

static blz_rt *rt;

static blz_options options(unsigned workers)
{
    return (blz_options){.workers = workers,
                         .watchdog_ns = BLZ_NEVER,
                         .seed = 1,
                         .shutdown_ns = BLZ_NEVER};
}

static void begin(unsigned workers)
{
    blz_options given = options(workers);
    model_assert(blz_rt_new(&rt, &given) == 0);
}

static void end(void)
{
    model_assert(blz_rt_free(rt) == 0);
}

/* ---- tasks ---- */

/* Says that it ran, in plain memory: whoever knows of its end may look. */
struct note {
    BLZ_FRAME;
    uint32_t *ran;
};

BLZ_ASYNC(note)
{
    BLZ_BEGIN;
    blz__plain_write(self->ran);
    (*self->ran)++;
    BLZ_END(7);
}

/* Lets others run first. */
struct late_note {
    BLZ_FRAME;
    uint32_t *ran;
    blz_future yield;
    int64_t rc;
};

BLZ_ASYNC(late_note)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    blz__plain_write(self->ran);
    (*self->ran)++;
    BLZ_END(7);
}

/* Waits for a value. */
struct receive {
    BLZ_FRAME;
    blz_oneshot *channel;
    blz_oneshot_op wait;
    int64_t rc, value;
};

BLZ_ASYNC(receive)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, self->channel, &self->value));
    BLZ_END(self->rc < 0 ? self->rc : self->value);
}

static uint32_t first_ran, second_ran;
static blz_oneshot channel;

static void reset(void)
{
    first_ran = second_ran = 0;
    blz_oneshot_init(&channel);
}

static void must_have_run(const uint32_t *ran)
{
    blz__plain_read(ran);
    model_assert(*ran == 1);
}

/* ---- from outside ---- */

static void a_thread_blocks_on_a_task(void)
{
    reset();
    begin(1);
    model_assert(BLZ_BLOCK_ON(rt, note, .ran = &first_ran) == 7);
    must_have_run(&first_ran);
    end();
}

static void a_thread_blocks_on_a_task_that_yields(void)
{
    reset();
    begin(1);
    model_assert(BLZ_BLOCK_ON(rt, late_note, .ran = &first_ran) == 7);
    must_have_run(&first_ran);
    end();
}

static void block_on_first(void *unused)
{
    (void)unused;
    model_assert(BLZ_BLOCK_ON(rt, note, .ran = &first_ran) == 7);
    must_have_run(&first_ran);
}

/* Whoever comes first starts it. */
static void two_threads_start_the_runtime(void)
{
    reset();
    begin(1);
    model_thread other = model_start(block_on_first, NULL);
    model_assert(BLZ_BLOCK_ON(rt, note, .ran = &second_ran) == 7);
    must_have_run(&second_ran);
    model_join(other);
    end();
}

static void the_end_waits_for_a_detached_task(void)
{
    reset();
    begin(1);
    model_assert(BLZ_SPAWN_ON(rt, NULL, note, .ran = &first_ran) == 0);
    end();
    must_have_run(&first_ran);
}

/* Without the joins that a free makes: the count of completed tasks carries what they did. */
static void a_shutdown_comes_after_what_the_tasks_did(void)
{
    reset();
    begin(1);
    model_assert(BLZ_SPAWN_ON(rt, NULL, note, .ran = &first_ran) == 0);
    model_assert(blz_rt_shutdown(rt, BLZ_NEVER) == 0);
    must_have_run(&first_ran);
    end();
}

static int spawn_rc;

static void try_to_spawn(void *unused)
{
    (void)unused;
    spawn_rc = BLZ_SPAWN_ON(rt, NULL, note, .ran = &first_ran);
    model_assert(spawn_rc == 0 || spawn_rc == -ESHUTDOWN);
}

static void a_spawn_comes_before_the_end_or_not_at_all(void)
{
    reset();
    begin(1);
    model_thread other = model_start(try_to_spawn, NULL);
    model_assert(blz_rt_shutdown(rt, BLZ_NEVER) == 0);
    model_join(other);
    end();
    model_assert(first_ran == (spawn_rc == 0));
}

static void send(void *unused)
{
    (void)unused;
    model_assert(blz_oneshot_send(&channel, 5) == 0);
}

static void a_thread_wakes_a_task(void)
{
    reset();
    begin(1);
    model_thread sender = model_start(send, NULL);
    model_assert(BLZ_BLOCK_ON(rt, receive, .channel = &channel) == 5);
    model_join(sender);
    end();
}

/* ---- handles ---- */

static void note_result(int64_t result, void *arg)
{
    model_assert(result == 7);
    must_have_run(&first_ran);
    blz__store((uint32_t *)arg, 1u, RELEASE);
    blz__futex_wake(arg, 1);
}

static void a_task_calls_back_when_it_ends(void)
{
    blz_handle handle;
    uint32_t called = 0;

    reset();
    begin(1);
    model_assert(BLZ_SPAWN_ON(rt, &handle, note, .ran = &first_ran) == 0);
    model_assert(blz_task_on_done(&handle, note_result, &called) == 0);
    while (!blz__load(&called, ACQUIRE))
        blz__futex_wait(&called, 0);
    end();
}

static void detach(void *handle)
{
    blz_handle_detach(handle);
}

/* The last to let go of the task may be the one that frees the runtime. */
static void a_handle_is_let_go_while_the_runtime_ends(void)
{
    blz_handle handle;

    reset();
    begin(1);
    model_assert(BLZ_SPAWN_ON(rt, &handle, note, .ran = &first_ran) == 0);
    model_thread other = model_start(detach, &handle);
    end();
    must_have_run(&first_ran);
    model_join(other);
}

static void cancel_and_wait(void *arg)
{
    blz_handle *handle = arg;

    blz_handle_cancel(handle);
    model_assert(blz_handle_wait(handle) == 0);
}

/* A cancelled receiver closes the channel; the value comes first or not at all. */
static void a_thread_cancels_a_task_that_another_wakes(void)
{
    blz_handle handle;

    reset();
    begin(1);
    model_assert(BLZ_SPAWN_ON(rt, &handle, receive, .channel = &channel) == 0);
    model_thread other = model_start(cancel_and_wait, &handle);
    int rc = blz_oneshot_send(&channel, 5);
    model_join(other);
    if (handle.result == 5)
        model_assert(rc == 0);
    else
        model_assert(handle.result == -ECANCELED);
    end();
}

/* ---- pinned tasks ---- */

/* Has a pinned child, which another thread wakes through the worker's mailbox. */
struct pins {
    BLZ_FRAME;
    blz_handle child;
    blz_handle_join_op join;
    int64_t rc;
};

BLZ_ASYNC(pins)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_PINNED(&self->child, receive, .channel = &channel);
    model_assert(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->child));
    BLZ_END(self->child.result);
}

static void a_thread_wakes_a_pinned_task(void)
{
    reset();
    begin(1);
    model_thread sender = model_start(send, NULL);
    model_assert(BLZ_BLOCK_ON(rt, pins) == 5);
    model_join(sender);
    end();
}

/* ---- the mailbox alone ---- */

static blz_worker home;

static void mail_first_and_second(void *unused)
{
    (void)unused;
    blz__worker_mail_pinned(&home, parcel_fill(0));
    blz__worker_mail_pinned(&home, parcel_fill(1));
}

static void mail_third(void *unused)
{
    (void)unused;
    blz__worker_mail_pinned(&home, parcel_fill(2));
}

/* Reads and parks until all has come. Mail of one sender comes in order. */
static void mail_is_read_once_and_in_order(void)
{
    uint32_t count = 0, next_of_first = 0;
    blz_task *task;

    memset(&home, 0, sizeof home);
    blz__worker_set_current(&home);
    parcels_new(3);
    model_thread a = model_start(mail_first_and_second, NULL), b = model_start(mail_third, NULL);
    while (count < 3) {
        if (!blz__worker_read_mail(&home))
            blz__parker_wait(&home.parker, INT64_MAX);
        for (; (task = task_list_take(&home.pinned)) != NULL; count++) {
            uint32_t number = parcel_open(task);
            model_assert(number == 2 || number == next_of_first++);
        }
    }
    model_join(a);
    model_join(b);
    parcels_free();
    blz__worker_set_current(NULL);
}

/* ---- two workers ---- */

static void two_workers_run_two_tasks(void)
{
    blz_handle first, second;

    reset();
    begin(2);
    model_assert(BLZ_SPAWN_ON(rt, &first, note, .ran = &first_ran) == 0);
    model_assert(BLZ_SPAWN_ON(rt, &second, note, .ran = &second_ran) == 0);
    model_assert(blz_handle_wait(&first) == 0 && first.result == 7);
    must_have_run(&first_ran);
    model_assert(blz_handle_wait(&second) == 0 && second.result == 7);
    must_have_run(&second_ran);
    end();
}

/* Spawns a child and joins it; the other worker may steal either. */
struct family {
    BLZ_FRAME;
    blz_handle child;
    blz_handle_join_op join;
    int64_t rc;
};

BLZ_ASYNC(family)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_JOIN(&self->child, note, .ran = &first_ran);
    model_assert(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->child));
    must_have_run(&first_ran);
    BLZ_END(self->child.result);
}

static void a_child_may_be_stolen(void)
{
    blz_options given = options(2);

    reset();
    given.disable_lifo = true;
    model_assert(blz_rt_new(&rt, &given) == 0);
    model_assert(BLZ_BLOCK_ON(rt, family) == 7);
    end();
}

/* Blocks its thread until the other task has run. */
struct stuck {
    BLZ_FRAME;
};

static uint32_t freed;

BLZ_ASYNC(stuck)
{
    BLZ_BEGIN;
    while (!blz__load(&freed, ACQUIRE))
        blz__futex_wait(&freed, 0);
    BLZ_END(1);
}

struct rescue {
    BLZ_FRAME;
};

BLZ_ASYNC(rescue)
{
    BLZ_BEGIN;
    blz__store(&freed, 1u, RELEASE);
    blz__futex_wake(&freed, 1);
    BLZ_END(2);
}

/*
 * While one worker is stuck the other runs what is left. Not so under all circumstances in weakly
 * ordered memory: a worker that pushes to its own ring looks for sleepers without waiting for its
 * push to be seen (push_ring in queue.c). So this is a model of interleavings alone.
 */
static void a_stuck_worker_holds_nothing_back(void)
{
    blz_handle first, second;

    freed = 0;
    begin(2);
    model_assert(BLZ_SPAWN_ON(rt, &first, stuck) == 0);
    model_assert(BLZ_SPAWN_ON(rt, &second, rescue) == 0);
    model_assert(blz_handle_wait(&first) == 0 && first.result == 1);
    model_assert(blz_handle_wait(&second) == 0 && second.result == 2);
    end();
}

/*
 * Its child is in memory of the worker that it keeps busy: the other one runs it. The memory may be
 * back for the second child.
 */
struct stuck_parent {
    BLZ_FRAME;
    int64_t rc;
};

BLZ_ASYNC(stuck_parent)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN(rescue);
    model_assert(self->rc == 0);
    while (!blz__load(&freed, ACQUIRE))
        blz__futex_wait(&freed, 0);
    self->rc = BLZ_SPAWN(note, .ran = &first_ran);
    model_assert(self->rc == 0);
    BLZ_END(1);
}

/*
 * The thief owes the memory to the other worker, and may be stopped before it gives it back. Of
 * interleavings alone, as above.
 */
static void the_memory_of_a_stolen_task_goes_home(void)
{
    blz_options given = options(2);

    reset();
    freed = 0;
    given.disable_lifo = true;
    model_assert(blz_rt_new(&rt, &given) == 0);
    model_assert(BLZ_BLOCK_ON(rt, stuck_parent) == 1);
    end();
    must_have_run(&first_ran);
}

/* ---- the caller as a worker ---- */

static void run_is_a_whole_life(void)
{
    blz_options given = options(1);

    reset();
    model_assert(BLZ_RUN_WITH(&given, family) == 7);
}

static void run_with_a_second_worker(void)
{
    blz_options given = options(2);

    reset();
    model_assert(BLZ_RUN_WITH(&given, family) == 7);
}

/* Then it ends on the other worker, and this one must hear of it. */
static void the_root_may_be_stolen(void)
{
    blz_options given = options(2);

    reset();
    given.disable_lifo = true;
    model_assert(BLZ_RUN_WITH(&given, note, .ran = &first_ran) == 7);
    must_have_run(&first_ran);
}

/* ---- workers that sleep in their drivers ---- */

static void a_worker_asleep_in_its_driver_is_woken(void)
{
    blz_options given = options(1);

    reset();
    model_assert(blz__rt_create(&rt, &given, &fake_driver_ops) == 0);
    fake_driver_of(rt->workers[0].driver)->busy = true;
    model_assert(blz__rt_start(rt, false) == 0);
    model_assert(BLZ_BLOCK_ON(rt, note, .ran = &first_ran) == 7);
    must_have_run(&first_ran);
    end();
}

/* ---- embedded ---- */

static void begin_embedded(void)
{
    blz_options given = options(1);

    given.embedded = true;
    model_assert(blz__rt_create(&rt, &given, &fake_driver_ops) == 0);
    model_assert(blz__worker_park_for_turn(&rt->workers[0])); /* as blz_rt_new does */
}

/* What a program's own loop does. The tasks run in it, so the counter is this thread's. */
static void turn_until(const uint32_t *ran)
{
    while (!*ran) {
        fake_driver_wait_readable(fake_driver_of(rt->workers[0].driver));
        model_assert(blz_rt_turn(rt) >= 0);
    }
}

static void a_spawn_makes_the_fd_readable(void)
{
    reset();
    begin_embedded();
    model_thread other = model_start(block_on_first, NULL);
    turn_until(&first_ran);
    model_join(other);
    end();
}

static void spawn_two(void *unused)
{
    (void)unused;
    model_assert(BLZ_SPAWN_ON(rt, NULL, note, .ran = &first_ran) == 0);
    model_assert(BLZ_SPAWN_ON(rt, NULL, note, .ran = &second_ran) == 0);
}

static void a_spawn_during_a_turn_is_not_missed(void)
{
    reset();
    begin_embedded();
    model_thread other = model_start(spawn_two, NULL);
    turn_until(&first_ran);
    turn_until(&second_ran);
    model_join(other);
    end();
}

/* Says when it has the value. */
struct receive_note {
    BLZ_FRAME;
    blz_oneshot_op wait;
    int64_t rc, value;
};

BLZ_ASYNC(receive_note)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, &channel, &self->value));
    first_ran = self->rc == 0 && self->value == 5;
    BLZ_END(0);
}

static void a_wake_makes_the_fd_readable(void)
{
    reset();
    begin_embedded();
    model_assert(BLZ_SPAWN_ON(rt, NULL, receive_note) == 0);
    model_thread sender = model_start(send, NULL);
    turn_until(&first_ran);
    model_join(sender);
    end();
}

static void an_embedded_runtime_ends_while_a_thread_spawns(void)
{
    reset();
    begin_embedded();
    model_thread other = model_start(try_to_spawn, NULL);
    model_assert(blz_rt_shutdown(rt, BLZ_NEVER) == 0);
    model_join(other);
    end();
    model_assert(first_ran == (spawn_rc == 0));
}

/* ---- on_ready ---- */

static uint32_t calls; /* futex */

static void count_call(void *unused)
{
    (void)unused;
    blz__fetch_add(&calls, 1u, RELEASE); /* pairs with the acquire in turn_when_called */
    blz__futex_wake(&calls, 1);
}

static void begin_with_on_ready(void)
{
    blz_options given = options(1);

    reset();
    calls = 0;
    given.embedded = true;
    given.on_ready = count_call;
    model_assert(blz__rt_create(&rt, &given, &fake_driver_ops) == 0);
    model_assert(blz__worker_park_for_turn(&rt->workers[0])); /* as blz_rt_new does */
    model_assert(blz__ready_thread_start(rt) == 0);
    blz__ready_thread_arm(rt);
}

/* A loop that knows of nothing but the calls. */
static void turn_when_called(const uint32_t *ran)
{
    uint32_t seen = 0, now;

    while (!*ran) {
        while ((now = blz__load(&calls, ACQUIRE)) == seen)
            blz__futex_wait(&calls, seen);
        seen = now;
        model_assert(blz_rt_turn(rt) >= 0);
    }
}

static void a_spawn_calls_on_ready(void)
{
    begin_with_on_ready();
    model_thread other = model_start(spawn_two, NULL);
    turn_when_called(&second_ran);
    must_have_run(&first_ran);
    model_join(other);
    end();
}

/* The turn finds the thread before its wait, in it, or behind it. */
static void a_turn_without_a_call_does_not_stop_the_calls(void)
{
    begin_with_on_ready();
    model_assert(blz_rt_turn(rt) >= 0);
    model_thread other = model_start(spawn_two, NULL);
    turn_when_called(&second_ran);
    model_join(other);
    end();
}

struct sleep_long {
    BLZ_FRAME;
    blz_sleep_op wait;
    int64_t rc;
};

BLZ_ASYNC(sleep_long)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_sleep(&self->wait, BLZ_HOUR));
    BLZ_END(0);
}

/*
 * The thread may wait without a limit when the turn begins that arms a timer. That the call for the
 * spawn is late, and taken for the call for the timer, is one of many executions.
 */
static void a_timer_calls_on_ready(void)
{
    uint32_t seen;

    begin_with_on_ready();
    model_assert(BLZ_SPAWN_ON(rt, NULL, sleep_long) == 0);
    seen = blz__load(&calls, RELAXED);
    model_assert(blz_rt_turn(rt) == 1);
    while (blz__load(&calls, ACQUIRE) == seen)
        blz__futex_wait(&calls, seen);
    end();
}

static void a_runtime_with_on_ready_that_never_ran_ends(void)
{
    begin_with_on_ready();
    end();
}

static void a_runtime_with_on_ready_ends(void)
{
    begin_with_on_ready();
    model_assert(BLZ_SPAWN_ON(rt, NULL, note, .ran = &first_ran) == 0);
    end();
}

/*
 * No state twice: what the threads share in plain memory is handed over by what is being modelled.
 * Three threads and more make many executions: these have fewer preemptions.
 */
#define NARROW .preemptions = 2, .reduce = true
#define WIDE   .preemptions = 1, .reduce = true

static const struct model models[] = {
    {"a_thread_blocks_on_a_task", a_thread_blocks_on_a_task, {NARROW, .stale_reads = 1}},
    {"a_thread_blocks_on_a_task_that_yields",
     a_thread_blocks_on_a_task_that_yields,
     {NARROW, .stale_reads = 1}},
    {"two_threads_start_the_runtime", two_threads_start_the_runtime, {WIDE, .stale_reads = 1}},
    {"the_end_waits_for_a_detached_task",
     the_end_waits_for_a_detached_task,
     {NARROW, .stale_reads = 2}},
    {"a_shutdown_comes_after_what_the_tasks_did",
     a_shutdown_comes_after_what_the_tasks_did,
     {NARROW, .stale_reads = 2}},
    {"a_spawn_comes_before_the_end_or_not_at_all",
     a_spawn_comes_before_the_end_or_not_at_all,
     {NARROW, .stale_reads = 2}},
    {"a_thread_wakes_a_task", a_thread_wakes_a_task, {WIDE, .stale_reads = 2}},
    {"a_task_calls_back_when_it_ends", a_task_calls_back_when_it_ends, {NARROW, .stale_reads = 1}},
    {"a_handle_is_let_go_while_the_runtime_ends",
     a_handle_is_let_go_while_the_runtime_ends,
     {WIDE, .stale_reads = 3}},
    {"a_thread_cancels_a_task_that_another_wakes",
     a_thread_cancels_a_task_that_another_wakes,
     {WIDE, .stale_reads = 2}},
    {"a_thread_wakes_a_pinned_task", a_thread_wakes_a_pinned_task, {WIDE, .stale_reads = 2}},
    {"mail_is_read_once_and_in_order", mail_is_read_once_and_in_order, {NARROW, .stale_reads = 3}},
    {"two_workers_run_two_tasks", two_workers_run_two_tasks, {WIDE, .stale_reads = MODEL_NONE}},
    {"a_child_may_be_stolen", a_child_may_be_stolen, {WIDE, .stale_reads = MODEL_NONE}},
    {"the_memory_of_a_stolen_task_goes_home",
     the_memory_of_a_stolen_task_goes_home,
     {WIDE, .stale_reads = MODEL_NONE}},
    {"a_stuck_worker_holds_nothing_back",
     a_stuck_worker_holds_nothing_back,
     {WIDE, .stale_reads = MODEL_NONE}},
    {"run_is_a_whole_life", run_is_a_whole_life, {NARROW, .stale_reads = 3}},
    {"run_with_a_second_worker", run_with_a_second_worker, {NARROW, .stale_reads = 1}},
    {"the_root_may_be_stolen", the_root_may_be_stolen, {WIDE, .stale_reads = 3}},
    {"a_worker_asleep_in_its_driver_is_woken",
     a_worker_asleep_in_its_driver_is_woken,
     {NARROW, .stale_reads = 1}},
    {"a_spawn_makes_the_fd_readable", a_spawn_makes_the_fd_readable, {NARROW, .stale_reads = 2}},
    {"a_spawn_during_a_turn_is_not_missed",
     a_spawn_during_a_turn_is_not_missed,
     {NARROW, .stale_reads = 2}},
    {"a_wake_makes_the_fd_readable", a_wake_makes_the_fd_readable, {NARROW, .stale_reads = 2}},
    {"a_spawn_calls_on_ready", a_spawn_calls_on_ready, {WIDE, .stale_reads = 2}},
    {"a_turn_without_a_call_does_not_stop_the_calls",
     a_turn_without_a_call_does_not_stop_the_calls,
     {WIDE, .stale_reads = 2}},
    {"a_timer_calls_on_ready", a_timer_calls_on_ready, {NARROW, .stale_reads = 2}},
    {"a_runtime_with_on_ready_that_never_ran_ends",
     a_runtime_with_on_ready_that_never_ran_ends,
     {NARROW, .stale_reads = 2}},
    {"a_runtime_with_on_ready_ends", a_runtime_with_on_ready_ends, {NARROW}},
    {"an_embedded_runtime_ends_while_a_thread_spawns",
     an_embedded_runtime_ends_while_a_thread_spawns,
     {NARROW, .stale_reads = 2}},
};

MODEL_MAIN(models)
