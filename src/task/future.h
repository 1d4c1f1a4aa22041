/* SPDX-License-Identifier: Apache-2.0 */
/* Futures that were made and never polled. Between the files of src/task. */
#ifndef BLZ_TASK_FUTURE_H
#define BLZ_TASK_FUTURE_H

#include <blitz/async.h>

/*
 * Lets go of a future that has never been polled, and of those that it awaits in a chain: gives
 * back the memory of boxes. Nothing else may be owned by a future before its first poll. [task]
 */
void blz__future_discard(blz_future *future, blz_cx *cx);

extern const blz_future_ops blz__box_ops;

/* Frees the boxed frame, or does nothing if there is none. [task] */
void blz__box_discard(blz_box *box, blz_cx *cx);

#endif
