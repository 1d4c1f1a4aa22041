/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The task header: 64 bytes, one cache line, in front of the frame.
 *
 *    0  state       state word (state.h)
 *    8  next        link of the one queue that the task is in; of the free list when it is free
 *   16  join        the joiner's waker (see JOIN in state.h)
 *   32  origin      "fn at file.c:12", or struct task_ext if it has one
 *   40  id          number << 1; the lowest bit says that origin is an ext
 *   48  stamp       ticks of the last change between idle, queued and running; then the result,
 *                   so that a joiner reads this line only
 *   56  polls       wraps
 *   60  busy        polled time, in units of 16 us; saturates after 19 hours
 *   64  the root future: ops, child, result, line, flags; then the frame's own fields
 *
 * The runtime and the heap are found through the block's chunk. `id`, `origin` and the statistics
 * are read by dumps at any time: they are accessed by relaxed atomics.
 */
#ifndef BLZ_TASK_HEADER_H
#define BLZ_TASK_HEADER_H

#include <blitz/future.h>
#include <blitz/task.h>

/*
 * See waits.h. It costs an atomic operation for each reference: of the models only its own has it.
 */
#if defined(BLZ_CHECKS) && !defined(BLZ_MODEL)
#define TASK_CHECKS_WAITS
#endif

struct blz_task {
    uint64_t state;
    blz_task *next;
    blz_waker join;
    uintptr_t origin;
    uint64_t id;
    uint64_t stamp;
    uint32_t polls;
    uint32_t busy;
#ifdef TASK_CHECKS_WAITS
    uint32_t holders; /* see waits.h */
    uint32_t padding[3];
#endif
    blz_future root[];
};

#ifndef TASK_CHECKS_WAITS
_Static_assert(sizeof(struct blz_task) == 64, "the header is a cache line");
#endif
_Static_assert(offsetof(struct blz_task, root) % 16 == 0, "frames are aligned to 16 bytes");

/* The unit of `busy`. */
enum { TASK_BUSY_NS = 16384 };

#endif
