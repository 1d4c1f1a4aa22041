/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Front door of src/sched for the modules above it. They get along with the public API, the task
 * front door, and the driver contract (sched/driver.h); this is the rest.
 */
#ifndef BLZ_SCHED_SCHED_H
#define BLZ_SCHED_SCHED_H

#include "sched/driver.h"
#include "task/task.h"

/* A driver that only sleeps and wakes; its fd serves embedded runtimes. (src/io/wakefd.c) */
extern const blz__driver_ops blz__wakefd_driver;

#endif
