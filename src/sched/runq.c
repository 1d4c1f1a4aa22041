/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of runq.h.
 *
 * Nobody reads a slot that is not its own: a thief claims first. What hands the slots over is
 * `tail` (release by the owner after filling a slot, acquire by thieves) and `head` (release by a
 * thief after reading its slots, acquire by the owner before it fills them again).
 */
#include "sched/runq.h"

#include "base/assert.h"

#define MASK (RUNQ_CAPACITY - 1)
#define HALF (RUNQ_CAPACITY / 2)

_Static_assert((RUNQ_CAPACITY & MASK) == 0, "a power of two");

static inline uint32_t head_steal(uint64_t head)
{
    return (uint32_t)(head >> 32);
}

static inline uint32_t head_real(uint64_t head)
{
    return (uint32_t)head;
}

static inline uint64_t pack(uint32_t steal, uint32_t real)
{
    return (uint64_t)steal << 32 | real;
}

/* The slot lies outside of [steal, tail), or has been claimed: it is the caller's alone. */
static inline void put(runq *q, uint32_t position, blz_task *task)
{
    blz__plain_write(&q->slots[position & MASK]);
    blz__store(&q->slots[position & MASK], task, RELAXED);
}

static inline blz_task *get(const runq *q, uint32_t position)
{
    blz__plain_read(&q->slots[position & MASK]);
    return blz__load(&q->slots[position & MASK], RELAXED);
}

/*
 * Full, and no thief: claim everything, keep the older half, spill the rest. As the ring was full,
 * a slot's old and new position fall on the same index, so keeping needs no copying.
 */
static bool overflow(runq *q, uint64_t head, uint32_t tail, blz_task *task, task_list *spill)
{
    uint32_t real = head_real(head);

    BLZ_ASSERT(tail - real == RUNQ_CAPACITY);
    BLZ_ASSERT(head_steal(head) == real);
    /* acquire and release: as in pop; thieves that saw the old head fail their claim */
    if (!blz__cas(&q->head, &head, pack(tail, tail), ACQ_REL, RELAXED))
        return false; /* a thief came first: there is room now, or will be */
    for (uint32_t i = HALF; i < RUNQ_CAPACITY; i++)
        task_list_append(spill, get(q, real + i));
    task_list_append(spill, task);
    /* release: pairs with the acquire in blz__runq_steal */
    blz__store(&q->tail, tail + HALF, RELEASE);
    return true;
}

void blz__runq_push(runq *q, blz_task *task, task_list *spill)
{
    uint32_t tail = blz__load(&q->tail, RELAXED);

    BLZ_ASSERT(task);
    for (;;) {
        /* acquire: pairs with the release of a thief that has read its slots */
        uint64_t head = blz__load(&q->head, ACQUIRE);
        uint32_t steal = head_steal(head);

        if (blz_likely(tail - steal < RUNQ_CAPACITY)) {
            put(q, tail, task);
            /* release: the slot, and the task; pairs with the acquire in blz__runq_steal */
            blz__store(&q->tail, tail + 1, RELEASE);
            return;
        }
        if (steal != head_real(head)) {
            task_list_append(spill, task); /* a thief is making room: do not wait for it */
            return;
        }
        if (overflow(q, head, tail, task, spill))
            return;
    }
}

static blz_task *pop_unshared(runq *q)
{
    uint32_t real = head_real(blz__load(&q->head, RELAXED));

    BLZ_ASSERT(head_steal(blz__peek(&q->head)) == real);
    if (real == blz__load(&q->tail, RELAXED))
        return NULL;
    blz__store(&q->head, pack(real + 1, real + 1), RELAXED);
    return get(q, real);
}

blz_task *blz__runq_pop(runq *q)
{
    if (q->unshared)
        return pop_unshared(q);

    uint32_t tail = blz__load(&q->tail, RELAXED);
    uint64_t head = blz__load(&q->head, RELAXED), next;
    uint32_t real;

    do {
        real = head_real(head);
        if (real == tail)
            return NULL;
        next = pack(head_steal(head) == real ? real + 1 : head_steal(head), real + 1);
        /* acquire and release: one chain of head's values, so that the release of a thief
         * reaches the push that looks at head after us */
    } while (!blz__cas_weak(&q->head, &head, next, ACQ_REL, RELAXED));
    return get(q, real);
}

/* Claims half of the victim's tasks: their number, and *first. 0: none, or another thief. */
static uint32_t claim_half(runq *victim, uint32_t *first)
{
    /* acquire: pairs with the release in pop and push, so that the tail below is not older */
    uint64_t head = blz__load(&victim->head, ACQUIRE);

    for (;;) {
        uint32_t real = head_real(head), n;

        if (head_steal(head) != real)
            return 0;
        n = blz__load(&victim->tail, ACQUIRE) - real; /* pairs with the release in push */
        n -= n / 2;
        if (n == 0)
            return 0;
        if (n > HALF) { /* the two reads do not belong together */
            head = blz__load(&victim->head, ACQUIRE);
            continue;
        }
        if (blz__cas_weak(&victim->head, &head, pack(real, real + n), ACQ_REL, ACQUIRE)) {
            *first = real;
            return n;
        }
    }
}

/* Lets `steal` catch up with `real`. Nobody else moves `steal` meanwhile. */
static void release_claim(runq *victim)
{
    uint64_t head = blz__load(&victim->head, RELAXED);

    /* release: we have read the slots; pairs with the acquire in push */
    while (!blz__cas_weak(&victim->head, &head, pack(head_real(head), head_real(head)), ACQ_REL,
                          RELAXED))
        ;
}

blz_task *blz__runq_steal(runq *victim, runq *dst, uint32_t *moved)
{
    uint32_t tail = blz__load(&dst->tail, RELAXED), first, n;

    BLZ_ASSERT(victim != dst);
    BLZ_ASSERT(!victim->unshared && !dst->unshared);
    if (blz__runq_room(dst) < HALF)
        return NULL;
    n = claim_half(victim, &first);
    BLZ_ASSERT(n <= HALF);
    if (n == 0)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        put(dst, tail + i, get(victim, first + i));
    release_claim(victim);
    *moved = n;
    n--; /* the last one is returned, not queued */
    blz_task *task = get(dst, tail + n);
    if (n > 0)
        blz__store(&dst->tail, tail + n, RELEASE); /* pairs with the acquire in blz__runq_steal */
    return task;
}

uint32_t blz__runq_len(const runq *q)
{
    uint32_t real = head_real(blz__load(&q->head, ACQUIRE));
    uint32_t len = blz__load(&q->tail, ACQUIRE) - real;
    return len <= RUNQ_CAPACITY ? len : 0; /* read at different times */
}

uint32_t blz__runq_room(const runq *q)
{
    /* acquire: pairs with the release of a thief that has read its slots */
    uint32_t steal = head_steal(blz__load(&q->head, ACQUIRE));
    return RUNQ_CAPACITY - (blz__load(&q->tail, RELAXED) - steal);
}

/* ---- validators ---- */

static bool is_twice(const runq *q, uint32_t position, uint32_t tail)
{
    for (uint32_t other = position + 1; other != tail; other++)
        if (blz__peek(&q->slots[other & MASK]) == blz__peek(&q->slots[position & MASK]))
            return true;
    return false;
}

const char *blz__runq_check(const runq *q)
{
    uint64_t head = blz__peek(&q->head);
    uint32_t steal = head_steal(head), real = head_real(head), tail = blz__peek(&q->tail);

    BLZ_REQUIRE(tail - steal <= RUNQ_CAPACITY);
    BLZ_REQUIRE(real - steal <= tail - steal); /* steal, real and tail are in this order */
    BLZ_REQUIRE(!q->unshared || steal == real);
    for (uint32_t position = real; position != tail; position++) {
        BLZ_REQUIRE(blz__peek(&q->slots[position & MASK]) != NULL);
        BLZ_REQUIRE(!is_twice(q, position, tail));
    }
    return NULL;
}

const char *blz__task_list_check(const task_list *list)
{
    const blz_task *last = NULL;
    uint32_t count = 0;

    for (const blz_task *task = list->first; task && count <= list->count; task = task->next) {
        last = task;
        count++;
    }
    BLZ_REQUIRE(count == list->count);
    BLZ_REQUIRE(last == list->last);
    return NULL;
}
