/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutex: a word, and a line of those who found it taken.
 *
 *   bit 0        LOCKED
 *   bit 1        WAITERS: the line is not empty; changed under the lock of the line
 *   bit 2        CALLED: one has been called out of the line and is coming; it is not in the line
 *   bit 3        DUE: the next unlock hands the mutex over to the first in line
 *   bits 4-11    how often the one who is first, or called, has been passed
 *
 *   word                      event         what happens
 *   -------------------------------------------------------------------------------------------
 *   0                         lock          one CAS
 *   LOCKED                    unlock        one CAS
 *   LOCKED                    lock          spins a little, then WAITERS, into the line
 *   LOCKED WAITERS            unlock        CALLED, unlocked: the first is called out of the line
 *   CALLED [WAITERS]          lock          may pass, a few times; then into the line
 *   CALLED [WAITERS]          it comes      locks, and all passes are forgotten
 *   LOCKED CALLED [WAITERS]   it comes      back to the front of the line, DUE
 *   LOCKED CALLED [WAITERS]   unlock        one CAS: it is coming anyway
 *   LOCKED WAITERS DUE        unlock        stays locked, for the first in line
 *   CALLED [WAITERS]          it gives up   the next one is called, or nobody is
 *
 * While somebody is in line the mutex is locked or one has been called, so there is always someone
 * to see to it that the line moves on.
 *
 * Why not hand over every time: between the unlock and the moment at which the new holder runs,
 * nobody could lock. With short sections that is most of the time, and it makes a line grow that
 * never ends: each one who comes finds the mutex taken and queues. Why not always let them pass:
 * somebody might wait for ever. Spinning is for sections that are over sooner than a task is
 * suspended; where it has been for nothing a few times, it is tried now and then only.
 *
 * Nobody touches a mutex that it has let go of: the unlock is the CAS, without the lock of the
 * line; or there is someone in line who learns that it has been called, or has the mutex, only
 * after the lock is released. It is alive until then, and so is the mutex.
 */
#include "base/assert.h"
#include "base/panic.h"
#include "sync/sync.h"
#include "task/task.h"
#include "tuning.h"

#include <blitz/wait_info.h>
#include <blitz/mutex.h>

_Static_assert(sizeof(blz_mutex) == 32, "part of the ABI");
_Static_assert(sizeof(blz_mutex_op) == 88, "part of the ABI");

#define LOCKED  0x1u
#define WAITERS 0x2u
#define CALLED  0x4u
#define DUE     0x8u
#define PASS    0x10u
#define PASSES  0xff0u

enum { CALLED_OUT = WAITER_OWN }; /* the state of a waiter that is to try again */

/* ---- the word ---- */

/* Who comes now may lock. */
static bool is_open(uint32_t word)
{
    return !(word & LOCKED) && (word & PASSES) < MUTEX_PASSES * PASS;
}

static uint32_t locked_by_newcomer(uint32_t word)
{
    return (word | LOCKED) + (word & (WAITERS | CALLED) ? PASS : 0);
}

/* `word` is a guess. False: somebody has it, or it is not our turn. */
static bool take(blz_mutex *m, uint32_t word)
{
    while (is_open(word))
        /* acquire: what came before the unlock; pairs with blz_mutex_unlock and move_on */
        if (blz__cas_weak(&m->word, &word, locked_by_newcomer(word), ACQUIRE, RELAXED))
            return true;
    return false;
}

/* By the one who has been called. */
static bool take_called(blz_mutex *m)
{
    uint32_t word = blz__load(&m->word, RELAXED);

    while (!(word & LOCKED))
        /* acquire: as in take */
        if (blz__cas_weak(&m->word, &word, (word & WAITERS) | LOCKED, ACQUIRE, RELAXED))
            return true;
    return false;
}

/* ---- who has it ---- */

/*
 * For those who look at the program (blitz/wait_info.h), and for nothing else: so it is stored
 * after the mutex has been taken, without order, and is no step of a model. A thread is nobody, and
 * so is who had it at once (try_lock): to find out who that is would cost more than the lock.
 */
static inline void note_holder(blz_mutex *m, const blz_task *task)
{
    blz__stat_store(&m->holder, task ? (uint32_t)(blz__stat_load(&task->id) >> 1) : 0);
}

/* ---- spinning ---- */

/* `idle_spins` counts what was for nothing, one after the other, and what was not even tried. */
static bool is_worth_spinning(const blz_mutex *m)
{
    uint32_t idle = blz__load(&m->idle_spins, RELAXED);

    return idle < 4 || idle % 32 == 0;
}

static bool note_spin(blz_mutex *m, bool taken)
{
    blz__store(&m->idle_spins, taken ? 0 : blz__load(&m->idle_spins, RELAXED) + 1, RELAXED);
    return taken;
}

/* Not if others wait: they come first. */
static bool take_spinning(blz_mutex *m, uint32_t word)
{
    bool taken = false;

    if (MUTEX_SPINS == 0 || (word & WAITERS))
        return false;
    if (is_worth_spinning(m))
        for (int i = 0; i < MUTEX_SPINS && !taken && !(word & WAITERS); i++) {
            blz__spin_hint();
            word = blz__load(&m->word, RELAXED);
            taken = take(m, word);
        }
    return note_spin(m, taken);
}

static bool take_called_spinning(blz_mutex *m)
{
    bool taken = false;

    if (MUTEX_SPINS == 0)
        return false;
    if (is_worth_spinning(m))
        for (int i = 0; i < MUTEX_SPINS && !taken; i++) {
            blz__spin_hint();
            taken = take_called(m);
        }
    return note_spin(m, taken);
}

/* ---- the line: under its lock ---- */

/* As take; false: someone in line has been announced. */
static bool take_or_announce(blz_mutex *m)
{
    uint32_t word = blz__load(&m->word, RELAXED), next;

    BLZ_ASSERT(blz__lock_is_held(lock_in(&m->lock)));
    do {
        next = is_open(word) ? locked_by_newcomer(word) : word | WAITERS;
        /* acquire: as in take */
    } while (!blz__cas_weak(&m->word, &word, next, ACQUIRE, RELAXED));
    return is_open(word);
}

/* As take_called; false: it is due. */
static bool take_or_be_due(blz_mutex *m)
{
    uint32_t word = blz__load(&m->word, RELAXED), next;

    BLZ_ASSERT(blz__lock_is_held(lock_in(&m->lock)));
    do {
        next = word & LOCKED ? (word & ~CALLED) | WAITERS | DUE : (word & WAITERS) | LOCKED;
        /* acquire: as in take */
    } while (!blz__cas_weak(&m->word, &word, next, ACQUIRE, RELAXED));
    return !(word & LOCKED);
}

/* It is locked, by us: the first in line is called, or gets it. What it is to be told. */
static uint32_t move_on(blz_mutex *m, blz_waiters *claimed)
{
    uint32_t word = blz__load(&m->word, RELAXED);
    uint64_t group;
    bool due = (word & DUE) || (word & PASSES) >= MUTEX_PASSES * PASS;

    BLZ_ASSERT(blz__lock_is_held(lock_in(&m->lock)));
    BLZ_ASSERT(word & LOCKED);
    BLZ_ASSERT(!waiters_empty(&m->waiters));
    if (due)
        note_holder(m, task_of_waker(&m->waiters.first->waker, &group));
    waiter_claim(m->waiters.first, &m->waiters, claimed);
    /* Nobody else writes the word now: it is locked, and so is the line. Release: what came before
     * the unlock; pairs with take and take_called. */
    blz__store(&m->word,
               (waiters_empty(&m->waiters) ? 0 : WAITERS) |
                   (due ? LOCKED : CALLED | (word & PASSES)),
               RELEASE);
    return due ? WAITER_SERVED : CALLED_OUT;
}

/* The one who has been called does not want it any more. */
static void call_next(blz_mutex *m, blz_waiters *claimed)
{
    blz_waiter *first = m->waiters.first;
    uint32_t word = blz__load(&m->word, RELAXED), next;

    BLZ_ASSERT(blz__lock_is_held(lock_in(&m->lock)));
    do {
        if (!first)
            next = word & LOCKED;
        else if (word & LOCKED)
            next = word & ~CALLED; /* the holder's unlock sees to it */
        else
            next = CALLED | (word & PASSES) | (first->next ? WAITERS : 0);
    } while (!blz__cas_weak(&m->word, &word, next, RELAXED, RELAXED));
    if (first && !(word & LOCKED))
        waiter_claim(first, &m->waiters, claimed);
}

/* One has left the line. */
static void close_ranks(blz_mutex *m)
{
    uint32_t word = blz__load(&m->word, RELAXED), next;

    BLZ_ASSERT(blz__lock_is_held(lock_in(&m->lock)));
    if (!waiters_empty(&m->waiters))
        return;
    do {
        next = word & ~(WAITERS | DUE);
        if (!(word & CALLED))
            next &= ~PASSES; /* there is nobody left who has been passed */
    } while (!blz__cas_weak(&m->word, &word, next, RELAXED, RELAXED));
}

/* ---- locking ---- */

/* QUITTING: cancelled, but it may have the mutex by now, or is to call the next one. */
enum { LOCK_FRESH, LOCK_WAITING, LOCK_QUITTING, LOCK_CANCELLED };

int blz_mutex_try_lock(blz_mutex *mutex)
{
    if (!take(mutex, 0))
        return -EAGAIN;
    note_holder(mutex, NULL);
    return 0;
}

/* It is ours now. */
static inline blz_poll locked(blz_mutex_op *op, const blz_cx *cx)
{
    note_holder(op->mutex, cx->task);
    return blz_future_done(&op->future, 0);
}

static blz_poll pending(blz_mutex_op *op)
{
    op->future.line = LOCK_WAITING;
    return BLZ_PENDING;
}

static BLZ_NOINLINE blz_poll lock_slow(blz_mutex_op *op, blz_cx *cx, uint32_t word)
{
    blz_mutex *m = op->mutex;
    blz__lock *lock = lock_in(&m->lock);
    bool taken;

    if (take(m, word) || take_spinning(m, word))
        return locked(op, cx);
    blz__lock_acquire(lock);
    taken = take_or_announce(m);
    if (!taken)
        waiter_enqueue(&op->waiter, &m->waiters, cx);
    blz__lock_release(lock);
    if (taken)
        return locked(op, cx);
    blz_coop_give_back(cx);
    return pending(op);
}

/* It has been called. */
static blz_poll come(blz_mutex_op *op, blz_cx *cx)
{
    blz_mutex *m = op->mutex;
    blz__lock *lock = lock_in(&m->lock);
    bool taken;

    if (take_called(m) || take_called_spinning(m))
        return locked(op, cx);
    blz__lock_acquire(lock);
    taken = take_or_be_due(m);
    if (!taken)
        waiter_enqueue_first(&op->waiter, &m->waiters, cx);
    blz__lock_release(lock);
    return taken ? locked(op, cx) : pending(op);
}

/* It has been called, and cancelled. */
static blz_poll quit(blz_mutex_op *op)
{
    blz_mutex *m = op->mutex;
    blz_waiters claimed = {NULL, NULL};

    blz__lock_acquire(lock_in(&m->lock));
    call_next(m, &claimed);
    blz__lock_release(lock_in(&m->lock));
    waiters_serve(&claimed, CALLED_OUT);
    return blz_future_done(&op->future, -ECANCELED);
}

static BLZ_NOINLINE blz_poll poll_in_line(blz_mutex_op *op, blz_cx *cx)
{
    uint32_t state;

    if (op->future.line == LOCK_CANCELLED)
        return blz_future_done(&op->future, -ECANCELED);
    state = waiter_state(&op->waiter);
    if (state < WAITER_SERVED)
        return BLZ_PENDING;
    if (state == WAITER_SERVED)
        return blz_future_done(&op->future, 0);
    return op->future.line == LOCK_QUITTING ? quit(op) : come(op, cx);
}

static blz_poll lock_poll(blz_future *future, blz_cx *cx)
{
    blz_mutex_op *op = (blz_mutex_op *)(void *)future;
    uint32_t word = 0; /* a guess: looking costs almost as much as the attempt */

    if (blz_unlikely(future->line != LOCK_FRESH))
        return poll_in_line(op, cx);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    /* acquire: as in take */
    if (blz_likely(blz__cas(&op->mutex->word, &word, LOCKED, ACQUIRE, RELAXED)))
        return locked(op, cx);
    return lock_slow(op, cx, word);
}

/* Also before the first poll. */
static void lock_cancel(blz_future *future, blz_cx *cx)
{
    blz_mutex_op *op = (blz_mutex_op *)(void *)future;
    blz_mutex *m = op->mutex;
    bool left = true;

    (void)cx;
    if (future->line == LOCK_QUITTING)
        return; /* is told a second time: a shutdown has lost its patience */
    if (future->line == LOCK_WAITING) {
        blz__lock_acquire(lock_in(&m->lock));
        left = waiter_leave(&op->waiter, &m->waiters);
        if (left)
            close_ranks(m);
        blz__lock_release(lock_in(&m->lock));
        if (left)
            blz_waker_drop(&op->waiter.waker);
    }
    future->line = left ? LOCK_CANCELLED : LOCK_QUITTING;
}

static void lock_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_mutex *m = ((const blz_mutex_op *)(const void *)future)->mutex;

    info->kind = "mutex";
    info->object = m;
    if (blz__load(&m->word, RELAXED) & LOCKED)
        info->holder32 = blz__load(&m->holder, RELAXED);
}

static const blz_future_ops lock_ops = {.name = "mutex_lock",
                                        .poll = lock_poll,
                                        .cancel = lock_cancel,
                                        .describe_wait = lock_describe};

blz_future *blz_mutex_lock(blz_mutex_op *op, blz_mutex *mutex)
{
    blz_op_check(&op->future, &lock_ops);
    op->future = (blz_future){.ops = &lock_ops};
    op->mutex = mutex; /* the waiter when it has to wait */
    return &op->future;
}

/* ---- unlocking ---- */

/* False: there is nobody in line any more. */
static bool unlock_for_first(blz_mutex *m)
{
    blz_waiters claimed = {NULL, NULL};
    uint32_t told = 0;

    blz__lock_acquire(lock_in(&m->lock));
    if (!waiters_empty(&m->waiters))
        told = move_on(m, &claimed);
    blz__lock_release(lock_in(&m->lock));
    waiters_serve(&claimed, told);
    return told;
}

static BLZ_NOINLINE void unlock_slow(blz_mutex *m, uint32_t word)
{
    for (;;) {
        if (!(word & LOCKED))
            blz__panic("blz_mutex_unlock: the mutex at %p is not locked", (void *)m);
        if ((word & (WAITERS | CALLED)) == WAITERS) {
            if (unlock_for_first(m))
                return;
            word = blz__load(&m->word, RELAXED);
        } else if (blz__cas_weak(&m->word, &word, word & ~LOCKED, RELEASE, RELAXED)) {
            return; /* release: as in blz_mutex_unlock */
        }
    }
}

void blz_mutex_unlock(blz_mutex *mutex)
{
    uint32_t word = LOCKED; /* a guess: looking costs almost as much as the attempt */

    /* release: what came before; pairs with lock_poll, take and take_called */
    if (blz_unlikely(!blz__cas(&mutex->word, &word, 0u, RELEASE, RELAXED)))
        unlock_slow(mutex, word);
}

bool blz_mutex_is_locked(const blz_mutex *mutex)
{
    return blz__load(&mutex->word, RELAXED) & LOCKED;
}

void blz_mutex_init(blz_mutex *mutex)
{
    *mutex = (blz_mutex)BLZ_MUTEX_INIT;
}
