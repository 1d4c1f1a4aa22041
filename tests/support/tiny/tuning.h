/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library with queues of four tasks and two references to a poll, so that what is rare happens
 * all the time.
 */
#ifndef BLZ_TUNING_TINY_H
#define BLZ_TUNING_TINY_H

#include "tuning/library/tuning.h"

#undef RUNQ_CAPACITY
#undef TASK_BIAS

#define RUNQ_CAPACITY 4u
#define TASK_BIAS     2u

#endif
