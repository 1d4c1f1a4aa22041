/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for a future. Between the files of src/task. */
#ifndef BLZ_TASK_WAIT_H
#define BLZ_TASK_WAIT_H

#include <blitz/future.h>

/* A waker for the thread that polls with this context, in blz_wait. */
blz_waker blz__thread_waker(blz_cx *cx);

#endif
