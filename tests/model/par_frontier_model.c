/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frontier of a chain of blocks: threads that take blocks from left to right, write those whose
 * value before them is known, sum up the others, and write them later. Each block is written once,
 * with the right value before it; values are handed over properly.
 */
#include "par/frontier.h"

#include <string.h>

enum { MAX_BLOCKS = 4 };

static frontier f;
static uint8_t states[MAX_BLOCKS];
static uint32_t before[MAX_BLOCKS + 1], sums[MAX_BLOCKS];
static uint32_t written[MAX_BLOCKS]; /* how often */
static bool is_held[MAX_BLOCKS];     /* summed up, and not written */
static size_t next;

static uint32_t value_of(size_t i)
{
    return 1u << i;
}

static void begin(size_t nr)
{
    memset(&f, 0, sizeof f);
    memset(states, 0, sizeof states);
    memset(before, 0, sizeof before);
    memset(sums, 0, sizeof sums);
    memset(written, 0, sizeof written);
    memset(is_held, 0, sizeof is_held);
    f.states = states;
    f.nr = nr;
    next = 0;
}

static void write_block(size_t i, uint32_t value)
{
    model_assert(value == value_of(i) - 1);
    model_assert(blz__fetch_add(&written[i], 1u, RELAXED) == 0);
}

/* ---- as in chain.c ---- */

static void add_sum(size_t i, void *arg)
{
    (void)arg;
    blz__plain_read(&before[i]);
    blz__plain_read(&sums[i]);
    blz__plain_write(&before[i + 1]);
    before[i + 1] = before[i] + sums[i];
}

static void write_through(size_t i)
{
    blz__plain_read(&before[i]);
    write_block(i, before[i]);
    blz__plain_write(&before[i + 1]);
    before[i + 1] = before[i] + value_of(i);
    frontier_mark(&f, i, BLOCK_THROUGH);
}

static void sum_up(size_t i)
{
    blz__plain_write(&sums[i]);
    sums[i] = value_of(i);
    is_held[i] = true;
    frontier_mark(&f, i, BLOCK_SUMMED);
}

/* Its own before is its carry: it is written to. */
static void write_held(size_t i)
{
    blz__plain_write(&before[i]);
    write_block(i, before[i]);
    before[i] += value_of(i);
    is_held[i] = false;
}

/* One thread: so many blocks, and those of them that it can write. */
static void do_blocks(void *arg)
{
    size_t mine[MAX_BLOCKS], nr = 0;

    for (uintptr_t left = (uintptr_t)arg; left > 0; left--) {
        size_t i = blz__fetch_add(&next, 1, RELAXED);

        if (frontier_at(&f) == i) {
            write_through(i);
        } else {
            sum_up(i);
            mine[nr++] = i;
        }
        frontier_advance(&f, add_sum, NULL);
        while (nr > 0 && frontier_has_passed(&f, mine[0])) {
            write_held(mine[0]);
            memmove(mine, mine + 1, --nr * sizeof *mine);
        }
    }
}

static void finish(size_t nr)
{
    frontier_advance(&f, add_sum, NULL);
    model_assert(frontier_at(&f) == nr);
    for (size_t i = 0; i < nr; i++) {
        if (is_held[i])
            write_held(i);
        model_assert(blz__load(&written[i], RELAXED) == 1);
    }
    blz__plain_read(&before[nr]);
    model_assert(before[nr] == value_of(nr) - 1);
}

static void run(size_t first, size_t second, size_t third)
{
    model_thread other = model_start_named(do_blocks, (void *)(uintptr_t)second, "second");
    model_thread another = {0};

    if (third)
        another = model_start_named(do_blocks, (void *)(uintptr_t)third, "third");
    do_blocks((void *)(uintptr_t)first);
    model_join(other);
    if (third)
        model_join(another);
    finish(first + second + third);
}

/* ---- the models ---- */

static void two_threads_share_four_blocks(void)
{
    begin(4);
    run(2, 2, 0);
}

static void three_threads_have_a_block_each(void)
{
    begin(3);
    run(1, 1, 1);
}

static void one_thread_goes_ahead_of_another(void)
{
    begin(4);
    run(1, 3, 0);
}

static const struct model models[] = {
    {"two_threads_share_four_blocks", two_threads_share_four_blocks, {.preemptions = 2}},
    {"three_threads_have_a_block_each", three_threads_have_a_block_each, {.preemptions = 2}},
    {"one_thread_goes_ahead_of_another", one_thread_goes_ahead_of_another, {.preemptions = 2}},
};

MODEL_MAIN(models)
