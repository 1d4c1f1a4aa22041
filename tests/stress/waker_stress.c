/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wakers fired by threads that are no workers, at random: by value, by reference, as clones, many
 * times over and long after the task has ended. A cell counts what has been posted; the task that
 * waits for it must see every count. A lost wakeup hangs.
 */
#include "harness.h"

#include <sched.h>

struct cell {
    pthread_mutex_t lock;
    int64_t posted;
    blz_waker waker; /* of the task that waits */
    blz_waker kept;  /* a clone from some time ago, used against all reason */
    int64_t goal;
};

struct cell_wait {
    blz_future future;
    struct cell *cell;
    int64_t seen;
};

static blz_poll cell_poll(blz_future *future, blz_cx *cx)
{
    struct cell_wait *op = (struct cell_wait *)future;
    struct cell *cell = op->cell;
    blz_waker old = {NULL, NULL}, mine = blz_cx_waker(cx);
    bool ready;

    pthread_mutex_lock(&cell->lock);
    ready = cell->posted > op->seen;
    op->seen = cell->posted;
    old = cell->waker;
    cell->waker = ready ? (blz_waker){NULL, NULL} : mine;
    pthread_mutex_unlock(&cell->lock);
    blz_waker_drop(&old);
    if (!ready)
        return BLZ_PENDING;
    blz_waker_drop(&mine);
    return blz_future_done(future, op->seen);
}

static blz_future *cell_next(struct cell_wait *op, struct cell *cell, int64_t seen)
{
    static const blz_future_ops ops = {.name = "cell", .poll = cell_poll};

    *op = (struct cell_wait){.future.ops = &ops, .cell = cell, .seen = seen};
    return &op->future;
}

struct waits {
    BLZ_FRAME;
    struct cell *cell;
    int64_t seen;
    struct cell_wait op;
    blz_future pause;
    int64_t rc;
};

BLZ_ASYNC(waits)
{
    BLZ_BEGIN;
    while (self->seen < self->cell->goal) {
        BLZ_AWAIT(self->seen, cell_next(&self->op, self->cell, self->seen));
        if (self->seen % 7 == 0)
            BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    }
    BLZ_END(self->seen);
}

/* ---- firing ---- */

enum { CELLS = 64, FIRERS = 4 };

static struct cell cells[CELLS];

static void fire(struct cell *cell, uint64_t *seed)
{
    blz_waker waker, clone = {NULL, NULL}, old = {NULL, NULL};
    uint32_t how = random_below(seed, 4);

    pthread_mutex_lock(&cell->lock);
    cell->posted++;
    waker = cell->waker;
    cell->waker = (blz_waker){NULL, NULL};
    if (how == 3) {
        old = cell->kept;
        cell->kept = blz_waker_clone(&waker);
    } else if (how == 2) {
        clone = blz_waker_clone(&cell->kept);
    }
    pthread_mutex_unlock(&cell->lock);
    if (how == 1) {
        blz_waker_wake_by_ref(&waker);
        blz_waker_wake_by_ref(&waker);
        blz_waker_drop(&waker);
    } else {
        blz_waker_wake(&waker);
    }
    blz_waker_wake(&clone);
    blz_waker_drop(&old);
}

struct firer {
    uint64_t seed;
    int64_t shots;
};

static void *fire_all(void *arg)
{
    struct firer *firer = arg;

    for (int64_t i = 0; i < firer->shots; i++)
        fire(&cells[random_below(&firer->seed, CELLS)], &firer->seed);
    return NULL;
}

/* Each cell gets so many shots as are missing for its goal. */
static void fire_the_rest(void)
{
    uint64_t seed = 9;

    for (int c = 0; c < CELLS; c++)
        while (cells[c].posted < cells[c].goal)
            fire(&cells[c], &seed);
}

static void begin(int64_t goal)
{
    for (int c = 0; c < CELLS; c++)
        cells[c] = (struct cell){.lock = PTHREAD_MUTEX_INITIALIZER, .goal = goal};
}

static void end(void)
{
    for (int c = 0; c < CELLS; c++) {
        blz_waker_drop(&cells[c].waker);
        blz_waker_drop(&cells[c].kept);
    }
}

static void run_firers(int64_t goal)
{
    struct firer firers[FIRERS];
    pthread_t threads[FIRERS];

    for (int i = 0; i < FIRERS; i++) {
        firers[i] = (struct firer){.seed = (uint64_t)i + 1, .shots = goal * CELLS / FIRERS};
        threads[i] = start_thread(fire_all, &firers[i]);
    }
    for (int i = 0; i < FIRERS; i++)
        join_thread(threads[i]);
    fire_the_rest();
}

static void wake_from_outside(unsigned workers)
{
    int64_t goal = scaled(10000);
    blz_handle handles[CELLS];
    blz_rt *rt = new_rt(&(blz_options){.workers = workers});

    begin(goal);
    for (int c = 0; c < CELLS; c++)
        check(BLZ_SPAWN_ON(rt, &handles[c], waits, .cell = &cells[c]) == 0);
    run_firers(goal);
    for (int c = 0; c < CELLS; c++)
        check(blz_handle_wait(&handles[c]) == 0 && handles[c].result >= goal);
    free_rt(rt);
    end(); /* some wakers are older than the end of the runtime */
}

static void threads_wake_tasks_of_one_worker(void **state)
{
    (void)state;
    allow_seconds(60);
    wake_from_outside(1);
}

static void threads_wake_tasks_of_several_workers(void **state)
{
    (void)state;
    allow_seconds(60);
    wake_from_outside(3);
}

struct pins {
    BLZ_FRAME;
    struct event *done;
};

struct waits_pinned {
    BLZ_FRAME;
    struct cell *cell;
    struct event *done;
    int thread;
    int64_t seen;
    struct cell_wait op;
};

BLZ_ASYNC(waits_pinned)
{
    BLZ_BEGIN;
    self->thread = thread_id();
    while (self->seen < self->cell->goal) {
        BLZ_AWAIT(self->seen, cell_next(&self->op, self->cell, self->seen));
        check(self->thread == thread_id());
    }
    event_post(self->done);
    BLZ_END(0);
}

BLZ_ASYNC(pins)
{
    BLZ_BEGIN;
    for (int c = 0; c < CELLS; c++)
        check(BLZ_SPAWN_WITH((&(blz_spawn_args){.pinned = true}), waits_pinned, .cell = &cells[c],
                             .done = self->done) == 0);
    BLZ_END(0);
}

static void threads_wake_pinned_tasks(void **state)
{
    int64_t goal = scaled(3000);
    struct event done = EVENT_INIT;
    blz_rt *rt;

    (void)state;
    allow_seconds(60);
    begin(goal);
    rt = new_rt(&(blz_options){.workers = 2});
    assert_int_equal(BLZ_BLOCK_ON(rt, pins, .done = &done), 0);
    run_firers(goal);
    event_wait(&done, CELLS);
    free_rt(rt);
    end();
}

/* ---- parked and woken, again and again ---- */

struct ping {
    BLZ_FRAME;
    blz_oneshot *channel;
    int64_t rc, value;
    blz_oneshot_op wait;
};

BLZ_ASYNC(ping)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, self->channel, &self->value));
    BLZ_END(self->rc < 0 ? self->rc : self->value);
}

static void a_sleeping_runtime_is_woken_each_time(void **state)
{
    blz_rt *rt;

    (void)state;
    allow_seconds(60);
    rt = new_rt(&(blz_options){.workers = 2});
    for (int64_t i = 0; i < scaled(20000); i++) {
        blz_oneshot channel;
        blz_handle handle;
        blz_oneshot_init(&channel);
        check(BLZ_SPAWN_ON(rt, &handle, ping, .channel = &channel) == 0);
        if (i % 3 == 0)
            sched_yield();
        check(blz_oneshot_send(&channel, i) == 0);
        check(blz_handle_wait(&handle) == 0 && handle.result == i);
    }
    free_rt(rt);
}

/* ---- whole runtimes ---- */

struct spreads {
    BLZ_FRAME;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
    blz_future op;
};

/* Moves about, so that it ends on any of the workers. */
BLZ_ASYNC(spreads)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (int i = 0; i < 4; i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, yields, .times = 2) == 0);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    check(BLZ_SPAWN(sleeps) == 0);
    BLZ_END(5);
}

static void runtimes_are_run_and_freed_in_a_row(void **state)
{
    (void)state;
    allow_seconds(60);
    for (int64_t i = 0; i < scaled(2000); i++) {
        blz_options options = {.workers = 1 + (unsigned)i % 3, .allocator = test_memory()};
        check(BLZ_RUN_WITH(&options, spreads) == 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(threads_wake_tasks_of_one_worker),    TEST(threads_wake_tasks_of_several_workers),
        TEST(threads_wake_pinned_tasks),           TEST(a_sleeping_runtime_is_woken_each_time),
        TEST(runtimes_are_run_and_freed_in_a_row),
    };
    return RUN_TESTS(tests);
}
