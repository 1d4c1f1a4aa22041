/* SPDX-License-Identifier: Apache-2.0 */
/* Async functions that many tests need. */
#ifndef BLZ_TESTS_FRAMES_H
#define BLZ_TESTS_FRAMES_H

#include <blitz.h>

#include "events.h"

/* Ends with a value at its first poll. */
struct give {
    BLZ_FRAME;
    int64_t value;
};
BLZ_DECLARE_EXTERN(give);

/* Yields `times` times, counting in *count if there is one; ends early when cancelled. */
struct yields {
    BLZ_FRAME;
    int times;
    int64_t value;
    uint64_t *count; /* atomic */
    int64_t rc;
    blz_future op;
};
BLZ_DECLARE_EXTERN(yields);

/* Enters a gate, and ends with what that gave. */
struct enters {
    BLZ_FRAME;
    struct gate *gate;
    struct event *done; /* posted just before the end, if there is one */
    int64_t rc;
    struct gate_wait op;
};
BLZ_DECLARE_EXTERN(enters);

/* Waits until it is cancelled, and ends with -ECANCELED. */
struct sleeps {
    BLZ_FRAME;
    struct event *started; /* posted before, if there is one */
    int64_t rc;
    blz_future op;
};
BLZ_DECLARE_EXTERN(sleeps);

/* Calls fn(arg), and ends with what it returns: a test's code on a worker. */
struct calls {
    BLZ_FRAME;
    int64_t (*fn)(void *arg);
    void *arg;
};
BLZ_DECLARE_EXTERN(calls);

#endif
