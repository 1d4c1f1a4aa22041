/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Corners where two rules meet, about beginnings and ends: pinned tasks and joins, callbacks and
 * the shutdown, names, forks and locks, the watchdog's callback. Where it matters who is first, the
 * tests count polls; none of them looks at a clock.
 */
#include "harness.h"

#include "sched/rt.h"

#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a pinned task that joins ---- */

struct ends_before_others {
    BLZ_FRAME;
    struct gate *gate;
    int64_t rc;
    struct gate_wait op;
};

/* Ends while its worker has more to do: one child is in the LIFO slot, the other in the ring. */
BLZ_ASYNC(ends_before_others)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, gate_enter(&self->op, self->gate));
    check(BLZ_SPAWN(give) == 0);
    check(BLZ_SPAWN(give) == 0);
    BLZ_END(thread_id());
}

struct blocks {
    BLZ_FRAME;
    struct event *begun, *until;
};

/* Keeps its worker in one poll until the event has been posted. */
BLZ_ASYNC(blocks)
{
    BLZ_BEGIN;
    event_post(self->begun);
    event_wait(self->until, 1);
    BLZ_END(0);
}

struct meeting {
    struct gate gate; /* in front of the child */
    struct event blocked, release;
    blz_handle child, joiner;
};

struct joins_pinned {
    BLZ_FRAME;
    struct meeting *meeting;
    int thread;
    int64_t rc;
    blz_handle_join_op join;
};

/* When it suspends in its join, another pinned task blocks their worker. */
BLZ_ASYNC(joins_pinned)
{
    BLZ_BEGIN;
    self->thread = thread_id();
    self->rc = BLZ_SPAWN_PINNED(NULL, blocks, .begun = &self->meeting->blocked,
                                .until = &self->meeting->release);
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->meeting->child));
    check(self->rc == 0);
    check(self->meeting->child.result != self->thread);
    BLZ_END(self->thread == thread_id());
}

static int64_t spawn_pinned_joiner(void *arg)
{
    struct meeting *meeting = arg;

    return BLZ_SPAWN_PINNED(&meeting->joiner, joins_pinned, .meeting = meeting);
}

static void a_pinned_task_stays_when_the_child_that_it_joins_ends_elsewhere(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2, .watchdog_ns = BLZ_NEVER});
    struct meeting meeting = {.gate = GATE_INIT, .blocked = EVENT_INIT, .release = EVENT_INIT};

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &meeting.child, ends_before_others, .gate = &meeting.gate),
                     0);
    event_wait(&meeting.gate.arrived, 1);
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = spawn_pinned_joiner, .arg = &meeting), 0);
    event_wait(&meeting.blocked, 1);
    gate_open(&meeting.gate, 0);
    /* The other worker runs the child and what is behind it; only then ours is free again. */
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    event_post(&meeting.release);
    assert_int_equal(blz_handle_wait(&meeting.joiner), 0);
    assert_int_equal(meeting.joiner.result, true);
    free_rt(rt);
}

/* ---- callbacks and the shutdown ---- */

struct slow_callback {
    blz_rt *rt;
    struct event begun;
    bool ended; /* atomic */
};

/* Goes on while the shutdown has nothing else to wait for; it has a thousand chances to end. */
static void outlast_tasks(int64_t result, void *arg)
{
    struct slow_callback *callback = arg;

    check(result == 4);
    event_post(&callback->begun);
    while (blz__load(&callback->rt->phase, RELAXED) == RT_OPEN)
        sched_yield();
    for (int i = 0; i < 1000; i++) {
        check(!blz__load(&callback->rt->drained, RELAXED));
        sched_yield();
    }
    __atomic_store_n(&callback->ended, true, __ATOMIC_RELAXED);
}

static void a_shutdown_returns_after_the_callbacks_have(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2, .watchdog_ns = BLZ_NEVER});
    static struct slow_callback callback; /* stays, should the shutdown not wait for it */
    struct gate gate = GATE_INIT;
    blz_handle handle;

    (void)state;
    callback = (struct slow_callback){.rt = rt, .begun = EVENT_INIT};
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, enters, .gate = &gate), 0);
    event_wait(&gate.arrived, 1);
    assert_int_equal(blz_task_on_done(&handle, outlast_tasks, &callback), 0);
    gate_open(&gate, 4);
    event_wait(&callback.begun, 1);
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    assert_true(__atomic_load_n(&callback.ended, __ATOMIC_RELAXED));
    free_rt(rt);
}

/* ---- names ---- */

struct renames {
    BLZ_FRAME;
    struct gate *gate;
    int64_t rc;
    struct gate_wait op;
};

BLZ_ASYNC(renames)
{
    BLZ_BEGIN;
    check(blz_task_set_name("the first name, long enough for any allocator") == 0);
    BLZ_AWAIT(self->rc, gate_enter(&self->op, self->gate));
    check(blz_task_set_name("the second name, which is somewhere else in memory") == 0);
    check(blz_task_set_name("the third") == 0);
    BLZ_END(self->rc);
}

static void a_name_read_before_a_rename_stays_readable(void **state)
{
    blz_rt *rt = new_embedded_rt();
    struct gate gate = GATE_INIT;
    blz_handle handle;
    const char *first;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, renames, .gate = &gate), 0);
    turn_all(rt);
    first = blz_task_name(handle.task);
    gate_open(&gate, 0);
    turn_all(rt);
    assert_string_equal(first, "the first name, long enough for any allocator");
    assert_string_equal(blz_task_name(handle.task), "the third");
    blz_handle_detach(&handle);
    free_rt(rt);
}

static int64_t say_thread_name(void *arg)
{
    check(pthread_getname_np(pthread_self(), arg, 16) == 0);
    return 0;
}

static void the_name_in_the_options_may_go_after_the_creation(void **state)
{
    char name[] = "server", thread[16];
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .name = name, .watchdog_ns = BLZ_NEVER});

    (void)state;
    memset(name, 'x', sizeof name - 1);
    /* Only now a thread is started. */
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = say_thread_name, .arg = thread), 0);
    assert_string_equal(thread, "server-0");
    free_rt(rt);
}

/* ---- forked children ---- */

/*
 * Runs fn in a child forked at a moment when other threads hold all locks, as they may while they
 * spawn: nobody releases them there.
 */
static void in_locked_child(blz_rt *rt, void (*fn)(void *arg), void *arg)
{
    int status = -1;
    pid_t pid;

    blz__lock_acquire(&rt->workers[0].heap.walk_lock);
    blz__lock_acquire(&rt->foreign_heap.walk_lock);
    blz__lock_acquire(&rt->inject.lock);
    blz__lock_acquire(&rt->pool.lock);
    pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS); /* a call that blocks for ever is a failure too */
        fn(arg);
        _exit(0);
    }
    blz__lock_release(&rt->pool.lock);
    blz__lock_release(&rt->inject.lock);
    blz__lock_release(&rt->foreign_heap.walk_lock);
    blz__lock_release(&rt->workers[0].heap.walk_lock);
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void detach(void *arg)
{
    blz_handle_detach(arg);
}

static void a_forked_child_detaches_while_others_spawn(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle plain, named;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &plain, give), 0);
    assert_int_equal(BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = rt, .handle = &named, .name = "it"}),
                                    give),
                     0);
    turn_all(rt);
    in_locked_child(rt, detach, &plain);
    in_locked_child(rt, detach, &named);
    blz_handle_detach(&plain);
    blz_handle_detach(&named);
    free_rt(rt);
}

struct leaves_waker {
    BLZ_FRAME;
    blz_waker *waker;
};

BLZ_ASYNC(leaves_waker)
{
    BLZ_BEGIN;
    *self->waker = blz_cx_waker(cx);
    BLZ_END(0);
}

static void drop(void *arg)
{
    blz_waker_drop(arg);
}

static void a_forked_child_drops_a_waker_while_others_spawn(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_waker waker;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, leaves_waker, .waker = &waker), 0);
    turn_all(rt);
    in_locked_child(rt, drop, &waker); /* the last reference */
    blz_waker_drop(&waker);
    free_rt(rt);
}

static int64_t run_in_child(void *arg)
{
    pid_t pid = fork();
    int status = -1;

    (void)arg;
    if (pid == 0) {
        blz_options alone = {.workers = 1, .watchdog_ns = BLZ_NEVER};

        alarm(CHILD_SECONDS);
        _exit(BLZ_RUN_WITH(&alone, give, .value = 9) == 9 ? 0 : 1);
    }
    check(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_child_forked_by_a_task_may_have_a_runtime_of_its_own(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2, .watchdog_ns = BLZ_NEVER});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = run_in_child), 0);
    free_rt(rt);
}

/* ---- the watchdog's callback ---- */

struct ending_report {
    blz_rt *rt;
    int shutdown_rc, free_rc;
    struct event called;
};

static void try_to_end(const blz_stuck *stuck, void *arg)
{
    struct ending_report *report = arg;

    (void)stuck;
    if (event_count(&report->called) > 0)
        return;
    report->shutdown_rc = blz_rt_shutdown(report->rt, 0);
    report->free_rc = blz_rt_free(report->rt);
    event_post(&report->called);
}

static void the_watchdogs_callback_cannot_end_the_runtime(void **state)
{
    struct ending_report report = {.called = EVENT_INIT};
    struct event begun = EVENT_INIT;

    (void)state;
    report.rt = new_rt(&(
        blz_options){.workers = 1, .watchdog_ns = 1, .on_stuck = try_to_end, .hook_arg = &report});
    assert_int_equal(BLZ_BLOCK_ON(report.rt, blocks, .begun = &begun, .until = &report.called), 0);
    assert_int_equal(report.shutdown_rc, -EDEADLK);
    assert_int_equal(report.free_rc, -EDEADLK);
    assert_int_equal(BLZ_BLOCK_ON(report.rt, give, .value = 2), 2);
    free_rt(report.rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pinned_task_stays_when_the_child_that_it_joins_ends_elsewhere),
        TEST(a_shutdown_returns_after_the_callbacks_have),
        TEST(a_name_read_before_a_rename_stays_readable),
        TEST(the_name_in_the_options_may_go_after_the_creation),
        TEST(a_forked_child_detaches_while_others_spawn),
        TEST(a_forked_child_drops_a_waker_while_others_spawn),
        TEST(a_child_forked_by_a_task_may_have_a_runtime_of_its_own),
        TEST(the_watchdogs_callback_cannot_end_the_runtime),
    };
    return RUN_TESTS(tests);
}
