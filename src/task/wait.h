/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for a future. Between the files of src/task. */
#ifndef BLZ_TASK_WAIT_H
#define BLZ_TASK_WAIT_H

#include <blitz/future.h>

/* blz_wait_until, on a thread that is known to be allowed to sleep. */
int64_t blz__thread_wait(blz_future *future, int64_t deadline_ns);

/* A waker for the thread that polls with this context, in there. */
blz_waker blz__thread_waker(blz_cx *cx);

#endif
