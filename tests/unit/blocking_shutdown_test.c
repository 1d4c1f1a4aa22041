/* SPDX-License-Identifier: Apache-2.0 */
/* The end of the blocking pool: what is cancelled, what is waited for, what is refused. */
#include "blocking_jobs.h"

#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- helpers ---- */

struct shutter {
    blz_rt *rt;
    int64_t grace_ns;
    int rc;
};

static void *shut_down(void *arg)
{
    struct shutter *shutter = arg;

    shutter->rc = blz_rt_shutdown(shutter->rt, shutter->grace_ns);
    return NULL;
}

/* Until calls from outside are refused. */
static void wait_for_closing(blz_rt *rt)
{
    static uint64_t ignored;
    int rc;

    while ((rc = blz_blocking_spawn(rt, count_up, &ignored, NULL)) == 0)
        sched_yield();
    assert_int_equal(rc, -ESHUTDOWN);
}

static blz_rt *new_blocked_rt(struct halt *h)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .max_blocking_threads = 1});

    assert_int_equal(blz_blocking_spawn(rt, halt, h, halt_destroy), 0);
    event_wait(&h->begun, 1);
    return rt;
}

/* ---- what is cancelled, what is waited for ---- */

static void queued_calls_are_cancelled_and_running_ones_are_waited_for(void **state)
{
    struct halt h = HALT_INIT(0), queued = HALT_INIT(0);
    struct shutter shutter = {.rt = new_blocked_rt(&h), .grace_ns = BLZ_NEVER};
    pthread_t thread;

    (void)state;
    assert_int_equal(blz_blocking_spawn(shutter.rt, halt, &queued, halt_destroy), 0);
    thread = start_thread(shut_down, &shutter);
    event_wait(&queued.destroyed, 1); /* the shutdown has come that far, and waits */
    assert_int_equal(event_count(&queued.begun), 0);
    assert_int_equal(event_count(&h.destroyed), 0);
    event_post(&h.go_on);
    join_thread(thread);
    assert_int_equal(shutter.rc, 0);
    assert_int_equal(event_count(&h.destroyed), 1);
    free_rt(shutter.rt);
}

static void a_task_waits_for_its_running_call_and_gets_its_result(void **state)
{
    struct shutter shutter = {.rt = new_rt(&(blz_options){.workers = 1}), .grace_ns = BLZ_NEVER};
    struct halt h = HALT_INIT(6);
    blz_handle handle;
    pthread_t thread;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(shutter.rt, &handle, awaits, .fn = halt, .arg = &h), 0);
    event_wait(&h.begun, 1);
    thread = start_thread(shut_down, &shutter);
    while (BLZ_SPAWN_ON(shutter.rt, NULL, give) == 0)
        sched_yield();
    event_post(&h.go_on);
    join_thread(thread);
    assert_int_equal(shutter.rc, 0);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 6);
    free_rt(shutter.rt);
}

static void tasks_whose_calls_are_queued_end_at_once(void **state)
{
    struct halt h = HALT_INIT(0);
    struct shutter shutter = {.rt = new_blocked_rt(&h), .grace_ns = BLZ_NEVER};
    uint64_t count = 0;
    blz_handle handle;
    pthread_t thread;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(shutter.rt, &handle, awaits, .fn = count_up, .arg = &count), 0);
    wait_for_queued(shutter.rt, 1);
    thread = start_thread(shut_down, &shutter);
    assert_int_equal(blz_handle_wait(&handle), 0); /* while the other call is still running */
    assert_int_equal(handle.result, -ECANCELED);
    event_post(&h.go_on);
    join_thread(thread);
    assert_int_equal(shutter.rc, 0);
    assert_int_equal(count, 0);
    free_rt(shutter.rt);
}

struct runner {
    blz_rt *rt;
    uint64_t count;
    int64_t rc;
    struct event done;
};

static void *run_blocking(void *arg)
{
    struct runner *r = arg;

    r->rc = blz_blocking_run(r->rt, count_up, &r->count);
    event_post(&r->done);
    return NULL;
}

static void a_thread_that_waits_for_a_queued_call_is_told(void **state)
{
    struct halt h = HALT_INIT(0);
    struct shutter shutter = {.rt = new_blocked_rt(&h), .grace_ns = BLZ_NEVER};
    struct runner runner = {.rt = shutter.rt, .done = EVENT_INIT};
    pthread_t running, closing;

    (void)state;
    running = start_thread(run_blocking, &runner);
    wait_for_queued(shutter.rt, 1);
    closing = start_thread(shut_down, &shutter);
    event_wait(&runner.done, 1);
    assert_int_equal(runner.rc, -ECANCELED);
    assert_int_equal(runner.count, 0);
    event_post(&h.go_on);
    join_thread(running);
    join_thread(closing);
    free_rt(shutter.rt);
}

static void a_call_that_does_not_end_is_reported_until_it_does(void **state)
{
    struct halt h = HALT_INIT(0);
    blz_rt *rt = new_blocked_rt(&h);

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 2), 2);
    assert_int_equal(blz_rt_shutdown(rt, 5 * BLZ_MSEC), -ETIMEDOUT);
    assert_int_equal(blz_rt_shutdown(rt, 0), -ETIMEDOUT);
    event_post(&h.go_on);
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    assert_int_equal(event_count(&h.destroyed), 1);
    free_rt(rt);
}

static void a_runtime_that_only_had_blocking_work_is_freed(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    uint64_t count = 0;

    (void)state;
    assert_int_equal(blz_blocking_run(rt, count_up, &count), 1);
    free_rt(rt);
}

/* ---- what is refused ---- */

static void calls_from_outside_are_refused_from_the_beginning_on(void **state)
{
    struct halt h = HALT_INIT(0);
    struct shutter shutter = {.rt = new_blocked_rt(&h), .grace_ns = BLZ_NEVER};
    uint64_t count = 0;
    blz_blocking_op op = {0};
    pthread_t thread = start_thread(shut_down, &shutter);

    (void)state;
    wait_for_closing(shutter.rt);
    assert_int_equal(blz_blocking_run(shutter.rt, count_up, &count), -ESHUTDOWN);
    assert_int_equal(blz_blocking_start(&op, count_up, &count, shutter.rt), -ESHUTDOWN);
    assert_int_equal(blz_blocking_spawn(shutter.rt, halt, &h, halt_destroy), -ESHUTDOWN);
    event_post(&h.go_on);
    join_thread(thread);
    assert_int_equal(event_count(&h.destroyed), 1); /* what was refused is still the caller's */
    assert_int_equal(count, 0);
    free_rt(shutter.rt);
}

static void without_a_pool_calls_are_refused_too(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    uint64_t count = 0;

    (void)state;
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    assert_int_equal(blz_blocking_run(rt, count_up, &count), -ESHUTDOWN);
    assert_int_equal(stats_of(rt).blocking_started, 0);
    free_rt(rt);
}

struct tidies_up {
    BLZ_FRAME;
    uint64_t *count;
    struct event *started;
    int64_t rc;
    blz_future never;
    blz_blocking_op op;
};

BLZ_ASYNC(tidies_up)
{
    BLZ_BEGIN;
    event_post(self->started);
    BLZ_AWAIT(self->rc, blz_pending(&self->never));
    check(self->rc == -ECANCELED);
    BLZ_AWAIT_SHIELDED(self->rc, blz_blocking(&self->op, count_up, self->count));
    if (self->rc < 0)
        goto out;
    self->rc = blz_blocking_start(&self->op, count_up, self->count, NULL);
    if (self->rc == 0)
        BLZ_AWAIT_SHIELDED(self->rc, blz_blocking_join(&self->op));
out:
    BLZ_END(self->rc);
}

static void a_task_may_still_use_the_pool_in_its_cleanup(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct event started = EVENT_INIT;
    uint64_t count = 0;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, tidies_up, .count = &count, .started = &started), 0);
    event_wait(&started, 1);
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 2);
    free_rt(rt);
}

static int64_t shut_down_own(void *rt)
{
    return blz_rt_shutdown(rt, BLZ_NEVER) == -EDEADLK && blz_rt_free(rt) == -EDEADLK;
}

static int64_t shut_down_other(void *rt)
{
    return blz_rt_shutdown(rt, BLZ_NEVER);
}

static void a_call_cannot_shut_down_its_own_runtime(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_rt *other = new_rt(&(blz_options){.workers = 1});
    uint64_t count = 0;

    (void)state;
    assert_int_equal(blz_blocking_run(other, count_up, &count), 1);
    assert_int_equal(blz_blocking_run(rt, shut_down_own, rt), 1);
    assert_int_equal(blz_blocking_run(rt, shut_down_other, other), 0);
    free_rt(rt);
    free_rt(other);
}

/* ---- fork ---- */

static int use_in_child(blz_rt *rt)
{
    uint64_t count = 0;
    blz_blocking_op op = {0};

    if (blz_blocking_run(rt, count_up, &count) != -EOWNERDEAD)
        return 1;
    if (blz_blocking_start(&op, count_up, &count, rt) != -EOWNERDEAD)
        return 2;
    if (blz_blocking_spawn(rt, count_up, &count, NULL) != -EOWNERDEAD)
        return 3;
    if (stats_of(rt).blocking_threads != 0)
        return 4;
    return count == 0 ? 0 : 5;
}

static void in_a_forked_child_there_is_no_pool(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    uint64_t count = 0;
    int status = -1;

    (void)state;
    assert_int_equal(blz_blocking_run(rt, count_up, &count), 1);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        _exit(use_in_child(rt));
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(blz_blocking_run(rt, count_up, &count), 2);
    free_rt(rt);
}

/* ---- leaking on purpose: in a process of its own ---- */

static int64_t never_end(void *arg)
{
    event_post(arg);
    while (pause() < 0)
        ;
    return 0;
}

static void *nothing(void *arg)
{
    return arg;
}

static int leaks_new(void)
{
    blz_options options = {.workers = 2, .shutdown_ns = 20 * BLZ_MSEC};
    struct event begun = EVENT_INIT;
    int before;
    blz_rt *rt;

    join_thread(start_thread(nothing, NULL)); /* a sanitizer has its own, from the first one on */
    before = nr_threads();
    check(blz_rt_new(&rt, &options) == 0);
    check(BLZ_BLOCK_ON(rt, give) == 0);
    check(blz_blocking_spawn(rt, never_end, &begun, NULL) == 0);
    event_wait(&begun, 1);
    if (blz_rt_free(rt) != -ETIMEDOUT)
        return 1;
    /* The workers have ended all the same. The count before may include a thread that had been
     * joined, but was not quite gone. */
    while (nr_threads() > before + 1)
        sched_yield();
    return 0;
}

struct leaves_one {
    BLZ_FRAME;
    struct event *begun;
};

BLZ_ASYNC(leaves_one)
{
    BLZ_BEGIN;
    check(blz_blocking_spawn(NULL, never_end, self->begun, NULL) == 0);
    event_wait(self->begun, 1);
    BLZ_END(4);
}

static int leaks_run(void)
{
    blz_options options = {.workers = 2, .shutdown_ns = 20 * BLZ_MSEC};
    struct event begun = EVENT_INIT;

    return BLZ_RUN_WITH(&options, leaves_one, .begun = &begun) == -ETIMEDOUT ? 0 : 1;
}

static int leaks_task(void)
{
    blz_options options = {.workers = 2, .shutdown_ns = 20 * BLZ_MSEC};
    struct event begun = EVENT_INIT;
    blz_rt *rt;

    check(blz_rt_new(&rt, &options) == 0);
    check(BLZ_SPAWN_ON(rt, NULL, awaits, .fn = never_end, .arg = &begun) == 0);
    event_wait(&begun, 1);
    return blz_rt_free(rt) == -ETIMEDOUT ? 0 : 1;
}

static const struct {
    const char *name;
    int (*fn)(void);
} children[] = {{"leaks_new", leaks_new}, {"leaks_run", leaks_run}, {"leaks_task", leaks_task}};

static int child_main(const char *name)
{
    alarm(CHILD_SECONDS);
    for (size_t i = 0; i < sizeof children / sizeof children[0]; i++)
        if (strcmp(children[i].name, name) == 0)
            _exit(children[i].fn()); /* threads still run: leave without looking back */
    _exit(99);
}

static void freeing_gives_up_on_a_call_that_never_ends(void **state)
{
    (void)state;
    in_own_process("leaks_new");
}

static void run_gives_up_on_a_call_that_never_ends(void **state)
{
    (void)state;
    in_own_process("leaks_run");
}

static void freeing_gives_up_on_a_task_whose_call_never_ends(void **state)
{
    (void)state;
    in_own_process("leaks_task");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(queued_calls_are_cancelled_and_running_ones_are_waited_for),
        TEST(a_task_waits_for_its_running_call_and_gets_its_result),
        TEST(tasks_whose_calls_are_queued_end_at_once),
        TEST(a_thread_that_waits_for_a_queued_call_is_told),
        TEST(a_call_that_does_not_end_is_reported_until_it_does),
        TEST(a_runtime_that_only_had_blocking_work_is_freed),
        TEST(calls_from_outside_are_refused_from_the_beginning_on),
        TEST(without_a_pool_calls_are_refused_too),
        TEST(a_task_may_still_use_the_pool_in_its_cleanup),
        TEST(a_call_cannot_shut_down_its_own_runtime),
        TEST(in_a_forked_child_there_is_no_pool),
        TEST(freeing_gives_up_on_a_call_that_never_ends),
        TEST(run_gives_up_on_a_call_that_never_ends),
        TEST(freeing_gives_up_on_a_task_whose_call_never_ends),
    };

    if (argc > 1)
        return child_main(argv[1]);
    return RUN_TESTS(tests);
}
