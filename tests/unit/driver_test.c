/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drivers and operations on real threads, with a driver that has no kernel behind it: it sleeps on
 * an eventfd, completes some operations at its next poll, and others when another thread says so or
 * when they are cancelled.
 */
#include "harness.h"

#include "base/alloc.h"
#include "io/io.h"
#include "sched/rt.h"

/* ---- the driver ---- */

enum kind {
    SOON,  /* completes at the driver's next poll */
    LATER, /* when `finish` is set */
    NEVER, /* when it is cancelled */
};

/* An operation, and what the driver keeps with it. */
struct toy_op {
    blz__op op;
    blz__op *next;
    int64_t value;
};

struct toy {
    blz__driver driver;
    blz__driver *sleeper; /* of which only sleeping and waking is used */
    const blz_allocator *allocator;
    blz__op *in_flight, *answers; /* linked by next_of */
    uint32_t finish;              /* atomic: LATER is now */
    bool answers_cancels;         /* each cancel has a completion of its own */
};

static blz__op **next_of(blz__op *op)
{
    return &((struct toy_op *)op)->next;
}

static void put(blz__op **list, blz__op *op)
{
    *next_of(op) = *list;
    *list = op;
}

static bool take(blz__op **list, blz__op *op)
{
    for (; *list; list = next_of(*list)) {
        if (*list == op) {
            *list = *next_of(op);
            return true;
        }
    }
    return false;
}

static const blz__driver_ops toy_ops;

static int toy_open(blz__driver **driver, const blz_options *options,
                    const blz_allocator *allocator)
{
    struct toy *toy = blz__alloc(allocator, sizeof *toy, _Alignof(struct toy));
    int rc;

    if (!toy)
        return -ENOMEM;
    *toy = (struct toy){.driver = {.ops = &toy_ops}, .allocator = allocator};
    rc = blz__epoll_driver.open(&toy->sleeper, options, allocator);
    if (rc < 0) {
        blz__free(allocator, toy, sizeof *toy, _Alignof(struct toy));
        return rc;
    }
    *driver = &toy->driver;
    return 0;
}

static void toy_close(blz__driver *driver)
{
    struct toy *toy = (struct toy *)driver;

    check(!toy->in_flight && !toy->answers);
    toy->sleeper->ops->close(toy->sleeper);
    blz__free(toy->allocator, toy, sizeof *toy, _Alignof(struct toy));
}

static void toy_submit(blz__driver *driver, blz__op *op)
{
    put(&((struct toy *)driver)->in_flight, op);
}

static void toy_cancel(blz__driver *driver, blz__op *op)
{
    struct toy *toy = (struct toy *)driver;

    if (!take(&toy->in_flight, op))
        return; /* its result came first */
    op->value = -ECANCELED;
    if (toy->answers_cancels) {
        blz__op_event_add(op);
        put(&toy->answers, op);
    }
    blz__op_event_done(op);
}

/* Reports what is due; true if there was something. */
static bool report(struct toy *toy)
{
    bool later = blz__load(&toy->finish, ACQUIRE), any = false;

    for (blz__op *op = toy->in_flight, *next; op; op = next) {
        next = *next_of(op);
        if (op->kind == NEVER || (op->kind == LATER && !later))
            continue;
        take(&toy->in_flight, op);
        op->value = ((struct toy_op *)op)->value;
        blz__op_event_done(op);
        any = true;
    }
    while (toy->answers) {
        blz__op *op = toy->answers;
        take(&toy->answers, op);
        blz__op_event_done(op);
        any = true;
    }
    return any;
}

static void toy_poll(blz__driver *driver, int64_t deadline_ns)
{
    struct toy *toy = (struct toy *)driver;
    bool any = report(toy);

    toy->sleeper->ops->poll(toy->sleeper, any ? 0 : deadline_ns);
    report(toy);
}

static void toy_wake(blz__driver *driver)
{
    struct toy *toy = (struct toy *)driver;
    toy->sleeper->ops->wake(toy->sleeper);
}

static int toy_fd(blz__driver *driver)
{
    struct toy *toy = (struct toy *)driver;
    return toy->sleeper->ops->fd(toy->sleeper);
}

static bool toy_busy(const blz__driver *driver)
{
    const struct toy *toy = (const struct toy *)driver;
    return toy->in_flight || toy->answers;
}

static const blz__driver_ops toy_ops = {
    .name = "toy",
    .open = toy_open,
    .close = toy_close,
    .submit = toy_submit,
    .cancel = toy_cancel,
    .poll = toy_poll,
    .wake = toy_wake,
    .fd = toy_fd,
    .has_pending = toy_busy,
};

/* ---- a request: what a module would build on it ---- */

struct request {
    union {
        blz__op op;
        struct toy_op toy;
    };
    bool started;
};

static blz_poll request_poll(blz_future *future, blz_cx *cx)
{
    struct request *request = (struct request *)future;

    if (!request->started) {
        request->started = true;
        blz__op_begin_and_submit(&request->op, cx);
    }
    return blz__op_is_done(&request->op) ? blz_future_done(future, request->op.value) : BLZ_PENDING;
}

static void request_cancel(blz_future *future, blz_cx *cx)
{
    struct request *request = (struct request *)future;

    if (request->started)
        blz__op_cancel(&request->op, cx);
}

static blz_future *request_init(struct request *request, enum kind kind, int64_t value)
{
    static const blz_future_ops ops = {.name = "request",
                                       .poll = request_poll,
                                       .cancel = request_cancel};

    *request = (struct request){.op = {.future.ops = &ops, .kind = kind}};
    request->toy.value = value;
    return &request->op.future;
}

struct asks {
    BLZ_FRAME;
    int kind;
    int64_t value;
    struct event *asking;
    int64_t rc;
    struct request request;
};

BLZ_ASYNC(asks)
{
    BLZ_BEGIN;
    if (self->asking)
        event_post(self->asking);
    BLZ_AWAIT(self->rc, request_init(&self->request, (enum kind)self->kind, self->value));
    BLZ_END(self->rc);
}

/* ---- around the tests ---- */

static blz_rt *rt;

static void begin(unsigned workers, bool answers_cancels)
{
    blz_options options = {.workers = workers,
                           .allocator = test_memory(),
                           .watchdog_ns = BLZ_NEVER};

    assert_int_equal(blz__rt_create(&rt, &options, &toy_ops), 0);
    for (unsigned i = 0; i < workers; i++)
        ((struct toy *)rt->workers[i].driver)->answers_cancels = answers_cancels;
    watch_rt(rt);
}

static void finish_later(void)
{
    for (uint32_t i = 0; i < rt->nr_workers; i++) {
        struct toy *toy = (struct toy *)rt->workers[i].driver;
        blz__store(&toy->finish, 1u, RELEASE);
        toy_wake(&toy->driver);
    }
}

/* ---- tests ---- */

static void an_operation_completes_with_its_value(void **state)
{
    (void)state;
    begin(2, false);
    for (int i = 0; i < 500; i++)
        assert_int_equal(BLZ_BLOCK_ON(rt, asks, .kind = SOON, .value = i), i);
    free_rt(rt);
}

static void a_worker_asleep_in_its_driver_is_woken_by_a_completion(void **state)
{
    struct event asking = EVENT_INIT;
    blz_handle handles[10];
    blz_stats stats;

    (void)state;
    begin(2, false);
    for (int i = 0; i < 10; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], asks, .kind = LATER, .value = i + 1,
                                      .asking = &asking),
                         0);
    event_wait(&asking, 10);
    do
        blz_rt_stats(rt, &stats);
    while (stats.workers_parked != 2);
    for (int i = 0; i < 10; i++)
        assert_false(blz_handle_done(&handles[i]));
    finish_later();
    for (int i = 0; i < 10; i++) {
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
        assert_int_equal(handles[i].result, i + 1);
    }
    free_rt(rt);
}

static void a_worker_asleep_in_its_driver_is_woken_by_other_work(void **state)
{
    blz_handle handle;
    blz_stats stats;

    (void)state;
    begin(1, false);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, asks, .kind = NEVER), 0);
    for (int i = 0; i < 200; i++) {
        struct gate gate = GATE_INIT;
        blz_handle other;
        do
            blz_rt_stats(rt, &stats);
        while (stats.workers_parked != 1);
        assert_int_equal(BLZ_SPAWN_ON(rt, &other, enters, .gate = &gate), 0);
        event_wait(&gate.arrived, 1);
        gate_open(&gate, i);
        assert_int_equal(blz_handle_wait(&other), 0);
        assert_int_equal(other.result, i);
    }
    blz_handle_cancel(&handle);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, -ECANCELED);
    free_rt(rt);
}

struct blocks {
    BLZ_FRAME;
    struct event *blocking, *enough;
};

BLZ_ASYNC(blocks)
{
    BLZ_BEGIN;
    event_post(self->blocking);
    event_wait(self->enough, 1);
    BLZ_END(0);
}

struct asks_then_blocks {
    BLZ_FRAME;
    struct event *blocking, *enough;
    blz_handle *asking;
};

/* Starts a request on this very worker, and then keeps the worker busy. */
BLZ_ASYNC(asks_then_blocks)
{
    BLZ_BEGIN;
    check(BLZ_SPAWN(blocks, .blocking = self->blocking, .enough = self->enough) == 0);
    check(BLZ_SPAWN_JOIN(self->asking, asks, .kind = NEVER) == 0); /* LIFO: it runs first */
    BLZ_END(0);
}

static void cancel_elsewhere(bool answers_cancels)
{
    for (int i = 0; i < 20; i++) {
        struct event blocking = EVENT_INIT, enough = EVENT_INIT;
        blz_handle asking;
        begin(2, answers_cancels);
        assert_int_equal(BLZ_BLOCK_ON(rt, asks_then_blocks, .blocking = &blocking,
                                      .enough = &enough, .asking = &asking),
                         0);
        event_wait(&blocking, 1);
        blz_handle_cancel(&asking); /* whoever polls it, its home may be the worker that blocks */
        event_post(&enough);
        assert_int_equal(blz_handle_wait(&asking), 0);
        assert_int_equal(asking.result, -ECANCELED);
        free_rt(rt);
    }
}

static void an_operation_is_cancelled_from_another_worker(void **state)
{
    (void)state;
    cancel_elsewhere(false);
}

static void a_cancel_with_an_answer_of_its_own_is_waited_for(void **state)
{
    (void)state;
    cancel_elsewhere(true);
}

static void the_shutdown_cancels_operations(void **state)
{
    blz_handle handles[50];

    (void)state;
    begin(3, true);
    for (int i = 0; i < 50; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], asks, .kind = i % 2 ? NEVER : LATER), 0);
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
        assert_int_equal(handles[i].result, -ECANCELED);
    }
    free_rt(rt);
}

/* ---- at random ---- */

struct asks_often {
    BLZ_FRAME;
    uint64_t seed;
    int left;
    int64_t rc;
    struct request request;
    blz_future pause;
};

/* Requests and yields, so that it asks on one worker and is cancelled on another. */
BLZ_ASYNC(asks_often)
{
    BLZ_BEGIN;
    for (; self->left > 0; self->left--) {
        BLZ_AWAIT(self->rc, request_init(&self->request, SOON, self->left));
        check(self->rc == self->left || self->rc == -ECANCELED);
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    }
    BLZ_AWAIT(self->rc, request_init(&self->request, NEVER, 0));
    BLZ_END(self->rc);
}

static void operations_are_cancelled_at_random(void **state)
{
    enum { TASKS = 40 };
    blz_handle handles[TASKS];
    uint64_t seed = 3;

    (void)state;
    for (int64_t round = 0; round < scaled(60); round++) {
        begin(1 + (unsigned)round % 4, round % 2);
        for (int i = 0; i < TASKS; i++)
            check(BLZ_SPAWN_ON(rt, &handles[i], asks_often, .left = (int)random_below(&seed, 30)) ==
                  0);
        for (int i = 0; i < TASKS; i++)
            blz_handle_cancel(&handles[random_below(&seed, TASKS)]);
        for (int i = 0; i < TASKS; i++)
            blz_handle_cancel(&handles[i]);
        for (int i = 0; i < TASKS; i++)
            check(blz_handle_wait(&handles[i]) == 0 && handles[i].result == -ECANCELED);
        free_rt(rt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_operation_completes_with_its_value),
        TEST(a_worker_asleep_in_its_driver_is_woken_by_a_completion),
        TEST(a_worker_asleep_in_its_driver_is_woken_by_other_work),
        TEST(an_operation_is_cancelled_from_another_worker),
        TEST(a_cancel_with_an_answer_of_its_own_is_waited_for),
        TEST(the_shutdown_cancels_operations),
        TEST(operations_are_cancelled_at_random),
    };
    return RUN_TESTS(tests);
}
