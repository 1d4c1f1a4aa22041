/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barrier: a number of parties meet, again and again; nobody goes on before all are there.
 *
 *     rc = blz_barrier_init(&barrier, 4);                             // -EINVAL for 0 parties
 *
 *     for (self->step = 0; self->step < 100; self->step++) {          // each of four tasks
 *         compute(self->part);
 *         BLZ_AWAIT(self->rc, blz_barrier_arrive(&self->wait, self->barrier));
 *         if (self->rc < 0)
 *             break;                                                  // cancelled
 *         if (self->rc == 1)
 *             publish(self->step);                                    // the leader of this round
 *     }
 *
 * When the last party has arrived the round is over, all go on, and the next round begins. What the
 * parties did before they arrived is seen by all that were waited for.
 *
 * A wait that is cancelled takes its arrival back: the round is as if it had never come. If it does
 * not come again the others wait for ever, unless it says blz_barrier_leave.
 *
 * The barrier may be freed when the waits of its last round have ended.
 */
#ifndef BLITZ_BARRIER_H
#define BLITZ_BARRIER_H

#include <blitz/future.h>
#include <blitz/waiter.h>

BLZ_BEGIN_DECLS

/* A barrier, in memory of the program. All fields are the library's. */
typedef struct blz_barrier {
    uint32_t lock;
    uint32_t parties;
    uint32_t arrived; /* in this round */
    uint32_t reserved;
    uint64_t round; /* how many are over */
    blz_waiters waiters;
} blz_barrier;

/* For a static one; blz_barrier_init does the same, and checks. */
#define BLZ_BARRIER_INIT(parties) \
    {                             \
        0, (parties), 0, 0, 0,    \
        {                         \
            NULL, NULL            \
        }                         \
    }

/* The future of blz_barrier_arrive. */
typedef struct blz_barrier_op {
    blz_future future;
    blz_waiter waiter;
    blz_barrier *barrier;
    uint64_t reserved[2];
} blz_barrier_op;

/* Prepares a barrier for a number of parties: 0; -EINVAL: no parties. [any thread] */
BLZ_API BLZ_NODISCARD int blz_barrier_init(blz_barrier *barrier, uint32_t parties);

/*
 * Arrives, and awaits the others: 1 for one party of the round, its leader, 0 for all others.
 * Interruptible: -ECANCELED, and the arrival is taken back; a round that is over stands. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_barrier_arrive(blz_barrier_op *op, blz_barrier *barrier);

/* Arrives if that ends the round: 1; otherwise -EAGAIN, and it has not arrived. [any thread] */
BLZ_API int blz_barrier_try_arrive(blz_barrier *barrier);

/*
 * Arrives and does not wait: 1 if that ended the round, so that the caller is its leader, otherwise
 * 0. It cannot fail. [any thread]
 */
BLZ_API int blz_barrier_signal(blz_barrier *barrier);

/*
 * Removes one party, from this round and all later ones. That may end the round: its leader is then
 * the party that has waited longest. Aborts if no party is left to remove. [any thread]
 */
BLZ_API void blz_barrier_leave(blz_barrier *barrier);

/* How many rounds are over; old when you look at it. [any thread] */
BLZ_API uint64_t blz_barrier_rounds(const blz_barrier *barrier);

/*
 * Arrives and blocks this thread until the round is over: 1 for the leader of the round, 0 for the
 * other parties; -EDEADLK on a worker, where it does not arrive. [any thread but a worker]
 */
static inline int64_t blz_barrier_arrive_wait(blz_barrier *barrier)
{
    blz_barrier_op op;

    return blz_wait(blz_barrier_arrive(BLZ_FRESH_(&op), barrier));
}

BLZ_END_DECLS
#endif
