/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task without a scheduler: it is in the middle of a poll from its first to its last moment, and
 * the test itself polls the futures in it. A wake marks the running task; the test waits for that
 * mark, then polls again. So a lost wake-up is a test that waits for ever.
 *
 *     hand_polled hand;
 *     hand_begin(&hand);
 *     int64_t result = hand_await(&hand, blz_oneshot_recv(&op, channel, &value));
 *     hand_end(&hand);   // waits for ever if a waker was lost, fails if dropped twice
 */
#ifndef BLZ_MODEL_HAND_POLLED_H
#define BLZ_MODEL_HAND_POLLED_H

#include "task/task.h"

typedef struct hand_polled {
    blz_task *task;
    blz_cx cx;
} hand_polled;

static inline void hand_begin(hand_polled *hand)
{
    blz_task *task = model_alloc(sizeof(blz_task) + sizeof(blz_future), HEAP_ALIGN);

    task->state = TASK_RUNNING | (1 + TASK_BIAS) * TASK_REF;
    task->root[0] = (blz_future){0};
    *hand =
        (hand_polled){task,
                      {.task = task, .scope = task->root, .budget = 128, .refs_left = TASK_BIAS}};
}

/* Ends one poll and begins the next, as if the task had yielded. */
static inline void hand_yield(hand_polled *hand)
{
    task_keep_woken(&hand->cx);
    hand->cx.groups = hand->cx.woken = hand->cx.answered = hand->cx.yielded = 0;
    task_state_begin(&hand->task->state, 1);
}

/* Waits for a wake, and answers it. */
static inline void hand_wait(hand_polled *hand)
{
    /* as task_state_begin, for a task that stayed running */
    while (!(blz__load(&hand->task->state, ACQUIRE) & TASK_NOTIFIED))
        blz__spin_hint();
    hand_yield(hand);
}

/* Polls until it is ready; one that yields is polled again when others have run. */
static inline int64_t hand_await(hand_polled *hand, blz_future *future)
{
    while (blz_is_pending(future->ops->poll(future, &hand->cx))) {
        if (hand->cx.yielded) {
            hand->cx.yielded = 0;
            blz__spin_hint();
        } else {
            hand_wait(hand);
        }
    }
    return future->result;
}

/*
 * Waits until all wakers are gone again: one reference is the task's own, the others are of the
 * bias. A waker that is dropped twice is one too few.
 */
static inline void hand_end(hand_polled *hand)
{
    uint64_t refs;

    while ((refs = task_state_refs(blz__load(&hand->task->state, ACQUIRE))) !=
           1 + hand->cx.refs_left) {
        model_assert(refs > 1 + hand->cx.refs_left);
        blz__spin_hint();
    }
    model_free(hand->task);
}

#endif
