/* SPDX-License-Identifier: Apache-2.0 */
/* The run queue and the inject queue, by themselves: order, overflow, theft, closing. */
#include "harness.h"

#include "sched/inject.h"
#include "sched/runq.h"

#include <sched.h>
#include <string.h>

enum { TASKS = 2 * (int)RUNQ_CAPACITY };

static _Alignas(64) char blocks[TASKS][sizeof(blz_task)]; /* only their links are used */
static runq ring, other;
static task_list spill;

static void begin(void)
{
    memset(&ring, 0, sizeof ring);
    memset(&other, 0, sizeof other);
    memset(blocks, 0, sizeof blocks);
    spill = (task_list){NULL, NULL, 0};
}

static blz_task *task(int number)
{
    return (blz_task *)(void *)blocks[number];
}

static int number_of(const blz_task *of)
{
    return of ? (int)((const char *)of - blocks[0]) / (int)sizeof(blz_task) : -1;
}

static void push(int from, int to)
{
    for (int i = from; i < to; i++)
        blz__runq_push(&ring, task(i), &spill);
    assert_null(blz__runq_check(&ring));
    assert_null(blz__task_list_check(&spill));
}

static void tasks_come_out_in_the_order_in_which_they_went_in(void **state)
{
    (void)state;
    begin();
    assert_true(runq_is_empty(&ring));
    assert_null(blz__runq_pop(&ring));
    for (int round = 0; round < 10; round++) {
        push(0, 100);
        assert_int_equal(blz__runq_len(&ring), 100);
        assert_int_equal(blz__runq_room(&ring), RUNQ_CAPACITY - 100);
        for (int i = 0; i < 100; i++)
            assert_int_equal(number_of(blz__runq_pop(&ring)), i);
        assert_null(blz__runq_pop(&ring));
    }
    assert_int_equal(spill.count, 0);
}

static void an_unshared_ring_is_in_order_too(void **state)
{
    (void)state;
    begin();
    ring.unshared = true;
    for (int round = 0; round < 10; round++) {
        push(0, 100);
        for (int i = 0; i < 100; i++)
            assert_int_equal(number_of(blz__runq_pop(&ring)), i);
        assert_null(blz__runq_pop(&ring));
    }
}

static void a_full_ring_spills_its_newer_half(void **state)
{
    const int capacity = (int)RUNQ_CAPACITY, half = capacity / 2;

    (void)state;
    begin();
    push(0, capacity);
    assert_int_equal(spill.count, 0);
    assert_int_equal(blz__runq_room(&ring), 0);
    push(capacity, capacity + 1);
    assert_int_equal(spill.count, half + 1);
    for (int i = half; i <= capacity; i++)
        assert_int_equal(number_of(task_list_take(&spill)), i);
    for (int i = 0; i < half; i++)
        assert_int_equal(number_of(blz__runq_pop(&ring)), i);
    assert_null(blz__runq_pop(&ring));
}

static void a_thief_takes_the_older_half(void **state)
{
    uint32_t moved = 0;
    blz_task *got;

    (void)state;
    begin();
    push(0, 11);
    got = blz__runq_steal(&ring, &other, &moved);
    assert_int_equal(moved, 6);
    assert_int_equal(number_of(got), 5); /* the last of them is handed out */
    for (int i = 0; i < 5; i++)
        assert_int_equal(number_of(blz__runq_pop(&other)), i);
    assert_null(blz__runq_pop(&other));
    for (int i = 6; i < 11; i++)
        assert_int_equal(number_of(blz__runq_pop(&ring)), i);
    assert_null(blz__runq_pop(&ring));
}

static void a_single_task_can_be_stolen(void **state)
{
    uint32_t moved = 0;

    (void)state;
    begin();
    assert_null(blz__runq_steal(&ring, &other, &moved));
    push(0, 1);
    assert_int_equal(number_of(blz__runq_steal(&ring, &other, &moved)), 0);
    assert_int_equal(moved, 1);
    assert_true(runq_is_empty(&ring));
    assert_true(runq_is_empty(&other));
}

static void a_thief_without_room_takes_nothing(void **state)
{
    uint32_t moved = 0;
    task_list none = {NULL, NULL, 0};

    (void)state;
    begin();
    push(0, 4);
    for (uint32_t i = 0; i < RUNQ_CAPACITY / 2 + 1; i++)
        blz__runq_push(&other, task(10 + (int)i), &none);
    assert_null(blz__runq_steal(&ring, &other, &moved));
    assert_int_equal(blz__runq_len(&ring), 4);
}

static void positions_wrap(void **state)
{
    uint32_t start = UINT32_MAX - 50, moved = 0;

    (void)state;
    begin();
    ring.head = (uint64_t)start << 32 | start;
    ring.tail = start;
    push(0, 200);
    assert_int_equal(blz__runq_len(&ring), 200);
    assert_non_null(blz__runq_steal(&ring, &other, &moved));
    assert_int_equal(moved, 100);
    for (int i = 100; i < 200; i++)
        assert_int_equal(number_of(blz__runq_pop(&ring)), i);
    assert_null(blz__runq_pop(&ring));
}

/* ---- two threads ---- */

enum { ROUNDS = 20000 };

static struct {
    uint32_t stop;
    int64_t stolen;
} thief;

static int seen[TASKS]; /* atomic: how often each task came out */

static void see(const blz_task *it)
{
    __atomic_fetch_add(&seen[number_of(it)], 1, __ATOMIC_RELAXED);
}

static void *steal_all(void *arg)
{
    uint32_t moved;

    (void)arg;
    while (!__atomic_load_n(&thief.stop, __ATOMIC_ACQUIRE)) {
        blz_task *got = blz__runq_steal(&ring, &other, &moved);
        for (; got; got = blz__runq_pop(&other)) {
            see(got);
            thief.stolen++;
        }
    }
    return NULL;
}

static void no_task_is_lost_or_doubled_while_a_thief_is_at_work(void **state)
{
    pthread_t thread;
    const int n = (int)RUNQ_CAPACITY + 40; /* overflows now and then */
    int64_t expected = 0;

    (void)state;
    begin();
    memset(seen, 0, sizeof seen);
    memset(&thief, 0, sizeof thief);
    thread = start_thread(steal_all, NULL);
    for (int round = 0; round < ROUNDS / n; round++) {
        push(0, n);
        for (blz_task *it; (it = task_list_take(&spill));)
            see(it);
        for (blz_task *it; (it = blz__runq_pop(&ring));)
            see(it);
        expected++;
        for (int i = 0; i < n; i++) /* the thief may still have some: wait, then all are free */
            while (__atomic_load_n(&seen[i], __ATOMIC_RELAXED) < expected)
                sched_yield();
    }
    __atomic_store_n(&thief.stop, 1, __ATOMIC_RELEASE);
    join_thread(thread);
    for (int i = 0; i < n; i++)
        assert_int_equal(seen[i], expected);
}

/* ---- the inject queue ---- */

static inject queue;

static task_list list_of(int from, int to)
{
    task_list list = {NULL, NULL, 0};

    for (int i = from; i < to; i++)
        task_list_append(&list, task(i));
    return list;
}

static void injected_tasks_are_taken_oldest_first(void **state)
{
    task_list more, taken;

    (void)state;
    begin();
    memset(&queue, 0, sizeof queue);
    assert_true(blz__inject_spawn(&queue, task(0)));
    more = list_of(1, 10);
    blz__inject_push(&queue, &more);
    assert_int_equal(inject_len(&queue), 10);
    taken = blz__inject_take(&queue, 4);
    assert_int_equal(taken.count, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(number_of(task_list_take(&taken)), i);
    taken = blz__inject_take(&queue, 100);
    assert_int_equal(taken.count, 6);
    for (int i = 4; i < 10; i++)
        assert_int_equal(number_of(task_list_take(&taken)), i);
    assert_int_equal(inject_len(&queue), 0);
    assert_false(inject_has_work(&queue));
    taken = blz__inject_take(&queue, 1);
    assert_null(taken.first);
    assert_int_equal(queue.spawned, 1);
}

static void a_closed_queue_refuses_new_tasks_but_not_woken_ones(void **state)
{
    task_list woken, taken;

    (void)state;
    begin();
    memset(&queue, 0, sizeof queue);
    assert_true(blz__inject_spawn(&queue, task(0)));
    blz__inject_close(&queue);
    assert_false(blz__inject_spawn(&queue, task(1)));
    woken = list_of(2, 3);
    blz__inject_push(&queue, &woken);
    taken = blz__inject_take(&queue, 10);
    assert_int_equal(taken.count, 2);
    assert_int_equal(number_of(task_list_take(&taken)), 0);
    assert_int_equal(number_of(task_list_take(&taken)), 2);
    assert_int_equal(queue.spawned, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tasks_come_out_in_the_order_in_which_they_went_in),
        TEST(an_unshared_ring_is_in_order_too),
        TEST(a_full_ring_spills_its_newer_half),
        TEST(a_thief_takes_the_older_half),
        TEST(a_single_task_can_be_stolen),
        TEST(a_thief_without_room_takes_nothing),
        TEST(positions_wrap),
        TEST(no_task_is_lost_or_doubled_while_a_thief_is_at_work),
        TEST(injected_tasks_are_taken_oldest_first),
        TEST(a_closed_queue_refuses_new_tasks_but_not_woken_ones),
    };
    return RUN_TESTS(tests);
}
