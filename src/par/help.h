/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helping: what a thread that waits may take from the one that it waits for.
 *
 * It waits for a job that another thread has taken, or for the tasks of a scope. What belongs to
 * that is what was forked by it, or by something that belongs to it. A helper takes nothing else:
 * its locks are held and its stack is in use while it waits.
 *
 * Who has a job or a block of tasks of somebody else says so there, by a claim, and takes it down
 * when it is through, before the one who waits is told:
 *
 *     thread | depth | tail, when it began
 *
 * The depth of a thread is how many times it is in a wait in which it takes whatever there is. What
 * it takes there does not belong to what lies beneath, though it forks into the same ring.
 *
 * The job at index i of the thread belongs to what is claimed if the claim stands, i is not below
 * its tail, and the thread is at its depth. A helper looks at top and bottom, then at the claim and
 * the depth, then moves top. If that succeeds the job has been there since before it looked at
 * bottom: to take back the oldest job moves top, too. So whatever forked it was on the stack of its
 * thread all the time. That began after the claim was put up, since the index is not below the tail
 * of then. The claim stood and the depth was as claimed at some moment after the job was published,
 * since what its thread wrote before that is seen by who reads that bottom. So at that moment what
 * forked the job was on top of what is claimed, and nothing of a greater depth between them.
 *
 * A private job that is taken by force (deque.h) is held while the helper looks at the claim and
 * the depth, after it has seen the tail above it; the rest is the same.
 *
 * Then there remain the jobs that it took without a greater depth: as a helper itself, so they
 * belong to what it waits for; and what it waits for was forked by what is claimed.
 *
 * A helper that finds nothing sleeps. It marks its latch as blocked, and looks once more after a
 * heavy fence; who publishes a job looks, after a light one, whether the latch of what it has is
 * blocked. Either the job is found, or the helper is woken. Helpers are not among those who are
 * counted as asleep (sleep.h), so nobody relies on them for what they may not take.
 */
#ifndef BLZ_PAR_HELP_H
#define BLZ_PAR_HELP_H

#include "base/atomic.h"

struct worker;
struct blz_par_scope;

#define PAR_UNCLAIMED UINT64_MAX

/* A thread that is this deep waits without taking anything: the claim has no room for more. */
enum { PAR_MAX_DEPTH = 0xfff0 };

/* What a thread has of others, in its stack: the innermost first. */
typedef struct par_taken {
    struct par_taken *outer;
    uint64_t *claim_at; /* in the job, or in the scope */
    uint64_t claim;
    uint32_t *latch; /* of who waits */
    uint32_t depth;
    int64_t base; /* its jobs have indices from here on */
} par_taken;

/* From here on others may help with it. [who has it] */
void blz__par_claim(struct worker *w, par_taken *t, uint64_t *claim_at, uint32_t *latch);

/* Not any more. What is claimed last ends first. */
void blz__par_unclaim(struct worker *w, par_taken *t);

/* Whether the job at that index of that thread belongs to what it claims there: see above. */
bool blz__par_belongs(const struct worker *victim, const uint64_t *claim_at, uint64_t claim,
                      int64_t index);

/*
 * A job of that index has been published, and the fence of blz__par_sleep_post is behind us: wakes
 * one who waits for something that it belongs to, if it sleeps.
 */
void blz__par_tell_helper(struct worker *w, int64_t index);

#endif
