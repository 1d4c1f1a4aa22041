/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idle set of idle.h. All operations on the word are sequentially consistent: each is one half
 * of a Dekker pair with a queue ("I have queued / is somebody awake?" against "I am parked / is
 * anything queued?").
 */
#include "sched/idle.h"

#include "base/assert.h"

#define SEARCHER ((uint64_t)1 << 32)
#define PARKED   ((uint64_t)1)

static uint64_t bit_of(uint32_t worker)
{
    return (uint64_t)1 << (worker % 64);
}

/* Clears any bit; there is one for us, though perhaps not where we look first. */
static int clear_some_bit(idle_set *idle)
{
    BLZ_ASSERT(idle->nr_workers > 0);
    for (uint32_t i = 0;; i = i + 1 < idle_words(idle->nr_workers) ? i + 1 : 0) {
        uint64_t bits =
            blz__load(&idle->bits[i], ACQUIRE); /* pairs with the or in blz__idle_park */

        while (bits) {
            uint64_t bit = bits & -bits;
            if (blz__fetch_and(&idle->bits[i], ~bit, ACQ_REL) & bit)
                return (int)(i * 64 + (uint32_t)__builtin_ctzll(bit));
            bits &= ~bit; /* another claimer was faster */
        }
    }
}

int blz__idle_claim(idle_set *idle)
{
    uint64_t word = blz__load(&idle->word, SEQ_CST); /* after the caller's push; see idle.h */

    do {
        if (idle_searching(word) != 0 || idle_parked(word) == 0)
            return -1;
    } while (!blz__cas_weak(&idle->word, &word, word + SEARCHER - PARKED, SEQ_CST, SEQ_CST));
    return clear_some_bit(idle);
}

bool blz__idle_park(idle_set *idle, uint32_t worker, bool searching)
{
    uint64_t *bits = &idle->bits[worker / 64], word;

    BLZ_ASSERT(worker < idle->nr_workers);
    BLZ_ASSERT(!(blz__peek(bits) & bit_of(worker)));
    blz__fetch_or(bits, bit_of(worker), RELEASE); /* pairs with the acquire in clear_some_bit */
    word = blz__fetch_add(&idle->word, PARKED - (searching ? SEARCHER : 0), SEQ_CST);
    BLZ_ASSERT(idle_parked(word) < idle->nr_workers);
    BLZ_ASSERT(!searching || idle_searching(word) > 0);
    return searching && idle_searching(word) == 1;
}

bool blz__idle_unpark(idle_set *idle, uint32_t worker)
{
    uint64_t *bits = &idle->bits[worker / 64];
    uint64_t word = blz__load(&idle->word, RELAXED);

    BLZ_ASSERT(worker < idle->nr_workers);
    for (;;) {
        if (!(blz__load(bits, ACQUIRE) & bit_of(worker)))
            return true;
        if (idle_parked(word) == 0) {
            /* All that is set is promised: a claimer, or a worker that leaves, is at work on the
             * bitmap. Ours will be cleared, or counted again, in a few instructions. */
            blz__spin_hint();
            word = blz__load(&idle->word, RELAXED);
        } else if (blz__cas_weak(&idle->word, &word, word - PARKED, SEQ_CST, RELAXED)) {
            break;
        }
    }
    if (blz__fetch_and(bits, ~bit_of(worker), ACQ_REL) & bit_of(worker))
        return false;
    /* Claimed in between: what we took off the count belongs to somebody who still sleeps. */
    blz__fetch_add(&idle->word, PARKED, SEQ_CST);
    return true;
}

bool blz__idle_search(idle_set *idle)
{
    uint64_t word = blz__load(&idle->word, RELAXED);

    if (2 * idle_searching(word) >= idle->nr_workers)
        return false; /* a rule of thumb: a few more do no harm */
    blz__fetch_add(&idle->word, SEARCHER, SEQ_CST);
    return true;
}

bool blz__idle_found(idle_set *idle)
{
    uint64_t word = blz__fetch_sub(&idle->word, SEARCHER, SEQ_CST);

    BLZ_ASSERT(idle_searching(word) > 0);
    return idle_searching(word) == 1;
}

/* ---- validator ---- */

const char *blz__idle_check(const idle_set *idle)
{
    uint64_t word = blz__peek(&idle->word);
    uint32_t nr_set = 0;

    for (uint32_t i = 0; i < idle_words(idle->nr_workers); i++)
        nr_set += (uint32_t)__builtin_popcountll(blz__peek(&idle->bits[i]));
    if (idle->nr_workers % 64 != 0)
        BLZ_REQUIRE(blz__peek(&idle->bits[idle->nr_workers / 64]) >> idle->nr_workers % 64 == 0);
    BLZ_REQUIRE(idle_parked(word) == nr_set);
    BLZ_REQUIRE((uint64_t)idle_parked(word) + idle_searching(word) <= idle->nr_workers);
    return NULL;
}
