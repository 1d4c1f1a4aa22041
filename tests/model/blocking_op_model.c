/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on the blocking pool as tasks and threads make them (src/blocking/op.c, owned.c, pool.c):
 * the result arrives, whoever waits is woken, cancelled or not, and the memory of a call is the
 * caller's again as soon as it is told: the tests free it then, so that a pool that touches it
 * afterwards is caught. Arguments of owned calls are destroyed exactly once.
 */
#include "support/small_rt.h"
#include "support/table.h"

#include <blitz/async.h>
#include <blitz/blocking.h>

#include <errno.h>
#include <string.h>

enum { VALUE = 42 };

static blz_rt *rt;
static blz_handle handle;

/* ---- an argument that keeps score: handed from thread to thread, never shared ---- */

struct parcel {
    unsigned calls, destroyed;
};

static struct parcel parcel;

static int64_t open_parcel(void *arg)
{
    struct parcel *p = arg;

    blz__plain_write(p);
    model_assert(p->calls == 0 && p->destroyed == 0);
    p->calls++;
    return VALUE;
}

static void destroy_parcel(void *arg)
{
    struct parcel *p = arg;

    blz__plain_write(p);
    model_assert(p->destroyed == 0);
    p->destroyed++;
}

/* ---- tasks ---- */

/* The call is over: all that the pool did to it came before. */
static void take_back(blz_blocking_op *op)
{
    blz__plain_write(&op->value);
    blz__plain_write(&op->waker);
    model_free(op);
}

struct caller {
    BLZ_FRAME;
    blz_blocking_op *op;
    int64_t rc;
};

BLZ_ASYNC(caller)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_blocking(self->op, open_parcel, &parcel));
    take_back(self->op);
    blz__plain_read(&parcel);
    model_assert(self->rc == (parcel.calls ? VALUE : -ECANCELED));
    BLZ_END(self->rc);
}

struct starter {
    BLZ_FRAME;
    blz_blocking_op *op;
    int64_t rc;
};

BLZ_ASYNC(starter)
{
    BLZ_BEGIN;
    self->rc = blz_blocking_start(self->op, open_parcel, &parcel, NULL);
    model_assert(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_blocking_join(self->op));
    take_back(self->op);
    blz__plain_read(&parcel);
    model_assert(self->rc == (parcel.calls ? VALUE : -ECANCELED));
    BLZ_END(self->rc);
}

struct owner {
    BLZ_FRAME;
    blz_blocking_owned_op *op;
    int64_t rc;
};

BLZ_ASYNC(owner)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_blocking_owned(self->op, open_parcel, &parcel, destroy_parcel));
    model_free(self->op);
    if (self->rc == VALUE) {
        blz__plain_read(&parcel);
        model_assert(parcel.calls == 1 && parcel.destroyed == 1);
    } else {
        model_assert(self->rc == -ECANCELED);
    }
    BLZ_END(self->rc);
}

/* ---- a runtime whose worker is the test ---- */

static void begin(void)
{
    rt = small_rt_new(1, NULL);
    parcel = (struct parcel){0, 0};
    small_rt_be(&rt->workers[0]);
}

#define NEW(type) ((type *)memset(model_alloc(sizeof(type), _Alignof(type)), 0, sizeof(type)))

/* Polls until the task has ended, closes the pool, and frees everything. */
static void end(void)
{
    small_rt_join(&rt->workers[0], &handle);
    small_rt_be(NULL);
    model_assert(rt->blocking->close(rt->blocking, INT64_MAX) == 0);
    small_rt_free(rt);
}

static void cancel(void *unused)
{
    (void)unused;
    blz_handle_cancel(&handle);
}

/* ---- awaiting ---- */

static void a_call_gives_its_result_and_its_memory_back(void)
{
    begin();
    model_assert(SMALL_RT_ON(&rt->workers[0],
                             BLZ_SPAWN_JOIN(&handle, caller, .op = NEW(blz_blocking_op))) == 0);
    end();
}

static void a_call_that_is_cancelled_is_made_or_not(void)
{
    begin();
    model_assert(SMALL_RT_ON(&rt->workers[0],
                             BLZ_SPAWN_JOIN(&handle, caller, .op = NEW(blz_blocking_op))) == 0);
    small_rt_poll_all(&rt->workers[0]); /* it is under way */
    cancel(NULL);
    end();
}

static void a_started_call_is_joined_before_or_after_it_has_ended(void)
{
    begin();
    model_assert(SMALL_RT_ON(&rt->workers[0],
                             BLZ_SPAWN_JOIN(&handle, starter, .op = NEW(blz_blocking_op))) == 0);
    end();
}

static void a_started_call_that_is_cancelled_is_made_or_not(void)
{
    begin();
    model_assert(SMALL_RT_ON(&rt->workers[0],
                             BLZ_SPAWN_JOIN(&handle, starter, .op = NEW(blz_blocking_op))) == 0);
    small_rt_poll_all(&rt->workers[0]);
    cancel(NULL);
    end();
}

/* ---- owning ---- */

static void an_owned_call_gives_its_result(void)
{
    begin();
    model_assert(SMALL_RT_ON(&rt->workers[0],
                             BLZ_SPAWN_JOIN(&handle, owner, .op = NEW(blz_blocking_owned_op))) ==
                 0);
    end();
    model_assert(parcel.calls == 1 && parcel.destroyed == 1);
}

static void an_owned_call_that_is_cancelled_is_destroyed_once(void)
{
    begin();
    model_assert(SMALL_RT_ON(&rt->workers[0],
                             BLZ_SPAWN_JOIN(&handle, owner, .op = NEW(blz_blocking_owned_op))) ==
                 0);
    small_rt_poll_all(&rt->workers[0]);
    cancel(NULL);
    end(); /* the pool has ended: so has the call */
    model_assert(parcel.destroyed == 1);
}

static void an_owned_call_of_a_cancelled_task_is_not_made_but_destroyed(void)
{
    begin();
    model_assert(SMALL_RT_ON(&rt->workers[0],
                             BLZ_SPAWN_JOIN(&handle, owner, .op = NEW(blz_blocking_owned_op))) ==
                 0);
    cancel(NULL);
    small_rt_join(&rt->workers[0], &handle);
    model_assert(parcel.calls == 0 && parcel.destroyed == 1 && !rt->blocking);
    small_rt_free(rt);
}

/* ---- threads ---- */

static void a_thread_is_woken_and_has_its_memory_back(void)
{
    blz_blocking_op *op;

    begin();
    small_rt_be(NULL);
    op = NEW(blz_blocking_op);
    model_assert(blz_blocking_start(op, open_parcel, &parcel, rt) == 0);
    model_assert(blz_blocking_wait(op) == VALUE);
    take_back(op);
    model_assert(rt->blocking->close(rt->blocking, INT64_MAX) == 0);
    small_rt_free(rt);
}

/* ---- the pool: made by the first, closed at the end ---- */

static struct parcel second;

static void spawn_second(void *unused)
{
    (void)unused;
    model_assert(blz_blocking_spawn(rt, open_parcel, &second, destroy_parcel) == 0);
}

static void two_first_calls_make_one_pool(void)
{
    begin();
    small_rt_be(NULL);
    second = (struct parcel){0, 0};
    model_thread other = model_start(spawn_second, NULL);
    model_assert(blz_blocking_spawn(rt, open_parcel, &parcel, destroy_parcel) == 0);
    model_join(other);
    model_assert(rt->blocking->close(rt->blocking, INT64_MAX) == 0);
    small_rt_free(rt);
    model_assert(parcel.destroyed == 1 && second.destroyed == 1);
}

static int spawned; /* what the spawn of another thread returned */

static void spawn_late(void *unused)
{
    (void)unused;
    spawned = blz_blocking_spawn(rt, open_parcel, &parcel, destroy_parcel);
    model_assert(spawned == 0 || spawned == -ESHUTDOWN);
}

/* The pool is made, or not, while the runtime ends. */
static void the_first_call_at_the_end_is_refused_or_destroyed(void)
{
    blz_options options = {.workers = 1,
                           .watchdog_ns = BLZ_NEVER,
                           .seed = 1,
                           .shutdown_ns = BLZ_NEVER};

    parcel = (struct parcel){0, 0};
    model_assert(blz_rt_new(&rt, &options) == 0);
    model_thread other = model_start(spawn_late, NULL);
    model_assert(blz_rt_shutdown(rt, BLZ_NEVER) == 0);
    model_join(other);
    model_assert(parcel.destroyed == (spawned == 0)); /* the shutdown has waited for it */
    model_assert(blz_rt_free(rt) == 0);
}

/* A whole runtime: its worker sleeps until the call has ended. */
static void a_worker_that_sleeps_is_woken_by_a_call(void)
{
    blz_options options = {.workers = 1,
                           .watchdog_ns = BLZ_NEVER,
                           .seed = 1,
                           .shutdown_ns = BLZ_NEVER};

    parcel = (struct parcel){0, 0};
    model_assert(blz_rt_new(&rt, &options) == 0);
    model_assert(BLZ_BLOCK_ON(rt, caller, .op = NEW(blz_blocking_op)) == VALUE);
    model_assert(blz_rt_free(rt) == 0);
}

/* The call runs, is taken back or cancelled by the end of the runtime; the task ends before. */
static void a_runtime_ends_while_a_task_awaits_a_call(void)
{
    blz_options options = {.workers = 1,
                           .watchdog_ns = BLZ_NEVER,
                           .seed = 1,
                           .shutdown_ns = BLZ_NEVER};

    parcel = (struct parcel){0, 0};
    model_assert(blz_rt_new(&rt, &options) == 0);
    model_assert(BLZ_SPAWN_ON(rt, NULL, caller, .op = NEW(blz_blocking_op)) == 0);
    model_assert(blz_rt_free(rt) == 0);
}

static const struct model models[] = {
    MODEL(a_call_gives_its_result_and_its_memory_back, .stale_reads = 1, .timeouts = MODEL_NONE,
          .reduce = true),
    MODEL(a_call_that_is_cancelled_is_made_or_not, .stale_reads = 2, .timeouts = MODEL_NONE,
          .reduce = true),
    MODEL(a_started_call_is_joined_before_or_after_it_has_ended, .stale_reads = 1,
          .timeouts = MODEL_NONE, .reduce = true),
    MODEL(a_started_call_that_is_cancelled_is_made_or_not, .stale_reads = 2, .timeouts = MODEL_NONE,
          .reduce = true),
    MODEL(an_owned_call_gives_its_result, .stale_reads = 1, .timeouts = MODEL_NONE, .reduce = true),
    MODEL(an_owned_call_that_is_cancelled_is_destroyed_once, .timeouts = MODEL_NONE,
          .reduce = true),
    MODEL(an_owned_call_of_a_cancelled_task_is_not_made_but_destroyed, .preemptions = 2),
    MODEL(a_thread_is_woken_and_has_its_memory_back, .timeouts = MODEL_NONE, .reduce = true),
    MODEL(two_first_calls_make_one_pool, .stale_reads = 1, .timeouts = MODEL_NONE, .reduce = true),
    MODEL(the_first_call_at_the_end_is_refused_or_destroyed, .timeouts = MODEL_NONE,
          .reduce = true),
    MODEL(a_worker_that_sleeps_is_woken_by_a_call, .preemptions = 1, .stale_reads = MODEL_NONE,
          .timeouts = MODEL_NONE, .reduce = true),
    MODEL(a_runtime_ends_while_a_task_awaits_a_call, .stale_reads = MODEL_NONE,
          .timeouts = MODEL_NONE, .reduce = true),
};

MODEL_MAIN(models)
