/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of scopes (src/task/scope.c): children end on several workers while the parent joins them.
 * The join returns once all have ended, and nobody touches the scope after that: it is freed at
 * once, so that a late touch is found.
 */
#include "support/small_rt.h"
#include "support/table.h"

#include <blitz/async.h>

static blz_rt *rt;
static blz_scope *scope;
static blz_handle handle;
static uint32_t data[2];

/* ghosts */
static unsigned ended;
static bool freed;

/* ---- tasks ---- */

struct child {
    BLZ_FRAME;
    unsigned i;
    int64_t result;
};

BLZ_ASYNC(child)
{
    BLZ_BEGIN;
    blz__plain_write(&data[self->i]);
    ended++;
    BLZ_END(self->result);
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

static void free_scope(void)
{
    freed = true;
    model_free(scope);
}

struct parent {
    BLZ_FRAME;
    blz_scope_op wait;
    unsigned children;
    bool keeps; /* the scope, which another thread may still use */
    int64_t rc;
};

BLZ_ASYNC(parent)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, scope));
    if (!self->keeps)
        free_scope();
    model_assert(ended == self->children);
    for (unsigned i = 0; i < 2; i++)
        blz__plain_read(&data[i]);
    BLZ_END(self->rc);
}

/* Takes the children one by one. */
struct collector {
    BLZ_FRAME;
    blz_scope_op wait;
    blz_handle child;
    int64_t rc, sum;
};

BLZ_ASYNC(collector)
{
    BLZ_BEGIN;
    for (;;) {
        BLZ_AWAIT(self->rc, blz_scope_next(&self->wait, scope, &self->child));
        if (self->rc <= 0)
            break;
        self->sum += self->child.result;
        blz__plain_read(&data[((struct child *)blz_handle_frame(&self->child))->i]);
        blz_handle_detach(&self->child);
    }
    free_scope();
    BLZ_END(self->sum);
}

/* Has a child that fails, on worker 1, and spawns another one. */
struct spawner {
    BLZ_FRAME;
    blz_scope_op wait;
    int64_t rc;
};

BLZ_ASYNC(spawner)
{
    BLZ_BEGIN;
    self->rc = BLZ_SCOPE_SPAWN(scope, sleeper);
    model_assert(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, scope));
    free_scope();
    model_assert(ended == 2);
    BLZ_END(self->rc);
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

static void set_up(unsigned workers, int policy)
{
    rt = small_rt_new(workers, NULL);
    scope = model_alloc(sizeof *scope, _Alignof(blz_scope));
    blz_scope_init(scope, policy);
    ended = 0;
    freed = false;
}

static void spawn_child(unsigned worker_index, unsigned i, int64_t result)
{
    model_assert(SMALL_RT_ON(&rt->workers[worker_index],
                             BLZ_SCOPE_SPAWN(scope, child, .i = i, .result = result)) == 0);
}

static void spawn_sleeper(unsigned worker_index)
{
    model_assert(SMALL_RT_ON(&rt->workers[worker_index], BLZ_SCOPE_SPAWN(scope, sleeper)) == 0);
}

static int64_t tear_down(void)
{
    int64_t result;

    for (uint32_t i = rt->nr_workers; i-- > 0;) {
        small_rt_be(&rt->workers[i]);
        small_rt_poll_all(&rt->workers[i]);
    }
    model_assert(freed);
    result = small_rt_join(&rt->workers[0], &handle);
    small_rt_free(rt);
    return result;
}

/* ---- models ---- */

static void a_join_returns_when_the_children_on_two_workers_have_ended(void)
{
    set_up(2, BLZ_SCOPE_COLLECT);
    spawn_child(1, 1, 0);
    spawn_child(0, 0, 0);
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, parent, .children = 2)) == 0);
    model_thread other = start_worker(1);
    small_rt_poll_all(&rt->workers[0]);
    model_join(other);
    model_assert(tear_down() == 0);
}

static void children_that_end_at_once_wake_the_parent_once(void)
{
    set_up(3, BLZ_SCOPE_COLLECT);
    spawn_child(1, 1, 0);
    spawn_child(2, 0, 0);
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, parent, .children = 2)) == 0);
    small_rt_poll_all(&rt->workers[0]);
    model_thread first = start_worker(1), second = start_worker(2);
    model_join(first);
    model_join(second);
    model_assert(tear_down() == 0);
}

static void each_child_is_handed_over_once(void)
{
    set_up(2, BLZ_SCOPE_COLLECT);
    spawn_child(1, 1, 20);
    spawn_child(0, 0, 3);
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, collector)) == 0);
    model_thread other = start_worker(1);
    small_rt_poll_all(&rt->workers[0]);
    model_join(other);
    model_assert(tear_down() == 23);
}

static void a_failure_cancels_a_sibling_that_starts_to_wait(void)
{
    set_up(2, BLZ_SCOPE_FAIL_FAST);
    spawn_child(1, 1, -EIO);
    spawn_sleeper(0);
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, parent, .children = 2)) == 0);
    model_thread other = start_worker(1);
    small_rt_poll_all(&rt->workers[0]);
    model_join(other);
    model_assert(tear_down() == -EIO);
}

static void a_failure_against_a_spawn_cancels_the_new_child_too(void)
{
    set_up(2, BLZ_SCOPE_FAIL_FAST);
    spawn_child(1, 1, -EIO);
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, spawner)) == 0);
    model_thread other = start_worker(1);
    small_rt_poll_all(&rt->workers[0]);
    model_join(other);
    model_assert(tear_down() == -EIO);
}

/* From a thread of its own, into a runtime that accepts no more tasks. */
static void a_failure_against_a_spawn_that_is_refused_is_harmless(void)
{
    set_up(2, BLZ_SCOPE_FAIL_FAST);
    blz__inject_close(&rt->inject);
    spawn_child(1, 1, -EIO);
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, parent, .children = 1)) == 0);
    model_thread other = start_worker(1);
    small_rt_be(NULL);
    model_assert(BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = rt, .scope = scope}), sleeper) ==
                 -ESHUTDOWN);
    model_join(other);
    model_assert(tear_down() == -EIO);
}

static void refused_spawn(void *unused)
{
    (void)unused;
    model_assert(BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = rt, .scope = scope}), sleeper) ==
                 -ESHUTDOWN);
}

/* The parent may have counted the child that is then refused. */
static void a_parent_does_not_wait_for_a_spawn_that_is_refused(void)
{
    set_up(1, BLZ_SCOPE_COLLECT);
    blz__inject_close(&rt->inject);
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, parent, .keeps = true)) == 0);
    model_thread other = model_start(refused_spawn, NULL);
    small_rt_poll_all(&rt->workers[0]);
    model_join(other);
    small_rt_poll_all(&rt->workers[0]);
    model_assert(blz_handle_done(&handle));
    free_scope();
    model_assert(tear_down() == 0);
}

static void two_failures_cancel_the_others_once(void)
{
    set_up(2, BLZ_SCOPE_FAIL_FAST);
    spawn_sleeper(0);
    spawn_child(0, 0, -EIO);
    spawn_child(1, 1, -EPIPE);
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, parent, .children = 3)) == 0);
    model_thread other = start_worker(1);
    small_rt_poll_all(&rt->workers[0]);
    model_join(other);
    int64_t result = tear_down();
    model_assert(result == -EIO || result == -EPIPE);
}

/* The parent is told while it waits, and passes it on. */
static void a_cancelled_parent_waits_for_its_children(void)
{
    set_up(2, BLZ_SCOPE_COLLECT);
    spawn_sleeper(1);
    spawn_child(1, 1, 0);
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, parent, .children = 2)) == 0);
    small_rt_poll_all(&rt->workers[0]);
    model_thread other = start_worker(1);
    blz_handle_cancel(&handle);
    small_rt_poll_all(&rt->workers[0]);
    model_join(other);
    model_assert(tear_down() == -ECANCELED);
}

/* ---- children that are freed when they end ---- */

static void discarded_children_wake_the_parent_when_the_last_has_ended(void)
{
    set_up(3, BLZ_SCOPE_DISCARD);
    spawn_child(1, 1, 7);
    spawn_child(2, 0, 0);
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, parent, .children = 2)) == 0);
    small_rt_poll_all(&rt->workers[0]);
    model_thread first = start_worker(1), second = start_worker(2);
    model_join(first);
    model_join(second);
    model_assert(tear_down() == 0);
}

static void a_discarded_failure_is_remembered_and_cancels_the_others(void)
{
    set_up(2, BLZ_SCOPE_FAIL_FAST | BLZ_SCOPE_DISCARD);
    spawn_child(1, 1, -EIO);
    spawn_sleeper(0);
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, parent, .children = 2)) == 0);
    model_thread other = start_worker(1);
    small_rt_poll_all(&rt->workers[0]);
    model_join(other);
    model_assert(tear_down() == -EIO);
}

/* A child that is being cancelled ends, and is freed, by itself. */
static void a_discarded_child_ends_while_it_is_cancelled(void)
{
    set_up(2, BLZ_SCOPE_DISCARD);
    spawn_child(1, 1, 0);
    spawn_child(1, 0, 0);
    model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN_JOIN(&handle, parent, .children = 2)) == 0);
    model_thread other = start_worker(1);
    blz_handle_cancel(&handle);
    small_rt_poll_all(&rt->workers[0]);
    model_join(other);
    model_assert(tear_down() == 0);
}

static const struct model models[] = {
    MODEL(a_join_returns_when_the_children_on_two_workers_have_ended, .stale_reads = 2,
          .reduce = true),
    MODEL(children_that_end_at_once_wake_the_parent_once, .reduce = true),
    MODEL(each_child_is_handed_over_once, .stale_reads = 1, .reduce = true),
    MODEL(a_failure_cancels_a_sibling_that_starts_to_wait, .stale_reads = 2, .reduce = true),
    MODEL(a_failure_against_a_spawn_cancels_the_new_child_too, .reduce = true),
    MODEL(a_failure_against_a_spawn_that_is_refused_is_harmless, .reduce = true),
    MODEL(a_parent_does_not_wait_for_a_spawn_that_is_refused, .stale_reads = 2, .reduce = true),
    MODEL(two_failures_cancel_the_others_once, .stale_reads = MODEL_NONE, .reduce = true),
    MODEL(a_cancelled_parent_waits_for_its_children, .stale_reads = MODEL_NONE, .reduce = true),
    MODEL(discarded_children_wake_the_parent_when_the_last_has_ended, .reduce = true),
    MODEL(a_discarded_failure_is_remembered_and_cancels_the_others, .stale_reads = 1,
          .reduce = true),
    MODEL(a_discarded_child_ends_while_it_is_cancelled, .stale_reads = 1, .reduce = true),
};

MODEL_MAIN(models)
