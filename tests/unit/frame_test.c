/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of frames: all sizes, tails, alignment, boxes; from workers and other threads. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

/* ---- tails ---- */

struct tailed {
    BLZ_FRAME;
    size_t len;
    unsigned char byte;
    int64_t rc;
    blz_future op;
    unsigned char tail[];
};

/* Fills all of its tail, suspends, and finds it unchanged. */
BLZ_ASYNC(tailed)
{
    BLZ_BEGIN;
    check((uintptr_t)self % 16 == 0);
    memset(self->tail, self->byte, self->len);
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    for (size_t i = 0; i < self->len; i++)
        check(self->tail[i] == self->byte);
    BLZ_END((int64_t)self->len);
}

/* Up to 200 KiB: all small sizes, then in growing steps. */
static size_t next_size(size_t size)
{
    return size < 1200 ? size + 1 : size + size / 9;
}

enum { MAX_TAIL = 200 * 1024 };

static void frames_of_all_sizes_are_spawned_by_other_threads(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    static blz_handle handles[2000];
    int n = 0;

    (void)state;
    for (size_t size = 0; size <= MAX_TAIL; size = next_size(size), n++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[n], tailed, BLZ_TAIL(size), .len = size,
                                      .byte = (unsigned char)n),
                         0);
    n = 0;
    for (size_t size = 0; size <= MAX_TAIL; size = next_size(size), n++) {
        assert_int_equal(blz_handle_wait(&handles[n]), 0);
        assert_int_equal(handles[n].result, size);
    }
    free_rt(rt);
}

struct spawns_all_sizes {
    BLZ_FRAME;
    size_t size;
    int n, joined;
    int64_t rc;
    blz_handle_join_op join;
    blz_handle handles[2000];
};

BLZ_ASYNC(spawns_all_sizes)
{
    BLZ_BEGIN;
    for (self->size = 0; self->size <= MAX_TAIL; self->size = next_size(self->size), self->n++) {
        self->rc = BLZ_SPAWN_JOIN(&self->handles[self->n], tailed, BLZ_TAIL(self->size),
                                  .len = self->size, .byte = (unsigned char)self->n);
        check(self->rc == 0);
    }
    for (self->joined = 0; self->joined < self->n; self->joined++) {
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->handles[self->joined]));
        check(self->rc == 0 && self->handles[self->joined].result >= 0);
    }
    BLZ_END(0);
}

static void frames_of_all_sizes_are_spawned_by_workers(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, spawns_all_sizes), 0);
    free_rt(rt);
}

static void frames_come_from_the_systems_pages_too(void **state)
{
    blz_options options = {.workers = 2};

    (void)state;
    assert_int_equal(BLZ_RUN_WITH(&options, spawns_all_sizes), 0);
}

static void a_frame_too_large_for_memory_is_refused(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    const int64_t tails[] = {(int64_t)1 << 32, (int64_t)1 << 46, INT64_MAX - 100, INT64_MAX};
    blz_handle handle = {NULL, 0};

    (void)state;
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, tailed, BLZ_TAIL(tails[i])), -ENOMEM);
        assert_null(handle.task);
    }
    free_rt(rt);
}

static void a_negative_tail_is_refused(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    const int64_t tails[] = {-1, -200, INT64_MIN};
    blz_handle handle = {NULL, 0};

    (void)state;
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++)
        assert_true(BLZ_SPAWN_ON(rt, &handle, tailed, BLZ_TAIL(tails[i])) < 0);
    free_rt(rt);
}

/* ---- large frames without a tail ---- */

struct large {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
    unsigned char bytes[100 * 1024];
};

BLZ_ASYNC(large)
{
    BLZ_BEGIN;
    check(self->bytes[0] == 0 && self->bytes[sizeof self->bytes - 1] == 0); /* not mentioned: 0 */
    memset(self->bytes, 7, sizeof self->bytes);
    BLZ_AWAIT(self->rc, blz_yield(&self->op));
    for (size_t i = 0; i < sizeof self->bytes; i++)
        check(self->bytes[i] == 7);
    BLZ_END(1);
}

static void the_part_of_a_frame_that_is_not_mentioned_is_zero(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    for (int i = 0; i < 20; i++)
        assert_int_equal(BLZ_BLOCK_ON(rt, large), 1);
    free_rt(rt);
}

static void memory_of_large_frames_is_given_back(void **state)
{
    blz_rt *rt = new_embedded_rt();
    int64_t before;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, give), 0);
    turn_all(rt);
    before = memory_bytes(the_memory());
    for (int i = 0; i < 50; i++) {
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, large), 0);
        turn_all(rt);
        assert_true(memory_bytes(the_memory()) <= before + 2 * (int64_t)sizeof(struct large));
    }
    free_rt(rt);
}

/* ---- recursion in boxes ---- */

struct fib {
    BLZ_FRAME;
    int n;
    int64_t left, right;
    blz_box box;
    blz_future op;
};

BLZ_ASYNC(fib)
{
    BLZ_BEGIN;
    self->left = self->n;
    if (self->n < 2)
        goto out;
    if (self->n % 5 == 0)
        BLZ_AWAIT(self->left, blz_yield(&self->op));
    BLZ_AWAIT(self->left, BLZ_BOX(&self->box, fib, .n = self->n - 1));
    BLZ_AWAIT(self->right, BLZ_BOX(&self->box, fib, .n = self->n - 2));
    if (self->left >= 0 && self->right >= 0)
        self->left += self->right;
    else
        self->left = self->left < 0 ? self->left : self->right;
out:
    BLZ_END(self->left);
}

static void a_recursive_function_awaits_itself_in_a_box(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, fib, .n = 16), 987);
    free_rt(rt);
}

static void a_recursion_can_be_cancelled_at_any_point(void **state)
{
    blz_rt *rt = new_embedded_rt();

    (void)state;
    for (int turns = 0; turns < 30; turns++) {
        blz_handle handle;
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, fib, .n = 12), 0);
        for (int i = 0; i < turns && !blz_handle_done(&handle); i++)
            assert_true(blz_rt_turn(rt) >= 0);
        blz_handle_cancel(&handle);
        turn_all(rt);
        assert_int_equal(blz_handle_wait(&handle), 0);
        assert_true(handle.result == 144 || handle.result == -ECANCELED);
    }
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(frames_of_all_sizes_are_spawned_by_other_threads),
        TEST(frames_of_all_sizes_are_spawned_by_workers),
        TEST(frames_come_from_the_systems_pages_too),
        TEST(a_frame_too_large_for_memory_is_refused),
        TEST(a_negative_tail_is_refused),
        TEST(the_part_of_a_frame_that_is_not_mentioned_is_zero),
        TEST(memory_of_large_frames_is_given_back),
        TEST(a_recursive_function_awaits_itself_in_a_box),
        TEST(a_recursion_can_be_cancelled_at_any_point),
    };
    return RUN_TESTS(tests);
}
