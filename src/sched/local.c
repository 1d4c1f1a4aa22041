/* SPDX-License-Identifier: Apache-2.0 */
/* The slow halves of the leaning lock of local.h. */
#include "sched/local.h"

void blz__local_enter_slow(local_queue *local)
{
    blz__store(&local->inside, 0u, RELEASE);
    blz__lock_acquire(&local->lock);
}

void blz__local_leave_slow(local_queue *local)
{
    blz__lock_release(&local->lock);
}

bool blz__local_empty(local_queue *local, task_list *tasks)
{
    bool got_in;

    if (!local->revocable)
        return false;
    blz__lock_acquire(&local->lock);
    blz__store(&local->revoked, 1u, RELAXED);
    blz__fence_heavy(); /* pairs with blz__fence_light in local_enter */
    got_in = blz__load(&local->inside, ACQUIRE) == 0; /* pairs with the release in local_leave */
    if (got_in) {
        blz__plain_write(&local->lifo);
        if (local->lifo)
            task_list_append(tasks, local->lifo);
        local->lifo = NULL;
        task_list_join(tasks, &local->resumed);
        task_list_join(tasks, &local->yielded);
    }
    blz__store(&local->revoked, 0u, RELEASE); /* pairs with the acquire in local_enter */
    blz__lock_release(&local->lock);
    return got_in;
}
