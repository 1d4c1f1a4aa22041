/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asserts and validators (src/base/assert.h): an assert that fails says what and where, in builds
 * with checks alone; and each validator finds what is wrong with a structure.
 */
#include "par/deque.h" /* before blitz/par.h */

#include "dies.h"

#include "base/assert.h"
#include "base/biased_lock.h"
#include "io/io.h"
#include "sched/rt.h"
#include "task/chunk.h"

#include <string.h>
#include <unistd.h>

#define assert_valid(verdict) assert_null(verdict)

/* The invariant that is broken is named by its condition. */
#define assert_broken(verdict, words)                                      \
    do {                                                                   \
        const char *broken_ = (verdict);                                   \
        assert_non_null(broken_);                                          \
        if (!strstr(broken_, (words)))                                     \
            fail_msg("it found \"%s\", and not \"%s\"", broken_, (words)); \
    } while (0)

/* ---- asserts ---- */

static int evaluated;

static void assert_something_wrong(void)
{
    BLZ_ASSERT(++evaluated == 0);
}

static void release_a_lock_that_is_free(void)
{
    blz__lock lock = {0};

    blz__lock_release(&lock);
}

static void report_a_broken_structure(void)
{
    BLZ_ASSERT_VALID("tail <= limit");
}

static void an_assert_says_what_failed_and_where(void **state)
{
    (void)state;
#ifdef BLZ_CHECKS
    assert_dies(assert_something_wrong, "assertion ++evaluated == 0 failed at ");
    assert_dies(assert_something_wrong, "validators_test.c:");
    assert_dies(assert_something_wrong, " in assert_something_wrong");
    assert_dies(release_a_lock_that_is_free, "blz__lock_is_held(lock)");
    assert_dies(report_a_broken_structure, "tail <= limit");
#else
    assert_something_wrong();
    assert_int_equal(evaluated, 0);
    report_a_broken_structure();
    (void)release_a_lock_that_is_free;
#endif
}

/* ---- the run queue ---- */

static _Alignas(64) char blocks[4][sizeof(blz_task)]; /* only their links are used */

static blz_task *task(int number)
{
    return (blz_task *)(void *)blocks[number];
}

static void a_ring_with_positions_out_of_order_is_found(void **state)
{
    static runq q;
    task_list spill = {NULL, NULL, 0};

    (void)state;
    memset(&q, 0, sizeof q);
    assert_valid(blz__runq_check(&q));
    for (int i = 0; i < 4; i++)
        blz__runq_push(&q, task(i), &spill);
    assert_valid(blz__runq_check(&q));
    q.head = (uint64_t)2 << 32 | 1; /* the thief is further than the owner */
    assert_broken(blz__runq_check(&q), "real - steal");
    q.head = 0;
    q.tail = RUNQ_CAPACITY + 1;
    assert_broken(blz__runq_check(&q), "tail - steal <= RUNQ_CAPACITY");
    q.tail = 5; /* the last slot was never filled */
    assert_broken(blz__runq_check(&q), "!= NULL");
    q.slots[4] = task(1);
    assert_broken(blz__runq_check(&q), "!is_twice");
    q.tail = 4;
    q.head = 1;
    q.unshared = true;
    assert_broken(blz__runq_check(&q), "unshared");
}

static void a_list_with_a_wrong_count_is_found(void **state)
{
    task_list list = {NULL, NULL, 0};

    (void)state;
    task_list_append(&list, task(0));
    task_list_append(&list, task(1));
    assert_valid(blz__task_list_check(&list));
    list.count = 3;
    assert_broken(blz__task_list_check(&list), "count == list->count");
    list.count = 2;
    list.last = task(0);
    assert_broken(blz__task_list_check(&list), "last == list->last");
    list.last = task(1);
    task(1)->next = task(0); /* a circle */
    assert_broken(blz__task_list_check(&list), "count == list->count");
}

/* ---- the idle set ---- */

static void an_idle_set_that_miscounts_is_found(void **state)
{
    uint64_t bits[2] = {0, 0};
    idle_set idle = {.bits = bits, .nr_workers = 70};

    (void)state;
    blz__idle_park(&idle, 3, false);
    blz__idle_park(&idle, 69, false);
    assert_valid(blz__idle_check(&idle));
    bits[0] = 0; /* counted, but in no place */
    assert_broken(blz__idle_check(&idle), "idle_parked(word) == nr_set");
    bits[0] = 1 << 3;
    bits[1] |= 1 << 6; /* there is no worker 70 */
    assert_broken(blz__idle_check(&idle), ">> idle->nr_workers % 64 == 0");
    bits[1] = 1 << 5;
    idle.word += (uint64_t)69 << 32; /* more searchers than are awake */
    assert_broken(blz__idle_check(&idle), "<= idle->nr_workers");
}

/* ---- the timer wheel ---- */

static void a_wheel_with_a_misplaced_timer_is_found(void **state)
{
    static blz__wheel wheel;
    blz_timer near = {0}, far = {0};

    (void)state;
    blz__wheel_init(&wheel, 0, blz__fence_asymmetric_init());
    blz__wheel_insert(&wheel, &near, 10 * BLZ_MSEC, true);
    blz__wheel_insert(&wheel, &far, 5000 * BLZ_MSEC, true);
    assert_valid(blz__wheel_check(&wheel));
    near.tick = 11;
    assert_broken(blz__wheel_check(&wheel), "is_in_place");
    near.tick = 10;
    far.tick = 64 * 64 * 64; /* belongs one level higher */
    assert_broken(blz__wheel_check(&wheel), "is_in_place");
    far.tick = 5000;
    near.state = TIMER_FIRED;
    assert_broken(blz__wheel_check(&wheel), "TIMER_ARMED");
    near.state = TIMER_ARMED;
    wheel.occupied[0] = 0; /* a slot that nobody would look at */
    assert_broken(blz__wheel_check(&wheel), "occupied");
    wheel.occupied[0] = (uint64_t)1 << 10;
    wheel.next_ns = wheel.next_guess = 20 * BLZ_MSEC; /* sleeps too long */
    assert_broken(blz__wheel_check(&wheel), "next_ns <= ");
    wheel.next_ns = wheel.next_guess = 10 * BLZ_MSEC;
    near.prev = &far;
    assert_broken(blz__wheel_check(&wheel), "prev == before");
    near.prev = NULL;
    assert_valid(blz__wheel_check(&wheel));
    assert_true(blz__wheel_remove(&near, true) && blz__wheel_remove(&far, true));
}

/* ---- the heap of tasks ---- */

static void a_heap_with_a_lost_block_is_found(void **state)
{
    struct blz__chunk *removed = NULL, *chunk;
    blz_task *kept, *given_back;
    blz__pool pool;
    blz__heap heap;

    (void)state;
    blz__pool_init(&pool, test_memory(), NULL);
    blz__heap_init(&heap, NULL, &pool);
    kept = blz__heap_alloc(&heap, 200, NULL);
    given_back = blz__heap_alloc(&heap, 200, NULL);
    blz__heap_free_local(&heap, given_back, &removed);
    assert_null(removed);
    assert_valid(blz__heap_check(&heap));
    chunk = heap.all;
    chunk->used = 0; /* the block that is in use is in no list */
    assert_broken(blz__heap_check(&heap), "used + nr_free == chunk->bump");
    chunk->used = 1;
    given_back->state = 1; /* a free block with a task in it */
    assert_broken(blz__heap_check(&heap), "state");
    given_back->state = 0;
    given_back->next = given_back;
    assert_broken(blz__heap_check(&heap), "nr_free++ < chunk->bump");
    given_back->next = (blz_task *)(void *)((char *)given_back + 16);
    assert_broken(blz__heap_check(&heap), "is_block_of");
    given_back->next = NULL;
    chunk->listed = true;
    assert_broken(blz__heap_check(&heap), "listed");
    chunk->listed = false;
    chunk->prev_all = chunk;
    assert_broken(blz__heap_check(&heap), "prev_all == before");
    chunk->prev_all = NULL;
    assert_valid(blz__heap_check(&heap));
    blz__heap_free_local(&heap, kept, &removed);
    blz__heap_release(&heap, removed);
    blz__heap_destroy(&heap);
    blz__pool_destroy(&pool);
}

/* ---- the ring of jobs ---- */

static void a_ring_of_jobs_that_lost_its_order_is_found(void **state)
{
    blz_par_job jobs[3] = {{.index = 0}, {.index = 1}, {.index = 2}}, *slots[4] = {NULL};
    static ring r;

    (void)state;
    ring_init(&r, slots, 4, 0);
    assert_valid(blz__deque_check_idle(&r));
    for (int i = 0; i < 3; i++)
        ring_add(&r, &jobs[i]);
    assert_non_null(ring_publish_begin(&r));
    ring_publish_end(&r);
    assert_valid(blz__deque_check(&r));
    assert_broken(blz__deque_check_idle(&r), "== r->own.tail");
    r.top = 2;
    assert_broken(blz__deque_check(&r), "top <= bottom");
    r.top = 0;
    r.own.guard = 0;
    assert_broken(blz__deque_check(&r), "guard");
    r.own.guard = 1;
    jobs[2].index = 7;
    assert_broken(blz__deque_check(&r), "index == i");
    jobs[2].index = 2;
    slots[1] = NULL;
    assert_broken(blz__deque_check(&r), "!= NULL");
    slots[1] = &jobs[1];
    r.limit = 5; /* a slot that a thief may still read */
    assert_broken(blz__deque_check(&r), "limit <= top");
    r.limit = 4;
    r.own.tail = 0;
    assert_broken(blz__deque_check(&r), "bottom <= r->own.tail");
}

/* ---- descriptors ---- */

static void a_table_of_descriptors_that_leaks_is_found(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz__fd_ref refs[2];
    int ends[2];
    blz__fd *entry;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(blz__fd_adopt(&refs[i], rt, ends[i], 0), 0);
    assert_valid(blz__fd_check(rt->io));
    entry = refs[0].entry;
    entry->state |= FD_CLOSING; /* and nobody is left to close it */
    assert_broken(blz__fd_check(rt->io), "FD_CLOSING");
    entry->state = 0;
    entry->refs = 1;
    assert_broken(blz__fd_check(rt->io), "refs == 0");
    entry->state = FD_IN_USE;
    entry->refs = 0;
    entry->lock.word = 1;
    assert_broken(blz__fd_check(rt->io), "!blz__lock_is_held");
    entry->lock.word = 0;
    assert_int_equal(blz__fd_close(&refs[1]), 0);
    assert_valid(blz__fd_check(rt->io));
    refs[1].entry->state = FD_IN_USE; /* free, and in use */
    assert_broken(blz__fd_check(rt->io), "entry->state == 0");
    refs[1].entry->state = 0;
    assert_int_equal(blz__fd_close(&refs[0]), 0);
    assert_valid(blz__fd_check(rt->io));
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_assert_says_what_failed_and_where),
        TEST(a_ring_with_positions_out_of_order_is_found),
        TEST(a_list_with_a_wrong_count_is_found),
        TEST(an_idle_set_that_miscounts_is_found),
        TEST(a_wheel_with_a_misplaced_timer_is_found),
        TEST(a_heap_with_a_lost_block_is_found),
        TEST(a_ring_of_jobs_that_lost_its_order_is_found),
        TEST(a_table_of_descriptors_that_leaks_is_found),
    };

    return RUN_TESTS(tests);
}
