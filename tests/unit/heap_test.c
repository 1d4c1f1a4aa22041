/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of tasks, by itself: sizes, reuse, blocks given back by others, chunks given back. */
#include "harness.h"

#include "base/alloc.h"
#include "task/chunk.h"
#include "task/header.h"
#include "task/heap.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

static blz__pool pool;
static blz__heap heap;

static void begin(const blz_allocator *allocator)
{
    blz__pool_init(&pool, allocator, NULL);
    blz__heap_init(&heap, NULL, &pool);
}

static void end(void)
{
    struct blz__chunk *removed = NULL;

    assert_null(blz__heap_check(&heap));
    assert_int_equal(blz__heap_used(&heap, &removed), 0);
    blz__heap_release(&heap, removed);
    blz__heap_destroy(&heap);
    blz__pool_destroy(&pool);
}

static void give_back(blz_task *block)
{
    struct blz__chunk *removed = NULL;

    blz__heap_free_local(&heap, block, &removed);
    assert_null(blz__heap_check(&heap));
    blz__heap_release(&heap, removed);
}

/* All of the block is ours to write. */
static blz_task *take(size_t size)
{
    blz_task *block = blz__heap_alloc(&heap, size, NULL);

    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 16, 0);
    assert_ptr_equal(blz__heap_of(block), &heap);
    assert_int_equal(block->state, 0);
    memset(block + 1, 0x5a, size - sizeof *block);
    return block;
}

static size_t next_size(size_t size)
{
    return size < 1100 ? size + 1 : size + size / 13;
}

/* ---- sizes ---- */

static void take_all_sizes(void)
{
    static blz_task *blocks[4000];
    int n = 0;

    for (size_t size = sizeof(blz_task); size < 300000; size = next_size(size), n++)
        blocks[n] = take(size);
    for (int i = 0; i < n; i++)
        give_back(blocks[i]);
}

static void blocks_of_all_sizes_come_from_the_programs_allocator(void **state)
{
    (void)state;
    begin(test_memory());
    take_all_sizes();
    end();
}

static void blocks_of_all_sizes_come_from_the_systems_pages(void **state)
{
    (void)state;
    begin(&blz__system_allocator);
    take_all_sizes();
    end();
}

static void a_block_is_not_much_larger_than_asked_for(void **state)
{
    (void)state;
    begin(test_memory());
    for (size_t size = sizeof(blz_task); size <= 8192; size++) {
        blz_task *block = take(size);
        size_t block_size = chunk_of(block)->block_size;
        assert_true(block_size >= size);
        assert_true(block_size < size + 16 || block_size <= size + size / 8);
        give_back(block);
    }
    end();
}

static void blocks_do_not_overlap(void **state)
{
    enum { BLOCKS = 3000 };
    static blz_task *blocks[BLOCKS];
    static size_t sizes[BLOCKS];

    (void)state;
    begin(test_memory());
    srand(1);
    for (int i = 0; i < BLOCKS; i++) {
        sizes[i] = sizeof(blz_task) + (size_t)(rand() % 900);
        blocks[i] = take(sizes[i]);
        memset(blocks[i] + 1, i & 0xff, sizes[i] - sizeof(blz_task));
    }
    for (int i = 0; i < BLOCKS; i++)
        for (unsigned char *byte = (void *)(blocks[i] + 1), *stop = (unsigned char *)blocks[i];
             byte < stop + sizes[i]; byte++)
            assert_int_equal(*byte, i & 0xff);
    for (int i = 0; i < BLOCKS; i++)
        give_back(blocks[i]);
    end();
}

/* ---- reuse ---- */

static void a_block_given_back_is_the_next_one_taken(void **state)
{
    blz_task *first, *second;

    (void)state;
    begin(test_memory());
    first = take(200);
    second = take(200);
    assert_ptr_not_equal(first, second);
    give_back(first);
    assert_ptr_equal(take(200), first);
    give_back(second);
    give_back(first);
    end();
}

static void many_rounds_need_no_more_memory_than_one(void **state)
{
    enum { BLOCKS = 2000 };
    static blz_task *blocks[BLOCKS];
    int64_t after_one = 0;

    (void)state;
    begin(test_memory());
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = take(300);
        if (round == 0)
            after_one = memory_bytes(the_memory());
        assert_int_equal(memory_bytes(the_memory()), after_one);
        for (int i = 0; i < BLOCKS; i++)
            give_back(blocks[i]);
    }
    end();
}

static void empty_chunks_are_given_back(void **state)
{
    enum { BLOCKS = 5000 };
    static blz_task *blocks[BLOCKS];

    (void)state;
    begin(test_memory());
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = take(400);
    assert_true(memory_blocks(the_memory()) > 20);
    for (int i = 0; i < BLOCKS; i++) /* in an order that empties them at different times */
        give_back(blocks[(i * 7) % BLOCKS]);
    assert_true(memory_blocks(the_memory()) <= 1); /* one is kept for the next block */
    end();
}

static void large_blocks_are_given_back_at_once(void **state)
{
    int64_t before;

    (void)state;
    begin(test_memory());
    before = memory_blocks(the_memory());
    for (size_t size = 9000; size < 400000; size += 50000) {
        blz_task *block = take(size);
        assert_int_equal(memory_blocks(the_memory()), before + 1);
        give_back(block);
        assert_int_equal(memory_blocks(the_memory()), before);
    }
    end();
}

static void spans_are_unmapped_when_their_chunks_are_empty(void **state)
{
    enum { BLOCKS = 4000 };
    static blz_task *blocks[BLOCKS];
    unsigned peak;

    (void)state;
    begin(&blz__system_allocator);
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = take(4096);
    peak = pool.nr_spans;
    assert_true(peak >= 8);
    for (int i = 0; i < BLOCKS; i++)
        give_back(blocks[i]);
    assert_true(pool.nr_spans <= 2);
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = take(4096);
    assert_int_equal(pool.nr_spans, peak);
    for (int i = 0; i < BLOCKS; i++)
        give_back(blocks[i]);
    end();
}

/* ---- by others ---- */

static void *give_back_remotely(void *arg)
{
    blz_task **blocks = arg;

    for (; *blocks; blocks++)
        blz__heap_free_remote(*blocks, *blocks);
    return NULL;
}

static void blocks_given_back_by_others_are_used_again(void **state)
{
    enum { BLOCKS = 1000 };
    static blz_task *blocks[BLOCKS + 1];
    int64_t bytes = 0;

    (void)state;
    begin(test_memory());
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = take(150);
        if (round == 0)
            bytes = memory_bytes(the_memory());
        assert_true(memory_bytes(the_memory()) <= bytes + 2 * (int64_t)HEAP_CHUNK);
        join_thread(start_thread(give_back_remotely, blocks));
    }
    end();
}

static void a_list_of_blocks_is_given_back_in_one_step(void **state)
{
    enum { BLOCKS = 100 };
    blz_task *blocks[BLOCKS];

    (void)state;
    begin(test_memory());
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = take(100);
    for (int i = 0; i + 1 < BLOCKS; i++)
        blocks[i]->next = blocks[i + 1];
    blz__heap_free_remote(blocks[0], blocks[BLOCKS - 1]);
    end();
}

enum { FREERS = 3, EACH = 3000 };

static void *churn_remotely(void *arg)
{
    blz_task **blocks = arg;

    for (int i = 0; i < EACH; i++) {
        blz_task *block;
        while (!(block = __atomic_exchange_n(&blocks[i], NULL, __ATOMIC_ACQUIRE)))
            sched_yield();
        blz__heap_free_remote(block, block);
    }
    return NULL;
}

static void several_threads_give_back_while_the_owner_takes(void **state)
{
    static blz_task *blocks[FREERS][EACH];
    pthread_t threads[FREERS];

    (void)state;
    begin(test_memory());
    for (int t = 0; t < FREERS; t++)
        threads[t] = start_thread(churn_remotely, blocks[t]);
    for (int i = 0; i < EACH; i++)
        for (int t = 0; t < FREERS; t++)
            __atomic_store_n(&blocks[t][i], take(sizeof(blz_task) + (size_t)(i % 20) * 32),
                             __ATOMIC_RELEASE);
    for (int t = 0; t < FREERS; t++)
        join_thread(threads[t]);
    end();
}

/* ---- the registry ---- */

static void count_live(blz_task *block, void *arg)
{
    *(int *)arg += block->state != 0;
}

static void a_walk_visits_every_live_block_once(void **state)
{
    enum { BLOCKS = 500 };
    blz_task *blocks[BLOCKS];
    int live = 0;

    (void)state;
    begin(test_memory());
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = take(sizeof(blz_task) + (size_t)i * 30);
        blocks[i]->state = 1;
    }
    blz__heap_walk(&heap, count_live, &live);
    assert_int_equal(live, BLOCKS);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i]->state = 0;
        give_back(blocks[i]);
    }
    live = 0;
    blz__heap_walk(&heap, count_live, &live);
    assert_int_equal(live, 0);
    end();
}

/* ---- without memory ---- */

static void without_memory_there_is_no_block_and_no_harm(void **state)
{
    blz_task *block;

    (void)state;
    begin(test_memory());
    memory_fail_at(the_memory(), 1, true);
    assert_null(blz__heap_alloc(&heap, 100, NULL));
    assert_null(blz__heap_alloc(&heap, 100000, NULL));
    memory_fail_at(the_memory(), 0, false);
    block = take(100);
    memory_fail_at(the_memory(), 1, true);
    give_back(take(100)); /* from the chunk that there is */
    memory_fail_at(the_memory(), 0, false);
    give_back(block);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(blocks_of_all_sizes_come_from_the_programs_allocator),
        TEST(blocks_of_all_sizes_come_from_the_systems_pages),
        TEST(a_block_is_not_much_larger_than_asked_for),
        TEST(blocks_do_not_overlap),
        TEST(a_block_given_back_is_the_next_one_taken),
        TEST(many_rounds_need_no_more_memory_than_one),
        TEST(empty_chunks_are_given_back),
        TEST(large_blocks_are_given_back_at_once),
        TEST(spans_are_unmapped_when_their_chunks_are_empty),
        TEST(blocks_given_back_by_others_are_used_again),
        TEST(a_list_of_blocks_is_given_back_in_one_step),
        TEST(several_threads_give_back_while_the_owner_takes),
        TEST(a_walk_visits_every_live_block_once),
        TEST(without_memory_there_is_no_block_and_no_harm),
    };
    return RUN_TESTS(tests);
}
