/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime for models whose workers are the fibres of the test: created by the library, never
 * started. A fibre becomes a worker by small_rt_be, and polls tasks when the test says so.
 *
 *     blz_rt *rt = small_rt_new(2, NULL);
 *     small_rt_be(&rt->workers[0]);
 *     model_assert(SMALL_RT_ON(&rt->workers[0], BLZ_SPAWN(child)) == 0);
 *     while (small_rt_poll(&rt->workers[0]))
 *         ;
 *     small_rt_free(rt);
 */
#ifndef BLZ_MODEL_SMALL_RT_H
#define BLZ_MODEL_SMALL_RT_H

#include "sched/rt.h"

blz_rt *small_rt_new(unsigned workers, const blz__driver_ops *driver_ops);

/* All tasks must be gone: what is left of them is a leak, which the explorer finds. */
void small_rt_free(blz_rt *rt);

/* The calling fibre is this worker from now on; NULL: a thread of its own. */
void small_rt_be(blz_worker *w);

/* A spawn as a task on this worker would do it: into the worker's own queues. */
#define SMALL_RT_ON(w, spawn) (small_rt_pretend(w), small_rt_pretended((w), (spawn)))
void small_rt_pretend(blz_worker *w);
int small_rt_pretended(blz_worker *w, int rc);

/* Polls one task of the worker's own queues or of the inject queue. False: there is none. */
bool small_rt_poll(blz_worker *w);

/* Polls all that is queued, and what comes of it. */
void small_rt_poll_all(blz_worker *w);

/* Polls tasks, and lets others run, until that of the handle has ended; gives its result. */
int64_t small_rt_join(blz_worker *w, blz_handle *handle);

#endif
