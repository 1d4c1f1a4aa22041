/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks by the hundred thousand, each of which spawns, yields, joins and shields at random, while
 * other threads cancel, detach, wait for and call back at random. What is spawned ends, every join
 * returns, and nothing is left.
 */
#include "harness.h"

#include <sched.h>
#include <stdlib.h>

static struct {
    uint64_t spawned, ended; /* atomic */
} ledger;

static void count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

struct life {
    BLZ_FRAME;
    uint64_t seed;
    int depth;
    int steps;
    int64_t rc;
    union {
        blz_future future;
        blz_handle_join_op join;
        blz_scope_op wait;
        blz_box box;
    } op;
    blz_handle child;
    blz_scope scope;
};

BLZ_DECLARE(life);

static int spawn_child(struct life *self, blz_handle *handle, blz_scope *scope)
{
    int rc =
        BLZ_SPAWN_WITH((&(blz_spawn_args){.handle = handle, .scope = scope}), life,
                       .seed = self->seed ^ (uint64_t)(uintptr_t)self, .depth = self->depth - 1);
    if (rc == 0)
        count(&ledger.spawned);
    else
        check(rc == -ESHUTDOWN);
    return rc;
}

enum step {
    STEP_YIELD,
    STEP_SHIELDED_YIELD,
    STEP_DETACHED_CHILD,
    STEP_JOINED_CHILD,
    STEP_CANCELLED_CHILD,
    STEP_SCOPE,
    STEP_NAME,
    STEP_BOX,
    NR_STEPS,
};

BLZ_ASYNC(life)
{
    enum step step;

    BLZ_BEGIN;
    self->steps = (int)random_below(&self->seed, 4);
    for (; self->steps > 0; self->steps--) {
        step = (enum step)random_below(&self->seed, self->depth > 0 ? NR_STEPS : 2);
        if (step == STEP_YIELD)
            BLZ_AWAIT(self->rc, blz_yield(&self->op.future));
        else if (step == STEP_SHIELDED_YIELD)
            BLZ_AWAIT_SHIELDED(self->rc, blz_yield(&self->op.future));
        else if (step == STEP_DETACHED_CHILD)
            (void)spawn_child(self, NULL, NULL);
        else if (step == STEP_JOINED_CHILD || step == STEP_CANCELLED_CHILD) {
            if (spawn_child(self, &self->child, NULL) < 0)
                continue;
            if (step == STEP_CANCELLED_CHILD)
                blz_handle_cancel(&self->child);
            BLZ_AWAIT(self->rc, blz_handle_join(&self->op.join, &self->child));
            if (self->rc < 0) /* we were cancelled; now under a shield, or not at all */
                BLZ_AWAIT_SHIELDED(self->rc, blz_handle_join(&self->op.join, &self->child));
            if (self->rc < 0) /* not even that: a forced shutdown */
                blz_handle_detach(&self->child);
        } else if (step == STEP_SCOPE) {
            blz_scope_init(&self->scope, (int)random_below(&self->seed, 2));
            for (uint32_t n = random_below(&self->seed, 4); n > 0; n--)
                (void)spawn_child(self, NULL, &self->scope);
            if (random_below(&self->seed, 4) == 0)
                blz_scope_cancel(&self->scope);
            BLZ_AWAIT(self->rc, blz_scope_join(&self->op.wait, &self->scope));
        } else if (step == STEP_NAME)
            check(blz_task_set_name("a life") == 0);
        else
            BLZ_AWAIT(self->rc, BLZ_BOX(&self->op.box, give, .value = 1));
    }
    count(&ledger.ended);
    BLZ_END(random_below(&self->seed, 8) ? 0 : -EIO);
}

/* ---- from outside ---- */

struct outside {
    blz_rt *rt;
    uint64_t seed;
    int64_t roots;
    struct outside *neighbour;
    blz_task *shared; /* atomic: a task for the neighbour to cancel */
    struct event called;
    int64_t to_be_called;
};

static void note_call(int64_t result, void *arg)
{
    (void)result;
    event_post(&((struct outside *)arg)->called);
}

/* Hands a reference to the neighbour, who cancels whenever it comes to it. */
static void share(struct outside *self, blz_task *task)
{
    blz_task *old = __atomic_exchange_n(&self->shared, blz_task_ref(task), __ATOMIC_ACQ_REL);

    blz_task_unref(old);
}

static void cancel_shared(struct outside *self)
{
    blz_task *task = __atomic_exchange_n(&self->neighbour->shared, NULL, __ATOMIC_ACQ_REL);

    if (task)
        blz_task_cancel(task);
    blz_task_unref(task);
}

static bool one_root(struct outside *self)
{
    blz_handle handle;
    int rc = BLZ_SPAWN_ON(self->rt, &handle, life, .seed = random_below(&self->seed, UINT32_MAX),
                          .depth = 3);

    if (rc < 0) {
        check(rc == -ESHUTDOWN);
        return false;
    }
    count(&ledger.spawned);
    if (random_below(&self->seed, 3) == 0)
        share(self, handle.task);
    if (random_below(&self->seed, 3) == 0)
        blz_handle_cancel(&handle);
    cancel_shared(self);
    switch (random_below(&self->seed, 3)) {
    case 0:
        blz_handle_detach(&handle);
        break;
    case 1:
        check(blz_task_on_done(&handle, note_call, self) == 0);
        self->to_be_called++;
        break;
    default:
        check(blz_handle_wait(&handle) == 0);
    }
    return true;
}

static void *live_outside(void *arg)
{
    struct outside *self = arg;

    while (self->roots-- > 0)
        if (!one_root(self))
            break;
    cancel_shared(self);
    event_wait(&self->called, self->to_be_called);
    return NULL;
}

enum { OUTSIDERS = 4 };

static void begin(struct outside *outsiders, pthread_t *threads, blz_rt *rt, int64_t roots)
{
    ledger.spawned = ledger.ended = 0;
    for (int i = 0; i < OUTSIDERS; i++)
        outsiders[i] = (struct outside){.rt = rt,
                                        .seed = (uint64_t)i + 1,
                                        .roots = roots,
                                        .neighbour = &outsiders[(i + 1) % OUTSIDERS],
                                        .called = EVENT_INIT};
    for (int i = 0; i < OUTSIDERS; i++)
        threads[i] = start_thread(live_outside, &outsiders[i]);
}

static void join_all(struct outside *outsiders, pthread_t *threads)
{
    for (int i = 0; i < OUTSIDERS; i++)
        join_thread(threads[i]);
    for (int i = 0; i < OUTSIDERS; i++)
        blz_task_unref(outsiders[i].shared);
}

static void many_lives_end(void **state)
{
    struct outside outsiders[OUTSIDERS];
    pthread_t threads[OUTSIDERS];
    blz_rt *rt;

    (void)state;
    allow_seconds(90);
    rt = new_rt(&(blz_options){.workers = 2});
    begin(outsiders, threads, rt, scaled(30000));
    join_all(outsiders, threads);
    free_rt(rt); /* the detached ones end here, if not before */
    print_message("%llu lives\n", (unsigned long long)ledger.spawned);
    assert_int_equal(ledger.spawned, ledger.ended);
    if (!is_sanitized())
        assert_true(ledger.spawned >= 300000);
}

static void ignore_line(const char *line, void *arg)
{
    (void)arg;
    (void)line;
}

static void lives_are_cut_short_by_the_shutdown(void **state)
{
    (void)state;
    allow_seconds(60);
    for (int64_t round = 0; round < scaled(100); round++) {
        struct outside outsiders[OUTSIDERS];
        pthread_t threads[OUTSIDERS];
        blz_rt *rt = new_rt(&(blz_options){.workers = 1 + (unsigned)round % 4});
        begin(outsiders, threads, rt, INT64_MAX);
        for (int64_t i = 0; i < round * 3 % 200; i++)
            sched_yield();
        check(blz_task_dump(rt, ignore_line, NULL) == 0);
        check(blz_rt_shutdown(rt, BLZ_NEVER) == 0);
        join_all(outsiders, threads);
        free_rt(rt);
        assert_int_equal(ledger.spawned, ledger.ended);
    }
}

static void lives_end_on_one_cpu(void **state)
{
    struct outside outsiders[OUTSIDERS];
    pthread_t threads[OUTSIDERS];
    blz_rt *rt;

    (void)state;
    allow_seconds(60);
    use_one_cpu(true);
    rt = new_rt(&(blz_options){.workers = 3});
    begin(outsiders, threads, rt, scaled(8000));
    join_all(outsiders, threads);
    free_rt(rt);
    use_one_cpu(false);
    assert_int_equal(ledger.spawned, ledger.ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(many_lives_end),
        TEST(lives_are_cut_short_by_the_shutdown),
        TEST(lives_end_on_one_cpu),
    };
    return RUN_TESTS(tests);
}
