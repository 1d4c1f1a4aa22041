/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs of one worker: a ring with a private part.
 *
 *        top            bottom           tail              limit
 *         |  public        |   private     |   free slots    |   no slots
 *         v                v               v                 v
 *   ------[a][b][c]........[d][e][f].......[ ][ ][ ][ ]......
 *     thieves take ->      <- the owner takes, and adds
 *
 * The public part is a Chase-Lev deque: thieves take from `top` by compare and swap; the owner
 * takes from `bottom`, and meets them only at the last job. The private part is the owner's own:
 * adding and taking there (par.h) are plain stores. To publish is to move `bottom` up by one over
 * the oldest private job, whose slot is written already.
 *
 * Forks nest, so the newest job is the next to be joined. If that one is public there is no
 * private one (tail == bottom), and if it was stolen so were all older ones.
 *
 * Indices only grow, but for `bottom` that goes back by one while the owner takes; 2^63 of them do
 * not run out. A slot is written when `tail` is below `limit`, that is one capacity above a `top`
 * that the owner has seen: no thief that read an older index succeeds any more. Beyond `limit`
 * jobs have no slot. They cannot be published, and their unfork finds them private: a full ring
 * needs no other treatment. `limit` moves only while all jobs have slots.
 *
 * Orders: the owner moves `bottom` down, then looks at `top`; a thief looks at `top`, then at
 * `bottom`. All four are seq_cst, so of an owner and a thief that want the same job one sees the
 * other. On x86 that is one exchange for the owner, and for the thief nothing but its compare and
 * swap.
 *
 * A thief can take the oldest private job, too, of an owner that shows none and does not come to
 * do so (ring_force_begin). The owner compares with `guard`, which is `bottom` but while that
 * happens:
 *
 *     owner, at an unfork             thief, with the lock
 *     tail = index                    guard = infinity
 *     light fence                     heavy fence
 *     index >= guard? it is mine      tail > bottom? the job at bottom is mine
 *     no: ring_unfork                 top and bottom + 1; guard = bottom; unlocks
 *
 * After the heavy fence either the thief sees that the job is gone, or the owner finds the guard up
 * and waits for the lock, unless its job is a newer one. The owner moves `bottom` with the same
 * lock, so a thief that has it finds bottom and top at rest if they are equal.
 */
#ifndef BLZ_PAR_DEQUE_H
#define BLZ_PAR_DEQUE_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/cacheline.h"
#include "base/fence.h"
#include "base/lock.h"
#include "tuning.h"

#if PAR_INLINE_HOOKED && defined(BLITZ_PAR_H)
#error "models want this before blitz/par.h"
#endif
#define blz_par_load_(p)       blz__load((p), RELAXED)
#define blz_par_store_(p, v)   blz__store((p), (v), RELAXED)
#define blz_par_release_(p, v) blz__store((p), (v), RELEASE)
#define blz_par_light_fence_() blz__fence_light()
#include <blitz/par.h>

typedef struct ring {
    blz_par own;    /* the owner's side; `bottom` is read by thieves */
    int64_t limit;  /* written by the owner */
    blz__lock lock; /* of guard and bottom */
    blz__cache_aligned int64_t top;
    blz_par_job **slots; /* again, for thieves: the owner's line is busy */
    uint64_t mask;
} ring;

typedef enum ring_steal_result { RING_EMPTY, RING_LOST, RING_TAKEN } ring_steal_result;

static inline void ring_init(ring *r, blz_par_job **slots, uint32_t capacity, int64_t first)
{
    BLZ_ASSERT(capacity > 0 && (capacity & (capacity - 1)) == 0);
    r->own = (blz_par){
        .slots = slots, .mask = capacity - 1, .tail = first, .guard = first, .bottom = first};
    r->slots = slots;
    r->mask = capacity - 1;
    r->top = first;
    r->limit = first + capacity;
    r->lock = (blz__lock){0};
}

/* Makes room if there is any: how many more jobs get a slot. [owner] */
static inline int64_t ring_room(ring *r)
{
    int64_t limit;

    if (r->own.tail > r->limit)
        return 0;
    /* acquire: pairs with the steals that moved it; they have read their slots */
    limit = blz__load(&r->top, ACQUIRE) + (int64_t)r->mask + 1;
    if (limit != r->limit)
        blz__store(&r->limit, limit, RELAXED);
    return limit - r->own.tail;
}

/* Adds the job, with a slot if there is room. [owner] */
static inline void ring_add(ring *r, blz_par_job *job)
{
    int64_t tail = r->own.tail;

    if (tail < r->limit)
        blz__store(&r->slots[(uint64_t)tail & r->mask], job, RELAXED);
    blz__store(&r->own.tail, tail + 1, RELEASE); /* pairs with ring_force_begin */
}

/* ---- publishing ---- */

/*
 * The oldest private job, which may become public; nobody else takes it until ring_publish_end.
 * NULL: there is none that could, and nothing is to be ended. [owner]
 */
static inline blz_par_job *ring_publish_begin(ring *r)
{
    int64_t bottom;

    blz__lock_acquire(&r->lock);
    bottom = blz__load(&r->own.bottom, RELAXED);
    if (bottom < r->own.tail && bottom < r->limit)
        return blz__load(&r->slots[(uint64_t)bottom & r->mask], RELAXED);
    blz__lock_release(&r->lock);
    return NULL;
}

/* That job, which is prepared for it, becomes public. [owner] */
static inline void ring_publish_end(ring *r)
{
    int64_t bottom = blz__load(&r->own.bottom, RELAXED) + 1;

    BLZ_ASSERT(blz__lock_is_held(&r->lock));
    BLZ_ASSERT(bottom <= r->own.tail);
    BLZ_ASSERT(bottom <= r->limit);
    /* release: pairs with the load of bottom in ring_steal; slot and job are written */
    blz__store(&r->own.bottom, bottom, RELEASE);
    blz__store(&r->own.guard, bottom, RELAXED);
    blz__lock_release(&r->lock);
}

/* Whether thieves find something here; perhaps no longer so. [any thread] */
static inline bool ring_has_public(const ring *r)
{
    return blz__load(&r->top, RELAXED) < blz__load(&r->own.bottom, RELAXED);
}

/* ---- unfork, if the job may not be the owner's alone ---- */

/*
 * Takes the newest job back, which is public: there is no private one. False: it was stolen.
 * [owner, with the lock]
 */
static inline bool ring_take_public(ring *r)
{
    int64_t bottom = blz__load(&r->own.bottom, RELAXED) - 1;
    int64_t top = blz__load(&r->top, RELAXED);
    bool mine = true;

    BLZ_ASSERT(blz__lock_is_held(&r->lock));
    if (top > bottom) {
        blz__store(&r->own.tail, bottom + 1, RELEASE);
        return false;
    }
    /* seq_cst, with the load after it and those in ring_steal: of owner and thief, one sees the
     * other; release: as ring_publish_end, for thieves that take older jobs by this value */
    blz__swap(&r->own.bottom, bottom, SEQ_CST);
    top = blz__load(&r->top, SEQ_CST);
    if (top < bottom) {
        blz__store(&r->own.guard, bottom, RELAXED);
        return true;
    }
    if (top == bottom) /* the last one: whoever moves top has it */
        mine = blz__cas(&r->top, &top, top + 1, RELAXED, RELAXED);
    else
        mine = false;
    blz__store(&r->own.bottom, bottom + 1, RELAXED); /* as top: there is nothing to take below it */
    blz__store(&r->own.tail, bottom + 1, RELEASE);
    return mine;
}

/* Whether the unfork of that job would wait for a thief just now. [owner] */
static inline bool ring_is_held(ring *r, int64_t index)
{
    if (index > blz__load(&r->own.bottom, RELAXED))
        return false;
    if (!blz__lock_try(&r->lock))
        return true;
    blz__lock_release(&r->lock);
    return false;
}

/* The guard is above the newest job, and tail says already that it is gone. As above. [owner] */
static inline bool ring_unfork(ring *r, int64_t index)
{
    bool mine = true;

    if (index > blz__load(&r->own.bottom, RELAXED)) /* a thief is after an older one */
        return true;
    blz__lock_acquire(&r->lock);
    if (index < blz__load(&r->own.bottom, RELAXED))
        mine = ring_take_public(r);
    blz__lock_release(&r->lock);
    return mine;
}

/* ---- thieves ---- */

/* The oldest job, as far as one can see, and its index. False: there is none. [any thread] */
static inline bool ring_look(ring *r, int64_t *index, blz_par_job **job)
{
    int64_t top = blz__load(&r->top, SEQ_CST); /* see ring_take_public */
    /* acquire: pairs with the release in ring_publish_end */
    int64_t bottom = blz__load(&r->own.bottom, SEQ_CST);

    *index = top;
    if (top >= bottom)
        return false;
    *job = blz__load(&r->slots[(uint64_t)top & r->mask], RELAXED);
    return true;
}

/* Takes it. False: another one was faster, there may be more. [who has looked] */
static inline bool ring_take(ring *r, int64_t index)
{
    /* release: the slot is read; pairs with the acquire in ring_room */
    return blz__cas(&r->top, &index, index + 1, RELEASE, RELAXED);
}

/* Looks, and takes. LOST: another one was faster. [any thread] */
static inline ring_steal_result ring_steal(ring *r, blz_par_job **job)
{
    int64_t index;

    if (!ring_look(r, &index, job))
        return RING_EMPTY;
    return ring_take(r, index) ? RING_TAKEN : RING_LOST;
}

/* Whether there are jobs that are not shown to others; perhaps no longer so. [any thread] */
static inline bool ring_has_private(const ring *r)
{
    return blz__load(&r->own.bottom, RELAXED) < blz__load(&r->own.tail, RELAXED);
}

/*
 * The oldest private job, if no job is public: the caller's, if it likes. The owner waits until
 * ring_force_end or ring_force_cancel. NULL: there is none, and nothing is to be ended. Only where
 * fences are asymmetric. [any other thread]
 */
static inline blz_par_job *ring_force_begin(ring *r)
{
    int64_t bottom;

    if (!blz__lock_try(&r->lock))
        return NULL;
    bottom = blz__load(&r->own.bottom, RELAXED);
    if (bottom == blz__load(&r->top, RELAXED) && bottom < blz__load(&r->limit, RELAXED) &&
        bottom < blz__load(&r->own.tail, RELAXED)) {
        blz__store(&r->own.guard, INT64_MAX, RELAXED);
        blz__fence_heavy(); /* pairs with the light fence in blz_par_unfork */
        /* acquire: pairs with the releases of those that write it; slot and job are written */
        if (bottom < blz__load(&r->own.tail, ACQUIRE))
            return blz__load(&r->slots[(uint64_t)bottom & r->mask], RELAXED);
        blz__store(&r->own.guard, bottom, RELAXED);
    }
    blz__lock_release(&r->lock);
    return NULL;
}

/* That job is left to the owner. [who began] */
static inline void ring_force_cancel(ring *r)
{
    BLZ_ASSERT(blz__lock_is_held(&r->lock));
    BLZ_ASSERT(blz__peek(&r->own.guard) == INT64_MAX);
    blz__store(&r->own.guard, blz__load(&r->own.bottom, RELAXED), RELAXED);
    blz__lock_release(&r->lock);
}

/* That job, which is prepared for it, is the caller's. [who began] */
static inline void ring_force_end(ring *r)
{
    int64_t bottom = blz__load(&r->own.bottom, RELAXED) + 1;

    BLZ_ASSERT(blz__lock_is_held(&r->lock));
    BLZ_ASSERT(blz__peek(&r->own.guard) == INT64_MAX);
    BLZ_ASSERT(blz__peek(&r->top) == bottom - 1);
    /* release: the slot is read; pairs with the acquire in ring_room */
    blz__store(&r->top, bottom, RELEASE);
    /* release: who reads this reads that top, too, and finds nothing between them */
    blz__store(&r->own.bottom, bottom, RELEASE);
    blz__store(&r->own.guard, bottom, RELAXED);
    blz__lock_release(&r->lock);
}

/* ---- validator (base/assert.h) ---- */

/* No thief takes a private job meanwhile; public ones may be stolen. [owner] */
static inline const char *blz__deque_check(const ring *r)
{
    int64_t top = blz__peek(&r->top), bottom = blz__peek(&r->own.bottom);

    BLZ_REQUIRE(top <= bottom);
    BLZ_REQUIRE(bottom <= r->own.tail);
    BLZ_REQUIRE(bottom <= r->limit);
    BLZ_REQUIRE(blz__peek(&r->own.guard) == bottom);
    BLZ_REQUIRE(r->limit <= top + (int64_t)r->mask + 1);
    BLZ_REQUIRE(r->slots == r->own.slots && r->mask == r->own.mask);
    for (int64_t i = top; i < r->own.tail && i < r->limit; i++) {
        BLZ_REQUIRE(blz__peek(&r->slots[(uint64_t)i & r->mask]) != NULL);
        BLZ_REQUIRE(blz__peek(&r->slots[(uint64_t)i & r->mask])->index == i);
    }
    return NULL;
}

/* As above, of a thread that is in no computation. */
static inline const char *blz__deque_check_idle(const ring *r)
{
    const char *broken = blz__deque_check(r);

    BLZ_REQUIRE(blz__peek(&r->top) == r->own.tail);
    return broken;
}

#endif
