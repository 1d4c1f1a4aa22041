/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Corners where two rules meet: pinned tasks and joins, cancellations and spent budgets, callbacks
 * and the shutdown, joins in place and everybody else, forks and locks, options of one. Where it
 * matters who is first, the tests count polls; none of them looks at a clock.
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
    self->rc = BLZ_SPAWN_LOCAL(NULL, blocks, .begun = &self->meeting->blocked,
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

    return BLZ_SPAWN_LOCAL(&meeting->joiner, joins_pinned, .meeting = meeting);
}

static void a_pinned_task_stays_when_the_child_that_it_joins_ends_elsewhere(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2, .watchdog_ns = -1});
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

/* ---- cancellations before the first poll that gets anywhere ---- */

static blz_rt *new_frugal_rt(void)
{
    return new_rt(&(blz_options){.embedded = true, .watchdog_ns = -1, .budget = 5});
}

/* From now on the task is cancelled, which it is told at its next poll; and it must let go. */
static void cancel_and_spend_budget(blz_cx *cx)
{
    blz_task_cancel(cx->task);
    while (cx->budget > 0)
        check(blz_coop_take(cx));
}

struct receives_late {
    BLZ_FRAME;
    blz_oneshot *channel;
    int64_t rc, value;
    blz_oneshot_op wait;
};

BLZ_ASYNC(receives_late)
{
    BLZ_BEGIN;
    cancel_and_spend_budget(cx);
    BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, self->channel, &self->value));
    BLZ_END(self->rc < 0 ? self->rc : self->value);
}

static int64_t result_of(blz_handle *handle)
{
    assert_true(blz_handle_done(handle));
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

static void a_receiver_without_budget_is_cancelled(void **state)
{
    blz_rt *rt = new_frugal_rt();
    blz_oneshot channel;
    blz_handle handle;

    (void)state;
    blz_oneshot_init(&channel);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives_late, .channel = &channel), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    assert_int_equal(blz_oneshot_try_recv(&channel, NULL), -EAGAIN); /* it may be repeated */
    free_rt(rt);
}

static void a_value_sent_before_wins_over_the_cancellation_of_a_receiver_without_budget(
    void **state)
{
    blz_rt *rt = new_frugal_rt();
    blz_oneshot channel;
    blz_handle handle;

    (void)state;
    blz_oneshot_init(&channel);
    assert_int_equal(blz_oneshot_send(&channel, 6), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives_late, .channel = &channel), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 6);
    free_rt(rt);
}

struct joins_late {
    BLZ_FRAME;
    blz_handle *child;
    int64_t rc;
    blz_handle_join_op join;
};

BLZ_ASYNC(joins_late)
{
    BLZ_BEGIN;
    cancel_and_spend_budget(cx);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, self->child));
    BLZ_END(self->rc);
}

static void a_joiner_without_budget_is_cancelled_and_keeps_its_handle(void **state)
{
    blz_rt *rt = new_frugal_rt();
    struct gate gate = GATE_INIT;
    blz_handle handle, child;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &child, enters, .gate = &gate), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, joins_late, .child = &child), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    gate_open(&gate, 8);
    turn_all(rt);
    assert_int_equal(result_of(&child), 8);
    free_rt(rt);
}

/* A future that is a task by itself, cancelled before its first poll. */
static int64_t spawn_and_cancel(blz_rt *rt, const void *future, size_t size)
{
    blz_handle handle;

    assert_int_equal(blz_spawn(&(blz_spawn_args){.rt = rt, .handle = &handle}, future, size), 0);
    blz_handle_cancel(&handle);
    turn_all(rt);
    return result_of(&handle);
}

static void a_receive_that_is_a_task_is_cancelled_before_its_first_poll(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_oneshot_op wait;
    blz_oneshot channel;

    (void)state;
    blz_oneshot_init(&channel);
    blz_oneshot_recv(&wait, &channel, NULL);
    assert_int_equal(spawn_and_cancel(rt, &wait, sizeof wait), -ECANCELED);
    assert_int_equal(blz_oneshot_try_recv(&channel, NULL), -EAGAIN); /* it may be repeated */
    free_rt(rt);
}

static void a_join_that_is_a_task_is_cancelled_before_its_first_poll(void **state)
{
    blz_rt *rt = new_embedded_rt();
    struct gate gate = GATE_INIT;
    blz_handle child;
    blz_handle_join_op join;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &child, enters, .gate = &gate), 0);
    turn_all(rt);
    blz_handle_join(&join, &child);
    assert_int_equal(spawn_and_cancel(rt, &join, sizeof join), -ECANCELED);
    gate_open(&gate, 9);
    turn_all(rt);
    assert_int_equal(result_of(&child), 9);
    free_rt(rt);
}

/* ---- callbacks and the shutdown ---- */

struct slow_callback {
    blz_rt *rt;
    struct event begun;
    bool ended; /* atomic */
};

/* Goes on while the shutdown has nothing else to wait for; it has a thousand chances to end. */
static void outlast_tasks(void *arg, int64_t result)
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
    blz_rt *rt = new_rt(&(blz_options){.workers = 2, .watchdog_ns = -1});
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
    assert_int_equal(blz_rt_shutdown(rt, -1), 0);
    assert_true(__atomic_load_n(&callback.ended, __ATOMIC_RELAXED));
    free_rt(rt);
}

/* ---- joins in place ---- */

enum { FAN = 100, LEAVES = FAN * FAN, SOON = 500, INTERVAL = 20 };

struct level {
    BLZ_FRAME;
    int depth;
    int64_t *leaves;
    int i;
    int64_t rc;
    blz_handle handle;
    blz_handle_join_op join;
};
BLZ_DECLARE(level);

/* A tree of tasks, each of which can run in place. */
BLZ_ASYNC(level)
{
    BLZ_BEGIN;
    if (self->depth == 0)
        ++*self->leaves;
    for (; self->depth > 0 && self->i < FAN; self->i++) {
        self->rc =
            BLZ_SPAWN_JOIN(&self->handle, level, .depth = self->depth - 1, .leaves = self->leaves);
        check(self->rc == 0);
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
        check(self->rc == 0);
    }
    BLZ_END(0);
}

struct copies {
    BLZ_FRAME;
    int64_t *from, *to;
};

/* Notes how far a counter is when it runs. */
BLZ_ASYNC(copies)
{
    BLZ_BEGIN;
    *self->to = *self->from;
    BLZ_END(0);
}

struct tree {
    blz_rt *rt;
    bool from_outside;
    int64_t leaves, leaves_before;
    blz_stats stats;
};

static void *spawn_copies(void *arg)
{
    struct tree *tree = arg;

    check(BLZ_SPAWN_ON(tree->rt, NULL, copies, .from = &tree->leaves, .to = &tree->leaves_before) ==
          0);
    return NULL;
}

struct grows {
    BLZ_FRAME;
    struct tree *tree;
    int64_t rc;
    blz_handle handle;
    blz_handle_join_op join;
};

/* Another task waits in the ring or in the inject queue when the tree begins to grow. */
BLZ_ASYNC(grows)
{
    BLZ_BEGIN;
    if (self->tree->from_outside)
        join_thread(start_thread(spawn_copies, self->tree));
    else
        spawn_copies(self->tree);
    self->rc = BLZ_SPAWN_JOIN(&self->handle, level, .depth = 2, .leaves = &self->tree->leaves);
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    blz_rt_stats(self->tree->rt, &self->tree->stats);
    BLZ_END(self->rc);
}

static struct tree grow(bool from_outside)
{
    struct tree tree = {.from_outside = from_outside, .leaves_before = -1};

    tree.rt = new_rt(&(blz_options){
        .workers = 1, .watchdog_ns = -1, .inject_interval = INTERVAL, .event_interval = INTERVAL});
    assert_int_equal(BLZ_BLOCK_ON(tree.rt, grows, .tree = &tree), 0);
    free_rt(tree.rt);
    assert_int_equal(tree.leaves, LEAVES);
    assert_true(tree.stats.total.inline_joins > LEAVES / 2);
    return tree;
}

static void joins_in_place_let_the_ring_have_its_turn(void **state)
{
    (void)state;
    assert_in_range(grow(false).leaves_before, 0, SOON);
}

static void joins_in_place_let_the_inject_queue_have_its_turn(void **state)
{
    (void)state;
    assert_in_range(grow(true).leaves_before, 0, SOON);
}

static void joins_in_place_count_towards_the_next_maintenance(void **state)
{
    struct tree tree = grow(false);

    (void)state;
    assert_true(tree.stats.total.maintenances >= tree.stats.total.polls / INTERVAL / 2);
}

struct spends_all {
    BLZ_FRAME;
};

BLZ_ASYNC(spends_all)
{
    BLZ_BEGIN;
    while (cx->budget > 0)
        check(blz_coop_take(cx));
    BLZ_END(0);
}

struct pays {
    BLZ_FRAME;
    uint32_t left;
    int64_t rc;
    blz_handle handle;
    blz_handle_join_op join;
};

BLZ_ASYNC(pays)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_JOIN(&self->handle, spends_all);
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    check(self->rc == 0);
    self->left = cx->budget;
    BLZ_END(self->left);
}

static void a_join_in_place_is_paid_from_the_joiners_budget(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;
    blz_stats stats;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, give), 0);
    turn_all(rt);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, pays), 0);
    turn_all(rt);
    blz_rt_stats(rt, &stats);
    assert_int_equal(stats.total.inline_joins, 1);
    assert_int_equal(result_of(&handle), 0);
    free_rt(rt);
}

/* ---- many that yield ---- */

enum { PATIENCE = 20000 };

static struct {
    uint64_t polls; /* of those that yield; atomic */
    int ran;        /* of those that came late */
} crowded;

static uint64_t crowd_polls(void)
{
    return __atomic_load_n(&crowded.polls, __ATOMIC_RELAXED);
}

static int64_t note_run(void *arg)
{
    ++*(int *)arg;
    return 0;
}

struct crowd {
    BLZ_FRAME;
    int yielding, pinned_yielding;
    int late, pinned_late;
    uint64_t limit;
    int64_t rc;
    blz_future op;
};

/* When all others yield already, a few more come: how many of those run before long? */
BLZ_ASYNC(crowd)
{
    BLZ_BEGIN;
    for (int i = 0; i < self->yielding; i++)
        check(BLZ_SPAWN(yields, .times = INT32_MAX, .count = &crowded.polls) == 0);
    for (int i = 0; i < self->pinned_yielding; i++)
        check(BLZ_SPAWN_LOCAL(NULL, yields, .times = INT32_MAX, .count = &crowded.polls) == 0);
    self->limit = 2 * (uint64_t)(self->yielding + self->pinned_yielding);
    while (crowd_polls() < self->limit)
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
    for (int i = 0; i < self->late; i++)
        check(BLZ_SPAWN(calls, .fn = note_run, .arg = &crowded.ran) == 0);
    for (int i = 0; i < self->pinned_late; i++)
        check(BLZ_SPAWN_LOCAL(NULL, calls, .fn = note_run, .arg = &crowded.ran) == 0);
    self->limit = crowd_polls() + PATIENCE;
    while (crowd_polls() < self->limit && crowded.ran < self->late + self->pinned_late)
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
    BLZ_END(crowded.ran);
}

static void late_tasks_run(int yielding, int pinned_yielding, int late, int pinned_late,
                           unsigned event_interval)
{
    blz_rt *rt =
        new_rt(&(blz_options){.workers = 1, .watchdog_ns = -1, .event_interval = event_interval});

    memset(&crowded, 0, sizeof crowded);
    assert_int_equal(BLZ_BLOCK_ON(rt, crowd, .yielding = yielding,
                                  .pinned_yielding = pinned_yielding, .late = late,
                                  .pinned_late = pinned_late),
                     late + pinned_late);
    free_rt(rt);
}

static void a_pinned_task_is_not_starved_by_yielding_ones(void **state)
{
    (void)state;
    late_tasks_run(500, 0, 0, 3, 0);
}

static void a_pinned_task_is_not_starved_where_each_poll_ends_with_maintenance(void **state)
{
    (void)state;
    late_tasks_run(3, 0, 0, 3, 1);
}

static void tasks_of_the_ring_are_not_starved_by_pinned_yielding_ones(void **state)
{
    (void)state;
    late_tasks_run(0, 500, 40, 0, 0);
    late_tasks_run(0, 3, 40, 0, 1);
}

/* ---- futures around the join of a scope ---- */

struct cleans_up {
    BLZ_FRAME;
    struct gate *gate;
    int64_t rc;
    struct gate_wait op;
};

BLZ_ASYNC(cleans_up)
{
    BLZ_BEGIN;
    BLZ_AWAIT_SHIELDED(self->rc, gate_enter(&self->op, self->gate));
    BLZ_END(self->rc);
}

static int64_t same(void *arg, int64_t result)
{
    ++*(int *)arg;
    return result;
}

static blz_future *no_more(void *arg, int64_t result)
{
    (void)result;
    ++*(int *)arg;
    return NULL;
}

struct wraps_join {
    BLZ_FRAME;
    struct gate *gate;
    bool by_then;
    int called;
    int64_t rc;
    blz_future op;
    blz_scope scope;
    blz_scope_wait wait;
    blz_map map;
    blz_then then;
};

/* Is cancelled before it joins. Gives the number of its children that still live after that. */
BLZ_ASYNC(wraps_join)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    check(BLZ_SCOPE_SPAWN(&self->scope, cleans_up, .gate = self->gate) == 0);
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    check(self->rc == -ECANCELED);
    if (self->by_then)
        BLZ_AWAIT(self->rc, blz_then_init(&self->then, blz_scope_join(&self->wait, &self->scope),
                                          no_more, &self->called));
    else
        BLZ_AWAIT(self->rc, blz_map_init(&self->map, blz_scope_join(&self->wait, &self->scope),
                                         same, &self->called));
    check(self->called == 1);
    BLZ_END((int64_t)blz_scope_live(&self->scope));
}

static void cancel_wrapped_join(bool by_then)
{
    blz_rt *rt = new_embedded_rt();
    struct gate gate = GATE_INIT;
    blz_handle handle;

    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, wraps_join, .gate = &gate, .by_then = by_then), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    gate_open(&gate, 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    free_rt(rt);
}

static void a_mapped_join_in_a_cancelled_task_still_joins(void **state)
{
    (void)state;
    cancel_wrapped_join(false);
}

static void a_join_with_something_after_it_in_a_cancelled_task_still_joins(void **state)
{
    (void)state;
    cancel_wrapped_join(true);
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
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .name = name, .watchdog_ns = -1});

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
        blz_options alone = {.workers = 1, .watchdog_ns = -1};

        alarm(CHILD_SECONDS);
        _exit(BLZ_RUN_WITH(&alone, give, .value = 9) == 9 ? 0 : 1);
    }
    check(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_child_forked_by_a_task_may_have_a_runtime_of_its_own(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2, .watchdog_ns = -1});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = run_in_child), 0);
    free_rt(rt);
}

/* ---- branches that are cancelled ---- */

struct goes_on {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
};

/* One await after it has been cancelled. */
BLZ_ASYNC(goes_on)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_pending(&self->op));
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    BLZ_END(self->rc);
}

struct gives_up {
    blz_future future;
    bool gave_up;
    struct goes_on inner;
};

static blz_poll gives_up_poll(blz_future *future, blz_cx *cx)
{
    struct gives_up *self = (struct gives_up *)future;

    if (blz_poll_branch(&self->inner.blz_frame, cx) == BLZ_READY)
        return blz_future_done(future, self->inner.blz_frame.result);
    if (self->gave_up)
        return BLZ_PENDING;
    self->gave_up = true;
    blz_cancel_branch(&self->inner.blz_frame, cx);
    return blz_cx_yield(cx);
}

static blz_future *gives_up_init(struct gives_up *op)
{
    static const blz_future_ops ops = {.name = "gives_up", .poll = gives_up_poll};

    *op = (struct gives_up){.future.ops = &ops, .inner.blz_frame.ops = &goes_on_ops};
    return &op->future;
}

struct gives_up_often {
    BLZ_FRAME;
    int times;
    int64_t rc;
    struct gives_up op;
};

BLZ_ASYNC(gives_up_often)
{
    BLZ_BEGIN;
    for (; self->times > 0; self->times--) {
        BLZ_AWAIT(self->rc, gives_up_init(&self->op));
        check(self->rc == -ECANCELED);
    }
    check(!blz_cancelled(cx));
    BLZ_END(0);
}

static void count_refused(void *arg, const blz_stuck *stuck)
{
    *(int *)arg += stuck->refused;
}

static void a_task_whose_branches_are_cancelled_does_not_ignore_its_cancellation(void **state)
{
    int reports = 0;
    blz_rt *rt = new_rt(&(blz_options){
        .embedded = true, .watchdog_ns = -1, .on_stuck = count_refused, .hook_arg = &reports});
    blz_handle handle;
    blz_stats stats;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, gives_up_often, .times = 1500), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 0);
    blz_rt_stats(rt, &stats);
    assert_int_equal(stats.total.refused, 1500);
    assert_int_equal(reports, 0);
    free_rt(rt);
}

/* ---- options of one ---- */

struct mixes {
    BLZ_FRAME;
    int i;
    int64_t rc;
    blz_future op;
    blz_scope scope;
    blz_scope_wait scope_wait;
    blz_handle handle;
    blz_handle_join_op join;
    blz_oneshot channel;
    blz_oneshot_op wait;
    int64_t leaves, value;
};

/* A little of everything. */
BLZ_ASYNC(mixes)
{
    BLZ_BEGIN;
    for (; self->i < 20; self->i++) {
        blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
        for (int i = 0; i < 10; i++)
            check(BLZ_SCOPE_SPAWN(&self->scope, yields, .times = 5) == 0);
        self->rc = BLZ_SPAWN_LOCAL(&self->handle, yields, .times = 5, .value = 3);
        check(self->rc == 0);
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
        check(self->rc == 0 && self->handle.result == 3);
        blz_oneshot_init(&self->channel);
        check(blz_oneshot_send(&self->channel, self->i) == 0);
        BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, &self->channel, &self->value));
        check(self->rc == 0 && self->value == self->i);
        BLZ_AWAIT(self->rc, blz_scope_join(&self->scope_wait, &self->scope));
        check(self->rc == 0);
    }
    self->rc = BLZ_SPAWN_JOIN(&self->handle, level, .depth = 1, .leaves = &self->leaves);
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    check(self->rc == 0);
    BLZ_END(self->leaves);
}

static void options_of_one_work_alone_and_together(void **state)
{
    static const blz_options all[] = {
        {.watchdog_ns = 1},
        {.watchdog_ns = -1, .inject_interval = 1},
        {.watchdog_ns = -1, .budget = 1},
        {.watchdog_ns = -1, .event_interval = 1},
        {.watchdog_ns = 1, .inject_interval = 1, .budget = 1, .event_interval = 1},
    };

    (void)state;
    for (unsigned i = 0; i < 2 * sizeof all / sizeof all[0]; i++) {
        blz_options options = all[i / 2];
        options.workers = 1 + i % 2;
        blz_rt *rt = new_rt(&options);
        blz_handle handles[4];
        for (int j = 0; j < 4; j++)
            assert_int_equal(BLZ_SPAWN_ON(rt, &handles[j], mixes), 0);
        for (int j = 0; j < 4; j++) {
            assert_int_equal(blz_handle_wait(&handles[j]), 0);
            assert_int_equal(handles[j].result, FAN);
        }
        free_rt(rt);
    }
}

static void the_watchdog_does_not_look_all_the_time(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .watchdog_ns = 1});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    assert_true(rt->watchdog.limit_ns >= BLZ_MSEC);
    free_rt(rt);
}

enum { CHAIN = 20000 };

struct chain {
    blz_rt *rt;
    int64_t links, links_before;
    struct event ended;
};

/* A callback is no task: what it spawns goes through the inject queue, which is never empty so. */
static void spawn_next(void *arg, int64_t result)
{
    struct chain *chain = arg;
    blz_handle handle;

    check(result == 0);
    if (++chain->links == CHAIN) {
        event_post(&chain->ended);
        return;
    }
    check(BLZ_SPAWN_ON(chain->rt, &handle, give) == 0);
    check(blz_task_on_done(&handle, spawn_next, chain) == 0);
}

/* One task waits in the ring when the chain begins. */
static int64_t begin_chain(void *arg)
{
    struct chain *chain = arg;
    blz_handle handle;

    check(BLZ_SPAWN(copies, .from = &chain->links, .to = &chain->links_before) == 0);
    check(BLZ_SPAWN_JOIN(&handle, give) == 0);
    check(blz_task_on_done(&handle, spawn_next, chain) == 0);
    return 0;
}

static void an_inject_interval_of_one_lets_other_tasks_run(void **state)
{
    struct chain chain = {.links_before = -1, .ended = EVENT_INIT};

    (void)state;
    chain.rt = new_rt(&(blz_options){.workers = 1, .watchdog_ns = -1, .inject_interval = 1});
    assert_int_equal(BLZ_BLOCK_ON(chain.rt, calls, .fn = begin_chain, .arg = &chain), 0);
    event_wait(&chain.ended, 1);
    free_rt(chain.rt);
    assert_in_range(chain.links_before, 0, SOON);
}

/* ---- the watchdog's callback ---- */

struct ending_report {
    blz_rt *rt;
    int shutdown_rc, free_rc;
    struct event called;
};

static void try_to_end(void *arg, const blz_stuck *stuck)
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
        TEST(a_receiver_without_budget_is_cancelled),
        TEST(a_value_sent_before_wins_over_the_cancellation_of_a_receiver_without_budget),
        TEST(a_joiner_without_budget_is_cancelled_and_keeps_its_handle),
        TEST(a_receive_that_is_a_task_is_cancelled_before_its_first_poll),
        TEST(a_join_that_is_a_task_is_cancelled_before_its_first_poll),
        TEST(a_shutdown_returns_after_the_callbacks_have),
        TEST(joins_in_place_let_the_ring_have_its_turn),
        TEST(joins_in_place_let_the_inject_queue_have_its_turn),
        TEST(joins_in_place_count_towards_the_next_maintenance),
        TEST(a_join_in_place_is_paid_from_the_joiners_budget),
        TEST(a_pinned_task_is_not_starved_by_yielding_ones),
        TEST(a_pinned_task_is_not_starved_where_each_poll_ends_with_maintenance),
        TEST(tasks_of_the_ring_are_not_starved_by_pinned_yielding_ones),
        TEST(a_mapped_join_in_a_cancelled_task_still_joins),
        TEST(a_join_with_something_after_it_in_a_cancelled_task_still_joins),
        TEST(a_name_read_before_a_rename_stays_readable),
        TEST(the_name_in_the_options_may_go_after_the_creation),
        TEST(a_forked_child_detaches_while_others_spawn),
        TEST(a_forked_child_drops_a_waker_while_others_spawn),
        TEST(a_child_forked_by_a_task_may_have_a_runtime_of_its_own),
        TEST(a_task_whose_branches_are_cancelled_does_not_ignore_its_cancellation),
        TEST(options_of_one_work_alone_and_together),
        TEST(the_watchdog_does_not_look_all_the_time),
        TEST(an_inject_interval_of_one_lets_other_tasks_run),
        TEST(the_watchdogs_callback_cannot_end_the_runtime),
    };
    return RUN_TESTS(tests);
}
