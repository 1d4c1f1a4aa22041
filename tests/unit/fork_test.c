/* SPDX-License-Identifier: Apache-2.0 */
/* After a fork: the child may not use its parent's runtime, and says so at every door. */
#include "harness.h"

#include "sched/rt.h"

#include <sys/wait.h>
#include <unistd.h>

/* Runs fn in a forked child; gives the number of the check that failed there, or 0. */
static int in_child(int (*fn)(void *arg), void *arg)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        alarm(CHILD_SECONDS); /* a call that blocks for ever is a failure too */
        _exit(fn(arg));
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

struct parts {
    blz_rt *rt;
    blz_handle waiting, finished;
};

static void ignore_line(const char *line, void *arg)
{
    (void)arg;
    (void)line;
}

static void ignore_result(int64_t result, void *arg)
{
    (void)arg;
    (void)result;
}

/* What can be asked, in the order of the numbers that are returned. */
static int use_runtime(void *arg)
{
    struct parts *parts = arg;
    blz_rt *rt = parts->rt;
    blz_handle handle = {NULL, 0};

    if (BLZ_SPAWN_ON(rt, NULL, give) != -EOWNERDEAD)
        return 1;
    if (BLZ_SPAWN_ON(rt, &handle, give) != -EOWNERDEAD || handle.task)
        return 2;
    if (BLZ_BLOCK_ON(rt, give) != -EOWNERDEAD)
        return 3;
    if (blz_task_dump(rt, ignore_line, NULL) != -EOWNERDEAD)
        return 4;
    if (blz_task_dump_fd(rt, STDERR_FILENO) != -EOWNERDEAD)
        return 5;
    if (blz_handle_wait(&parts->waiting) != -EOWNERDEAD)
        return 6;
    if (blz_task_on_done(&parts->waiting, ignore_result, NULL) != -EOWNERDEAD)
        return 7;
    if (blz_rt_shutdown(rt, 0) != -EOWNERDEAD)
        return 8;
    if (blz_rt_free(rt) != -EOWNERDEAD)
        return 9;
    return 0;
}

static void every_call_of_the_child_says_that_the_owner_is_gone(void **state)
{
    struct parts parts = {.rt = new_rt(&(blz_options){.workers = 2})};
    struct event started = EVENT_INIT;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(parts.rt, &parts.waiting, sleeps, .started = &started), 0);
    event_wait(&started, 1);
    assert_int_equal(in_child(use_runtime, &parts), 0);
    /* and the parent goes on */
    assert_int_equal(BLZ_BLOCK_ON(parts.rt, yields, .times = 10, .value = 4), 4);
    blz_handle_cancel(&parts.waiting);
    assert_int_equal(blz_handle_wait(&parts.waiting), 0);
    assert_int_equal(parts.waiting.result, -ECANCELED);
    free_rt(parts.rt);
}

static int use_embedded(void *arg)
{
    if (blz_rt_turn(arg) != -EOWNERDEAD)
        return 1;
    if (BLZ_SPAWN_ON((blz_rt *)arg, NULL, give) != -EOWNERDEAD)
        return 2;
    if (blz_rt_free(arg) != -EOWNERDEAD)
        return 3;
    return 0;
}

static void an_embedded_runtime_says_so_too(void **state)
{
    blz_rt *rt = new_embedded_rt();

    (void)state;
    turn_all(rt);
    assert_int_equal(in_child(use_embedded, rt), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, give), 0);
    assert_int_equal(turn_all(rt), 1);
    free_rt(rt);
}

static int use_unstarted(void *arg)
{
    if (BLZ_SPAWN_ON((blz_rt *)arg, NULL, give) != -EOWNERDEAD)
        return 1;
    return blz_rt_free(arg) == -EOWNERDEAD ? 0 : 2;
}

static void a_runtime_that_was_not_started_before_the_fork_says_so_too(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    assert_int_equal(in_child(use_unstarted, rt), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 2), 2);
    free_rt(rt);
}

static int64_t fork_in_task(void *arg)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        alarm(CHILD_SECONDS);
        /* On what is a worker's thread, in the middle of a poll. */
        if (BLZ_SPAWN(give) != -EOWNERDEAD)
            _exit(1);
        if (BLZ_SPAWN_ON((blz_rt *)arg, NULL, give) != -EOWNERDEAD)
            _exit(2);
        _exit(0);
    }
    check(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_task_that_forks_cannot_spawn_in_the_child(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2, .watchdog_ns = BLZ_NEVER});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = fork_in_task, .arg = rt), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    free_rt(rt);
}

struct large {
    BLZ_FRAME;
    char bytes[10000]; /* so many that its memory is a piece of its own */
};

BLZ_ASYNC(large)
{
    BLZ_BEGIN;
    BLZ_END(0);
}

/* The locks are held as another thread of the parent's could hold them: a dump, another worker. */
static int64_t fork_and_free(blz_handle *handle)
{
    blz_worker *w = blz__worker_current();
    const void *chunks = w->heap.all;
    int status = -1;
    pid_t pid;

    blz__lock_acquire(&w->heap.walk_lock);
    blz__lock_acquire(&w->rt->pool.lock);
    pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        blz_handle_detach(handle); /* the last handle */
        if (w->heap.all != chunks)
            _exit(2); /* the lists of the heap stay as they are */
        _exit(blz_task_set_name("child") == -EOWNERDEAD ? 0 : 1);
    }
    blz__lock_release(&w->rt->pool.lock);
    blz__lock_release(&w->heap.walk_lock);
    check(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status;
}

struct forks {
    BLZ_FRAME;
    blz_handle handle, newer; /* the second is at the head of the heap's list */
    blz_future op;
    int64_t rc;
};

BLZ_ASYNC(forks)
{
    BLZ_BEGIN;
    check(BLZ_SPAWN_JOIN(&self->handle, large) == 0);
    check(BLZ_SPAWN_JOIN(&self->newer, large) == 0);
    while (!blz_handle_done(&self->handle) || !blz_handle_done(&self->newer))
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
    self->rc = fork_and_free(&self->handle);
    blz_handle_detach(&self->handle);
    blz_handle_detach(&self->newer);
    BLZ_END(self->rc);
}

static void a_task_that_forks_frees_in_the_child_without_locks(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, forks), 0);
    free_rt(rt);
}

static int finished_in_child(void *arg)
{
    struct parts *parts = arg;

    /* It had ended before the fork: its result is as good as any other memory. */
    if (!blz_handle_done(&parts->finished) || !blz_handle_frame(&parts->finished))
        return 1;
    return 0;
}

static void results_from_before_the_fork_can_be_read(void **state)
{
    struct parts parts = {.rt = new_embedded_rt()};

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(parts.rt, &parts.finished, give, .value = 8), 0);
    turn_all(parts.rt);
    assert_int_equal(in_child(finished_in_child, &parts), 0);
    blz_handle_detach(&parts.finished);
    free_rt(parts.rt);
}

static int wake_in_child(void *arg)
{
    gate_open(arg, 1);
    return 0;
}

static void a_wake_in_the_child_does_no_harm(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct gate gate = GATE_INIT;
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, enters, .gate = &gate), 0);
    event_wait(&gate.arrived, 1);
    assert_int_equal(in_child(wake_in_child, &gate), 0);
    assert_false(blz_handle_done(&handle));
    gate_open(&gate, 3);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 3);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_call_of_the_child_says_that_the_owner_is_gone),
        TEST(an_embedded_runtime_says_so_too),
        TEST(a_runtime_that_was_not_started_before_the_fork_says_so_too),
        TEST(a_task_that_forks_cannot_spawn_in_the_child),
        TEST(a_task_that_forks_frees_in_the_child_without_locks),
        TEST(results_from_before_the_fork_can_be_read),
        TEST(a_wake_in_the_child_does_no_harm),
    };
    return RUN_TESTS(tests);
}
