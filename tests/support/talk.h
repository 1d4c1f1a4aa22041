/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Something to do for a backend, whichever a runtime has got: two ends of a connection that talk,
 * with a lease and a limit; on any worker, or on each of them.
 */
#ifndef BLZ_TESTS_TALK_H
#define BLZ_TESTS_TALK_H

#include <blitz.h>

/* Talks: 0, or the first error. */
int64_t talk(blz_rt *rt);

/* The same on each worker, all at once: each of them needs its driver. */
int64_t talk_everywhere(blz_rt *rt);

#endif
