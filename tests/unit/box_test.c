/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes: their memory, which is metered, and their cancellation. box_debug_test.c runs all of this
 * again with BLZ_DEBUG_FRAMES.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <blitz.h>
#include <stdlib.h>
#include <string.h>

#include "probe.h"

/* Memory that is counted, and that can run out. */
struct meter {
    blz_allocator allocator;
    int live;           /* blocks */
    int nr_boxes, made; /* those of the size of a box: now, and ever */
    size_t box_size;
    bool empty; /* for boxes */
};

static void *meter_alloc(size_t size, size_t align, void *ctx)
{
    struct meter *meter = ctx;
    bool box = size == meter->box_size;
    void *ptr = NULL;

    if (box && meter->empty)
        return NULL;
    if (posix_memalign(&ptr, align < sizeof(void *) ? sizeof(void *) : align, size) != 0)
        return NULL;
    __atomic_add_fetch(&meter->live, 1, __ATOMIC_RELAXED);
    meter->nr_boxes += box;
    meter->made += box;
    return ptr;
}

static void meter_free(void *ptr, size_t size, size_t align, void *ctx)
{
    struct meter *meter = ctx;

    (void)align;
    meter->nr_boxes -= size == meter->box_size;
    __atomic_sub_fetch(&meter->live, 1, __ATOMIC_RELAXED);
    free(ptr);
}

static struct meter meter;

/* For a runtime with one worker, this thread, whose memory is metered. */
static const blz_options *one_worker(void)
{
    static blz_options options;

    meter = (struct meter){.allocator = {.alloc = meter_alloc, .free = meter_free, .ctx = &meter}};
    options = (blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER, .allocator = &meter.allocator};
    return &options;
}

/* What the functions below leave behind for the test to look at. */
static struct record {
    int64_t rc[4];
    int n;
} record;

static int reset_record(void **state)
{
    (void)state;
    memset(&record, 0, sizeof record);
    return 0;
}

/* Cancels the current task and comes back when that has been delivered. */
struct cancelled {
    BLZ_FRAME;
    int64_t rc;
    blz_future pause;
};

BLZ_ASYNC(cancelled)
{
    BLZ_BEGIN;
    blz_task_cancel(blz_task_current());
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    BLZ_END(self->rc);
}

struct depth {
    BLZ_FRAME;
    int depth;
    int64_t rc;
    blz_future pause;
    blz_box box;
};

BLZ_ASYNC(depth)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    if (self->depth > 0)
        BLZ_AWAIT(self->rc, BLZ_BOX(&self->box, depth, .depth = self->depth - 1));
    else
        record.n = meter.nr_boxes;
    BLZ_END(self->rc < 0 ? self->rc : self->rc + 1);
}

static void a_function_can_call_itself_through_boxes(void **state)
{
    const blz_options *options = one_worker();

    (void)state;
    meter.box_size = sizeof(struct depth);
    assert_int_equal(BLZ_RUN_WITH(options, depth, .depth = 10), 11);
    assert_int_equal(record.n, 10);
}

static void a_box_gives_its_memory_back_when_it_is_ready(void **state)
{
    const blz_options *options = one_worker();

    (void)state;
    meter.box_size = sizeof(struct depth);
    assert_int_equal(BLZ_RUN_WITH(options, depth, .depth = 10), 11);
    assert_int_equal(meter.nr_boxes, 0);
    assert_int_equal(meter.live, 0);
}

struct no_memory {
    BLZ_FRAME;
    blz_box box;
    int64_t rc;
};

BLZ_ASYNC(no_memory)
{
    BLZ_BEGIN;
    meter.empty = true;
    BLZ_AWAIT(self->rc, BLZ_BOX(&self->box, depth, .depth = 0));
    BLZ_END(self->rc);
}

static void a_box_without_memory_is_ready_with_enomem(void **state)
{
    const blz_options *options = one_worker();

    (void)state;
    meter.box_size = sizeof(struct depth);
    assert_int_equal(BLZ_RUN_WITH(options, no_memory), -ENOMEM);
}

static void a_box_without_a_runtime_is_ready_with_enxio(void **state)
{
    blz_box box;
    blz_future root;
    blz_cx cx = cx_for(blz_pending(&root));
    blz_future *op = BLZ_BOX(&box, depth, .depth = 0);

    (void)state;
    assert_true(blz_is_ready(poll_once(op, &cx)));
    assert_int_equal(op->result, -ENXIO);
}

struct tailed {
    BLZ_FRAME;
    size_t len;
    blz_future pause;
    int64_t rc;
    char data[];
};

BLZ_ASYNC(tailed)
{
    BLZ_BEGIN;
    memset(self->data, 7, self->len);
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    BLZ_END(self->data[0] + self->data[self->len - 1]);
}

struct with_tail {
    BLZ_FRAME;
    blz_box box;
    int64_t rc;
};

BLZ_ASYNC(with_tail)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, BLZ_BOX(&self->box, tailed, BLZ_TAIL(1000), .len = 1000));
    BLZ_END(self->rc);
}

static void a_box_has_room_for_the_tail_of_its_frame(void **state)
{
    const blz_options *options = one_worker();

    (void)state;
    meter.box_size = sizeof(struct tailed) + 1000;
    assert_int_equal(BLZ_RUN_WITH(options, with_tail), 14);
    assert_int_equal(meter.nr_boxes, 0);
}

struct huge_tail {
    BLZ_FRAME;
    blz_box box;
    int64_t rc;
};

BLZ_ASYNC(huge_tail)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, BLZ_BOX(&self->box, tailed, BLZ_TAIL(-1), .len = 1));
    BLZ_END(self->rc);
}

static void a_box_whose_size_makes_no_sense_is_ready_with_enomem(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(one_worker(), huge_tail), -ENOMEM);
}

static int64_t same(int64_t result, void *arg)
{
    (void)arg;
    return result;
}

struct boxed_late {
    BLZ_FRAME;
    struct cancelled cancelled;
    blz_box box, early;
    blz_map map;
    blz_future *made_early;
    int64_t rc;
};

BLZ_ASYNC(boxed_late)
{
    BLZ_BEGIN;
    self->made_early =
        blz_map_init(&self->map, BLZ_BOX(&self->early, depth, .depth = 3), same, NULL);
    record.rc[0] = meter.nr_boxes;
    BLZ_CALL(self->rc, self->cancelled, cancelled);
    BLZ_AWAIT(record.rc[1], BLZ_BOX(&self->box, depth, .depth = 3));
    record.rc[2] = meter.made;
    BLZ_AWAIT(record.rc[3], self->made_early);
    BLZ_END(meter.nr_boxes);
}

static void a_refused_box_keeps_no_memory(void **state)
{
    const blz_options *options = one_worker();

    (void)state;
    meter.box_size = sizeof(struct depth);
    assert_int_equal(BLZ_RUN_WITH(options, boxed_late), 0);
    assert_int_equal(record.rc[0], 1);
    assert_int_equal(record.rc[1], -ECANCELED);
    assert_int_equal(record.rc[2], 1); /* the second one took nothing */
    assert_int_equal(record.rc[3], -ECANCELED);
}

struct boxed_shielded {
    BLZ_FRAME;
    struct cancelled cancelled;
    blz_box box;
    int64_t rc;
};

BLZ_ASYNC(boxed_shielded)
{
    BLZ_BEGIN;
    BLZ_CALL(self->rc, self->cancelled, cancelled);
    BLZ_AWAIT_SHIELDED(self->rc, BLZ_BOX(&self->box, depth, .depth = 3));
    BLZ_END(self->rc);
}

static void a_box_in_a_shielded_await_runs_in_a_cancelled_scope(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(one_worker(), boxed_shielded), 4);
}

struct stuck_in {
    BLZ_FRAME;
    blz_future op;
};

BLZ_ASYNC(stuck_in)
{
    BLZ_BEGIN;
    BLZ_AWAIT(record.rc[0], blz_pending(&self->op));
    BLZ_END(record.rc[0]);
}

struct boxed_stuck {
    BLZ_FRAME;
    blz_box box;
    int64_t rc;
};

BLZ_ASYNC(boxed_stuck)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, BLZ_BOX(&self->box, stuck_in));
    BLZ_END(self->rc);
}

struct box_canceller {
    BLZ_FRAME;
    blz_handle handle;
    blz_handle_join_op join;
    blz_future pause;
    int64_t rc;
};

BLZ_ASYNC(box_canceller)
{
    BLZ_BEGIN;
    self->rc = BLZ_SPAWN_JOIN(&self->handle, boxed_stuck);
    BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    blz_handle_cancel(&self->handle);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handle));
    BLZ_END(self->handle.result);
}

static void cancelling_reaches_what_is_in_a_box(void **state)
{
    (void)state;
    assert_int_equal(BLZ_RUN_WITH(one_worker(), box_canceller), -ECANCELED);
    assert_int_equal(record.rc[0], -ECANCELED);
}

#define test(name) cmocka_unit_test_setup(name, reset_record)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_function_can_call_itself_through_boxes),
        test(a_box_gives_its_memory_back_when_it_is_ready),
        test(a_box_without_memory_is_ready_with_enomem),
        test(a_box_without_a_runtime_is_ready_with_enxio),
        test(a_box_has_room_for_the_tail_of_its_frame),
        test(a_box_whose_size_makes_no_sense_is_ready_with_enomem),
        test(a_refused_box_keeps_no_memory),
        test(a_box_in_a_shielded_await_runs_in_a_cancelled_scope),
        test(cancelling_reaches_what_is_in_a_box),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
