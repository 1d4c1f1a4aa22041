/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the system that fail on demand, in fault tests only: the linker puts these in the way of
 * the real ones (--wrap, see variants.cmake).
 */
#ifndef BLZ_TESTS_FAULTY_H
#define BLZ_TESTS_FAULTY_H

#include <stdbool.h>

enum faulty {
    FAULTY_PTHREAD_CREATE, /* returns the error */
    FAULTY_CALLOC,
    FAULTY_MMAP,
    FAULTY_MADVISE,
    FAULTY_EVENTFD,
    FAULTY_MEMBARRIER,
    NR_FAULTY,
};

/* From now on the nth call (1: the next one) fails with that errno; `all`: those after it too. */
void fail_call(enum faulty call, int n, bool all, int error);

/* No call fails any more. Whether one did since fail_call. */
bool stop_failing(enum faulty call);

#endif
