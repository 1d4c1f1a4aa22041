/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rwlock: a word that says who holds it, and a line for everybody else.
 *
 *   bits 8-63   how many readers, the upgradable one not included
 *   bit 2       UPGRADABLE: held so that it may become the writer
 *   bit 1       WRITER
 *   bit 0       WAITERS: the line is not empty; changed under its lock only
 *
 *   wants to     needs                                   makes of it
 *   -------------------------------------------------------------------------
 *   read         no WRITER                               one reader more
 *   upgradable   no WRITER, no UPGRADABLE                UPGRADABLE
 *   write        no WRITER, no UPGRADABLE, no readers    WRITER
 *   upgrade      no readers (it is the UPGRADABLE)       WRITER instead of UPGRADABLE
 *
 * While WAITERS is set, newcomers go into the line whatever they want; an upgrade goes to its
 * front. So the one in front never fits: whoever releases something, or leaves the line, serves
 * from the front, under the lock of the line, until that holds again. Only the last reader can make
 * anybody fit; the others leave by one CAS even if there is a line.
 *
 * Nobody touches the lock after it has let go: that is the CAS, without the lock of the line; or
 * there was someone in the line when it happened, who is alive until the line has been unlocked.
 */
#include "base/assert.h"
#include "base/panic.h"
#include "sync/sync.h"
#include "task/task.h"

#include <blitz/wait_info.h>
#include <blitz/rwlock.h>

_Static_assert(sizeof(blz_rwlock) == 32, "part of the ABI");
_Static_assert(sizeof(blz_rwlock_op) == 88, "part of the ABI");

#define WAITERS    ((uint64_t)0x1)
#define WRITER     ((uint64_t)0x2)
#define UPGRADABLE ((uint64_t)0x4)
#define READER     ((uint64_t)0x100)

/* What a waiter wants: its `count`. */
enum { READ, INTEND, WRITE, UPGRADE };

/* What is given up. EXCLUDING: the writer goes on as a reader; NOTHING: one has left the line. */
enum { NOTHING, READING, INTENDING, WRITING, EXCLUDING };

/* ---- the word ---- */

static bool fits(uint64_t word, uint32_t kind)
{
    switch (kind) {
    case READ:
        return !(word & WRITER);
    case INTEND:
        return !(word & (WRITER | UPGRADABLE));
    case WRITE:
        return !(word & ~WAITERS);
    default:
        return word < READER;
    }
}

static uint64_t with(uint64_t word, uint32_t kind)
{
    switch (kind) {
    case READ:
        return word + READER;
    case INTEND:
        return word | UPGRADABLE;
    case WRITE:
        return word | WRITER;
    default:
        return (word & ~UPGRADABLE) | WRITER;
    }
}

static bool is_held(uint64_t word, int what)
{
    switch (what) {
    case READING:
        return word >= READER;
    case INTENDING:
        return word & UPGRADABLE;
    case WRITING:
    case EXCLUDING:
        return word & WRITER;
    default:
        return true;
    }
}

static uint64_t without(uint64_t word, int what)
{
    switch (what) {
    case READING:
        return word - READER;
    case INTENDING:
        return word & ~UPGRADABLE;
    case WRITING:
        return word & ~WRITER;
    case EXCLUDING:
        return (word & ~WRITER) + READER;
    default:
        return word;
    }
}

/* By a newcomer; `word` is a guess. False: it does not fit, or it is not its turn. */
static bool take(blz_rwlock *l, uint64_t word, uint32_t kind)
{
    while (fits(word, kind) && !(word & WAITERS))
        /* acquire: what came before the unlock; pairs with let_go and serve */
        if (blz__cas_weak(&l->word, &word, with(word, kind), ACQUIRE, RELAXED))
            return true;
    return false;
}

/* Who writes, for those who look at the program: as in mutex.c. */
static inline void note_writer(blz_rwlock *l, const blz_task *task)
{
    blz__stat_store(&l->writer, task ? (uint32_t)(blz__stat_load(&task->id) >> 1) : 0);
}

/* ---- the line: under its lock ---- */

/* Gives `what` up, and claims those in front that fit then. */
static void serve(blz_rwlock *l, int what, blz_waiters *claimed)
{
    uint64_t word = blz__load(&l->word, RELAXED), next, group;
    blz_waiter *unfit;

    BLZ_ASSERT(blz__lock_is_held(lock_in(&l->lock)));
    do {
        next = without(word, what);
        for (unfit = l->waiters.first; unfit && fits(next, unfit->count); unfit = unfit->next)
            next = with(next, unfit->count);
        next = unfit ? next | WAITERS : next & ~WAITERS;
        /* release: what came before, for who locks next; acquire: what readers did that left
         * without the line, for those claimed here. Pairs with take, and with let_go. */
    } while (!blz__cas_weak(&l->word, &word, next, ACQ_REL, RELAXED));
    while (l->waiters.first != unfit) {
        if (l->waiters.first->count >= WRITE)
            note_writer(l, task_of_waker(&l->waiters.first->waker, &group));
        waiter_claim(l->waiters.first, &l->waiters, claimed);
    }
}

/* As take; false: a waiter has been announced. */
static bool take_or_announce(blz_rwlock *l, uint32_t kind)
{
    uint64_t word = blz__load(&l->word, RELAXED);
    bool taken;

    BLZ_ASSERT(blz__lock_is_held(lock_in(&l->lock)));
    do {
        taken = fits(word, kind) && (kind == UPGRADE || !(word & WAITERS));
        /* acquire: as in take */
    } while (!blz__cas_weak(&l->word, &word, taken ? with(word, kind) : word | WAITERS, ACQUIRE,
                            RELAXED));
    return taken;
}

/* ---- locking ---- */

enum { LOCK_FRESH, LOCK_WAITING, LOCK_CANCELLED };

/* Under the lock of the line: 0, it has been taken; -EAGAIN: in the line; -EDEADLK. */
static int take_or_queue(blz_rwlock_op *op, blz_cx *cx)
{
    blz_rwlock *l = op->rwlock;
    uint32_t kind = op->waiter.count;
    const blz_waiter *first = l->waiters.first;

    BLZ_ASSERT(blz__lock_is_held(lock_in(&l->lock)));
    if (kind == UPGRADE && first && first->count == UPGRADE)
        return -EDEADLK;
    if (take_or_announce(l, kind))
        return 0;
    if (kind == UPGRADE)
        waiter_enqueue_first(&op->waiter, &l->waiters, cx);
    else
        waiter_enqueue(&op->waiter, &l->waiters, cx);
    return -EAGAIN;
}

static BLZ_NOINLINE blz_poll wait_in_line(blz_rwlock_op *op, blz_cx *cx, uint32_t kind)
{
    blz__lock *lock = lock_in(&op->rwlock->lock);
    int rc;

    op->waiter.count = kind;
    blz__lock_acquire(lock);
    rc = take_or_queue(op, cx);
    blz__lock_release(lock);
    if (rc == 0 && kind >= WRITE)
        note_writer(op->rwlock, cx->task);
    if (rc != -EAGAIN)
        return blz_future_done(&op->future, rc);
    op->future.line = LOCK_WAITING;
    blz_coop_give_back(cx);
    return BLZ_PENDING;
}

static BLZ_NOINLINE blz_poll poll_in_line(blz_rwlock_op *op)
{
    if (op->future.line == LOCK_CANCELLED)
        return blz_future_done(&op->future, -ECANCELED);
    return waiter_is_served(&op->waiter) ? blz_future_done(&op->future, 0) : BLZ_PENDING;
}

static inline blz_poll lock_poll(blz_future *future, blz_cx *cx, uint32_t kind)
{
    blz_rwlock_op *op = (blz_rwlock_op *)(void *)future;

    if (blz_unlikely(future->line != LOCK_FRESH))
        return poll_in_line(op);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    if (blz_likely(take(op->rwlock, 0, kind))) {
        if (kind == WRITE)
            note_writer(op->rwlock, cx->task);
        return blz_future_done(future, 0);
    }
    return wait_in_line(op, cx, kind);
}

static blz_poll read_poll(blz_future *future, blz_cx *cx)
{
    return lock_poll(future, cx, READ);
}

static blz_poll intend_poll(blz_future *future, blz_cx *cx)
{
    return lock_poll(future, cx, INTEND);
}

static blz_poll write_poll(blz_future *future, blz_cx *cx)
{
    return lock_poll(future, cx, WRITE);
}

/* Also before the first poll. Whoever has been claimed has the lock all the same. */
static void lock_cancel(blz_future *future, blz_cx *cx)
{
    blz_rwlock_op *op = (blz_rwlock_op *)(void *)future;
    blz_rwlock *l = op->rwlock;
    blz_waiters claimed = {NULL, NULL};
    bool left = true;

    (void)cx;
    if (future->line == LOCK_WAITING) {
        blz__lock_acquire(lock_in(&l->lock));
        left = waiter_leave(&op->waiter, &l->waiters);
        if (left)
            serve(l, NOTHING, &claimed); /* perhaps those behind it fit, or nobody is left */
        blz__lock_release(lock_in(&l->lock));
        waiters_serve(&claimed, WAITER_SERVED);
        if (left)
            blz_waker_drop(&op->waiter.waker);
    }
    if (left)
        future->line = LOCK_CANCELLED;
}

static blz_future *init(blz_rwlock_op *op, blz_rwlock *rwlock, const blz_future_ops *ops)
{
    blz_op_check(&op->future, ops);
    op->future = (blz_future){.ops = ops};
    op->rwlock = rwlock; /* the waiter when it has to wait */
    return &op->future;
}

/* Readers are only counted: nobody knows who they are. */
static void lock_describe(const blz_future *future, blz_wait_info *info)
{
    const blz_rwlock *l = ((const blz_rwlock_op *)(const void *)future)->rwlock;

    info->kind = "rwlock";
    info->object = l;
    if (blz__load(&l->word, RELAXED) & WRITER)
        info->holder32 = blz__load(&l->writer, RELAXED);
}

static const blz_future_ops read_ops = {.name = "rwlock_read",
                                        .poll = read_poll,
                                        .cancel = lock_cancel,
                                        .describe_wait = lock_describe};
static const blz_future_ops intend_ops = {.name = "rwlock_upgradable",
                                          .poll = intend_poll,
                                          .cancel = lock_cancel,
                                          .describe_wait = lock_describe};
static const blz_future_ops write_ops = {.name = "rwlock_write",
                                         .poll = write_poll,
                                         .cancel = lock_cancel,
                                         .describe_wait = lock_describe};

blz_future *blz_rwlock_read(blz_rwlock_op *op, blz_rwlock *rwlock)
{
    return init(op, rwlock, &read_ops);
}

blz_future *blz_rwlock_upgradable(blz_rwlock_op *op, blz_rwlock *rwlock)
{
    return init(op, rwlock, &intend_ops);
}

blz_future *blz_rwlock_write(blz_rwlock_op *op, blz_rwlock *rwlock)
{
    return init(op, rwlock, &write_ops);
}

int blz_rwlock_try_read(blz_rwlock *rwlock)
{
    return take(rwlock, 0, READ) ? 0 : -EAGAIN;
}

int blz_rwlock_try_upgradable(blz_rwlock *rwlock)
{
    return take(rwlock, 0, INTEND) ? 0 : -EAGAIN;
}

int blz_rwlock_try_write(blz_rwlock *rwlock)
{
    if (!take(rwlock, 0, WRITE))
        return -EAGAIN;
    note_writer(rwlock, NULL);
    return 0;
}

/* ---- unlocking ---- */

/* False: there is nobody in line any more, and nothing has been done. */
static bool serve_line(blz_rwlock *l, int what)
{
    blz_waiters claimed = {NULL, NULL};
    bool anyone;

    blz__lock_acquire(lock_in(&l->lock));
    anyone = !waiters_empty(&l->waiters);
    if (anyone)
        serve(l, what, &claimed);
    blz__lock_release(lock_in(&l->lock));
    waiters_serve(&claimed, WAITER_SERVED);
    return anyone;
}

static BLZ_NOINLINE void let_go_slow(blz_rwlock *l, uint64_t word, int what, const char *caller)
{
    for (;;) {
        if (!is_held(word, what))
            blz__panic("%s: the lock at %p is not held that way", caller, (void *)l);
        uint64_t next = without(word, what);
        bool more_readers = what == READING && next >= READER;
        if ((word & WAITERS) && !more_readers) {
            if (serve_line(l, what))
                return;
            word = blz__load(&l->word, RELAXED);
        } else if (blz__cas_weak(&l->word, &word, next, RELEASE, RELAXED)) {
            return; /* release: as in let_go */
        }
    }
}

/* `word`: what it is if nobody else is there, the likely case. Looking costs almost as much. */
static inline void let_go(blz_rwlock *l, uint64_t word, int what, const char *caller)
{
    /* release: what came before; pairs with take and serve */
    if (blz_unlikely(!blz__cas(&l->word, &word, without(word, what), RELEASE, RELAXED)))
        let_go_slow(l, word, what, caller);
}

void blz_rwlock_read_unlock(blz_rwlock *rwlock)
{
    let_go(rwlock, READER, READING, "blz_rwlock_read_unlock");
}

void blz_rwlock_upgradable_unlock(blz_rwlock *rwlock)
{
    let_go(rwlock, UPGRADABLE, INTENDING, "blz_rwlock_upgradable_unlock");
}

void blz_rwlock_write_unlock(blz_rwlock *rwlock)
{
    let_go(rwlock, WRITER, WRITING, "blz_rwlock_write_unlock");
}

void blz_rwlock_downgrade(blz_rwlock *rwlock)
{
    let_go(rwlock, WRITER, EXCLUDING, "blz_rwlock_downgrade");
}

/* ---- upgrading ---- */

/* The lock of the line is not needed: those in line do not fit before it, nor after. */
int blz_rwlock_try_upgrade(blz_rwlock *rwlock)
{
    uint64_t word = UPGRADABLE;

    do {
        if (!(word & UPGRADABLE))
            return -EPERM;
        if (!fits(word, UPGRADE))
            return -EAGAIN;
        /* acquire: as in take */
    } while (!blz__cas_weak(&rwlock->word, &word, with(word, UPGRADE), ACQUIRE, RELAXED));
    note_writer(rwlock, NULL);
    return 0;
}

int blz_rwlock_try_upgrade_read(blz_rwlock *rwlock)
{
    uint64_t word = READER;

    do {
        if (word < READER)
            return -EPERM;
        if ((word & ~WAITERS) != READER)
            return -EAGAIN;
        /* acquire: as in take */
    } while (!blz__cas_weak(&rwlock->word, &word, (word & WAITERS) | WRITER, ACQUIRE, RELAXED));
    note_writer(rwlock, NULL);
    return 0;
}

static blz_poll upgrade_poll(blz_future *future, blz_cx *cx)
{
    blz_rwlock_op *op = (blz_rwlock_op *)(void *)future;
    int rc;

    if (future->line != LOCK_FRESH)
        return poll_in_line(op);
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    rc = blz_rwlock_try_upgrade(op->rwlock);
    if (rc == 0)
        note_writer(op->rwlock, cx->task);
    return rc == -EAGAIN ? wait_in_line(op, cx, UPGRADE) : blz_future_done(future, rc);
}

blz_future *blz_rwlock_upgrade(blz_rwlock_op *op, blz_rwlock *rwlock)
{
    static const blz_future_ops ops = {.name = "rwlock_upgrade",
                                       .poll = upgrade_poll,
                                       .cancel = lock_cancel,
                                       .describe_wait = lock_describe};

    return init(op, rwlock, &ops);
}

void blz_rwlock_init(blz_rwlock *rwlock)
{
    *rwlock = (blz_rwlock)BLZ_RWLOCK_INIT;
}
